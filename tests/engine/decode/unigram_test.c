// Both orders, against the sums as the paper writes them: over every token of the input embedding.
#include "tests/support/check.h"

#include "engine/decode/model_tables.h"

#include <math.h>

enum { MOST_VOCAB = 150, MOST_WIDTH = 12 };

typedef struct {
    int vocab, width;
    float rows[2][MOST_VOCAB][MOST_WIDTH];
} Embeddings;

static void row_of(const void *self, EmbeddingKind kind, int token, float *row) {
    const Embeddings *x = self;
    for (int i = 0; i < x->width; i++) row[i] = x->rows[kind][token][i];
}

// Of both: the sum over x of (a.v_x)(b.v_x).
static double product(const Embeddings *x, const double *a, const double *b) {
    double sum = 0;
    for (int y = 0; y < x->vocab; y++) {
        double first = 0, second = 0;
        for (int i = 0; i < x->width; i++) {
            first += a[i] * (double)x->rows[EMBEDDING_INPUT][y][i];
            second += b[i] * (double)x->rows[EMBEDDING_INPUT][y][i];
        }
        sum += first * second;
    }
    return sum;
}

static double slow_score(const Embeddings *x, UnigramOrder order, int token) {
    double mean[MOST_WIDTH] = {0}, u[MOST_WIDTH], off[MOST_WIDTH];
    for (int y = 0; y < x->vocab; y++)
        for (int i = 0; i < x->width; i++) mean[i] += (double)x->rows[EMBEDDING_OUTPUT][y][i] / x->vocab;
    for (int i = 0; i < x->width; i++) {
        u[i] = (double)x->rows[EMBEDDING_OUTPUT][token][i];
        off[i] = u[i] - mean[i];
    }
    return order == UNIGRAM_INNER ? product(x, mean, u) : sqrt(product(x, off, off));
}

static void random_embeddings(Embeddings *x, Random *r) {
    x->vocab = test_between(r, 1, MOST_VOCAB);
    x->width = test_between(r, 1, MOST_WIDTH);
    for (int k = 0; k < 2; k++)
        for (int y = 0; y < x->vocab; y++)
            for (int i = 0; i < x->width; i++) x->rows[k][y][i] = random_normal(r) + (k ? 0.3f : -0.1f);
}

static void both_orders(void **state) {
    (void)state;
    Random r = test_random(150);
    Embeddings *x = test_calloc(1, sizeof *x);
    for (int round = 0; round < 60; round++) {
        int out[MOST_VOCAB], count;
        bool seen[MOST_VOCAB] = {false};
        TargetFacts facts = {.self = x, .embedding = row_of};
        UnigramOrder order = round % 2 ? UNIGRAM_INNER : UNIGRAM_DISTANCE;
        random_embeddings(x, &r);
        count = test_between(&r, 1, x->vocab);
        assert_true(unigram_order(&facts, x->vocab, x->width, order, count, (Progress){0}, out, NULL));
        for (int i = 0; i < count; i++) {
            double score = slow_score(x, order, out[i]),
                   before = i ? slow_score(x, order, out[i - 1]) : -1e30;
            if (before > score + 1e-9 * fabs(score))
                fail_msg("token %d (%g) stands behind token %d (%g), order %d", out[i], score, out[i - 1],
                         before, (int)order);
            assert_false(seen[out[i]]);
            seen[out[i]] = true;
        }
        for (int y = 0; y < x->vocab; y++) // nobody better was left out
            assert_true(seen[y] || slow_score(x, order, y) >= slow_score(x, order, out[count - 1]) - 1e-9);
    }
    test_free(x);
}

static void refuses_what_is_not_finite(void **state) {
    (void)state;
    Embeddings *x = test_calloc(1, sizeof *x);
    Random r = test_random(151);
    TargetFacts facts = {.self = x, .embedding = row_of};
    int out[MOST_VOCAB];
    random_embeddings(x, &r);
    x->vocab = 40;
    for (int kind = 0; kind < 2; kind++) {
        float was = x->rows[kind][7][0];
        x->rows[kind][7][0] = kind ? NAN : INFINITY;
        for (int order = 0; order <= UNIGRAM_DISTANCE; order++) {
            Error e = {0};
            assert_false(
                unigram_order(&facts, 40, x->width, (UnigramOrder)order, 40, (Progress){0}, out, &e));
            assert_string_equal(e.text, "the embeddings are not finite (NaN or infinite)");
        }
        x->rows[kind][7][0] = was;
    }
    test_free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_orders),
                                       cmocka_unit_test(refuses_what_is_not_finite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
