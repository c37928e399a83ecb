// The certificate: right outputs pass, and wrong ones of several kinds do not.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "harness/run/answer.h"
#include "simulate/statistics.h"
#include "tests/support/null_session.h"

#include <math.h>

enum { VOCAB = 40, CONTEXT = 400, TOKENS = 300, RUNS = 10 };

// How a token is drawn from the model's distribution p; each but the first breaks a law.
typedef enum { HONEST, SHARPENED, GREEDY_OFTEN, SHIFTED, KINDS } Kind;

static int draw(Kind kind, float *p, Random *r) {
    double u = random_uniform(r);
    int best = 0;
    for (int i = 0; i < VOCAB; i++) best = p[i] > p[best] ? i : best;
    if (kind == GREEDY_OFTEN && random_below(r, 5) == 0) return best;
    for (int i = 0; kind == SHARPENED && i < VOCAB; i++) p[i] = powf(p[i], 1.15f);
    int token = sampler_draw(p, VOCAB, u);
    return kind == SHIFTED && random_below(r, 5) == 0 ? (token + 1) % VOCAB : token;
}

static double p_value(Kind kind) {
    Session s, slow;
    Sampling sampling = {.temperature = 1.3, .top_p = 1};
    Sampler sampler;
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT};
    Random r = test_random(40 + (uint64_t)kind);
    static double u[RUNS * TOKENS];
    SampledPlaces places = {.sampling = sampling, .random = test_random(50), .u = u};
    null_session_open(&s, &setup);
    null_session_open(&slow, &setup);
    sampler_init(&sampler, &sampling, VOCAB);
    for (int run = 0; run < RUNS; run++) {
        int sequence[TOKENS + 2] = {1, run};
        IdList prompt = {.ids = sequence, .count = 2};
        for (int i = 2; i < TOKENS + 2; i++) {
            float logits[VOCAB], p[VOCAB];
            slow_next(&slow, sequence, i, logits);
            sampler_distribution(&sampler, logits, p);
            sequence[i] = draw(kind, p, &r);
        }
        assert_true(certify_sampled(&s, &prompt, sequence + 2, TOKENS, &places, NULL));
    }
    assert_int_equal(places.impossible, 0);
    assert_int_equal(places.count, RUNS * TOKENS);
    sampler_release(&sampler);
    session_release(&s);
    session_release(&slow);
    return uniformity(u, RUNS * TOKENS).p;
}

static void only_honest_draws_pass(void **state) {
    (void)state;
    assert_true(p_value(HONEST) > 1e-3);
    for (int kind = SHARPENED; kind < KINDS; kind++) {
        double p = p_value((Kind)kind);
        if (p > 1e-6) fail_msg("draws of kind %d passed with p %g", kind, p);
    }
}

static void cut_off_tokens_are_impossible(void **state) {
    (void)state;
    Session s;
    int prompt[] = {3, 4}, ids[2];
    double u[4];
    SampledPlaces places = {
        .sampling = {.temperature = 1, .top_k = 1, .top_p = 1}, .random = test_random(60), .u = u};
    IdList list = {.ids = prompt, .count = 2};
    null_session_open(&s, &(NullSetup){.vocab = VOCAB, .context = CONTEXT});
    slow_greedy(&s, prompt, 2, 2, ids);
    assert_true(certify_sampled(&s, &list, ids, 2, &places, NULL));
    assert_int_equal(places.impossible, 0);
    ids[1] = (ids[1] + 1) % VOCAB;
    assert_true(certify_sampled(&s, &list, ids, 2, &places, NULL));
    assert_int_equal(places.impossible, 1);
    session_release(&s);
}

// The first difference is found wherever it is, and where one output is the beginning of the other.
static void first_difference_is_named(void **state) {
    (void)state;
    Session s;
    int prompt[] = {3, 4, 5}, want[20], got[20];
    null_session_open(&s, &(NullSetup){.vocab = VOCAB, .context = CONTEXT});
    slow_greedy(&s, prompt, 3, 20, want);
    DecodeResult truth = {.ids = want, .tokens = 20}, other = {.ids = got, .tokens = 20};
    IdList list = {.ids = prompt, .count = 3};
    Divergence d;
    for (int at = 0; at <= 20; at++) {
        for (int i = 0; i < 20; i++) got[i] = i < at ? want[i] : (want[i] + 1) % VOCAB;
        assert_true(certify_greedy(&s, &list, &truth, &other, &d, NULL));
        assert_int_equal(d.position, at < 20 ? at : -1);
        if (at < 20) assert_true(d.want == want[at] && d.got == got[at] && d.margin > 0);
        if (at < 20) assert_true(d.logits[0] - d.logits[1] >= d.margin); // the best, and another
    }
    other.tokens = 7; // all equal so far
    assert_true(certify_greedy(&s, &list, &truth, &other, &d, NULL));
    assert_true(d.position == 7 && d.want == want[7] && d.got == -1);
    session_release(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_honest_draws_pass),
                                       cmocka_unit_test(cut_off_tokens_are_impossible),
                                       cmocka_unit_test(first_difference_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
