// verify() itself: greedy against a slow walk over a list of paths; sampling against a replay of its random
// numbers in double, and by a chi-square of its output. verify_exact_test shows that the rules replayed here
// are lossless.
#include "tests/support/check.h"
#include "tests/support/chi_square.h"
#include "tests/support/draft_plan.h"
#include "tests/support/null_session.h"

#include "engine/decode/verify.h"
#include "engine/null/null.h"

#include <math.h>
#include <string.h>

// --- greedy

enum { GREEDY_NODES = 64, GREEDY_VOCAB = 3, CONTEXT = 200, DEEPEST = 9 };

// The proposals, as paths of tokens below the root, in order.
typedef struct {
    int tokens[GREEDY_NODES][DEEPEST], length[GREEDY_NODES];
    int count;
} Paths;

// The number of the path's proposal among those of its parent, from 1; 0: it was not proposed.
static int order_among_siblings(const Paths *all, const int *path, int length) {
    int order = 0;
    for (int i = 0; i < all->count; i++) {
        bool sibling = all->length[i] == length &&
                       memcmp(all->tokens[i], path, (size_t)(length - 1) * sizeof *path) == 0,
             seen = false;
        for (int k = 0; k < i; k++)
            seen |= all->length[k] == length &&
                    memcmp(all->tokens[k], all->tokens[i], (size_t)length * sizeof *path) == 0;
        if (!sibling || seen) continue;
        order++;
        if (all->tokens[i][length - 1] == path[length - 1]) return order;
    }
    return 0;
}

static int children_of(const Paths *all, const int *path, int length) {
    int count = 0, child[DEEPEST];
    memcpy(child, path, (size_t)length * sizeof *path);
    for (child[length] = 0; child[length] < GREEDY_VOCAB; child[length]++)
        count += order_among_siblings(all, child, length + 1) > 0;
    return count;
}

typedef struct {
    int path[DEEPEST + 1], accepted, tried; // the bonus is after the accepted ones
} Walk;

static Walk slow_walk(const Paths *all, Session *slow, const int *sequence, int count) {
    Walk w = {.accepted = 0};
    for (;;) {
        int whole[CONTEXT], order;
        memcpy(whole, sequence, (size_t)count * sizeof *whole);
        memcpy(whole + count, w.path, (size_t)w.accepted * sizeof *whole);
        w.path[w.accepted] = slow_next(slow, whole, count + w.accepted, NULL);
        order = w.accepted + 1 < DEEPEST ? order_among_siblings(all, w.path, w.accepted + 1) : 0;
        w.tried += order ? order : w.accepted + 1 < DEEPEST ? children_of(all, w.path, w.accepted) : 0;
        if (!order) return w;
        w.accepted++;
    }
}

// Random nodes below random nodes, probes among them, and rows; true where the path was proposed.
static void grow(Tree *t, Random *r, Paths *all) {
    for (int i = test_between(r, 0, 40); i > 0; i--) {
        int parent = test_between(r, 0, t->count - 1), token = test_between(r, 0, GREEDY_VOCAB - 1);
        if (test_between(r, 0, 9) == 0) parent = tree_row(t);
        if (parent == TREE_NONE || t->depth[parent] >= DEEPEST - 2) continue;
        bool proposed = test_between(r, 0, 3) > 0;
        int node = proposed ? tree_propose(t, parent, token) : tree_probe(t, parent, token, false),
            path[DEEPEST];
        if (node == TREE_NONE || !proposed) continue;
        int length = tree_path(t, node, path) - 1;
        for (int k = 0; k < length; k++) all->tokens[all->count][k] = t->token[path[k + 1]];
        all->length[all->count++] = length;
    }
}

static void compare_walk(int round, const Session *s, const Verdict *got, const Walk *want) {
    int path[DEEPEST];
    bool same = got->accepted == want->accepted && got->bonus == want->path[want->accepted] &&
                got->tried == want->tried && s->tree.canonical[got->node] == got->node &&
                tree_path(&s->tree, got->node, path) == want->accepted + 1;
    for (int i = 0; i < want->accepted && same; i++) same = s->tree.token[path[i + 1]] == want->path[i];
    if (!same)
        fail_msg("round %d: accepted %d, bonus %d, tried %d at node %d; want %d, %d, %d", round,
                 got->accepted, got->bonus, got->tried, got->node, want->accepted, want->path[want->accepted],
                 want->tried);
}

