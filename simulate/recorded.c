#include "simulate/recorded.h"

// A step of a model cut down to some of its layers, and the head over `read` rows.
static double price(const Hardware *h, const StepModel *m, int layers, StepPlan plan, int read) {
    StepModel cut = *m;
    cut.layers = layers;
    plan.read = read;
    return hardware_price(h, &cut, &plan).total;
}

static double price_layers(const Hardware *h, const StepModel *m, double layers, const StepPlan *plan) {
    double besides = price(h, m, 0, *plan, 0);
    return besides + layers * (price(h, m, 1, *plan, 0) - besides);
}

double recorded_price(const Hardware *h, const StepModel *m, const RecordedPass *pass) {
    StepPlan plan = {.rows = pass->rows, .context = pass->context, .sequences = 1};
    plan.seen = pass->rows * (pass->context + 1.0);
    if (pass->head) return pass->count * (price(h, m, 0, plan, pass->rows) - price(h, m, 0, plan, 0));
    return pass->count * price_layers(h, m, pass->layers, &plan);
}

double recorded_prefill(const Hardware *h, const StepModel *m, int tokens) {
    if (tokens <= 0) return 0;
    StepPlan plan = step_chain(tokens, 0);
    return price_layers(h, m, m->layers, &plan);
}

double recorded_commit(const Hardware *h, const StepModel *m, double tokens, double steps) {
    double bytes = 2.0 * 2 * m->layers * m->kv_width * m->cache_bytes * tokens;
    return bytes / (h->bytes_per_s * h->read_share) + steps * h->launch_s;
}

double step_model_bytes(const StepModel *m) {
    double layer = (double)m->width * (m->q_width + 2.0 * m->kv_width) + (double)m->q_width * m->width +
                   3.0 * m->width * m->mlp_width;
    return m->weight_bytes * (m->layers * layer + (double)m->vocab * m->width);
}
