// Runs on the null backend, with the test's own seams (RunSeams): runs that are killed and stopped anywhere,
// a method that lies, disturbed passes, and the harness's own cost.
#include "tests/support/check.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/decode/structures/datastore.h"
#include "harness/run/run.h"
#include "tests/support/child.h"
#include "tests/support/null_session.h"
#include "tests/support/small_run.h"
#include "tests/support/stores.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KILLS = 30 };

static int set_up(void **state) {
    static const char *const kinds[] = {"kangaroo", "medusa", "eagle"};
    Child c;
    if (folder_setup(state)) return -1;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    for (int i = 0; i < 3; i++) {
        CHILD_OUTPACE(&c, *state, 0, "model", "adapter", "tiny", kinds[i], "--variant", kinds[i]);
        child_release(&c);
    }
    return chdir(*state);
}

static const char METHODS[] = "jacobi, {name: prompt-lookup, matrix: {allow_short: on}}, lookahead,"
                              " {name: ouroboros, matrix: {warm: [on, off]}}";

// --- stopped anywhere ------------------------------------------------------------------------------------

static double seconds(void) { return clock_now(clock_monotonic()); }

// Each start gets about a thirtieth of the way.
static void killed(void **state) {
    SmallRun *b = small_open(METHODS, "passes: 2, reruns: 0", 25);
    Random r = test_random(1);
    int kills = 0, stores = 0;
    double start = seconds();
    small_run(b, "calm.db", NULL);
    double whole = seconds() - start;
    for (; kills < KILLS; stores++) {
        char db[32];
        int code = 1;
        snprintf(db, sizeof db, "killed%d.db", stores);
        while (code && kills < KILLS) {
            pid_t pid = fork();
            assert_true(pid >= 0);
            if (pid == 0) {
                RunResult result;
                _exit(small_try(b, db, NULL, &result, NULL) ? 0 : 1);
            }
            usleep((useconds_t)(1e6 * whole * 3 / KILLS * random_uniform(&r)));
            kill(pid, SIGKILL);
            code = child_wait(pid);
            assert_true(code == 0 || code == 128 + SIGKILL);
            kills += code != 0;
        }
        small_run(b, db, NULL);
        stores_same(*state, "calm.db", db);
    }
    printf("%d kills of %d runs, %.2f s undisturbed\n", kills, stores, whole);
    small_close(b);
}

// True at the n-th question.
typedef struct Countdown {
    int left;
} Countdown;

static Countdown countdown; // the question has no state of its own

static bool is_up(void) { return --countdown.left < 0; }

// Between two steps of any method, between two rounds, as methods open and wake up.
static void stopped_anywhere(void **state) {
    SmallRun *b = small_open(METHODS, "passes: 2, reruns: 0", 3);
    RunSeams seams = {.interrupted = is_up};
    RunResult result = {.interrupted = true};
    small_run(b, "calm3.db", NULL);
    for (int n = 1; result.interrupted; n += 1 + n / test_some(2, 8)) {
        char db[32];
        snprintf(db, sizeof db, "stopped%d.db", n);
        countdown.left = n;
        result = small_run(b, db, &seams);
        small_run(b, db, NULL);
        stores_same(*state, "calm3.db", db);
    }
    // As often as it can be where each start is to finish a round.
    do {
        countdown.left = 2000;
        result = small_run(b, "often.db", &seams);
        assert_int_equal(result.left > 0, result.interrupted);
        assert_true(result.points + result.left == 5 && result.failed + result.skipped == 0);
    } while (result.interrupted);
    stores_same(*state, "calm3.db", "often.db");
    small_close(b);
}

// --- a method that lies ----------------------------------------------------------------------------------

// Changes a token that the model has read.
static bool liar_begin(void *self, const Prompt *prompt, Error *e) {
    Session *s = *(Session **)self;
    int other = (prompt->tokens[prompt->count - 2] + 1) % s->shape.real_vocab;
    return session_truncate(s, prompt->count - 2, e) && session_prefill(s, &other, 1, 0, 0, NULL, e);
}

static bool liar_propose(void *self, Tree *tree, Error *e) {
    (void)self, (void)tree, (void)e;
    return true;
}

static bool liar_observe(void *self, const Observation *seen, Error *e) {
    (void)self, (void)seen, (void)e;
    return true;
}

static const MethodInfo LIAR = {
    .name = "liar", .begin = liar_begin, .propose = liar_propose, .observe = liar_observe};

