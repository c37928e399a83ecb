// A sample prepares the step up to its part, and times the part alone. What was committed is taken back.
//
// A GPU only queues the work that it is given; it is known to have finished when a hidden state read after it
// has arrived. So each timed part begins and ends with such a read. On a GPU that adds the copying of one
// row, some microseconds, to every part.
#include "harness/machine/parts.h"

#include "engine/base/memory.h"

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

// A chain below the root, of random tokens; gives its last node.
static int build_chain(Timing *t, int rows) {
    Session *s = t->s;
    uint32_t tokens = (uint32_t)s->shape.real_vocab;
    session_begin_step(s, false, LAYOUT_TREE);
    int node = tree_root(&s->tree, (int)random_below(&t->random, tokens));
    for (int i = 1; i < rows; i++) node = tree_propose(&s->tree, node, (int)random_below(&t->random, tokens));
    return node;
}

static bool time_layers(Timing *t, double *seconds, Error *e) {
    build_chain(t, t->p->rows);
    if (t->p->a > 0 && !(session_run(t->s, t->p->a, e) && settle(t, e))) return false;
    double start = clock_now(t->o->clock);
    bool ok = session_run(t->s, t->p->b, e) && settle(t, e);
    *seconds = clock_now(t->o->clock) - start;
    return ok;
}

// What the head says is waited for.
static bool time_head(Timing *t, double *seconds, Error *e) {
    build_chain(t, t->p->rows);
    if (!session_run(t->s, t->s->shape.layers, e) || !settle(t, e)) return false;
    double start = clock_now(t->o->clock);
    bool ok = session_read(t->s, HEAD_ARGMAX, e);
    *seconds = clock_now(t->o->clock) - start;
    return ok;
}

static bool time_prefill(Timing *t, double *seconds, Error *e) {
    int tokens[TREE_MAX_NODES];
    for (int i = 0; i < t->p->rows; i++)
        tokens[i] = (int)random_below(&t->random, (uint32_t)t->s->shape.real_vocab);
    double start = clock_now(t->o->clock);
    bool ok = session_prefill(t->s, tokens, t->p->rows, 0, 0, NULL, e) && settle(t, e);
    *seconds = clock_now(t->o->clock) - start;
    return ok && session_truncate(t->s, t->p->context, e);
}

static bool time_commit(Timing *t, double *seconds, Error *e) {
    int node = build_chain(t, t->p->rows);
    if (!session_run(t->s, t->s->shape.layers, e) || !session_read(t->s, HEAD_ARGMAX, e)) return false;
    double start = clock_now(t->o->clock);
    bool ok = session_commit(t->s, node, t->p->rows, e) && settle(t, e);
    *seconds = clock_now(t->o->clock) - start;
    return ok && session_truncate(t->s, t->p->context, e);
}

static bool time_host(Timing *t, double *seconds, Error *e) {
    (void)e;
    double start = clock_now(t->o->clock);
    build_chain(t, t->p->rows);
    *seconds = clock_now(t->o->clock) - start;
    return true;
}

typedef bool (*TimePart)(Timing *t, double *seconds, Error *e);
static const TimePart TIMES[PART_KINDS] = {time_layers, time_head, time_prefill, time_commit, time_host};

static bool take_sample(void *state, BenchSample *out, Error *e) {
    Timing *t = state;
    return bench_set_context(t->s, t->p->context, &t->random, e) && TIMES[t->p->kind](t, &out->step, e);
}

bool part_time(Session *s, const BenchOptions *o, PartPoint *p, Error *e) {
    BenchSample samples[BENCH_SAMPLES];
    Timing t = {s, o, p, {.seed = o->seed, .stream = STREAM_BENCH}, NULL};
    t.row = mem_alloc((size_t)s->shape.width, sizeof *t.row);
    if (!t.row) return error_system(e, "out of memory for a row of %d numbers", s->shape.width);
    bool ok = bench_take(o, take_sample, &t, samples, &p->time, e);
    mem_free(t.row);
    return ok;
}
