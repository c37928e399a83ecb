// The best fixed tree: its expected tokens against the real loop and verifier, fed by a method whose children
// are right as often as it is told; the choice by cost against every size and depth; and the command.
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/null_session.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/random.h"
#include "harness/tune/tree.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VOCAB = 24, CONTEXT = 700, TOKENS = 600, BEYOND = 20, OUTPUTS = 12, RANKS = 4 };

// --- a method of known acceptance ------------------------------------------------------------------------

typedef struct Told {
    RankTree tree;
    const double *chance; // (RANKS)
    Random random;
    const int *truth; // (TOKENS + BEYOND): the output
    int at;           // tokens of it so far
} Told;

static int draw_rank(Told *t) {
    double u = random_uniform(&t->random);
    int rank = 0;
    while (rank < RANKS && u >= t->chance[rank]) u -= t->chance[rank++];
    return rank;
}

// Of each right node's children, placed or not, at most one is right: of a rank that is drawn.
static bool told_propose(void *self, Tree *tree, Error *e) {
    (void)e;
    Told *t = self;
    int right_rank[RANK_TREE_MOST + 1] = {draw_rank(t)}, root = tree_row(tree);
    bool right[RANK_TREE_MOST];
    for (int i = 0; i < t->tree.count; i++) {
        const RankNode *n = &t->tree.nodes[i];
        int want = t->truth[t->at + n->depth], parent = n->parent < 0 ? root : t->tree.placed[n->parent];
        right[i] = (n->parent < 0 || right[n->parent]) && right_rank[n->parent + 1] == n->rank;
        right_rank[i + 1] = draw_rank(t);
        t->tree.placed[i] = tree_propose(tree, parent, right[i] ? want : (want + 1 + n->rank) % VOCAB);
    }
    return true;
}

static bool told_begin(void *self, const Prompt *prompt, Error *e) {
    (void)prompt, (void)e;
    ((Told *)self)->at = 0;
    return true;
}

static bool told_observe(void *self, const Observation *seen, Error *e) {
    (void)e;
    ((Told *)self)->at += seen->emitted_count;
    return true;
}

static const RankTree *told_tree(const void *self) { return &((const Told *)self)->tree; }

static const MethodInfo TOLD = {.name = "told",
                                .begin = told_begin,
                                .propose = told_propose,
                                .observe = told_observe,
                                .rank_tree = told_tree};

typedef struct Sum {
    TreeCounts counts;
    double squares;
} Sum;

static void add_step(void *state, const StepReport *r) {
    Sum *s = state;
    tree_count(&s->counts, r);
    s->squares += (r->accepted + 1) * (r->accepted + 1);
}

static void run_told(Session *target, Told *told, Random *r, Sum *sum) {
    int truth[TOKENS + BEYOND], prompt[3];
    for (int i = 0; i < 3; i++) prompt[i] = test_between(r, 0, VOCAB - 1);
    slow_greedy(target, prompt, 3, TOKENS + BEYOND, truth);
    Method m = {.info = &TOLD, .self = told};
    DecodeOptions o = {.max_tokens = TOKENS,
                       .sampling = {.top_p = 1},
                       .merge = test_between(r, 0, 1),
                       .layout = test_between(r, 0, 1) ? LAYOUT_TREE : LAYOUT_BATCH,
                       .clock = still_clock(),
                       .step = add_step,
                       .state = sum};
    DecodeResult out;
    told->truth = truth;
    assert_true(decode(target, &m, prompt, 3, &o, &out, NULL));
    assert_memory_equal(out.ids, truth, TOKENS * sizeof *truth);
    decode_result_release(&out);
}

static void check_near(const char *what, double got, double want, double deviation) {
    if (fabs(got - want) > 5 * deviation + 1e-12)
        fail_msg("%s: %g, want %g within %g", what, got, want, 5 * deviation);
}

static void random_chances(Random *r, double *chance) {
    double total = 0.2 + random_uniform(r);
    for (int b = 0; b < RANKS; b++) total += chance[b] = random_uniform(r) / (b + 1);
    for (int b = 0; b < RANKS; b++) chance[b] /= total;
}

// 100 us a row and level, or a tenth of either.
static TreeCost random_cost(Random *r, double *seconds) {
    static const double rows[] = {1, 64};
    TreeCost c = {.target = {.rows = rows, .seconds = seconds, .count = 2}};
    seconds[0] = 1e-3;
    seconds[1] = test_between(r, 0, 1) ? 1.5e-3 : 7e-3;
    c.level_s = test_between(r, 0, 1) ? 1e-4 : 1e-5;
    return c;
}

