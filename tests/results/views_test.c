// The views against loops over the samples, written from the definitions in words.
#include "tests/support/check.h"

#include "results/rows.h"
#include "results/sql.h"
#include "tests/support/filled_store.h"
#include "tests/support/folder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 3, PROMPTS = 6, PASSES = 2, MOST_STEPS = 10 };

typedef struct {
    bool there;
    double tokens, steps, decode, prefill;
    int accepted[MOST_STEPS], drafted[MOST_STEPS];
} Sample;

typedef struct {
    FilledStore f;
    void *folder;
    Sample samples[POINTS][PASSES][PROMPTS];
} World;

static void read_samples(World *w) {
    Error e = {0};
    Rows *r = rows_open(
        w->f.store,
        "SELECT point.number - 1, pass, 2 * prompt.number + turn, tokens, steps, decode_ns, prefill_ns,"
        " step.number, step.accepted, step.drafted FROM sample JOIN point ON point.id = point_id"
        " JOIN prompt ON prompt.id = prompt_id JOIN step ON step.sample_id = sample.id",
        &e);
    if (!r) fail_msg("%s", e.text);
    while (rows_next(r)) {
        Sample *s = &w->samples[rows_int(r, 0)][rows_int(r, 1)][rows_int(r, 2)];
        s->there = true;
        s->tokens = rows_real(r, 3);
        s->steps = rows_real(r, 4);
        s->decode = rows_real(r, 5);
        s->prefill = rows_real(r, 6);
        s->accepted[rows_int(r, 7)] = (int)rows_int(r, 8);
        s->drafted[rows_int(r, 7)] = (int)rows_int(r, 9);
    }
    assert_true(rows_end(r, true, &e));
}

// The baseline lacks the second pass of one conversation.
static int setup(void **state) {
    static World w;
    Error e = {0};
    memset(&w, 0, sizeof w);
    if (folder_setup(&w.folder)) return -1;
    if (!filled_open(&w.f, folder_path(w.folder, "a.db"), NULL, POINTS, PROMPTS, &e)) fail_msg("%s", e.text);
    for (int p = 0; p < POINTS; p++)
        for (int pass = 0; pass < PASSES; pass++)
            for (int q = 0; q < PROMPTS; q++)
                if (!(p == 0 && pass == 1 && q >= 4) && !filled_add(&w.f, p, pass, q, &e))
                    fail_msg("%s", e.text);
    read_samples(&w);
    *state = &w;
    return 0;
}

static int teardown(void **state) {
    World *w = *state;
    filled_close(&w->f);
    return folder_teardown(&w->folder);
}

static double view(World *w, const char *sql, int point) {
    Error e = {0};
    Rows *r = rows_open(w->f.store, sql, &e);
    if (!r) fail_msg("%s", e.text);
    rows_bind_int(r, 1, w->f.points[point]);
    double value = rows_next(r) ? rows_real(r, 0) : NAN;
    if (!rows_end(r, true, &e)) fail_msg("%s", e.text);
    return value;
}

static void expect(World *w, const char *sql, int point, double want) {
    double got = view(w, sql, point);
    if (!(fabs(got - want) <= 1e-9 * fabs(want)))
        fail_msg("%s of point %d: wanted %.12g, got %.12g", sql, point, want, got);
}

static void s_and_speed(void **state) {
    World *w = *state;
    for (int p = 0; p < POINTS; p++) {
        double tokens = 0, steps = 0, time = 0, prefills = 0;
        for (int i = 0; i < PASSES * PROMPTS; i++) {
            Sample *s = &w->samples[p][i / PROMPTS][i % PROMPTS];
            tokens += s->tokens;
            steps += s->steps;
            time += s->decode;
            prefills += s->there;
        }
        expect(w, "SELECT S FROM result WHERE point_id = ?1", p, tokens / steps);
        expect(w, "SELECT S_reference FROM result WHERE point_id = ?1", p,
               (tokens + prefills) / (steps + prefills));
        expect(w, "SELECT tokens_per_s FROM result WHERE point_id = ?1", p, 1e9 * tokens / time);
    }
    expect(w, "SELECT S FROM result WHERE point_id = ?1", 0, 1);
    expect(w, "SELECT prompts FROM result WHERE point_id = ?1", 0, PROMPTS / 2); // of two turns each
}

static void expect_ctar(World *w, int point, int at_least, int times) {
    char sql[128];
    double met = 0, steps = 0;
    snprintf(sql, sizeof sql, "SELECT ctar FROM ctar WHERE point_id = ?1 AND w = %d", at_least);
    for (int i = 0; i < PASSES * PROMPTS; i++)
        for (int t = 0; t < MOST_STEPS; t++, steps++)
            met += times * w->samples[point][i / PROMPTS][i % PROMPTS].accepted[t] >= at_least;
    expect(w, sql, point, met / steps);
}

