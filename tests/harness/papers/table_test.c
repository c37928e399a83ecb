// A paper's table with made-up stores: when ours is compared with a published number, and the reason when it
// isn't; every format of one table, as in tests/fixtures/tables.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "harness/analysis/estimates.h"
#include "harness/papers/table.h"
#include "tests/support/child.h"
#include "tests/support/filled_store.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// --- a store ---------------------------------------------------------------------------------------------

// What the only method's points are, beside an autoregressive baseline: a run of Table 3's last row, and what
// a case changes of it.
typedef struct Case {
    const char *model, *stand_in, *dtype, *gpu, *dataset, *decoder, *temperature, *compute, *config;
    int prompts, seeds, copies; // copies: of the baseline, beyond the first
} Case;

static const Case PUBLISHED = {.model = "llama2-7b-chat",
                               .dtype = "F16",
                               .gpu = "NVIDIA A100-SXM4-80GB",
                               .dataset = "mt-bench",
                               .decoder = "lookahead:mode=reference,N=5,G=15,W=15,prompt_pool=on",
                               .temperature = "0",
                               .compute = "weights",
                               .config =
                                   "name: x\ntables: [lookahead-table-3]\nchosen: [one, 'two & three']\n",
                               .prompts = 80,
                               .seeds = 1};

static const char TEXT[] = "and the cat sat on the mat, and the dog ran off with her hat"; // 60 bytes

// S of a seed is 2 and a bit, its steps 4 ms each; the baseline's 6 ms.
static bool add_sample(Store *s, int64_t point, int64_t prompt, int64_t attempt, bool baseline, int seed,
                       Error *e) {
    int ids[20] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
    StoreStep steps[20] = {{0}};
    StoreSample x = {
        .point = point, .prompt = prompt, .attempt = attempt, .prompt_tokens = 10, .started = 1.7e9};
    StoreOutput output = {ids, 20, TEXT, NULL, sizeof TEXT - 1, 0.25, false};
    ids[0] = baseline ? 1 : 1000 + seed; // texts of their own, with scores of their own
    int left = 20 - (baseline ? 0 : seed);
    for (; left > 0; x.step_count++) {
        int emitted = baseline || left == 1 ? 1 : 2;
        steps[x.step_count] = (StoreStep){.context = 10,
                                          .rows = 1,
                                          .asked = 1,
                                          .emitted = emitted,
                                          .accepted = emitted - 1,
                                          .pool = -1,
                                          .device_s = -1,
                                          .forward_s = baseline ? 0.006 : 0.004};
        x.decode_s += steps[x.step_count].forward_s;
        left -= emitted;
    }
    x.tokens = 20 - (baseline ? 0 : seed);
    x.prefill_s = 0.01;
    x.prefill_tokens = x.prefill_steps = 1;
    x.steps = steps;
    x.output = &output;
    return store_samples(s, &x, 1, e);
}

static bool add_point(Store *s, const Case *c, int64_t run, StorePoint *p, int seed, int64_t *id, Error *e) {
    char hash[32], number[16];
    snprintf(hash, sizeof hash, "%d", p->number);
    snprintf(number, sizeof number, "%d", seed);
    const StoreParam params[] = {{"hardware", "device", c->gpu ? "cuda" : "cpu"},
                                 {"hardware", "compute", c->compute},
                                 {"generation", "temperature", c->temperature},
                                 {"generation", "seed", number},
                                 {"generation", "max_tokens", "20"}};
    p->hash = hash;
    p->label = p->method;
    p->temperature = strtod(c->temperature, NULL);
    p->params = params;
    p->param_count = sizeof params / sizeof *params;
    return store_point(s, run, p, id, e);
}

