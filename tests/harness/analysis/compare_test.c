// Made-up stores with known times: compare's pairs, verdicts and output.
#include "tests/support/check.h"

#include "harness/analysis/compare.h"
#include "results/rows.h"
#include "results/sql.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PROMPTS = 12, PASSES = 2, POINTS = 3 };

// The parts in which stores differ.
typedef struct Made {
    double machine;      // factor of all times
    double method;       // factor of the times of all points but the first
    const char *dataset; // hash
    const char *model;   // hash; NULL: "m"
    const char
        *path; // of model and data: in the points' hashes, and in that of the dataset's rows; NULL: "here"
    const char *program; // hash; NULL: the run does not know
    int first;           // of the prompts that it has
    int flagged;         // prompts from this on are disturbed; 0: none
    bool alone;          // the first point is no baseline
    bool diverged;
} Made;

#define MUST(call)                           \
    do {                                     \
        if (!(call)) fail_msg("%s", e.text); \
    } while (0)

static const char *or_else(const char *text, const char *other) { return text ? text : other; }

// Point p accepts p - 1 tokens a step; prompts differ by their number, and repeats by a little.
static double seconds_of(const Made *m, int point, int prompt, int pass, Random *r) {
    double own = point == 1 ? 1 : m->method * 1.2 / point;
    return m->machine * own * (1 + 0.1 * prompt) * (1 + 0.002 * pass + 0.005 * (double)random_normal(r));
}

static void add_sample(Store *s, const Made *m, const int64_t *ids, int point, int prompt, int pass,
                       Random *r) {
    Error e = {0};
    StoreStep steps[12] = {0};
    for (int i = 0; i < 12 / point; i++)
        steps[i] =
            (StoreStep){.emitted = point, .accepted = point - 1, .rows = 3, .pool = -1, .device_s = -1};
    StoreDivergence d = {.position = 1, .wanted = 5, .got = 6, .margin = 0.5};
    bool differs = m->diverged && point == 2 && prompt == m->first;
    bool disturbed = m->flagged && prompt >= m->flagged;
    StoreSample sample = {.point = ids[0],
                          .prompt = ids[1],
                          .attempt = ids[2],
                          .pass = pass,
                          .tokens = 12,
                          .prompt_tokens = 3,
                          .flags = (differs ? FLAG_DIVERGED : 0) | (disturbed ? FLAG_LOAD : 0),
                          .divergence = differs ? &d : NULL,
                          .prefill_s = 0.1,
                          .decode_s = seconds_of(m, point, prompt, pass, r),
                          .steps = steps,
                          .step_count = 12 / point};
    MUST(store_samples(s, &sample, 1, &e));
}

// ids: the attempt, the model, the dataset, and the baseline once it is there.
static void add_point(Store *s, const Made *m, int64_t run, int64_t ids[4], int number, Random *r) {
    Error e = {0};
    char hash[64], label[24];
    int64_t of[3] = {0, 0, ids[0]};
    snprintf(hash, sizeof hash, "point%d of %s", number, or_else(m->path, "here"));
    snprintf(label, sizeof label, "point%d", number);
    StoreParam param = {"hardware", "device", "cpu"};
    StorePoint point = {.number = number,
                        .hash = hash,
                        .model = ids[1],
                        .dataset = ids[2],
                        .method = number == 1 && !m->alone ? "autoregressive" : "made-up",
                        .decoder = label,
                        .label = label,
                        .baseline = ids[3],
                        .same_path = ids[3],
                        .params = &param,
                        .param_count = 1};
    MUST(store_point(s, run, &point, &of[0], &e));
    if (number == 1 && !m->alone) ids[3] = of[0];
    for (int i = m->first; i < PROMPTS; i++) {
        StorePrompt prompt = {.dataset = ids[2], .number = i, .name = "x"};
        MUST(store_prompt(s, &prompt, &of[1], &e));
        for (int pass = 0; pass < PASSES; pass++) add_sample(s, m, of, number, i, pass, r);
    }
}

