#include "tests/support/check.h"

#include "tests/support/filled_store.h"

#include "engine/base/random.h"
#include "results/rows.h"

#include <stdio.h>
#include <string.h>

enum { LAYERS = 4, CHAIN = 8, ON_DEVICE = 2 }; // ON_DEVICE: the point that a device measured

static bool add_points(FilledStore *f, Error *e) {
    for (int i = 0; i < f->point_count; i++) {
        char hash[32], decoder[64], k[16];
        snprintf(hash, sizeof hash, "point-%d", i);
        snprintf(k, sizeof k, "%d", i);
        snprintf(decoder, sizeof decoder, i ? "ngrammys:k=%d" : "autoregressive", i);
        StoreParam params[] = {
            {"method", "k", k}, {"generation", "temperature", "0.0"}, {"hardware", "device", "cpu"}};
        StorePoint p = {.number = i + 1,
                        .hash = hash,
                        .model = f->model,
                        .dataset = f->dataset,
                        .method = i ? "ngrammys" : "autoregressive",
                        .decoder = decoder,
                        .label = decoder,
                        .baseline = i ? f->points[0] : 0,
                        .same_path = i ? f->points[0] : 0,
                        .params = i ? params : params + 1,
                        .param_count = i ? 3 : 2};
        if (!store_point(f->store, f->run, &p, &f->points[i], e)) return false;
    }
    return true;
}

static bool add_prompts(FilledStore *f, Error *e) {
    for (int i = 0; i < f->prompt_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d", 81 + i / 2);
        StorePrompt p = {.dataset = f->dataset, .number = i / 2, .turn = i % 2, .name = name};
        p.task = i / 2 % 2 ? "qa" : "writing";
        if (!store_prompt(f->store, &p, &f->prompts[i], e)) return false;
    }
    return true;
}

static bool set_up(FilledStore *f, Error *e) {
    char *words[] = {"outpace", "run", "a.yaml"};
    StoreContent contents[] = {{"weights", "small", "11", "models/small"}, {"dataset", "chat", "22", NULL}};
    StoreRun run = {.hash = "run", .kind = "sweep", .name = "filled", .config = "a: 1\n", .version = "0.1.0"};
    run.contents = contents;
    run.content_count = 2;
    StoreEnvironment on = {.version = "0.1.0", .cpu = "made up", .cores = 2, .memory = 1 << 30};
    StoreModel model = {
        .name = "small", .hash = "11", .layers = LAYERS, .dtype = "bf16", .stand_in = "for 7B"};
    StoreDataset dataset = {.name = "chat", .hash = "22"};
    return store_run(f->store, &run, &f->run, NULL, e) &&
           store_attempt(f->store, f->run, 3, words, &on, &f->attempt, e) &&
           store_model(f->store, &model, &f->model, e) && store_dataset(f->store, &dataset, &f->dataset, e) &&
           add_points(f, e) && add_prompts(f, e);
}

bool filled_open(FilledStore *f, const char *path, const StoreOptions *options, int points, int prompts,
                 Error *e) {
    *f = (FilledStore){.point_count = points, .prompt_count = prompts, .steps = 10};
    if (!(f->store = store_open(path, STORE_WRITE, options, e))) return false;
    bool ok = store_begin(f->store, e);
    if (ok && set_up(f, e)) ok = store_commit(f->store, e);
    else {
        store_rollback(f->store);
        ok = false;
    }
    if (!ok) filled_close(f);
    return ok;
}

void filled_close(FilledStore *f) {
    store_close(f->store);
    f->store = NULL;
}

// --- samples ---------------------------------------------------------------------------------------------

typedef struct {
    StoreStep steps[FILLED_STEPS];
    StorePass passes[FILLED_STEPS][3];
    StoreSource sources[FILLED_STEPS][2];
    uint8_t matches[FILLED_STEPS];
    int ids[FILLED_STEPS * (CHAIN + 1)];
} Made;

static double some_s(Random *r, double most) { return most * random_uniform(r); }

