// The LM head: it runs for chosen rows only, and stores no logits if only the best ids are wanted. Threads
// take parts of the vocabulary, and each keeps the k best of its parts for every row. The lowest id wins a
// tie, no matter which thread took which part.
#include "engine/cpu/products.h"
#include "engine/model/follow.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct {
    Cpu *c;
    const HeadRow *row; // (rows)
    int rows, k;
    bool logits;   // wanted
    float *direct; // (rows, vocab): the logits, if their rows are one sequence's; else NULL
    bool sums;     // fill unit_sums
    Packed packed;
} HeadTask;

static float *logits_of(const HeadTask *t, int r) {
    return t->row[r].out->logits + (size_t)t->row[r].at * (size_t)t->c->model->shape.vocab;
}

static bool is_better(float logit, int id, float other, int other_id) {
    return logit > other || (logit == other && id < other_id);
}

// Inserts (id, logit) into a list of at most k, best first, of equal logits the lower id first. NaN counts as
// +INFINITY (HEAD_BAD): the first comparison rejects nearly every logit, but never NaN.
static void keep_best(int *ids, float *best, int k, int *count, int id, float logit) {
    int at = *count;
    if (at == k && logit < best[k - 1]) return;
    if (isnan(logit)) logit = INFINITY;
    if (at == k && !is_better(logit, id, best[k - 1], ids[k - 1])) return;
    if (at < k) (*count)++;
    else at = k - 1;
    for (; at > 0 && is_better(logit, id, best[at - 1], ids[at - 1]); at--) {
        ids[at] = ids[at - 1];
        best[at] = best[at - 1];
    }
    ids[at] = id;
    best[at] = logit;
}

static void rank_slice(const HeadTask *t, ThreadScratch *s, const float *slice, size_t stride, int from,
                       int to, int *counts) {
    int limit = t->c->model->shape.real_vocab < to ? t->c->model->shape.real_vocab : to;
    for (int r = 0; r < t->rows; r++)
        for (int n = from; n < limit; n++)
            keep_best(s->top_id + r * HEAD_TOP_MAX, s->top_logit + r * HEAD_TOP_MAX, t->k, &counts[r], n,
                      slice[(size_t)r * stride + (size_t)(n - from)]);
}

static UnitSum *units_of_row(const Cpu *c, int row) {
    return c->unit_sums + (size_t)row * cpu_units(&c->model->shape);
}

// By units, which begin at the same ids whatever the slices and the threads.
static void sum_slice(const HeadTask *t, const float *slice, size_t stride, int from, int to) {
    int limit = t->c->model->shape.real_vocab < to ? t->c->model->shape.real_vocab : to;
    for (int r = 0; r < t->rows; r++)
        for (int n = from; n < limit; n += MATMUL_UNIT) {
            UnitSum *u = units_of_row(t->c, r) + n / MATMUL_UNIT;
            int count = limit - n < MATMUL_UNIT ? limit - n : MATMUL_UNIT;
            u->sum = t->c->ops->exp_sum(slice + (size_t)r * stride + (size_t)(n - from), count, &u->highest);
        }
}

static float log_sum(const Cpu *c, int row) {
    const UnitSum *u = units_of_row(c, row);
    int count = (c->model->shape.real_vocab + MATMUL_UNIT - 1) / MATMUL_UNIT;
    double highest = -INFINITY, sum = 0;
    for (int i = 0; i < count; i++) highest = fmax(highest, (double)u[i].highest);
    for (int i = 0; i < count; i++) sum += (double)u[i].sum * exp((double)u[i].highest - highest);
    return (float)log(sum > 0 ? sum : 1);
}

// The bias, factor and cap of logits [from, to), in rows of `stride`, if the model has them.
static void finish_slice(const HeadTask *t, float *y, size_t stride, int from, int to) {
    const Model *m = t->c->model;
    const Tensor *bias = &m->head_bias;
    float scale = shape_or_one(m->shape.logit_scale), cap = m->shape.logit_cap;
    if (!bias->data && m->shape.logit_scale == 0 && cap == 0) return;
    for (int r = 0; r < t->rows; r++, y += stride)
        for (int i = 0; i < to - from; i++) {
            float b = bias->data ? dtype_load(bias->dtype, bias->data, (size_t)(from + i)) : 0;
            y[i] = (y[i] + b) * scale;
            if (cap > 0) y[i] = cap * tanhf(y[i] / cap);
        }
}

// Ids [from, to).
static void head_part(const HeadTask *t, ThreadScratch *s, int from, int to, int *counts) {
    const Cpu *c = t->c;
    size_t vocab = (size_t)c->model->shape.vocab;
    Packed packed = t->packed;
    packed.decoded = s->decoded;
    // As many outputs as fit the thread's scratch. With few rows that's many: weights are then read in long
    // streams, and the whole step of one token takes 4% less time than with slices of 64.
    int slice = HEAD_SCRATCH / t->rows / MATMUL_UNIT * MATMUL_UNIT;
    assert(slice >= MATMUL_UNIT);
    int real = c->model->shape.real_vocab;
    for (int n = from; n < to; n += slice) {
        int end = n + slice < to ? n + slice : to;
        size_t stride = t->direct ? vocab : (size_t)slice;
        float *y = t->direct ? t->direct + n : s->logits; // column n of the first row
        c->ops->matmul(&c->model->head, &packed, y, stride, n, end);
        finish_slice(t, y, stride, n, end);
        rank_slice(t, s, y, stride, n, end, counts);
        if (t->sums) sum_slice(t, y, stride, n, end);
        for (int r = 0; t->logits && !t->direct && r < t->rows; r++)
            memcpy(logits_of(t, r) + n, y + (size_t)r * stride, (size_t)(end - n) * sizeof *y);
        for (int r = 0; t->logits && r < t->rows; r++)
            for (int i = n > real ? n : real; i < end; i++) logits_of(t, r)[i] = -INFINITY;
    }
}

