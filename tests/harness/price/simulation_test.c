// A store whose passes are known, priced on a made-up machine by hand and by `outpace simulate`.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "harness/price/simulation.h"
#include "tests/support/child.h"
#include "tests/support/filled_store.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <jansson.h>
#include <sqlite3.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 3, PROMPTS = 8, PASSES = 2 };

static const StepModel MODEL = {.layers = 8, // twice as deep as the model that ran
                                .width = 512,
                                .q_width = 512,
                                .kv_width = 128,
                                .mlp_width = 1408,
                                .vocab = 1000,
                                .weight_bytes = 2,
                                .cache_bytes = 2};

static Pricing pricing(void) {
    Pricing p = {.target = MODEL};
    p.machine = (Hardware){.name = "made up",
                           .bytes_per_s = 1e11,
                           .operations_per_s = 1e13,
                           .memory_bytes = 1e10,
                           .processors = 8,
                           .tile_rows = 64,
                           .tile_columns = 64,
                           .least_rows = 8,
                           .launch_s = 1e-6,
                           .launches = 11};
    hardware_floor(&p.machine);
    p.machine.step_s = 2e-5;
    return p;
}

static void fill(FilledStore *f, const char *folder) {
    Error e = {0};
    assert_true(filled_open(f, folder_path(folder, "a.db"), NULL, POINTS, PROMPTS, &e));
    assert_true(filled_add_all(f, PASSES, &e));
}

