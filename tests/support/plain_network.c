#include "tests/support/plain_network.h"

#include "tests/support/check.h"

#include "engine/base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct Plain {
    const Shape *s;
    const Parameters *p;
    double *w;           // (p->total)
    double *target_head; // (vocab, wanted_width), of an adapter's; else NULL
    int wanted_width;
    double x[PLAIN_ROWS][PLAIN_WIDTH], qkv[PLAIN_ROWS][PLAIN_WIDTH];
} Plain;

static void linear(const double *x, const double *w, int inputs, int outputs, double *y) {
    for (int o = 0; o < outputs; o++) {
        y[o] = 0;
        for (int i = 0; i < inputs; i++) y[o] += x[i] * w[o * inputs + i];
    }
}

// Rows without a norm are unchanged.
static void norm(const Plain *p, const double *x, size_t weight, double *y) {
    double sum = 0;
    for (int i = 0; i < p->s->width; i++) sum += x[i] * x[i];
    double inverse = 1 / sqrt(sum / p->s->width + (double)p->s->norm_epsilon);
    for (int i = 0; i < p->s->width; i++)
        y[i] = weight == NO_PARAMETER ? x[i] : x[i] * inverse * p->w[weight + (size_t)i];
}

static void turn(const Shape *s, double *head, int position) {
    int pairs = s->head_dim / 2;
    for (int i = 0; i < pairs; i++) {
        double angle = position * pow(s->rope.theta, -(double)i / pairs), a = head[i], b = head[i + pairs];
        head[i] = a * cos(angle) - b * sin(angle);
        head[i + pairs] = b * cos(angle) + a * sin(angle);
    }
}

static void attend(const Plain *p, const Batch *b, int row, int head, double *out) {
    const Shape *s = p->s;
    int q = shape_q_width(s), kv = head / (s->heads / s->kv_heads) * s->head_dim;
    double weight[PLAIN_ROWS], sum = 0;
    memset(out, 0, (size_t)s->head_dim * sizeof *out);
    for (int j = b->start[row]; j <= row; j++) {
        double score = 0;
        for (int i = 0; i < s->head_dim; i++)
            score += p->qkv[row][head * s->head_dim + i] * p->qkv[j][q + kv + i];
        sum += weight[j] = exp(score / sqrt(s->head_dim));
    }
    for (int j = b->start[row]; j <= row; j++)
        for (int i = 0; i < s->head_dim; i++)
            out[i] += weight[j] / sum * p->qkv[j][q + shape_kv_width(s) + kv + i];
}

static void attention(Plain *p, const Batch *b, const LayerPlan *plan) {
    const Shape *s = p->s;
    double normed[PLAIN_WIDTH], mixed[PLAIN_WIDTH], delta[PLAIN_WIDTH];
    for (int r = 0; r < b->rows; r++) {
        norm(p, p->x[r], plan->at[W_ATTENTION_NORM], normed);
        linear(normed, p->w + plan->at[W_Q], s->width, shape_q_width(s) + 2 * shape_kv_width(s), p->qkv[r]);
        for (int h = 0; h < s->heads + s->kv_heads; h++)
            turn(s, p->qkv[r] + h * s->head_dim, r - b->start[r]);
    }
    for (int r = 0; r < b->rows; r++) {
        for (int h = 0; h < s->heads; h++) attend(p, b, r, h, mixed + h * s->head_dim);
        linear(mixed, p->w + plan->at[W_O], shape_q_width(s), s->width, delta);
        for (int i = 0; i < s->width; i++) p->x[r][i] += delta[i];
    }
}

static void mlp(const Plain *p, double *x, const LayerPlan *plan) {
    int width = p->s->width, n = p->s->mlp_width;
    double normed[PLAIN_WIDTH], gate_up[PLAIN_WIDTH], delta[PLAIN_WIDTH];
    norm(p, x, plan->at[W_MLP_NORM], normed);
    linear(normed, p->w + plan->at[W_GATE], width, layer_has(plan, W_UP) ? 2 * n : n, gate_up);
    for (int i = 0; i < n; i++) {
        double gate =
            gate_up[i] + (layer_has(plan, W_GATE_BIAS) ? p->w[plan->at[W_GATE_BIAS] + (size_t)i] : 0);
        gate_up[i] = gate / (1 + exp(-gate)) * (layer_has(plan, W_UP) ? gate_up[n + i] : 1);
    }
    if (!layer_has(plan, W_DOWN)) memcpy(delta, gate_up, sizeof delta);
    else linear(gate_up, p->w + plan->at[W_DOWN], n, width, delta);
    for (int i = 0; i < width; i++) x[i] += delta[i];
}