static bool fill(Store *s, const Case *c, int64_t *run, Error *e) {
    char *words[] = {"outpace", "run", "x.yaml"}, method[64];
    int64_t attempt, model, dataset, base, prompt;
    StoreRun r = {.hash = "r", .kind = "sweep", .name = "x", .config = c->config, .version = "0.1.0"};
    StoreEnvironment on = {.version = "0.1.0", .cpu = "a processor", .gpu = c->gpu, .cores = 2};
    StoreModel m = {.name = c->model, .hash = "m", .layers = 2, .dtype = c->dtype, .stand_in = c->stand_in};
    StoreDataset d = {.name = c->dataset, .hash = "d"};
    if (!store_run(s, &r, run, NULL, e) || !store_attempt(s, *run, 3, words, &on, &attempt, e) ||
        !store_model(s, &m, &model, e) || !store_dataset(s, &d, &dataset, e))
        return false;
    for (int seed = 0; seed < c->seeds; seed++) {
        int64_t point;
        StorePoint b = {.number = 2 * seed + 1,
                        .model = model,
                        .dataset = dataset,
                        .method = "autoregressive",
                        .decoder = "autoregressive"};
        if (!add_point(s, c, *run, &b, seed, &base, e)) return false;
        snprintf(method, sizeof method, "%.*s", (int)strcspn(c->decoder, ":"), c->decoder);
        StorePoint p = {.number = 2 * seed + 2,
                        .model = model,
                        .dataset = dataset,
                        .method = method,
                        .decoder = c->decoder,
                        .baseline = base,
                        .same_path = base};
        if (!add_point(s, c, *run, &p, seed, &point, e)) return false;
        for (int i = 0; i < c->copies; i++) {
            StorePoint twin = b;
            int64_t id;
            twin.number = 100 + i;
            if (!add_point(s, c, *run, &twin, seed, &id, e) ||
                !store_prompt(s, &(StorePrompt){.dataset = dataset, .name = ""}, &prompt, e) ||
                !add_sample(s, id, prompt, attempt, true, seed, e))
                return false;
        }
        for (int i = 0; i < c->prompts; i++) {
            StorePrompt q = {.dataset = dataset, .number = i, .name = "", .task = "writing"};
            if (!store_prompt(s, &q, &prompt, e) || !add_sample(s, base, prompt, attempt, true, seed, e) ||
                !add_sample(s, point, prompt, attempt, false, seed, e) ||
                !store_score(s, base, 0, prompt, "rouge1", 0.3 + 0.01 * i, e) ||
                !store_score(s, point, 0, prompt, "rouge1", 0.32 + 0.01 * i, e))
                return false;
        }
    }
    return true;
}

// The table of a case; release it.
static void make(void **state, const Case *c, const char *name, Table *out) {
    static int number;
    char file[32];
    int64_t run = 0;
    Error e = {0};
    snprintf(file, sizeof file, "%d.db", number++);
    Store *s = store_open(folder_path(*state, file), STORE_WRITE, NULL, &e);
    if (!s || !store_begin(s, &e) || !fill(s, c, &run, &e) || !store_commit(s, &e)) fail_msg("%s", e.text);
    if (!estimates_ensure(&s, run, ESTIMATES_OF_POINTS, &e) ||
        !table_make(s, run, published_find(name), out, &e))
        fail_msg("%s", e.text);
    if (!table_run_chosen(s, run, out, &e)) fail_msg("%s", e.text);
    store_close(s);
}

// The published row of this name and metric.
static const TableRow *row_of(const Table *t, const char *row, const char *metric) {
    for (size_t i = 0; i < t->row_count; i++)
        if (strcmp(t->rows[i].row, row) == 0 && strcmp(t->rows[i].metric, metric) == 0) return &t->rows[i];
    fail_msg("no row %s of %s", row, metric);
    return NULL;
}

static void near(double want, double got) {
    if (!(fabs(want - got) < 1e-9)) fail_msg("wanted %.12g, got %.12g", want, got);
}

// --- when a number is held against another ---------------------------------------------------------------