static bool open_liar(Method *m, const char *text, const MethodEnv *env, Error *e) {
    if (strncmp(text, "jacobi", 6) != 0) return method_open(m, text, env, e);
    *m = (Method){.info = &LIAR, .self = mem_new(1, sizeof env->target)};
    *(Session **)m->self = env->target;
    return true;
}

static void lies_are_found(void **state) {
    SmallRun *b = small_open("autoregressive, jacobi, lookahead", "passes: 1", 6);
    RunResult result = small_run(b, "lies.db", &(RunSeams){.open_method = open_liar});
    assert_int_equal(result.diverged, 1);
    assert_int_equal(stores_ask(*state, "lies.db", "SELECT count(*) FROM divergence"), 6);
    assert_int_equal(
        stores_ask(*state, "lies.db",
                   "SELECT count(*) FROM divergence JOIN sample ON sample.id = sample_id JOIN point ON"
                   " point.id = point_id WHERE method = 'jacobi' AND flags & 16 AND wanted <> got AND"
                   " margin > 0"),
        6);
    // The place: outputs are equal before it, and differ there.
    assert_int_equal(
        stores_ask(
            *state, "lies.db",
            "SELECT count(*) FROM divergence JOIN sample a ON a.id = sample_id JOIN output o ON o.id ="
            " a.output_id JOIN point ON point.id = a.point_id JOIN sample b ON b.point_id = baseline_id AND"
            " b.prompt_id = a.prompt_id JOIN output q ON q.id = b.output_id WHERE"
            " substr(o.ids, 1, 4 * divergence.position) = substr(q.ids, 1, 4 * divergence.position) AND"
            " substr(o.ids, 4 * divergence.position + 1, 4) <> substr(q.ids, 4 * divergence.position + 1, "
            "4)"),
        6);
    small_close(b);
}

// --- disturbed passes ------------------------------------------------------------------------------------

// A clock that goes on by a step every time it is read, so that every sample is long enough to be judged.
static double tick(void *state) { return *(double *)state += 0.06; }

// Others are busy for the first `disturbed` looks.
typedef struct Others {
    int looks, disturbed;
    double busy;
} Others;

static void look_at_others(void *state, WatchLook *out) {
    Others *o = state;
    if (++o->looks <= o->disturbed) o->busy += 1e6;
    *out = (WatchLook){.busy = o->busy, .cycles = 1};
}

static int64_t passes_of(SmallRun *b, const char *folder, const char *db, int disturbed) {
    double now = 0;
    Others others = {.disturbed = disturbed};
    small_run(b, db, &(RunSeams){.look = look_at_others, .look_state = &others, .clock = {tick, &now}});
    return stores_ask(folder, db, "SELECT count(DISTINCT pass) FROM sample");
}

static void disturbed_passes_run_again(void **state) {
    enum { PROMPTS = 5 };
    SmallRun *b =
        small_open("{name: ouroboros, matrix: {warm: on}}", "passes: 2, reruns: 1, warmup: 0", PROMPTS);
    assert_int_equal(passes_of(b, *state, "rest.db", 0), 2);
    assert_int_equal(passes_of(b, *state, "busy.db", 3), 3);
    assert_int_equal(stores_ask(*state, "busy.db", "SELECT count(DISTINCT pass) FROM sample WHERE flags & 8"),
                     1);
    assert_int_equal(passes_of(b, *state, "always.db", 1000), 3); // only so often
    small_close(b);
    b = small_open("lookahead", "passes: 2, reruns: 1, warmup: 0", PROMPTS);
    assert_int_equal(passes_of(b, *state, "cold.db", 1000), 2);
    small_close(b);
}

// A warm method's pool is empty at the start of each pass, and learns within it: S is the same in all passes,
// and another than where the pool is emptied before every prompt.
static void warm_passes(void **state) {
    SmallRun *b = small_open("{name: ouroboros, matrix: {warm: [on, off]}}", "passes: 3, reruns: 0", 8);
    small_run(b, "warm.db", NULL);
    assert_int_equal(
        stores_ask(*state, "warm.db",
                   "SELECT count(*) FROM (SELECT point_id, prompt_id FROM sample GROUP BY 1, 2 HAVING"
                   " count(*) = 3 AND min(steps) = max(steps))"),
        4 * 8);
    assert_int_equal(stores_ask(*state, "warm.db", "SELECT count(*) FROM point WHERE baseline_id IS NULL"),
                     2);
    assert_true(
        stores_ask(*state, "warm.db",
                   "SELECT count(DISTINCT total) > 1 FROM (SELECT sum(pool) total FROM step JOIN sample ON"
                   " sample.id = sample_id JOIN point ON point.id = point_id WHERE method = 'ouroboros'"
                   " GROUP BY point_id)"));
    small_close(b);
}