static void ctar(void **state) {
    for (int p = 1; p < POINTS; p++)
        for (int at_least = 1; at_least <= 3; at_least++) expect_ctar(*state, p, at_least, 1);
}

// Where each step accepted twice as many, odd numbers were accepted by none, and stand there all the same.
static void ctar_of_every_w(void **state) {
    static const char DOUBLED[] = "UPDATE sample_accept SET accepted = 2 * accepted + 100;"
                                  "UPDATE sample_accept SET accepted = accepted - 100;";
    World *w = *state;
    Error e = {0};
    if (!sql_script(w->f.store, DOUBLED, &e)) fail_msg("%s", e.text);
    for (int p = 1; p < POINTS; p++) {
        expect(w, "SELECT count(*) FROM ctar WHERE point_id = ?1", p, 6);
        for (int at_least = 1; at_least <= 6; at_least++) expect_ctar(w, p, at_least, 2);
    }
}

typedef enum Sum { DECODE, WITH_PREFILL, TOKENS } Sum;

// Over the passes that are there.
static double mean(const World *w, int point, int prompt, Sum of) {
    double sum = 0, n = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        const Sample *s = &w->samples[point][pass][prompt];
        if (!s->there) continue;
        sum += of == TOKENS ? s->tokens : s->decode + (of == WITH_PREFILL ? s->prefill : 0);
        n++;
    }
    return sum / n;
}

// By the time of a token, over the prompts q with take(q).
static double speedup_of(const World *w, int point, Sum of, bool (*take)(int q)) {
    double sums[2][2] = {{0}};
    for (int q = 0; q < PROMPTS; q++)
        for (int own = 0; take(q) && own < 2; own++) {
            sums[own][0] += mean(w, own ? point : 0, q, of);
            sums[own][1] += mean(w, own ? point : 0, q, TOKENS);
        }
    return (sums[0][0] / sums[0][1]) / (sums[1][0] / sums[1][1]);
}

static bool all_of_them(int q) { return q >= 0; }
static bool first_task(int q) { return q / 2 % 2 == 0; }
static bool second_task(int q) { return q / 2 % 2 == 1; }
static bool other_than_one(int q) { return q / 2 != 1; }
static bool only_two(int q) { return q / 2 == 2; }

static void speedups(void **state) {
    World *w = *state;
    for (int p = 0; p < POINTS; p++) {
        double want = speedup_of(w, p, DECODE, all_of_them);
        expect(w, "SELECT speedup FROM result WHERE point_id = ?1", p, want);
        expect(w, "SELECT speedup_same_path FROM result WHERE point_id = ?1", p, want);
        expect(w, "SELECT speedup_e2e FROM result WHERE point_id = ?1", p,
               speedup_of(w, p, WITH_PREFILL, all_of_them));
    }
}

static void task_means(void **state) {
    World *w = *state;
    double sum = speedup_of(w, 2, DECODE, first_task) + speedup_of(w, 2, DECODE, second_task);
    expect(w, "SELECT speedup_task_mean FROM result WHERE point_id = ?1", 2, sum / 2);
    // MT-Bench's categories are one subtask; our names of tasks are Spec-Bench's.
    expect(w,
           "SELECT count(*) FROM (SELECT DISTINCT subtask FROM subtask WHERE ?1 AND subtask IN ('mt-bench', "
           "'qa'))",
           2, 2);
    expect(w, "SELECT count(*) FROM subtask_speedup WHERE point_id = ?1", 2, 2);
}

// Conversations 0 and 2 are of two parts of a category; the third point's passes are all there.
static void categories(void **state) {
    World *w = *state;
    Error e = {0};
    static const char PARTS[] = "UPDATE prompt SET task = 'writing/' || number WHERE task = 'writing'";
    if (!sql_script(w->f.store, PARTS, &e)) fail_msg("%s", e.text);
    expect(w, "SELECT count(*) FROM task_matrix WHERE run_id = ?1 OR 1", 0, POINTS * 4);
    for (int part = 0; part <= 2; part += 2) { // 0: of the category, else of conversation 2 only
        char sql[3][160];
        static const char *const NAMES[] = {"S", "acceptance", "speedup"};
        double tokens = 0, steps = 0, accepted = 0, drafted = 0;
        for (int q = 0; q < PROMPTS; q++) {
            if (q / 2 == 1 || (part && q / 2 != part)) continue;
            for (int pass = 0; pass < PASSES; pass++) {
                const Sample *s = &w->samples[2][pass][q];
                tokens += s->tokens, steps += s->steps;
                for (int t = 0; t < MOST_STEPS; t++) accepted += s->accepted[t], drafted += s->drafted[t];
            }
        }
        for (int i = 0; i < 3; i++)
            snprintf(sql[i], sizeof sql[i],
                     "SELECT %s FROM category_speedup WHERE point_id = ?1 AND task = '%s' AND whole = %d",
                     NAMES[i], part ? "writing/2" : "writing", part > 0);
        expect(w, sql[0], 2, tokens / steps);
        expect(w, sql[1], 2, accepted / drafted);
        expect(w, sql[2], 2, speedup_of(w, 2, DECODE, part ? only_two : other_than_one));
    }
    expect(w, "SELECT max(prompts) FROM category_speedup WHERE point_id = ?1 AND task = 'writing'", 2, 2);
    expect(w, "SELECT count(acceptance) FROM category_speedup WHERE point_id = ?1", 0, 0); // nobody drafts
}