static void compared(void **state) {
    Table t;
    make(state, &PUBLISHED, "lookahead-table-3", &t);
    const TableRow *s = row_of(&t, "(9)", "S"), *speedup = row_of(&t, "(9)", "speedup");
    assert_string_equal(s->why_not, "");
    assert_string_equal(s->stand_in, "");
    near(21.0 / 11, s->ours.value); // with prefill and its token
    near(2, s->own.value);
    near(21.0 / 11 - 2.05, s->difference.value);
    near((20 * 0.006 + 0.01) / (10 * 0.004 + 0.01), speedup->ours.value);
    near(3, speedup->own.value);
    assert_string_equal(s->doubt, ""); // no disturbance changes S
    assert_string_equal(speedup->doubt, "speedup is 1.50 times S: its baseline was disturbed");
    near(6, s->text.bytes_per_step);
    near(2, s->text.S);
    near(1, s->text.rows_per_step);
    near(0.25, s->text.repeated);
    near(2, s->text.calm);
    assert_string_equal(row_of(&t, "(1)", "S")->why_not, "");
    assert_string_equal(row_of(&t, "(8)", "S")->why_not, "not measured in this run");
    assert_int_equal(t.row_count, 18); // nothing is left that the paper has not
    assert_int_equal(t.chosen_count, 2);
    assert_string_equal(t.chosen[1], "two & three");
    table_release(&t);
}

static void not_compared(void **state) {
    Case cases[] = {PUBLISHED, PUBLISHED, PUBLISHED, PUBLISHED, PUBLISHED,
                    PUBLISHED, PUBLISHED, PUBLISHED, PUBLISHED};
    static const char *const WHY[] = {"model llama2-7b, not LLaMA-2-7B-Chat",
                                      "stand-in (inflated)",
                                      "BF16, not F16",
                                      "F32, not F16",
                                      "NVIDIA H100, not A100 80GB",
                                      "a processor, not A100 80GB",
                                      "dataset chat, not mt-bench",
                                      "79 prompts, not 80",
                                      "model reference, not LLaMA-2-7B-Chat"};
    cases[0].model = "llama2-7b";
    cases[1].stand_in = "inflated";
    cases[2].dtype = "BF16";
    cases[3].compute = "f32";
    cases[4].gpu = "NVIDIA H100";
    cases[5].gpu = NULL;
    cases[6].dataset = "chat";
    cases[7].prompts = 79;
    cases[8].model = "reference";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Table t;
        make(state, &cases[i], "lookahead-table-3", &t);
        const TableRow *r = row_of(&t, "(9)", "S");
        if (strcmp(r->why_not, WHY[i]) != 0) fail_msg("wanted '%s', got '%s'", WHY[i], r->why_not);
        assert_true(isnan(r->difference.value));
        near(21.0 / 11, r->ours.value);
        assert_true((*r->stand_in != 0) == (i == 1) && r->other_model == (i == 0 || i == 8));
        table_release(&t);
    }
}

// Another setting of a method comes below if the paper has several; if it has one, they're matched.
static void other_settings(void **state) {
    Case c = PUBLISHED;
    Table t;
    c.decoder = "lookahead:mode=reference,N=5,G=15,W=14,prompt_pool=on";
    make(state, &c, "lookahead-table-3", &t);
    assert_string_equal(row_of(&t, "(9)", "S")->why_not, "not measured in this run");
    assert_string_equal(t.rows[t.row_count - 1].row, "ours");
    assert_string_equal(t.rows[t.row_count - 1].published, "");
    assert_int_equal(t.row_count, 20);
    table_release(&t);
    c.decoder = "kangaroo:eta=0.5";
    c.dataset = "spec-bench";
    c.model = "vicuna-7b";
    c.gpu = "Tesla V100-SXM2-32GB";
    make(state, &c, "kangaroo-table-1", &t);
    const TableRow *r = row_of(&t, "Kangaroo", "CR");
    assert_string_equal(r->why_not, "not measured in this run"); // its first row is of translation
    for (size_t i = 0; i < t.row_count; i++)
        if (strcmp(t.rows[i].row, "Kangaroo") == 0 && strcmp(t.rows[i].task, "mt-bench") == 0 &&
            strcmp(t.rows[i].model, "Vicuna-7B") == 0)
            r = &t.rows[i];
    assert_string_equal(r->why_not, "eta=0.5, not 0.6");
    table_release(&t);
}

