// A sample is a whole step as decoding runs it: tree, forward pass, LM head on every node that may be
// accepted, and the best token of each. Nothing is committed, so that every sample sees the same context.
#include "harness/bench/steps.h"

#include "engine/base/memory.h"
#include "results/record.h"
#include "simulate/hardware.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

enum { PROMPT_CHUNK = 256, TRIES = 4 };

static int random_token(const Session *s, Random *r) {
    return (int)random_below(r, (uint32_t)s->shape.real_vocab);
}

// Hidden states for so many nodes, for mem_free.
static float *random_rows(const Session *s, int count, Random *r) {
    size_t n = (size_t)count * (size_t)shape_given_width(&s->shape);
    float *rows = mem_new(n, sizeof *rows);
    for (size_t i = 0; i < n; i++) rows[i] = random_normal(r);
    return rows;
}

// Sets the session's sequence to `context` random tokens, unless it has that length already.
static bool bench_set_context(Session *s, int context, Random *r, Error *e) {
    bool hidden = s->shape.input != INPUT_TOKENS, ok = true;
    int tokens[PROMPT_CHUNK];
    if (s->cache.length == context) return true;
    LOCAL_MEMORY float *rows = hidden ? random_rows(s, PROMPT_CHUNK, r) : NULL;
    session_reset(s);
    for (int done = 0, n; ok && done < context; done += n) {
        n = context - done < PROMPT_CHUNK ? context - done : PROMPT_CHUNK;
        for (int i = 0; i < n; i++) tokens[i] = random_token(s, r);
        ok = hidden ? session_prefill_hidden(s, tokens, n, rows, e)
                    : session_prefill(s, tokens, n, 0, 0, NULL, e);
    }
    return ok;
}

// Fills the tree, and sums the positions that its nodes see.
static StepShape build_step(Session *s, const BenchPoint *p, Random *r) {
    bool block = s->shape.input == INPUT_BLOCK; // all of its rows see each other
    Tree *t = &s->tree;
    if (block) session_begin_block(s, p->tokens, random_token(s, r));
    else session_begin_step(s, false, p->layout);
    int node = block ? 0 : tree_root(t, random_token(s, r));
    for (int i = 1; !block && p->k == 0 && i < p->tokens; i++)
        node = tree_propose(t, node, random_token(s, r));
    for (int row = 0; row < p->k; row++) {
        node = tree_row(t);
        for (int i = 0; i < p->w; i++) node = tree_propose(t, node, random_token(s, r));
    }
    StepShape step = {.rows = t->count, .read = t->count, .context = p->context, .cache_readers = 1};
    if (p->layout != LAYOUT_TREE && p->k > 1) step.cache_readers = p->k;
    for (int i = 0; i < t->count; i++) step.seen += tree_position(t, block ? t->count - 1 : i) + 1;
    return step;
}

static BackendReport report_of(const Session *s) {
    BackendReport report;
    s->backend->report(s->self, &report);
    return report;
}

typedef struct Stepping {
    Session *sessions[SEQUENCES_MAX]; // (count)
    int count;
    const BenchOptions *o;
    const BenchPoint *p;
    StepShape shape; // of all sequences
    Random random;
    float *rows;           // hidden states for the nodes; NULL: it reads tokens only
    double experts, steps; // that were read, by so many steps
} Stepping;

static bool time_step(void *state, BenchSample *to, Error *e) {
    Stepping *t = state;
    Session *s = t->sessions[0]; // counts the work of all
    PhaseSeconds before, after;
    bool block = s->shape.input == INPUT_BLOCK;
    if (block && (t->p->k || t->p->tokens > BLOCK_MOST))
        return error_input(e, "bench: a step of DFlash's draft is a block of 1 to %d rows: give --tokens",
                           BLOCK_MOST);
    for (int i = 0; i < t->count; i++) {
        StepShape one = build_step(t->sessions[i], t->p, &t->random);
        if (i == 0) t->shape = (StepShape){.context = one.context};
        t->shape.rows += one.rows;
        t->shape.read += one.read;
        t->shape.cache_readers += one.cache_readers;
        t->shape.seen += one.seen;
    }
    if (t->rows && !block && !session_set_hidden(s, 0, s->tree.count, t->rows, e)) return false;
    session_worked(s, &before);
    BackendReport begun = report_of(s), ended;
    double start = clock_now(t->o->clock);
    bool ok = t->count > 1 ? session_step_together(t->sessions, t->count, e)
                           : session_run(s, s->shape.layers, e) && session_read(s, HEAD_ARGMAX, e);
    if (!ok) return false;
    to->step = clock_now(t->o->clock) - start;
    ended = report_of(s);
    to->submit = to->step - (ended.waited_s - begun.waited_s);
    t->experts += (double)(ended.experts_read - begun.experts_read);
    t->steps++;
    session_worked(s, &after);
    to->layers = after.run - before.run;
    to->head = after.head - before.head;
    to->busy = to->layers + to->head;
    return true;
}

