// Verification by blocks: summed over everything that a draft can draw, the output has the model's own
// distribution and is never shorter on average than token by token; and verify() follows the same rules, by a
// replay of its random numbers.
#include "tests/support/check.h"
#include "tests/support/null_session.h"

#include "engine/decode/verify.h"

#include <math.h>
#include <string.h>

enum { VOCAB = 3, MOST = 3, PLACES = 1 + 3 + 9 + 27, WORDS = 81, ROUNDS = 4000 };

// The model's p and the draft's q after every text of up to MOST tokens.
typedef struct {
    float p[PLACES][VOCAB], q[PLACES][VOCAB];
    int length; // of the chain
} Tables;

static int below(int place, int token) { return place * VOCAB + 1 + token; }

// Zeros are common: mistakes hide at tokens that one side never gives.
static void random_distribution(Random *r, float *p) {
    double total = 0, x[VOCAB];
    for (int i = 0; i < VOCAB; i++) total += x[i] = test_between(r, 0, 3) ? random_uniform(r) : 0;
    if (total == 0) total = x[0] = 1;
    for (int i = 0; i < VOCAB; i++) p[i] = (float)(x[i] / total);
}

static Tables random_tables(Random *r) {
    Tables t = {.length = test_between(r, 0, MOST)};
    for (int i = 0; i < PLACES; i++) {
        random_distribution(r, t.p[i]);
        random_distribution(r, t.q[i]);
    }
    return t;
}

// --- the sum

// A way to judge a chain, right or wrong.
typedef struct {
    const char *name;
    double (*h)(double r, double S);
    bool rest_of_one; // the bonus comes from max(0, p - q), as after a rejected token
    bool uncapped;    // r may be above 1
} Rule;

typedef struct {
    const Tables *t;
    const Rule *rule;
    double emitted[WORDS]; // words of MOST + 1 tokens
    double tokens, by_token;
} Sum;

// The model completes the word after `count` of its tokens.
static void complete(Sum *s, int word, int count, int place, double chance, const float *next) {
    if (count == MOST + 1) {
        s->emitted[word] += chance;
        return;
    }
    const float *p = next ? next : s->t->p[place];
    for (int i = 0; i < VOCAB; i++)
        complete(s, word * VOCAB + i, count + 1, below(place, i), chance * (double)p[i], NULL);
}

typedef struct {
    int token[MOST], place[MOST + 1];
    double r[MOST + 1], chance, by_token; // by_token: tokens expected where each is judged alone
} Chain;

static double share(const Tables *t, int place, int token) {
    double q = (double)t->q[place][token];
    return q > 0 ? (double)t->p[place][token] / q : 0;
}

static Chain chain_of(const Tables *t, int number, bool uncapped) {
    Chain c = {.r = {1}, .chance = 1};
    double all = 1;
    for (int i = 0; i < t->length; i++, number /= VOCAB) {
        int token = c.token[i] = number % VOCAB;
        double x = share(t, c.place[i], token);
        c.chance *= (double)t->q[c.place[i]][token];
        c.by_token += all *= fmin(1, x);
        c.r[i + 1] = uncapped ? c.r[i] * x : fmin(1, c.r[i] * x);
        c.place[i + 1] = below(c.place[i], token);
    }
    return c;
}

static void emit(Sum *s, const Chain *c, int accepted, double chance) {
    int word = 0;
    float rest[VOCAB];
    bool full = accepted == s->t->length;
    s->tokens += chance * (accepted + 1);
    for (int i = 0; i < accepted; i++) word = word * VOCAB + c->token[i];
    memcpy(rest, s->t->p[c->place[accepted]], sizeof rest);
    if (!full)
        verify_rest(rest, s->t->q[c->place[accepted]], s->rule->rest_of_one ? 1 : c->r[accepted], VOCAB);
    complete(s, word, accepted, c->place[accepted], chance, rest);
}

static double h_at(const Sum *s, const Chain *c, int i) {
    float p[VOCAB];
    if (i == s->t->length) return fmin(1, c->r[i]);
    memcpy(p, s->t->p[c->place[i]], sizeof p);
    return s->rule->h(fmin(1, c->r[i]), verify_rest(p, s->t->q[c->place[i]], c->r[i], VOCAB));
}