// Rows that are one model with this and that beside it: the run's models are called as the rows are. All of
// them stand in the table.
static void named_by_rows(void **state) {
    Case c = PUBLISHED;
    Table t;
    c.decoder = "kangaroo:gamma=6,eta=0.6";
    c.dataset = "spec-bench";
    c.gpu = "Tesla V100";
    c.model = "MLP Only";
    make(state, &c, "kangaroo-table-2", &t);
    assert_string_equal(row_of(&t, "MLP Only", "speedup")->why_not,
                        "model MLP Only, not Vicuna-7B; 80 prompts, not 480");
    assert_string_equal(row_of(&t, "Kangaroo", "speedup")->why_not, "not measured in this run");
    table_release(&t);
    c.model = "Vicuna-7B, MLP only";
    make(state, &c, "kangaroo-table-2", &t);
    assert_string_equal(row_of(&t, "MLP Only", "speedup")->why_not, "80 prompts, not 480");
    table_release(&t);
    c.model = "l = 4";
    make(state, &c, "kangaroo-figure-3a", &t);
    assert_string_equal(t.rows[t.row_count - 1].our_model, "l = 4");
    assert_string_equal(t.rows[t.row_count - 1].row, "ours");
    table_release(&t);
}

// Sampled texts need five seeds: then the difference has an interval, by Student's t.
static void sampled(void **state) {
    Case c = PUBLISHED;
    Table t;
    c.dataset = "cnndm";
    c.temperature = "1";
    c.decoder = "lookahead:mode=reference,W=15,N=5,G=15";
    c.seeds = 4;
    make(state, &c, "lookahead-table-2", &t);
    assert_string_equal(row_of(&t, "LA. at 1.0", "S")->why_not, "4 seeds of 5 at least");
    assert_true(isnan(row_of(&t, "LA. at 1.0", "S")->ours.low));
    assert_string_equal(row_of(&t, "LA. at 0.0", "S")->why_not, "not measured in this run");
    table_release(&t);
    c.seeds = 5;
    make(state, &c, "lookahead-table-2", &t);
    const TableRow *r = row_of(&t, "LA. at 1.0", "S");
    // Seed s emits 20 - s tokens in half as many steps, rounded up; prefill and its token count.
    double values[] = {21.0 / 11, 20.0 / 11, 19.0 / 10, 18.0 / 10, 17.0 / 9}, mean = 0, square = 0;
    for (int i = 0; i < 5; i++) mean += values[i] / 5;
    for (int i = 0; i < 5; i++) square += (values[i] - mean) * (values[i] - mean) / 4;
    assert_string_equal(r->why_not, "");
    assert_int_equal(r->seeds, 5);
    near(mean - 1.64, r->difference.value);
    near(mean - 1.64 - 2.7764451051977987 * sqrt(square / 5), r->difference.low);
    table_release(&t);
}

// ROUGE as a percentage; above the baseline's over the same prompts, so that what differs between prompts
// does not widen the interval.
static void quality(void **state) {
    Case c = PUBLISHED;
    Table t;
    c.dataset = "cnndm";
    c.decoder = "lookahead:mode=reference,W=15,N=5,G=15";
    c.prompts = 11;
    make(state, &c, "lookahead-table-2", &t);
    const TableRow *r = row_of(&t, "LA. at 0.0", "ROUGE-1");
    near(37, r->ours.value);
    near(37 - 37.79, r->difference.value);
    near(37 - 2.2281388519649385 * sqrt(11 / 11.0), r->ours.low); // deviation sqrt(11) of 11 values
    near(2, r->above.value);
    assert_true(fabs(r->above.low - 2) < 1e-6 && fabs(r->above.high - 2) < 1e-6);
    assert_true(isnan(row_of(&t, "LA. at 0.0", "S")->above.value));
    table_release(&t);
}

// A method that keeps state has a baseline of its own: equal points are one, and no two seeds.
static void copies(void **state) {
    Case c = PUBLISHED;
    Table t;
    c.prompts = 3;
    c.copies = 2;
    make(state, &c, "lookahead-table-3", &t);
    assert_int_equal(row_of(&t, "(1)", "S")->seeds, 1);
    assert_int_equal(t.row_count, 18);
    table_release(&t);
}