static void greedy_walks(void **state) {
    (void)state;
    Random r = test_random(26);
    NullSetup setup = {.vocab = GREEDY_VOCAB, .context = CONTEXT, .max_nodes = GREEDY_NODES};
    Session s, slow;
    Verifier v;
    int accepted[DEEPEST] = {0};
    null_session_open(&s, &setup);
    null_session_open(&slow, &setup);
    verifier_init(&v, &(Sampling){.top_p = 1}, 1, GREEDY_VOCAB);
    for (int round = 0; round < 4000; round++) {
        Paths all = {.count = 0};
        int sequence[8], count = test_between(&r, 1, 8);
        for (int i = 0; i < count; i++) sequence[i] = test_between(&r, 0, GREEDY_VOCAB - 1);
        session_reset(&s);
        assert_true(session_prefill(&s, sequence, count - 1, 0, 0, NULL, NULL));
        session_begin_step(&s, test_between(&r, 0, 1), test_between(&r, 0, 1) ? LAYOUT_TREE : LAYOUT_BATCH);
        tree_root(&s.tree, sequence[count - 1]);
        grow(&s.tree, &r, &all);
        Verdict got;
        assert_true(session_run(&s, NULL_LAYERS, NULL) && verifier_read(&v, &s, NULL));
        assert_int_equal(s.logit_rows, 0); // greedy needs none
        assert_true(verify(&v, &s, &got, NULL));
        Walk want = slow_walk(&all, &slow, sequence, count);
        compare_walk(round, &s, &got, &want);
        accepted[got.accepted]++;
    }
    for (int i = 0; i < 5; i++) assert_true(accepted[i] > 20); // all depths were seen
    assert_int_equal(v.random.counter, 0);                     // greedy draws nothing
    verifier_release(&v);
    session_release(&s);
    session_release(&slow);
}

// --- sampling: the replay

typedef struct {
    Random random;
    bool close; // a number fell so near to a decision that rounding may turn it
    int node, accepted, tried, bonus;
} Replay;

static bool below(Replay *x, double limit) {
    double u = random_uniform(&x->random);
    x->close |= fabs(u - limit) < 1e-5;
    return u < limit;
}

static void normalise(double *p) {
    double total = 0;
    for (int i = 0; i < PLAN_VOCAB; i++) total += p[i];
    for (int i = 0; i < PLAN_VOCAB && total > 0; i++) p[i] /= total;
}

static void slow_q(const Tree *t, int node, int number, double *q) {
    const Proposal *p = &t->proposals[number];
    for (int i = 0; i < PLAN_VOCAB; i++) q[i] = (double)tree_q(t, p->q)[i];
    for (int i = t->first_proposal[node]; i != number; i = t->proposals[i].next)
        if (p->without_replacement && t->proposals[i].q == p->q) q[t->token[t->proposals[i].child]] = 0;
    normalise(q);
}

// The accepted child, or TREE_NONE; p becomes its rest.
static int try_proposals(Replay *x, const Tree *t, double *p) {
    for (int i = t->first_proposal[x->node]; i != TREE_NONE; i = t->proposals[i].next) {
        int child = t->proposals[i].child, token = t->token[child];
        double q[PLAN_VOCAB] = {0};
        bool one_hot = t->proposals[i].q == ONE_HOT;
        if (!one_hot) slow_q(t, x->node, i, q);
        x->tried++;
        if (below(x, one_hot ? p[token] : fmin(1, p[token] / q[token]))) return child;
        for (int k = 0; k < PLAN_VOCAB; k++) p[k] = one_hot ? (k == token ? 0 : p[k]) : fmax(0, p[k] - q[k]);
        normalise(p);
    }
    return TREE_NONE;
}

static int slow_draw(Replay *x, const double *p) {
    double u = random_uniform(&x->random), sum = 0;
    int token = -1;
    for (int i = 0; i < PLAN_VOCAB && token < 0; i++) {
        sum += p[i];
        x->close |= fabs(u - sum) < 1e-5 && i < PLAN_VOCAB - 1;
        if (u < sum) token = i;
    }
    return token < 0 ? PLAN_VOCAB - 1 : token;
}