static void make_store(const char *path, const Made *m, uint64_t seed) {
    Error e = {0};
    Random r = test_random(seed);
    int64_t run, ids[4] = {0};
    char word[] = "test", *argv[] = {word, NULL}, rows[64];
    snprintf(rows, sizeof rows, "%s of %s", m->dataset, or_else(m->path, "here"));
    Store *s = store_open(path, STORE_WRITE, NULL, &e);
    MUST(s);
    StoreContent contents[] = {{"dataset", "d", m->dataset, NULL}, {"program", "outpace", m->program, NULL}};
    StoreRun made = {.hash = path, .kind = "sweep", .name = "made", .version = "0"};
    made.contents = contents;
    made.content_count = m->program ? 2 : 1;
    StoreEnvironment on = {.version = "0"};
    StoreModel one = {.name = "m", .hash = or_else(m->model, "m"), .layers = 1};
    StoreDataset data = {.name = "d", .hash = rows};
    MUST(store_begin(s, &e));
    MUST(store_run_new(s, &made, &run, &e));
    MUST(store_attempt(s, run, 1, argv, &on, &ids[0], &e));
    MUST(store_model(s, &one, &ids[1], &e));
    MUST(store_dataset(s, &data, &ids[2], &e));
    for (int p = 1; p <= POINTS; p++) add_point(s, m, run, ids, p, &r);
    MUST(store_commit(s, &e));
    store_close(s);
}

static bool compare_by(bool absolute, const char *a, const char *b, Comparison *out, Error *e) {
    CompareSide one = {0}, two = {0};
    bool ok = compare_find(a, "none.db", &one, e) && compare_find(b, "none.db", &two, e) &&
              compare_sides(&one, &two, absolute, out, e);
    store_close(one.store);
    store_close(two.store);
    return ok;
}

static bool compare(const char *a, const char *b, Comparison *out, Error *e) {
    return compare_by(false, a, b, out, e);
}

static void judged(const Comparison *c, Judgement want) {
    Judgement got = compare_judge(&c->all, 0.02, c->count);
    if (got != want)
        fail_msg("%.3f [%.3f, %.3f]: wanted %s, got %s", c->all.value, c->all.interval.low,
                 c->all.interval.high, compare_word(want), compare_word(got));
}

static void near(double want, double got) {
    if (!(fabs(got / want - 1) < 0.01)) fail_msg("wanted %.4f, got %.4f", want, got);
}

static int set_up(void **state) {
    if (folder_setup(state)) return -1;
    const Made plain = {.machine = 1, .method = 1, .dataset = "d"};
    Made quick = plain, busy = plain, some = plain, all = plain, half = plain, lost = plain, moved = plain;
    quick.method = 0.8;
    busy.machine = 2.1;
    some.flagged = 11;
    all.machine = 2, all.method = 1.5, all.first = all.flagged = 1; // long steps suffer more
    half.first = PROMPTS / 2;
    lost.diverged = true;
    moved.path = "there";
    make_store(folder_path(*state, "base.db"), &plain, 1);
    make_store(folder_path(*state, "quick.db"), &quick, 2);
    make_store(folder_path(*state, "busy.db"), &busy, 3);
    make_store(folder_path(*state, "some.db"), &some, 4);
    make_store(folder_path(*state, "all.db"), &all, 5);
    make_store(folder_path(*state, "half.db"), &half, 6);
    make_store(folder_path(*state, "lost.db"), &lost, 7);
    make_store(folder_path(*state, "moved.db"), &moved, 8);
    return 0;
}