// --- choices ---------------------------------------------------------------------------------------------

static void run_is_found(void **state) {
    Case c = PUBLISHED;
    Error e = {0};
    int64_t run = 0, found = 0;
    Store *s = store_open(folder_path(*state, "find.db"), STORE_WRITE, NULL, &e);
    c.prompts = 2;
    if (!s || !fill(s, &c, &run, &e)) fail_msg("%s", e.text);
    assert_true(table_run_find(s, "lookahead-table-3", "sweep", &found, &e));
    assert_int_equal(found, run);
    assert_true(table_run_find(s, "x", "sweep", &found, &e)); // by the run's own name
    assert_int_equal(found, run);
    assert_true(table_run_find(s, "lookahead-table-2", "sweep", &found, &e));
    assert_int_equal(found, 0);
    assert_true(table_run_find(s, "ngrammys-figure-1", "surface", &found, &e));
    assert_int_equal(found, 0);
    store_close(s);
}

// --- surfaces --------------------------------------------------------------------------------------------

// A surface of one context whose step of one row takes `ms`, and one of two rows twice that.
static bool add_surface(Store *s, const char *name, bool off, double ms, int64_t *run, Error *e) {
    char *on[] = {"surface", "m"}, *without[] = {"surface", "m", "--sliding-window", "off"};
    StoreRun r = {.hash = off ? "off" : "on", .kind = "surface", .name = name, .version = "0.1.0"};
    StoreEnvironment machine = {.version = "0.1.0", .cpu = "a processor"};
    StoreModel m = {.name = "m", .hash = "m", .layers = 2, .shape = "{\"window\":4096}"};
    int64_t attempt, model;
    if (!store_run(s, &r, run, NULL, e) ||
        !store_attempt(s, *run, off ? 4 : 2, off ? without : on, &machine, &attempt, e) ||
        !store_model(s, &m, &model, e))
        return false;
    StoreSurface rows[2];
    for (int i = 0; i < 2; i++)
        rows[i] = (StoreSurface){.attempt = attempt,
                                 .model = model,
                                 .kind = "step",
                                 .device = "cpu",
                                 .layout = "batch",
                                 .k = i + 1,
                                 .w = 0,
                                 .a = -1,
                                 .b = -1,
                                 .rows = i + 1,
                                 .head_rows = i + 1,
                                 .context = 16000,
                                 .samples = 3,
                                 .mean_s = 1e-3 * ms * (i + 1),
                                 .median_s = 1e-3 * ms * (i + 1),
                                 .slowdown = i + 1,
                                 .low_s = -1,
                                 .high_s = -1,
                                 .slowdown_low = -1,
                                 .slowdown_high = -1,
                                 .drift = off ? 0.8 : 1};
    return store_surface(s, rows, 2, e);
}

static void surfaces(void **state) {
    Error e = {0};
    int64_t run = 0, found = 0;
    Table t;
    Store *s = store_open(folder_path(*state, "surface.db"), STORE_WRITE, NULL, &e);
    if (!s || !add_surface(s, "mistral-window", false, 2, &run, &e)) fail_msg("%s", e.text);
    assert_true(table_make(s, run, published_find("mistral-window"), &t, &e));
    assert_string_equal(t.rows[0].why_not, "not measured"); // the other half is missing
    assert_int_equal(t.row_count, 1);
    table_release(&t);
    if (!add_surface(s, "mistral-window", true, 7, &run, &e)) fail_msg("%s", e.text);
    assert_true(table_run_find(s, "mistral-window", "named surface", &found, &e));
    assert_int_equal(found, run);
    assert_true(table_make(s, run, published_find("mistral-window"), &t, &e));
    assert_string_equal(t.rows[0].why_not, "the paper names no device");
    assert_string_equal(t.rows[1].row, "a step at 16000");
    near(3.5, t.rows[1].ours.value);
    assert_string_equal(t.rows[1].stand_in, "");
    assert_true(t.rows[1].other_model);
    table_release(&t);
    assert_true(table_run_find(s, "mistral-cache", "named surface", &found, &e));
    assert_int_equal(found, 0);
    assert_true(table_make(s, run, published_find("mistral-cache"), &t, &e));
    near(16000.0 / 4096, t.rows[1].ours.value);
    table_release(&t);
    assert_true(table_run_find(s, "ngrammys-figure-1", "surface", &found, &e)); // the newest will do
    assert_int_equal(found, run);
    assert_true(table_make(s, run, published_find("ngrammys-figure-1"), &t, &e));
    assert_int_equal(t.row_count, 3);
    assert_string_equal(t.rows[2].row, "context 16000, k 2, w 0");
    near(2, t.rows[2].ours.value);
    assert_string_equal(t.rows[2].our_method, "batch, the machine changed meanwhile");
    table_release(&t);
    store_close(s);
}

