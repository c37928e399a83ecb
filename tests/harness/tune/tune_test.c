// Tuning on the null backend by a clock that counts passes and rows: its choice against every point measured,
// and its cost; and the command with users' options.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "harness/tune/tune.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"
#include "tests/support/stores.h"
#include "tests/support/tuned.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PROMPTS = 30 };

static void write_prompts(const char *folder) {
    FILE *f = fopen(folder_path(folder, "own.txt"), "w");
    assert_non_null(f);
    for (int i = 0; i < PROMPTS; i++) {
        for (int k = 0; k < 20 + i % 7; k++) fprintf(f, "%c%d ", 'a' + (i * 7 + k * k) % 23, (i + k) % 9);
        fprintf(f, "\n");
    }
    fclose(f);
}

static int set_up(void **state) {
    Child c;
    if (folder_setup(state)) return -1;
    write_prompts(*state);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    // Tests run here, and the program from here.
    const char *program = getenv("OUTPACE");
    char *whole = realpath(program ? program : "./outpace", NULL);
    int failed = !whole || setenv("OUTPACE", whole, 1);
    free(whole);
    return failed ? -1 : chdir(*state);
}

// --- a machine -------------------------------------------------------------------------------------------

// A pass takes 1 ms, and 12 us for each of its rows.
static double by_rows(void *state) {
    const Session *s = state;
    return 1e-3 * s->passes + 12e-6 * s->rows;
}

static Clock row_clock(const Session *target) { return (Clock){by_rows, (void *)(uintptr_t)target}; }

static bool never(void) { return false; }

static TuneAsk ask_for(const char *method) {
    return (TuneAsk){.method = method,
                     .target = "tiny",
                     .draft = "tiny",
                     .path = "own.txt",
                     .engine = {.device = "null"},
                     .max_tokens = 48,
                     .ignore_eos = true};
}

static void tune(Tuned *t, const char *method, const TuneOptions *o, bool (*interrupted)(void)) {
    TuneAsk ask = ask_for(method);
    TuneSeams seams = {interrupted, row_clock};
    tuned_open(t, &ask, o, &seams, "tune.db");
}

static const TuneOptions OPTIONS = {
    .budget_s = 600, .share = 0.085, .racers = 5, .laps = 3, .margin = 0.02, .quiet = true};

// --- tests -----------------------------------------------------------------------------------------------

// Within 3% of the best of all points, at a tenth of their time at most. The null backend's text repeats so
// seldom that who guesses least is best; tune_long_test has a model of whose text more can be guessed.
static void finds(void **state) {
    static const char *const METHODS[] = {"lookahead:G=8", "ngrammys:strategy=context"};
    TuneOptions all = OPTIONS;
    (void)state;
    all.exhaustive = true;
    for (size_t i = 0; i < 2; i++) {
        Tuned *one = calloc(1, sizeof *one), *every = calloc(1, sizeof *every);
        tune(one, METHODS[i], &OPTIONS, never);
        tune(every, METHODS[i], &all, never);
        const TuneResult *r = &one->result, *truth = &every->result;
        double best = tune_speedup(truth, truth->choice, 0), chosen = tune_speedup(truth, r->choice, 0);
        printf("%s: %d points, best %.3f, chosen %.3f; %.1f s of %.1f s\n", METHODS[i], r->points, best,
               chosen, tuned_took(r), tuned_took(truth));
        assert_int_equal(truth->end, TUNE_SWEPT);
        assert_int_equal(r->end, TUNE_CERTAIN);
        assert_true(chosen >= 0.97 * best);
        assert_true(tuned_took(r) <= 0.1 * tuned_took(truth));
        assert_true(r->diverged == 0 && r->failed == 0 && truth->diverged == 0);
        double raced = tune_speedup(r, r->choice, r->sample_rounds);
        assert_true(r->speedup.low <= raced && raced <= r->speedup.high && r->speedup.low > 0);
        tuned_release(one), tuned_release(every);
        free(one), free(every);
    }
}