// --- when a point is done --------------------------------------------------------------------------------

// A draft that is greedy has no q, so its point is refused; autoregressive decoding stays the baseline.
static void blocks_need_a_chain(void **state) {
    SmallRun *b = small_open("autoregressive, {name: speculative, matrix: {draft_temperature: [0, 1],"
                             " temperature: 1, verification: [token, block]}}",
                             "passes: 1", 2);
    RunResult result = small_run(b, "blocks.db", NULL);
    assert_int_equal(result.skipped, 1);
    assert_int_equal(result.failed, 0);
    assert_int_equal(stores_ask(*state, "blocks.db",
                                "SELECT count(*) FROM point JOIN point_param AS p ON p.point_id = point.id"
                                " WHERE p.name = 'verification' AND p.value = 'block' AND baseline_id NOTNULL"
                                " AND EXISTS (SELECT 1 FROM sample WHERE sample.point_id = point.id)"),
                     1);
    small_close(b);
}

// The oracle's points follow their baseline in every round, wherever that begins, and know its answers.
static void the_answer_is_known(void **state) {
    SmallRun *b = small_open(
        "{name: oracle, matrix: {accept: [1], draft: [2, 3, 5]}}, autoregressive, jacobi", "passes: 1", 6);
    RunResult result = small_run(b, "known.db", NULL);
    assert_int_equal(result.failed + result.skipped + result.diverged, 0);
    assert_int_equal(
        stores_ask(
            *state, "known.db",
            "SELECT count(*) FROM sample JOIN point ON point.id = sample.point_id JOIN point_param AS p ON"
            " p.point_id = point.id AND p.name = 'draft' WHERE method = 'oracle'"
            " AND (p.value + 1) * steps = tokens"),
        18);
    assert_int_equal(stores_ask(*state, "known.db",
                                "SELECT count(DISTINCT position) FROM sample JOIN point ON point.id ="
                                " point_id WHERE method = 'autoregressive'"),
                     2); // first, or after jacobi
    assert_int_equal(
        stores_ask(*state, "known.db",
                   "SELECT count(*) FROM point_doubt JOIN point ON point.id = point_id WHERE doubtful AND"
                   " method = 'oracle' AND doubt LIKE '%knows the answer%'"),
        3);
    small_close(b);
}

static void repeats_end(void **state) {
    SmallRun *b =
        small_open("lookahead", "passes: 2, most_passes: 5, stop: timing, timing_error: 0.000001", 3);
    small_run(b, "most.db", NULL);
    assert_int_equal(stores_ask(*state, "most.db", "SELECT count(DISTINCT pass) FROM sample"), 5);
    small_close(b);
    b = small_open("lookahead", "passes: 2, most_passes: 5, stop: timing, timing_error: 1", 3);
    small_run(b, "few.db", NULL);
    assert_int_equal(stores_ask(*state, "few.db", "SELECT count(DISTINCT pass) FROM sample"), 2);
    small_close(b);
}

static void own_cost(void **state) {
    (void)state;
    SmallRun *b = small_open(METHODS, "passes: 1, reruns: 0", 20);
    RunResult r = small_run(b, "cost.db", NULL);
    printf("own cost: %.2f ms a round of %d methods (%d rounds)\n", 1e3 * r.harness_s / r.rounds,
           b->schedule.groups[0].count, r.rounds);
    small_close(b);
}

// Both models are where the setup puts them, and each place is a setup of its own.
static void weights_are_held(void **state) {
    (void)state;
    Error e = {0};
    Models models;
    SmallRun *r = small_open(
        "{name: speculative, matrix: {device: cpu, threads: 1, weights: [mapped, held]}}", "passes: 1", 2);
    assert_int_equal(r->schedule.setup_count, 2);
    for (int i = 0; i < 2; i++) {
        if (!group_open_models(&r->inputs, i, (Progress){0}, &models, &e)) fail_msg("%s", e.text);
        assert_int_equal(r->schedule.setups[i].settings->engine.weights, i ? WEIGHTS_HELD : WEIGHTS_MAPPED);
        assert_int_equal(models.target.weights.held, i);
        assert_int_equal(models.draft.weights.held, i);
        models_close(&models);
    }
    small_close(r);
}

// --- weights that change

enum { PROMPTS = 3, SPOILT = 1 << 14 };