static void change(const char *path, const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void assert_near(const char *what, double got, double wanted) {
    if (!(fabs(got - wanted) <= 1e-9 * fabs(wanted)))
        fail_msg("%s: wanted %.17g, got %.17g", what, wanted, got);
}

// Every step of it runs one row through all layers and the head; the store's model has half as many layers.
static void autoregressive_by_hand(void **state) {
    FilledStore f;
    Pricing p = pricing();
    PricedPoint out;
    fill(&f, *state);
    assert_true(priced_point(f.store, f.points[0], &p, &out, NULL));
    assert_int_equal(out.count, PROMPTS / 2 * PASSES); // two turns a prompt
    for (int i = 0; i < out.count; i++) {
        const PricedSample *s = &out.samples[i];
        double passes = 0, prefill = 0;
        for (int turn = 0; turn < 2; turn++) {
            int prompt_tokens = 20 + 2 * s->prompt + turn;
            prefill += recorded_prefill(&p.machine, &MODEL, prompt_tokens - 1);
            for (int k = 0; k < f.steps; k++) {
                RecordedPass pass = {.layers = 8, .rows = 1, .context = prompt_tokens - 1 + k, .count = 1};
                passes += recorded_price(&p.machine, &MODEL, &pass);
                pass.head = true;
                passes += recorded_price(&p.machine, &MODEL, &pass);
            }
        }
        assert_near("passes", s->passes_s, passes);
        assert_near("prefill", s->prefill_s, prefill);
        assert_near("commit", s->commit_s, recorded_commit(&p.machine, &MODEL, s->tokens, s->steps));
        assert_true(s->tokens == 2 * f.steps && s->steps == 2 * f.steps);
    }
    priced_release(&out);
    filled_close(&f);
}

// Steps that ran in two halves cost a pass more each than steps that ran whole: nothing is lost between.
static void halves_are_whole(void **state) {
    FilledStore f;
    Pricing p = pricing();
    Simulation s;
    fill(&f, *state);
    p.machine.step_s = p.machine.launch_s = 0; // a pass costs nothing beside its layers
    assert_true(simulation_run(f.store, f.run, &p, &(SimulationAgainst){0}, &s, NULL));
    assert_int_equal(s.count, POINTS);
    assert_true(s.points[0].baseline == 0 && s.points[1].baseline == f.points[0]);
    for (size_t i = 0; i < s.count; i++) {
        const SimulatedPoint *x = &s.points[i];
        RecordedPass pass = {.layers = 8, .rows = i ? 1 + 8 * (int)i : 1, .context = 50, .count = 1},
                     head = pass;
        head.head = true;
        double step = recorded_price(&p.machine, &MODEL, &pass) + recorded_price(&p.machine, &MODEL, &head);
        // Contexts are about 50, the rest of a step is microseconds.
        if (fabs(x->step_s / step - 1) > 0.1)
            fail_msg("point %zu: %g s a step, a step is %g s", i, x->step_s, step);
        assert_true(x->tally.has_interval && x->tally.value[TALLY_RATE] > 0);
        double S = x->tally.value[TALLY_S];
        assert_true(i ? S > 1 : S == 1);
        assert_near("tokens a second", x->tally.value[TALLY_RATE], S / x->step_s);
    }
    simulation_release(&s);
    filled_close(&f);
}

// Of four sequences every pass is a quarter of one with four times the rows and contexts; prefill, commit and
// the host's work stay each sequence's own. Without a batch in the prices, it is the point's.
static void batches_by_hand(void **state) {
    FilledStore f;
    Pricing p = pricing(), own;
    PricedPoint alone, shared;
    fill(&f, *state);
    assert_true(priced_as_run(f.store, f.points[0], &p, &own, NULL) && own.batch == 1);
    assert_true(priced_point(f.store, f.points[0], &p, &alone, NULL));
    p.batch = 4;
    assert_true(priced_point(f.store, f.points[0], &p, &shared, NULL));
    for (int i = 0; i < shared.count; i++) {
        const PricedSample *s = &shared.samples[i], *a = &alone.samples[i];
        double passes = 0;
        for (int turn = 0; turn < 2; turn++)
            for (int k = 0; k < f.steps; k++) {
                int context = 20 + 2 * s->prompt + turn - 1 + k;
                StepPlan plan = step_shared(
                    (StepPlan){.rows = 1, .read = 1, .context = context, .sequences = 1, .seen = context + 1},
                    4);
                passes += hardware_price(&p.machine, &MODEL, &plan).total / 4;
            }
        assert_near("passes", s->passes_s, passes);
        assert_true(s->passes_s < a->passes_s && s->prefill_s == a->prefill_s);
        assert_true(s->commit_s == a->commit_s && s->host_s == a->host_s);
    }
    priced_release(&alone);
    priced_release(&shared);
    filled_close(&f);
}

// A block's draft pays for fc on the target's states, and for keys and values of them in each of its layers.
static void contexts_of_blocks(void **state) {
    static const char ADDED[] =
        "UPDATE model SET shape = '{\"parts\": {\"adapter\": {\"variant\": \"dflash\", \"states\": 3}}}';"
        "INSERT INTO step_pass SELECT sample_id, min(number), 0, 2, 0, 0, 4, 0, 1 FROM step GROUP BY 1;"
        "INSERT INTO step_pass SELECT sample_id, min(number), 1, 2, 0, 2, 8, 30, 1 FROM step GROUP BY 1";
    FilledStore f;
    Pricing p = pricing();
    PricedPoint before, after;
    fill(&f, *state);
    assert_true(priced_point(f.store, f.points[0], &p, &before, NULL));
    change(folder_path(*state, "a.db"), ADDED);
    assert_true(priced_point(f.store, f.points[0], &p, &after, NULL));
    const Hardware *h = &p.machine;
    RecordedPass block = {.layers = 2, .rows = 8, .context = 30, .count = 1};
    double added = hardware_product(h, 4, 3 * 512, 512, 2) + 2 * hardware_product(h, 4, 512, 2 * 128, 2) +
                   recorded_price(h, &MODEL, &block);
    for (int i = 0; i < after.count; i++)
        assert_near("passes", after.samples[i].passes_s, before.samples[i].passes_s + 2 * added);
    priced_release(&before);
    priced_release(&after);
    filled_close(&f);
}

// A model's own weights: their type, or their codes with the scales of its groups.
static void own_weights(void **state) {
    (void)state;
    Model m = {.shape = {.layers = 2, .width = 64, .heads = 4, .kv_heads = 2, .head_dim = 16}};
    m.dtype = DTYPE_F32;
    StepModel plain = step_model_of(&m);
    assert_true(plain.weight_bytes == 4 && plain.head_bytes == 0);
    m.dtype = DTYPE_BF16, m.bits = 4, m.group = 64;
    StepModel coded = step_model_of(&m);
    assert_true(coded.weight_bytes == 0.5 + 2.0 / 64 && coded.head_bytes == 1 + 2.0 / 64);
    assert_true(coded.plain_bytes == 2);
}

// What this run itself measured: S is its own, and the errors are those of the times.
static void against_itself(void **state) {
    FilledStore f;
    Pricing p = pricing();
    Simulation s;
    SimulationError part;
    fill(&f, *state);
    assert_true(simulation_run(f.store, f.run, &p, &(SimulationAgainst){f.store, f.run}, &s, NULL));
    const SimulationError step = simulation_errors(&s, NULL, NULL, SIMULATED_STEP),
                          S = simulation_errors(&s, NULL, NULL, SIMULATED_S),
                          speedup = simulation_errors(&s, NULL, NULL, SIMULATED_SPEEDUP);
    assert_true(step.points == POINTS && S.points == POINTS - 1 && speedup.points == POINTS - 1);
    assert_true(S.worst < 1e-12 && step.median > 0 && step.worst >= step.median);
    int points = 0;
    for (int i = 0; i < POINTS; i++) { // each method's are its own, and together they are all
        const char *method = s.points[i].method;
        part = simulation_errors(&s, method, s.points[i].group, SIMULATED_STEP);
        assert_true(part.points > 0);
        points += i == 0 || strcmp(s.points[i].method, s.points[i - 1].method) != 0 ? part.points : 0;
        assert_true(part.worst <= step.worst);
        assert_int_equal(simulation_errors(&s, method, "none", SIMULATED_STEP).points, 0);
    }
    assert_int_equal(points, POINTS);
    double error = s.points[1].step_s / s.points[1].measured_step_s - 1;
    assert_near("error of step time", simulation_error(&s.points[1], SIMULATED_STEP), error);
    assert_true(isnan(simulation_error(&s.points[0], SIMULATED_SPEEDUP)));
    simulation_release(&s);
    filled_close(&f);
}

static void command(void **state) {
    FilledStore f;
    Child c;
    size_t size;
    fill(&f, *state);
    for (int i = 0; i < f.prompt_count; i++)
        assert_true(store_flag(f.store, f.points[1], 0, f.prompts[i], FLAG_LOAD, NULL));
    filled_close(&f);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "filled", "--db", "a.db", "--on", "a100-80gb", "--shape", "tiny",
                  "--json");
    json_t *root = json_loads(text_get(&c.out), 0, NULL), *points = json_object_get(root, "points");
    assert_int_equal(json_array_size(points), POINTS);
    assert_true(json_number_value(json_object_get(json_array_get(points, 1), "speedup")) > 0);
    json_decref(root);
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "filled", "--db", "a.db", "--on", "v100-32gb", "--shape",
                  "llama2-70b", "--against", "filled");
    assert_non_null(strstr(text_get(&c.out), "weights of 137.4 GB do not fit into its 32.0 GB"));
    assert_non_null(strstr(text_get(&c.out), "errors against the measurement"));
    assert_non_null(strstr(text_get(&c.out), "  measured times are in doubt\n"));
    assert_non_null(strstr(text_get(&c.out), "a data sheet's: floors"));
    assert_non_null(strstr(text_get(&c.out),
                           "after layer 2 of 4, as the run's model has it, is priced as after 40 of 80:"));
    child_release(&c);
    // The table with the prices beside what was measured, and what to tell of it.
    CHILD_OUTPACE(&c, *state, 0, "show", "filled", "--db", "a.db", "--on", "h100-measured", "--shape",
                  "tiny");
    static const char *const SHOWN_PRICED[] = {
        "method ",
        "  S ",
        "  rows  same text ",
        "  here ",
        "  priced ",
        "\nautoregressive ",
        "  baseline  ",
        "; here that is ",
        " and on NVIDIA H100 SXM 80 GB, at the size of tiny, it would be ",
        " times (priced).\n"};
    for (size_t i = 0; i < sizeof SHOWN_PRICED / sizeof *SHOWN_PRICED; i++)
        if (!strstr(text_get(&c.out), SHOWN_PRICED[i]))
            fail_msg("wanted '%s', got %s", SHOWN_PRICED[i], text_get(&c.out));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "report", "--run", "filled", "--db", "a.db", "--on", "h100-measured",
                  "--shape", "tiny");
    char *page = scratch_read(*state, "report.html", &size);
    assert_non_null(strstr(page, "<h2 id=\"In-short-title\">"));
    assert_non_null(strstr(page, "<th scope=col>here<th scope=col>priced<th scope=col>model"));
    mem_free(page);
    child_release(&c);
    // A machine that was fitted to fewer rows: the price of a longer step has its rows behind it.
    json_t *sheet = json_load_file("configs/hardware/h100-measured.json", 0, NULL);
    json_object_set_new(json_object_get(sheet, "most_rows"), "value", json_integer(4));
    assert_int_equal(json_dump_file(sheet, folder_path(*state, "few.json"), 0), 0);
    json_decref(sheet);
    CHILD_OUTPACE(&c, *state, 0, "show", "filled", "--db", "a.db", "--on", "few.json", "--shape", "tiny");
    assert_non_null(strstr(text_get(&c.out), ", 17 rows, fitted to 4"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "show", "filled", "--db", "a.db", "--on", "h100-measured");
    assert_string_equal(text_get(&c.err), "outpace: --on goes with --shape: of which model?\n");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "filled", "--db", "a.db", "--on", "h100-measured", "--shape",
                  "tiny");
    assert_non_null(strstr(text_get(&c.out), "NVIDIA H100 SXM 80 GB, measured, shape tiny"));
    assert_non_null(strstr(text_get(&c.out), "prices     as its steps were measured and fitted"));
    assert_non_null(strstr(text_get(&c.out), "more than 512 rows are outside what was fitted"));
    assert_null(strstr(text_get(&c.out), "fitted to 512"));
    child_release(&c);
    // 17 rows of 64 sequences are more than any step that was measured, one row of them isn't.
    CHILD_OUTPACE(&c, *state, 0, "simulate", "filled", "--db", "a.db", "--on", "h100-measured", "--shape",
                  "tiny", "--batch", "64");
    assert_non_null(strstr(text_get(&c.out), "a step of 1088 rows, fitted to 512"));
    assert_null(strstr(text_get(&c.out), "a step of 64 rows"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "filled", "--db", "a.db", "--on", "a100-80gb", "--shape", "16m",
                  "--batch", "1,8", "--bits", "16,4", "--json");
    root = json_loads(text_get(&c.out), 0, NULL), points = json_object_get(root, "points");
    assert_int_equal(json_array_size(points), 4 * POINTS);
    for (size_t i = 0; i < 4 * POINTS; i++) {
        const json_t *p = json_array_get(points, i);
        assert_int_equal(json_integer_value(json_object_get(p, "bits")), i < 2 * POINTS ? 16 : 4);
        assert_int_equal(json_integer_value(json_object_get(p, "batch")), i / POINTS % 2 ? 8 : 1);
        double step = json_number_value(json_object_get(p, "step_s"));
        const json_t *alone = json_array_get(points, i % POINTS);
        assert_true(i < POINTS || step < json_number_value(json_object_get(alone, "step_s")));
    }
    json_decref(root);
    child_release(&c);
    // A text that is twice as long as its baseline's, in no more time, is twice as fast.
    double speedup[2];
    for (int longer = 0; longer < 2; longer++) {
        CHILD_OUTPACE(&c, *state, 0, "simulate", "filled", "--db", "a.db", "--on", "h100-measured", "--shape",
                      "tiny", "--json");
        root = json_loads(text_get(&c.out), 0, NULL), points = json_object_get(root, "points");
        speedup[longer] = json_number_value(json_object_get(json_array_get(points, 1), "speedup"));
        json_decref(root);
        child_release(&c);
        if (!longer)
            change(folder_path(*state, "a.db"), "UPDATE sample SET tokens = 2 * tokens WHERE point_id = 2");
    }
    if (!(fabs(speedup[1] / speedup[0] - 2) < 0.1)) fail_msg("%g, then %g", speedup[0], speedup[1]);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "filled", "--db", "a.db", "--on", "h100-measured", "--shape",
                  "tiny");
    if (!strstr(text_get(&c.out), "lengths    texts of 2 of 3 ")) fail_msg("%s", text_get(&c.out));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "filled", "--db", "a.db", "--on", "a100-80gb", "--shape", "16m",
                  "--batch", "8", "--bits", "4");
    assert_non_null(strstr(text_get(&c.out), "priced in batches of 8; weights of 4 bits"));
    child_release(&c);
    static const char *const FIGURES[] = {"batch", "ridge"};
    for (int i = 0; i < 2; i++) {
        CHILD_OUTPACE(&c, *state, 0, "plot", FIGURES[i], "--db", "a.db", "--on", "a100-80gb", "--shape",
                      "16m", "--batch", "1,8", "--bits", "16,4", "-o", "f.svg", "--force");
        child_release(&c);
        char *numbers = scratch_read(*state, "f.svg.dat", &size);
        assert_non_null(strstr(numbers, i ? "# priced, " : "# priced, 4 bits: "));
        mem_free(numbers);
        CHILD_OUTPACE(&c, *state, 2, "plot", FIGURES[i], "--db", "a.db", "-o", "f.svg", "--force");
        assert_non_null(strstr(text_get(&c.err), "run a config over batches, as configs/ridge.yaml"));
        child_release(&c);
    }
    static const char *const BAD[][3] = {{"--bits", "5", "--bits has 5, must be 16, 8 or 4"},
                                         {"--batch", "0", "must be numbers from 1 to 1024"}};
    for (int i = 0; i < 2; i++) {
        CHILD_OUTPACE(&c, *state, 2, "simulate", "filled", "--db", "a.db", "--on", "l4", "--shape", "tiny",
                      BAD[i][0], BAD[i][1]);
        assert_non_null(strstr(text_get(&c.err), BAD[i][2]));
        child_release(&c);
    }
    CHILD_OUTPACE(&c, *state, 2, "simulate", "filled", "--db", "a.db", "--on", "l4", "--shape", "tiny",
                  "--batch", "1,2", "--against", "filled");
    assert_non_null(strstr(text_get(&c.err), "give one --batch and one --bits"));
    child_release(&c);
    static const char *const ROWS[][2] = {{"abacus", "there is no machine 'abacus'"}, {"x.json", "x.json"}};
    for (int i = 0; i < 2; i++) {
        CHILD_OUTPACE(&c, *state, 2, "simulate", "filled", "--db", "a.db", "--on", ROWS[i][0], "--shape",
                      "tiny");
        assert_non_null(strstr(text_get(&c.err), ROWS[i][1]));
        child_release(&c);
    }
    CHILD_OUTPACE(&c, *state, 2, "simulate", "filled", "--db", "a.db", "--on", "l4");
    assert_non_null(strstr(text_get(&c.err), "usage: outpace simulate RUN"));
    child_release(&c);
}

