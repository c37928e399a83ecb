// Draws on the device against plain sums in double: chances, whole distributions and drawn ids over random
// samplings, with ties at every edge and tokens left out; that they are the same bits at other numbers of
// rows and in other orders of threads; how often each token is drawn; and logits that say nothing.
//
// Where two sums in double fall within 1e-9 of the edge of top-p or of a drawn interval, both sides are right
// and the row is passed over.
#include "tests/support/check.h"
#include "tests/support/plain_distribution.h"
#include "tests/support/chi_square.h"
#include "tests/simt/settings.h"

#include "engine/core/sampler.h"
#include "engine/cuda/kernels/outputs.h"
#include "engine/cuda/kernels/runtime.h"

#include <math.h>
#include <string.h>

enum { ROWS = 8, VOCAB = 3001, STRIDE = VOCAB + 6, TOKENS = 12 };
static const double NEAR = 1e-9, ROUNDED = VOCAB * 0x1p-45; // half a unit of mass for each token

typedef struct {
    Sampling sampling;
    int vocab, rows, tokens[ROWS]; // of a row
    float logits[ROWS][STRIDE];
    int token[ROWS][TOKENS];
    double u[ROWS];
} Case;

typedef struct {
    double chance[ROWS][TOKENS];
    double confidence[ROWS];
    int drawn[ROWS];
    float p[VOCAB]; // of the last row
} Answer;

// --- the device

static void *take(size_t bytes, const void *from, void *stream) {
    void *block;
    assert_int_equal(gpu_take(&block, bytes), 0);
    if (from) gpu_copy(block, from, bytes, stream);
    return block;
}

static void *take_asks(const Case *c, int first, int rows, void *stream) {
    DrawAsks *asks = test_calloc(1, sizeof *asks + sizeof c->token);
    int count = 0;
    *asks = (DrawAsks){.inverse = 1 / c->sampling.temperature,
                       .top_p = c->sampling.top_p,
                       .top_k = c->sampling.top_k,
                       .vocab = c->vocab,
                       .real = c->vocab < VOCAB ? c->vocab + 1 : VOCAB};
    for (int r = 0; r < rows; r++) {
        asks->u[r] = c->u[first + r];
        asks->first[r] = count;
        for (int i = 0; i < c->tokens[first + r]; i++) asks->token[count++] = c->token[first + r][i];
    }
    asks->first[rows] = count;
    void *there = take(sizeof *asks + (size_t)count * sizeof(int), asks, stream);
    gpu_stream_wait(stream);
    test_free(asks);
    return there;
}

// Rows [first, first + rows) of a case, and p of the last of them.
static void run(const Case *c, int first, int rows, SimtOrder order, Answer *out) {
    RowList list = {.count = rows, .first = 0};
    void *stream;
    double chance[ROWS * TOKENS];
    int count = 0;
    simt_settings.order = order;
    assert_int_equal(gpu_stream_open(&stream), 0);
    for (int r = 0; r < rows; r++) count += c->tokens[first + r];
    void *rows_there = take(sizeof list, &list, stream),
         *logits = take((size_t)rows * sizeof c->logits[0], c->logits[first], stream),
         *asks = take_asks(c, first, rows, stream);
    Draw d = {.rows = rows_there, .asks = asks, .logits = logits, .stride = STRIDE};
    d.chance = take((size_t)count * sizeof(double), NULL, stream);
    d.confidence = take((size_t)rows * sizeof(double), NULL, stream);
    d.drawn = take(ROWS * sizeof(int), NULL, stream);
    d.p = take(VOCAB * sizeof(float), NULL, stream);
    Draw all = d, last = d;
    all.p = NULL;
    last.confidence = NULL;
    last.row = rows - 1;
    gpu_draw(&all, rows + 2, stream);
    gpu_draw(&last, 1, stream);
    gpu_copy(chance, d.chance, (size_t)count * sizeof *chance, stream);
    gpu_copy(out->confidence + first, d.confidence, (size_t)rows * sizeof(double), stream);
    gpu_copy(out->drawn + first, d.drawn, (size_t)rows * sizeof(int), stream);
    gpu_copy(out->p, d.p, (size_t)c->vocab * sizeof(float), stream);
    gpu_stream_wait(stream);
    for (int r = 0, n = 0; r < rows; r++)
        for (int i = 0; i < c->tokens[first + r]; i++) out->chance[first + r][i] = chance[n++];
    void *const blocks[] = {rows_there, logits, asks, d.chance, d.confidence, d.drawn, d.p};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) gpu_give(blocks[i]);
    gpu_stream_close(stream);
    assert_int_equal(simt_live_bytes(), 0);
}