typedef struct Spoiler {
    bool keep_time; // the file looks untouched
    bool store;     // the datastore, not the weights
    int asked, at;  // the question at which it changes
} Spoiler;

static Spoiler spoiler;

// Turns the signs of the file's last weights, or back again.
static void turn_signs(void) {
    struct stat before;
    unsigned char bytes[SPOILT];
    int fd = open("tiny/model.safetensors", O_RDWR);
    assert_true(fd >= 0 && fstat(fd, &before) == 0);
    off_t at = before.st_size - SPOILT;
    assert_int_equal(pread(fd, bytes, SPOILT, at), SPOILT);
    for (int i = 1; i < SPOILT; i += 2) bytes[i] ^= 0x80;
    assert_int_equal(pwrite(fd, bytes, SPOILT, at), SPOILT);
    if (spoiler.keep_time) futimens(fd, (struct timespec[]){before.st_atim, before.st_mtim});
    close(fd);
}

static void write_store(void) {
    static const int TOKENS[] = {1, 2, 3, 4, DATASTORE_BREAK};
    Error e;
    if (!datastore_write("rest.store", TOKENS, 5, 50, &e)) fail_msg("%s", e.text);
}

static bool spoil(void) {
    if (spoiler.asked++ == spoiler.at) (spoiler.store ? write_store : turn_signs)();
    return false;
}

static SmallRun *spoiled_run(bool keep_time) {
    SmallRun *r =
        small_open("{name: jacobi, matrix: {device: cpu, threads: [1, 2]}}", "passes: 2, warmup: 0", PROMPTS);
    spoiler =
        (Spoiler){.keep_time = keep_time, .at = 2 + PROMPTS}; // questions come before groups, passes, rounds
    return r;
}

static void weights_that_change_end_the_run(void **state) {
    SmallRun *r = spoiled_run(false);
    RunResult result;
    Error e = {0};
    assert_false(small_try(r, "changed.db", &(RunSeams){.asked = spoil}, &result, &e));
    if (!strstr(e.text, "'tiny/model.safetensors' changed while in use")) fail_msg("%s", e.text);
    assert_int_equal(stores_ask(*state, "changed.db", "SELECT count(*) FROM sample WHERE pass = 0"),
                     2 * PROMPTS);
    assert_int_equal(stores_ask(*state, "changed.db", "SELECT count(*) FROM sample"), 2 * PROMPTS);
    turn_signs();
    small_close(r);
}

// A method's own file, in a mix, too.
static void a_datastore_that_changes_ends_the_run(void **state) {
    static const char *const METHODS_OF[] = {
        "{name: rest, matrix: {datastore: rest.store}}",
        "{name: mix, matrix: {of: ['prompt-lookup+rest(datastore=rest.store)']}}"};
    for (int i = 0; i < 2; i++) {
        char db[16];
        RunResult result;
        Error e = {0};
        snprintf(db, sizeof db, "store-%d.db", i);
        write_store();
        SmallRun *r = small_open(METHODS_OF[i], "passes: 1, warmup: 0", PROMPTS);
        spoiler = (Spoiler){.store = true, .at = 2};
        assert_false(small_try(r, db, &(RunSeams){.asked = spoil}, &result, &e));
        if (!strstr(e.text, "'rest.store' changed while in use")) fail_msg("%s: %s", METHODS_OF[i], e.text);
        assert_int_equal(stores_ask(*state, db, "SELECT count(*) FROM sample"), 2);
        small_close(r);
    }
}

// What no look at the files shows: the texts do, in other passes and other groups.
static void texts_that_change_fail_the_run(void **state) {
    SmallRun *r = spoiled_run(true);
    RunResult result = small_run(r, "strays.db", &(RunSeams){.asked = spoil});
    assert_int_equal(result.diverged, 2); // the baseline of either group
    assert_int_equal(stores_ask(*state, "strays.db",
                                "SELECT count(*) FROM sample JOIN point ON point.id = point_id"
                                " WHERE flags & 16 AND method = 'autoregressive'"),
                     PROMPTS + 2 * PROMPTS);
    assert_int_equal(stores_ask(*state, "strays.db", "SELECT count(*) FROM sample WHERE flags & 16"),
                     3 * PROMPTS);
    turn_signs();
    result = small_run(r, "steady.db", NULL);
    assert_int_equal(result.diverged, 0);
    small_close(r);
}

static double second(void *state) { return (*(double *)state)++; }

