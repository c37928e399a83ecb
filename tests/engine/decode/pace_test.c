// The learned length of a draft against the best fixed one, on drafters whose acceptance is known.
#include "tests/support/check.h"

#include "engine/base/random.h"
#include "engine/decode/pace.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 12, STEPS = 4000 };

// A guess is right with one of two chances, each as likely, in each of three parts of a text; its model says
// so, or something else.
typedef struct Guesser {
    double chance[3][2];
    double says; // 0: the truth
    double cost;
} Guesser;

typedef struct Sum {
    double tokens, time, drafted;
} Sum;

// p NULL: a fixed length.
static Sum run(const Guesser *g, Pace *p, int length, uint64_t seed) {
    Random r = test_random(seed);
    Sum s = {0};
    if (p) pace_begin(p);
    for (int step = 0; step < STEPS; step++) {
        int n = p ? p->length : length, right = 0, drafted = 0;
        bool more = n > 0, on = true;
        while (more) {
            double chance = g->chance[step * 3 / STEPS][random_below(&r, 2)];
            on = on && random_uniform(&r) < chance;
            right += on;
            drafted++;
            more = p ? !pace_ends(p, drafted, g->says > 0 ? g->says : chance) : drafted < n;
        }
        if (p) pace_learn(p, right);
        s.tokens += right + 1;
        s.time += 1 + drafted * g->cost;
        s.drafted += drafted;
    }
    return s;
}

static double best_fixed(const Guesser *g, int *length) {
    double best = 0;
    for (int n = 0; n <= MOST; n++) {
        Sum s = run(g, NULL, n, 3);
        if (s.tokens / s.time <= best) continue;
        best = s.tokens / s.time;
        *length = n;
    }
    return best;
}

static Pace learned(double cost, int least) {
    Pace p;
    pace_init(&p, &(PaceParams){.adaptive = PACE_LEARNED, .cost = cost}, MOST, least, MOST);
    return p;
}

#define ALWAYS(a, b)             \
    {                            \
        {a, b}, {a, b}, { a, b } \
    }

// Nearly as fast as the best fixed length, from drafts that hardly ever fail to those that hardly ever don't,
// whatever they think of themselves; faster where a draft knows what it knows, or a text changes.
static void near_the_best(void **state) {
    (void)state;
    static const struct {
        const char *what;
        Guesser g;
        double least; // of the best fixed one's speed
    } ROWS[] = {
        {"easy, cheap", {ALWAYS(0.9, 0.9), 0, 0.05}, 0.97},
        {"easy, dear", {ALWAYS(0.9, 0.9), 0, 0.3}, 0.95},
        {"middling", {ALWAYS(0.6, 0.6), 0, 0.1}, 0.95},
        {"middling, and proud", {ALWAYS(0.6, 0.6), 0.97, 0.1}, 0.94},
        {"middling, and shy", {ALWAYS(0.6, 0.6), 0.1, 0.1}, 0.9},
        {"hard", {ALWAYS(0.1, 0.1), 0, 0.3}, 0.93},
        {"hopeless, very dear", {ALWAYS(0.02, 0.02), 0.9, 1}, 0.85},
        {"knows what it knows", {ALWAYS(0.95, 0.2), 0, 0.2}, 1.08},
        {"a text that changes", {{{0.95, 0.95}, {0.1, 0.1}, {0.95, 0.95}}, 0.9, 0.2}, 1.1},
        {"another", {{{0.1, 0.1}, {0.95, 0.95}, {0.1, 0.1}}, 0.9, 0.3}, 1.3},
    };
    bool all = true;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const Guesser *g = &ROWS[i].g;
        int length = 0;
        Pace p = learned(g->cost, 0);
        Sum s = run(g, &p, 0, 4);
        double best = best_fixed(g, &length), own = s.tokens / s.time;
        print_message("%s: best fixed %d, %.3f; learned %.1f, %.3f: %.3f of it\n", ROWS[i].what, length, best,
                      s.drafted / STEPS, own, own / best);
        all = all && own / best >= ROWS[i].least;
    }
    assert_true(all);
}

static int drafts(Pace *p, double confidence, int right) {
    int drafted = 0;
    for (bool more = p->length > 0; more;) more = !pace_ends(p, ++drafted, confidence);
    pace_learn(p, right < drafted ? right : drafted);
    return drafted;
}