static double log_of_sum(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp(x[i]);
    return log(sum);
}

// -log p of the target, or its mean over the wanted ones.
static double row_loss(const Plain *p, const Batch *b, int r) {
    int vocab = p->s->real_vocab, width = p->s->width;
    double normed[PLAIN_WIDTH], logits[PLAIN_WIDTH], state[PLAIN_WIDTH], wanted[PLAIN_WIDTH], loss = 0;
    if (b->targets[r] < 0) return 0;
    norm(p, p->x[r], p->p->final_norm, normed);
    linear(normed, p->p->head == NO_PARAMETER ? p->target_head : p->w + p->p->head, width, vocab, logits);
    double all = log_of_sum(logits, vocab);
    if (!b->wanted) return all - logits[b->targets[r]];
    int deep = p->wanted_width;
    for (int i = 0; i < deep; i++) state[i] = (double)b->wanted[r * deep + i];
    linear(state, p->target_head, deep, vocab, wanted);
    double all_wanted = log_of_sum(wanted, vocab);
    for (int i = 0; i < vocab; i++) loss += exp(wanted[i] - all_wanted) * (all - logits[i]);
    return loss;
}

static double plain_loss(Plain *p, const Batch *b) {
    int width = p->s->width;
    double loss = 0;
    for (int r = 0; r < b->rows; r++)
        for (int i = 0; i < width; i++)
            p->x[r][i] = b->states ? (double)b->states[r * width + i]
                                   : p->w[p->p->embedding + (size_t)(b->tokens[r] * width + i)];
    for (int layer = 0; layer < p->s->layers; layer++) {
        const LayerPlan *plan = &p->p->layers[layer];
        if (layer_has(plan, W_Q)) attention(p, b, plan);
        for (int r = 0; r < b->rows && layer_has(plan, W_GATE); r++) mlp(p, p->x[r], plan);
    }
    for (int r = 0; r < b->rows; r++) loss += row_loss(p, b, r);
    return loss;
}

static double *doubles(const float *x, size_t n) {
    double *out = mem_new(n, sizeof *out);
    for (size_t i = 0; x && i < n; i++) out[i] = (double)x[i];
    return out;
}

static Plain *plain_open(const Network *n) {
    Plain *p = mem_new(1, sizeof *p);
    p->s = &n->shape;
    p->p = &n->parameters;
    p->w = doubles(n->weights, n->parameters.total);
    p->wanted_width = n->wanted_width;
    if (n->target_head)
        p->target_head = doubles(n->target_head, (size_t)n->shape.vocab * (size_t)n->wanted_width);
    return p;
}

static void plain_close(Plain *p) {
    mem_free(p->w);
    mem_free(p->target_head);
    mem_free(p);
}

static void expect_near(const char *what, const Network *n, double want, double got, double size) {
    double unit =
        n->kernels->rounds_to_bf16 ? 5e-3 : 1e-5; // up to 1.7e-3 has been seen; see rounding_is_small
    if (!(fabs(got - want) <= unit * size + 2e-4 * fabs(want)))
        fail_msg("%s (%s, layers %d, width %d, heads %d/%d of %d): wanted %.8g, got %.8g (seed %llu)", what,
                 n->kernels->name, n->shape.layers, n->shape.width, n->shape.heads, n->shape.kv_heads,
                 n->shape.head_dim, want, got, (unsigned long long)test_seed());
}

static void compare_gradients(const Network *n, Plain *p, const Batch *b, double scale, Random *r) {
    const double step = 1e-5;
    for (int i = 0; i < n->parameters.count; i++)
        for (int k = 0; k < 4; k++) {
            const Parameter *x = &n->parameters.list[i];
            size_t at = x->at + random_below(r, (uint32_t)parameter_size(x));
            double there = p->w[at];
            p->w[at] = there + step;
            double high = plain_loss(p, b);
            p->w[at] = there - step;
            double low = plain_loss(p, b);
            p->w[at] = there;
            expect_near(x->name, n, scale * (high - low) / (2 * step), (double)n->gradients[at],
                        scale * b->rows);
        }
}

void plain_compare(Network *n, const Batch *b, Random *r) {
    Plain *p = plain_open(n);
    double want = plain_loss(p, b);
    expect_near("loss", n, want, network_loss(n, b, NULL), b->rows);
    expect_near("loss while learning", n, want, network_learn(n, b, 0.25f), b->rows);
    compare_gradients(n, p, b, 0.25, r);
    plain_close(p);
}
