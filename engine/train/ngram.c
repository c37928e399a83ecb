// A level's n-grams are sorted places in the text, not copies of it: a history's n-grams are then a range
// that binary search finds. The level below is made of the one above: of its entries, sorted anew without
// their oldest token, equal ones become one whose count is how many they were. That is Kneser and Ney's
// count.
#include "engine/train/ngram.h"

#include "engine/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool no_memory(Error *e) { return error_system(e, "out of memory for a model of n-grams"); }

// --- the text --------------------------------------------------------------------------------------------

typedef struct {
    const int *ids;
    size_t n;
} Span;

static Span span_of(const Corpus *c, size_t document) {
    size_t begin = corpus_begin(c, document);
    return (Span){c->ids + begin, c->ends[document] - begin};
}

static int compare_spans(const void *x, const void *y) {
    const Span *a = x, *b = y;
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    return memcmp(a->ids, b->ids, a->n * sizeof *a->ids);
}

// The documents of a feed in some order, equal ones once.
static size_t distinct(const Feed *f, Span *spans) {
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++) spans[i] = span_of(f->corpus, f->given[i]);
    qsort(spans, f->count, sizeof *spans, compare_spans);
    for (size_t i = 0; i < f->count; i++)
        if (!n || compare_spans(&spans[i], &spans[n - 1]) != 0) spans[n++] = spans[i];
    return n;
}

static size_t padding(const Ngram *m) { return (size_t)m->order - 1; }

// Fills m->ids, and the longest level with an entry for every token that has one before it.
static bool lay_out(Ngram *m, const Span *spans, size_t n, Error *e) {
    NgramLevel *l = &m->levels[m->order - 1];
    size_t tokens = 0, rows = 0;
    for (size_t i = 0; i < n; i++) {
        tokens += padding(m) + spans[i].n;
        rows += spans[i].n - 1;
    }
    if (tokens > UINT32_MAX)
        return error_input(e, "%zu tokens are too many for a model of n-grams; it takes 2^32", tokens);
    m->ids = mem_alloc(tokens, sizeof *m->ids);
    l->entries = mem_alloc(rows, sizeof *l->entries);
    if (!m->ids || !l->entries) return no_memory(e);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < padding(m); k++) m->ids[m->count++] = (uint32_t)m->vocab;
        for (size_t k = 0; k < spans[i].n; k++) {
            if (k) l->entries[l->count++] = (NgramEntry){(uint32_t)m->count, 1};
            m->ids[m->count++] = (uint32_t)spans[i].ids[k];
        }
    }
    return true;
}

static bool read_feed(Ngram *m, const Feed *f, Error *e) {
    Span *spans = mem_alloc(f->count, sizeof *spans);
    bool ok = spans ? lay_out(m, spans, distinct(f, spans), e) : no_memory(e);
    mem_free(spans);
    return ok;
}

// --- the levels ------------------------------------------------------------------------------------------

// Stable counting sorts from the newest token to the oldest; `other` and `places` are room to work in.
static void sort_entries(const Ngram *m, NgramEntry *entries, size_t n, int length, NgramEntry *other,
                         size_t *places) {
    NgramEntry *from = entries, *to = other;
    for (int back = 0; back < length; back++) {
        memset(places, 0, ((size_t)m->vocab + 2) * sizeof *places);
        for (size_t i = 0; i < n; i++) places[m->ids[from[i].end - (uint32_t)back] + 1]++;
        for (int t = 0; t <= m->vocab; t++) places[t + 1] += places[t];
        for (size_t i = 0; i < n; i++) to[places[m->ids[from[i].end - (uint32_t)back]]++] = from[i];
        NgramEntry *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != entries) memcpy(entries, from, n * sizeof *entries);
}