// Steps of another engine, one of which lacks its passes: the rest isn't priced.
static void unknown_passes(void **state) {
    static const char TIMES[] =
        "\"accepted\": 0, \"emitted\": 1, \"propose_s\": 1e-6, \"verify_s\": 1e-6, \"observe_s\": 1e-6";
    static const char RAN[] = "\"passes\": [{\"a\": 0, \"b\": 8, \"rows\": 1, \"context\": 9}]";
    FILE *f = fopen(folder_path(*state, "other.jsonl"), "w");
    Child c;
    for (int prompt = 0; prompt < 2; prompt++)
        for (int known = 0; known < 2; known++)
            fprintf(f,
                    "{\"model\": \"m\", \"dataset\": \"d\", \"layers\": 8, \"method\": \"%s\", \"prompt\": "
                    "%d, \"decode_s\": 1,"
                    " \"steps\": [{%s, %s}, {%s%s%s}]}\n",
                    known ? "autoregressive" : "jacobi", prompt, TIMES, RAN, TIMES, known ? ", " : "",
                    known ? RAN : "");
    fclose(f);
    CHILD_OUTPACE(&c, *state, 0, "store", "import", "steps", "other.jsonl", "--db", "other.db");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "1", "--db", "other.db", "--on", "l4", "--shape", "tiny",
                  "--json");
    json_t *root = json_loads(text_get(&c.out), 0, NULL), *points = json_object_get(root, "points");
    static const char *const KEYS[] = {"step_s", "tokens_per_s", "tokens_per_s_low", "speedup",
                                       "speedup_high"};
    assert_int_equal(json_array_size(points), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *p = json_array_get(points, i);
        bool known = strcmp(json_string_value(json_object_get(p, "label")), "autoregressive") == 0;
        assert_true(json_number_value(json_object_get(p, "S")) == 1);
        for (size_t k = 0; k < sizeof KEYS / sizeof *KEYS; k++) {
            const json_t *x = json_object_get(p, KEYS[k]);
            if (known ? !(json_number_value(x) > 0) : !json_is_null(x)) fail_msg("point %zu: %s", i, KEYS[k]);
        }
    }
    json_decref(root);
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "1", "--db", "other.db", "--on", "l4", "--shape", "tiny");
    assert_null(strstr(text_get(&c.out), "nan"));
    assert_non_null(strstr(text_get(&c.out), "its steps lack their passes: docs/other-engines.md"));
    child_release(&c);
}