// A draft that rests is asked again, and a text that becomes easy is noticed within some dozens of steps.
static void wakes_up(void **state) {
    (void)state;
    Pace p = learned(0.5, 0);
    int rested = 0, steps = 0;
    for (int i = 0; i < 200; i++) rested += drafts(&p, 0.9, 0) == 0;
    while (steps < 200 && drafts(&p, 0.9, MOST) < 4) steps++;
    print_message("%d of 200 steps without a guess, awake after %d\n", rested, steps);
    assert_true(rested > 150 && steps < 100);
    p = learned(0.5, 1);
    for (int i = 0; i < 200; i++) assert_true(drafts(&p, 0.9, 0) >= 1);
}

// No length beyond the most, none below the least, whatever it sees.
static void within_its_limits(void **state) {
    (void)state;
    Random r = test_random(5);
    for (int kind = PACE_OFF; kind <= PACE_LEARNED; kind++)
        for (int round = 0; round < 50; round++) {
            Pace p;
            int most = test_between(&r, 1, 60), first = test_between(&r, 1, most);
            PaceParams params = {
                .adaptive = kind, .confidence = 0.5, .cost = (double)test_between(&r, 0, 20) / 10};
            pace_init(&p, &params, first, 0, most);
            for (int i = 0; i < 100; i++) {
                assert_in_range(p.length, kind == PACE_LEARNED ? 0 : 1, most);
                if (kind == PACE_OFF) assert_int_equal(p.length, first);
                int right = test_between(&r, 0, most), drafted = drafts(&p, random_uniform(&r), right);
                assert_in_range(drafted, 0, most);
            }
        }
}

static bool reads(Pace *p, const char *text, Error *e) {
    char folder[FOLDER_PATH_SIZE];
    PaceParams params = {.adaptive = PACE_OFF};
    folder_make(folder);
    scratch_write(folder, "k.json", text, strlen(text));
    snprintf(params.schedule, sizeof params.schedule, "%s", folder_path(folder, "k.json"));
    pace_init(p, &params, MOST, 0, MOST);
    bool ok = pace_read(p, e);
    folder_remove(folder);
    return ok;
}

#define RANGES "\"num_speculative_tokens_per_batch_size\": "

// The most by batch and context: of the last range for larger batches, of the last context that isn't larger.
static void schedule(void **state) {
    (void)state;
    static const struct {
        int batch, context, want;
    } ROWS[] = {{1, 0, 7},   {2, 0, 3},   {3, 99, 3},  {4, 99, 0},  {500, 99, 0},
                {1, 100, 5}, {4, 999, 5}, {5, 100, 2}, {6, 999, 2}, {1, 1000, 0}};
    static const char *const BAD[] = {"[]",
                                      "{}",
                                      "{" RANGES "[]}",
                                      "{" RANGES "[[1, 2]]}",
                                      "{" RANGES "[[2, 2, 3]]}",
                                      "{" RANGES "[[1, 0, 3]]}",
                                      "{" RANGES "[[1, 2, -1]]}",
                                      "{" RANGES "[[1, 2, 3], [4, 5, 3]]}",
                                      "{" RANGES "[[1, 2, \"3\"]]}",
                                      "{" RANGES "[[1, 2, 3]], \"by_context\": [{\"context\": 5}]}",
                                      "{" RANGES "[[1, 2, 3]], \"by_context\": [{" RANGES "[[1, 2, 3]]}]}",
                                      "{" RANGES "[[1, 2, 3]], \"by_context\": [{\"context\": 5, " RANGES
                                      "[[1, 1, 1]]}, {\"context\": 5, " RANGES "[[1, 1, 1]]}]}"};
    Error e = {0};
    Pace p;
    if (!reads(&p,
               "{" RANGES
               "[[1, 1, 7], [2, 3, 3], [4, 8, 0]], \"draft_len_schedule\": {\"1\": 7},\n \"by_context\": ["
               "{\"context\": 100, " RANGES "[[1, 4, 5], [5, 8, 2]]}, {\"context\": 1000, " RANGES
               "[[1, 8, 0]]}]}",
               &e))
        fail_msg("%s", e.text);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (pace_limit(&p, ROWS[i].batch, ROWS[i].context) != ROWS[i].want)
            fail_msg("batch %d, context %d: %d", ROWS[i].batch, ROWS[i].context,
                     pace_limit(&p, ROWS[i].batch, ROWS[i].context));
    p.least = 1;
    assert_int_equal(pace_limit(&p, 4, 0), 1);
    assert_true(reads(&p, "{" RANGES "[[1, 8, 99]]}", &e)); // vLLM's own, and more than the method has
    assert_int_equal(pace_limit(&p, 1, 0), MOST);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        if (reads(&p, BAD[i], &e) || !strstr(e.text, "k.json")) fail_msg("%s: '%s'", BAD[i], e.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedule),
        cmocka_unit_test(near_the_best),
        cmocka_unit_test(wakes_up),
        cmocka_unit_test(within_its_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