// --- samples ---------------------------------------------------------------------------------------------

bool bench_cold(const BenchOptions *o, int steps, double seconds) {
    static const double WARM_S = 5e-3;
    enum { WARM_MOST = 50 };
    return steps < o->warm_up || (steps < WARM_MOST && seconds < WARM_S);
}

bool bench_drifted(double before, double after) {
    static const double NOISE = 1.15;
    return after > NOISE * before || before > NOISE * after;
}

Reach bench_slowdown(const BenchTime *step, const BenchTime *one, const BenchTime *again) {
    Reach a = {step->median_s, step->low_s, step->high_s}, b = {one->median_s, one->low_s, one->high_s};
    if (again) b.low = fmin(b.low, again->low_s), b.high = fmax(b.high, again->high_s);
    return ratio_reach(a, b);
}

void bench_compare(BenchPoint *p, const BenchTime *one, const BenchTime *again) {
    p->slowdown = bench_slowdown(&p->time, one, again);
    p->time.flags |= one->flags;
}

// The median of one member of all samples.
static double column_median(const BenchSample *samples, int n, size_t offset, double *scratch) {
    for (int i = 0; i < n; i++) memcpy(&scratch[i], (const char *)&samples[i] + offset, sizeof *scratch);
    return median(scratch, (size_t)n);
}

// Puts the undisturbed samples first, in their order, and returns their number.
static int part_samples(BenchSample *samples, int n) {
    int calm = 0;
    for (int i = 0; i < n; i++) {
        BenchSample one = samples[i];
        if (one.flags) continue;
        samples[i] = samples[calm];
        samples[calm++] = one;
    }
    return calm;
}

static void sum_up(BenchSample *samples, int taken, int wanted, BenchTime *out) {
    double scratch[BENCH_SAMPLES];
    int calm = part_samples(samples, taken);
    out->disturbed = taken - calm;
    out->n = calm < wanted ? taken : calm;
    for (int i = calm; i < out->n; i++) out->flags |= samples[i].flags;
    for (int i = 0; i < out->n; i++) out->mean_s += samples[i].step / out->n;
    out->median_s = column_median(samples, out->n, offsetof(BenchSample, step), scratch);
    median_interval(scratch, (size_t)out->n, &out->low_s, &out->high_s);
    out->mad_s = median_deviation(scratch, (size_t)out->n);
}

// Flags the samples since the watch judged last, `from` the first of them. Returns the first sample of the
// next window.
static int judge(Watch *w, BenchSample *samples, int from, int taken, BenchTime *out) {
    int windows = w->windows, flags = watch_judge(w);
    if (w->windows == windows) return from;
    if (!out->looked) out->flags_before = flags;
    out->looked = true;
    for (int i = from; i < taken; i++) samples[i].flags |= flags;
    return taken;
}

// Samples that the watch has not judged yet, from `window` on, count like the last window that it has judged.
static int count_calm(const Watch *w, const BenchSample *samples, int window, int taken) {
    int calm = 0, judged = w && w->flags ? window : taken;
    for (int i = 0; i < judged; i++) calm += !samples[i].flags;
    return calm;
}

bool bench_take(const BenchOptions *o, BenchTake take, void *state, BenchSample samples[BENCH_SAMPLES],
                BenchTime *out, Error *e) {
    Watch *w = o->watch;
    double spent = 0, warming = 0;
    int taken = 0, calm = 0, cold = 0, window = 0, wanted = o->min_samples;
    int64_t before = w ? watch_switches(w) : 0, start = before; // of the last step, of this one
    *out = (BenchTime){0};
    while (calm < o->max_samples && taken < BENCH_SAMPLES &&
           ((calm < wanted && taken < TRIES * wanted) || spent < o->seconds)) {
        BenchSample *one = &samples[taken];
        *one = (BenchSample){0};
        if (!take(state, one, e)) return false;
        int64_t now = w ? watch_switches(w) : 0;
        one->flags = now == before ? 0 : FLAG_LOAD;
        before = start;
        start = now;
        if (bench_cold(o, cold, warming)) {
            cold++, warming += one->step;
            continue;
        }
        spent += one->step;
        taken++;
        if (w) window = judge(w, samples, window, taken, out);
        calm = count_calm(w, samples, window, taken);
    }
    for (int i = window; w && i < taken; i++) samples[i].flags |= w->flags;
    sum_up(samples, taken, wanted, out);
    return true;
}

