// The log of passes against a plain list of them: the same counts, kind by kind; and a log that is full.
#include "tests/support/check.h"

#include "engine/core/session.h"

#include <stdbool.h>

enum { MOST = 400 };

static Pass random_pass(Random *r) {
    int a = test_between(r, 0, 2);
    return (Pass){(PassModel)test_between(r, PASS_TARGET, PASS_ADAPTER),
                  a,
                  test_between(r, a, 2),
                  test_between(r, 1, 3),
                  test_between(r, 0, 2),
                  1};
}

static bool same(const Pass *p, const Pass *q) {
    return p->model == q->model && p->a == q->a && p->b == q->b && p->rows == q->rows &&
           p->context == q->context;
}

static void equal_passes_are_one(void **state) {
    (void)state;
    Random r = test_random(70);
    PassLog *log = test_calloc(1, sizeof *log);
    for (int round = 0; round < 200; round++) {
        Pass all[MOST];
        int count = test_between(&r, 0, MOST), total = 0;
        pass_log_clear(log);
        for (int i = 0; i < count; i++) {
            all[i] = random_pass(&r);
            pass_log_add(log, &all[i]);
        }
        for (int i = 0, next = 0; i < log->count; i++) {
            int n = 0;
            for (int k = 0; k < count; k++) n += same(&all[k], &log->passes[i]);
            assert_int_equal(log->passes[i].count, n);
            total += n;
            while (!same(&all[next], &log->passes[i])) next++; // in the order in which they first came
        }
        assert_int_equal(total, count);
    }
    test_free(log);
}

// As many contexts as a long draft has: the counts are still right, and another model's pass still fits.
static void a_full_log_loses_no_pass(void **state) {
    (void)state;
    PassLog *log = test_calloc(1, sizeof *log);
    int draft = 0;
    for (int i = 0; i < 3 * PASS_LOG_SIZE; i++) pass_log_add(log, &(Pass){PASS_DRAFT, 0, 2, 1, i, 1});
    pass_log_add(log, &(Pass){PASS_TARGET, 0, 8, 5, 1, 1});
    pass_log_add(log, &(Pass){PASS_TARGET, 0, 8, 6, 2, 1});
    for (int i = 0; i < log->count - 1; i++) draft += log->passes[i].count;
    assert_in_range(log->count, PASS_LOG_SIZE / 2, PASS_LOG_SIZE);
    assert_int_equal(draft, 3 * PASS_LOG_SIZE);
    assert_int_equal(log->passes[log->count - 1].model, PASS_TARGET);
    assert_int_equal(log->passes[log->count - 1].count, 2);
    test_free(log);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_passes_are_one),
        cmocka_unit_test(a_full_log_loses_no_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
