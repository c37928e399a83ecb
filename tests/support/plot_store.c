#include "tests/support/check.h"

#include "tests/support/plot_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPTS = 3, TOKENS = 24, MOST_PARAMS = 4 };

typedef struct Made {
    Store *store;
    int64_t run, attempt, model, datasets[2], prompts[2][PROMPTS];
    int points, change;
    const char *cpu;
    const char *temperature; // of a run over temperature; NULL: 0, and no axis
    const char *batch;       // of a run over batches; NULL: no axis
    double dearer;           // a step of guesses, for each sequence
} Made;

typedef struct Setting {
    const char *method, *params; // "W=5 N=3"
    double step_ms;
    int accepted; // of eight steps, together; -1: it fails, -2: it is skipped
} Setting;

static const Setting SETTINGS[] = {
    {"autoregressive", "", 2.0, 0},
    {"jacobi", "m=8", 2.2, 1},
    {"prompt-lookup", "draft=10", 2.1, -1},
    {"ouroboros", "gamma=12 beta=7 K=20", 2.2, 9},
    {"lookahead", "W=5 N=3 G=5 preset=none", 2.4, 3},
    {"lookahead", "W=10 N=3 G=5 preset=none", 2.6, 5},
    {"lookahead", "W=15 N=3 G=5 preset=none", 3.0, 6},
    {"lookahead", "W=5 N=5 G=5 preset=none", 2.5, 5},
    {"lookahead", "W=10 N=5 G=5 preset=none", 2.8, 7},
    {"lookahead", "W=15 N=5 G=5 preset=none", 3.3, 9},
    {"ngrammys", "k=1 w=2 strategy=mixed", 2.0, 3},
    {"ngrammys", "k=5 w=2 strategy=mixed", 2.2, 6},
    {"ngrammys", "k=10 w=2 strategy=mixed", 2.6, 8},
    {"ngrammys", "k=1 w=4 strategy=mixed", 2.1, 4},
    {"ngrammys", "k=5 w=4 strategy=mixed", 2.5, 10},
    {"ngrammys", "k=10 w=4 strategy=mixed", 0, -2},
    {"kangaroo", "exit_layer=1 gamma=6 eta=0.2", 2.6, 6},
    {"kangaroo", "exit_layer=2 gamma=6 eta=0.2", 2.5, 9},
    {"kangaroo", "exit_layer=3 gamma=6 eta=0.2", 2.9, 10},
    {"kangaroo", "exit_layer=1 gamma=6 eta=0.6", 2.3, 4},
    {"kangaroo", "exit_layer=2 gamma=6 eta=0.6", 2.2, 7},
    {"kangaroo", "exit_layer=3 gamma=6 eta=0.6", 2.6, 8},
};

static void must(bool ok, const Error *e) {
    if (!ok) fail_msg("%s", e->text);
}

// Points from now on are of it.
static void add_model(Made *m, const char *name, const char *hash, const char *dtype) {
    Error e = {0};
    StoreModel model = {.name = name,
                        .hash = hash,
                        .layers = 4,
                        .dtype = dtype,
                        .shape = "{\"width\":64,\"heads\":4,\"kv_heads\":2,\"head_dim\":16,"
                                 "\"mlp_width\":128,\"vocab\":500}",
                        .stand_in = "reference inflated to 500m"};
    must(store_model(m->store, &model, &m->model, &e), &e);
}

static void set_up(Made *m, const char *kind, const char *hash, const char *name) {
    Error e = {0};
    char *words[] = {"run", "demo.yaml", "--set", "name=it's"};
    StoreRun run = {.hash = hash,
                    .kind = kind,
                    .name = name,
                    .version = "0.1.0",
                    .config_file = "demo.yaml",
                    .config = "name: demo\ntables: [lookahead-table-3]\n# <b>&\n"};
    StoreEnvironment on = {.version = "0.1.0", .cpu = m->cpu, .cores = 2, .bandwidth = 4e9, .peak = 1e11};
    must(store_run(m->store, &run, &m->run, NULL, &e), &e);
    must(store_attempt(m->store, m->run, 4, words, &on, &m->attempt, &e), &e);
    add_model(m, "small", "11", NULL);
}

