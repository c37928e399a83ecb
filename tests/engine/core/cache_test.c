// Random commits and truncations against a model that writes every position into its slot.
#include "tests/support/check.h"

#include "engine/core/cache.h"

enum { LIMIT = 400 };

typedef struct {
    Cache c;
    int held[LIMIT + CACHE_BLOCK]; // the position that a slot holds
} Model;

static void push(Model *m, int n) {
    for (int i = 0; i < n; i++) m->held[cache_slot(&m->c, m->c.length + i)] = m->c.length + i;
    cache_advance(&m->c, n);
}

// Every position that a query at `at` sees among the committed ones is in the runs, in order, and intact.
static bool visible_is_intact(const Model *m, int at) {
    int position = cache_first_visible(&m->c, at);
    SlotRun runs[2];
    int n = cache_runs(&m->c, position, m->c.length, runs);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < runs[i].count; j++, position++)
            if (m->held[runs[i].slot + j] != position) return false;
    return position == m->c.length || cache_first_visible(&m->c, at) >= m->c.length;
}

static void random_walks(void **state) {
    (void)state;
    Random r = test_random(3);
    int refused = 0, taken_back = 0;
    for (int round = 0; round < 200; round++) {
        Model m = {0};
        int window = test_between(&r, 0, 3) ? test_between(&r, 1, 60) : 0, slack = test_between(&r, 0, 40);
        cache_init(&m.c, test_between(&r, 1, LIMIT), window, slack);
        assert_true(m.c.capacity >= (window && window < m.c.limit ? window : m.c.limit));
        for (int i = 0; i < 60; i++) {
            int room = m.c.limit - m.c.length;
            if (room && test_between(&r, 0, 2)) push(&m, test_between(&r, 1, room < 20 ? room : 20));
            else {
                int to = test_between(&r, 0, m.c.length), back = m.c.length - to;
                if (cache_truncate(&m.c, to, NULL)) taken_back += back > 0;
                else {
                    refused++;
                    assert_true(m.c.ring && m.c.highest - to > slack); // what was promised is never refused
                }
            }
            assert_true(visible_is_intact(&m, m.c.length));
            assert_true(visible_is_intact(&m, m.c.length + 7)); // a deep node sees less
        }
    }
    assert_true(refused > 20 && taken_back > 200);
}

static void windows(void **state) {
    (void)state;
    Cache c;
    cache_init(&c, 1000, 4, 16);
    assert_int_equal(cache_first_visible(&c, 0), 0);
    assert_int_equal(cache_first_visible(&c, 3), 0);
    assert_int_equal(cache_first_visible(&c, 4), 1); // 4 - 1 < 4, 4 - 0 is not
    assert_true(c.ring);
    assert_int_equal(c.capacity, 32);
    cache_init(&c, 1000, 0, 16);
    assert_int_equal(cache_first_visible(&c, 999), 0);
    assert_false(c.ring);
    cache_init(&c, 1000, 1000, 16); // a window as long as the context
    assert_false(c.ring);
    assert_int_equal(cache_first_visible(&c, 999), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_walks),
        cmocka_unit_test(windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