static int questions; // the question has no state of its own

static bool is_up(void) { return --questions < 0; }

// It ends wherever it's interrupted, and reports that with the measurements so far.
static void interrupted(void **state) {
    (void)state;
    bool sampled = false, raced = false;
    for (int n = 0; n < 100000 && !raced; n += 1 + n / test_some(1, 4)) {
        Tuned *t = calloc(1, sizeof *t);
        questions = n;
        tune(t, "speculative", &OPTIONS, is_up);
        assert_true(t->result.end == TUNE_INTERRUPTED || t->result.end == TUNE_CERTAIN);
        assert_true((t->result.choice >= 0) == (t->result.sample_rounds > 0));
        sampled = sampled || t->result.sample_rounds > 0;
        raced = t->result.race_rounds > 0;
        tuned_release(t);
        free(t);
    }
    assert_true(sampled && raced);
}

// Every reading takes 10 us: a clock that no session drives tells lanes apart.
static double by_readings(void *state) {
    double *now = state;
    return *now += 1e-5;
}

static double readings;
static Clock reading_clock(const Session *target) {
    (void)target;
    return (Clock){by_readings, &readings};
}

// A round of four sequences is four prompts; of 30 two are left out. Every answer is whole, its time a sum of
// parts, and all are stored.
static void batches(void **state) {
    TuneAsk ask = ask_for("lookahead:N=3,G=2");
    const TuneSeams seams = {never, reading_clock};
    TuneOptions o = OPTIONS;
    Tuned *t = calloc(1, sizeof *t);
    ask.engine.batch = 4;
    ask.axes = (Words){.items = {"W=1,2,4"}, .count = 1};
    o.exhaustive = true;
    tuned_open(t, &ask, &o, &seams, "batch.db");
    const TuneResult *r = &t->result;
    assert_true(r->end == TUNE_SWEPT && r->batch == 4 && r->points == 3 && r->choice >= 0);
    assert_true(r->sample_rounds == 7 && r->diverged == 0 && r->failed == 0);
    for (int i = 0; i <= r->points; i++) {
        assert_int_equal(r->seats[i].count, 7);
        for (int k = 0; k < 7; k++) {
            const TuneAnswer *a = &r->seats[i].answers[k];
            if (a->tokens != 4 * 48 || !(a->seconds > 0) || a->round != k)
                fail_msg("point %d, round %d: %g tokens in %g s, of round %d", i, k, a->tokens, a->seconds,
                         a->round);
        }
    }
    tuned_release(t);
    free(t);
    assert_int_equal(stores_ask(*state, "batch.db", "SELECT count(*) FROM sample"), 4 * 28);
    assert_int_equal(
        stores_ask(*state, "batch.db", "SELECT count(*) FROM step_batch WHERE sequences = 4") > 0, 1);
    Child c;
    CHILD_OUTPACE(&c, *state, 2, "tune", "tiny", "--method", "lookahead", "--path", "own.txt", "--batch",
                  "16", "--device", "null");
    assert_non_null(strstr(text_get(&c.err), "a race needs two batches, 32 prompts; the dataset has 30"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "tune", "tiny", "--method", "recycling", "--path", "own.txt", "--batch", "2",
                  "--device", "null", "--tree", "x.tree");
    assert_non_null(strstr(text_get(&c.err), "leave out --batch"));
    child_release(&c);
}

// Whatever the method, and whatever the budget: it is not overrun by more than what is planned wrongly, there
// is a choice, and the largest is enough for a race.
static void budgets(void **state) {
    static const char *const METHODS[] = {"lookahead:G=8", "ngrammys:strategy=context", "speculative",
                                          "ouroboros"};
    static const double SECONDS[] = {0.6, 1.5, 4};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 3; k++) {
            TuneOptions o = OPTIONS;
            Tuned *t = calloc(1, sizeof *t);
            o.budget_s = SECONDS[k], o.share = 1e6;
            tune(t, METHODS[i], &o, never);
            const TuneResult *r = &t->result;
            printf("%s, %g s: %d prompts, %d rounds raced; %.2f s\n", METHODS[i], o.budget_s,
                   r->sample_rounds, r->race_rounds, tuned_took(r));
            if (tuned_took(r) > 1.1 * o.budget_s)
                fail_msg("%s in %g s took %g s", METHODS[i], o.budget_s, tuned_took(r));
            assert_true(r->end == TUNE_BUDGET || r->end == TUNE_CERTAIN);
            assert_true(r->choice >= 0);
            assert_true(k < 2 || r->race_rounds >= 4);
            tuned_release(t);
            free(t);
        }
    }
}

