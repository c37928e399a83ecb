#include "tests/support/test_methods.h"

#include "tests/support/check.h"

#include <string.h>

// --- oracle

static bool oracle_begin(void *self, const Prompt *prompt, Error *e) {
    (void)prompt, (void)e;
    ((Oracle *)self)->at = 0;
    return true;
}

static bool oracle_propose(void *self, Tree *tree, Error *e) {
    (void)e;
    Oracle *o = self;
    int node = tree_row(tree);
    for (int i = o->at; i < o->at + o->m && i < o->count; i++) node = tree_propose(tree, node, o->truth[i]);
    return true;
}

static bool oracle_observe(void *self, const Observation *seen, Error *e) {
    (void)e;
    ((Oracle *)self)->at += seen->emitted_count;
    return true;
}

static const MethodInfo ORACLE = {
    .name = "oracle", .begin = oracle_begin, .propose = oracle_propose, .observe = oracle_observe};

Method oracle_method(Oracle *o) { return (Method){.info = &ORACLE, .self = o}; }

// --- scatter

static bool scatter_begin(void *self, const Prompt *prompt, Error *e) {
    (void)e;
    Scatter *s = self;
    s->random = (Random){.seed = s->seed, .stream = STREAM_METHOD};
    s->at = 0;
    s->length = prompt->count;
    assert_null(prompt->hidden);
    return true;
}

static int guess(Scatter *s, int depth) {
    int true_one = s->at + depth, random = test_between(&s->random, 0, s->vocab - 1);
    bool knows = s->truth && true_one < s->truth_count && test_between(&s->random, 0, 5) > 0;
    return knows ? s->truth[true_one] : random;
}

// q grows with the id. TREE_NONE if there is no memory: then the tree refuses draws from it.
static double skewed(const Scatter *s, int token) { return 2.0 * (token + 1) / (s->vocab * (s->vocab + 1)); }

static int skewed_distribution(const Scatter *s, Tree *tree) {
    float *q;
    int number = tree_distribution(tree, &q);
    for (int i = 0; i < s->vocab && number != TREE_NONE; i++) q[i] = (float)skewed(s, i);
    return number;
}

static int draw_skewed(Scatter *s) {
    double u = random_uniform(&s->random);
    int token = 0;
    while (token < s->vocab - 1 && (u -= skewed(s, token)) >= 0) token++;
    return token;
}

// A draw from q comes anywhere among the other kinds; a one-hot's token may depend on anything but draws
// that come after it.
static int add(Scatter *s, Tree *tree, int parent, int depth, int q) {
    int drawn = draw_skewed(s), token = guess(s, depth);
    switch (test_between(&s->random, 0, 7)) {
    case 0: return tree_probe(tree, parent, token, true);
    case 1: return tree_propose_sampled(tree, parent, drawn, q, false);
    default: return tree_propose(tree, parent, token);
    }
}

// Parents are picked by the order of the calls, not by number: numbers depend on merging.
static void bush(Scatter *s, Tree *tree, int q) {
    enum { MOST = 24 };
    int node[MOST] = {tree_row(tree)}, depth[MOST] = {0};
    for (int i = 1, n = test_between(&s->random, 1, MOST); i < n; i++) {
        int up = test_between(&s->random, 0, i - 1);
        depth[i] = depth[up] + 1;
        node[i] = add(s, tree, node[up], depth[up], q);
    }
}

static void chains(Scatter *s, Tree *tree) {
    for (int k = test_between(&s->random, 0, 4); k > 0; k--) {
        int node = tree_row(tree), length = test_between(&s->random, 1, s->deep ? 12 : 5);
        for (int i = 0; i < length; i++) node = tree_propose(tree, node, guess(s, i));
    }
}

static bool scatter_propose(void *self, Tree *tree, Error *e) {
    (void)e;
    Scatter *s = self;
    int q = skewed_distribution(s, tree);
    chains(s, tree);
    bush(s, tree, q);
    chains(s, tree);
    return true;
}

static void check_observation(const Scatter *s, const Observation *seen) {
    const Tree *t = &seen->target->tree;
    const Verdict *v = seen->verdict;
    int path[TREE_MAX_NODES], n = tree_path(t, v->node, path);
    assert_int_equal(n, v->accepted + 1);
    assert_in_range(seen->emitted_count, 1, v->accepted + 1);
    assert_int_equal(seen->length, s->length + seen->emitted_count);
    assert_memory_equal(seen->sequence + s->length, seen->emitted,
                        (size_t)seen->emitted_count * sizeof *seen->emitted);
    for (int i = 0; i < seen->emitted_count; i++)
        assert_int_equal(seen->emitted[i], i < v->accepted ? t->token[path[i + 1]] : v->bonus);
    for (int i = 0; i < t->count; i++) // the model's outputs are still there
        if (t->flags[i] & NODE_CANDIDATE || i == 0)
            assert_in_range(session_argmax(seen->target, i), 0, s->vocab - 1);
    assert_int_equal(seen->target->cache.length, seen->length - 1);
}

static bool scatter_drops(const void *self, const Verdict *verdict) {
    return ((const Scatter *)self)->drops_bonus && verdict->accepted % 2;
}

static bool scatter_observe(void *self, const Observation *seen, Error *e) {
    (void)e;
    Scatter *s = self;
    const Verdict *v = seen->verdict;
    check_observation(s, seen);
    bool full = v->accepted > 0 && seen->target->tree.first_proposal[v->node] == TREE_NONE;
    s->dropped += full && scatter_drops(s, v);
    s->length = seen->length;
    s->at += seen->emitted_count;
    return true;
}

static const MethodInfo SCATTER = {.name = "scatter",
                                   .begin = scatter_begin,
                                   .propose = scatter_propose,
                                   .observe = scatter_observe,
                                   .drops_bonus = scatter_drops};

Method scatter_method(Scatter *s) { return (Method){.info = &SCATTER, .self = s}; }
