// outpace bench and doctor, run as a user would: the numbers that are promised are there, and agree with each
// other.
#include "tests/support/check.h"

#include "harness/bench/steps.h"
#include "results/record.h"
#include "tests/support/child.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static int set_up(void **state) {
    Child c;
    if (folder_setup(state)) return -1;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    return 0;
}

static json_t *parse(const Text *text) {
    json_t *root = json_loads(text_get(text), 0, NULL);
    if (!root) fail_msg("not JSON: %.200s", text_get(text));
    return root;
}

static double number(const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key);
    if (!json_is_number(v)) fail_msg("'%s' is not there, or no number", key);
    return json_number_value(v);
}

static void check_point(const json_t *p, double bandwidth, double rate) {
    static const char *const keys[] = {
        "tokens",          "context",    "median_s", "mad_s",    "n",        "bytes",
        "low_s",           "high_s",     "repeated", "gb_per_s", "slowdown", "floor_bandwidth_s",
        "floor_compute_s", "tflop_per_s"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) assert_true(number(p, keys[i]) >= 0);
    double bytes = number(p, "bytes"), seconds = number(p, "median_s");
    assert_true(seconds > 0 && number(p, "n") >= 3 && bytes > 0);
    assert_true(fabs(number(p, "gb_per_s") * 1e9 * seconds / bytes - 1) < 1e-9);
    assert_true(fabs(number(p, "floor_bandwidth_s") * bandwidth / bytes - 1) < 1e-9);
    assert_true(fabs(number(p, "floor_compute_s") * rate / (number(p, "tflop_per_s") * 1e12 * seconds) - 1) <
                1e-9);
}

// A step is busy with the layers and the head; the rest is its tree.
static void check_parts(const json_t *p) {
    double layers = number(p, "layers_s"), head = number(p, "head_s"), busy = number(p, "busy_s");
    assert_true(layers > 0 && head > 0 && busy >= layers && busy >= head);
}

static void chains(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "bench", "tiny", "--tokens", "1,8", "--context", "5,20", "--samples", "3",
                  "--seconds", "0", "--prefill", "30", "--json");
    json_t *root = parse(&c.out), *points = json_object_get(root, "points");
    const json_t *machine = json_object_get(root, "machine");
    double bandwidth = number(machine, "read_bytes_per_s"), rate = number(machine, "operations_per_s");
    assert_true(json_is_string(json_object_get(machine, "cpu")) && bandwidth > 1e8 && rate > 1e8);
    assert_true(number(root, "open_s") > 0 && number(root, "peak_memory_bytes") > 1e6);
    cpu_set_t usable; // of the process, not of a thread that keeps to its core
    assert_int_equal(sched_getaffinity(0, sizeof usable, &usable), 0);
    assert_true(number(machine, "cores") == CPU_COUNT(&usable));
    assert_true(number(json_object_get(root, "prefill"), "seconds") > 0);
    assert_int_equal(json_array_size(points), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *p = json_array_get(points, i);
        check_point(p, bandwidth, rate);
        check_parts(p);
        assert_int_equal((int)number(p, "tokens"), i % 2 ? 8 : 1);
        assert_int_equal((int)number(p, "context"), i < 2 ? 5 : 20);
        if (i % 2 == 0) assert_true(number(p, "slowdown") == 1);
        else {
            double one = number(json_array_get(points, i - 1), "median_s");
            assert_true(fabs(number(p, "slowdown") - number(p, "median_s") / one) < 1e-9);
        }
    }
    json_decref(root);
    child_release(&c);
}

static json_t *bench_tiny(void *state, const char *option, const char *value) {
    Child c;
    CHILD_OUTPACE(&c, state, 0, "bench", "tiny", "--tokens", "1,8", "--context", "300", "--samples", "3",
                  "--seconds", "0", "--json", option, value);
    json_t *root = parse(&c.out);
    child_release(&c);
    return root;
}

