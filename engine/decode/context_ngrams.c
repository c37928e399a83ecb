// Places are visited newest first, so that a group's number is its rank by recency.
#include "engine/decode/context_ngrams.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

bool context_ngrams_init(ContextNgrams *f, const ContextSetup *setup, Error *e) {
    assert(setup->w >= 1 && setup->context >= 1);
    *f = (ContextNgrams){.setup = *setup, .table_size = 2};
    while (f->table_size < 2 * setup->context) f->table_size *= 2;
    f->groups = mem_alloc((size_t)setup->context, sizeof *f->groups);
    f->used = mem_alloc((size_t)setup->context, sizeof *f->used);
    f->table = mem_alloc((size_t)f->table_size, sizeof *f->table);
    if (f->groups && f->used && f->table && suffix_init(&f->index, setup->q, e)) return true;
    context_ngrams_release(f);
    return error_system(e, "out of memory for the n-grams of a context of %d", setup->context);
}

void context_ngrams_release(ContextNgrams *f) {
    suffix_release(&f->index);
    mem_free(f->groups);
    mem_free(f->used);
    mem_free(f->table);
    *f = (ContextNgrams){0};
}

void context_ngrams_clear(ContextNgrams *f) { suffix_clear(&f->index); }

bool context_ngrams_push(ContextNgrams *f, const int *tokens, int count, Error *e) {
    for (int i = 0; i < count; i++)
        if (!suffix_push(&f->index, tokens[i], e)) return false;
    return true;
}

static uint64_t hash_tokens(const int *tokens, int count) {
    uint64_t h = (uint64_t)count;
    for (int i = 0; i < count; i++) {
        h = (h ^ (uint64_t)(unsigned)tokens[i]) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return h;
}

static bool same(const ContextNgrams *f, const ContextNgram *a, const ContextNgram *b) {
    return a->hash == b->hash && a->length == b->length &&
           memcmp(context_ngrams_tokens(f, a), context_ngrams_tokens(f, b),
                  (size_t)a->length * sizeof(int)) == 0;
}

// Counts a place.
static void enter(ContextNgrams *f, int end, int length) {
    ContextNgram place = {.end = end, .length = length, .count = 1};
    place.hash = hash_tokens(context_ngrams_tokens(f, &place), length);
    int at = (int)(place.hash & (uint64_t)(f->table_size - 1));
    for (; f->table[at]; at = (at + 1) & (f->table_size - 1)) {
        ContextNgram *group = &f->groups[f->table[at] - 1];
        if (!same(f, group, &place)) continue;
        group->count++;
        return;
    }
    f->used[f->group_count] = at;
    f->groups[f->group_count++] = place;
    f->table[at] = f->group_count;
}

static void collect(ContextNgrams *f) {
    int length = (int)f->index.length, w = f->setup.w, q = f->setup.q;
    for (int end = suffix_newest(&f->index, q); end != SUFFIX_NONE; end = suffix_before(&f->index, q, end)) {
        int behind = length - end < w ? length - end : w;
        if (behind == w || f->setup.keep_short) enter(f, end, behind);
    }
}

// Ascending, as lists of tokens; a prefix first.
static bool stands_before(const ContextNgrams *f, const ContextNgram *a, const ContextNgram *b) {
    const int *x = context_ngrams_tokens(f, a), *y = context_ngrams_tokens(f, b);
    int n = a->length < b->length ? a->length : b->length, i = 0;
    while (i < n && x[i] == y[i]) i++;
    return i < n ? x[i] < y[i] : a->length < b->length;
}

// b has been found later, so by recency it is never better than its equal.
static bool is_worse(const ContextNgrams *f, const ContextNgram *a, const ContextNgram *b) {
    if (a->count != b->count) return a->count < b->count;
    return f->setup.ties == TIES_SORTED && stands_before(f, b, a);
}

int context_ngrams_find(ContextNgrams *f, int most, ContextNgram *out) {
    int n = 0;
    f->group_count = 0;
    collect(f);
    for (int i = 0; i < f->group_count; i++) {
        const ContextNgram *x = &f->groups[i];
        f->table[f->used[i]] = 0;
        if (most == 0 || (n == most && !is_worse(f, &out[n - 1], x))) continue;
        int at = n < most ? n++ : n - 1;
        for (; at > 0 && is_worse(f, &out[at - 1], x); at--) out[at] = out[at - 1];
        out[at] = *x;
    }
    return n;
}
