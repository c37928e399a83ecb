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
    int forwards;
    double *embedding; // (vocab, width), of a draft's target
    bool recycles_normed;
    bool doubting; // whether to count the loss of the confidence, which moves only its own weights
    // By forward, of which only an EAGLE head has several; in a draft of blocks, the block's and the context's.
    double x[FORWARDS_MAX][PLAIN_ROWS][PLAIN_WIDTH], qkv[FORWARDS_MAX][PLAIN_ROWS][PLAIN_WIDTH];
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

// The rows of qkv that a row sees, itself among them: the first forward's, and its own of the later ones; of
// a block the context's up to its beginning, and all of its own.
static int seen_by(const Plain *p, const Batch *b, int forward, int row, const double **out) {
    int count = 0;
    for (int j = b->start[row]; b->blocks && j < b->blocks[row]; j++) out[count++] = p->qkv[1][j];
    for (int j = 0; b->blocks && j < b->rows; j++)
        if (b->blocks[j] == b->blocks[row]) out[count++] = p->qkv[0][j];
    if (b->blocks) return count;
    for (int j = b->start[row]; j <= row; j++) out[count++] = p->qkv[0][j];
    for (int f = 1; f <= forward; f++) out[count++] = p->qkv[f][row];
    return count;
}

static void attend(const Plain *p, const Batch *b, int forward, int row, int head, double *out) {
    const Shape *s = p->s;
    int q = shape_q_width(s), kv = head / (s->heads / s->kv_heads) * s->head_dim;
    const double *seen[PLAIN_ROWS + FORWARDS_MAX];
    double weight[PLAIN_ROWS + FORWARDS_MAX], sum = 0;
    int count = seen_by(p, b, forward, row, seen);
    memset(out, 0, (size_t)s->head_dim * sizeof *out);
    for (int j = 0; j < count; j++) {
        double score = 0;
        for (int i = 0; i < s->head_dim; i++)
            score += p->qkv[forward][row][head * s->head_dim + i] * seen[j][q + kv + i];
        sum += weight[j] = exp(score / sqrt(s->head_dim));
    }
    for (int j = 0; j < count; j++)
        for (int i = 0; i < s->head_dim; i++)
            out[i] += weight[j] / sum * seen[j][q + shape_kv_width(s) + kv + i];
}

// RMSNorm of a head, in place.
static void norm_head(const Plain *p, double *head, size_t weight) {
    double sum = 0;
    for (int i = 0; i < p->s->head_dim; i++) sum += head[i] * head[i];
    double length = sqrt(sum / p->s->head_dim + (double)p->s->norm_epsilon);
    for (int i = 0; i < p->s->head_dim; i++) head[i] *= p->w[weight + (size_t)i] / length;
}

// at: the forward whose qkv is filled; a context's has the positions of the first.
static void fill_qkv(Plain *p, const Batch *b, const LayerPlan *plan, int at, int r, const double *normed,
                     int inputs) {
    const Shape *s = p->s;
    double *qkv = p->qkv[at][r];
    int forward = b->blocks ? 0 : at;
    linear(normed, p->w + plan->at[W_Q], inputs, shape_q_width(s) + 2 * shape_kv_width(s), qkv);
    for (int h = 0; h < s->heads + s->kv_heads && layer_has(plan, W_Q_NORM); h++)
        norm_head(p, qkv + h * s->head_dim, plan->at[h < s->heads ? W_Q_NORM : W_K_NORM]);
    for (int h = 0; h < s->heads + s->kv_heads; h++)
        turn(s, qkv + h * s->head_dim, r - b->start[r] + forward);
}

static void add_attention(Plain *p, const Batch *b, int forward, const LayerPlan *plan) {
    const Shape *s = p->s;
    double mixed[PLAIN_WIDTH], delta[PLAIN_WIDTH];
    for (int r = 0; r < b->rows; r++) {
        for (int h = 0; h < s->heads; h++) attend(p, b, forward, r, h, mixed + h * s->head_dim);
        linear(mixed, p->w + plan->at[W_O], shape_q_width(s), s->width, delta);
        for (int i = 0; i < s->width; i++) p->x[forward][r][i] += delta[i];
    }
}

