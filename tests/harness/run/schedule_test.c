// Schedules of random sweeps against the invariants of all schedules; the order of rounds counted out.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "harness/run/schedule.h"

#include <string.h>

typedef struct Plan {
    Experiment x;
    Sweep sweep;
    Schedule s;
} Plan;

static void plan(Plan *p, const char *file) {
    Error e = {0};
    if (!experiment_parse(&p->x, file, strlen(file), "x.yaml", NULL, &e) ||
        !sweep_expand(&p->x, &p->sweep, &e) || !schedule_make(&p->x, &p->sweep, &p->s, &e))
        fail_msg("%s of\n%s", e.text, file);
}

static void release(Plan *p) {
    schedule_release(&p->s);
    sweep_release(&p->sweep);
    experiment_release(&p->x);
}

// --- invariants of every schedule ------------------------------------------------------------------------

// The facts that two points must share to be in one group, as a text.
static void group_key(const Point *p, bool with_output, Text *out) {
    const Settings *s = &p->settings;
    text_clear(out);
    const EngineOptions *o = &s->engine;
    text_printf(out, "%d %s %d %d %d %d %d %d", p->model, o->device, o->math, o->compute, o->threads,
                o->weights, o->attention, o->no_window);
    if (with_output)
        text_printf(out, " %d %d %g %d %g %d %d %d", p->dataset, s->max_tokens, s->temperature, s->top_k,
                    s->top_p, s->seed, s->ignore_eos, strstr(p->decoder, "warm=on") != NULL);
}

static void same_key(const Point *a, const Point *b, bool with_output, bool want) {
    Text one = {0}, two = {0};
    group_key(a, with_output, &one);
    // A baseline's own text has no warmth.
    group_key(b, with_output, &two);
    assert_int_equal(strcmp(text_get(&one), text_get(&two)) == 0, want);
    text_release(&one);
    text_release(&two);
}

static void check_group(const Schedule *s, const Group *g, int *seen) {
    const Point *first = &s->points[s->members[g->first]], *base = &s->points[s->members[g->baseline]];
    assert_true(g->baseline >= g->first && g->baseline < g->first + g->count);
    assert_int_equal(strncmp(base->decoder, "autoregressive", 14), 0);
    assert_int_equal(base->dataset, g->dataset);
    same_key(first, base, false, true);
    assert_int_equal(first->settings.max_tokens, base->settings.max_tokens);
    for (int i = 0; i < g->count; i++) {
        int number = s->members[g->first + i];
        seen[number]++;
        if (number < s->sweep_count) same_key(first, &s->points[number], true, true);
        if (i && number < s->sweep_count) assert_true(s->members[g->first + i - 1] < number);
    }
}

static void check_schedule(const Schedule *s) {
    int *seen = mem_new((size_t)s->point_count, sizeof *seen), baselines = 0;
    assert_non_null(seen);
    for (int i = 0; i < s->group_count; i++) {
        const Group *g = &s->groups[i];
        check_group(s, g, seen);
        baselines += s->members[g->baseline] >= s->sweep_count;
        if (i) assert_true(s->groups[i - 1].setup <= g->setup); // so that each model is opened once
        for (int k = 0; k < i; k++)
            same_key(&s->points[s->members[s->groups[k].first]], &s->points[s->members[g->first]], true,
                     false);
    }
    for (int i = 0; i < s->point_count; i++) assert_int_equal(seen[i], 1);
    for (int i = 0; i < s->setup_count; i++)
        for (int k = 0; k < i; k++) {
            Point a = {.model = s->setups[i].model, .settings = *s->setups[i].settings};
            Point b = {.model = s->setups[k].model, .settings = *s->setups[k].settings};
            same_key(&a, &b, false, false);
        }
    assert_int_equal(s->point_count - s->sweep_count, baselines);
    for (int i = 0; i < s->point_count; i++)
        for (int k = s->sweep_count; k < i; k++)
            assert_string_not_equal(s->points[i].hash, s->points[k].hash);
    mem_free(seen);
}

static void maybe(Random *r, Text *out, const char *text) {
    if (random_below(r, 2)) text_puts(out, text);
}