// --- the plain way

static bool is_in(const int *list, int n, int id) {
    for (int i = 0; i < n; i++)
        if (list[i] == id) return true;
    return false;
}

// The ids that u may draw: its own, and the neighbour's where it falls on the edge; -1 where none is left.
static bool may_draw(const double *p, int vocab, const int *tried, int n, double u, int drawn) {
    double left = 0, sum = 0;
    for (int i = 0; i < vocab; i++) left += is_in(tried, n, i) ? 0 : p[i];
    if (left < NEAR) return true;
    if (drawn < 0 || drawn >= vocab || is_in(tried, n, drawn) || p[drawn] == 0) return false;
    for (int i = 0; i < drawn; i++) sum += is_in(tried, n, i) ? 0 : p[i];
    return u * left > sum - NEAR && u * left < sum + p[drawn] + NEAR;
}

// Of one more id than take part in the draw, where there is one.
static double plain_confidence(const Case *c, int r) {
    int real = c->vocab < VOCAB ? c->vocab + 1 : VOCAB;
    double highest = -INFINITY, total = 0;
    for (int i = 0; i < real; i++)
        if ((double)c->logits[r][i] > highest) highest = (double)c->logits[r][i];
    for (int i = 0; i < real; i++)
        total += isnan(c->logits[r][i]) ? 0 : exp((double)c->logits[r][i] - highest);
    return 1 / total;
}

static void compare(const Case *c, const Answer *a) {
    double p[VOCAB];
    for (int r = 0; r < c->rows; r++) {
        const char *what = "chance";
        if (plain_distribution(&c->sampling, c->logits[r], c->vocab, p) < NEAR) continue;
        for (int i = 0; i < c->tokens[r]; i++) {
            int id = c->token[r][i];
            double want = id < c->vocab ? p[id] : 0, got = a->chance[r][i];
            if (!(fabs(got - want) <= ROUNDED)) goto fail;
        }
        what = "confidence";
        if (!(fabs(a->confidence[r] - plain_confidence(c, r)) <= ROUNDED)) goto fail;
        what = "draw";
        if (!may_draw(p, c->vocab, c->token[r], c->tokens[r], c->u[r], a->drawn[r])) goto fail;
        what = "distribution";
        double total = 0;
        for (int i = 0; r == c->rows - 1 && i < c->vocab; i++) {
            total += (double)a->p[i];
            if (!(fabs((double)a->p[i] - p[i]) <= 6e-8 * p[i] + ROUNDED)) goto fail;
        }
        if (r < c->rows - 1 || fabs(total - 1) < 1e-6) continue;
    fail:
        fail_msg(
            "row %d of %d tokens at temperature %g, top-k %d, top-p %.17g, u %.17g: the %s is wrong (drew "
            "%d)",
            r, c->vocab, c->sampling.temperature, c->sampling.top_k, c->sampling.top_p, c->u[r], what,
            a->drawn[r]);
    }
}

// --- cases