// A step that runs the target twice, as N-Grammys does for a token's bigrams: propose's time is that pass's,
// which is priced.
static void passes_of_the_target(void **state) {
    FILE *f = fopen(folder_path(*state, "other.jsonl"), "w");
    Child c;
    fprintf(
        f,
        "{\"model\": \"m\", \"dataset\": \"d\", \"layers\": 8, \"method\": \"ngrammys\", \"prompt\": 0, "
        "\"decode_s\": 3, \"steps\": [{\"accepted\": 0, \"emitted\": 1, \"propose_s\": 2, \"verify_s\": 0, "
        "\"observe_s\": 0, \"passes\": [{\"a\": 0, \"b\": 8, \"rows\": 1, \"context\": 0}, "
        "{\"a\": 0, \"b\": 8, \"rows\": 11, \"context\": 9}]}]}\n");
    fclose(f);
    CHILD_OUTPACE(&c, *state, 0, "store", "import", "steps", "other.jsonl", "--db", "other.db");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "1", "--db", "other.db", "--on", "l4", "--shape", "tiny",
                  "--json");
    json_t *root = json_loads(text_get(&c.out), 0, NULL);
    double step =
        json_number_value(json_object_get(json_array_get(json_object_get(root, "points"), 0), "step_s"));
    if (!(step > 0 && step < 1)) fail_msg("wanted a step of two passes, got %g s: propose's 2 s, too", step);
    json_decref(root);
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(autoregressive_by_hand, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(halves_are_whole, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(against_itself, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(batches_by_hand, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(contexts_of_blocks, folder_setup, folder_teardown),
        cmocka_unit_test(own_weights),
        cmocka_unit_test_setup_teardown(command, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(unknown_passes, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(passes_of_the_target, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
