// The oracle: the output is the model's whatever is proposed; each token is right as often as it's asked to
// be, whatever came before it; and each parameter does what it says, step by step. That S follows the laws is
// tested in laws_test of tests/harness/analysis.
#include "tests/support/check.h"
#include "tests/support/null_session.h"

#include "engine/decode/decode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 40, CONTEXT = 1200, TOKENS = 1000, PLACES = 4 };

typedef struct {
    Session s;
    int prompt[4], answer[TOKENS];
    int before;                        // tokens that were known before the step
    int steps, bare, filling, longest; // bare: without a guess
    int guesses, ends_wrong;           // guesses, and those whose last token is wrong
    double right[PLACES], all[PLACES]; // tokens by their place in a guess
    int full, accepted, least, most;   // least, most: accepted by a step
} World;

// A path from the root to a leaf is a guess: no rows are merged.
static void look_at_leaf(World *w, const Tree *t, int leaf) {
    int path[TREE_MAX_NODES], n = tree_path(t, leaf, path) - 1;
    bool right = true;
    w->guesses++;
    if (n > w->longest) w->longest = n;
    for (int i = 0; i < n; i++) {
        right = t->token[path[i + 1]] == w->answer[w->before + i];
        if (i < PLACES) w->right[i] += right;
        if (i < PLACES) w->all[i]++;
    }
    w->ends_wrong += !right;
}

static void look(void *state, const StepReport *r) {
    World *w = state;
    const Tree *t = &w->s.tree;
    bool parent[TREE_MAX_NODES] = {false};
    for (int i = 1; i < t->count; i++)
        if (t->parent[i] != TREE_NONE) parent[t->parent[i]] = true;
    for (int i = 1; i < t->count; i++)
        if (!parent[i]) look_at_leaf(w, t, i);
    w->bare += r->candidates == 0;
    w->filling += r->note.kind == STEP_FILLING;
    w->full += r->emitted == r->accepted;
    w->accepted += r->accepted;
    if (w->steps == 0 || r->accepted < w->least) w->least = r->accepted;
    if (r->accepted > w->most) w->most = r->accepted;
    w->steps++;
    w->before += r->emitted;
}

static void open_world(World *w) {
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT};
    *w = (World){.prompt = {1, 2, 3, 4}};
    null_session_open(&w->s, &setup);
    slow_greedy(&w->s, w->prompt, 4, TOKENS, w->answer);
}

static void run(World *w, const char *text, uint64_t seed) {
    Method m;
    MethodEnv env = {.target = &w->s, .sampling = {.top_p = 1}};
    DecodeOptions o = {.max_tokens = TOKENS,
                       .sampling = env.sampling,
                       .seed = seed,
                       .answer = w->answer,
                       .answer_count = TOKENS,
                       .clock = still_clock(),
                       .step = look,
                       .state = w};
    DecodeResult out;
    Error e = {0};
    memset(&w->before, 0, sizeof *w - offsetof(World, before));
    if (!method_open(&m, text, &env, &e) || !decode(&w->s, &m, w->prompt, 4, &o, &out, &e))
        fail_msg("%s: %s", text, e.text);
    assert_int_equal(out.tokens, TOKENS);
    assert_memory_equal(out.ids, w->answer, sizeof w->answer);
    decode_result_release(&out);
    method_close(&m);
}

// Within five standard errors.
static void about(double count, double n, double share) {
    double se = sqrt(share * (1 - share) / n) + 1e-9;
    if (fabs(count / n - share) > 5 * se)
        fail_msg("%g of %g, wanted a share of %g +- %g", count, n, share, se);
}

static void tokens_are_right_as_asked(void **state) {
    (void)state;
    static const double wanted[PLACES] = {0.9, 0.2, 0.6, 0.6};
    World w;
    open_world(&w);
    run(&w, "oracle:accept=0.9:0.2:0.6,draft=4,guesses=3", 5);
    for (int i = 0; i < PLACES; i++) about(w.right[i], w.all[i], wanted[i]);
    run(&w, "oracle:accept=1,draft=4", 5);
    assert_int_equal(w.steps, TOKENS / 5);
    assert_int_equal(w.accepted, TOKENS / 5 * 4);
    run(&w, "oracle:accept=0,draft=4,guesses=2", 5);
    assert_int_equal(w.steps, TOKENS);
    assert_true(w.right[0] == 0 && w.right[3] == 0);
    session_release(&w.s);
}