// The model's distribution at a place under this sampling, as the sampler computes it.
static void wanted_distribution(const Plan *plan, int place, const Sampling *sampling, double *p) {
    float logits[PLAN_VOCAB], rounded[PLAN_VOCAB];
    Sampler sampler;
    sampler_init(&sampler, sampling, PLAN_VOCAB);
    for (int i = 0; i < PLAN_VOCAB; i++) logits[i] = logf(plan->p[place][i]);
    sampler_distribution(&sampler, logits, rounded);
    for (int i = 0; i < PLAN_VOCAB; i++) p[i] = (double)rounded[i];
    sampler_release(&sampler);
}

static Replay replay(const Plan *plan, const Tree *t, const Sampling *sampling, Random random) {
    Replay x = {.random = random};
    for (int place = 0;;) {
        double p[PLAN_VOCAB];
        wanted_distribution(plan, place, sampling, p);
        int child = try_proposals(&x, t, p);
        if (child == TREE_NONE) {
            x.bonus = slow_draw(&x, p);
            return x;
        }
        x.node = child;
        x.accepted++;
        place = place_below(place, t->token[child]);
    }
}

// Depth PLAN_LENGTH has no place any more; there the model's words are nobody's business.
static Plan shallow_plan(Random *r) {
    for (;;) {
        Plan plan = plan_random(r);
        bool deep = false;
        for (int i = 0; i < plan.count; i++) {
            int parent = plan.slots[i].parent;
            deep |= parent >= 0 && plan.slots[parent].parent >= 0;
        }
        if (!deep) return plan;
    }
}

static int open_plan_session(void **state) {
    static const NullSetup setup = {.vocab = PLAN_VOCAB, .context = 50, .max_nodes = PLAN_NODES};
    Session *s = test_calloc(1, sizeof *s);
    null_session_open(s, &setup);
    *state = s;
    return 0;
}

static int close_plan_session(void **state) {
    session_release(*state);
    test_free(*state);
    return 0;
}

static const Sampling PLAIN = {.temperature = 1, .top_p = 1};

static void compare_replay(int round, const Verdict *got, const Replay *want, uint64_t counter) {
    if (got->node == want->node && got->accepted == want->accepted && got->bonus == want->bonus &&
        got->tried == want->tried && counter == want->random.counter)
        return;
    fail_msg("round %d: node %d, accepted %d, bonus %d, tried %d, draws to %d; want %d, %d, %d, %d, %d",
             round, got->node, got->accepted, got->bonus, got->tried, (int)counter, want->node,
             want->accepted, want->bonus, want->tried, (int)want->random.counter);
}

static void replay_many(Session *s, const Sampling *sampling, int rounds, Random *r) {
    Verifier v;
    int close = 0, accepted[PLAN_LENGTH] = {0};
    verifier_init(&v, sampling, test_seed(), PLAN_VOCAB);
    for (int round = 0; round < rounds; round++) {
        int tokens[PLAN_SLOTS];
        Plan plan = shallow_plan(r);
        plan_draw(&plan, r, tokens);
        plan_build(&plan, tokens, s, false);
        plan_speak(&plan, s);
        Verdict got;
        Replay want = replay(&plan, &s->tree, sampling, v.random);
        assert_true(verifier_read(&v, s, NULL) && verify(&v, s, &got, NULL));
        accepted[got.accepted]++;
        if (want.close) close++;
        else compare_replay(round, &got, &want, v.random.counter);
    }
    assert_true(close < rounds / 100);
    for (int i = 0; i < PLAN_LENGTH; i++) assert_true(accepted[i] > rounds / 100);
    verifier_release(&v);
}

static void sampling_replayed(void **state) {
    static const Sampling others[] = {{.temperature = 0.6, .top_p = 1},
                                      {.temperature = 1, .top_k = 2, .top_p = 1},
                                      {.temperature = 1.7, .top_p = 0.7}};
    Random r = test_random(27);
    replay_many(*state, &PLAIN, 60000, &r);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) replay_many(*state, &others[i], 20000, &r);
}

// --- sampling: the output

enum { DRAWS = 100000 };

// The first PLAN_LENGTH tokens: those of the step, then the model's own.
static int emitted_word(const Plan *plan, const Session *s, const Verdict *v, Random *r) {
    int path[PLAN_LENGTH + 1], word = 0, place = 0, n = tree_path(&s->tree, v->node, path);
    for (int i = 0; i < PLAN_LENGTH; i++) {
        int token = i < n - 1    ? s->tree.token[path[i + 1]]
                    : i == n - 1 ? v->bonus
                                 : sampler_draw(plan->p[place], PLAN_VOCAB, random_uniform(r));
        word = word * PLAN_VOCAB + token;
        place = place_below(place, token);
    }
    return word;
}