// An adapter's steps read its own weights and a head, which is less than the model's layers and the head.
static void adapters(void **state) {
    static const char *const variants[] = {"kangaroo", "medusa", "eagle", "eagle3"};
    json_t *model = bench_tiny(*state, "--seed", "1");
    double all = number(json_array_get(json_object_get(model, "points"), 0), "bytes");
    assert_null(json_object_get(model, "adapter"));
    json_decref(model);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i += (size_t)test_some(3, 1)) {
        Child c;
        CHILD_OUTPACE(&c, *state, 0, "model", "adapter", "tiny", variants[i], "--variant", variants[i]);
        child_release(&c);
        json_t *root = bench_tiny(*state, "--adapter", variants[i]),
               *points = json_object_get(root, "points");
        const json_t *machine = json_object_get(root, "machine");
        assert_string_equal(json_string_value(json_object_get(root, "adapter")), variants[i]);
        assert_int_equal(json_array_size(points), 2);
        for (size_t j = 0; j < 2; j++)
            check_point(json_array_get(points, j), number(machine, "read_bytes_per_s"),
                        number(machine, "operations_per_s"));
        assert_true(number(json_array_get(points, 0), "bytes") < all);
        json_decref(root);
    }
}

// Weights of 8 and 4 bits are named as in the store.
static void coded(void **state) {
    static const char *const ROWS[][3] = {{"8", "eight", "Q8"}, {"4", "four", "Q4"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Child c;
        CHILD_OUTPACE(&c, *state, 0, "model", "quantise", "tiny", ROWS[i][1], "--bits", ROWS[i][0]);
        child_release(&c);
        CHILD_OUTPACE(&c, *state, 0, "bench", ROWS[i][1], "--tokens", "1", "--context", "5", "--samples", "3",
                      "--seconds", "0", "--json");
        json_t *root = parse(&c.out);
        const char *weights = json_string_value(json_object_get(root, "weights"));
        if (!weights || strcmp(weights, ROWS[i][2]) != 0)
            fail_msg("bench of %s bits: weights: wanted '%s', got '%s'", ROWS[i][0], ROWS[i][2],
                     weights ? weights : "");
        json_decref(root);
        child_release(&c);
    }
}

// k rows of w tokens: 1 + k w nodes as a tree, k (w + 1) as a batch, with or without copies of the cache.
static void grids(void **state) {
    static const char *const layouts[] = {"tree", "batch", "copied"};
    for (int batch = 0; batch < 3; batch++) {
        char column[32];
        Child c;
        snprintf(column, sizeof column, ",%s,", layouts[batch]);
        CHILD_OUTPACE(&c, *state, 0, "bench", "tiny", "--k", "1,3", "--w", "0..4+2", "--context", "9",
                      "--samples", "3", "--seconds", "0", "--layout", layouts[batch], "--csv");
        int lines = 0, tokens, context, k, w;
        for (const char *line = text_get(&c.out); *line; line += strcspn(line, "\n") + 1, lines++) {
            if (lines == 0) continue;
            const char *at = strstr(line, column);
            assert_true(at && at < strchr(line, '\n'));
            assert_int_equal(sscanf(line, "%d,%d,%d,%d", &tokens, &context, &k, &w), 4);
            assert_int_equal(tokens, batch ? k * (w + 1) : 1 + k * w);
            assert_int_equal(context, 9);
        }
        assert_int_equal(lines, 7);
        child_release(&c);
    }
}

// Of B sequences: operations and cached bytes are B times as many, weights are read once. The first context's
// single token is what all are compared with.
static void batches(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "bench", "tiny", "--tokens", "1,6", "--batch", "1,3", "--context", "40",
                  "--samples", "3", "--seconds", "0", "--json");
    json_t *root = parse(&c.out), *points = json_object_get(root, "points");
    const json_t *one = json_array_get(points, 0);
    assert_int_equal(json_array_size(points), 4);
    for (size_t i = 0; i < 2; i++) {
        const json_t *alone = json_array_get(points, i), *shared = json_array_get(points, 2 + i);
        double cached = 2.0 * 3 * 32 * 40 * 2; // keys and values, layers, their width, positions, bf16
        double work = number(alone, "tflop_per_s") * number(alone, "median_s"),
               works = number(shared, "tflop_per_s") * number(shared, "median_s");
        assert_true(number(alone, "batch") == 1 && number(shared, "batch") == 3);
        assert_true(number(alone, "tokens") == number(shared, "tokens"));
        if (fabs(works / (3 * work) - 1) > 1e-9) fail_msg("wanted %g operations, got %g", 3 * work, works);
        if (fabs(number(shared, "bytes") - number(alone, "bytes") - 2 * cached) > 0.5)
            fail_msg("wanted %g more bytes, got %g", 2 * cached,
                     number(shared, "bytes") - number(alone, "bytes"));
        assert_true(fabs(number(shared, "slowdown") * number(one, "median_s") / number(shared, "median_s") -
                         1) < 1e-9);
        assert_true(fabs(number(shared, "slowdown") / number(shared, "slowdown_sequence") - 3) < 1e-9);
    }
    json_decref(root);
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "bench", "tiny", "--tokens", "2", "--batch", "1,4", "--context", "9",
                  "--samples", "3", "--seconds", "0");
    assert_non_null(strstr(text_get(&c.out), "a sequence"));
    child_release(&c);
}