static void head_parts(void *argument, int thread, UNUSED int threads) {
    const HeadTask *t = argument;
    ThreadScratch *s = &t->c->threads[thread];
    int first, last, counts[PANEL] = {0}, vocab = t->c->model->shape.vocab;
    int units = (vocab + MATMUL_UNIT - 1) / MATMUL_UNIT, least = cpu_least_units(&t->c->model->head);
    while (pool_take(t->c->pool, units, least, thread, &first, &last))
        head_part(t, s, first * MATMUL_UNIT, last < units ? last * MATMUL_UNIT : vocab, counts);
    for (int r = 0; r < t->rows; r++)
        for (int i = counts[r]; i < t->k; i++) s->top_id[r * HEAD_TOP_MAX + i] = -1;
}

// The k best of all threads' for row r. If there are fewer than k, the rest is id 0 with -INFINITY.
static void merge_threads(const HeadTask *t, int r, int *ids, float *logits) {
    int count = 0;
    for (int thread = 0; thread < pool_threads(t->c->pool); thread++) {
        const ThreadScratch *s = &t->c->threads[thread];
        for (int i = 0; i < t->k && s->top_id[r * HEAD_TOP_MAX + i] >= 0; i++)
            keep_best(ids, logits, t->k, &count, s->top_id[r * HEAD_TOP_MAX + i],
                      s->top_logit[r * HEAD_TOP_MAX + i]);
    }
    for (; count < t->k; count++) {
        ids[count] = 0;
        logits[count] = -INFINITY;
    }
}

static void write_best(const HeadTask *t, int r, unsigned want) {
    int ids[HEAD_TOP_MAX];
    float best[HEAD_TOP_MAX];
    HeadOut *out = t->row[r].out;
    size_t row = (size_t)t->row[r].at, at = row * (size_t)out->top;
    merge_threads(t, r, ids, best);
    if (want & HEAD_ARGMAX) out->argmax[row] = isinf(best[0]) ? HEAD_BAD : ids[0];
    if (!(want & HEAD_TOP)) return;
    memcpy(out->top_id + at, ids, (size_t)t->k * sizeof *ids);
    memcpy(out->top_logit + at, best, (size_t)t->k * sizeof *best);
    if (t->sums) out->log_sum[row] = log_sum(t->c, r);
}

void cpu_head(Cpu *c, const HeadRow *row, int rows, unsigned want) {
    const Tensor *w = &c->model->head;
    const HeadOut *out = row->out;
    bool logits = want & HEAD_LOGITS, same = row[rows - 1].out == out, top = want & HEAD_TOP;
    assert(rows >= 1 && rows <= c->panel_rows);
    assert(!top || !out->log_sum || c->unit_sums);
    HeadTask t = {.c = c,
                  .row = row,
                  .rows = rows,
                  .k = top ? out->top : 1,
                  .logits = logits,
                  .sums = top && out->log_sum,
                  .packed = packed_for(w, c->compute, rows, c->panel.packed)};
    if (logits && same) t.direct = logits_of(&t, 0);
    for (int r = 0; r < rows; r++) {
        float *x = c->panel.normed + (size_t)r * (size_t)w->columns;
        cpu_normed(row[r].c, row[r].node, x);
        cpu_watch(row[r].c, x, (size_t)w->columns,
                  overflow_place(c->model->shape.layers, ROUNDED_ATTENTION_INPUT));
    }
    c->ops->pack(c->panel.normed, &t.packed, 0, rows);
    pool_run(c->pool, head_parts, &t);
    for (int r = 0; r < rows; r++) write_best(&t, r, want);
}

void cpu_normed(const Cpu *c, int node, float *row) {
    const Shape *s = &c->model->shape;
    assert(node >= 0 && node < c->max_nodes);
    const float *x = c->hidden + (size_t)node * (size_t)s->width;
    if (c->model->final_norm.data && !s->normed_output)
        cpu_norm(c, &c->model->final_norm, &c->model->final_norm_bias, x, row);
    else memcpy(row, x, (size_t)s->width * sizeof *row);
}

// --- DSpark's heads (engine/model/follow.h), their products by all threads

size_t cpu_following(const Shape *s) { return following_floats(s) + (size_t)s->vocab; }

static void multiply_row(Cpu *c, int node, const Tensor *w, float *x, float *y) {
    const Tree tree = {.count = 0};
    const StepRun run = {.tree = &tree};
    const Member member = {c, &run, 0, node, 1, 0, ATTEND_WHOLE};
    const Work work = {
        .c = c->first, .layer = c->model->shape.layers - 1, .rows = 1, .members = &member, .count = 1};
    const Products p = {.work = &work, .x = x, .w = {w}, .y = {y}, .count = 1, .what = ROUNDED_MLP_PRODUCT};
    cpu_project(&p);
}

void cpu_follow(Cpu *c, int node, Follow *f) {
    const Model *m = c->model;
    const BlockDraft *b = &m->shape.block;
    const Following at = following_at(&m->shape, c->first->following);
    float *bias = c->first->following + following_floats(&m->shape);
    cpu_normed(c, node, at.y);
    follow_begin(m, f, &at);
    if (!b->markov || !f->logits) return;
    if (b->markov >= MARKOV_GATED) {
        follow_inputs(m, f->state, &at);
        multiply_row(c, node, &m->markov_gate, at.x, at.gate);
        follow_gate(m, f->state, &at);
    }
    multiply_row(c, node, &m->markov_to, at.e, bias);
    for (int i = 0; i < m->shape.vocab; i++) f->logits[i] += bias[i];
}