static int compare_ids(const uint32_t *a, const uint32_t *b, int n) {
    for (int i = 0; i < n; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

static const uint32_t *ids_of(const Ngram *m, NgramEntry entry, int length) {
    return m->ids + entry.end + 1 - length;
}

// Equal n-grams of a sorted level become one.
static void merge(const Ngram *m, NgramLevel *l, int length) {
    size_t n = 0;
    for (size_t i = 0; i < l->count; i++) {
        NgramEntry next = l->entries[i];
        if (n && !compare_ids(ids_of(m, l->entries[n - 1], length), ids_of(m, next, length), length))
            l->entries[n - 1].count++;
        else l->entries[n++] = (NgramEntry){next.end, 1};
    }
    l->count = n;
}

// Chen and Goodman's estimates from how many n-grams were counted once, twice, ...; where a text is too
// small for one, the discount is half the count it is taken from.
static void estimate_discounts(NgramLevel *l) {
    double n[5] = {0};
    for (size_t i = 0; i < l->count; i++)
        if (l->entries[i].count < 5) n[l->entries[i].count]++;
    for (int c = 1; c <= 3; c++) {
        double d = c - (c + 1) * n[1] / (n[1] + 2 * n[2]) * n[c + 1] / n[c];
        l->discount[c] = n[1] > 0 && n[c] > 0 && n[c + 1] > 0 && d > 0 ? d : c / 2.0;
    }
}

static bool build_level(Ngram *m, int length, NgramEntry *other, size_t *places, Error *e) {
    NgramLevel *l = &m->levels[length - 1], *above = l + 1;
    if (length < m->order) {
        l->entries = mem_alloc(above->count, sizeof *l->entries);
        if (!l->entries) return no_memory(e);
        memcpy(l->entries, above->entries, above->count * sizeof *l->entries);
        l->count = above->count;
    }
    sort_entries(m, l->entries, l->count, length, other, places);
    merge(m, l, length);
    estimate_discounts(l);
    return true;
}

bool ngram_learn(Ngram *m, const Feed *f, int order, int vocab, Error *e) {
    *m = (Ngram){.order = order, .vocab = vocab};
    bool ok = read_feed(m, f, e);
    NgramEntry *other = ok ? mem_alloc(m->levels[order - 1].count, sizeof *other) : NULL;
    size_t *places = mem_alloc((size_t)vocab + 2, sizeof *places);
    if (ok && (!other || !places)) ok = no_memory(e);
    for (int length = order; ok && length > 0; length--) ok = build_level(m, length, other, places, e);
    mem_free(other);
    mem_free(places);
    if (!ok) ngram_release(m);
    return ok;
}

void ngram_release(Ngram *m) {
    for (int i = 0; i < NGRAM_MOST; i++) mem_free(m->levels[i].entries);
    mem_free(m->ids);
    *m = (Ngram){0};
}

// --- what it foretells -----------------------------------------------------------------------------------

// The first entry that does not stand before those whose first n tokens are `ids` (last: that comes after
// them).
static size_t find(const Ngram *m, int length, const uint32_t *ids, int n, bool last) {
    const NgramLevel *l = &m->levels[length - 1];
    size_t low = 0, high = l->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_ids(ids_of(m, l->entries[middle], length), ids, n);
        if (order < 0 || (last && order == 0)) low = middle + 1;
        else high = middle;
    }
    return low;
}

static double discount_of(const NgramLevel *l, uint32_t count) { return l->discount[count < 3 ? count : 3]; }

// p of ids[length - 1] after the tokens before it, given p without the oldest of these.
static double interpolate(const Ngram *m, const uint32_t *ids, int length, double below) {
    const NgramLevel *l = &m->levels[length - 1];
    size_t end = find(m, length, ids, length - 1, true);
    double all = 0, taken = 0, own = 0;
    for (size_t i = find(m, length, ids, length - 1, false); i < end; i++) {
        double d = discount_of(l, l->entries[i].count);
        all += l->entries[i].count;
        taken += d;
        if (m->ids[l->entries[i].end] == ids[length - 1]) own = l->entries[i].count - d;
    }
    return all > 0 ? (own + taken * below) / all : below;
}

double ngram_probability(const Ngram *m, const int *ids, size_t at) {
    uint32_t window[NGRAM_MOST];
    double p = 1.0 / m->vocab;
    for (size_t back = 0; back < (size_t)m->order; back++)
        window[padding(m) - back] = (uint32_t)(back <= at ? ids[at - back] : m->vocab);
    for (int length = 1; length <= m->order; length++)
        p = interpolate(m, window + m->order - length, length, p);
    return p;
}

double ngram_loss(const Ngram *m, Feed *f, size_t most) {
    double loss = 0;
    size_t rows = 0;
    feed_seek(f, 0, 0, 0);
    for (size_t i = 0; i < f->count; i++) {
        Span s = span_of(f->corpus, f->documents[i]);
        for (size_t at = 1; at < s.n && rows < most; at++, rows++)
            loss -= log(ngram_probability(m, s.ids, at));
    }
    return loss / (double)rows;
}
