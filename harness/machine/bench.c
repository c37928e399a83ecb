// A sample is a whole step as decoding runs it: tree, forward pass, LM head on every node that may be
// accepted, and the best token of each. Nothing is committed, so that every sample sees the same context.
#include "harness/machine/bench.h"

#include "harness/machine/step_cost.h"
#include "simulate/statistics.h"

#include <assert.h>

enum { MOST_SAMPLES = 200, PROMPT_CHUNK = 256 };

static int random_token(const Session *s, Random *r) {
    return (int)random_below(r, (uint32_t)s->shape.real_vocab);
}

bool bench_set_context(Session *s, int context, Random *r, Error *e) {
    int tokens[PROMPT_CHUNK];
    if (s->cache.length == context) return true;
    session_reset(s);
    for (int done = 0, n; done < context; done += n) {
        n = context - done < PROMPT_CHUNK ? context - done : PROMPT_CHUNK;
        for (int i = 0; i < n; i++) tokens[i] = random_token(s, r);
        if (!session_prefill(s, tokens, n, 0, 0, NULL, e)) return false;
    }
    return true;
}

// Fills the tree; what the nodes see is summed on the way.
static StepShape build_step(Session *s, const BenchPoint *p, Random *r) {
    session_begin_step(s, false, p->layout);
    Tree *t = &s->tree;
    int node = tree_root(t, random_token(s, r));
    for (int i = 1; p->k == 0 && i < p->tokens; i++) node = tree_propose(t, node, random_token(s, r));
    for (int row = 0; row < p->k; row++) {
        node = tree_row(t);
        for (int i = 0; i < p->w; i++) node = tree_propose(t, node, random_token(s, r));
    }
    StepShape step = {.rows = t->count, .read = t->count, .context = p->context, .cache_readers = 1};
    if (p->layout == LAYOUT_BATCH && p->k > 1) step.cache_readers = p->k;
    if (p->layout == LAYOUT_COPIED) step.cache_readers = 1 + 2 * p->k; // read, written and read a row
    for (int i = 0; i < t->count; i++) step.seen += tree_position(t, i) + 1;
    return step;
}

// Seconds of each sample, and what of them is whose (bench.h).
typedef struct Samples {
    double step[MOST_SAMPLES], submit[MOST_SAMPLES], busy[MOST_SAMPLES], layers[MOST_SAMPLES],
        head[MOST_SAMPLES];
} Samples;

// The host's, waiting for its device.
static double waited(const Session *s) {
    BackendReport report;
    s->backend->report(s->self, &report);
    return report.waited_s;
}

static bool time_step(Engine *engine, const BenchOptions *o, Samples *to, int i, Error *e) {
    Session *s = &engine->session;
    PhaseSeconds before, after;
    session_worked(s, &before);
    double start = clock_now(o->clock), wait = waited(s);
    if (!session_run(s, s->shape.layers, e) || !session_read(s, HEAD_ARGMAX, e)) return false;
    to->step[i] = clock_now(o->clock) - start;
    to->submit[i] = to->step[i] - (waited(s) - wait);
    session_worked(s, &after);
    to->layers[i] = after.run - before.run;
    to->head[i] = after.head - before.head;
    to->busy[i] = to->layers[i] + to->head[i];
    return true;
}

bool bench_cold(const BenchOptions *o, int steps, double seconds) {
    static const double WARM_S = 5e-3;
    enum { WARM_MOST = 50 };
    return steps < o->warm_up || (steps < WARM_MOST && seconds < WARM_S);
}

bool bench_drifted(double before, double after) {
    static const double NOISE = 1.15;
    return after > NOISE * before || before > NOISE * after;
}

// Samples until there are enough of them, or enough time has gone; gives their number, 0 on an error.
static int sample(Engine *engine, const BenchOptions *o, BenchPoint *p, StepShape *step, Samples *to,
                  Error *e) {
    Random r = {.seed = o->seed, .stream = STREAM_BENCH};
    double spent = 0, warming = 0;
    int n = 0, cold = 0, most = o->max_samples < MOST_SAMPLES ? o->max_samples : MOST_SAMPLES;
    while (n < most && (n < o->min_samples || spent < o->seconds)) {
        if (o->interrupted && o->interrupted()) return 0;
        *step = build_step(&engine->session, p, &r);
        if (!time_step(engine, o, to, n, e)) return 0;
        if (bench_cold(o, cold, warming)) cold++, warming += to->step[n];
        else spent += to->step[n++];
    }
    return n;
}

double bench_peak(const Engine *engine, const Ceilings *ceilings) {
    bool bf16 = engine->model.dtype == DTYPE_BF16 && engine->session.compute == COMPUTE_BF16;
    return ceilings->operations_per_s[bf16 ? COMPUTE_BF16 : COMPUTE_F32];
}

static void set_floors(Engine *engine, const Ceilings *c, const StepShape *step, BenchPoint *p) {
    BackendReport report;
    Session *s = &engine->session;
    s->backend->report(s->self, &report);
    StepCost cost = step_cost(&s->shape, &report, step);
    p->tokens = step->rows;
    p->bytes = cost.bytes;
    p->operations = cost.operations;
    p->floor_bandwidth_s = c->bytes_per_s > 0 ? cost.bytes / c->bytes_per_s : 0;
    double peak = bench_peak(engine, c);
    p->floor_compute_s = peak > 0 ? cost.operations / peak : 0;
}

bool bench_point(Engine *engine, const Ceilings *ceilings, const BenchOptions *o, double one,
                 BenchPoint *point, Error *e) {
    Samples samples;
    StepShape step;
    Random r = {.seed = o->seed + 1, .stream = STREAM_BENCH};
    if (!bench_set_context(&engine->session, point->context, &r, e)) return false;
    int n = sample(engine, o, point, &step, &samples, e);
    if (n <= 0) return false;
    set_floors(engine, ceilings, &step, point);
    point->n = n;
    point->mean_s = 0;
    for (int i = 0; i < n; i++) point->mean_s += samples.step[i] / n;
    point->median_s = median(samples.step, (size_t)n);
    if (!(point->median_s > 0)) // speeds and laws divide by it
        return error_system(
            e, "a step took no time by the clock, which is too coarse; leave --processor-time away");
    point->mad_s = median_deviation(samples.step, (size_t)n);
    point->submit_s = median(samples.submit, (size_t)n);
    point->busy_s = median(samples.busy, (size_t)n);
    point->layers_s = median(samples.layers, (size_t)n);
    point->head_s = median(samples.head, (size_t)n);
    point->slowdown = one > 0 ? point->median_s / one : 1;
    return true;
}

bool bench_prefill(Engine *engine, const BenchOptions *o, int tokens, double *seconds, double *operations,
                   Error *e) {
    Session *s = &engine->session;
    Random r = {.seed = o->seed, .stream = STREAM_BENCH};
    BackendReport report;
    StepShape step = {.rows = tokens, .seen = 0.5 * tokens * (tokens + 1.0)};
    session_reset(s);
    double start = clock_now(o->clock);
    if (!bench_set_context(s, tokens, &r, e)) return false;
    *seconds = clock_now(o->clock) - start;
    s->backend->report(s->self, &report);
    *operations = step_cost(&s->shape, &report, &step).operations;
    return true;
}
