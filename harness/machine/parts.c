// A sample prepares the step up to its part, and times the part alone. What was committed is taken back.
#include "harness/machine/parts.h"

#include "simulate/statistics.h"

enum { MOST_SAMPLES = 200 };

const char *const part_names[PART_KINDS] = {"layers", "head", "prefill", "commit", "host"};

// A chain below the root, of random tokens; gives its last node.
static int build_chain(Session *s, int rows, Random *r) {
    session_begin_step(s, false, LAYOUT_TREE);
    int node = tree_root(&s->tree, (int)random_below(r, (uint32_t)s->shape.real_vocab));
    for (int i = 1; i < rows; i++)
        node = tree_propose(&s->tree, node, (int)random_below(r, (uint32_t)s->shape.real_vocab));
    return node;
}

static bool time_layers(Session *s, const BenchOptions *o, const PartPoint *p, Random *r, double *seconds,
                        Error *e) {
    build_chain(s, p->rows, r);
    if (p->a > 0 && !session_run(s, p->a, e)) return false;
    double start = clock_now(o->clock);
    bool ok = session_run(s, p->b, e);
    *seconds = clock_now(o->clock) - start;
    return ok;
}

static bool time_head(Session *s, const BenchOptions *o, const PartPoint *p, Random *r, double *seconds,
                      Error *e) {
    build_chain(s, p->rows, r);
    if (!session_run(s, s->shape.layers, e)) return false;
    double start = clock_now(o->clock);
    bool ok = session_read(s, HEAD_ARGMAX, e);
    *seconds = clock_now(o->clock) - start;
    return ok;
}

static bool time_prefill(Session *s, const BenchOptions *o, const PartPoint *p, Random *r, double *seconds,
                         Error *e) {
    int tokens[TREE_MAX_NODES];
    for (int i = 0; i < p->rows; i++) tokens[i] = (int)random_below(r, (uint32_t)s->shape.real_vocab);
    double start = clock_now(o->clock);
    bool ok = session_prefill(s, tokens, p->rows, 0, 0, NULL, e);
    *seconds = clock_now(o->clock) - start;
    return ok && session_truncate(s, p->context, e);
}

static bool time_commit(Session *s, const BenchOptions *o, const PartPoint *p, Random *r, double *seconds,
                        Error *e) {
    int node = build_chain(s, p->rows, r);
    if (!session_run(s, s->shape.layers, e) || !session_read(s, HEAD_ARGMAX, e)) return false;
    double start = clock_now(o->clock);
    bool ok = session_commit(s, node, p->rows, e);
    *seconds = clock_now(o->clock) - start;
    return ok && session_truncate(s, p->context, e);
}

static bool time_host(Session *s, const BenchOptions *o, const PartPoint *p, Random *r, double *seconds,
                      Error *e) {
    (void)e;
    double start = clock_now(o->clock);
    build_chain(s, p->rows, r);
    *seconds = clock_now(o->clock) - start;
    return true;
}

typedef bool (*TimePart)(Session *s, const BenchOptions *o, const PartPoint *p, Random *r, double *seconds,
                         Error *e);
static const TimePart TIMES[PART_KINDS] = {time_layers, time_head, time_prefill, time_commit, time_host};

bool part_time(Session *s, const BenchOptions *o, PartPoint *p, Error *e) {
    double seconds[MOST_SAMPLES], spent = 0;
    Random r = {.seed = o->seed, .stream = STREAM_BENCH};
    int n = -o->warm_up, most = o->max_samples < MOST_SAMPLES ? o->max_samples : MOST_SAMPLES;
    for (; n < most && (n < o->min_samples || spent < o->seconds); n++) {
        double once;
        if (o->interrupted && o->interrupted()) return false;
        if (!bench_set_context(s, p->context, &r, e) || !TIMES[p->kind](s, o, p, &r, &once, e)) return false;
        if (n < 0) continue;
        seconds[n] = once;
        spent += once;
    }
    p->n = n;
    p->mean_s = spent / n;
    p->median_s = median(seconds, (size_t)n);
    p->mad_s = median_deviation(seconds, (size_t)n);
    return true;
}