static Sum sum_all(const Tables *t, const Rule *rule) {
    Sum s = {.t = t, .rule = rule};
    int chains = (int)lround(pow(VOCAB, t->length));
    for (int n = 0; n < chains; n++) {
        Chain c = chain_of(t, n, rule->uncapped);
        double left = c.chance;
        for (int i = t->length; i > 0; i--) {
            double h = h_at(&s, &c, i);
            assert_true(h >= 0 && h <= 1 &&
                        (i == t->length || h <= c.r[i] + 1e-6 || rule->h != verify_block));
            emit(&s, &c, i, left * h);
            left *= 1 - h;
        }
        emit(&s, &c, 0, left);
        s.by_token += c.chance * (1 + c.by_token);
    }
    return s;
}

static double deviation(const Sum *s) {
    double worst = 0;
    for (int w = 0; w < WORDS; w++) {
        double chance = 1;
        int digits[MOST + 1], n = w;
        for (int i = MOST; i >= 0; i--, n /= VOCAB) digits[i] = n % VOCAB;
        for (int i = 0, place = 0; i <= MOST; place = below(place, digits[i++]))
            chance *= (double)s->t->p[place][digits[i]];
        worst = test_worse(worst, fabs(s->emitted[w] - chance));
    }
    return worst;
}

static const Rule OURS = {"ours", verify_block, false, false};

static void emits_what_the_model_says(void **state) {
    (void)state;
    Random r = test_random(320);
    int more = 0;
    for (int i = 0; i < ROUNDS; i++) {
        Tables t = random_tables(&r);
        Sum s = sum_all(&t, &OURS);
        double off = deviation(&s);
        if (off > 1e-6) fail_msg("tables %d, %d tokens: off by %g", i, t.length, off);
        if (s.tokens < s.by_token - 1e-6)
            fail_msg("tables %d: %g tokens by blocks, %g by tokens", i, s.tokens, s.by_token);
        more += s.tokens > s.by_token + 0.01;
    }
    assert_true(more > ROUNDS / 5);
}

static double h_of_the_rest(double r, double S) { return S > 0 ? S / (S + r) : 0; }
static double h_of_a_token(double r, double S) {
    (void)S;
    return r;
}

static void rejects_what_is_broken(void **state) {
    (void)state;
    static const Rule broken[] = {{"a wrong share", h_of_the_rest, false, false},
                                  {"each place as the last", h_of_a_token, false, false},
                                  {"the rest of a token", verify_block, true, false},
                                  {"r above 1", verify_block, false, true}};
    for (size_t k = 0; k < sizeof broken / sizeof *broken; k++) {
        Random r = test_random(320);
        double worst = 0;
        for (int i = 0; i < ROUNDS && worst < 0.02; i++) {
            Tables t = random_tables(&r);
            Sum s = sum_all(&t, &broken[k]);
            worst = fmax(worst, deviation(&s));
        }
        if (worst < 0.02) fail_msg("'%s' passes: off by %g only", broken[k].name, worst);
    }
}

// The paper's example: two tokens, p = (1/3, 2/3), q = (2/3, 1/3). Of two drafted tokens 10/9 are accepted
// one by one, 11/9 as a block. And p = (1, 3, 6) / 10 against q = (5, 4, 1) / 10, by exact fractions.
static void examples(void **state) {
    (void)state;
    static const struct {
        float p[VOCAB], q[VOCAB];
        int length;
        double block, token;
    } cases[] = {{{1 / 3.f, 2 / 3.f, 0}, {2 / 3.f, 1 / 3.f, 0}, 2, 20 / 9., 19 / 9.},
                 {{.1f, .3f, .6f}, {.5f, .4f, .1f}, 3, 1.997, 15 / 8.}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        Tables t = {.length = cases[k].length};
        for (int i = 0; i < PLACES; i++) {
            memcpy(t.p[i], cases[k].p, sizeof *t.p);
            memcpy(t.q[i], cases[k].q, sizeof *t.q);
        }
        Sum s = sum_all(&t, &OURS);
        if (fabs(s.tokens - cases[k].block) > 1e-6 || fabs(s.by_token - cases[k].token) > 1e-6)
            fail_msg("example %zu: %.9g tokens by blocks, %.9g by tokens", k, s.tokens, s.by_token);
    }
}