static void add_datasets(Made *m) {
    Error e = {0};
    static const char *const NAMES[2] = {"chat", PLOT_AWKWARD};
    for (int d = 0; d < 2; d++) {
        StoreDataset dataset = {.name = NAMES[d], .hash = "22"};
        must(store_dataset(m->store, &dataset, &m->datasets[d], &e), &e);
        for (int i = 0; i < PROMPTS; i++) {
            StorePrompt p = {.dataset = m->datasets[d], .number = i, .task = "writing"};
            must(store_prompt(m->store, &p, &m->prompts[d][i], &e), &e);
        }
    }
}

// "W=5 N=3" as parameters; the texts are cut out of `words`.
static int read_params(char *words, StoreParam *out) {
    int count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        *equals = 0;
        assert_true(count < MOST_PARAMS);
        out[count++] = (StoreParam){"method", word, equals + 1};
    }
    return count;
}

static int64_t add_point(Made *m, const Setting *s, int d, int64_t baseline) {
    char words[64], hash[32], label[96];
    StoreParam params[MOST_PARAMS + 2];
    int64_t id;
    Error e = {0};
    snprintf(words, sizeof words, "%s", s->params);
    snprintf(hash, sizeof hash, "point-%d", m->points);
    snprintf(label, sizeof label, "%s%s%.*s", s->method, *s->params ? " " : "",
             (int)(strstr(s->params, " preset") ? strstr(s->params, " preset") - s->params
                                                : (long)strlen(s->params)),
             s->params);
    if (m->batch) snprintf(label + strlen(label), sizeof label - strlen(label), " batch=%s", m->batch);
    StorePoint p = {.number = ++m->points,
                    .hash = hash,
                    .model = m->model,
                    .dataset = m->datasets[d],
                    .method = s->method,
                    .decoder = label,
                    .label = label,
                    .skipped = s->accepted == -2 ? "41 rows are more than the 32 of max_rows" : NULL,
                    .baseline = baseline,
                    .same_path = baseline,
                    .params = params,
                    .param_count = read_params(words, params)};
    if (m->temperature) {
        params[p.param_count++] = (StoreParam){"generation", "temperature", m->temperature};
        p.temperature = strtod(m->temperature, NULL);
    }
    if (m->batch) params[p.param_count++] = (StoreParam){"hardware", "batch", m->batch};
    must(store_point(m->store, m->run, &p, &id, &e), &e);
    return id;
}

static void add_sample(Made *m, const Setting *s, int64_t point, int d, int prompt) {
    StoreStep steps[TOKENS] = {{.rows = 0}};
    StoreSample x = {
        .point = point, .prompt = m->prompts[d][prompt], .attempt = m->attempt, .prompt_tokens = 20};
    StoreSource sources[TOKENS][2] = {{{NULL, 0, 0, 0}}};
    StoreDivergence divergence = {3, 17, 18, 0.001};
    uint8_t matches[TOKENS][2];
    Error e = {0};
    for (int i = 0; x.tokens < TOKENS; i++) {
        StoreStep *t = &steps[x.step_count++];
        t->accepted = (s->accepted * (i + 1) + prompt) / 8 - (s->accepted * i + prompt) / 8;
        t->emitted = t->accepted + 1;
        t->rows = t->asked = 1 + t->accepted;
        t->pool = -1;
        t->propose_s = s->step_ms * 5e-5 * (s->accepted > 0);
        t->forward_s = s->step_ms * 9e-4 * (1 + 0.02 * prompt + 0.1 * d);
        t->verify_s = t->observe_s = s->step_ms * 2e-5;
        t->device_s = -1;
        int context = i % 3 ? t->accepted : 0, bigram = i % 3 ? 0 : t->accepted;
        sources[i][0] = (StoreSource){"context", 4, context, context ? 1 + i % 4 : 0};
        sources[i][1] = (StoreSource){"bigram", 4, bigram, bigram ? 1 + i % 2 : 0};
        // A chain of ten: those accepted are right, the next is wrong, of the rest some are right.
        unsigned bits = ((1u << t->accepted) - 1) | (0x6cu + 0x11u * (unsigned)m->change)
                                                        << (t->accepted + 1);
        matches[i][0] = (uint8_t)bits, matches[i][1] = (uint8_t)(bits >> 8);
        if (strcmp(s->method, "jacobi") == 0 || strcmp(s->method, "kangaroo") == 0) {
            t->drafted = 10;
            t->matches = matches[i];
            t->match_bytes = 2;
        }
        if (strcmp(s->method, "lookahead") == 0) t->pool = 50, t->pool_hits = t->accepted ? 5 : 2;
        if (strcmp(s->method, "ngrammys") == 0) {
            t->sources = sources[i];
            t->source_count = 2;
        }
        x.tokens += t->emitted;
        x.decode_s += t->propose_s + t->forward_s + t->verify_s + t->observe_s + 1e-5;
    }
    x.prefill_s = 0.01;
    x.started = 1.7e9 + m->points + 100 * prompt;
    bool all = m->points % 11 == 3 || strcmp(s->method, "jacobi") == 0;
    x.flags = all                                 ? FLAG_PAUSED
              : prompt == 2 && m->points % 5 == 0 ? FLAG_LOAD
              : prompt == 1 && m->points == 7     ? FLAG_THROTTLED
                                                  : 0;
    x.divergence = strcmp(s->method, "ouroboros") == 0 && prompt == 1 ? &divergence : NULL;
    if (x.divergence) x.flags |= FLAG_DIVERGED;
    x.steps = steps;
    must(store_samples(m->store, &x, 1, &e), &e);
}

