// A level's n-grams are sorted places in the text, not copies of it, so that binary search finds a history's
// n-grams as a range. Each level is made from the one above: its entries are sorted again without their
// oldest token, and equal ones are merged into one that counts them, which is Kneser and Ney's count.
//
// Invariant: the entries of a level are distinct and in ascending order of their tokens.
#include "engine/train/corpus.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

// Lists the documents of a feed in some order, equal ones once, and returns their number.
static size_t distinct(const Feed *f, Span *spans) {
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++) spans[i] = span_of(f->corpus, f->given[i]);
    qsort(spans, f->count, sizeof *spans, compare_spans);
    for (size_t i = 0; i < f->count; i++)
        if (!n || compare_spans(&spans[i], &spans[n - 1]) != 0) spans[n++] = spans[i];
    return n;
}

static size_t padding(const Ngram *m) { return (size_t)m->order - 1; }

// Fills m->ids, and gives the longest level an entry for every token that has one before it.
static bool lay_out(Ngram *m, const Span *spans, size_t n, Error *e) {
    NgramLevel *l = &m->levels[m->order - 1];
    size_t tokens = 0, rows = 0;
    for (size_t i = 0; i < n; i++) {
        tokens += padding(m) + spans[i].n;
        rows += spans[i].n - 1;
    }
    if (tokens > UINT32_MAX)
        return error_input(e, "%zu tokens are too many for a model of n-grams; it takes 2^32", tokens);
    m->ids = mem_new(tokens, sizeof *m->ids);
    l->entries = mem_new(rows, sizeof *l->entries);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < padding(m); k++) m->ids[m->count++] = (uint32_t)m->vocab;
        for (size_t k = 0; k < spans[i].n; k++) {
            if (k) l->entries[l->count++] = (NgramEntry){(uint32_t)m->count, 1};
            m->ids[m->count++] = (uint32_t)spans[i].ids[k];
        }
    }
    assert(m->count == tokens && l->count == rows);
    return true;
}

// --- the levels ------------------------------------------------------------------------------------------

// Stable counting sorts, from the newest token to the oldest; `other` and `places` are scratch.
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

// Merges equal n-grams of a sorted level.
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

// Chen and Goodman's estimates, from how many n-grams were counted once, twice, and so on. If a text is too
// small for an estimate, the discount is half the count it is subtracted from.
static void estimate_discounts(NgramLevel *l) {
    double n[5] = {0};
    for (size_t i = 0; i < l->count; i++)
        if (l->entries[i].count < 5) n[l->entries[i].count]++;
    for (int c = 1; c <= 3; c++) {
        double d = c - (c + 1) * n[1] / (n[1] + 2 * n[2]) * n[c + 1] / n[c];
        l->discount[c] = n[1] > 0 && n[c] > 0 && n[c + 1] > 0 && d > 0 ? d : c / 2.0;
    }
}

static void build_level(Ngram *m, int length, NgramEntry *other, size_t *places) {
    NgramLevel *l = &m->levels[length - 1], *above = l + 1;
    if (length < m->order) {
        l->entries = mem_new(above->count, sizeof *l->entries);
        memcpy(l->entries, above->entries, above->count * sizeof *l->entries);
        l->count = above->count;
    }
    sort_entries(m, l->entries, l->count, length, other, places);
    merge(m, l, length);
    estimate_discounts(l);
}

bool ngram_learn(Ngram *m, const Feed *f, int order, int vocab, Error *e) {
    assert(order >= 1 && order <= NGRAM_MOST && vocab > 0);
    *m = (Ngram){.order = order, .vocab = vocab};
    Span *spans = mem_new(f->count, sizeof *spans);
    bool ok = lay_out(m, spans, distinct(f, spans), e);
    mem_free(spans);
    if (!ok) return false;
    NgramEntry *other = mem_new(m->levels[order - 1].count, sizeof *other);
    size_t *places = mem_new((size_t)vocab + 2, sizeof *places);
    for (int length = order; length > 0; length--) build_level(m, length, other, places);
    mem_free(other);
    mem_free(places);
    return true;
}

void ngram_release(Ngram *m) {
    for (int i = 0; i < NGRAM_MOST; i++) mem_free(m->levels[i].entries);
    mem_free(m->ids);
    *m = (Ngram){0};
}

// --- predictions -----------------------------------------------------------------------------------------

// The first entry whose first n tokens are not below `ids`; last: the first one above them.
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

// The probability of ids[length - 1] after the tokens before it; below: its probability without the oldest
// one.
static double interpolate(const Ngram *m, const uint32_t *ids, int length, double below) {
    const NgramLevel *l = &m->levels[length - 1];
    size_t end = find(m, length, ids, length - 1, true);
    double all = 0, taken = 0, own = 0;
    for (size_t i = find(m, length, ids, length - 1, false); i < end; i++) {
        uint32_t count = l->entries[i].count;
        double d = l->discount[count < 3 ? count : 3];
        all += count;
        taken += d;
        if (m->ids[l->entries[i].end] == ids[length - 1]) own = count - d;
    }
    return all > 0 ? (own + taken * below) / all : below;
}

double ngram_probability(const Ngram *m, const int *ids, size_t at) {
    uint32_t window[NGRAM_MOST];
    double p = 1.0 / m->vocab;
    assert(at >= 1);
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
