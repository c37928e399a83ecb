// The small parts of DSpark's heads; the confidence sums in double.
#include "engine/model/follow.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static size_t inputs_of(const Shape *s) {
    int gate = block_gate_width(&s->block, s->width), w = block_confidence_width(&s->block, s->width);
    return (size_t)(gate > w ? gate : w);
}

size_t following_floats(const Shape *s) {
    return (size_t)s->width + (size_t)s->block.rank + 2 * inputs_of(s) +
           (size_t)block_gate_outputs(&s->block);
}

Following following_at(const Shape *s, float *scratch) {
    float *e = scratch + s->width, *x = e + s->block.rank, *gate = x + inputs_of(s);
    return (Following){scratch, e, x, gate, gate + block_gate_outputs(&s->block)};
}

static double confidence(const Model *m, const Following *f) {
    const Shape *s = &m->shape;
    double sum = (double)tensor_value(&m->confidence_bias, 0, 0);
    tensor_row(&m->confidence, 0, f->x);
    for (int i = 0; i < s->width; i++) sum += (double)f->x[i] * (double)f->y[i];
    for (int i = 0; s->block.confidence == CONFIDENCE_TOKEN && i < s->block.rank; i++)
        sum += (double)f->x[s->width + i] * (double)f->e[i];
    return 1 / (1 + exp(-sum));
}

void follow_begin(const Model *m, Follow *f, const Following *to) {
    assert(f->token >= 0 && f->token < shape_tokens(&m->shape));
    if (m->shape.block.markov) tensor_row(&m->markov_from, (size_t)f->token, to->e);
    f->confidence = m->shape.block.confidence ? confidence(m, to) : 1;
}

static void join(float *to, const float *a, int n, const float *b, int count) {
    memcpy(to, a, (size_t)n * sizeof *to);
    memcpy(to + n, b, (size_t)count * sizeof *to);
}

void follow_inputs(const Model *m, const float *state, const Following *f) {
    int rank = m->shape.block.rank, width = m->shape.width;
    if (m->shape.block.markov != MARKOV_RNN) {
        join(f->x, f->y, width, f->e, rank);
        return;
    }
    memcpy(f->x, state, (size_t)rank * sizeof *state);
    join(f->x + rank, f->e, rank, f->y, width);
}

void follow_gate(const Model *m, float *state, const Following *f) {
    const Tensor *bias = &m->markov_gate_bias;
    int rank = m->shape.block.rank;
    for (int i = 0; i < bias->columns; i++) f->gate[i] += tensor_value(bias, 0, (size_t)i);
    for (int i = 0; i < rank; i++) {
        float g = 1 / (1 + expf(-f->gate[i]));
        if (m->shape.block.markov == MARKOV_GATED) {
            f->e[i] *= g;
            continue;
        }
        state[i] = g * state[i] + (1 - g) * tanhf(f->gate[rank + i]);
        f->e[i] = tanhf(f->gate[2 * rank + i]);
    }
}