static void every_parameter(void **state) {
    (void)state;
    World w;
    open_world(&w);
    run(&w, "oracle:filling=7,f=4,accept=0.5", 6);
    assert_int_equal(w.filling, 7);
    about(w.bare - 7, w.steps - 7, 0.75);
    run(&w, "oracle:guess_shares=0.25:0.5:0:0.25,accept=0.1", 6);
    about(w.bare, w.steps, 0.25);
    assert_true(fabs(w.guesses / (double)w.steps - 1.25) < 0.15);
    run(&w, "oracle:accept=1,draft=4,bonus=drop", 6);
    assert_int_equal(w.full, w.steps);
    assert_int_equal(w.steps, TOKENS / 4);
    run(&w, "oracle:accept=0.8,draft=0", 6);
    assert_true(w.ends_wrong >= w.steps - 1 && w.longest > 8); // the last guess may end with the answer
    run(&w, "oracle:levels=0.1:0.9,level_shares=0.25:0.75,accept=0.2:0.9,eta=0.1,draft=4", 6);
    assert_int_equal(w.longest, 4);
    about(w.all[1], w.all[0], 0.75);
    about(w.right[0], w.all[0], 0.25 * 0.2 + 0.75 * 0.9);
    session_release(&w.s);
}

// A mean of tokens a step is kept to within a token of the whole output, by whole numbers around it, or as a
// mean of chances; whatever is known of positions besides isn't asked.
static void mean_lengths(void **state) {
    (void)state;
    World w;
    open_world(&w);
    run(&w, "oracle:length=3.36,draft=5", 7);
    assert_true(abs(w.steps - 298) <= 1); // 1000 / 3.36
    assert_true(w.most == 3 && w.longest == 5);
    run(&w, "oracle:length=2,draft=0", 7);
    assert_int_equal(w.steps, TOKENS / 2);
    assert_true(w.least == 1 && w.most == 1);
    run(&w, "oracle:length=1,draft=3", 7);
    assert_int_equal(w.accepted, 0);
    run(&w, "oracle:length=4,draft=3", 7);
    assert_int_equal(w.steps, TOKENS / 4);
    run(&w, "oracle:length=2.5,draft=4,spread=geometric", 7); // a + a^2 + a^3 + a^4 = 1.5: 0.665
    about(w.right[0], w.all[0], 0.665);
    about(w.right[3], w.all[3], 0.665);
    run(&w, "oracle:length=4,draft=0,spread=geometric", 7);
    about(w.right[0], w.all[0], 0.75);
    session_release(&w.s);
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
        double temperature;
        bool mixed;
    } cases[] = {
        {"oracle:accept=1.5", "'accept' is '1.5', must be numbers from 0 to 1", 0, false},
        {"oracle:accept=", "'accept' is ''", 0, false},
        {"oracle:accept=0.5:", "'accept' is '0.5:'", 0, false},
        {"oracle:guess_shares=0.5:0.2", "'guess_shares' sum to 0.7", 0, false},
        {"oracle:levels=0.5", "1 'levels', 0 'level_shares' and 1 chances", 0, false},
        {"oracle:levels=0.5:0.6,level_shares=0.5:0.5", "2 'levels', 2 'level_shares' and 1 chances", 0,
         false},
        {"oracle:guesses=64,draft=16", "64 guesses of 16 tokens are too many", 0, false},
        {"oracle:length=0.5", "must be 1 or more", 0, false},
        {"oracle:length=4.1,draft=3", "a guess of 3 tokens gives at most 4", 0, false},
        {"oracle:length=2,guesses=2", "of one guess a step", 0, false},
        {"oracle", "needs temperature 0", 0.5, false},
        {"oracle", "a mix doesn't give", 0, true},
    };
    World w;
    open_world(&w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Method m;
        Error e = {0};
        MethodEnv env = {
            .target = &w.s, .mixed = cases[i].mixed, .sampling.temperature = cases[i].temperature};
        if (method_open(&m, cases[i].text, &env, &e) || !strstr(e.text, cases[i].why))
            fail_msg("%s: wanted '%s', got '%s'", cases[i].text, cases[i].why, e.text);
    }
    Method m;
    Error e = {0};
    DecodeResult out;
    MethodEnv env = {.target = &w.s};
    DecodeOptions o = {.max_tokens = 5, .clock = still_clock()};
    assert_true(method_open(&m, "oracle", &env, &e));
    assert_false(decode(&w.s, &m, w.prompt, 4, &o, &out, &e));
    assert_non_null(strstr(e.text, "'generate' decode it first"));
    method_close(&m);
    session_release(&w.s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_right_as_asked),
        cmocka_unit_test(every_parameter),
        cmocka_unit_test(mean_lengths),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