static void mistakes(void **state) {
    static const struct {
        const char *option, *value, *want;
    } rows[] = {
        {"--tokens", "1,x", "--tokens has 'x'"},    {"--tokens", "2000", "must be numbers from 1 to 1024"},
        {"--context", "5000", "the model has 512"}, {"--layout", "row", "must be one of tree, batch, copied"},
        {"--k", "3", "--k and --w go together"},    {"--isa", "z80", "there is no kernel set 'z80'"},
        {"--samples", "0", "--samples is '0'"},     {"--batch", "1,65", "must be numbers from 1 to 64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Child c;
        CHILD_OUTPACE(&c, *state, 2, "bench", "tiny", rows[i].option, rows[i].value);
        if (!strstr(text_get(&c.err), rows[i].want))
            fail_msg("wanted '%s', got '%s'", rows[i].want, text_get(&c.err));
        child_release(&c);
    }
}

// Pairs and tiles multiply bf16 with bf16 only; all else goes at the rate of f32, which a CPU has for f16
// too.
static void rates(void **state) {
    (void)state;
    const Ceilings c = {
        .operations_per_s = {[COMPUTE_F32] = 1, [COMPUTE_BF16] = 2, [COMPUTE_F16] = 1, [COMPUTE_INT8] = 3}};
    for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++)
        for (int compute = 0; compute < COMPUTE_KINDS; compute++) {
            Session session = {.compute = (Compute)compute};
            Benched b = {&session, (Dtype)dtype, &c, NULL};
            bool pairs = dtype == DTYPE_BF16 && compute == COMPUTE_BF16;
            bool int8 = dtype != DTYPE_F32 && compute == COMPUTE_INT8;
            assert_true(bench_peak(&b) == (int8 ? 3 : pairs ? 2 : 1));
        }
}

static void doctor(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "doctor", "--json");
    json_t *root = parse(&c.out);
    assert_true(number(json_object_get(root, "cpu"), "read_bytes_per_s") > 1e8);
    assert_true(number(json_object_get(root, "cpu"), "operations_per_s") > 1e8);
    assert_true(number(json_object_get(root, "cpu"), "operations_per_s_f32") > 1e8);
    assert_true(json_is_string(json_object_get(json_object_get(root, "libraries"), "sqlite")));
    assert_true(json_is_array(json_object_get(root, "warnings")));
    assert_true(number(json_object_get(root, "machine"), "cores") >= 1);
    json_decref(root);
    child_release(&c);
    CHILD_TERMINAL(&c, *state, 80, 0, "doctor");
    if (child_widest(&c) > 80) fail_msg("%s", text_get(&c.out));
    static const char *const words[] = {"processor   ", "caches      ", "reads       ",
                                        "computes    ", "GPU         ", "libraries   jansson "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_non_null(strstr(text_get(&c.out), words[i]));
    child_release(&c);
}

// If its buffer doesn't fit, it reads a smaller one, and reports it.
static void doctor_of_little_memory(void **state) {
#ifdef __SANITIZE_ADDRESS__
    skip(); // which takes terabytes of addresses
#endif
    const char *program = getenv("OUTPACE"),
               *argv[] = {"sh", "-c", "ulimit -v 200000; exec $0 doctor --threads 1", NULL, NULL};
    char *path = realpath(program ? program : "./outpace", NULL);
    Child c;
    (void)state;
    argv[3] = path;
    child_run(&c, NULL, NULL, argv);
    if (c.code) fail_msg("doctor: %d, %s", c.code, text_get(&c.err));
    assert_non_null(strstr(text_get(&c.out), " MB of it: no more could be had"));
    child_release(&c);
    free(path);
}

// A clock by which the first steps take ten times as long as the others: each step asks it twice.
enum { COLD = 4 };
static double warming_clock(void *state) {
    double *asked = state;
    *asked += 1;
    return *asked <= 2 * COLD ? 1e-3 * *asked : 2e-3 * COLD + 1e-4 * (*asked - 2 * COLD);
}

