#include "engine/train/optimizer.h"

#include "engine/base/memory.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 1 << 15 }; // numbers whose squares are summed together, whatever the threads

static const double PI = 3.14159265358979323846;

static size_t chunks_of(const Network *n) { return (n->parameters.total + CHUNK - 1) / CHUNK; }

bool optimizer_open(Optimizer *o, const OptimizerOptions *options, const Network *n, Error *e) {
    *o = (Optimizer){.options = *options};
    o->mean = mem_alloc(n->parameters.total, sizeof *o->mean);
    o->square = mem_alloc(n->parameters.total, sizeof *o->square);
    o->sums = mem_alloc(chunks_of(n), sizeof *o->sums);
    if (o->mean && o->square && o->sums) return true;
    optimizer_close(o);
    return error_system(e, "out of memory for the moments of %zu parameters", n->parameters.total);
}

void optimizer_close(Optimizer *o) {
    mem_free(o->mean);
    mem_free(o->square);
    mem_free(o->sums);
    *o = (Optimizer){0};
}

double optimizer_rate(const OptimizerOptions *o, int step) {
    if (step <= o->warmup) return o->rate * step / o->warmup;
    double done = (double)(step - o->warmup) / (o->steps > o->warmup ? o->steps - o->warmup : 1);
    return o->last_rate + (o->rate - o->last_rate) * (1 + cos(PI * done)) / 2;
}

typedef struct Update {
    Optimizer *o;
    Network *n;
    AdamStep step;
} Update;

static void sum_chunks(void *argument, int thread, int threads) {
    const Update *u = argument;
    size_t total = u->n->parameters.total;
    for (size_t i = (size_t)thread; i < chunks_of(u->n); i += (size_t)threads) {
        size_t at = i * CHUNK;
        u->o->sums[i] =
            u->n->kernels->sum_of_squares(u->n->gradients + at, total - at < CHUNK ? total - at : CHUNK);
    }
}

static double gradient_length(Update *u) {
    double sum = 0;
    pool_run(u->n->pool, sum_chunks, u);
    for (size_t i = 0; i < chunks_of(u->n); i++) sum += u->o->sums[i];
    return sqrt(sum);
}

// Numbers [from, to) of the array, all of one parameter.
static void move(const Update *u, bool decays, size_t from, size_t to) {
    AdamStep s = u->step;
    float *gradient = u->n->gradients + from;
    if (!decays) s.decay = 0;
    u->n->kernels->adamw(&s, u->n->weights + from, gradient, u->o->mean + from, u->o->square + from,
                         to - from);
    memset(gradient, 0, (to - from) * sizeof *gradient);
}

static void move_share(void *argument, int thread, int threads) {
    const Update *u = argument;
    const Parameters *p = &u->n->parameters;
    size_t first = p->total * (size_t)thread / (size_t)threads;
    size_t last = p->total * ((size_t)thread + 1) / (size_t)threads;
    for (int i = 0; i < p->count; i++) {
        size_t from = p->list[i].at, to = from + parameter_size(&p->list[i]);
        if (from < first) from = first;
        if (to > last) to = last;
        if (from < to) move(u, !p->list[i].vector, from, to);
    }
}

double optimizer_step(Optimizer *o, Network *n, int step) {
    const OptimizerOptions *c = &o->options;
    Update u = {.o = o, .n = n};
    double length = gradient_length(&u);
    u.step = (AdamStep){.rate = (float)optimizer_rate(c, step),
                        .decay = (float)c->weight_decay,
                        .beta1 = (float)c->beta1,
                        .beta2 = (float)c->beta2,
                        .epsilon = (float)c->epsilon,
                        .unbias1 = (float)(1 / (1 - pow(c->beta1, step))),
                        .unbias2 = (float)(1 / (1 - pow(c->beta2, step))),
                        .gradient_scale = c->clip > 0 && length > c->clip ? (float)(c->clip / length) : 1.0f};
    pool_run(n->pool, move_share, &u);
    return length;
}
