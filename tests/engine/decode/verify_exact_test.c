// The verifier is lossless: its output has the model's own distribution. Not sampled but summed: over
// everything that a draft can draw, times everything that the verifier can decide about it.
//
// For each way in which the draws of a plan may fall, the real tree is built and its proposals are walked by
// the rules of verify.c; the emitted tokens, completed by the model up to PLAN_LENGTH, must have
// the model's distribution. The same sum runs over verifiers and trees that are broken in ways that look
// harmless, and must reject each of them, or it would prove nothing. verify_test checks verify() itself
// against the same walk, draw by draw.
#include "tests/support/check.h"
#include "tests/support/draft_plan.h"
#include "tests/support/null_session.h"

#include "engine/decode/verify.h"

#include <math.h>
#include <string.h>

// A way to verify, right or wrong.
typedef struct {
    const char *name;
    double (*acceptance)(const float *p, const float *q, int token);
    void (*reject)(float *p, const float *q, int token, int vocab);
    bool skips_rejected; // a sampled proposal is not tried if its token was rejected before
    bool forgets_draws;  // q of a draw without replacement still has the tokens drawn before
    bool keeps_merging;  // a full tree keeps a sampled proposal that merges
} Rule;

typedef struct {
    const Plan *plan;
    const Rule *rule;
    Session *session;
    double emitted[PLAN_WORDS];
} Sum;

// The state of a walk.
typedef struct {
    int node, place, length, word;
    double chance;
} At;

static At below(At at, int child, int token, double chance) {
    return (At){.node = child,
                .place = place_below(at.place, token),
                .length = at.length + 1,
                .word = at.word * PLAN_VOCAB + token,
                .chance = at.chance * chance};
}

// The model completes the output by itself.
static void say(Sum *s, At at, const float *p) {
    if (at.length == PLAN_LENGTH) {
        s->emitted[at.word] += at.chance;
        return;
    }
    for (int i = 0; i < PLAN_VOCAB; i++) {
        At next = below(at, TREE_NONE, i, (double)p[i]);
        say(s, next, next.length < PLAN_LENGTH ? s->plan->p[next.place] : NULL);
    }
}

// q of a proposal by its definition; NULL for a one-hot.
static const float *proposal_q(const Sum *s, int node, int number, float *q) {
    const Tree *t = &s->session->tree;
    const Proposal *p = &t->proposals[number];
    double total = 0;
    if (p->q == ONE_HOT) return NULL;
    memcpy(q, tree_q(t, p->q), PLAN_VOCAB * sizeof *q);
    if (!p->without_replacement || s->rule->forgets_draws) return q;
    for (int i = t->first_proposal[node]; i != number; i = t->proposals[i].next)
        if (t->proposals[i].q == p->q) q[t->token[t->proposals[i].child]] = 0;
    for (int i = 0; i < PLAN_VOCAB; i++) total += (double)q[i];
    for (int i = 0; i < PLAN_VOCAB && total > 0; i++) q[i] = (float)((double)q[i] / total);
    return q;
}

static void walk(Sum *s, At at);

// Proposal `number` at a node and those after it; `left` is the rest of p after the rejections so far.
static void try_from(Sum *s, At at, int number, const float *left, unsigned rejected) {
    const Tree *t = &s->session->tree;
    float p[PLAN_VOCAB], scratch[PLAN_VOCAB];
    if (at.chance < 1e-12) return;
    if (number == TREE_NONE) {
        say(s, at, left);
        return;
    }
    const Proposal *proposal = &t->proposals[number];
    const float *q = proposal_q(s, at.node, number, scratch);
    int token = t->token[proposal->child];
    bool skip = q && s->rule->skips_rejected && rejected & 1u << token;
    double accept = skip ? 0 : s->rule->acceptance(left, q, token);
    walk(s, below(at, proposal->child, token, accept));
    memcpy(p, left, sizeof p);
    if (!skip) s->rule->reject(p, q, token, PLAN_VOCAB);
    at.chance *= 1 - accept;
    try_from(s, at, proposal->next, p, rejected | 1u << token);
}

static void walk(Sum *s, At at) {
    if (at.length == PLAN_LENGTH) s->emitted[at.word] += at.chance;
    else try_from(s, at, s->session->tree.first_proposal[at.node], s->plan->p[at.place], 0);
}

static void draw_all(Sum *s, int *tokens, int slot, double chance) {
    double each[PLAN_VOCAB], total = 0;
    if (slot == s->plan->count) {
        plan_build(s->plan, tokens, s->session, s->rule->keeps_merging);
        walk(s, (At){.node = 0, .chance = chance});
        return;
    }
    plan_chances(s->plan, tokens, slot, each);
    for (int i = 0; i < PLAN_VOCAB; i++) {
        total += each[tokens[slot] = i];
        if (each[i] > 0) draw_all(s, tokens, slot + 1, chance * each[i]);
    }
    tokens[slot] = -1;
    if (total == 0) draw_all(s, tokens, slot + 1, chance);
}

// The largest difference between the output's distribution and the model's, over all words.
static double deviation(const Plan *plan, const Rule *rule, Session *session) {
    Sum s = {.plan = plan, .rule = rule, .session = session};
    int tokens[PLAN_SLOTS];
    double worst = 0;
    draw_all(&s, tokens, 0, 1);
    for (int i = 0; i < PLAN_WORDS; i++)
        worst = test_worse(worst, fabs(s.emitted[i] - plan_word_chance(plan, i)));
    return worst;
}

static const Rule OURS = {"ours", verify_acceptance, verify_reject, false, false, false};