// --- verify() itself

static const Sampling PLAIN = {.temperature = 1, .top_p = 1};

static void draft(const Tables *t, Session *s, Random *r, Chain *c) {
    Tree *tree = &s->tree;
    int number = 0, node;
    session_begin_step(s, true, LAYOUT_TREE);
    node = tree_root(tree, 0);
    for (int i = 0, place = 0, power = 1; i < t->length; i++, power *= VOCAB) {
        float *q;
        int token = sampler_draw(t->q[place], VOCAB, random_uniform(r)), at = tree_distribution(tree, &q);
        memcpy(q, t->q[place], sizeof t->q[place]);
        node = tree_propose_sampled(tree, node, token, at, false);
        number += power * token;
        place = below(place, token);
    }
    *c = chain_of(t, number, false);
}

// Replaces the model's output by p.
static void speak(const Tables *t, const Chain *c, Session *s, Verifier *v) {
    assert_true(session_run(s, NULL_LAYERS, NULL) && verifier_read(v, s, NULL));
    for (int node = 0; node < s->tree.count; node++) {
        float *row = s->logits + s->logit_row[node] * VOCAB;
        for (int i = 0; i < VOCAB; i++) row[i] = logf(t->p[c->place[node]][i]);
    }
}

typedef struct {
    int accepted, bonus;
    bool close; // a number fell so near to a decision that rounding may turn it
} Replay;

// Forwards, by the definition: the last place whose number is below its h.
static Replay replay(const Tables *t, const Chain *c, Random random) {
    Replay x = {0};
    Sum s = {.t = t, .rule = &OURS};
    for (int i = 1; i <= t->length; i++) {
        double u = random_uniform(&random), h = h_at(&s, c, i);
        x.close |= fabs(u - h) < 1e-5;
        if (u < h) x.accepted = i;
    }
    double left[VOCAB], total = 0, sum = 0, u = random_uniform(&random);
    for (int i = 0; i < VOCAB; i++) {
        double p = (double)t->p[c->place[x.accepted]][i], q = (double)t->q[c->place[x.accepted]][i];
        total += left[i] = x.accepted == t->length ? p : fmax(0, c->r[x.accepted] * p - q);
    }
    if (x.accepted == 0 && t->length > 0 && total < 1e-5) x.close = true; // p and q are the same
    x.bonus = -1;
    for (int i = 0; i < VOCAB && x.bonus < 0; i++) {
        sum += left[i] / total;
        x.close |= fabs(u - sum) < 1e-5 && i < VOCAB - 1;
        if (u < sum) x.bonus = i;
    }
    return x;
}

static void follows_the_rules(void **state) {
    (void)state;
    NullSetup setup = {.vocab = VOCAB, .context = 20, .max_nodes = 8};
    Random r = test_random(321);
    Session s;
    Verifier v;
    int close = 0, accepted[MOST + 1] = {0};
    null_session_open(&s, &setup);
    verifier_init(&v, &PLAIN, test_seed(), VOCAB);
    v.blocks = true;
    for (int round = 0; round < 60000; round++) {
        Tables t = random_tables(&r);
        Chain c;
        Verdict got;
        draft(&t, &s, &r, &c);
        speak(&t, &c, &s, &v);
        Replay want = replay(&t, &c, v.random);
        assert_true(verify(&v, &s, &got, NULL));
        accepted[got.accepted]++;
        close += want.close;
        if (!want.close && (got.accepted != want.accepted || got.bonus != want.bonus ||
                            got.tried != t.length || got.node != got.accepted))
            fail_msg("round %d: accepted %d, bonus %d, tried %d; want %d, %d, %d", round, got.accepted,
                     got.bonus, got.tried, want.accepted, want.bonus, t.length);
    }
    assert_true(close < 600);
    for (int i = 0; i <= MOST; i++) assert_true(accepted[i] > 600);
    verifier_release(&v);
    session_release(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emits_what_the_model_says),
        cmocka_unit_test(rejects_what_is_broken),
        cmocka_unit_test(examples),
        cmocka_unit_test(follows_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