// Compares speedups: finds a method that became slower, and distinguishes a slower machine.
static void runs(void **state) {
    const char *base = folder_path(*state, "base.db"), *quick = folder_path(*state, "quick.db"),
               *busy = folder_path(*state, "busy.db");
    Comparison c;
    Error e = {0};
    MUST(compare(base, quick, &c, &e));
    assert_int_equal(c.count, POINTS);
    assert_int_equal(c.alone, 0);
    assert_int_equal(c.pairs[0].kind, COMPARED_MACHINE);
    for (int i = 1; i < c.count; i++) {
        assert_int_equal(compare_judge(&c.pairs[i].ratio, 0.02, 2), JUDGED_FASTER);
        assert_int_equal(c.pairs[i].ratio.prompts, PROMPTS);
        near(1.25, c.pairs[i].ratio.value);
        near((i + 1) / 1.2, c.pairs[i].speedup_a);
        near((i + 1) / 1.2 / 0.8, c.pairs[i].speedup_b);
        near(i + 1, c.pairs[i].S_a);
    }
    assert_int_equal(c.all.prompts, PROMPTS); // what several points decoded is one unit
    assert_int_equal(c.all.samples, (POINTS - 1) * PROMPTS * PASSES);
    assert_int_equal(c.machine.samples, PROMPTS * PASSES); // each baseline once
    near(1, c.machine.value);
    compare_release(&c);
    MUST(compare(quick, base, &c, &e));
    judged(&c, JUDGED_SLOWER);
    compare_release(&c);
    MUST(compare(base, busy, &c, &e));
    judged(&c, JUDGED_SAME);
    near(1 / 2.1, c.machine.value);
    near(1 / 2.1, c.pairs[0].ratio.value);
    compare_release(&c);
    MUST(compare_by(true, base, busy, &c, &e));
    judged(&c, JUDGED_SLOWER);
    assert_int_equal(compare_judge(&c.pairs[0].ratio, 0.02, 3), JUDGED_SLOWER);
    compare_release(&c);
}

// A busy machine takes longer for long steps: what is known to be disturbed is left out, and where nothing
// else is there, nothing is sure.
static void disturbed(void **state) {
    const char *base = folder_path(*state, "base.db"), *some = folder_path(*state, "some.db"),
               *all = folder_path(*state, "all.db"), *late = folder_path(*state, "late.db");
    Comparison c;
    Error e = {0};
    MUST(compare(base, some, &c, &e));
    assert_int_equal(c.pairs[1].ratio.disturbed, PASSES);
    assert_int_equal(c.pairs[1].ratio.prompts, PROMPTS - 1);
    assert_string_equal(c.pairs[1].doubt_a, "");
    assert_string_equal(c.pairs[1].doubt_b, "2 of 24 disturbed; 2 of its baseline's 24 disturbed");
    judged(&c, JUDGED_SAME);
    compare_release(&c);
    for (int absolute = 0; absolute < 2; absolute++) {
        MUST(compare_by(absolute, base, all, &c, &e));
        assert_true(c.all.interval.high < 0.9);
        assert_int_equal(c.all.disturbed, c.all.samples);
        judged(&c, JUDGED_UNCLEAR);
        compare_release(&c);
    }
    // Too little would be left of it: all counts.
    make_store(late, &(Made){.machine = 1, .method = 1.5, .dataset = "d", .flagged = 9}, 1);
    MUST(compare(base, late, &c, &e));
    assert_int_equal(c.all.prompts, PROMPTS);
    assert_int_equal(c.all.disturbed, 2 * 3 * PASSES);
    near(1 / 1.5, c.all.value);
    judged(&c, JUDGED_UNCLEAR);
    compare_release(&c);
    // A baseline that nothing was seen to disturb, but that took longer for a step than a method did.
    late = folder_path(*state, "later.db");
    make_store(late, &(Made){.machine = 1, .method = 0.5, .dataset = "d"}, 1);
    MUST(compare(late, base, &c, &e));
    assert_true(c.pairs[1].ratio.doubted && c.all.doubted);
    judged(&c, JUDGED_UNCLEAR);
    compare_release(&c);
}

// Points that were imported alone have absolute times only.
static void without_baselines(void **state) {
    const char *one = folder_path(*state, "one.db"), *two = folder_path(*state, "two.db");
    Comparison c;
    Error e = {0};
    make_store(one, &(Made){.machine = 1, .method = 1, .dataset = "d", .alone = true}, 1);
    make_store(two, &(Made){.machine = 1.3, .method = 1, .dataset = "d", .alone = true}, 2);
    MUST(compare(one, two, &c, &e));
    assert_int_equal(c.kind, COMPARED_TIME);
    assert_int_equal(c.machine.samples, 0);
    assert_true(isnan(c.pairs[1].speedup_a));
    near(1 / 1.3, c.all.value);
    judged(&c, JUDGED_SLOWER);
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
    near(3 / 1.2, c.pairs[0].ratio.value); // over the baseline itself
    assert_string_equal(c.pairs[0].label_a, "point1");
    assert_int_equal(c.machine.samples, 0); // of the same run
    compare_release(&c);
    snprintf(b, sizeof b, "%s:1/7", folder_path(*state, "base.db"));
    assert_false(compare(a, b, &c, &e));
    assert_non_null(strstr(e.text, "has no such point"));
}

