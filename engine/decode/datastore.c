#include "engine/decode/datastore.h"

#include "engine/base/memory.h"
#include "engine/decode/suffix_array.h"

#include <limits.h>
#include <string.h>

static const char MAGIC[] = DATASTORE_START;
enum { VOCAB_AT = 8, COUNT_AT = 16, TOKENS_AT = 24 };

// --- reading

static bool parse_header(const unsigned char *bytes, size_t n, const char *place, Datastore *out, Error *e) {
    uint32_t vocab;
    uint64_t count;
    if (n < TOKENS_AT || memcmp(bytes, MAGIC, sizeof MAGIC - 1) != 0)
        return error_input(e, "'%s' is no datastore: 'outpace datasets index' makes one", place);
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
        return true;
    }
    file_unmap(&view);
    return false;
}

void datastore_close(Datastore *d) {
    file_unmap(&d->view);
    *d = (Datastore){0};
}

// --- writing

unsigned char *datastore_make(const int *tokens, int count, int vocab, size_t *size, Error *e) {
    size_t n = TOKENS_AT + 8 * (size_t)count;
    uint32_t v = (uint32_t)vocab;
    uint64_t c = (uint64_t)count;
    if (count < 1) {
        error_input(e, "a datastore of nothing is not written");
        return NULL;
    }
    unsigned char *bytes = mem_alloc(n, 1);
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
    unsigned char *bytes = datastore_make(tokens, count, vocab, &n, e);
    bool ok = bytes && file_write(path, bytes, n, e);
    mem_free(bytes);
    return ok;
}

// --- looking up

// Below 0, 0 or above: what stands there comes before the phrase, begins with it, or comes after it.
static int compare(const Datastore *d, int place, const int *phrase, int n) {
    for (int i = 0; i < n; i++) {
        if (d->count - place <= i) return -1;
        int token = d->tokens[place + i];
        if (token != phrase[i]) return token < phrase[i] ? -1 : 1;
    }
    return 0;
}

// The first of the sorted places in [from, count) whose comparison with the phrase is above `most`.
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
    *first = bound(d, phrase, n, 0, -1);
    if (*first == d->count || compare(d, d->places[*first], phrase, n) != 0) return 0;
    return bound(d, phrase, n, *first, 0) - *first;
}

int datastore_read(const Datastore *d, int64_t place, int most, const int32_t **tokens) {
    int n = 0;
    *tokens = d->tokens + (place < d->count ? place : 0);
    while (n < most && place + n < d->count && (*tokens)[n] != DATASTORE_BREAK) n++;
    return n;
}