static void expected_is_measured(void **state) {
    (void)state;
    Random r = test_random(86);
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT, .max_nodes = 64};
    Session target;
    null_session_open(&target, &setup);
    for (int round = 0; round < 6; round++) {
        double chance[RANK_TREE_RANKS] = {0}, seconds[2];
        TreeChoice choice;
        Sum sum = {.squares = 0};
        random_chances(&r, chance);
        TreeCost cost = random_cost(&r, seconds);
        tree_choose(chance, test_between(&r, 1, 40), test_between(&r, 1, 6), &cost, &choice);
        Told told = {.tree = choice.tree, .chance = chance, .random = {.seed = random_bits(&r)}};
        for (int i = 0; i < OUTPUTS; i++) run_told(&target, &told, &r, &sum);
        const TreeCounts *c = &sum.counts;
        double mean = c->tokens / c->steps, spread = sqrt(sum.squares / c->steps - mean * mean);
        check_near("tokens a step", mean, choice.tokens, spread / sqrt(c->steps));
        for (int b = 0; b < rank_tree_width(&choice.tree); b++) {
            double tried = 0;
            for (int d = 0; d <= RANK_TREE_DEPTH; d++) tried += c->tried[d][b];
            check_near("chance", tree_chance(c, b), chance[b], sqrt(chance[b] * (1 - chance[b]) / tried));
        }
        print_message("%d guesses in %d levels: %.3f tokens a step, expected %.3f\n", choice.tree.count,
                      rank_tree_levels(&choice.tree), mean, choice.tokens);
        rank_tree_release(&choice.tree);
    }
    session_release(&target);
}

// --- the choice ------------------------------------------------------------------------------------------

// Each node's expected gain and the cost by a slow count of what is run.
static void value_slowly(const RankTree *t, const double *chance, const TreeCost *c, double *tokens,
                         double *seconds) {
    double reached[RANK_TREE_MOST];
    *tokens = 1;
    for (int i = 0; i < t->count; i++) {
        reached[i] = (t->nodes[i].parent < 0 ? 1 : reached[t->nodes[i].parent]) * chance[t->nodes[i].rank];
        *tokens += reached[i];
    }
    *seconds = tuning_curve_at(&c->target, t->count + 1) + c->row_s * (t->count + 1) + c->step_s;
    for (int level = 0; level < rank_tree_levels(t); level++) {
        int run = level == 0;
        for (int i = 0; i < t->count; i++) {
            bool inner = false;
            for (int k = 0; k < t->count; k++) inner = inner || t->nodes[k].parent == i;
            run += inner && t->nodes[i].depth + 1 == level;
        }
        *seconds += c->level_s * (c->forward.count ? tuning_curve_at(&c->forward, run) : 1);
    }
}

// The choice is worth what it is reckoned to be, and better than any tree that was grown by other rules.
static void choice_is_best(void **state) {
    (void)state;
    static const double rows[] = {1, 8, 64};
    double draft[] = {2e-4, 3e-4, 9e-4};
    Random r = test_random(87);
    RankTree other;
    rank_tree_init(&other);
    for (int round = 0; round < 30; round++) {
        double chance[RANK_TREE_RANKS] = {0}, seconds[2], tokens, took;
        TreeChoice choice;
        random_chances(&r, chance);
        TreeCost cost = random_cost(&r, seconds);
        cost.row_s = test_between(&r, 0, 1) * 2e-5;
        bool drafts = test_between(&r, 0, 1);
        if (drafts) cost.forward = (TuningCurve){rows, draft, 3}, cost.level_s = 1.2;
        tree_choose(chance, 20, 5, &cost, &choice);
        value_slowly(&choice.tree, chance, &cost, &tokens, &took);
        assert_true(fabs(tokens - choice.tokens) < 1e-9 && fabs(took - choice.seconds) < 1e-12);
        for (int count = 1; count <= 20 && !drafts; count++) {
            rank_tree_grow(&other, count, test_between(&r, 1, 5), test_between(&r, 1, 10));
            value_slowly(&other, chance, &cost, &tokens, &took);
            assert_true(choice.seconds / choice.tokens <= took / tokens * (1 + 1e-9));
        }
        rank_tree_release(&choice.tree);
    }
    rank_tree_release(&other);
}

// --- the command -----------------------------------------------------------------------------------------

static int set_up(void **state) {
    Child c;
    if (folder_setup(state)) return -1;
    const char *program = getenv("OUTPACE"), *root = getenv("OUTPACE_ROOT");
    char *whole = realpath(program ? program : "./outpace", NULL), *models = NULL;
    models = realpath(root ? root : ".", NULL);
    int failed = !whole || !models || setenv("OUTPACE", whole, 1) || setenv("MODELS_ROOT", models, 1);
    free(whole);
    free(models);
    if (failed) return -1;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    return 0;
}

static double number_of(const json_t *root, const char *name) {
    return json_number_value(json_object_get(root, name));
}