static void add_estimates(Made *m, const Setting *s, int64_t point) {
    Error e = {0};
    double S = 1 + s->accepted / 8.0, speedup = S * 2 / s->step_ms;
    StoreEstimate of_S = {"S", S, S * 0.97, S * 1.04, 0.02, 2000, 1};
    StoreEstimate of_speedup = {"speedup", speedup, speedup * 0.92, speedup * 1.05, 0.03, 2000, 1};
    must(store_estimate(m->store, point, &of_S, &e) && store_estimate(m->store, point, &of_speedup, &e), &e);
}

// Of dataset d; of `method` and the baseline only, where it is not NULL.
static void add_points(Made *m, int d, double slower, const char *method) {
    Error e = {0};
    int64_t baseline = 0;
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++) {
        Setting changed = SETTINGS[i], *s = &changed;
        if (method && i > 0 && strcmp(s->method, method) != 0) continue;
        s->step_ms *= slower * (1 + 0.1 * m->change);
        if (m->batch && i > 0) s->step_ms *= 1 + m->dearer * strtod(m->batch, NULL);
        if (s->accepted > 0) s->accepted += m->change;
        int64_t point = add_point(m, s, d, baseline);
        if (i == 0) baseline = point;
        if (s->accepted == -1)
            must(store_failure(m->store, m->attempt, point, 0, -1, "out of memory for a tree", &e), &e);
        if (s->accepted < 0) continue;
        for (int prompt = 0; prompt < PROMPTS; prompt++) add_sample(m, s, point, d, prompt);
        add_estimates(m, s, point);
    }
}

static void add_sweep(Made *m) {
    add_datasets(m);
    for (int d = 0; d < 2; d++) add_points(m, d, 1, NULL);
}

// Slower guesses, the more sequences share a step and the fewer bits a weight has.
static void add_batches(Made *m) {
    static const char *const BATCHES[] = {"1", "4", "16"};
    for (int coded = 0; coded < 2; coded++) {
        m->dearer = coded ? 0.15 : 0.05;
        add_model(m, coded ? "small in 4 bits" : "small", coded ? "33" : "11", coded ? "Q4" : NULL);
        for (int i = 0; i < 3; i++) {
            m->batch = BATCHES[i];
            add_points(m, 0, 1, "kangaroo");
        }
    }
    m->batch = NULL;
}