// What is the same by content is paired wherever it lies; what is not, is not, whatever it is called.
static void other_content(void **state) {
    const char *base = folder_path(*state, "base.db"), *other = folder_path(*state, "other.db");
    Comparison c;
    Error e = {0};
    MUST(compare(base, folder_path(*state, "moved.db"), &c, &e));
    assert_int_equal(c.count, POINTS);
    judged(&c, JUDGED_SAME);
    compare_release(&c);
    make_store(other, &(Made){.machine = 1, .method = 1, .dataset = "d", .model = "n"}, 4);
    assert_false(compare(base, other, &c, &e));
    other = folder_path(*state, "another.db");
    make_store(other, &(Made){.machine = 1, .method = 1, .dataset = "another"}, 4);
    assert_false(compare(base, other, &c, &e));
    assert_non_null(strstr(e.text, "no prompt is on both sides"));
    MUST(compare(base, folder_path(*state, "half.db"), &c, &e));
    assert_int_equal(c.all.prompts, PROMPTS / 2);
    judged(&c, JUDGED_UNCLEAR); // too few
    compare_release(&c);
    MUST(compare(base, folder_path(*state, "lost.db"), &c, &e));
    for (int i = 0; i < c.count; i++) assert_int_equal(c.pairs[i].lost_text, i == 1);
    compare_release(&c);
    assert_false(compare(base, "nothing", &c, &e));
}

static void run_in(const char *folder, const char *db, const char *model, const char *data,
                   const char *template) {
    Child c;
    Text config = {0};
    text_printf(
        &config,
        "name: moved\nmodels: [{name: m, target: %s}]\ndatasets: [{name: own, path: %s, template: %s}]\n"
        "hardware: {device: 'null'}\ngeneration: {max_tokens: 4}\nmethods: [autoregressive, jacobi]\n"
        "measurement: {passes: 1, warmup: 0}\n",
        model, data, template);
    scratch_write(folder, "x.yaml", text_get(&config), config.length);
    CHILD_OUTPACE(&c, folder, 0, "run", "x.yaml", "--db", db);
    child_release(&c);
    text_release(&config);
}

// By the real program: the same bytes at other paths are the same points, other bytes under one name are not.
static void moved_files(void **state) {
    static const char HERE[] = "one\ntwo\n", OTHER[] = "one\nthree\n";
    static const struct {
        const char *b;
        int code;
    } ROWS[] = {{"there.db", 0}, {"edited.db", 2}, {"trained.db", 2}, {"framed.db", 2}};
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    const char *words[] = {
        "sh", "-c", "mkdir sub && cp -r tiny sub/copy && cp -r tiny edited && echo >>edited/config.json",
        NULL};
    child_run(&c, *state, NULL, words);
    assert_int_equal(c.code, 0);
    child_release(&c);
    scratch_write(*state, "own.txt", HERE, sizeof HERE - 1);
    scratch_write(folder_path(*state, "sub"), "mine.txt", HERE, sizeof HERE - 1);
    run_in(*state, "here.db", "tiny", "own.txt", "vicuna");
    run_in(*state, "there.db", "sub/copy", "sub/mine.txt", "vicuna");
    run_in(*state, "framed.db", "tiny", "own.txt", "llama-2");
    run_in(*state, "trained.db", "edited", "own.txt", "vicuna");
    scratch_write(*state, "own.txt", OTHER, sizeof OTHER - 1);
    run_in(*state, "edited.db", "tiny", "own.txt", "vicuna");
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        CHILD_OUTPACE(&c, *state, ROWS[i].code, "compare", "here.db", ROWS[i].b);
        if (ROWS[i].code == 0 && strstr(text_get(&c.out), "one side only"))
            fail_msg("wanted all points paired:\n%s", text_get(&c.out));
        if (ROWS[i].code == 0) assert_non_null(strstr(text_get(&c.out), "jacobi, own"));
        child_release(&c);
    }
}