static void attention(Plain *p, const Batch *b, const LayerPlan *plan) {
    double normed[PLAIN_WIDTH];
    for (int r = 0; r < b->rows; r++) {
        norm(p, p->x[0][r], plan->at[W_ATTENTION_NORM], normed);
        fill_qkv(p, b, plan, 0, r, normed, p->s->width);
        if (b->blocks) fill_qkv(p, b, plan, 1, r, p->x[1][r], p->s->width);
    }
    add_attention(p, b, 0, plan);
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

// The cross-entropy of the confidence with the share of the wanted distribution that is covered.
static double doubt(const Plain *p, const double *y, const double *e, const double *logits,
                    const double *wanted) {
    int vocab = p->s->real_vocab, width = p->s->width;
    const double *w = p->w + p->p->at[W_CONFIDENCE];
    double share = 0, x = p->w[p->p->at[W_CONFIDENCE_BIAS]];
    double all = log_of_sum(logits, vocab), all_wanted = log_of_sum(wanted, vocab);
    for (int i = 0; i < vocab; i++) share += fmin(exp(logits[i] - all), exp(wanted[i] - all_wanted));
    for (int i = 0; i < width; i++) x += w[i] * y[i];
    for (int i = 0; i < p->s->block.rank; i++) x += w[width + i] * e[i];
    return log(1 + exp(x)) - share * x;
}

// -log p of row r's target, or its mean over the wanted ones; x: the state above the last layer.
static double row_loss(const Plain *p, const Batch *b, const double *x, int r) {
    int vocab = p->s->real_vocab, width = p->s->width;
    double normed[PLAIN_WIDTH], logits[PLAIN_WIDTH], state[PLAIN_WIDTH], wanted[PLAIN_WIDTH], loss = 0;
    if (b->targets[r] < 0) return 0;
    norm(p, x, p->p->at[W_FINAL_NORM], normed);
    linear(normed, p->p->at[W_HEAD] == NO_PARAMETER ? p->target_head : p->w + p->p->at[W_HEAD], width, vocab,
           logits);
    const double *e = b->text ? p->w + p->p->at[W_MARKOV_FROM] + b->text[r] * p->s->block.rank : NULL;
    for (int i = 0; i < vocab && p->s->block.markov; i++)
        for (int k = 0; k < p->s->block.rank; k++)
            logits[i] += e[k] * p->w[p->p->at[W_MARKOV_TO] + (size_t)(i * p->s->block.rank + k)];
    double all = log_of_sum(logits, vocab);
    if (!b->wanted) return all - logits[b->targets[r]];
    int deep = p->wanted_width;
    for (int i = 0; i < deep; i++) state[i] = (double)b->wanted[r * deep + i];
    linear(state, p->target_head, deep, vocab, wanted);
    double all_wanted = log_of_sum(wanted, vocab);
    for (int i = 0; i < vocab; i++) loss += exp(wanted[i] - all_wanted) * (all - logits[i]);
    return p->doubting && p->s->block.confidence ? loss + doubt(p, normed, e, logits, wanted) : loss;
}

// --- EAGLE's heads ---------------------------------------------------------------------------------------

static double distance(const Plain *p, const Batch *b, const double *x, int r) {
    double sum = 0;
    if (b->targets[r] < 0) return 0;
    for (int i = 0; i < p->s->width; i++) {
        double apart = fabs(x[i] - (double)b->wanted[r * p->s->width + i]);
        sum += apart < 1 ? apart * apart / 2 : apart - 0.5;
    }
    return sum / p->s->width;
}

// What a row reads: the token's embedding, and the target's states or the output before.
static void eagle_row(Plain *p, const Batch *b, int forward, int r) {
    int width = p->s->width, at = r + forward + 1 < b->rows ? r + forward + 1 : b->rows - 1;
    int states = shape_given_width(p->s);
    bool mask = forward && p->s->mask_token;
    const double *e = p->embedding + (mask ? p->s->mask_token : b->tokens[at]) * width;
    double *x = p->x[forward][r], joined[PLAIN_WIDTH], fed[PLAIN_WIDTH];
    for (int i = 0; i < states && !forward; i++) fed[i] = (double)b->states[r * states + i];
    for (int i = 0; i < width && forward && !mask; i++) fed[i] = p->x[forward - 1][r][i];
    for (int i = 0; i < states && mask; i++) fed[i] = p->w[p->p->mask + (size_t)i];
    if (forward && p->recycles_normed) norm(p, fed, p->p->at[W_FINAL_NORM], fed);
    if (p->s->input == INPUT_MTP) {
        double normed[PLAIN_WIDTH];
        norm(p, fed, p->p->at[W_STATE_NORM], joined);
        norm(p, e, p->p->at[W_TOKEN_NORM], joined + width);
        linear(joined, p->w + p->p->at[W_FC], 2 * width, width, x);
        norm(p, x, p->p->layers->at[W_ATTENTION_NORM], normed);
        fill_qkv(p, b, p->p->layers, forward, r, normed, width);
        return;
    }
    if (p->s->input == INPUT_FUSED) {
        memcpy(joined, e, (size_t)width * sizeof *e);
        memcpy(joined + width, fed, (size_t)width * sizeof *e);
        linear(joined, p->w + p->p->at[W_FC], 2 * width, width, x);
        for (int i = 0; i < width; i++) x[i] += p->w[p->p->at[W_FC_BIAS] + (size_t)i];
        fill_qkv(p, b, p->p->layers, forward, r, x, width);
        return;
    }
    if (forward && !mask) memcpy(x, fed, (size_t)width * sizeof *x);
    else linear(fed, p->w + p->p->at[W_FC], states, width, x);
    norm(p, e, p->p->at[W_TOKEN_NORM], joined);
    norm(p, x, p->p->layers->at[W_ATTENTION_NORM], joined + width);
    fill_qkv(p, b, p->p->layers, forward, r, joined, 2 * width);
}

// The layers above the first, of masks: a layer of all forwards at a time, whose rows need none of the last's
// outputs.
static void upper_layers(Plain *p, const Batch *b) {
    double normed[PLAIN_WIDTH];
    for (int layer = 1; layer < p->s->layers; layer++) {
        const LayerPlan *plan = &p->p->layers[layer];
        for (int i = 0; i < p->forwards * b->rows; i++) {
            norm(p, p->x[i / b->rows][i % b->rows], plan->at[W_ATTENTION_NORM], normed);
            fill_qkv(p, b, plan, i / b->rows, i % b->rows, normed, p->s->width);
        }
        for (int f = 0; f < p->forwards; f++) add_attention(p, b, f, plan);
        for (int i = 0; i < p->forwards * b->rows; i++) mlp(p, p->x[i / b->rows][i % b->rows], plan);
    }
}

static double eagle_loss(Plain *p, const Batch *b) {
    double loss = 0, weight = 1;
    for (int f = 0; f < p->forwards; f++) {
        for (int r = 0; r < b->rows; r++) eagle_row(p, b, f, r);
        add_attention(p, b, f, p->p->layers);
        for (int r = 0; r < b->rows; r++) mlp(p, p->x[f][r], p->p->layers);
    }
    upper_layers(p, b);
    for (int f = 0; f < p->forwards; f++, weight *= 0.8) {
        for (int r = 0; r < b->rows; r++) {
            const double *x = p->x[f][r];
            if (r + f >= b->rows || b->start[r + f] != b->start[r]) continue;
            double entropy = row_loss(p, b, x, r + f);
            loss +=
                weight * (p->s->input == INPUT_FUSED ? 0.1 * entropy + distance(p, b, x, r + f) : entropy);
        }
    }
    return loss;
}

// The context of a block's draft, in x[1].
static void fill_context(Plain *p, const Batch *b, int r) {
    int given = shape_given_width(p->s);
    double states[PLAIN_WIDTH], fused[PLAIN_WIDTH];
    for (int i = 0; i < given; i++) states[i] = (double)b->states[r * given + i];
    linear(states, p->w + p->p->at[W_FC], given, p->s->width, fused);
    norm(p, fused, p->p->at[W_STATE_NORM], p->x[1][r]);
}

static double plain_loss(Plain *p, const Batch *b) {
    int width = p->s->width;
    double loss = 0;
    if (shape_reads_both(p->s) && !b->blocks) return eagle_loss(p, b);
    for (int r = 0; r < b->rows; r++) {
        if (b->blocks) fill_context(p, b, r);
        for (int i = 0; i < width; i++)
            p->x[0][r][i] = b->blocks   ? p->embedding[b->tokens[r] * width + i]
                            : b->states ? (double)b->states[r * width + i]
                                        : p->w[p->p->at[W_EMBEDDING] + (size_t)(b->tokens[r] * width + i)];
    }
    for (int layer = 0; layer < p->s->layers; layer++) {
        const LayerPlan *plan = &p->p->layers[layer];
        if (layer_has(plan, W_Q)) attention(p, b, plan);
        for (int r = 0; r < b->rows && layer_has(plan, W_GATE); r++) mlp(p, p->x[0][r], plan);
    }
    for (int r = 0; r < b->rows; r++)
        loss += row_loss(p, b, p->x[0][r], r) *
                (b->blocks ? exp(-2.0 * (r - b->blocks[r]) / p->s->block.rows) : 1);
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
    p->forwards = n->learned_forwards;
    p->recycles_normed = n->recycles_normed;
    if (n->target_embedding)
        p->embedding = doubles(n->target_embedding, (size_t)shape_tokens(&n->shape) * (size_t)n->shape.width);
    if (n->target_head)
        p->target_head = doubles(n->target_head, (size_t)n->shape.vocab * (size_t)n->wanted_width);
    return p;
}

static void plain_close(Plain *p) {
    mem_free(p->w);
    mem_free(p->target_head);
    mem_free(p->embedding);
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
            p->doubting = strstr(x->name, "confidence");
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
    p->doubting = true;
    double want = plain_loss(p, b);
    expect_near("loss", n, want, network_loss(n, b), b->rows);
    expect_near("loss while learning", n, want, network_learn(n, b, 0.25f), b->rows);
    compare_gradients(n, p, b, 0.25, r);
    plain_close(p);
}
