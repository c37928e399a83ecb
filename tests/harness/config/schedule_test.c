// Schedules of random sweeps against the invariants of all schedules; the order of rounds counted out.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "harness/config/schedule.h"

#include <stdlib.h>
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
    text_printf(out, "%d %s %d %d %d %d %d %d %d", p->model, o->device, o->math, o->compute, o->threads,
                o->weights, o->attention, o->no_window, options_batch(o));
    if (with_output)
        text_printf(out, " %d %d %g %d %g %d %d %d", p->dataset, s->max_tokens, s->temperature, s->top_k,
                    s->top_p, s->seed, s->ignore_eos, options_batch(o) > 1 || strstr(p->decoder, "warm=on"));
}

// A baseline's own text has no warmth.
static void same_key(const Point *a, const Point *b, bool with_output) {
    Text one = {0}, two = {0};
    group_key(a, with_output, &one);
    group_key(b, with_output, &two);
    assert_string_equal(text_get(&one), text_get(&two));
    text_release(&one);
    text_release(&two);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

// Takes the texts, which must all differ. Sorted, equal ones are neighbours: there are too many for all
// pairs.
static void all_differ(char **texts, int count) {
    qsort(texts, (size_t)count, sizeof *texts, by_text);
    for (int i = 1; i < count; i++) assert_string_not_equal(texts[i - 1], texts[i]);
    for (int i = 0; i < count; i++) free(texts[i]);
    free(texts);
}

static char *copy_of_key(const Point *p, bool with_output) {
    Text key = {0};
    group_key(p, with_output, &key);
    char *copy = strdup(text_get(&key));
    text_release(&key);
    return copy;
}

static void check_group(const Schedule *s, const Group *g, int *seen) {
    const Point *first = &s->points[s->members[g->first]], *base = &s->points[s->members[g->baseline]];
    assert_true(g->baseline >= g->first && g->baseline < g->first + g->count);
    assert_int_equal(strncmp(base->decoder, "autoregressive", 14), 0);
    assert_int_equal(base->dataset, g->dataset);
    same_key(first, base, false);
    assert_int_equal(first->settings.max_tokens, base->settings.max_tokens);
    for (int i = 0; i < g->count; i++) {
        int number = s->members[g->first + i];
        seen[number]++;
        if (number < s->sweep_count) same_key(first, &s->points[number], true);
        if (i && number < s->sweep_count) assert_true(s->members[g->first + i - 1] < number);
    }
}

static void check_schedule(const Schedule *s) {
    int *seen = mem_new((size_t)s->point_count, sizeof *seen), baselines = 0;
    char **groups = calloc((size_t)s->group_count, sizeof *groups);
    char **setups = calloc((size_t)s->setup_count, sizeof *setups);
    assert_true(seen && groups && setups);
    for (int i = 0; i < s->group_count; i++) {
        const Group *g = &s->groups[i];
        check_group(s, g, seen);
        baselines += s->members[g->baseline] >= s->sweep_count;
        if (i) assert_true(s->groups[i - 1].setup <= g->setup); // so that each model is opened once
        groups[i] = copy_of_key(&s->points[s->members[g->first]], true);
    }
    all_differ(groups, s->group_count);
    for (int i = 0; i < s->point_count; i++) assert_int_equal(seen[i], 1);
    for (int i = 0; i < s->setup_count; i++) {
        Point setup = {.model = s->setups[i].model, .settings = *s->setups[i].settings};
        setups[i] = copy_of_key(&setup, false);
    }
    all_differ(setups, s->setup_count);
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
        maybe(&r, &file, "  batch: [1, 3]\n");
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

// The parameter `warm`, given or by default, of the method or of one of its methods.
static void warmth(void **state) {
    (void)state;
    static const struct {
        const char *method;
        bool warm;
    } CASES[] = {
        {"{name: ouroboros, matrix: {K: 3, warm: on}}", true},
        {"{name: ouroboros, matrix: {warm: off, K: 3}}", false},
        {"ouroboros", false},
        {"recycling", true},
        {"jacobi", false},
        {"{name: mix, matrix: {of: [ouroboros(warm=on)+jacobi]}}", true},
        {"{name: mix, matrix: {of: [jacobi+ouroboros(K=3)]}}", false},
        {"{name: mix, matrix: {of: [jacobi+recycling]}}", true},
        {"{name: mix, matrix: {of: [jacobi+recycling(warm=off)]}}", false},
        {"{name: mix, matrix: {of: [jacobi+prompt-lookup], switch: learned, warm: on}}", true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Plan p;
        Text file = {0};
        text_printf(&file, "name: x\nmodels: [a]\ndatasets: [one]\nmethods:\n  - %s\n", CASES[i].method);
        plan(&p, text_get(&file));
        if (p.s.groups[0].warm != CASES[i].warm)
            fail_msg("%s: wanted warm %d, got %d", CASES[i].method, CASES[i].warm, p.s.groups[0].warm);
        release(&p);
        text_release(&file);
    }
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