static void count_words(const Plan *plan, Session *s, uint64_t seed, double *count) {
    Random r = test_random(seed);
    Verifier v;
    verifier_init(&v, &PLAIN, test_seed() + seed, PLAN_VOCAB);
    for (int i = 0; i < DRAWS; i++) {
        int tokens[PLAN_SLOTS];
        Verdict verdict;
        plan_draw(plan, &r, tokens);
        plan_build(plan, tokens, s, false);
        plan_speak(plan, s);
        assert_true(verifier_read(&v, s, NULL) && verify(&v, s, &verdict, NULL));
        count[emitted_word(plan, s, &verdict, &r)]++;
    }
    verifier_release(&v);
}

static double chance_of(const Plan *plan, const double *count) {
    double chance[PLAN_WORDS];
    for (int i = 0; i < PLAN_WORDS; i++) chance[i] = plan_word_chance(plan, i);
    return chi_square(count, chance, PLAN_WORDS, DRAWS);
}

// A false alarm has a chance of 1e-6 in each of eight comparisons; the seeds are fixed, so there is none as
// long as nothing changes. The same counts against a p that is off by 0.02 must fail.
static void sampling_counted(void **state) {
    Random r = test_random(28);
    for (int i = 0; i < 8; i++) {
        double count[PLAN_WORDS] = {0};
        Plan plan = i ? shallow_plan(&r) : plan_example(false);
        count_words(&plan, *state, 100 + (uint64_t)i, count);
        double chance = chance_of(&plan, count);
        if (chance < 1e-6) fail_msg("plan %d: what is emitted has a chance of %g", i, chance);
        if (i > 0) continue;
        plan.p[0][0] += 0.02f;
        plan.p[0][1] -= 0.02f;
        assert_true(chance_of(&plan, count) < 1e-6);
    }
}

// --- a backend that draws

// A backend that gives every proposed token a chance of 0.4, and leaves nothing without them.
static bool odd_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    if (!null_backend.head(self, nodes, count, want & ~(unsigned)HEAD_DRAW, out, e)) return false;
    for (int i = 0; i < out->draws->first[count]; i++) out->draws->chance[i] = 0.4;
    for (int i = 0; i < count; i++) out->draws->drawn[i] = -1;
    return true;
}

static bool no_distribution(void *self, int node, const Sampling *sampling, int vocab, float *p, Error *e) {
    (void)self, (void)node, (void)sampling, (void)vocab, (void)p;
    return error_system(e, "not to be had");
}

// If rounding leaves nothing, the last proposal that had a chance is emitted. And a backend's failure is an
// error.
static void nothing_is_left(void **state) {
    Session *s = *state;
    Backend odd = null_backend;
    const Backend *own = s->backend;
    Verifier v;
    int stood = 0, failed = 0;
    odd.head = odd_head;
    odd.distribution = no_distribution;
    s->backend = &odd;
    verifier_init(&v, &PLAIN, test_seed(), PLAN_VOCAB);
    for (int round = 0; round < 400; round++) {
        float *q;
        Verdict got;
        Error e = {0};
        session_begin_step(s, true, LAYOUT_TREE);
        tree_root(&s->tree, 0);
        tree_propose(&s->tree, 0, 2);
        int number = tree_distribution(&s->tree, &q);
        for (int i = 0; i < PLAN_VOCAB; i++) q[i] = 0.9f;
        if (round % 2) tree_propose_sampled(&s->tree, 0, 1, number, false);
        assert_true(session_run(s, NULL_LAYERS, NULL) && verifier_read(&v, s, NULL));
        bool ok = verify(&v, s, &got, &e);
        stood += ok && got.node == 0 && got.bonus == 2;
        failed += !ok && strcmp(e.text, "not to be had") == 0;
        assert_true(ok || round % 2);
    }
    assert_in_range(stood, 80, 200); // three in five of the rounds without a q
    assert_in_range(failed, 10, 120);
    verifier_release(&v);
    s->backend = own;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_walks),
        cmocka_unit_test(sampling_replayed),
        cmocka_unit_test(sampling_counted),
        cmocka_unit_test(nothing_is_left),
    };
    return cmocka_run_group_tests(tests, open_plan_session, close_plan_session);
}