// --- what a step costs -----------------------------------------------------------------------------------

// Positions that a layer sees, on average over layers, of `positions` that `rows` rows would without windows.
static double visible(const Shape *s, double positions, double rows) {
    double sum = 0;
    for (int layer = 0; layer < s->layers; layer++) {
        double window = shape_window(s, layer) * rows;
        sum += window > 0 && window < positions ? window : positions;
    }
    return sum / s->layers;
}

StepCost step_cost(const Shape *shape, const BackendReport *report, const StepShape *step) {
    if (report->weight_bytes == 0) return (StepCost){0, 0}; // a backend without arithmetic
    double layers = (double)shape->layers, rows = (double)step->rows;
    double parameters = (double)shape_layers_parameters(shape);
    double head = (double)shape->vocab * (double)shape->width * (double)step->read;
    double seen = visible(shape, step->seen, rows);
    double fc = rows * (double)shape_fc_width(shape) * (double)shape->width;
    double attention = 2 * layers * (double)shape_q_width(shape) * seen; // scores, and sums of values
    double cached = visible(shape, step->context, 1);
    return (StepCost){.bytes = (double)report->weight_bytes + step->experts * (double)report->expert_bytes +
                               cached * step->cache_readers * (double)report->kv_bytes_per_position +
                               seen * (double)report->score_bytes,
                      .operations = 2 * (rows * parameters + fc + head + attention)};
}

// --- points ----------------------------------------------------------------------------------------------

double bench_peak(const Benched *b) {
    return b->ceilings->operations_per_s[compute_rate(b->session->compute, b->weights)];
}

static void set_floors(const Benched *b, const StepShape *step, BenchPoint *p) {
    Session *s = b->session;
    BackendReport report = report_of(s);
    int sparse = layers_in(&s->shape.sparse, s->shape.layers);
    StepExperts x = {.count = s->shape.experts.count, .chosen = s->shape.experts.chosen};
    p->experts = sparse ? step->experts / sparse : 0;
    p->experts_expected = sparse ? experts_touched(&x, step->rows) : 0;
    StepShape read = *step;
    if (!(step->experts > 0)) read.experts = sparse * p->experts_expected; // the backend doesn't count them
    StepCost cost = step_cost(&s->shape, &report, &read);
    p->tokens = step->rows / bench_sequences(p);
    p->bytes = cost.bytes;
    p->operations = cost.operations;
    p->floor_bandwidth_s = b->ceilings->bytes_per_s > 0 ? cost.bytes / b->ceilings->bytes_per_s : 0;
    double peak = bench_peak(b);
    p->floor_compute_s = peak > 0 ? cost.operations / peak : 0;
}

bool bench_point(const Benched *b, const BenchOptions *o, const BenchTime *one, BenchPoint *point, Error *e) {
    BenchSample samples[BENCH_SAMPLES];
    double scratch[BENCH_SAMPLES];
    Session *s = b->session;
    Random r = {.seed = o->seed + 1, .stream = STREAM_BENCH};
    Stepping t = {.count = bench_sequences(point),
                  .o = o,
                  .p = point,
                  .random = {.seed = o->seed, .stream = STREAM_BENCH}};
    assert(t.count == 1 || (b->more && s->shape.input == INPUT_TOKENS));
    if (s->shape.input != INPUT_TOKENS) t.rows = random_rows(s, s->tree.capacity, &r);
    bool taken = true;
    for (int i = 0; taken && i < t.count; i++) {
        t.sessions[i] = i ? &b->more[i - 1] : s;
        taken = bench_set_context(t.sessions[i], point->context, &r, e);
    }
    taken = taken && bench_take(o, time_step, &t, samples, &point->time, e);
    mem_free(t.rows);
    if (!taken) return false;
    if (!(point->time.median_s > 0)) // speeds and laws divide by it
        return error_system(
            e, "a step took no time by the clock, which is too coarse; leave --processor-time away");
    int n = point->time.n;
    t.shape.experts = t.experts / t.steps;
    set_floors(b, &t.shape, point);
    point->submit_s = column_median(samples, n, offsetof(BenchSample, submit), scratch);
    point->busy_s = column_median(samples, n, offsetof(BenchSample, busy), scratch);
    point->layers_s = column_median(samples, n, offsetof(BenchSample, layers), scratch);
    point->head_s = column_median(samples, n, offsetof(BenchSample, head), scratch);
    point->slowdown = one ? bench_slowdown(&point->time, one, NULL) : (Reach){1, NAN, NAN};
    return true;
}