// --- every format ----------------------------------------------------------------------------------------

enum { POINTS = 12, PROMPTS = 8 };

static void filled(void **state, const char *file, int passes, Table *out) {
    FilledStore f;
    Error e = {0};
    if (!filled_open(&f, folder_path(*state, file), NULL, POINTS, PROMPTS, &e) ||
        !filled_add_all(&f, passes, &e) || !store_flag(f.store, f.points[2], 0, f.prompts[3], FLAG_LOAD, &e))
        fail_msg("%s", e.text);
    if (!estimates_ensure(&f.store, f.run, ESTIMATES_OF_POINTS, &e) ||
        !table_make(f.store, f.run, published_find("ngrammys-table-1"), out, &e))
        fail_msg("%s", e.text);
    out->date = "2026-01-01"; // of the day it was made
    filled_close(&f);
}

// S is 2.6625 in the first pass of point 11 and 2.5125 in the second: half their difference times sqrt 2.
static void passes_have_a_spread(void **state) {
    Table one, two;
    filled(state, "one.db", 1, &one);
    filled(state, "two.db", 2, &two);
    int found = 0;
    for (size_t i = 0; i < two.row_count; i++) {
        const TableRow *r = &two.rows[i];
        assert_int_equal(one.rows[i].passes.count, 0);
        if (r->point != 11 || strcmp(r->measure, "S") != 0) continue;
        assert_int_equal(r->passes.count, 2);
        assert_true(fabs(r->passes.mean - 2.5875) < 1e-12);
        assert_true(fabs(r->passes.deviation - 0.15 / sqrt(2)) < 1e-9);
        found++;
    }
    assert_true(found > 0);
    table_release(&one);
    table_release(&two);
}

static void formats(void **state) {
    const char *root = getenv("OUTPACE_ROOT"), *golden = getenv("OUTPACE_GOLDEN");
    char folder[512], file[64];
    Table t, changed;
    Error e = {0};
    snprintf(folder, sizeof folder, "%s/tests/fixtures/tables", root ? root : ".");
    filled(state, "plain.db", 1, &t);
    filled(state, "changed.db", 2, &changed);
    for (int i = 0; i < TABLE_FORMATS; i++) {
        Text text = {0}, other = {0};
        size_t size;
        snprintf(file, sizeof file, "ngrammys-table-1.%s", table_format_names[i]);
        if (!table_print(&t, (TableFormat)i, 0, &text) || !table_print(&changed, (TableFormat)i, 0, &other))
            fail_msg("%s", e.text);
        if (golden && strcmp(golden, "write") == 0) scratch_write(folder, file, text_get(&text), text.length);
        char *wanted = scratch_read(folder, file, &size);
        assert_string_equal(text_get(&text), wanted);
        assert_string_not_equal(text_get(&other), wanted);
        mem_free(wanted);
        text_release(&text);
        text_release(&other);
    }
    table_release(&t);
    table_release(&changed);
}

