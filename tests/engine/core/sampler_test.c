// The sampler against one that sorts pairs and sums in double.
#include "tests/support/check.h"
#include "tests/support/plain_distribution.h"

#include "engine/core/sampler.h"

#include <math.h>
#include <string.h>

enum { MOST = 200 };

static Sampling random_sampling(Random *r, int vocab) {
    Sampling s = {.temperature = 0.05 + 3 * random_uniform(r), .top_p = 1};
    if (test_between(r, 0, 1)) s.top_k = test_between(r, 1, vocab + 2);
    if (test_between(r, 0, 1)) s.top_p = 0.01 + 0.98 * random_uniform(r);
    return s;
}

// Few different values, so that there are ties at every edge; some ids are masked.
static void random_logits(Random *r, int vocab, float *logits) {
    int steps = test_between(r, 1, 40), masked = test_between(r, 0, 3) ? 0 : test_between(r, 0, vocab - 1);
    float offset = (float)test_between(r, -50, 50);
    for (int i = 0; i < vocab; i++) logits[i] = offset + 0.25f * (float)test_between(r, 0, steps);
    for (int i = vocab - masked; i < vocab; i++) logits[i] = -INFINITY;
}

static void compare(const Sampling *s, const float *logits, const float *p, const double *want, int vocab) {
    for (int i = 0; i < vocab; i++) {
        bool ok = want[i] == 0 ? p[i] == 0 : fabs((double)p[i] - want[i]) <= 1e-6 * want[i] + 1e-37;
        if (!ok)
            fail_msg("token %d of %d: p = %.9g, want %.9g (logit %g, temperature %g, top-k %d, top-p %g)", i,
                     vocab, (double)p[i], want[i], (double)logits[i], s->temperature, s->top_k, s->top_p);
    }
}

static void distributions(void **state) {
    (void)state;
    Random r = test_random(21);
    int compared = 0;
    for (int round = 0; round < 4000; round++) {
        int vocab = test_between(&r, 1, MOST);
        float logits[MOST], p[MOST];
        double want[MOST];
        Sampling sampling = random_sampling(&r, vocab);
        Sampler s;
        random_logits(&r, vocab, logits);
        if (plain_distribution(&sampling, logits, vocab, want) < 1e-5) continue;
        sampler_init(&s, &sampling, vocab);
        sampler_distribution(&s, logits, p);
        compare(&sampling, logits, p, want, vocab);
        sampler_distribution(&s, logits, p); // nothing is left over in its scratch
        compare(&sampling, logits, p, want, vocab);
        sampler_release(&s);
        compared++;
    }
    assert_true(compared > 3500);
}

static void ties_go_to_the_lower_id(void **state) {
    (void)state;
    float logits[] = {1, 2, 2, 2, 0, 2}, p[6];
    Sampling sampling = {.temperature = 1, .top_k = 2, .top_p = 1};
    Sampler s;
    sampler_init(&s, &sampling, 6);
    sampler_distribution(&s, logits, p);
    float two[] = {0, 0.5f, 0.5f, 0, 0, 0};
    assert_memory_equal(p, two, sizeof two);
    s.sampling = (Sampling){.temperature = 1, .top_p = 1e-9}; // at least one token always stays
    sampler_distribution(&s, logits, p);
    float one[] = {0, 1, 0, 0, 0, 0};
    assert_memory_equal(p, one, sizeof one);
    sampler_release(&s);
}

// The token by its definition: the first whose running sum exceeds u times the whole.
static int slow_draw(const float *p, int vocab, double u) {
    double total = 0, sum = 0;
    int last = -1;
    for (int i = 0; i < vocab; i++) total += (double)p[i];
    for (int i = 0; i < vocab; i++) {
        sum += (double)p[i];
        if (p[i] > 0) last = i;
        if (p[i] > 0 && sum > u * total) return i;
    }
    return last;
}

static void draws(void **state) {
    (void)state;
    Random r = test_random(22);
    const double most = 1 - 0x1p-53; // the largest that random_uniform gives
    for (int round = 0; round < 20000; round++) {
        int vocab = test_between(&r, 1, 12), alive = test_between(&r, 0, vocab - 1);
        float p[12];
        for (int i = 0; i < vocab; i++)
            p[i] = test_between(&r, 0, 2) && i != alive ? 0 : (float)(random_uniform(&r) + 1e-30);
        double u[] = {0, most, 0x1p-53, random_uniform(&r)};
        for (int i = 0; i < 4; i++) {
            int token = sampler_draw(p, vocab, u[i]);
            assert_in_range(token, 0, vocab - 1);
            if (!(p[token] > 0)) fail_msg("u = %.17g draws token %d, whose p is 0", u[i], token);
            assert_int_equal(token, slow_draw(p, vocab, u[i]));
        }
    }
}

// Each token is drawn on an interval of u as long as its p.
static void draws_by_the_share(void **state) {
    (void)state;
    const float p[] = {0, 0.125f, 0.5f, 0, 0.25f, 0.125f, 0};
    int count[7] = {0};
    for (int i = 0; i < 8000; i++) count[sampler_draw(p, 7, i / 8000.0)]++;
    for (int i = 0; i < 7; i++) assert_int_equal(count[i], (int)(8000 * p[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions),
        cmocka_unit_test(ties_go_to_the_lower_id),
        cmocka_unit_test(draws),
        cmocka_unit_test(draws_by_the_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