// Steps in which a model comes into the caches are none of the samples.
static void cold(void **state) {
    Engine engine;
    EngineMemory memory;
    EngineOptions how = {.device = "null"};
    const Ceilings unknown = {0};
    double asked = 0;
    BenchOptions o = {.warm_up = 1, .min_samples = 5, .max_samples = 5, .clock = {warming_clock, &asked}};
    BenchPoint p = {.context = 20, .k = 1, .layout = LAYOUT_BATCH};
    Error e = {0};
    if (!engine_open(&engine, folder_path(*state, "tiny"), &how, &memory, &e) ||
        !bench_point(&(Benched){&engine.session, engine.model.dtype, &unknown, NULL}, &o, NULL, &p, &e))
        fail_msg("%s", e.text);
    assert_int_equal(p.time.n, 5);
    assert_true(fabs(p.time.median_s - 1e-4) < 1e-9 && fabs(p.time.mean_s - 1e-4) < 1e-9);
    engine_close(&engine);
    o.warm_up = 3; // at least, and at most 50
    assert_true(bench_cold(&o, 2, 1) && !bench_cold(&o, 3, 1) && bench_cold(&o, 49, 0) &&
                !bench_cold(&o, 50, 0));
}

// A core that is shared with a busy loop, `from` some moment on until another: by turns either has it for a
// slice.
typedef struct Shared {
    double now, turn; // turn: what is left of ours
    double from, until;
    int64_t switches;
    double work; // seconds of a step that nothing disturbs
} Shared;

static const double SLICE = 3e-3;
static double shared_now(void *state) { return ((Shared *)state)->now; }
static int64_t shared_switches(void *state) { return ((Shared *)state)->switches; }
static void shared_look(void *state, WatchLook *out) {
    const Shared *s = state;
    double others = fmin(fmax(s->now - s->from, 0), s->until - s->from) / 2;
    *out = (WatchLook){.busy = s->now, .own = s->now - others, .cycles = 1};
}

static bool shared_step(void *state, BenchSample *out, Error *e) {
    Shared *s = state;
    (void)e;
    double began = s->now;
    for (double left = s->work; left > 0;) {
        double run = fmin(left, s->turn);
        s->now += run, s->turn -= run, left -= run;
        if (s->turn > 0) continue;
        s->turn = SLICE;
        if (s->now < s->from || s->now >= s->until) continue;
        s->now += SLICE;
        s->switches++;
    }
    out->step = s->now - began;
    return true;
}

static BenchTime time_shared(double work, double from, double until, bool watched) {
    Shared world = {.turn = SLICE / 3, .from = from, .until = until, .work = work};
    Watch watch = {.look = shared_look, .switches = shared_switches, .state = &world};
    BenchOptions o = {.warm_up = 1, .min_samples = 5, .max_samples = 5, .clock = {shared_now, &world}};
    BenchSample samples[BENCH_SAMPLES];
    BenchTime out;
    Error e = {0};
    watch_begin(&watch, o.clock);
    if (watched) o.watch = &watch;
    assert_true(bench_take(&o, shared_step, &world, samples, &out, &e));
    return out;
}

// Steps that fit into a slice are measured as they are beside a busy loop, longer ones can not be. So a
// slowdown has a false cliff, unless it's reported.
static void false_cliff(void **state) {
    (void)state;
    const double SHORT = 2e-4, LONG = 6.4e-3;
    BenchTime one = time_shared(SHORT, 0, INFINITY, false), many = time_shared(LONG, 0, INFINITY, false);
    assert_true(fabs(one.median_s / SHORT - 1) < 1e-9 && many.median_s > 1.9 * LONG); // by nobody
    assert_true(one.flags == 0 && many.flags == 0 && many.n == 5);

    one = time_shared(SHORT, 0, INFINITY, true);
    many = time_shared(LONG, 0, INFINITY, true);
    assert_true(fabs(one.median_s / SHORT - 1) < 1e-9 && one.n == 5);
    assert_int_equal(one.flags, 0);
    assert_int_equal(many.flags, FLAG_LOAD);
    assert_true(many.n == 20 && many.disturbed == 20);

    many = time_shared(LONG, 0.01, 0.03, true); // it goes away: what it disturbed is repeated
    assert_true(fabs(many.median_s / LONG - 1) < 1e-9 && many.n == 5 && many.disturbed > 1);
    assert_int_equal(many.flags, 0);

    many = time_shared(LONG, 1e9, INFINITY, true); // at rest
    assert_true(fabs(many.median_s / LONG - 1) < 1e-9 && many.n == 5 && many.disturbed == 0 &&
                many.flags == 0);
}

