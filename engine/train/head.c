// The head and the loss, HEAD_ROWS rows at a time: forward and, when the network learns, backward right after
// it, so that the logits of one chunk are all that is ever kept. The layers' forward pass comes before all
// chunks, their backward pass after.
#include "engine/train/linear.h"

#include <assert.h>
#include <math.h>

static int likeliest(const float *x, int n) {
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

// The share of the cross-entropy in EAGLE-1's loss; the rest is the state's distance.
static const float ENTROPY_WEIGHT = 0.1f;

static bool has_distance(const Pass *p) { return p->n->shape.input == INPUT_FUSED; }

static const double FORWARD_DECAY = 0.8;

// A slot counts e times less than the one half a block before it (DFlash's weights; DSpark's are a seventh
// flatter).
double part_weight(const Network *n, int part) {
    if (network_is_block(n)) return exp(-2.0 * part / n->shape.block.rows);
    return part < n->learned_forwards ? pow(FORWARD_DECAY, part) : 0;
}

static bool has_markov(const Pass *p) { return p->n->shape.block.markov; }

// The target of row r of the chunk, which in later forwards is a later row's; -1: there is nothing to learn.
static int target_of(const Pass *p, int r) {
    const Batch *b = p->batch;
    int row = p->first + r, at = row + p->forward;
    return at < b->rows && b->start[at] == b->start[row] ? b->targets[at] : -1;
}

// Whether the wanted distributions are those of the forward before, moved by a row: all rows are one chunk.
static bool has_wanted(const Pass *p) { return p->forward && p->batch->rows <= HEAD_ROWS; }

static float *wanted_at(const Pass *p, int r) {
    return p->n->wanted + (size_t)(has_wanted(p) ? r + p->forward : r) * p->n->logit_stride;
}

// Stores the loss of row r of the chunk, and turns its logits into probabilities.
static void judge(const Pass *p, int r) {
    Network *n = p->n;
    const TrainKernels *k = n->kernels;
    int vocab = n->shape.real_vocab, target = target_of(p, r);
    float *logits = n->logits + (size_t)r * n->logit_stride, loss = 0;
    float *wanted = n->target_head && target >= 0 ? wanted_at(p, r) : NULL;
    if (p->agreement && target >= 0) {
        int best = wanted ? likeliest(wanted, vocab) : target;
        n->agreeing[p->first + r] = likeliest(logits, vocab) == best;
    }
    if (wanted) {
        if (!has_wanted(p)) k->softmax_forward(wanted, 1, vocab, vocab);
        loss = k->distillation_forward(logits, wanted, vocab);
    } else if (target >= 0) {
        loss = k->cross_entropy_forward(logits, target, vocab);
    }
    if (wanted && n->shape.block.confidence) loss += block_doubt(p, r, logits, wanted);
    if (target >= 0 && has_distance(p)) loss = ENTROPY_WEIGHT * loss + eagle_distance(p, p->first + r);
    n->losses[p->first + r] = loss;
}

static void head_forward(void *argument, int thread, int threads) {
    const Pass *p = argument;
    Network *n = p->n;
    int from, to, width = n->shape.width;
    Linear head = pass_head(p, thread, HEAD_FORWARD), wanted = pass_head(p, thread, HEAD_WANTED);
    pool_share(p->rows, n->kernels->row_unit, thread, threads, &from, &to);
    linear_forward(&head, pass_row(n->out_normed, p->first, width), n->head, n->logits, from, to, false);
    if (n->target_head && !has_wanted(p))
        linear_forward(&wanted, p->batch->wanted + (size_t)(p->first + p->forward) * (size_t)n->wanted_width,
                       n->target_head, n->wanted, from, to, false);
    if (has_markov(p)) block_bias(p, thread, from, to);
    for (int r = from; r < to; r++) judge(p, r);
}

// --- backward --------------------------------------------------------------------------------------------

// Turns the probabilities of row r of the chunk into the gradient of its logits.
static void judge_backward(const Pass *p, int r) {
    const Network *n = p->n;
    int vocab = n->shape.real_vocab, target = target_of(p, r);
    float scale = has_distance(p) ? ENTROPY_WEIGHT * pass_scale(p, r) : pass_scale(p, r);
    size_t at = (size_t)r * n->logit_stride;
    float *logits = n->logits + at;
    if (target < 0) memset(logits, 0, (size_t)vocab * sizeof *logits);
    else if (n->target_head) n->kernels->distillation_backward(logits, wanted_at(p, r), scale, vocab);
    else n->kernels->cross_entropy_backward(logits, target, scale, vocab);
}

static void head_rows(void *argument, int thread, int threads) {
    const Pass *p = argument;
    Network *n = p->n;
    int from, to;
    Linear head = pass_head(p, thread, HEAD_BACKWARD);
    pool_share(p->rows, n->kernels->row_unit, thread, threads, &from, &to);
    for (int r = from; r < to; r++) judge_backward(p, r);
    linear_backward_input(&head, n->logits, n->head,
                          pass_row(pass_here(p)->normed_slope, p->first, n->shape.width), from, to);
    for (int r = from; r < to && has_distance(p); r++)
        if (target_of(p, r) >= 0) eagle_distance_backward(p, p->first + r, pass_scale(p, r));
    if (has_markov(p)) block_bias_backward(p, thread, from, to);
}

static void head_weight(void *argument, int thread, int threads) {
    const Pass *p = argument;
    Network *n = p->n;
    int from, to;
    Linear head = pass_head(p, thread, HEAD_FORWARD);
    pool_share(head.outputs, n->kernels->row_unit, thread, threads, &from, &to);
    linear_backward_weight(&head, n->logits, pass_row(n->out_normed, p->first, n->shape.width), p->rows,
                           n->gradients + n->parameters.at[W_HEAD], from, to);
}

// --- a batch ---------------------------------------------------------------------------------------------

// Adds up the rows of a forward.
static void tally(const Pass *p) {
    for (int r = 0; r < p->batch->rows; r++) {
        Part *f = &p->n->parts[pass_part(p, r)];
        int target = target_of(p, r - p->first);
        f->loss += (double)p->n->losses[r];
        f->learned += target >= 0;
        f->agreed += target >= 0 && p->agreement && p->n->agreeing[r];
    }
}

static void run_forward(Pass *p, bool learn) {
    const Batch *b = p->batch;
    pass_forward(p);
    for (p->first = 0; p->first < b->rows; p->first += HEAD_ROWS) {
        p->rows = b->rows - p->first < HEAD_ROWS ? b->rows - p->first : HEAD_ROWS;
        pool_run(p->n->pool, head_forward, p);
        if (learn) pool_run(p->n->pool, head_rows, p);
        if (learn && p->n->parameters.at[W_HEAD] != NO_PARAMETER) pool_run(p->n->pool, head_weight, p);
        if (learn && has_markov(p)) pool_run(p->n->pool, block_head_weights, p);
    }
    tally(p);
}

// Returns the sum of the rows' losses.
static double run(Pass *p, bool learn) {
    int last = learn ? p->n->learned_forwards : p->n->forward_count;
    double sum = 0;
    assert(p->batch->states || p->batch->tokens);
    pool_run(p->n->pool, pass_pack_heads, p);
    memset(p->n->parts, 0, sizeof p->n->parts);
    for (p->forward = 0; p->forward < last; p->forward++) run_forward(p, learn);
    for (int i = 0; i < p->n->part_count; i++) sum += part_weight(p->n, i) * p->n->parts[i].loss;
    for (p->forward = last - 1; learn && p->forward >= 0; p->forward--) {
        p->carried = p->forward + 1 < last;
        pass_backward(p);
    }
    return sum;
}

double network_loss(Network *n, const Batch *batch) {
    return run(&(Pass){.n = n, .batch = batch, .agreement = true}, false);
}

double network_learn(Network *n, const Batch *batch, float scale) {
    return run(&(Pass){.n = n, .batch = batch, .scale = scale}, true);
}