// Few different logits, so that ties stand at every edge, or all different ones, narrow or wide; some are
// masked, some not numbers. What stands after the vocabulary would be drawn, were it looked at.
static void random_row(Random *r, const Case *c, float *row) {
    int kind = test_between(r, 0, 3), steps = test_between(r, 1, 60), holes = test_between(r, 0, 2);
    float offset = (float)test_between(r, -40, 40), scale = kind == 1 ? 1e-3f : kind == 2 ? 1 : 6;
    for (int i = 0; i < STRIDE; i++) {
        row[i] =
            kind == 0 ? offset + 0.25f * (float)test_between(r, 0, steps) : offset + scale * random_normal(r);
        if (holes && test_between(r, 0, 4) == 0) row[i] = holes == 1 ? NAN : -INFINITY;
        if (i >= c->vocab) row[i] = 1000;
    }
    row[test_between(r, 0, c->vocab - 1)] = kind == 3 ? -0.0f : 0; // never all holes
}

static void random_case(Random *r, Case *c) {
    static const int sizes[] = {1, 2, 31, 257, 512, 1500, VOCAB};
    c->vocab = sizes[test_between(r, 0, 6)];
    c->rows = test_between(r, 1, ROWS);
    c->sampling = (Sampling){.temperature = 0.05 + 3 * random_uniform(r), .top_p = 1};
    if (test_between(r, 0, 1)) c->sampling.top_k = test_between(r, 1, test_between(r, 1, c->vocab + 2));
    if (test_between(r, 0, 1)) c->sampling.top_p = random_uniform(r);
    for (int i = 0; i < c->rows; i++) {
        random_row(r, c, c->logits[i]);
        c->u[i] = test_between(r, 0, 5) ? random_uniform(r) : test_between(r, 0, 1) ? 0 : 1 - 0x1p-53;
        c->tokens[i] = 0;
        for (int n = test_between(r, 0, TOKENS); n > 0; n--) {
            int id = test_between(r, 0, c->vocab + 1);
            if (!is_in(c->token[i], c->tokens[i], id)) c->token[i][c->tokens[i]++] = id;
        }
    }
}

static void as_the_plain_way(void **state) {
    (void)state;
    static Case c;
    Random r = test_random(140);
    for (int round = 0; round < 40; round++) {
        Answer all = {0}, alone = {0};
        random_case(&r, &c);
        simt_settings.early = simt_settings.locked = round % 8 == 0;
        run(&c, 0, c.rows, (SimtOrder)(round % SIMT_ORDERS), &all);
        compare(&c, &all);
        run(&c, c.rows - 1, 1, (SimtOrder)((round + 1) % SIMT_ORDERS), &alone);
        assert_int_equal(all.drawn[c.rows - 1], alone.drawn[c.rows - 1]);
        assert_memory_equal(all.chance[c.rows - 1], alone.chance[c.rows - 1], sizeof all.chance[0]);
        assert_memory_equal(all.p, alone.p, (size_t)c.vocab * sizeof *all.p);
    }
    simt_settings.early = simt_settings.locked = false;
}

// The host's sampler, from the same logits: the same tokens stay, and p is within 2e-7 of it.
static void as_the_host(void **state) {
    (void)state;
    static Case c;
    Random r = test_random(141);
    for (int round = 0; round < 20; round++) {
        Answer a = {0};
        float p[VOCAB];
        double exact[VOCAB];
        Sampler s;
        random_case(&r, &c);
        int last = c.rows - 1;
        if (plain_distribution(&c.sampling, c.logits[last], c.vocab, exact) < 1e-6) continue;
        run(&c, last, 1, SIMT_NATURAL, &a);
        sampler_init(&s, &c.sampling, c.vocab);
        sampler_distribution(&s, c.logits[last], p);
        for (int i = 0; i < c.vocab; i++)
            if (!(fabs((double)a.p[i] - (double)p[i]) <= 2e-7 * (double)p[i] + ROUNDED))
                fail_msg("token %d of %d: %.9g, the host says %.9g", i, c.vocab, (double)a.p[i],
                         (double)p[i]);
        sampler_release(&s);
    }
}