static double stops_at; // passes: the clock has no state of its own

static double stopping(void *state) {
    const Session *s = state;
    return s->passes < stops_at ? by_rows(state) : 0;
}

static Clock stopping_clock(const Session *target) { return (Clock){stopping, (void *)(uintptr_t)target}; }

// If the clock stops anywhere, times of 0 aren't used; the error gives the reason.
static void no_time(void **state) {
    TuneAsk ask = ask_for("speculative");
    TuneSeams seams = {never, stopping_clock};
    int steps = 0, answers = 0;
    bool done = false;
    (void)state;
    for (stops_at = 0; !done; stops_at += 1 + floor(stops_at / test_some(1, 4))) {
        Tuned *t = calloc(1, sizeof *t);
        Error e = {0};
        done = tuned_try(t, &ask, &OPTIONS, &seams, "tune.db", &e);
        bool step = strstr(e.text, "a step took no time by the clock") != NULL,
             answer = strstr(e.text, "an answer took no time by the clock") != NULL;
        if (!done && !step && !answer) fail_msg("stopped at pass %g: got '%s'", stops_at, e.text);
        steps += step, answers += answer;
        tuned_release(t);
        free(t);
    }
    assert_true(steps > 0 && answers > 0);
}

static double by_dear_rows(void *state) {
    const Session *s = state;
    return 1e-3 * s->passes + 2e-4 * s->rows;
}

static Clock dear_clock(const Session *target) { return (Clock){by_dear_rows, (void *)(uintptr_t)target}; }

// Of this space the shorter half is all of gamma 1, where a step takes longer than what it can emit.
static void short_steps_lose(void **state) {
    TuneAsk ask = ask_for("ouroboros:beta=3");
    TuneOptions o = OPTIONS;
    TuneSeams seams = {never, dear_clock};
    Tuned *t = calloc(1, sizeof *t);
    (void)state;
    ask.axes.items[0] = "gamma=1,16", ask.axes.items[1] = "K=16..20", ask.axes.count = 2;
    tuned_open(t, &ask, &o, &seams, "tune.db");
    assert_int_equal(t->result.excluded, 5);
    assert_true(t->result.choice >= 0);
    for (int i = 0; i < t->result.points; i++)
        if (t->result.seats[i].sampled) assert_true(t->space.points[i].N == 16 + 3);
    tuned_release(t);
    free(t);
}