static double conversation(const World *w, int point, int pass, int q) {
    const Sample *s = w->samples[point][pass];
    return (s[q].tokens + s[q + 1].tokens) /
           (s[q].decode + s[q].prefill + s[q + 1].decode + s[q + 1].prefill);
}

static void specbench(void **state) {
    World *w = *state;
    double ratios = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        double own = 0, base = 0;
        for (int q = 0; q < PROMPTS; q += 2) {
            if (!w->samples[0][pass][q].there) continue;
            own += conversation(w, 1, pass, q);
            base += conversation(w, 0, pass, q);
        }
        ratios += own / base;
    }
    expect(w, "SELECT speedup_specbench FROM result WHERE point_id = ?1", 1, ratios / PASSES);
}

// Plain steps and those in halves: each step runs all layers over all its rows.
static void passes(void **state) {
    World *w = *state;
    static const char WORK[] = "SELECT sum((b - a) * rows * count) FROM pass WHERE point_id = ?1";
    static const char ROWS[] = "SELECT sum(rows) * 4.0 FROM sample WHERE point_id = ?1";
    static const char HEADS[] = "SELECT count(*) FROM pass WHERE point_id = ?1 AND a = b";
    for (int p = 0; p < POINTS; p++) {
        expect(w, WORK, p, view(w, ROWS, p));
        expect(w, HEADS, p, view(w, "SELECT sum(steps) FROM sample WHERE point_id = ?1", p));
    }
}

// What was imported without a baseline has no speedup, and all else.
static void alone(void **state) {
    World *w = *state;
    StorePoint p = {
        .number = 9, .hash = "alone", .model = w->f.model, .dataset = w->f.dataset, .method = "eagle"};
    StoreStep t = {.rows = 1, .asked = 1, .emitted = 1, .pool = -1, .forward_s = 0.1, .device_s = -1};
    StoreSample x = {.attempt = w->f.attempt, .prompt = w->f.prompts[0], .steps = &t, .step_count = 1};
    p.decoder = p.label = "eagle";
    x.tokens = 10;
    x.decode_s = 2;
    for (int sampled = 0; sampled < 2; sampled++) {
        if (sampled) p.hash = "alone too";
        p.number += sampled;
        p.temperature = sampled;
        assert_true(store_point(w->f.store, w->f.run, &p, &x.point, NULL));
        assert_true(store_samples(w->f.store, &x, 1, NULL));
        w->f.points[0] = x.point;
        expect(w, "SELECT S FROM result WHERE point_id = ?1", 0, 10);
        expect(w, "SELECT sum(S * tokens_per_s) FROM task_speedup WHERE point_id = ?1", 0, 50);
        expect(w,
               "SELECT count(speedup) + count(speedup_e2e) + count(speedup_same_path) + "
               "count(speedup_specbench) + count(speedup_task_mean) FROM result WHERE point_id = ?1",
               0, 0);
        expect(w, "SELECT count(speedup) FROM task_speedup WHERE point_id = ?1", 0, 0);
    }
}

static void doubt_is(World *w, const char *script, const char *want) {
    Error e = {0};
    if (!sql_script(w->f.store, script, &e)) fail_msg("%s", e.text);
    Rows *r = rows_open(
        w->f.store,
        "SELECT coalesce(few, '-') || iif(above_S, ', above S', '') || iif(doubtful, ', doubtful', '') || "
        "iif(doubtful = 2, ' in all', '') ||"
        " coalesce(', ' || doubt, '') FROM point_doubt WHERE point_id = ?1",
        &e);
    if (!r) fail_msg("%s", e.text);
    rows_bind_int(r, 1, w->f.points[1]);
    assert_true(rows_next(r));
    if (strcmp(rows_text(r, 0), want) != 0)
        fail_msg("after %s: wanted '%s', got '%s'", script, want, rows_text(r, 0));
    assert_true(rows_end(r, true, &e));
}