// By a clock that goes on by 1 s a reading: a prompt's run is 1 s, and the method's begin another. A point
// that shares a run has its second besides. The baseline, and methods that read the prompt, run their own; so
// does the first of the others, but if the baseline came before. Shared or not, all else is the same.
static void a_prompt_is_run_once(void **state) {
    SmallRun *r = small_open("jacobi, lookahead, prompt-lookup, {name: recycling, matrix: {warm: off}},"
                             " {name: mix, matrix: {of: jacobi+prompt-lookup}}",
                             "passes: 2, reruns: 0", 5);
    double now = 0;
    small_run(r, "ran.db", &(RunSeams){.clock = still_clock()}); // a run that takes no time isn't shared
    small_run(r, "once.db", &(RunSeams){.clock = {second, &now}});
    small_close(r);
    stores_same(*state, "ran.db", "once.db");
    assert_int_equal(
        stores_ask(
            *state, "once.db",
            "WITH s AS (SELECT pass, prompt_id, prefill_ns, position, method = 'autoregressive' AS base, "
            "method NOT IN ('recycling', 'mix') AS plain FROM sample JOIN point ON point.id = point_id) "
            "SELECT sum(prefill_ns <> iif(plain AND NOT base AND EXISTS (SELECT 1 FROM s AS b WHERE "
            "b.pass = s.pass AND b.prompt_id = s.prompt_id AND b.position < s.position AND b.plain), 3, 2) "
            "* 1000000000) FROM s"),
        0);
}

// Nor does what the last method left of its step reach a method that begins with states of the prompt.
static void a_shared_prompt_changes_nothing(void **state) {
    SmallRun *r = small_open_with(
        "draft: tiny, adapter: kangaroo, heads: medusa, eagle: eagle", "cpu",
        "jacobi, early-exit, kangaroo, {name: medusa, matrix: {nodes: 6, depth: 2}}, speculative,"
        " {name: eagle, matrix: {total: 6, depth: 2, top: 2}}, {name: ouroboros, matrix: {gamma: 3}},"
        " {name: mix, matrix: {of: 'jacobi+medusa(nodes=6,depth=2)'}}",
        "passes: 1, warmup: 0", 3);
    double now = 0;
    small_run(r, "apart.db", &(RunSeams){.clock = still_clock()}); // a run that takes no time isn't shared
    small_run(r, "shared.db", &(RunSeams){.clock = {second, &now}});
    small_close(r);
    stores_same(*state, "apart.db", "shared.db");
}

// Each setting of a step reaches its steps: fewer rows, or rows that no longer share prefixes.
static void steps_are_as_set(void **state) {
    static const char *const asks[] = {
        "SELECT max(step.rows) FROM step JOIN sample ON sample.id = sample_id JOIN point_param USING "
        "(point_id)"
        " WHERE name = 'max_rows' AND value = 6",
        "SELECT max(step.rows) > 6 FROM step JOIN sample ON sample.id = sample_id JOIN point_param USING "
        "(point_id)"
        " WHERE name = 'max_rows' AND value = 0",
        "SELECT sum(step.rows < step.asked) FROM step JOIN sample ON sample.id = sample_id JOIN point_param "
        "USING"
        " (point_id) WHERE name = 'merge' AND value = 'off'"};
    static const int want[] = {6, 1, 0};
    SmallRun *r = small_open(
        "{name: lookahead, matrix: {W: 5, N: 3, G: 5, max_rows: [0, 6], merge: [on, off]}}", "passes: 1", 4);
    small_run(r, "set.db", NULL);
    small_close(r);
    for (int i = 0; i < 3; i++) assert_int_equal(stores_ask(*state, "set.db", asks[i]), want[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed),
                                       cmocka_unit_test(stopped_anywhere),
                                       cmocka_unit_test(lies_are_found),
                                       cmocka_unit_test(disturbed_passes_run_again),
                                       cmocka_unit_test(warm_passes),
                                       cmocka_unit_test(the_answer_is_known),
                                       cmocka_unit_test(blocks_need_a_chain),
                                       cmocka_unit_test(repeats_end),
                                       cmocka_unit_test(own_cost),
                                       cmocka_unit_test(a_prompt_is_run_once),
                                       cmocka_unit_test(a_shared_prompt_changes_nothing),
                                       cmocka_unit_test(steps_are_as_set),
                                       cmocka_unit_test(weights_are_held),
                                       cmocka_unit_test(weights_that_change_end_the_run),
                                       cmocka_unit_test(a_datastore_that_changes_ends_the_run),
                                       cmocka_unit_test(texts_that_change_fail_the_run)};
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
