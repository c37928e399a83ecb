// The pool against a list of entries with time stamps that is sorted for every look.
#include "tests/support/check.h"

#include "engine/decode/structures/ngram_pool.h"

#include <string.h>

enum { MOST = 2000, WIDEST = 4 };

typedef struct {
    int key, tuple[WIDEST], stamp; // 0: gone
} Entry;

typedef struct {
    int width, cap, count, now, evicted;
    PoolEviction eviction;
    Entry entries[MOST];
} Slow;

// The oldest, where it is there twice.
static Entry *slow_find(Slow *s, int key, const int *tuple) {
    Entry *oldest = NULL;
    for (int i = 0; i < s->count; i++) {
        Entry *x = &s->entries[i];
        bool same = memcmp(x->tuple, tuple, (size_t)s->width * sizeof *tuple) == 0;
        if (x->stamp && x->key == key && same && (!oldest || x->stamp < oldest->stamp)) oldest = x;
    }
    return oldest;
}

// The entry of the key with exactly `newer` entries before it, or NULL.
static Entry *slow_rank(Slow *s, int key, int newer) {
    for (int i = 0; i < s->count; i++) {
        int before = 0;
        if (!s->entries[i].stamp || s->entries[i].key != key) continue;
        for (int k = 0; k < s->count; k++)
            before += s->entries[k].key == key && s->entries[k].stamp > s->entries[i].stamp;
        if (before == newer) return &s->entries[i];
    }
    return NULL;
}

static void slow_insert(Slow *s, int key, const int *tuple) {
    Entry *same = slow_find(s, key, tuple);
    s->now++;
    if (same && s->eviction == POOL_LRU) same->stamp = s->now;
    if (same) return;
    Entry *last = slow_rank(s, key, s->cap - 1);
    s->evicted += last != NULL;
    if (last) last->stamp = 0;
    assert_true(s->count < MOST);
    s->entries[s->count] = (Entry){.key = key, .stamp = s->now};
    memcpy(s->entries[s->count++].tuple, tuple, (size_t)s->width * sizeof *tuple);
}

static void check_key(const NgramPool *p, Slow *s, int key) {
    int n = ngram_pool_count(p, key);
    for (int i = 0; i < n; i++) {
        const Entry *want = slow_rank(s, key, i);
        const int *got = ngram_pool_tuple(p, key, i);
        if (!want || memcmp(got, want->tuple, (size_t)s->width * sizeof *got) != 0)
            fail_msg("key %d, place %d of %d: %d .., want %d .. (width %d, cap %d, eviction %d)", key, i, n,
                     got[0], want ? want->tuple[0] : -1, s->width, s->cap, (int)s->eviction);
    }
    if (slow_rank(s, key, n)) fail_msg("key %d has more than %d tuples (cap %d)", key, n, s->cap);
}

static void random_streams(void **state) {
    (void)state;
    static Slow s;
    Random r = test_random(30);
    for (int round = 0; round < 60; round++) {
        NgramPool p;
        int keys = test_between(&r, 1, 5), letters = test_between(&r, 1, 4), total = 0;
        s = (Slow){.width = test_between(&r, 1, WIDEST),
                   .cap = test_between(&r, 1, 6),
                   .eviction = test_between(&r, 0, 1) ? POOL_LRU : POOL_FIFO};
        assert_true(ngram_pool_init(&p, keys, s.width, s.cap, s.eviction, NULL));
        for (int i = 0; i < 120; i++) {
            int tuple[WIDEST], key = test_between(&r, 0, keys - 1);
            for (int k = 0; k < s.width; k++) tuple[k] = test_between(&r, 0, letters - 1);
            int what = test_between(&r, 0, 9), place = test_between(&r, 0, s.cap - 1);
            if (what > 1) {
                ngram_pool_insert(&p, key, tuple);
                slow_insert(&s, key, tuple);
            } else if (what == 1) {
                Entry *changed = slow_rank(&s, key, place);
                if (!changed) continue;
                ngram_pool_write(&p, key, place, tuple);
                memcpy(changed->tuple, tuple, (size_t)s.width * sizeof *tuple);
            } else {
                Entry *gone = slow_find(&s, key, tuple);
                ngram_pool_remove(&p, key, tuple);
                if (gone) gone->stamp = 0;
            }
            check_key(&p, &s, key);
        }
        for (int key = 0; key < keys; key++) {
            check_key(&p, &s, key);
            total += ngram_pool_count(&p, key);
        }
        assert_int_equal(p.size, total);
        assert_int_equal(p.evicted, s.evicted);
        ngram_pool_clear(&p);
        assert_int_equal(p.size + p.evicted, 0);
        for (int key = 0; key < keys; key++) assert_int_equal(ngram_pool_count(&p, key), 0);
        ngram_pool_release(&p);
    }
}

static void equal_changes_equal_histories(void **state) {
    (void)state;
    NgramPool a, b;
    assert_true(ngram_pool_init(&a, 7, 2, 3, POOL_LRU, NULL) && ngram_pool_init(&b, 7, 2, 3, POOL_LRU, NULL));
    assert_true(a.history == b.history);
    ngram_pool_insert(&a, 6, (int[]){1, 2});
    assert_true(a.history != b.history);
    ngram_pool_insert(&b, 5, (int[]){1, 2}); // another key
    assert_true(a.history != b.history);
    ngram_pool_remove(&b, 5, (int[]){1, 2});
    ngram_pool_insert(&b, 6, (int[]){1, 3}); // another tuple
    assert_true(a.history != b.history);
    ngram_pool_insert(&b, 6, (int[]){1, 2});
    ngram_pool_insert(&a, 6, (int[]){1, 3}); // another order
    assert_true(a.history != b.history);
    ngram_pool_clear(&a);
    ngram_pool_clear(&b);
    assert_true(a.history == b.history);
    ngram_pool_release(&a);
    ngram_pool_release(&b);
    ngram_pool_release(&b); // takes an empty one
}

static void too_large_a_pool_is_refused(void **state) {
    (void)state;
    NgramPool p;
    Error e = {0};
    assert_false(ngram_pool_init(&p, 1 << 30, 1 << 30, 1 << 30, POOL_LRU, &e));
    assert_int_equal(e.kind, ERROR_SYSTEM);
    assert_null(p.count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_streams),
        cmocka_unit_test(equal_changes_equal_histories),
        cmocka_unit_test(too_large_a_pool_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