// A neighbour on another core takes nothing away, and is found out a tenth of a second later: what was
// measured before is marked, too, and what comes is taken to be disturbed until another tenth says that it is
// not.
static void other_cores(void **state) {
    (void)state;
    Shared world = {.turn = INFINITY, .from = 0, .until = INFINITY, .work = 2e-2};
    Watch watch = {.look = shared_look, .switches = shared_switches, .state = &world};
    BenchOptions o = {
        .warm_up = 1, .min_samples = 2, .max_samples = 2, .clock = {shared_now, &world}, .watch = &watch};
    BenchSample samples[BENCH_SAMPLES];
    BenchTime first, second;
    Error e = {0};
    watch_begin(&watch, o.clock);
    assert_true(bench_take(&o, shared_step, &world, samples, &first, &e));
    assert_true(first.n == 2 && first.flags == 0 && !first.looked);
    assert_true(bench_take(&o, shared_step, &world, samples, &second, &e));
    assert_true(second.looked && second.flags_before == FLAG_LOAD && second.flags == FLAG_LOAD &&
                second.disturbed == 8);
    world.until = watch.last.at;
    assert_true(bench_take(&o, shared_step, &world, samples, &first, &e));
    assert_true(first.n > 2 && first.looked && first.flags == 0 && first.disturbed == 0);
}

// A slowdown's error is the ratio's, including one token's change.
static void errors(void **state) {
    (void)state;
    const BenchTime one = {.median_s = 1, .low_s = 0.9, .high_s = 1.1},
                    later = {.median_s = 2, .low_s = 1.8, .high_s = 2.2},
                    step = {.median_s = 10, .low_s = 8, .high_s = 13},
                    lone = {.median_s = 1, .low_s = NAN, .high_s = NAN};
    Reach r = bench_slowdown(&step, &one, NULL), wider = bench_slowdown(&step, &one, &later);
    assert_true(r.value == 10 && fabs(log(r.low / 10) + hypot(log(10.0 / 8), log(1.1))) < 1e-12 &&
                fabs(log(r.high / 10) - hypot(log(1.3), log(1 / 0.9))) < 1e-12);
    assert_true(wider.value == 10 && wider.low < 10 / 2.2 && wider.high == r.high);
    assert_true(isnan(bench_slowdown(&lone, &one, NULL).low));
    const BenchTime busy = {.median_s = 1, .low_s = 0.9, .high_s = 1.1, .flags = FLAG_LOAD};
    BenchPoint calm = {.time = step}, beside = {.time = step};
    bench_compare(&calm, &one, &later);
    bench_compare(&beside, &busy, &later);
    assert_true(calm.time.flags == 0 && beside.time.flags == FLAG_LOAD);
    assert_true(beside.slowdown.value == 10 && beside.slowdown.low == wider.low);
}

// Either way, by more than noise.
static void drift(void **state) {
    (void)state;
    assert_false(bench_drifted(1, 1));
    assert_false(bench_drifted(1, 1.14));
    assert_false(bench_drifted(1.14, 1));
    assert_true(bench_drifted(1, 1.16));
    assert_true(bench_drifted(1.16, 1));
}

// What the engine itself costs where a model costs nothing: a chain of 10 in under 5 microseconds. Three
// tries, since a test machine may be busy.
static void overhead(void **state) {
    double best = 1;
    for (int i = 0; i < 3; i++) {
        Child c;
        CHILD_OUTPACE(&c, *state, 0, "bench", "tiny", "--device", "null", "--tokens", "10", "--context", "25",
                      "--json");
        json_t *root = parse(&c.out);
        double took = number(json_array_get(json_object_get(root, "points"), 0), "median_s");
        if (took < best) best = took;
        json_decref(root);
        child_release(&c);
    }
    print_message("a chain of 10 on the null backend: %.2f microseconds\n", 1e6 * best);
    assert_true(best < 5e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains),   cmocka_unit_test(grids),       cmocka_unit_test(mistakes),
        cmocka_unit_test(rates),    cmocka_unit_test(doctor),      cmocka_unit_test(doctor_of_little_memory),
        cmocka_unit_test(cold),     cmocka_unit_test(false_cliff), cmocka_unit_test(other_cores),
        cmocka_unit_test(errors),   cmocka_unit_test(drift),       cmocka_unit_test(overhead),
        cmocka_unit_test(adapters), cmocka_unit_test(batches),     cmocka_unit_test(coded)};
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
