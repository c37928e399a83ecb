// The roofline of a step, product by product. All times are in seconds, and every one is above 0 for a
// machine that passes hardware_check.
#include "simulate/hardware.h"

#include <assert.h>
#include <gsl/gsl_randist.h>
#include <math.h>

void hardware_floor(Hardware *h) {
    h->read_share = h->compute_share = h->cache_share = h->attention_share = 1;
    h->row_passes = 2; // read and written once
    h->overlap = 16;   // all but the longer of two hides
    h->step_s = 0;
}

bool hardware_is_floor(const Hardware *h) {
    Hardware floor = *h;
    hardware_floor(&floor);
    return h->read_share >= floor.read_share && h->compute_share >= floor.compute_share &&
           h->cache_share >= floor.cache_share && h->attention_share >= floor.attention_share &&
           h->row_passes <= floor.row_passes && h->overlap >= floor.overlap && h->step_s <= floor.step_s;
}

bool hardware_check(const Hardware *h, Error *e) {
    const struct {
        const char *name;
        double value, low;
    } ROWS[] = {
        {"bytes_per_s", h->bytes_per_s, 1},
        {"operations_per_s", h->operations_per_s, 1},
        {"memory_bytes", h->memory_bytes, 1},
        {"processors", h->processors, 1},
        {"tile_rows", h->tile_rows, 1},
        {"tile_columns", h->tile_columns, 1},
        {"least_rows", h->least_rows, 1},
        {"launch_s", h->launch_s, 0},
        {"launches", h->launches, 0},
        {"read_share", h->read_share, 1e-9},
        {"compute_share", h->compute_share, 1e-9},
        {"cache_share", h->cache_share, 1e-9},
        {"attention_share", h->attention_share, 1e-9},
        {"row_passes", h->row_passes, 0},
        {"overlap", h->overlap, 1},
        {"step_s", h->step_s, 0},
        {"most_rows", h->most_rows, 0},
        {"head_width", h->head_width, 0},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (!(ROWS[i].value >= ROWS[i].low) || !isfinite(ROWS[i].value))
            return error_input(e, "hardware '%s': %s is %g, must be at least %g", h->name, ROWS[i].name,
                               ROWS[i].value, ROWS[i].low);
    return h->least_rows <= h->tile_rows ||
           error_input(e, "hardware '%s': least_rows is %d, above tile_rows, %d", h->name, h->least_rows,
                       h->tile_rows);
}

StepPlan step_chain(int tokens, int context) {
    double n = tokens;
    return (StepPlan){tokens, tokens, context, 1, n * context + n * (n + 1) / 2, false, 0};
}

StepPlan step_tree(int k, int w, int context) {
    double chain = (double)w * (context + 1) + 0.5 * w * (w + 1.0);
    return (StepPlan){1 + k * w, 1 + k * w, context, 1, context + 1 + k * chain, false, 0};
}

StepPlan step_batch(int k, int w, int context) {
    StepPlan one = step_chain(w + 1, context);
    return (StepPlan){k * one.rows, k * one.rows, context, k, k * one.seen, false, 0};
}

StepPlan step_shared(StepPlan one, int sequences) {
    one.rows *= sequences;
    one.read *= sequences;
    one.sequences *= sequences;
    one.seen *= sequences;
    return one;
}

// Codes take fewer bytes, and as many operations: their products are of 16-bit numbers.
static double code_bytes(int bits, int group) { return bits / 8.0 + 2.0 / group; }

void step_model_code(StepModel *m, int bits, int group) {
    assert(bits == 16 || bits == 8 || bits == 4);
    if (bits == 16) return;
    m->plain_bytes = m->weight_bytes;
    m->weight_bytes = code_bytes(bits, group);
    m->head_bytes = code_bytes(8, group);
}

static double head_bytes(const StepModel *m) { return m->head_bytes > 0 ? m->head_bytes : m->weight_bytes; }
static double plain_bytes(const StepModel *m) {
    return m->plain_bytes > 0 ? m->plain_bytes : m->weight_bytes;
}

// Both at once, as far as the machine lets them.
static double together(const Hardware *h, double a, double b) {
    double longer = fmax(a, b), shorter = fmin(a, b);
    return longer > 0 ? longer * pow(1 + pow(shorter / longer, h->overlap), 1 / h->overlap) : 0;
}

static double read_time(const Hardware *h, double bytes) { return bytes / (h->bytes_per_s * h->read_share); }

// The tile that fits so few rows best: a power of two, as kernels have them.
static int rows_of_tile(const Hardware *h, int rows) {
    int tile = h->least_rows;
    while (tile < rows && tile < h->tile_rows) tile *= 2;
    return tile < h->tile_rows ? tile : h->tile_rows;
}

static double waves_of(const Hardware *h, double tiles) {
    return tiles >= h->processors ? ceil(tiles / h->processors) : 1 / floor(h->processors / tiles);
}

double hardware_waves(const Hardware *h, int rows, int columns) {
    int tile_rows = rows_of_tile(h, rows);
    return waves_of(h, ceil((double)rows / tile_rows) * ceil((double)columns / h->tile_columns));
}

// How the rows of a step meet a matrix of weights, or as many matrices as there are experts.
typedef struct Meeting {
    double matrices;      // read, each once
    double rows;          // multiplied, all matrices together
    double tiles, height; // tiles one below the other, and the rows of one, empty ones too
} Meeting;

static Meeting meet_one(const Hardware *h, int rows) {
    int height = rows_of_tile(h, rows);
    return (Meeting){1, rows, ceil((double)rows / height), height};
}

double experts_touched(const StepExperts *x, int rows) {
    return x->count * -expm1(rows * log1p(-(double)x->chosen / x->count));
}

// An expert gets some of the rows, a number with a binomial distribution, or, of counted ones, each as many.
static Meeting meet_experts(const Hardware *h, const StepExperts *x, const StepPlan *s) {
    double all_rows = (double)s->rows * x->chosen, filled = 0;
    if (s->experts >= 1) {
        Meeting one = meet_one(h, (int)ceil(all_rows / s->experts));
        return (Meeting){s->experts, all_rows, s->experts * one.tiles, one.height};
    }
    Meeting all = {experts_touched(x, s->rows), all_rows, 0, 0};
    for (int n = 1; n <= s->rows; n++) {
        double experts =
            x->count * gsl_ran_binomial_pdf((unsigned)n, (double)x->chosen / x->count, (unsigned)s->rows);
        Meeting one = meet_one(h, n);
        all.tiles += experts * one.tiles;
        filled += experts * one.tiles * one.height;
    }
    all.height = filled / all.tiles;
    return all;
}

static double product(const Hardware *h, const Meeting *m, int inner, int columns, double weight_bytes) {
    if (columns == 0) return 0;
    double bytes = m->matrices * weight_bytes * inner * columns + 2 * m->rows * ((double)inner + columns);
    double tile = 2 * m->height * h->tile_columns * inner;
    double rate = h->operations_per_s * h->compute_share / h->processors;
    double waves = waves_of(h, m->tiles * ceil((double)columns / h->tile_columns));
    return together(h, read_time(h, bytes), waves * tile / rate);
}

double hardware_product(const Hardware *h, int rows, int inner, int columns, double weight_bytes) {
    Meeting one = meet_one(h, rows);
    return product(h, &one, inner, columns, weight_bytes);
}

static double visible(int window, int context) { return window && context > window ? window : context; }

static double attention(const Hardware *h, const StepModel *m, int window, const StepPlan *s) {
    double seen = window ? fmin(s->seen, (double)window * s->rows) : s->seen;
    double keys = visible(window, s->context) * s->sequences + s->rows;
    double bytes = 2 * keys * m->kv_width * m->cache_bytes;
    double columns = visible(window, s->context) + (double)s->rows / s->sequences;
    double scores = m->plain ? read_time(h, m->score_bytes * s->rows * columns) : 0;
    double width = h->head_width && m->heads ? (double)h->head_width * m->heads : m->q_width;
    return scores + together(h, read_time(h, bytes) / h->cache_share,
                             4 * width * seen / (h->operations_per_s * h->attention_share));
}

// Read once, written once a sequence, before attention reads it.
static double copy(const Hardware *h, const StepModel *m, int window, const StepPlan *s) {
    if (!s->copied || s->sequences < 2) return 0;
    double bytes = 2 * visible(window, s->context) * m->kv_width * m->cache_bytes;
    return read_time(h, bytes * (1 + s->sequences));
}

// The average over the model's layers of a number that depends on their windows.
static double of_windows(double (*of)(const Hardware *, const StepModel *, int, const StepPlan *),
                         const Hardware *h, const StepModel *m, const StepPlan *s) {
    double most = of(h, m, m->window, s);
    return m->local_share > 0 ? most + m->local_share * (of(h, m, m->local_window, s) - most) : most;
}

static double mlp(const Hardware *h, const StepModel *m, const Meeting *met, int width) {
    return product(h, met, m->width, (m->ungated ? 1 : 2) * width, m->weight_bytes) +
           product(h, met, width, width ? m->width : 0, m->weight_bytes);
}

// The product that scores the experts, the experts, and the MLP beside them.
static double sparse_mlp(const Hardware *h, const StepModel *m, const Meeting *one, const StepPlan *s) {
    Meeting experts = meet_experts(h, &m->experts, s);
    return product(h, one, m->width, m->experts.count, plain_bytes(m)) +
           mlp(h, m, &experts, m->experts.width) + mlp(h, m, one, m->experts.shared);
}

static double layer_products(const Hardware *h, const StepModel *m, const StepPlan *s) {
    int inner = m->attention_width ? m->attention_width : m->width;
    double sparse = m->experts.count ? m->experts.share : 0;
    Meeting one = meet_one(h, s->rows);
    return product(h, &one, m->fc_width, m->fc_width ? m->width : 0, m->weight_bytes) +
           product(h, &one, inner, m->q_width + 2 * m->kv_width, m->weight_bytes) +
           product(h, &one, m->q_width, m->width, m->weight_bytes) +
           (sparse < 1 ? (1 - sparse) * mlp(h, m, &one, m->mlp_width) : 0) +
           (sparse > 0 ? sparse * sparse_mlp(h, m, &one, s) : 0);
}

// Widths of the MLPs that a row runs, on average over layers.
static double mlp_width(const StepModel *m) {
    const StepExperts *x = &m->experts;
    if (!x->count) return m->mlp_width;
    return (1 - x->share) * m->mlp_width + x->share * ((double)x->chosen * x->width + x->shared);
}

StepPrice hardware_price(const Hardware *h, const StepModel *m, const StepPlan *s) {
    StepPrice p = {0};
    assert(hardware_check(h, NULL) && s->rows > 0);
    p.products = m->layers * layer_products(h, m, s);
    if (s->read > 0) p.products += hardware_product(h, s->read, m->width, m->vocab, head_bytes(m));
    p.attention = m->layers * of_windows(attention, h, m, s);
    p.copy = m->layers * of_windows(copy, h, m, s);
    p.rows = read_time(h, 4.0 * m->layers * s->rows * (m->width + mlp_width(m)) * h->row_passes);
    p.launches = h->step_s + h->launch_s * ((double)h->launches * m->layers + 1);
    p.total = p.products + p.attention + p.copy + p.rows + p.launches;
    return p;
}

// --- recorded passes ------------------------------------------------------------------------------------

// The price of a step of the model with only some of its layers, and the head over `read` rows.
static double price_cut(const Hardware *h, const StepModel *m, int layers, StepPlan plan, int read) {
    StepModel cut = *m;
    cut.layers = layers;
    plan.read = read;
    return hardware_price(h, &cut, &plan).total;
}

static double price_layers(const Hardware *h, const StepModel *m, double layers, const StepPlan *plan) {
    double besides = price_cut(h, m, 0, *plan, 0);
    return besides + layers * (price_cut(h, m, 1, *plan, 0) - besides);
}

double recorded_price(const Hardware *h, const StepModel *m, const RecordedPass *pass) {
    int sequences = pass->sequences > 1 ? pass->sequences : 1;
    StepPlan plan = {.rows = pass->rows, .context = pass->context, .sequences = 1};
    plan.seen = pass->rows * (pass->context + 1.0);
    plan = step_shared(plan, sequences);
    double count = pass->count / sequences;
    if (pass->head) return count * (price_cut(h, m, 0, plan, plan.rows) - price_cut(h, m, 0, plan, 0));
    return count * price_layers(h, m, pass->layers, &plan);
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
    double inner = m->attention_width ? m->attention_width : m->width, products = m->ungated ? 2 : 3;
    const StepExperts *x = &m->experts;
    double mlps = products * m->mlp_width, sparse = x->count ? x->share : 0;
    mlps += sparse * (products * ((double)x->count * x->width + x->shared) - mlps);
    double layer = inner * (m->q_width + 2.0 * m->kv_width) + (double)m->q_width * m->width +
                   (mlps + m->fc_width) * m->width;
    double routers = sparse * x->count * m->width;
    return m->layers * (m->weight_bytes * layer + plain_bytes(m) * routers) +
           head_bytes(m) * m->vocab * m->width;
}