// An older program wrote the path into the hash of a user's own file, as into those of its points: these
// pair.
static void of_an_older_program(void **state) {
    const char *base = folder_path(*state, "base.db"), *old = folder_path(*state, "old.db");
    Comparison c;
    Error e = {0};
    make_store(old, &(Made){.machine = 1, .method = 1, .dataset = "d"}, 7);
    Store *s = store_open(old, STORE_WRITE, NULL, &e);
    MUST(s);
    MUST(sql_script(s, "UPDATE content SET hash = 'd of here' WHERE kind = 'dataset'", &e));
    store_close(s);
    MUST(compare(old, base, &c, &e));
    assert_int_equal(c.count, POINTS);
    compare_release(&c);
}

// For people and scripts: the exit code, and the lines about the machine.
static void said(void **state) {
    static const struct {
        const char *b, *flag, *want;
        int code;
    } ROWS[] = {
        {"busy.db", NULL, "\nno difference; B's speedups are 0.99", 0},
        {"busy.db", NULL, "\nthe machine changed; a token of the baselines took 2.0", 0},
        {"busy.db", "--absolute", "\nB is slower; by absolute times B is 0.4", 1},
        {"all.db", NULL, "\nno clear difference: something disturbed 44 of 44 samples; B's speedups are 0.6",
         0},
        {"some.db", NULL, "\n4 of 48 samples are left out", 0},
        {"all.db", NULL, "  disturbed\n", 0},
        {"all.db", NULL, ", d  22/22\n", 0},
        {"half.db", NULL, "\nno clear difference: fewer than ten prompts", 0},
        {"lost.db", NULL, "ITS TEXT IS NOT THE BASELINE'S ANY MORE", 1},
        {"quick.db", NULL, "\nB is faster; B's speedups are 1.2", 0},
        {"new.db", NULL, "\nthe machine changed, or the program did; a token of the baselines took 1.3", 0},
        {"moved.db", NULL, "\nthe machine did not change; a token of the baselines took ", 0},
    };
    make_store(folder_path(*state, "p.db"),
               &(Made){.machine = 1, .method = 1, .dataset = "d", .program = "p"}, 1);
    make_store(folder_path(*state, "new.db"),
               &(Made){.machine = 1.3, .method = 1, .dataset = "d", .program = "q"}, 8);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Child c;
        child_outpace(&c, *state, ROWS[i].code,
                      (const char *const[]){"compare", "p.db", ROWS[i].b, ROWS[i].flag, NULL});
        if (!strstr(text_get(&c.out), ROWS[i].want))
            fail_msg("%s: wanted '%s' in:\n%s", ROWS[i].b, ROWS[i].want, text_get(&c.out));
        child_release(&c);
    }
}

// The second point accepts 1 of a step's tokens, the third 2, and outputs have 12: of their steps two begin at
// the same token. `change`: of the store, before.
static void accepted(const char *path, const char *change, Acceptance *out) {
    Error e = {0};
    int64_t two, three;
    Store *s = store_open(path, STORE_WRITE, NULL, &e);
    MUST(s);
    if (change) MUST(sql_script(s, change, &e));
    MUST(rows_one_int(s, "SELECT id FROM point WHERE number = ?1", 2, &two, &e));
    MUST(rows_one_int(s, "SELECT id FROM point WHERE number = ?1", 3, &three, &e));
    MUST(acceptance_compare(s, two, s, three, out, &e));
    store_close(s);
}

