// A sample is a whole step as decoding runs it: tree, forward pass, LM head on every node that may be
// accepted, and the best token of each. Nothing is committed, so that every sample sees the same context.
#include "harness/machine/bench.h"

#include "harness/machine/step_cost.h"
#include "results/record.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

enum { PROMPT_CHUNK = 256, TRIES = 4 };

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
    if (p->layout != LAYOUT_TREE && p->k > 1) step.cache_readers = p->k;
    for (int i = 0; i < t->count; i++) step.seen += tree_position(t, i) + 1;
    return step;
}

// The host's, waiting for its device.
static double waited(const Session *s) {
    BackendReport report;
    s->backend->report(s->self, &report);
    return report.waited_s;
}

typedef struct Stepping {
    Engine *engine;
    const BenchOptions *o;
    const BenchPoint *p;
    StepShape shape;
    Random random;
} Stepping;

static bool time_step(void *state, BenchSample *to, Error *e) {
    Stepping *t = state;
    Session *s = &t->engine->session;
    PhaseSeconds before, after;
    t->shape = build_step(s, t->p, &t->random);
    session_worked(s, &before);
    double start = clock_now(t->o->clock), wait = waited(s);
    if (!session_run(s, s->shape.layers, e) || !session_read(s, HEAD_ARGMAX, e)) return false;
    to->step = clock_now(t->o->clock) - start;
    to->submit = to->step - (waited(s) - wait);
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

// The median of one member of all samples.
static double column_median(const BenchSample *samples, int n, size_t offset, double *scratch) {
    for (int i = 0; i < n; i++) memcpy(&scratch[i], (const char *)&samples[i] + offset, sizeof *scratch);
    return median(scratch, (size_t)n);
}

// Puts the undisturbed samples first, in their order; gives their number.
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

// Marks the samples that were taken since the watch judged last, `from` the first of them; gives the first of
// the next.
static int judge(Watch *w, BenchSample *samples, int from, int taken, BenchTime *out) {
    int windows = w->windows, flags = watch_judge(w);
    if (w->windows == windows) return from;
    if (!out->looked) out->flags_before = flags;
    out->looked = true;
    for (int i = from; i < taken; i++) samples[i].flags |= flags;
    return taken;
}

// Those that the watch has not judged yet, from `window` on, are taken to be as the last that it has.
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

// --- points ----------------------------------------------------------------------------------------------

double bench_peak(const Engine *engine, const Ceilings *ceilings) {
    return ceilings->operations_per_s[compute_rate(engine->session.compute, engine->model.dtype)];
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

bool bench_point(Engine *engine, const Ceilings *ceilings, const BenchOptions *o, const BenchTime *one,
                 BenchPoint *point, Error *e) {
    BenchSample samples[BENCH_SAMPLES];
    double scratch[BENCH_SAMPLES];
    Random r = {.seed = o->seed + 1, .stream = STREAM_BENCH};
    Stepping t = {engine, o, point, .random = {.seed = o->seed, .stream = STREAM_BENCH}};
    if (!bench_set_context(&engine->session, point->context, &r, e) ||
        !bench_take(o, time_step, &t, samples, &point->time, e))
        return false;
    if (!(point->time.median_s > 0)) // speeds and laws divide by it
        return error_system(
            e, "a step took no time by the clock, which is too coarse; leave --processor-time away");
    int n = point->time.n;
    set_floors(engine, ceilings, &t.shape, point);
    point->submit_s = column_median(samples, n, offsetof(BenchSample, submit), scratch);
    point->busy_s = column_median(samples, n, offsetof(BenchSample, busy), scratch);
    point->layers_s = column_median(samples, n, offsetof(BenchSample, layers), scratch);
    point->head_s = column_median(samples, n, offsetof(BenchSample, head), scratch);
    point->slowdown = one ? bench_slowdown(&point->time, one, NULL) : (Reach){1, NAN, NAN};
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
