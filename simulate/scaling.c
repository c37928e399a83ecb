// Each device's step is priced by hardware_price on its share of the work; messages of the link are added.
// The device with the most work sets the time.
#include "simulate/scaling.h"

#include <assert.h>
#include <math.h>

static int least(int a, int b) { return a < b ? a : b; }

static int share(int count, int devices) { return (count + devices - 1) / devices; }

// The first of the rank's items, when `count` items are dealt in equal shares.
static int begin(int count, int devices, int rank) {
    return (int)fmin((double)share(count, devices) * rank, count);
}

int scaling_rows(const LookaheadStep *s, int devices, int rank) {
    assert(devices >= 1 && rank >= 0 && rank < devices);
    int first = begin(s->W, devices, rank), last = begin(s->W, devices, rank + 1);
    int guesses = begin(s->G, devices, rank + 1) - begin(s->G, devices, rank);
    int window = last > first ? last - 1 + (last - first) * (s->N - 2) : 0;
    return 1 + window + guesses * (s->N - 1);
}

bool link_check(const Link *link, Error *e) {
    if (!(link->bytes_per_s > 0) || !isfinite(link->bytes_per_s))
        return error_input(e, "link: %g bytes/s, must be above 0", link->bytes_per_s);
    return (link->latency_s >= 0 && isfinite(link->latency_s)) ||
           error_input(e, "link: a latency of %g s, must be 0 or more", link->latency_s);
}

static double price(const Hardware *h, const StepModel *m, int rows, int context) {
    StepPlan plan = {.rows = rows, .read = rows, .context = context, .sequences = 1};
    plan.seen = rows * (context + 1.0);
    return hardware_price(h, m, &plan).total;
}

static double message(const Link *link, double bytes) { return link->latency_s + bytes / link->bytes_per_s; }

// Everybody learns what everybody has, by doubling: `bytes` in all.
static double exchange(const Link *link, int devices, double bytes) {
    return devices > 1 ? ceil(log2(devices)) * link->latency_s + bytes / link->bytes_per_s : 0;
}

double scaling_lookahead(const Hardware *h, const StepModel *m, const LookaheadStep *s, int devices,
                         const Link *link) {
    int most = 0;
    devices = least(devices, s->W > s->G ? s->W : s->G);
    for (int rank = 0; rank < devices; rank++) {
        int rows = scaling_rows(s, devices, rank);
        most = rows > most ? rows : most;
    }
    // A token is four bytes; each column and each n-gram has N - 1 at most.
    return price(h, m, most, s->context) + exchange(link, devices, 4.0 * (s->W + s->G) * (s->N - 1));
}

double scaling_tensor(const Hardware *h, const StepModel *m, const LookaheadStep *s, int devices,
                      const Link *link) {
    StepModel part = *m;
    int rows = scaling_rows(s, 1, 0);
    devices = least(devices, m->kv_width);
    part.q_width = share(m->q_width, devices);
    part.kv_width = share(m->kv_width, devices);
    part.mlp_width = share(m->mlp_width, devices);
    part.experts.width = share(m->experts.width, devices);
    part.experts.shared = share(m->experts.shared, devices);
    part.vocab = share(m->vocab, devices);
    part.score_bytes = m->score_bytes / devices;
    double ring = devices > 1 ? 2.0 * (devices - 1) * message(link, 2.0 * rows * m->width / devices) : 0;
    double sums = 2.0 * m->layers * ring;
    // The best token of each row and how good it is: eight bytes.
    return price(h, &part, rows, s->context) + sums + exchange(link, devices, 8.0 * rows * devices);
}

double scaling_pipeline(const Hardware *h, const StepModel *m, const LookaheadStep *s, int devices,
                        const Link *link) {
    int rows = scaling_rows(s, 1, 0);
    devices = least(devices, m->layers);
    // Each device begins a step of its own; the last hands the tokens back to the first.
    StepModel none = *m;
    none.layers = none.vocab = 0;
    double hops = (devices - 1) * (message(link, 2.0 * rows * m->width) + price(h, &none, rows, s->context));
    return price(h, m, rows, s->context) + hops + (devices > 1 ? message(link, 4.0 * rows) : 0);
}