// What was asked for is said, not how it was gone on with; and a run that did not come to its end says so.
static void resumed(void **state) {
    char *words[] = {"resume", "1"};
    const StoreEnvironment on = {.version = "0.1.0", .cpu = "Zen 4", .cores = 2};
    FilledStore f;
    Table t;
    Error e = {0};
    static const struct {
        const char *result, *run;
    } STARTS[] = {
        {"interrupted", "run 1, filled, interrupted, outpace 0.1.0"},
        {"done", "run 1, filled, outpace 0.1.0"},
        {NULL, "run 1, filled, outpace 0.1.0"}, // started again, though it was done
    };
    if (!filled_open(&f, folder_path(*state, "a.db"), NULL, 2, 2, &e) || !filled_add_all(&f, 1, &e))
        fail_msg("%s", e.text);
    for (size_t i = 0; i < sizeof STARTS / sizeof *STARTS; i++) {
        int64_t attempt;
        if (!store_attempt(f.store, f.run, 2, words, &on, &attempt, &e) ||
            (STARTS[i].result && !store_attempt_end(f.store, attempt, STARTS[i].result, &e)) ||
            !table_make(f.store, f.run, published_find("ngrammys-table-1"), &t, &e))
            fail_msg("%s", e.text);
        assert_string_equal(t.run, STARTS[i].run);
        assert_string_equal(t.command, "outpace run a.yaml");
        table_release(&t);
    }
    filled_close(&f);
}

#define AWKWARD "a|b\"c,d\\e&f%g_h{i}<j>$k\xff\n\x1b[31m*l*---m"

static void holds(const Text *text, const char *want) {
    if (!strstr(text_get(text), want)) fail_msg("wanted '%s' in:\n%s", want, text_get(text));
}

// Foreign texts come out as themselves, and break no table.
static void awkward(void **state) {
    Case c = PUBLISHED;
    Table t;
    Error e = {0};
    Text texts[TABLE_FORMATS] = {{0}};
    c.prompts = 2;
    c.model = AWKWARD;
    make(state, &c, "lookahead-table-3", &t);
    for (int i = 0; i < TABLE_FORMATS; i++)
        if (!table_print(&t, (TableFormat)i, 0, &texts[i])) fail_msg("%s", e.text);
    holds(&texts[TABLE_TEXT], "a|b\"c,d\\e&f%g_h{i}<j>$k??"
                              "?[31m*l*---m (not the paper's)");
    holds(&texts[TABLE_MD], "| a\\|b\"c,d\\\\e&amp;f%g\\_h\\{i\\}&lt;j&gt;\\$k");
    holds(&texts[TABLE_CSV], "\"a|b\"\"c,d\\e&f%g_h{i}<j>$k\xff\n\x1b[31m*l*---m\"");
    holds(&texts[TABLE_LATEX],
          "a\\textbar{}b\"c,d\\textbackslash{}e\\&f\\%g\\_h\\{i\\}\\textless{}j\\textgreater{}\\$k");
    holds(&texts[TABLE_LATEX], "*l*-{}-{}-m (not the paper's)");
    json_t *object = json_loads(text_get(&texts[TABLE_JSON]), 0, NULL);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "name")), "lookahead-table-3");
    assert_int_equal(json_array_size(json_object_get(object, "rows")), t.row_count);
    json_decref(object);
    for (int i = 0; i < TABLE_FORMATS; i++) text_release(&texts[i]);
    table_release(&t);
}

// --- the command -----------------------------------------------------------------------------------------

