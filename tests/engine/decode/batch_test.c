// Sequences that share steps: on random models, prompts, methods and ends, each output and each of its steps
// is the same as alone; the model runs once for all of them; times add up; one failure ends the batch.
#include "tests/support/batch_suite.h"
#include "tests/support/check.h"

#include "engine/cpu/cpu.h"

enum { LANES = BATCH_LANES };

static const char *const METHODS[] = {"autoregressive",
                                      "jacobi:m=4",
                                      "prompt-lookup",
                                      "lookahead:W=4,N=3,G=4",
                                      "ngrammys:k=4,w=3,strategy=context",
                                      "ngrammys:k=4,w=3",
                                      "speculative:gamma=3,parallel=off",
                                      "speculative:adaptive=heuristic,draft_temperature=1,parallel=off",
                                      "speculative:gamma=6,parallel=on",
                                      "ouroboros:gamma=4,K=3,beta=3,window=4",
                                      "early-exit:gamma=4,eta=0.3",
                                      "eagle3:total=12,depth=3,top=3",
                                      "mtp:gamma=3,recycle=normed",
                                      "dflash",
                                      "dflash:adaptive=heuristic,draft_temperature=1",
                                      "dflash:tree=best,total=9,top=3",
                                      "recycling:warm=off",
                                      "mix:prompt-lookup+early-exit(gamma=3)"};
enum { METHOD_COUNT = sizeof METHODS / sizeof *METHODS };

static const ExactBackend CPU = {&cpu_backend, cpu_open, NULL, NULL, 0};

static BatchWorld world_of(int lanes) {
    return (BatchWorld){.on = &CPU,
                        .lanes = lanes,
                        .prompts = BATCH_PROMPTS,
                        .most_prompt = 60,
                        .most_tokens = 14,
                        .fills = true};
}

static void same_as_alone(void **state) {
    (void)state;
    Random r = test_random(21);
    for (int round = 0; round < 4; round++) {
        BatchWorld w = world_of(test_between(&r, 2, LANES));
        batch_world_open(&w, &r);
        batch_same_as_alone(&w, METHODS, METHOD_COUNT, true, &r);
        batch_world_close(&w);
    }
}

// --- passes

static int together, calls;

static void count_runs(RunCall *c, int count) {
    together += count;
    calls++;
    cpu_backend.run_together(c, count);
}

// Lanes of the same length run together in every step.
static void one_pass_for_all(void **state) {
    (void)state;
    Random r = test_random(22);
    Backend counted = cpu_backend;
    BatchWorld w = world_of(4);
    Error e = {0};
    counted.run_together = count_runs;
    batch_world_open(&w, &r);
    batch_begin(&w, METHODS[0], false);
    batch_make_prompts(&w, &r);
    for (int i = 0; i < w.prompts; i++) {
        w.limit[i] = 10;
        w.count[i] = 4 + i;
    }
    w.next = w.prompts - w.lanes; // as many as there are lanes
    for (int i = 0; i < w.lanes; i++) w.sequences[i].target.backend = &counted;
    if (!batch_make_together(&w, &e)) fail_msg("%s", e.text);
    assert_int_equal(calls, 10);
    assert_int_equal(together, 40);
    batch_end(&w);
    batch_world_close(&w);
}

// --- failures

static void one_failure_ends_all(void **state) {
    (void)state;
    Random r = test_random(23);
    BatchWorld w = world_of(4);
    batch_world_open(&w, &r);
    for (int i = 0; i < 24; i++) {
        Error e = {0};
        batch_begin(&w, METHODS[i % METHOD_COUNT], false);
        batch_make_prompts(&w, &r);
        for (int k = 0; k < w.prompts; k++)
            if (w.count[k] > 60) w.count[k] = 60;
        if (i % 2) w.fails = test_between(&r, 0, w.prompts - 1);
        else w.interrupted = test_between(&r, 1, 60);
        bool ok = batch_make_together(&w, &e);
        if (i % 2) assert_int_equal(e.kind, ERROR_INPUT);
        else assert_int_equal(e.kind, ok ? ERROR_NONE : ERROR_INTERRUPTED);
        assert_true(ok ? w.made == w.prompts : w.made < w.prompts);
        for (int k = 0; k < w.lanes; k++) assert_null(w.sequences[k].target.lane);
        batch_end(&w);
    }
    batch_world_close(&w);
}

// The same trees by session_step_together as one by one: logits' best, passes and rows.
static void without_lanes(void **state) {
    (void)state;
    for (int n = 0; n < 20; n++) {
        Random r = test_random(50 + (uint64_t)n);
        BatchWorld w = world_of(LANES);
        Session *all[LANES];
        int best[LANES][BATCH_NODES];
        double passes[LANES], rows[LANES];
        Error e = {0};
        batch_world_open(&w, &r);
        for (int i = 0; i < LANES; i++) {
            Session *s = all[i] = &w.sequences[i].target;
            Random own = test_random(100 * (uint64_t)n + (uint64_t)i);
            batch_build(s, i + 1, test_between(&own, 1, 13), LAYOUT_TREE, &own);
            passes[i] = s->passes, rows[i] = s->rows;
            assert_true(session_run(s, s->shape.layers, &e) && session_read(s, HEAD_ARGMAX, &e));
            for (int k = 0; k < s->tree.count; k++) best[i][k] = session_argmax(s, k);
            passes[i] = s->passes - passes[i], rows[i] = s->rows - rows[i];
            own = test_random(100 * (uint64_t)n + (uint64_t)i);
            batch_build(s, i + 1, test_between(&own, 1, 13), LAYOUT_TREE, &own);
            passes[i] += s->passes, rows[i] += s->rows;
        }
        if (!session_step_together(all, LANES, &e)) fail_msg("%s", e.text);
        for (int i = 0; i < LANES; i++) {
            assert_true(all[i]->passes == passes[i] && all[i]->rows == rows[i]);
            for (int k = 0; k < all[i]->tree.count; k++)
                if (session_argmax(all[i], k) != best[i][k])
                    fail_msg("case %d, sequence %d, node %d: wanted %d, got %d", n, i, k, best[i][k],
                             session_argmax(all[i], k));
        }
        w.asked = 0, w.interrupted = 1;
        Random again = test_random(7);
        for (int i = 0; i < LANES; i++)
            w.interrupted = 0, batch_build(all[i], i + 1, 1 + i, LAYOUT_TREE, &again), w.interrupted = 1;
        assert_false(session_step_together(all, LANES, &e));
        assert_int_equal(e.kind, ERROR_INTERRUPTED);
        w.interrupted = 0;
        batch_world_close(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_alone), cmocka_unit_test(one_pass_for_all),
                                       cmocka_unit_test(one_failure_ends_all),
                                       cmocka_unit_test(without_lanes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
