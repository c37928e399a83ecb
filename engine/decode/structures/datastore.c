// Reading, writing and searching a datastore.
//
// The places are sorted by prefix doubling (Manber, Myers): once places are sorted by their first h tokens
// and numbered by class, the pair (class here, class h further on) sorts them by 2h. Each round is a counting
// sort by the first of the pair over an order by the second, which the previous round has left.
//
// Invariant of an open store (check_content, when it's opened): every token is a break or an id below vocab,
// every place is below count.
#include "engine/decode/structures/datastore.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

static const char MAGIC[] = DATASTORE_START;
enum { VOCAB_AT = 8, COUNT_AT = 16, TOKENS_AT = 24 };

// --- reading

static bool parse_header(const unsigned char *bytes, size_t n, const char *place, Datastore *out, Error *e) {
    uint32_t vocab;
    uint64_t count;
    if (n < TOKENS_AT || memcmp(bytes, MAGIC, sizeof MAGIC - 1) != 0)
        return error_input(e, "'%s' is not a datastore: 'outpace datasets index' makes one", place);
    memcpy(&vocab, bytes + VOCAB_AT, sizeof vocab);
    memcpy(&count, bytes + COUNT_AT, sizeof count);
    if (vocab < 1 || vocab >= INT_MAX || count < 1 || count > INT_MAX)
        return error_input(e, "'%s' claims %llu tokens of a vocabulary of %u", place,
                           (unsigned long long)count, vocab);
    if (n != TOKENS_AT + 8 * (size_t)count)
        return error_input(e, "'%s' has %zu bytes, its %llu tokens need %zu: build it again", place, n,
                           (unsigned long long)count, TOKENS_AT + 8 * (size_t)count);
    *out = (Datastore){.count = (int)count, .vocab = (int)vocab};
    out->tokens = (const int32_t *)(const void *)(bytes + TOKENS_AT);
    out->places = out->tokens + out->count;
    return true;
}

static void datastore_check(const Datastore *d) {
    assert(d->count >= 1 && d->vocab >= 1 && d->tokens && d->places == d->tokens + d->count);
}

static bool check_content(const Datastore *d, const char *place, Error *e) {
    for (int i = 0; i < d->count; i++) {
        if (d->tokens[i] < DATASTORE_BREAK || d->tokens[i] >= d->vocab)
            return error_input(e, "token %d of '%s' is %d, outside its vocabulary of %d", i, place,
                               d->tokens[i], d->vocab);
        if (d->places[i] < 0 || d->places[i] >= d->count)
            return error_input(e, "place %d of '%s' is %d, outside its %d tokens", i, place, d->places[i],
                               d->count);
    }
    return true;
}

bool datastore_parse(const unsigned char *bytes, size_t n, const char *place, Datastore *out, Error *e) {
    *out = (Datastore){0};
    if (parse_header(bytes, n, place, out, e) && check_content(out, place, e)) return true;
    *out = (Datastore){0};
    return false;
}

bool datastore_open(Datastore *d, const char *path, Error *e) {
    FileView view;
    *d = (Datastore){0};
    if (!file_map(path, &view, e)) return false;
    if (datastore_parse(view.data, view.size, path, d, e)) {
        d->view = view;
        datastore_check(d);
        return true;
    }
    file_unmap(&view);
    return false;
}

void datastore_close(Datastore *d) {
    file_unmap(&d->view);
    *d = (Datastore){0};
}

// --- sorting

typedef struct Sorter {
    int n, classes;
    int *places;   // (n): the result
    int *class_of; // (n): by place
    int *order;    // (n): places by their second key
    int *starts;   // (max(n, vocab) + 2): where each class begins
} Sorter;

// Sorts the places by class; within a class they keep their order in `order`.
static void sort_by_class(Sorter *s) {
    assert(s->classes >= 1);
    memset(s->starts, 0, ((size_t)s->classes + 1) * sizeof *s->starts);
    for (int i = 0; i < s->n; i++) s->starts[s->class_of[i] + 1]++;
    for (int c = 0; c < s->classes; c++) s->starts[c + 1] += s->starts[c];
    for (int i = 0; i < s->n; i++) s->places[s->starts[s->class_of[s->order[i]]]++] = s->order[i];
}

// Past the text's end the class is -1, less than any other.
static int class_behind(const Sorter *s, int place, int h) {
    return s->n - place > h ? s->class_of[place + h] : -1;
}