bool bench_prefill(Session *s, const BenchOptions *o, int tokens, double *seconds, double *operations,
                   Error *e) {
    Random r = {.seed = o->seed, .stream = STREAM_BENCH};
    StepShape step = {.rows = tokens, .seen = 0.5 * tokens * (tokens + 1.0)};
    session_reset(s);
    double start = clock_now(o->clock);
    if (!bench_set_context(s, tokens, &r, e)) return false;
    *seconds = clock_now(o->clock) - start;
    BackendReport report = report_of(s);
    *operations = step_cost(&s->shape, &report, &step).operations;
    return true;
}

// --- parts of a step -------------------------------------------------------------------------------------

// A sample prepares the step up to its part, and times only the part. Committed tokens are taken back.
//
// A GPU only queues its work; the work has finished when a hidden state that is read after it arrives. So
// each timed part begins and ends with such a read. On a GPU that adds the copying of one row, some
// microseconds, to every part.

const char *const part_names[PART_KINDS] = {"layers", "head", "prefill", "commit", "host"};

typedef struct Timing {
    Session *s;
    const BenchOptions *o;
    const PartPoint *p;
    Random random;
    float *row; // (width)
} Timing;

static bool settle(Timing *t, Error *e) {
    int root = 0;
    return session_get_hidden(t->s, &root, 1, HIDDEN_RAW, t->row, e);
}

// Builds a chain of random tokens below the root and returns its last node.
static int build_chain(Timing *t) {
    Session *s = t->s;
    session_begin_step(s, false, LAYOUT_TREE);
    int node = tree_root(&s->tree, random_token(s, &t->random));
    for (int i = 1; i < t->p->rows; i++) node = tree_propose(&s->tree, node, random_token(s, &t->random));
    return node;
}

static bool time_part(Timing *t, double *seconds, Error *e) {
    Session *s = t->s;
    const PartPoint *p = t->p;
    int tokens[TREE_MAX_NODES], node = 0, layers = s->shape.layers;
    bool ok = true;
    for (int i = 0; p->kind == PART_PREFILL && i < p->rows; i++) tokens[i] = random_token(s, &t->random);
    if (p->kind != PART_PREFILL && p->kind != PART_HOST) node = build_chain(t);
    if (p->kind == PART_LAYERS && p->a > 0) ok = session_run(s, p->a, e) && settle(t, e);
    if (p->kind == PART_HEAD) ok = session_run(s, layers, e) && settle(t, e);
    if (p->kind == PART_COMMIT) ok = session_run(s, layers, e) && session_read(s, HEAD_ARGMAX, e);
    if (!ok) return false;
    double start = clock_now(t->o->clock);
    switch (p->kind) {
    case PART_LAYERS: ok = session_run(s, p->b, e) && settle(t, e); break;
    case PART_HEAD: ok = session_read(s, HEAD_ARGMAX, e); break; // what is read has finished
    case PART_PREFILL: ok = session_prefill(s, tokens, p->rows, 0, 0, NULL, e) && settle(t, e); break;
    case PART_COMMIT: ok = session_commit(s, node, p->rows, e) && settle(t, e); break;
    default: build_chain(t);
    }
    *seconds = clock_now(t->o->clock) - start;
    bool committed = p->kind == PART_PREFILL || p->kind == PART_COMMIT;
    return ok && (!committed || session_truncate(s, p->context, e));
}

static bool take_sample(void *state, BenchSample *out, Error *e) {
    Timing *t = state;
    return bench_set_context(t->s, t->p->context, &t->random, e) && time_part(t, &out->step, e);
}

bool part_time(Session *s, const BenchOptions *o, PartPoint *p, Error *e) {
    BenchSample samples[BENCH_SAMPLES];
    Timing t = {s, o, p, {.seed = o->seed, .stream = STREAM_BENCH}, NULL};
    t.row = mem_new((size_t)s->shape.width, sizeof *t.row);
    bool ok = bench_take(o, take_sample, &t, samples, &p->time, e);
    mem_free(t.row);
    return ok;
}