static void random_schedules(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int round = 0; round < 60; round++) {
        Plan p;
        Text file = {0};
        text_puts(&file, "name: x\nmodels: [a, b]\ndatasets: [one, two]\nhardware:\n  threads: 1\n");
        maybe(&r, &file, "  compute: [f32, bf16]\n");
        maybe(&r, &file, "  sliding_window: [on, off]\n");
        maybe(&r, &file, "  weights: [mapped, held]\n");
        maybe(&r, &file, "  attention: [plain, flash]\n");
        maybe(&r, &file, "  layout: [tree, batch]\n");
        text_puts(&file, "generation:\n  max_tokens: 8\n");
        maybe(&r, &file, "  temperature: [0, 0.5, 1]\n");
        maybe(&r, &file, "  seed: 1..2\n");
        text_puts(&file, "methods:\n  - {name: lookahead, matrix: {W: [2, 3], threads: [1, 2]}}\n");
        maybe(&r, &file, "  - autoregressive\n");
        maybe(&r, &file, "  - {name: ouroboros, matrix: {warm: [on, off]}}\n");
        maybe(&r, &file, "  - {name: ouroboros, matrix: {warm: on, max_tokens: 9}}\n");
        plan(&p, text_get(&file));
        check_schedule(&p.s);
        release(&p);
        text_release(&file);
    }
}

// --- examples --------------------------------------------------------------------------------------------

static void baselines(void **state) {
    (void)state;
    Plan p;
    plan(&p, "name: x\nmodels: [a]\ndatasets: [one]\nmethods:\n  - jacobi\n  - autoregressive\n"
             "  - {name: ouroboros, matrix: {warm: on}}\n");
    assert_int_equal(p.s.group_count, 2);
    assert_int_equal(p.s.setup_count, 1);
    assert_int_equal(p.s.point_count, 4); // the warm group has a baseline of its own
    assert_false(p.s.groups[0].warm);
    assert_int_equal(p.s.members[p.s.groups[0].baseline], 1);
    assert_true(p.s.groups[1].warm);
    assert_int_equal(p.s.members[p.s.groups[1].baseline], 3);
    release(&p);
}

static void warmth(void **state) {
    (void)state;
    assert_true(schedule_is_warm("ouroboros:K=3,warm=on"));
    assert_true(schedule_is_warm("ouroboros:warm=on,K=3"));
    assert_true(schedule_is_warm("mix:ouroboros(warm=on)+jacobi"));
    assert_false(schedule_is_warm("ouroboros:warm=off,K=3"));
    assert_false(schedule_is_warm("x:lukewarm=on"));
    assert_false(schedule_is_warm("x:warm=once"));
}

static void order(void **state) {
    (void)state;
    enum { MOST = 9 };
    for (int n = 1; n <= MOST; n++) {
        int at[MOST][MOST] = {{0}}, list[MOST], behind[MOST][MOST] = {{0}};
        for (int round = 0; round < 2 * n; round++) {
            schedule_order(n, round, list);
            for (int i = 0; i < n; i++) at[list[i]][i]++;
            for (int i = 1; i < n; i++) behind[list[i]][list[i - 1]]++;
        }
        for (int m = 0; m < n; m++) {
            int neighbours = 0;
            for (int i = 0; i < n; i++) {
                if (at[m][i] != 2) fail_msg("%d members: %d stands %d times at %d", n, m, at[m][i], i);
                neighbours += behind[m][i] > 0;
            }
            if (n > 2) assert_int_equal(neighbours, 2);
        }
    }
}

// Parts follow the order of measurement, none is empty while there are points, and none costs more than its
// share and the two points at its ends.
static void parts(void **state) {
    enum { MOST = 40 };
    Random r = test_random(3);
    (void)state;
    for (int round = 0; round < 300; round++) {
        int points = test_between(&r, 1, MOST), shards = test_between(&r, 1, MOST), members[MOST],
            shard_of[MOST];
        double cost[MOST], sums[MOST] = {0}, all = 0, most = 0;
        for (int i = 0; i < points; i++) {
            members[i] = points - 1 - i;
            all += cost[i] = pow(10, test_between(&r, 0, round % 4));
            most = fmax(most, cost[i]);
        }
        schedule_shards(&(Schedule){.members = members, .member_count = points, .sweep_count = points}, cost,
                        shards, shard_of);
        for (int i = 0; i < points; i++) {
            int shard = shard_of[members[i]], before = i ? shard_of[members[i - 1]] : -1;
            if (shard < 0 || shard >= shards || shard < before || shard > before + 1 || (i == 0 && shard))
                fail_msg("%d points in %d parts: %d follows %d", points, shards, shard, before);
            sums[shard] += cost[members[i]];
        }
        assert_int_equal(shard_of[members[points - 1]], (points < shards ? points : shards) - 1);
        for (int i = 0; i < shards && shards <= points; i++)
            if (sums[i] > all / shards + 2 * most)
                fail_msg("part %d of %d costs %g of %g", i, shards, sums[i], all);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_schedules), cmocka_unit_test(baselines),
                                       cmocka_unit_test(warmth), cmocka_unit_test(order),
                                       cmocka_unit_test(parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