// The program's own words: a choice that `generate` takes, and a run in the store.
static void command(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "tune", "tiny", "--method", "ouroboros:beta=3", "--draft", "tiny", "--path",
                  "own.txt", "--device", "null", "--max-tokens", "16", "--axis", "gamma=2..4", "--axis",
                  "K=0,2", "--limit", "8", "--db", "x.db", "--json");
    json_t *root = json_loads(text_get(&c.out), 0, NULL);
    const char *choice = json_string_value(json_object_get(root, "choice"));
    assert_non_null(choice);
    assert_int_equal(json_array_size(json_object_get(root, "points")), 6);
    assert_memory_equal(choice, "ouroboros:", 10);
    Child g;
    CHILD_OUTPACE(&g, *state, 0, "generate", "tiny", "a b c", "--device", "null", "--draft", "tiny",
                  "--method", choice);
    child_release(&g);
    json_decref(root);
    child_release(&c);
    // Without a race there is no interval.
    CHILD_OUTPACE(&c, *state, 0, "tune", "tiny", "--method", "speculative", "--draft", "tiny", "--path",
                  "own.txt", "--device", "null", "--max-tokens", "8", "--axis", "gamma=1,2", "--limit", "3",
                  "--exhaustive", "--db", "all.db", "--json");
    root = json_loads(text_get(&c.out), 0, NULL);
    assert_true(json_number_value(json_object_get(root, "speedup")) > 0);
    assert_true(json_is_null(json_object_get(root, "speedup_low")));
    assert_true(json_is_null(json_object_get(root, "speedup_high")));
    json_decref(root);
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "show", "tune", "--db", "x.db");
    assert_non_null(strstr(text_get(&c.out), "ouroboros"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "tune", "tiny", "--method", "speculative", "--draft", "tiny", "--path",
                  "own.txt", "--device", "null", "--max-tokens", "16", "--limit", "8", "--db", "x.db",
                  "--processor-time", "--compute", "f32", "--threads", "1");
    assert_non_null(strstr(text_get(&c.out), "of the processor, not the wall's"));
    assert_non_null(
        strstr(text_get(&c.out), "use        outpace generate tiny -f prompt.txt --method 'spec"));
    assert_non_null(strstr(text_get(&c.out), "' --draft tiny --device null --compute f32 --threads 1\n"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "tune", "tiny", "--method", "speculative", "--draft", "tiny", "--path",
                  "own.txt", "--max-tokens", "4", "--axis", "gamma=1,2", "--limit", "2", "--exhaustive",
                  "--db", "held.db", "--threads", "1", "--weights", "held");
    assert_non_null(strstr(text_get(&c.out), "' --draft tiny --threads 1 --weights held\n"));
    child_release(&c);
}

static bool has_parameter(const MethodInfo *m, const char *name) {
    for (size_t i = 0; i < m->param_count; i++)
        if (strcmp(m->params[i].name, name) == 0) return true;
    return false;
}

// Each method has a space whose axes it knows, or is named among those that have none.
static void all_methods(void **state) {
    (void)state;
    size_t count;
    const MethodInfo *const *methods = method_table(&count);
    for (size_t i = 0; i < count; i++) {
        Error e = {0};
        const char *name = methods[i]->name;
        const TuneMethod *m = tune_method_find(name, &e);
        if (!m && !strstr(e.text, "there is no space for")) fail_msg("%s: %s", name, e.text);
        for (int k = 0; m && k < TUNE_AXES && m->axes[k].name; k++)
            if (!has_parameter(methods[i], m->axes[k].name))
                fail_msg("%s has no parameter '%s'", name, m->axes[k].name);
    }
}

// The points of methods that read nothing but the text: they can be measured, and plan what they run.
static void model_free_methods(void **state) {
    static const char *const METHODS[] = {
        "suffix:draft=8,min_prob=0.1", "ngram-mod:n=2", "recycling:rejected=on",       "early-exit:eta=0",
        "prompt-lookup:match=newest",  "jacobi",        "speculative:tree=3x2,gamma=9"};
    (void)state;
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++) {
        Tuned *t = calloc(1, sizeof *t);
        tune(t, METHODS[i], &OPTIONS, never);
        assert_true(t->result.choice >= 0 && t->result.failed == 0 && t->result.diverged == 0);
        for (int k = 0; k < t->result.points; k++) {
            const TuneSeat *s = &t->result.seats[k];
            TuneAnswer sum;
            if (!tune_sum(s, 0, 1000, &sum)) continue;
            const TuningPoint *plan = &t->space.points[k];
            if (sum.tokens > plan->N * sum.steps)
                fail_msg("%s: point %d emits more than planned", METHODS[i], k);
            if (i > 0 && sum.rows > plan->rows * sum.steps)
                fail_msg("%s: point %d runs more rows than planned", METHODS[i], k);
        }
        tuned_release(t);
        free(t);
    }
}