// Memory bound up to 24 rows, then bound by arithmetic.
static void add_surface(Made *m) {
    static const int K[] = {1, 2, 4, 8, 16}, W[] = {0, 1, 3, 7}, CONTEXTS[] = {25, 500};
    Error e = {0};
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < 5; i++)
            for (int j = 0; j < 4; j++) {
                int rows = K[i] * (W[j] + 1), hole = K[i] == 16 && W[j] == 7;
                double slowdown = 1 + 0.01 * (rows - 1) + (rows > 24 ? 0.04 * (rows - 24) : 0) +
                                  0.0002 * CONTEXTS[c] * (rows > 1) + 0.1 * m->change;
                StoreSurface s = {.attempt = m->attempt,
                                  .model = m->model,
                                  .kind = "step",
                                  .device = "cpu",
                                  .layout = "batch",
                                  .cache = "viewed",
                                  .k = K[i],
                                  .w = W[j],
                                  .b = 4,
                                  .rows = rows,
                                  .head_rows = rows,
                                  .context = CONTEXTS[c],
                                  .samples = 5};
                s.slowdown = slowdown;
                s.mean_s = s.median_s = slowdown * 2e-3;
                s.deviation_s = 1e-5;
                s.low_s = 0.99 * s.median_s;
                s.high_s = 1.02 * s.median_s;
                s.slowdown_low = 0.98 * slowdown;
                s.slowdown_high = 1.03 * slowdown;
                if (K[i] == 8 && W[j] == 7) s.flags = FLAG_LOAD, s.disturbed = 5; // all
                if (K[i] == 8 && W[j] == 3) s.flags = FLAG_LOAD, s.disturbed = 4;
                s.bytes = 7e6;
                s.operations = rows * 7e6;
                s.drift = CONTEXTS[c] == 500 ? 1.31 : 1.02;
                s.floor_s = rows > 25 ? rows * 7e-5 : 1.75e-3;
                if (!hole) must(store_surface(m->store, &s, 1, &e), &e);
            }
}

__asm__(".pushsection .rodata\n.globl plot_computed\nplot_computed:\n"
        ".incbin \"tests/fixtures/plots/computed.json\"\n.byte 0\n.popsection\n");

static bool is_over_batches(const Figure *f) {
    return strcmp(f->name, "batch") == 0 || strcmp(f->name, "ridge") == 0;
}

int64_t plot_store_run(const Figure *f) {
    if (strcmp(f->name, "temperature") == 0) return PLOT_TEMPERATURE;
    if (is_over_batches(f)) return PLOT_RIDGE;
    return f->kind == RUN_SURFACE ? PLOT_SURFACE : PLOT_SWEEP;
}

const char *plot_store_computed(const Figure *f) { return is_over_batches(f) ? NULL : plot_computed; }

void plot_store_make(const char *path, int change) {
    Error e = {0};
    Made m = {.change = change, .cpu = "made-up processor", .store = store_open(path, STORE_WRITE, NULL, &e)};
    must(m.store != NULL, &e);
    must(store_begin(m.store, &e), &e);
    set_up(&m, "sweep", "demo", "demo");
    add_sweep(&m);
    must(store_attempt_end(m.store, m.attempt, "done", &e), &e);
    set_up(&m, "surface", "grid", "grid");
    add_surface(&m);
    must(store_attempt_end(m.store, m.attempt, "done", &e), &e);
    set_up(&m, "sweep", "temperature", "temperature");
    static const char *const TEMPERATURES[] = {"0", "0.6", "1.2"};
    for (int i = 0; i < 3; i++) {
        m.temperature = TEMPERATURES[i];
        add_points(&m, 0, 1 + 0.2 * i, "kangaroo");
    }
    m.temperature = NULL;
    must(store_attempt_end(m.store, m.attempt, "done", &e), &e);
    int points = m.points;
    set_up(&m, "sweep", "ridge", "ridge");
    add_batches(&m);
    must(store_attempt_end(m.store, m.attempt, "done", &e), &e);
    m.points = points;
    // The same experiment on another machine.
    m.cpu = "slower processor";
    set_up(&m, "sweep", "demo-2", "demo");
    add_points(&m, 0, 1.5, "lookahead");
    must(store_attempt_end(m.store, m.attempt, "done", &e), &e);
    must(store_commit(m.store, &e), &e);
    store_close(m.store);
}