static int open_session(void **state) {
    static const NullSetup setup = {.vocab = PLAN_VOCAB, .context = 50, .max_nodes = PLAN_NODES};
    Session *s = test_calloc(1, sizeof *s);
    null_session_open(s, &setup);
    *state = s;
    return 0;
}

static int close_session(void **state) {
    session_release(*state);
    test_free(*state);
    return 0;
}

enum { PLANS = 20000 };

static void emits_what_the_model_says(void **state) {
    Random r = test_random(25);
    for (int i = 0; i < PLANS; i++) {
        Plan plan = plan_random(&r);
        double off = deviation(&plan, &OURS, *state);
        if (off > 1e-6)
            fail_msg("plan %d of seed %llu: %d slots, room for %d nodes, merge %d: off by %g", i,
                     (unsigned long long)test_seed(), plan.count, plan.room, plan.merge, off);
    }
}

// --- broken verifiers and trees

static double accept_ignoring_q(const float *p, const float *q, int token) {
    (void)q;
    return (double)p[token];
}

// Equal rows of a batch, each judged by itself.
static double accept_in_two_tries(const float *p, const float *q, int token) {
    double once = verify_acceptance(p, q, token);
    return q ? once : 1 - (1 - once) * (1 - once);
}

static double accept_the_impossible(const float *p, const float *q, int token) {
    return p[token] > 0 ? verify_acceptance(p, q, token) : 0.05;
}

static void reject_nothing(float *p, const float *q, int token, int vocab) {
    (void)p, (void)q, (void)token, (void)vocab;
}

static void reject_the_token_only(float *p, const float *q, int token, int vocab) {
    (void)q;
    verify_reject(p, NULL, token, vocab);
}

static void reject_one_hots_only(float *p, const float *q, int token, int vocab) {
    if (!q) verify_reject(p, q, token, vocab);
}

static const Rule BROKEN[] = {
    {"q ignored", accept_ignoring_q, verify_reject, false, false, false},
    {"equal one-hots tried twice", accept_in_two_tries, verify_reject, false, false, false},
    {"a token with p = 0 accepted", accept_the_impossible, verify_reject, false, false, false},
    {"p kept after a rejection", verify_acceptance, reject_nothing, false, false, false},
    {"rejected draws treated as one-hots", verify_acceptance, reject_the_token_only, false, false, false},
    {"rejected draws leave p as it was", verify_acceptance, reject_one_hots_only, false, false, false},
    {"rejected tokens skipped", verify_acceptance, verify_reject, true, false, false},
    {"draws put back", verify_acceptance, verify_reject, false, true, false},
    {"a full tree keeps what merges", verify_acceptance, verify_reject, false, false, true},
};

static void rejects_what_is_broken(void **state) {
    for (size_t rule = 0; rule < sizeof BROKEN / sizeof *BROKEN; rule++) {
        Random r = test_random(25); // the same plans
        double worst = 0;
        for (int i = 0; i < PLANS && worst < 0.02; i++) {
            Plan plan = plan_random(&r);
            worst = fmax(worst, deviation(&plan, &BROKEN[rule], *state));
        }
        if (worst < 0.02) fail_msg("'%s' passes: off by %g only", BROKEN[rule].name, worst);
    }
}

// --- by hand

static void a_draw_beside_a_one_hot(void **state) {
    static const Rule skipping = {"", verify_acceptance, verify_reject, true, false, false};
    for (int first = 0; first < 2; first++) {
        Plan plan = plan_example(first);
        assert_true(deviation(&plan, &OURS, *state) < 1e-6);
    }
    // One-hot 0 falls with .5 and leaves (0, .6, .4). Skipping a drawn 0 then emits 1 with .6 * .6 + .3.
    Plan plan = plan_example(true);
    Sum s = {.plan = &plan, .rule = &skipping, .session = *state};
    int tokens[PLAN_SLOTS];
    double ones = 0;
    draw_all(&s, tokens, 0, 1);
    for (int i = PLAN_WORDS / 3; i < PLAN_WORDS / 3 * 2; i++) ones += s.emitted[i];
    assert_true(fabs(ones - 0.5 * (.6 * .6 + .3)) < 1e-6);
}

// Only the rules, in cases where rounding or a careless draft could hurt.
static void edges_of_the_rules(void **state) {
    (void)state;
    float p[] = {.5f, .5f, 0}, q[] = {.25f, 0, .75f}, none[] = {0, 0, 0};
    assert_true(verify_acceptance(p, NULL, 0) == .5);
    assert_true(verify_acceptance(p, q, 0) == 1);    // never above 1
    assert_true(verify_acceptance(p, q, 1) == 0);    // q cannot have drawn it
    assert_true(verify_acceptance(p, none, 0) == 0); // nor from nothing
    assert_true(verify_acceptance(p, q, 2) == 0);
    float left[] = {.5f, .5f, 0};
    verify_reject(left, p, 0, 3); // nothing would be left: p is unchanged
    assert_memory_equal(left, p, sizeof p);
    float certain[] = {0, 1, 0}, same[] = {0, 1, 0};
    verify_reject(certain, NULL, 1, 3);
    assert_memory_equal(certain, same, sizeof same);
    verify_reject(left, NULL, 0, 3);
    float second[] = {0, 1, 0};
    assert_memory_equal(left, second, sizeof second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emits_what_the_model_says),
        cmocka_unit_test(rejects_what_is_broken),
        cmocka_unit_test(a_draw_beside_a_one_hot),
        cmocka_unit_test(edges_of_the_rules),
    };
    return cmocka_run_group_tests(tests, open_session, close_session);
}