static void mistakes(void **state) {
    static const struct {
        const char *words[12], *said;
    } ROWS[] = {
        {{"tune", "tiny"}, "give a --method"},
        {{"tune", "tiny", "--method", "lookahead"}, "give --dataset"},
        {{"tune", "tiny", "--method", "mix", "--dataset", "code"},
         "no space for 'mix': its parts have theirs"},
        {{"tune", "tiny", "--method", "medusa", "--dataset", "code"}, "Medusa heads are needed"},
        {{"tune", "tiny", "--method", "sufix", "--dataset", "code"}, "'suffix'"},
        {{"tune", "tiny", "--method", "lookahead:X=3", "--dataset", "code"}, "no parameter 'X'"},
        {{"tune", "tiny", "--method", "lookahead", "--dataset", "code", "--axis", "W"},
         "must be NAME=VALUES"},
        {{"tune", "tiny", "--method", "lookahead:W", "--dataset", "code"}, "must be NAME=VALUE"},
        {{"tune", "tiny", "--method", "lookahead", "--dataset", "code", "--axis", "W=0"}, "W"},
        {{"tune", "tiny", "--method", "speculative", "--dataset", "code"}, "a draft model is needed"},
        {{"tune", "tiny", "--method", "lookahead", "--dataset", "code", "--limit", "1"},
         "two prompts at least"},
        {{"tune", "tiny", "--method", "lookahead", "--dataset", "code", "--budget", "1d"},
         "as 90s, 10m or 1h"},
        {{"tune", "tiny", "--method", "speculative", "--draft", "tiny", "--path", "own.txt", "--budget",
          "0.000001s"},
         "nothing can be told"},
        {{"tune", "nowhere", "--method", "lookahead", "--dataset", "code"}, "nowhere"},
        {{"tune", "tiny", "--method", "lookahead", "--dataset", "code", "--set", "generation.seed=1..3"},
         "settings vary"},
        {{"tune", "tiny", "--method", "lookahead", "--dataset", "code", "--set", "generation.temperature=1"},
         "must be greedy"},
        {{"tune", "tiny", "--method", "lookahead", "--dataset", "code", "--math", "fast"},
         "math: fast needs device cuda"},
        {{"tune", "tiny", "--method", "lookahead", "--dataset", "code", "--math", "faster"},
         "must be one of exact, fast"},
        {{"tune", "tiny", "--method", "lookahead", "--dataset", "code", "--device", "null", "--weights",
          "held"},
         "weights: held needs device cpu"},
        {{"tune", "tiny", "--method", "lookahead", "--dataset", "code", "--device", "null", "--compute",
          "int8"},
         "compute: int8 needs device cpu"},
        {{"tune", "tiny", "--method", "ouroboros:warm=on", "--dataset", "code", "--draft", "tiny"},
         "whole passes"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Child c;
        child_outpace(&c, *state, 2, ROWS[i].words);
        if (!strstr(text_get(&c.err), ROWS[i].said))
            fail_msg("wanted '%s', got '%s'", ROWS[i].said, text_get(&c.err));
        child_release(&c);
    }
}

// A number of drafted tokens for each batch, in ranges that leave none out; what isn't a list of batches is
// refused before anything is measured.
static void schedule(void **state) {
    static const struct {
        const char *batches, *option, *value, *why;
    } ROWS[] = {{"4,2", NULL, NULL, "must rise"},
                {"0,1", NULL, NULL, "--batches"},
                {"x", NULL, NULL, "--batches"},
                {"1", "--contexts", "60,20", "--contexts is '60,20', must rise"},
                {"1", "--contexts", "1..9", "--contexts has 9, must be 8 at most"},
                {"1", "--contexts", "100000", "the model's context holds"},
                {"1", "--tree", "t.tree", "give one of them"}};
    Child c;
    json_t *all, *ranges;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        CHILD_OUTPACE(&c, *state, 2, "tune", "tiny", "--method", "jacobi", "--path", "own.txt", "--device",
                      "null", "--schedule", "k.json", "--batches", ROWS[i].batches, ROWS[i].option,
                      ROWS[i].value);
        if (!strstr(text_get(&c.err), ROWS[i].why))
            fail_msg("%s: wanted '%s' in: %s", ROWS[i].batches, ROWS[i].why, text_get(&c.err));
        child_release(&c);
    }
    CHILD_OUTPACE(&c, *state, 0, "tune", "tiny", "--method", "jacobi", "--axis", "m=1,3", "--path", "own.txt",
                  "--device", "null", "--budget", "2s", "-n", "8", "--schedule", "k.json", "--batches", "1,3",
                  "--contexts", "20,30");
    assert_non_null(strstr(text_get(&c.out), "written to k.json"));
    child_release(&c);
    size_t size;
    char *text = scratch_read(*state, "k.json", &size);
    all = json_loads(text, 0, NULL);
    ranges = json_object_get(all, "num_speculative_tokens_per_batch_size");
    assert_int_equal(json_array_size(ranges), 2);
    int first, last, drafted;
    assert_int_equal(json_unpack(json_array_get(ranges, 1), "[i, i, i]", &first, &last, &drafted), 0);
    assert_true(first == 2 && last == 3 && (drafted == 0 || drafted == 1 || drafted == 3));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(all, "draft_len_schedule"), "3")),
                     drafted);
    const json_t *far = json_array_get(json_object_get(all, "by_context"), 1);
    assert_int_equal(json_integer_value(json_object_get(far, "context")), 30);
    assert_int_equal(json_array_size(json_object_get(far, "num_speculative_tokens_per_batch_size")), 2);
    json_decref(all);
    mem_free(text);
}

