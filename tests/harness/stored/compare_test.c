// Stores made up with known times: what compare pairs, and what it says.
#include "tests/support/check.h"

#include "harness/stored/compare.h"
#include "tests/support/folder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PROMPTS = 12, PASSES = 2, POINTS = 3 };

typedef struct Made {
    double factor;       // of all times
    const char *dataset; // its hash
    int first;           // of the prompts that it has
    bool diverged;
} Made;

#define MUST(call)                           \
    do {                                     \
        if (!(call)) fail_msg("%s", e.text); \
    } while (0)

// Point p takes p times as long as the first; prompts differ by their number, and repeats by a little.
static double seconds_of(const Made *m, int point, int prompt, int pass, Random *r) {
    return m->factor * point * (1 + 0.1 * prompt) * (1 + 0.002 * pass + 0.005 * (double)random_normal(r));
}

static void add_sample(Store *s, const Made *m, const int64_t *ids, int point, int prompt, int pass,
                       Random *r) {
    Error e = {0};
    StoreStep steps[4] = {0};
    for (int i = 0; i < 4; i++)
        steps[i] = (StoreStep){.emitted = 2, .accepted = 1, .rows = 3, .pool = -1, .device_s = -1};
    StoreDivergence d = {.position = 1, .wanted = 5, .got = 6, .margin = 0.5};
    bool differs = m->diverged && point == 2 && prompt == m->first;
    StoreSample sample = {.point = ids[0],
                          .prompt = ids[1],
                          .attempt = ids[2],
                          .pass = pass,
                          .tokens = 8,
                          .prompt_tokens = 3,
                          .flags = differs ? FLAG_DIVERGED : 0,
                          .divergence = differs ? &d : NULL,
                          .prefill_s = 0.1,
                          .decode_s = seconds_of(m, point, prompt, pass, r),
                          .steps = steps,
                          .step_count = 4};
    MUST(store_samples(s, &sample, 1, &e));
}

static void add_point(Store *s, const Made *m, int64_t run, int64_t attempt, int64_t model, int64_t dataset,
                      int number, Random *r) {
    Error e = {0};
    char hash[24];
    int64_t ids[3] = {0, 0, attempt};
    snprintf(hash, sizeof hash, "point%d", number);
    StorePoint point = {.number = number,
                        .hash = hash,
                        .model = model,
                        .dataset = dataset,
                        .method = "made-up",
                        .decoder = hash,
                        .label = hash};
    MUST(store_point(s, run, &point, &ids[0], &e));
    for (int i = m->first; i < PROMPTS; i++) {
        StorePrompt prompt = {.dataset = dataset, .number = i, .name = "x"};
        MUST(store_prompt(s, &prompt, &ids[1], &e));
        for (int pass = 0; pass < PASSES; pass++) add_sample(s, m, ids, number, i, pass, r);
    }
}

static void make_store(const char *path, const Made *m, uint64_t seed) {
    Error e = {0};
    Random r = test_random(seed);
    int64_t run, attempt, model, dataset;
    char word[] = "test", *argv[] = {word, NULL};
    Store *s = store_open(path, STORE_WRITE, NULL, &e);
    MUST(s);
    StoreRun made = {.hash = path, .kind = "sweep", .name = "made", .version = "0"};
    StoreEnvironment on = {.version = "0"};
    StoreModel one = {.name = "m", .hash = "m", .layers = 1};
    StoreDataset data = {.name = "d", .hash = m->dataset};
    MUST(store_begin(s, &e));
    MUST(store_run_new(s, &made, &run, &e));
    MUST(store_attempt(s, run, 1, argv, &on, &attempt, &e));
    MUST(store_model(s, &one, &model, &e));
    MUST(store_dataset(s, &data, &dataset, &e));
    for (int p = 1; p <= POINTS; p++) add_point(s, m, run, attempt, model, dataset, p, &r);
    MUST(store_commit(s, &e));
    store_close(s);
}

static bool compare(const char *a, const char *b, Comparison *out, Error *e) {
    CompareSide one = {0}, two = {0};
    bool ok = compare_find(a, "none.db", &one, e) && compare_find(b, "none.db", &two, e) &&
              compare_sides(&one, &two, out, e);
    store_close(one.store);
    store_close(two.store);
    return ok;
}