// The file holds the tree that is reported, and `generate` takes the method.
static void check_made(const char *folder, const json_t *root, const char *file) {
    RankTree t;
    Error e = {0};
    double sum = 0;
    rank_tree_init(&t);
    if (!rank_tree_read(&t, RANK_TREE_DEPTH, folder_path(folder, file), &e)) fail_msg("%s", e.text);
    assert_int_equal(t.count, (int)number_of(root, "guesses"));
    assert_int_equal(rank_tree_levels(&t), (int)number_of(root, "levels"));
    double tokens = number_of(root, "tokens_per_step");
    assert_true(tokens > 1 && tokens <= rank_tree_levels(&t) + 1 && number_of(root, "step_s") > 0);
    for (size_t i = 0; i < RANK_TREE_RANKS; i++)
        sum += json_number_value(json_array_get(json_object_get(root, "chance"), i));
    assert_true(sum > 0 && number_of(json_object_get(root, "checked"), "steps") > 0);
    rank_tree_release(&t);
}

// Real models, and everything from the calibration to the check.
static void reference(void **state) {
    const char *root = getenv("MODELS_ROOT");
    char target[4096], draft[4096], heads[4096];
    snprintf(target, sizeof target, "%s/models/reference", root);
    snprintf(draft, sizeof draft, "%s/models/draft", root);
    snprintf(heads, sizeof heads, "%s/models/reference-medusa", root);
    const struct {
        const char *method, *option, *value;
    } ROWS[] = {
        {"speculative", "--draft", draft}, {"medusa", "--adapter", heads}, {"recycling", "--seed", "1"}};
    for (size_t i = 0; i < 3; i++) {
        Child c;
        CHILD_OUTPACE(&c, *state, 0, "tune", target, "--method", ROWS[i].method, ROWS[i].option,
                      ROWS[i].value, "--dataset", "code", "--limit", "4", "-n", "24", "--threads", "1",
                      "--processor-time", "--nodes", "24", "--tree", "best.tree", "--json");
        json_t *report = json_loads(text_get(&c.out), 0, NULL);
        assert_non_null(report);
        check_made(*state, report, "best.tree");
        const char *method = json_string_value(json_object_get(report, "method"));
        Child g;
        if (i < 2)
            CHILD_OUTPACE(&g, *state, 0, "generate", target, "def f(", "-n", "6", "--method", method,
                          ROWS[i].option, ROWS[i].value);
        else CHILD_OUTPACE(&g, *state, 0, "generate", target, "def f(", "-n", "6", "--method", method);
        child_release(&g);
        json_decref(report);
        child_release(&c);
    }
}

// For people; drawn outputs; parameters of the user's; another file is not replaced.
static void words(void **state) {
    Child c;
    assert_true(file_write(folder_path(*state, "mine.txt"), "0 1", 3, NULL));
    CHILD_OUTPACE(&c, *state, 0, "tune", "tiny", "--method", "speculative:tree=3x2,draft_top_k=3", "--draft",
                  "tiny", "--dataset", "code", "--limit", "3", "-n", "12", "--device", "null", "--tree",
                  "a.tree", "--set", "generation.temperature=0.7");
    assert_non_null(strstr(text_get(&c.out), "of 9 guesses in 2 levels"));
    assert_non_null(strstr(text_get(&c.out), "checked    1 other prompt:"));
    assert_non_null(
        strstr(text_get(&c.out), "--method 'speculative:draft_top_k=3,tree=a.tree' --draft tiny"));
    child_release(&c);
    static const struct {
        const char *words[16], *said;
    } ROWS[] = {
        {{"--method", "recycling", "--tree", "mine.txt"}, "mine.txt"},
        {{"--method", "lookahead", "--tree", "b.tree"}, "'lookahead' has no fixed tree"},
        {{"--method", "recycling:tree=nowhere", "--tree", "b.tree"}, "nowhere"},
        {{"--method", "recycling", "--tree", "b.tree", "--axis", "k=2..4"}, "give each one value"},
        {{"--method", "speculative:tree=chain", "--draft", "tiny", "--tree", "b.tree"}, "drafts no tree"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const char *line[32] = {"tune", "tiny", "--dataset", "code",     "--limit",
                                "2",    "-n",   "6",         "--device", "null"};
        for (int k = 0; ROWS[i].words[k]; k++) line[10 + k] = ROWS[i].words[k];
        child_outpace(&c, *state, 2, line);
        if (!strstr(text_get(&c.err), ROWS[i].said))
            fail_msg("wanted '%s', got '%s'", ROWS[i].said, text_get(&c.err));
        child_release(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expected_is_measured),
        cmocka_unit_test(choice_is_best),
        cmocka_unit_test(reference),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
