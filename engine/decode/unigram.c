// Sums in double. V'V is built from BLOCK rows at a time, so that a row of it passes through the processor
// once a block; only its upper triangle is kept true.
#include "engine/decode/unigram.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { BLOCK = 64 };

typedef struct Scored {
    double score;
    int token;
} Scored;

typedef struct Maker {
    const TargetFacts *facts;
    Progress progress;
    int vocab, width;
    float *row;     // (width)
    double *mean;   // (width): of the output embedding
    double *pull;   // (width): V'V mean, or a block's sum
    double *gram;   // (width, width): V'V; NULL for UNIGRAM_INNER
    double *block;  // (BLOCK, width)
    Scored *scored; // (vocab)
} Maker;

static bool go_on(const Maker *m, double done, Error *e) {
    return progress_say(&m->progress, "making unigrams", done, e);
}

static const float *row_of(Maker *m, EmbeddingKind kind, int token) {
    m->facts->embedding(m->facts->self, kind, token, m->row);
    return m->row;
}

static bool average(Maker *m, Error *e) {
    for (int x = 0; x < m->vocab; x++) {
        if (x % BLOCK == 0 && !go_on(m, 0, e)) return false;
        const float *u = row_of(m, EMBEDDING_OUTPUT, x);
        for (int i = 0; i < m->width; i++) m->mean[i] += (double)u[i] / m->vocab;
    }
    return true;
}

static double dot(const double *a, const float *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * (double)b[i];
    return sum;
}

// --- the inner product with the mean

static bool score_inner(Maker *m, Error *e) {
    for (int y = 0; y < m->vocab; y++) {
        if (y % BLOCK == 0 && !go_on(m, 0.5 * y / m->vocab, e)) return false;
        const float *v = row_of(m, EMBEDDING_INPUT, y);
        double share = dot(m->mean, v, m->width);
        for (int i = 0; i < m->width; i++) m->pull[i] += share * (double)v[i];
    }
    for (int x = 0; x < m->vocab; x++)
        m->scored[x] = (Scored){dot(m->pull, row_of(m, EMBEDDING_OUTPUT, x), m->width), x};
    return true;
}

// --- the distance from the mean

// gram += B'B for the `count` rows B of the block.
static void add_block(Maker *m, int count) {
    size_t width = (size_t)m->width;
    for (size_t i = 0; i < width; i++)
        for (int b = 0; b < count; b++) {
            const double *v = m->block + (size_t)b * width;
            double *row = m->gram + i * width, scale = v[i];
            for (size_t j = i; j < width; j++) row[j] += scale * v[j];
        }
}

// The block's row b becomes a token's row, less `centre` where that is given.
static void load(Maker *m, EmbeddingKind kind, int token, const double *centre, int b) {
    const float *row = row_of(m, kind, token);
    double *to = m->block + (size_t)b * (size_t)m->width;
    for (int i = 0; i < m->width; i++) to[i] = (double)row[i] - (centre ? centre[i] : 0);
}

static bool build_gram(Maker *m, Error *e) {
    for (int first = 0; first < m->vocab; first += BLOCK) {
        int count = m->vocab - first < BLOCK ? m->vocab - first : BLOCK;
        for (int b = 0; b < count; b++) load(m, EMBEDDING_INPUT, first + b, NULL, b);
        add_block(m, count);
        if (!go_on(m, 0.5 * first / m->vocab, e)) return false;
    }
    return true;
}

// The squares z'Gz of the block's rows z, G symmetric with its upper triangle known.
static void score_block(Maker *m, int first, int count) {
    size_t width = (size_t)m->width;
    for (int b = 0; b < count; b++) m->scored[first + b] = (Scored){0, first + b};
    for (size_t i = 0; i < width; i++)
        for (int b = 0; b < count; b++) {
            const double *z = m->block + (size_t)b * width, *row = m->gram + i * width;
            double right = 0;
            for (size_t j = i + 1; j < width; j++) right += row[j] * z[j];
            m->scored[first + b].score += z[i] * (row[i] * z[i] + 2 * right);
        }
}

static bool score_distance(Maker *m, Error *e) {
    if (!build_gram(m, e)) return false;
    for (int first = 0; first < m->vocab; first += BLOCK) {
        int count = m->vocab - first < BLOCK ? m->vocab - first : BLOCK;
        for (int b = 0; b < count; b++) load(m, EMBEDDING_OUTPUT, first + b, m->mean, b);
        score_block(m, first, count);
        if (!go_on(m, 0.5 + 0.5 * first / m->vocab, e)) return false;
    }
    return true;
}

static int by_score(const void *a, const void *b) {
    const Scored *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

// A single weight that is not finite spoils every score, by the mean.
static bool sort_scores(Maker *m, Error *e) {
    for (int x = 0; x < m->vocab; x++)
        if (!isfinite(m->scored[x].score))
            return error_input(e, "the embeddings are not finite (NaN or infinite)");
    qsort(m->scored, (size_t)m->vocab, sizeof *m->scored, by_score);
    return true;
}

static bool allocate(Maker *m, bool gram, Error *e) {
    size_t width = (size_t)m->width;
    m->row = mem_alloc(width, sizeof *m->row);
    m->mean = mem_alloc(width, sizeof *m->mean);
    m->pull = mem_alloc(width, sizeof *m->pull);
    m->block = mem_alloc(BLOCK * width, sizeof *m->block);
    m->gram = gram ? mem_alloc(width * width, sizeof *m->gram) : NULL;
    m->scored = mem_alloc((size_t)m->vocab, sizeof *m->scored);
    bool ok = m->row && m->mean && m->pull && m->block && (m->gram || !gram) && m->scored;
    return ok || error_system(e, "out of memory for unigrams of width %d", m->width);
}

static void release(Maker *m) {
    void *arrays[] = {m->row, m->mean, m->pull, m->block, m->gram, m->scored};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) mem_free(arrays[i]);
}

bool unigram_order(const TargetFacts *facts, int vocab, int width, UnigramOrder order, int count,
                   Progress progress, int *out, Error *e) {
    Maker m = {.facts = facts, .progress = progress, .vocab = vocab, .width = width};
    assert(count <= vocab && facts->embedding);
    bool ok = allocate(&m, order == UNIGRAM_DISTANCE, e) && average(&m, e) &&
              (order == UNIGRAM_DISTANCE ? score_distance : score_inner)(&m, e);
    if (ok) {
        ok = sort_scores(&m, e);
        for (int i = 0; ok && i < count; i++) out[i] = m.scored[i].token;
    }
    release(&m);
    return ok;
}