static void step_by_step(void **state) {
    const char *path = folder_path(*state, "steps.db");
    enum { SAMPLES = PROMPTS * PASSES };
    Acceptance x;
    make_store(path, &(Made){.machine = 1, .method = 1, .dataset = "d"}, 1);
    accepted(path, NULL, &x);
    assert_int_equal(x.samples, SAMPLES);
    assert_int_equal(x.all.steps, 2 * SAMPLES);
    assert_int_equal(x.all.equal, 0);
    assert_int_equal(x.places[0].steps, 2 * SAMPLES);
    near(1, x.more);
    near(1, x.interval.low);
    assert_int_equal(x.least[0][0], 2 * SAMPLES);
    assert_int_equal(x.least[1][0], 0);
    assert_int_equal(x.least[1][1], 2 * SAMPLES);
    assert_int_equal(x.first_count, SAMPLES);
    assert_int_equal(x.first[1].pass, 1);
    assert_int_equal(x.first[1].accepted_b, 2);
    acceptance_release(&x);
    // Their texts part at the sixth token: the steps that begin there judge guesses by another text.
    accepted(path,
             "INSERT INTO output (id, hash, ids, tokens) VALUES (8, '8', zeroblob(48), 12), (9, '9', "
             "CAST(zeroblob(24) || x'01' || zeroblob(23) AS BLOB), 12);"
             "UPDATE sample SET output_id = iif((SELECT number FROM point WHERE id = point_id) = 3, 9, 8)",
             &x);
    assert_int_equal(x.parted, SAMPLES);
    assert_int_equal(x.all.steps, SAMPLES);
    acceptance_release(&x);
    // An imported histogram: steps by their accepted tokens.
    accepted(path, "UPDATE run SET kind = 'import'; UPDATE step SET accepted = 3 WHERE number = 3", &x);
    assert_int_equal(x.unordered, SAMPLES);
    assert_int_equal(x.all.steps, 0);
    assert_true(isnan(x.more));
    acceptance_release(&x);
}

// As it is printed: what B accepts more, and where.
static void accepted_said(void **state) {
    static const char *const WANT[] = {
        "1.000  [1.000, 1.000]  point3, d; A: point2; no step differs in 0 of 24 samples",
        "\nbegin at token 0 to 15 ", "\naccept 2 or more ", "\nd, prompt 0 ", "\nand 14 more (--json)"};
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "compare", "base.db:1/2", "base.db:1/3", "--acceptance");
    for (size_t i = 0; i < sizeof WANT / sizeof *WANT; i++)
        if (!strstr(text_get(&c.out), WANT[i])) fail_msg("wanted '%s' in:\n%s", WANT[i], text_get(&c.out));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 1, "compare", "base.db:1/3", "base.db:1/2", "--acceptance");
    child_release(&c);
}

// A side that is not found holds no store: who asked for it closes what it has.
static void no_such_run(void **state) {
    const char *base = folder_path(*state, "base.db");
    static const char *const WHICH[] = {"99", "nothing", "nothing.db:1", "99/1"};
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
        double low, value, high;
        int judgements;
        Judgement want;
    } rows[] = {
        {0.985, 1.000, 1.015, 1, JUDGED_SAME},      {0.985, 1.005, 1.025, 1, JUDGED_UNCLEAR},
        {1.005, 1.010, 1.015, 1, JUDGED_SAME}, // different, but by nothing that matters
        {1.005, 1.050, 1.100, 1, JUDGED_UNCLEAR},   {1.031, 1.060, 1.090, 1, JUDGED_FASTER},
        {1.031, 1.060, 1.090, 100, JUDGED_UNCLEAR}, // of a hundred, some are that far by chance
        {0.900, 0.930, 0.965, 1, JUDGED_SLOWER},    {0.900, 0.950, 0.990, 1, JUDGED_UNCLEAR},
        {NAN, NAN, NAN, 1, JUDGED_UNCLEAR}, // no time was seen
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Ratio r = {.value = rows[i].value, .prompts = 40, .samples = 40, .calm = true};
        r.interval = (Interval){.low = rows[i].low, .high = rows[i].high};
        if (compare_judge(&r, 0.02, rows[i].judgements) != rows[i].want)
            fail_msg("[%g, %g]: wanted %s", rows[i].low, rows[i].high, compare_word(rows[i].want));
    }
    assert_int_equal(compare_judge(&(Ratio){.value = 2, .calm = true}, 0.02, 1), JUDGED_UNCLEAR);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs),          cmocka_unit_test(disturbed),
        cmocka_unit_test(points),        cmocka_unit_test(without_baselines),
        cmocka_unit_test(other_content), cmocka_unit_test(of_an_older_program),
        cmocka_unit_test(moved_files),   cmocka_unit_test(said),
        cmocka_unit_test(no_such_run),   cmocka_unit_test(judgement),
        cmocka_unit_test(step_by_step),  cmocka_unit_test(accepted_said),
    };
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