static void make_drafted(Made *m, int i, int k, Random *r) {
    StoreStep *t = &m->steps[i];
    t->kind = i < 2 ? STORE_FILLING : STORE_STEADY;
    t->rows = t->asked = 1 + k * CHAIN;
    t->depth = t->drafted = CHAIN;
    t->candidates = k * CHAIN;
    t->accepted = (int)random_below(r, 4);
    t->tried = t->accepted + 1;
    t->pool = 100;
    m->matches[i] = (uint8_t)((1 << t->accepted) - 1);
    t->matches = &m->matches[i];
    t->match_bytes = 1;
    m->sources[i][0] = (StoreSource){"context", k, t->accepted / 2, t->accepted / 2 > 0};
    m->sources[i][1] = (StoreSource){"bigram", 1, t->accepted, t->accepted > 0};
    t->sources = m->sources[i];
    t->source_count = 2;
    // Every other step was run in two halves.
    if (i % 2) {
        m->passes[i][0] = (StorePass){ROLE_TARGET, 0, 2, t->rows, t->context, 1};
        m->passes[i][1] = (StorePass){ROLE_TARGET, 2, LAYERS, t->rows, t->context, 1};
        m->passes[i][2] = (StorePass){ROLE_TARGET, LAYERS, LAYERS, t->rows, t->context, 1};
        t->pass_count = 3;
    }
}

static void make_step(Made *m, int i, int point, int context, Random *r) {
    StoreStep *t = &m->steps[i];
    *t = (StoreStep){.context = context, .rows = 1, .asked = 1, .pool = -1, .device_s = -1, .pass_count = 2};
    if (point) make_drafted(m, i, point, r);
    if (t->pass_count == 2) {
        m->passes[i][0] = (StorePass){ROLE_TARGET, 0, LAYERS, t->rows, context, 1};
        m->passes[i][1] = (StorePass){ROLE_TARGET, LAYERS, LAYERS, t->rows, context, 1};
    }
    t->passes = m->passes[i];
    t->emitted = t->accepted + 1;
    t->propose_s = some_s(r, 1e-5);
    t->forward_s = some_s(r, 1e-2);
    t->verify_s = some_s(r, 1e-6);
    t->observe_s = some_s(r, 1e-6);
    if (point == ON_DEVICE) t->device_s = 0.9 * t->forward_s;
}

static bool make_sample(FilledStore *f, Made *m, int point, int pass, int prompt, Error *e) {
    Random r = {.seed = 1, .stream = STREAM_TEST};
    r.counter = (((uint64_t)point << 20) + ((uint64_t)pass << 10) + (uint64_t)prompt) << 20;
    StoreSample x = {
        .point = f->points[point], .prompt = f->prompts[prompt], .attempt = f->attempt, .pass = pass};
    x.step_count = f->steps;
    x.prompt_tokens = 20 + prompt;
    for (int i = 0; i < x.step_count; i++) {
        make_step(m, i, point, x.prompt_tokens - 1 + x.tokens, &r);
        x.tokens += m->steps[i].emitted;
        x.decode_s += m->steps[i].forward_s + m->steps[i].propose_s;
    }
    x.device_head_s = 0.2 * x.decode_s;
    x.device_commit_s = 0.01 * x.decode_s;
    x.prefill_s = some_s(&r, 0.1);
    x.prefill_tokens = x.prefill_steps = 1;
    x.steps = m->steps;
    x.position = (point + prompt) % f->point_count;
    x.started = 1.7e9 + prompt;
    for (int i = 0; i < x.tokens; i++) m->ids[i] = (i * 7 + prompt) % 500;
    Text pieces = {0};
    for (int i = 0; i < x.tokens; i++) text_puts(&pieces, i ? ",\"a\"" : "[\"a\"");
    text_puts(&pieces, x.tokens ? "]" : "[]");
    StoreOutput output = {m->ids, x.tokens, "some \"text\"", text_get(&pieces), 11, 0.25, false};
    StoreDivergence divergence = {3, 17, 18, 0.001};
    x.output = &output;
    if (point == 1 && prompt == 1) x.divergence = &divergence;
    bool ok = store_samples(f->store, &x, 1, e);
    text_release(&pieces);
    return ok;
}

bool filled_add(FilledStore *f, int point, int pass, int prompt, Error *e) {
    bool done;
    Made *m = &(Made){.matches = {0}};
    if (!store_done(f->store, f->points[point], pass, f->prompts[prompt], &done, e)) return false;
    return done || make_sample(f, m, point, pass, prompt, e);
}

