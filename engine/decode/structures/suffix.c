// An open-addressing table of lists; the lists' links are in `earlier`.
//
// Invariants, asserted by suffix_check():
//  1. table_size is a power of two, and at least half of the table is free, so a search ends soon;
//  2. every n-gram of the sequence of length 1 to longest is in exactly one list.
#include "engine/decode/structures/suffix.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum { FIRST_TABLE = 1024 };

static void suffix_check(const SuffixIndex *x) {
    assert(x->longest >= 1 && x->longest <= SUFFIX_LONGEST);
    assert((x->table_size & (x->table_size - 1)) == 0 && 2 * x->used <= x->table_size);
    assert(x->length <= x->token_capacity && x->used <= x->length * (size_t)x->longest);
}

void suffix_init(SuffixIndex *x, int longest) {
    *x = (SuffixIndex){.longest = longest, .table_size = FIRST_TABLE};
    x->table = mem_new(x->table_size, sizeof *x->table);
    suffix_check(x);
}

void suffix_release(SuffixIndex *x) {
    MEM_FREE(x->tokens, x->earlier, x->table);
    *x = (SuffixIndex){0};
}

void suffix_clear(SuffixIndex *x) {
    x->length = x->used = 0;
    memset(x->table, 0, x->table_size * sizeof *x->table);
    suffix_check(x);
}

static uint64_t mix(uint64_t h, uint64_t value) {
    h = (h ^ value) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

// Hashes the n tokens before `end`, last to first.
static uint64_t hash_of(const SuffixIndex *x, int n, size_t end) {
    uint64_t h = mix(0, (uint64_t)n);
    for (int i = 1; i <= n; i++) h = mix(h, (uint64_t)(unsigned)x->tokens[end - (size_t)i] + 1);
    return h;
}

// The list of the n-gram before `end`, or the free place for it.
static SuffixList *find(const SuffixIndex *x, int n, size_t end, uint64_t hash) {
    for (size_t i = hash & (x->table_size - 1);; i = (i + 1) & (x->table_size - 1)) {
        SuffixList *l = &x->table[i];
        if (l->count == 0) return l;
        if (l->hash != hash || l->n != n) continue;
        const int *newest = x->tokens + l->newest - n, *last = x->tokens + end - n;
        if (memcmp(newest, last, (size_t)n * sizeof *last) == 0) return l;
    }
}

static void grow_table(SuffixIndex *x) {
    size_t size = 2 * x->table_size;
    SuffixList *table = mem_new(size, sizeof *table);
    for (size_t i = 0; i < x->table_size; i++) {
        if (x->table[i].count == 0) continue;
        size_t at = x->table[i].hash & (size - 1);
        while (table[at].count) at = (at + 1) & (size - 1);
        table[at] = x->table[i];
    }
    mem_free(x->table);
    x->table = table;
    x->table_size = size;
    suffix_check(x);
}

// Enters the n-gram at the end of the sequence.
static void enter(SuffixIndex *x, int n) {
    uint64_t hash = hash_of(x, n, x->length);
    SuffixList *l = find(x, n, x->length, hash);
    int end = (int)x->length, *earlier = &x->earlier[(x->length - 1) * (size_t)x->longest + (size_t)(n - 1)];
    *earlier = l->count ? l->newest : SUFFIX_NONE;
    if (l->count == 0) {
        x->used++;
        *l = (SuffixList){.hash = hash, .n = n, .oldest = end};
    }
    l->newest = end;
    l->count++;
    assert(l->oldest <= l->newest && *earlier < end && (l->count > 1) == (*earlier != SUFFIX_NONE));
}

void suffix_push(SuffixIndex *x, int token) {
    size_t longest = (size_t)x->longest;
    mem_grow(&x->tokens, &x->token_capacity, x->length + 1, sizeof *x->tokens);
    mem_grow(&x->earlier, &x->earlier_capacity, (x->length + 1) * longest, sizeof *x->earlier);
    if (2 * (x->used + longest) > x->table_size) grow_table(x);
    x->tokens[x->length++] = token;
    for (int n = 1; n <= x->longest; n++)
        if ((size_t)n <= x->length) enter(x, n);
    suffix_check(x);
}

int suffix_newest(const SuffixIndex *x, int n) {
    assert(n >= 1);
    if ((size_t)n >= x->length || n > x->longest) return SUFFIX_NONE;
    return suffix_before(x, n, (int)x->length);
}

int suffix_oldest(const SuffixIndex *x, int n) {
    assert(n >= 1);
    if ((size_t)n >= x->length || n > x->longest) return SUFFIX_NONE;
    const SuffixList *l = find(x, n, x->length, hash_of(x, n, x->length));
    return l->count > 1 ? l->oldest : SUFFIX_NONE;
}

int suffix_before(const SuffixIndex *x, int n, int end) {
    assert(n >= 1 && n <= x->longest && end >= n && (size_t)end <= x->length);
    return x->earlier[(size_t)(end - 1) * (size_t)x->longest + (size_t)(n - 1)];
}
