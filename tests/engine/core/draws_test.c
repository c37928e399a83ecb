// Draws from logits and from a backend that draws by itself: the same numbers, in any order of calls, with
// the random number that was guessed and with any other.
#include "tests/support/check.h"
#include "tests/support/soft_null.h"

#include "engine/core/draws.h"

#include <math.h>
#include <string.h>

enum { VOCAB = 7, MASKED = 1, NODES = 40, ROUNDS = 300 };

static void open_session(Session *s, bool draws) {
    NullSetup setup = {.vocab = VOCAB, .masked = MASKED, .context = 100, .max_nodes = NODES};
    Softness softness = {0, 0.4};
    soft_session_open(s, &setup, &softness);
    soft_session_draws(s, draws);
}

// The same tree for the same numbers; some proposals are drawn from a q, and may come twice.
static void grow(Session *s, Random r) {
    float *q;
    session_begin_step(s, test_between(&r, 0, 1), LAYOUT_TREE);
    Tree *t = &s->tree;
    tree_root(t, test_between(&r, 0, VOCAB - 1));
    int number = tree_distribution(t, &q);
    for (int i = 0; i < VOCAB; i++) q[i] = 1.0f / VOCAB;
    for (int i = test_between(&r, 0, 20); i > 0; i--) {
        int parent = test_between(&r, 0, t->count - 1), token = test_between(&r, 0, VOCAB - 1);
        bool drawn = test_between(&r, 0, 2) == 0;
        if (drawn) tree_propose_sampled(t, parent, token, number, false);
        else tree_propose(t, parent, token);
    }
    assert_true(session_run(s, NULL_LAYERS, NULL));
}

static double slow_confidence(const float *logits) {
    double total = 0, most = 0;
    for (int i = 0; i < VOCAB; i++) {
        total += exp((double)logits[i]);
        most = fmax(most, exp((double)logits[i]));
    }
    return most / total;
}

// Everything about a node, straight from its logits.
static void compare_node(Draws *d, Session *s, int node, const float *logits, Random *r) {
    const Tree *t = &s->tree;
    float p[VOCAB], got[VOCAB];
    double u = random_uniform(r);
    int token, want;
    sampler_distribution(&d->sampler, logits, p);
    for (int again = 0; again < 2; again++) { // a draw changes nothing
        for (int i = t->first_proposal[node]; i != TREE_NONE; i = t->proposals[i].next) {
            int child = t->proposals[i].child;
            assert_true(draws_chance(d, s, node, child) == (double)p[t->token[child]]);
        }
        assert_true(fabs(draws_total(d, s, node) - 1) < 1e-6);
        assert_true(fabs(draws_confidence(d, s, node) - slow_confidence(logits)) < 1e-6);
        assert_true(draws_draw(d, s, node, u, &token, NULL) && draws_distribution(d, s, node, got, NULL));
        assert_memory_equal(got, p, sizeof p);
    }
    for (int i = t->first_proposal[node]; i != TREE_NONE; i = t->proposals[i].next)
        p[t->token[t->proposals[i].child]] = 0;
    want = sampler_draw(p, VOCAB, u);
    assert_int_equal(token, p[want] > 0 ? want : -1);
}

static void both_ways_are_one(void **state) {
    (void)state;
    static const Sampling samplings[] = {{1, 0, 1}, {0.7, 3, 1}, {1.4, 5, 0.8}};
    Random r = test_random(150);
    Session s[2], plain;
    for (int way = 0; way < 2; way++) open_session(&s[way], way);
    open_session(&plain, false);
    for (int round = 0; round < ROUNDS; round++) {
        Random tree = r, ask = r;
        grow(&plain, tree);
        assert_true(session_read(&plain, HEAD_LOGITS, NULL));
        for (int way = 0; way < 2; way++) {
            Draws d;
            Random asked = ask;
            draws_init(&d, &samplings[round % 3], VOCAB);
            d.confident = true;
            grow(&s[way], tree);
            assert_true(draws_read(&d, &s[way], &ask, NULL));
            assert_true(draws_read(&d, &s[way], &ask, NULL)); // there is nothing left to read
            for (int node = 0; node < plain.tree.count; node++)
                if (plain.tree.canonical[node] == node)
                    compare_node(&d, &s[way], node, session_logits(&plain, node), &asked);
            draws_release(&d);
        }
        r.counter += 100;
    }
    for (int way = 0; way < 2; way++) session_release(&s[way]);
    session_release(&plain);
}

// A root with two proposals, one of which has one below it: the draw at each node uses the number after those
// of the proposals tried on the way, and doesn't fetch a distribution.
static void the_number_ahead_is_the_one(void **state) {
    (void)state;
    Session s;
    Draws d;
    Random ahead = test_random(151);
    open_session(&s, true);
    draws_init(&d, &(Sampling){.temperature = 1, .top_p = 1}, VOCAB);
    session_begin_step(&s, true, LAYOUT_TREE);
    int root = tree_root(&s.tree, 1), first = tree_propose(&s.tree, root, 2),
        second = tree_propose(&s.tree, root, 3), below = tree_propose(&s.tree, second, 4);
    assert_true(session_run(&s, NULL_LAYERS, NULL) && draws_read(&d, &s, &ahead, NULL));
    const int node[] = {root, first, second, below}, tries[] = {2, 1, 3, 3};
    for (int i = 0; i < 4; i++) {
        Random r = ahead;
        int token;
        r.counter += (uint64_t)tries[i];
        assert_true(draws_draw(&d, &s, node[i], random_uniform(&r), &token, NULL));
        assert_int_equal(soft_session_fetched(&s), i);
        assert_true(draws_draw(&d, &s, node[i], random_uniform(&r), &token, NULL)); // by another number
        assert_int_equal(soft_session_fetched(&s), i + 1);
    }
    draws_release(&d);
    session_release(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_are_one),
        cmocka_unit_test(the_number_ahead_is_the_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