// Reasons to doubt a point's times: each alone, and what is no reason.
static void doubts(void **state) {
    World *w = *state;
    static const char ESTIMATES[] = "DELETE FROM estimate; UPDATE sample SET flags = 0;"
                                    "INSERT INTO estimate (point_id, metric, value, low, high)"
                                    " SELECT id, 'speedup', 1.5, 1.4, 1.6 FROM point UNION ALL SELECT id, "
                                    "'speedup_over_S', 0.9, 0.85, 0.95 FROM point";
    static const char MORE[] =
        "INSERT INTO prompt (dataset_id, number, turn) SELECT dataset_id, number + 3 * n, turn FROM prompt"
        " JOIN (SELECT 1 AS n UNION VALUES (2), (3)) ORDER BY n;"
        "INSERT INTO sample (point_id, pass, prompt_id, attempt_id, position, started, flags, prompt_tokens, "
        "tokens, steps,"
        " prefill_tokens, prefill_steps, filling_steps, accepted, decode_ns) SELECT point_id, pass, more.id, "
        "attempt_id,"
        " position, started, flags, prompt_tokens, tokens, steps, prefill_tokens, prefill_steps, "
        "filling_steps, accepted,"
        " decode_ns FROM sample JOIN prompt ON prompt.id = prompt_id JOIN prompt AS more ON more.turn = "
        "prompt.turn"
        " AND more.number % 3 = prompt.number AND more.number > 2";
    doubt_is(w, ESTIMATES, "fewer than ten prompts");
    doubt_is(w, MORE, "-");
    doubt_is(w, "UPDATE estimate SET high = 2.16 WHERE metric = 'speedup'",
             "its interval is wider than half the speedup");
    doubt_is(w, "UPDATE estimate SET low = NULL, high = NULL WHERE metric = 'speedup'",
             "its interval is not known");
    doubt_is(w, ESTIMATES, "-");
    // Texts that differ, or that a limit cut, were timed well.
    doubt_is(w, "UPDATE sample SET flags = 48", "-");
    doubt_is(w, "UPDATE sample SET flags = 8 WHERE point_id = 2 AND pass = 0 AND prompt_id < 5",
             "-, 4 of 48 disturbed");
    doubt_is(w, "UPDATE sample SET flags = 1 WHERE point_id = 1 AND pass = 0 AND prompt_id < 6",
             "-, doubtful, 4 of 48 disturbed; 5 of its baseline's 40 disturbed");
    doubt_is(w, "UPDATE sample SET flags = 64 * (point_id = 2)", "-, doubtful in all, 48 of 48 disturbed");
    doubt_is(w, "UPDATE sample SET flags = 128 * (point_id = 1)",
             "-, doubtful in all, 40 of its baseline's 40 disturbed");
    // Above S: the interval has to be, or the value far enough. A killed run's store that is only read has
    // the value.
    doubt_is(w, ESTIMATES, "-");
    doubt_is(w, "UPDATE estimate SET value = 1.2, low = 1.0, high = 1.4 WHERE metric = 'speedup_over_S'",
             "-");
    doubt_is(w, "UPDATE estimate SET value = 1.1, low = 1.06 WHERE metric = 'speedup_over_S'",
             "-, above S, doubtful, speedup is 1.10 times S: its baseline was disturbed");
    doubt_is(w, "UPDATE estimate SET value = 1.3, low = 0.7 WHERE metric = 'speedup_over_S'",
             "-, above S, doubtful, speedup is 1.30 times S: its baseline was disturbed");
    doubt_is(w, "DELETE FROM estimate WHERE metric = 'speedup_over_S'", "-");
    doubt_is(w,
             "UPDATE sample SET decode_ns = 4 * decode_ns WHERE point_id = 1; UPDATE run SET kind = 'import'",
             "-, above S, doubtful, speedup is 3.89 times S: its baseline is other code, or was disturbed");
}

// A view is not looked at when it is made: each must be asked once.
static void all_can_be_asked(void **state) {
    World *w = *state;
    Error e = {0};
    int count = 0;
    Rows *names =
        rows_open(w->f.store, "SELECT 'SELECT * FROM ' || name FROM sqlite_schema WHERE type = 'view'", &e);
    for (; rows_next(names); count++) {
        Rows *r = rows_open(w->f.store, rows_text(names, 0), &e);
        if (!r) fail_msg("%s", e.text);
        while (rows_next(r)) {}
        if (!rows_end(r, true, &e)) fail_msg("%s: %s", rows_text(names, 0), e.text);
    }
    assert_true(rows_end(names, true, &e));
    assert_true(count > 20);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(s_and_speed), IN_WORLD(ctar),       IN_WORLD(ctar_of_every_w),  IN_WORLD(speedups),
        IN_WORLD(task_means),  IN_WORLD(categories), IN_WORLD(specbench),        IN_WORLD(passes),
        IN_WORLD(alone),       IN_WORLD(doubts),     IN_WORLD(all_can_be_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