static void command(void **state) {
    Child c = {0};
    FilledStore f;
    Error e = {0};
    if (!filled_open(&f, folder_path(*state, "a.db"), NULL, 3, 4, &e) || !filled_add_all(&f, 1, &e))
        fail_msg("%s", e.text);
    filled_close(&f);
    CHILD_OUTPACE(&c, *state, 0, "table");
    assert_non_null(strstr(text_get(&c.out), "mistral-window"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "table", "ngrammys-table-1", "--run", "1", "--db", "a.db", "--format",
                  "csv");
    assert_int_equal(strncmp(text_get(&c.out), "row,model,", 10), 0);
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "table", "ngrammys-table-1", "--db", "a.db");
    assert_non_null(
        strstr(text_get(&c.err), "run 'outpace run configs/ngrammys-table-1.yaml --scale smoke --db a.db'"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "table", "ngrammys-table-2", "--db", "a.db");
    assert_non_null(strstr(text_get(&c.err), "did you mean 'ngrammys-table-1'?"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "table", "ngrammys-table-1", "--db", "a.db", "--format", "xml");
    assert_non_null(strstr(text_get(&c.err), "text, md, csv, latex or json"));
    child_release(&c);
}

static void train_by_word(const char *folder, const char *name, const char *tokens) {
    size_t size;
    char path[64], *config;
    Text text = {0};
    snprintf(path, sizeof path, "%s/config.json", name);
    config = scratch_read(folder, path, &size);
    text_add(&text, config, (size_t)(strrchr(config, '}') - config));
    text_printf(&text, ", \"outpace_train\": {\"tokens\": %s}}", tokens);
    scratch_write(folder, path, text_get(&text), text.length);
    text_release(&text);
    mem_free(config);
}

// Parameters of an adapter and of heads are counted; that they were not trained alike is the table's first
// line.
static void adapters(void **state) {
    static const char CONFIG[] =
        "name: k\nmodels:\n  - {name: Kangaroo, target: tiny, adapter: exit}\n"
        "  - {name: Medusa, target: tiny, heads: heads}\ndatasets: [{name: chat, limit: 1}]\n"
        "hardware: {device: cpu, threads: 1}\ngeneration: {max_tokens: 4}\nmethods:\n"
        "  - {name: kangaroo, exclude where: model == Medusa}\n  - {name: medusa, exclude where: model == "
        "Kangaroo}\n"
        "measurement: {warmup: 0, passes: 1}\n";
    static const char *const MADE[][2] = {{"exit", "kangaroo"}, {"heads", "medusa"}};
    static const struct {
        const char *exit, *heads, *first;
    } CASES[] = {
        {NULL, NULL,
         "not trained alike, so what differs may be the training's: Kangaroo (adapter) not known, Medusa "
         "(heads) not "
         "known\nKangaroo, Table 2"},
        {"3000000", "5000000",
         "Kangaroo (adapter) 3 million tokens, Medusa (heads) 5 million tokens\nKangaroo, Table 2"},
        {"3000000", "3000000", "Kangaroo, Table 2"},
    };
    Child c = {0};
    scratch_write(*state, "k.yaml", CONFIG, sizeof CONFIG - 1);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    for (int i = 0; i < 3; i++) {
        char db[] = "0.db";
        db[0] += (char)i;
        for (int k = 0; k < 2; k++) {
            CHILD_OUTPACE(&c, *state, 0, "model", "adapter", "tiny", MADE[k][0], "--exit-layer", "1",
                          "--variant", MADE[k][1], "--heads", "3", "--force");
            child_release(&c);
        }
        if (CASES[i].exit) train_by_word(*state, "exit", CASES[i].exit);
        if (CASES[i].heads) train_by_word(*state, "heads", CASES[i].heads);
        CHILD_OUTPACE(&c, *state, 0, "run", "k.yaml", "--db", db);
        child_release(&c);
        CHILD_OUTPACE(&c, *state, 0, "table", "kangaroo-table-2", "--run", "k", "--db", db);
        const char *first = strstr(text_get(&c.out), CASES[i].first);
        if (!first || (i == 2 && first != text_get(&c.out)))
            fail_msg("wanted '%s', got '%s'", CASES[i].first, text_get(&c.out));
        child_release(&c);
        CHILD_OUTPACE(&c, *state, 0, "table", "kangaroo-table-2", "--run", "k", "--db", db, "--format",
                      "csv");
        if (strstr(text_get(&c.out), "not a measurement") ||
            !strstr(text_get(&c.out), "\"parameters, M\",parameters,67,"))
            fail_msg("%s", text_get(&c.out));
        child_release(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(compared, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(not_compared, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(other_settings, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(named_by_rows, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(sampled, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(quality, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(copies, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(run_is_found, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(surfaces, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(passes_have_a_spread, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(formats, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(awkward, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(resumed, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(command, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(adapters, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