static void runs(void **state) {
    const char *base = folder_path(*state, "base.db"), *quick = folder_path(*state, "quick.db"),
               *equal = folder_path(*state, "equal.db");
    Comparison c;
    Error e = {0};
    make_store(base, &(Made){.factor = 1, .dataset = "d"}, 1);
    make_store(quick, &(Made){.factor = 0.8, .dataset = "d"}, 2);
    make_store(equal, &(Made){.factor = 1, .dataset = "d"}, 3);
    MUST(compare(base, quick, &c, &e));
    assert_int_equal(c.count, POINTS);
    assert_int_equal(c.alone, 0);
    for (int i = 0; i < c.count; i++) {
        assert_int_equal(compare_judge(&c.pairs[i].tally, 0.02), JUDGED_FASTER);
        assert_int_equal(c.pairs[i].tally.prompts, PROMPTS);
        assert_true(fabs(c.pairs[i].tally.value[TALLY_SPEEDUP] / 1.25 - 1) < 0.01);
        assert_true(fabs(c.pairs[i].S_a - 2) < 1e-9);
    }
    assert_int_equal(c.all.prompts, PROMPTS); // what several points decoded is one unit
    assert_int_equal(c.all.pairs, POINTS * PROMPTS * PASSES);
    compare_release(&c);
    MUST(compare(quick, base, &c, &e));
    assert_int_equal(compare_judge(&c.all, 0.02), JUDGED_SLOWER);
    compare_release(&c);
    MUST(compare(base, equal, &c, &e));
    assert_int_equal(compare_judge(&c.all, 0.02), JUDGED_SAME);
    compare_release(&c);
}

static void points(void **state) {
    char a[300], b[300];
    Comparison c;
    Error e = {0};
    snprintf(a, sizeof a, "%s:1/1", folder_path(*state, "base.db"));
    snprintf(b, sizeof b, "%s:made/3", folder_path(*state, "base.db"));
    MUST(compare(a, b, &c, &e));
    assert_int_equal(c.count, 1);
    assert_true(fabs(c.pairs[0].tally.value[TALLY_SPEEDUP] * 3 - 1) < 0.01);
    assert_string_equal(c.pairs[0].label_a, "point1");
    compare_release(&c);
    snprintf(b, sizeof b, "%s:1/7", folder_path(*state, "base.db"));
    assert_false(compare(a, b, &c, &e));
    assert_non_null(strstr(e.text, "has no such point"));
}

static void other_content(void **state) {
    const char *base = folder_path(*state, "base.db"), *other = folder_path(*state, "other.db"),
               *half = folder_path(*state, "half.db"), *lost = folder_path(*state, "lost.db");
    Comparison c;
    Error e = {0};
    make_store(other, &(Made){.factor = 1, .dataset = "another"}, 4);
    assert_false(compare(base, other, &c, &e));
    assert_non_null(strstr(e.text, "no prompt stands on both sides"));
    make_store(half, &(Made){.factor = 1, .dataset = "d", .first = PROMPTS / 2}, 5);
    MUST(compare(base, half, &c, &e));
    assert_int_equal(c.all.prompts, PROMPTS / 2);
    compare_release(&c);
    make_store(lost, &(Made){.factor = 1, .dataset = "d", .diverged = true}, 6);
    MUST(compare(base, lost, &c, &e));
    for (int i = 0; i < c.count; i++) assert_int_equal(c.pairs[i].lost_text, i == 1);
    compare_release(&c);
    assert_false(compare(base, "nothing", &c, &e));
}

// A side that is not found holds no store: who asked for it closes what it has.
static void no_such_run(void **state) {
    const char *base = folder_path(*state, "base.db");
    static const char *const WHICH[] = {"99", "nothing", "nothing.db:1", "99/1"};
    make_store(base, &(Made){.factor = 1, .dataset = "d"}, 1);
    for (size_t i = 0; i < sizeof WHICH / sizeof *WHICH; i++) {
        CompareSide side;
        Error e = {0};
        if (compare_find(WHICH[i], base, &side, &e)) fail_msg("'%s' was found", WHICH[i]);
        assert_null(side.store);
        assert_int_equal(e.kind, ERROR_INPUT);
    }
}

static void judgement(void **state) {
    (void)state;
    static const struct {
        double low, high;
        Judgement want;
    } rows[] = {
        {0.985, 1.015, JUDGED_SAME   },
        {0.985, 1.025, JUDGED_UNCLEAR},
        {1.005, 1.015, JUDGED_SAME   }, // different, but by nothing that matters
        {1.005, 1.100, JUDGED_UNCLEAR},
        {1.021, 1.100, JUDGED_FASTER },
        {0.900, 0.979, JUDGED_SLOWER },
        {0.900, 0.990, JUDGED_UNCLEAR},
        {NAN,   NAN,   JUDGED_UNCLEAR}, // no time was seen
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Tally t = {.has_interval = true};
        t.interval[TALLY_SPEEDUP] = (Interval){.low = rows[i].low, .high = rows[i].high};
        if (compare_judge(&t, 0.02) != rows[i].want)
            fail_msg("[%g, %g]: wanted %s", rows[i].low, rows[i].high, compare_word(rows[i].want));
    }
    assert_int_equal(compare_judge(&(Tally){0}, 0.02), JUDGED_UNCLEAR);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs), cmocka_unit_test(points),
                                       cmocka_unit_test(other_content), cmocka_unit_test(no_such_run),
                                       cmocka_unit_test(judgement)};
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