// Two racers of 4 and 8 rows, which write 2 and 3 tokens a step: where rows are dear the shorter one wins, and
// where even its rows take twice a token's time, decoding without guesses is as fast.
static void elsewhere(void **state) {
    (void)state;
    TuneAnswer few = {.tokens = 60, .steps = 30, .rows = 120, .seconds = 33},
               many = {.tokens = 60, .steps = 20, .rows = 160, .seconds = 26},
               one = {.tokens = 60, .steps = 60, .rows = 60, .seconds = 60};
    TuneSeat seats[] = {{.answers = &few, .count = 1, .raced = true},
                        {.answers = &many, .count = 1, .raced = true},
                        {.answers = &one, .count = 1}};
    TuneResult r = {.seats = seats,
                    .points = 2,
                    .batch = 1,
                    .race_rounds = 1,
                    .surface = {{1, 4, 8}, {1, 1, 1.1}, .count = 3}};
    TuneSurface dear = {{1, 4, 8}, {1, 1.2, 2.2}, .count = 3}, dearer = {{1, 4, 8}, {1, 2, 4}, .count = 3};
    double speedup;
    assert_int_equal(tune_fastest_at(&r, &r.surface, &speedup), 1);
    assert_true(fabs(speedup - 60.0 / 26) < 1e-9);
    assert_int_equal(tune_fastest_at(&r, &dear, &speedup), 0);
    assert_true(fabs(speedup - 60.0 / 39) < 1e-9); // 30 steps, each longer by 0.2; a draft's 0.1 stays
    assert_int_equal(tune_fastest_at(&r, &dearer, &speedup), 0);
    assert_true(speedup < 1);
    r.batch = 2; // of a shared step each sequence has a half
    assert_int_equal(tune_fastest_at(&r, &dear, &speedup), 0);
    assert_true(fabs(speedup - 60.0 / 36) < 1e-9);
    seats[0].raced = seats[1].raced = false;
    assert_int_equal(tune_fastest_at(&r, &dear, &speedup), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches),   cmocka_unit_test(finds),       cmocka_unit_test(interrupted),
        cmocka_unit_test(budgets),   cmocka_unit_test(no_time),     cmocka_unit_test(short_steps_lose),
        cmocka_unit_test(command),   cmocka_unit_test(mistakes),    cmocka_unit_test(schedule),
        cmocka_unit_test(elsewhere), cmocka_unit_test(all_methods), cmocka_unit_test(model_free_methods),
    };
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