// Numbers the classes by 2h tokens; the places are sorted by those. h = 0: by the current classes.
static void number_classes(Sorter *s, int h) {
    int count = 0, *next = s->order;
    for (int i = 0; i < s->n; i++) {
        int here = s->places[i], before = i ? s->places[i - 1] : -1;
        bool same = i && s->class_of[here] == s->class_of[before] &&
                    class_behind(s, here, h) == class_behind(s, before, h);
        count += !same;
        next[here] = count - 1;
    }
    s->order = s->class_of;
    s->class_of = next;
    s->classes = count;
}

static void sort_places(Sorter *s, const int *tokens, int vocab) {
    for (int i = 0; i < s->n; i++) {
        s->class_of[i] = tokens[i] + 1;
        s->order[i] = i;
    }
    s->classes = vocab + 1;
    sort_by_class(s);
    number_classes(s, 0);
    for (int h = 1; s->classes < s->n; h *= 2) {
        int k = 0; // ordered by the second half
        for (int i = s->n > h ? s->n - h : 0; i < s->n; i++) s->order[k++] = i;
        for (int i = 0; i < s->n; i++)
            if (s->places[i] >= h) s->order[k++] = s->places[i] - h;
        sort_by_class(s);
        number_classes(s, h);
    }
    for (int i = 0; i < s->n; i++) assert(s->class_of[s->places[i]] == i); // no two places are equal
}

bool suffix_array_build(const int *tokens, int n, int vocab, int *places, Error *e) {
    size_t starts = (size_t)(n > vocab ? n : vocab) + 2;
    Sorter s = {.n = n, .places = places};
    s.class_of = mem_try((size_t)n, sizeof *s.class_of);
    s.order = mem_try((size_t)n, sizeof *s.order);
    s.starts = mem_try(starts, sizeof *s.starts);
    bool ok = s.class_of && s.order && s.starts;
    if (ok) sort_places(&s, tokens, vocab);
    MEM_FREE(s.class_of, s.order, s.starts);
    return ok || error_system(e, "out of memory sorting a text of %d tokens", n);
}

// --- writing

unsigned char *datastore_make(const int *tokens, int count, int vocab, size_t *size, Error *e) {
    size_t n = TOKENS_AT + 8 * (size_t)count;
    uint32_t v = (uint32_t)vocab;
    uint64_t c = (uint64_t)count;
    if (count < 1) {
        error_input(e, "a datastore needs at least one token");
        return NULL;
    }
    unsigned char *bytes = mem_try(n, 1);
    if (!bytes) {
        error_system(e, "out of memory for a datastore of %d tokens", count);
        return NULL;
    }
    int *places = (int *)(void *)(bytes + TOKENS_AT + 4 * (size_t)count);
    memcpy(bytes, MAGIC, sizeof MAGIC - 1);
    memcpy(bytes + VOCAB_AT, &v, sizeof v);
    memcpy(bytes + COUNT_AT, &c, sizeof c);
    memcpy(bytes + TOKENS_AT, tokens, 4 * (size_t)count);
    *size = n;
    if (suffix_array_build(tokens, count, vocab, places, e)) return bytes;
    mem_free(bytes);
    return NULL;
}

bool datastore_write(const char *path, const int *tokens, int count, int vocab, Error *e) {
    size_t n;
    LOCAL_MEMORY unsigned char *bytes = datastore_make(tokens, count, vocab, &n, e);
    return bytes && file_write(path, bytes, n, e);
}

// --- looking up

// Negative, 0 or positive: the text at a place sorts before the phrase, begins with it, or sorts after it.
static int compare(const Datastore *d, int place, const int *phrase, int n) {
    for (int i = 0; i < n; i++) {
        if (d->count - place <= i) return -1;
        int token = d->tokens[place + i];
        if (token != phrase[i]) return token < phrase[i] ? -1 : 1;
    }
    return 0;
}

// The first of the sorted places in [from, count) that compares greater than `most` with the phrase.
static int bound(const Datastore *d, const int *phrase, int n, int from, int most) {
    int low = from, high = d->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (compare(d, d->places[middle], phrase, n) > most) high = middle;
        else low = middle + 1;
    }
    return low;
}

int datastore_find(const Datastore *d, const int *phrase, int n, int *first) {
    assert(n >= 1);
    datastore_check(d);
    *first = bound(d, phrase, n, 0, -1);
    if (*first == d->count || compare(d, d->places[*first], phrase, n) != 0) return 0;
    return bound(d, phrase, n, *first, 0) - *first;
}