// Each token is drawn on an interval of u as long as its share of what is left; counted over many u at once.
static void draws_by_the_share(void **state) {
    (void)state;
    enum { MANY = 2400, FEW = 40 };
    static Case c;
    Random r = test_random(142);
    double count[FEW] = {0}, chance[FEW], left = 1;
    c.vocab = FEW;
    c.rows = ROWS;
    c.sampling = (Sampling){.temperature = 1.3, .top_k = 30, .top_p = 0.97};
    random_row(&r, &c, c.logits[0]);
    for (int i = 0; i < FEW; i++) c.logits[0][i] = 2 * random_normal(&r);
    for (int i = 1; i < ROWS; i++) memcpy(c.logits[i], c.logits[0], sizeof c.logits[0]);
    for (int i = 0; i < ROWS; i++) c.token[i][0] = 3, c.token[i][1] = 17, c.tokens[i] = 2;
    assert_true(plain_distribution(&c.sampling, c.logits[0], FEW, chance) > NEAR);
    for (int i = 0; i < MANY; i += ROWS) {
        Answer a;
        for (int k = 0; k < ROWS; k++) c.u[k] = random_uniform(&r);
        run(&c, 0, ROWS, SIMT_NATURAL, &a);
        for (int k = 0; k < ROWS; k++) count[a.drawn[k]]++;
    }
    left -= chance[3] + chance[17];
    chance[3] = chance[17] = 0;
    for (int i = 0; i < FEW; i++) chance[i] /= left;
    double alarm = chi_square(count, chance, FEW, MANY);
    if (alarm < 1e-6) fail_msg("the counts have a chance of %g", alarm);
}

// Equal logits: top-k leaves the lower ids, top-p no more than that, and both zeros are alike.
static void ties_go_to_the_lower_id(void **state) {
    (void)state;
    static Case c = {
        .sampling = {.temperature = 1, .top_k = 3, .top_p = 0.999}, .vocab = 6, .rows = 1, .u = {0.99}};
    const float row[] = {-0.0f, 0, -1, -0.0f, 0, 0};
    Answer a;
    memcpy(c.logits[0], row, sizeof row);
    run(&c, 0, 1, SIMT_NATURAL, &a);
    for (int i = 0; i < 6; i++) assert_true(a.p[i] == (i < 4 && i != 2 ? 1 / 3.0f : 0));
    assert_int_equal(a.drawn[0], 3);
}

static void logits_that_say_nothing(void **state) {
    (void)state;
    static Case c = {.sampling = {.temperature = 1, .top_k = 2, .top_p = 0.5},
                     .vocab = 5,
                     .rows = 4,
                     .tokens = {1, 1, 1, 1}};
    const float rows[4][5] = {
        {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY},
        {NAN, NAN, NAN, NAN, NAN},
        {-INFINITY, 3, NAN, -INFINITY, -INFINITY}, // all there is was tried
        {0, 1, INFINITY, 3, INFINITY},             // top-p leaves the first of the two
    };
    Answer a;
    for (int i = 0; i < 4; i++) {
        memcpy(c.logits[i], rows[i], sizeof rows[i]);
        c.token[i][0] = i < 3 ? 1 : 4;
    }
    run(&c, 0, 4, SIMT_NATURAL, &a);
    for (int i = 0; i < 3; i++) assert_int_equal(a.drawn[i], -1);
    assert_true(a.chance[0][0] == 0 && a.chance[1][0] == 0 && a.chance[2][0] == 1 && a.chance[3][0] == 0);
    assert_int_equal(a.drawn[3], 2);
    for (int i = 0; i < 5; i++) assert_true(a.p[i] == (i == 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_plain_way),        cmocka_unit_test(as_the_host),
        cmocka_unit_test(draws_by_the_share),      cmocka_unit_test(ties_go_to_the_lower_id),
        cmocka_unit_test(logits_that_say_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