bool filled_add_all(FilledStore *f, int passes, Error *e) {
    for (int pass = 0; pass < passes; pass++)
        for (int prompt = 0; prompt < f->prompt_count; prompt++)
            for (int point = 0; point < f->point_count; point++)
                if (!filled_add(f, point, pass, prompt, e)) return false;
    return true;
}

// --- a store's content -----------------------------------------------------------------------------------

#define SAMPLE "run.hash, point.hash, sample.pass, prompt.number, turn"
#define FROM                                                                                                \
    " FROM sample JOIN point ON point.id = point_id JOIN run ON run.id = run_id JOIN prompt ON prompt.id =" \
    " sample.prompt_id "

static const char *const DUMPS[] = {
    "SELECT hash, kind, name, config FROM run ORDER BY hash",
    "SELECT run.hash, content.kind, content.name, content.hash FROM content JOIN run ON run.id = run_id "
    "ORDER BY 1, 2, 3",
    "SELECT run.hash, point.hash, section, point_param.name, value FROM point_param JOIN point ON point.id = "
    "point_id"
    " JOIN run ON run.id = run_id ORDER BY 1, 2, 3, 4",
    "SELECT run.hash, p.hash, b.hash, s.hash, model.name, dataset.name FROM point AS p JOIN run ON run.id = "
    "p.run_id"
    " LEFT JOIN point AS b ON b.id = p.baseline_id LEFT JOIN point AS s ON s.id = p.same_path_id JOIN model "
    "ON"
    " model.id = p.model_id JOIN dataset ON dataset.id = p.dataset_id ORDER BY 1, 2",
    "SELECT " SAMPLE
    ", position, started, flags, prompt_tokens, sample.tokens, steps, prefill_tokens, rows, asked, drafted,"
    " accepted, tried, prefill_ns, decode_ns, propose_ns, forward_ns, verify_ns, observe_ns, device_ns, "
    "device_head_ns, "
    "device_commit_ns, output.hash,"
    " hex(ids), text" FROM "LEFT JOIN output ON output.id = output_id ORDER BY 1, 2, 3, 4, 5",
    "SELECT " SAMPLE ", q.*" FROM
    "JOIN step AS q ON q.sample_id = sample.id ORDER BY 1, 2, 3, 4, 5, q.number",
    "SELECT " SAMPLE ", q.*" FROM
    "JOIN step_pass AS q ON q.sample_id = sample.id ORDER BY 1, 2, 3, 4, 5, q.number, q.pass",
    "SELECT " SAMPLE ", source.name, q.*" FROM
    "JOIN step_source AS q ON q.sample_id = sample.id JOIN source ON source.id = source_id"
    " ORDER BY 1, 2, 3, 4, 5, q.number, 6",
    "SELECT " SAMPLE ", q.*" FROM
    "JOIN sample_accept AS q ON q.sample_id = sample.id ORDER BY 1, 2, 3, 4, 5, kind, q.accepted",
    "SELECT " SAMPLE ", source.name, q.*" FROM "JOIN sample_source AS q ON q.sample_id = sample.id JOIN "
    "source ON source.id = source_id ORDER BY 1, 2, 3, 4, 5, 6",
    "SELECT " SAMPLE ", source.name, q.*" FROM
    "JOIN sample_rank AS q ON q.sample_id = sample.id JOIN source ON source.id = source_id"
    " ORDER BY 1, 2, 3, 4, 5, 6, length, rank",
    "SELECT " SAMPLE ", q.*" FROM "JOIN divergence AS q ON q.sample_id = sample.id ORDER BY 1, 2, 3, 4, 5",
};

static void dump_rows(Store *s, const char *sql, Text *out) {
    Error e = {0};
    Rows *r = rows_open(s, sql, &e);
    while (r && rows_next(r)) {
        for (int i = 0; i < rows_columns(r); i++) {
            const char *name = rows_name(r, i);
            if (strcmp(name, "sample_id") && strcmp(name, "source_id"))
                text_printf(out, "%s|", rows_text(r, i));
        }
        text_puts(out, "\n");
    }
    if (!rows_end(r, true, &e)) fail_msg("%s", e.text);
}

void filled_dump(Store *s, Text *out) {
    for (size_t i = 0; i < sizeof DUMPS / sizeof *DUMPS; i++) dump_rows(s, DUMPS[i], out);
}
