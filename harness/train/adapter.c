// The target runs in the engine, as it will in use; the text is cut to what fits into one of its steps.
#include "harness/train/adapter.h"

#include "harness/program/shape_text.h"
#include "harness/program/terminal.h"
#include "harness/train/run.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ROWS = TREE_MAX_NODES };

typedef struct AdapterRun {
    TrainRun run;
    FrozenModel target;
} AdapterRun;

bool frozen_open(FrozenModel *f, const char *dir, const TrainConfig *c, Line *line, Error *e) {
    EngineOptions o = {.backend = {.threads = c->threads,
                                   .progress = line_progress(line),
                                   .context = c->shape.context,
                                   .max_nodes = c->pass}};
    BackendReport report;
    char identity[SHA256_TEXT];
    if (!engine_open(&f->engine, dir, &o, NULL, e) || !model_identity(&f->engine.model, dir, identity, e))
        return false;
    shape_warn(&f->engine.model, dir);
    f->engine.session.backend->report(f->engine.session.self, &report);
    snprintf(f->name, sizeof f->name, "%s %s%s", identity, report.isa,
             f->engine.session.compute == COMPUTE_F16 ? " f16" : "");
    f->choice.model = &f->engine.model;
    f->choice.session = &f->engine.session;
    f->choice.name = f->name;
    return true;
}

void frozen_close(FrozenModel *f) { engine_close(&f->engine); }

// The file, and what the command line says over it.
static bool read_settings(AdapterRun *a, const TrainAdapterOptions *o, Error *e) {
    TrainFile *f = &a->run.file;
    if (!o->config) train_file_defaults(f, TRAIN_ADAPTER);
    else if (!train_file_open(f, o->config, TRAIN_ADAPTER, e)) return false;
    if (o->out) f->out = o->out;
    if (o->separator) f->separator = o->separator;
    if (o->steps) f->config.optimizer.steps = o->steps;
    if (o->batch) f->config.batch = o->batch;
    if (o->rate > 0) f->config.optimizer.rate = o->rate;
    if (o->files.count) {
        f->files.count = o->files.count;
        memcpy(f->files.items, o->files.items, sizeof f->files.items);
        train_file_name_domains(f);
    }
    if (!f->out) return error_input(e, "train: give the directory to write with -o DIR");
    return f->files.count || error_input(e, "train: give text to learn from with --text FILE, or a --config");
}

static bool choose_kind(AdapterKind *k, const TrainAdapterOptions *o, const Model *m, bool heads, Error *e) {
    *k = (AdapterKind){.variant = ADAPTER_MEDUSA, .exit_layer = m->shape.layers, .heads = o->heads};
    if (heads) return true;
    *k = (AdapterKind){.exit_layer = o->exit_layer, .heads = 1};
    return adapter_variant_find(o->variant, &k->variant, e) &&
           (k->variant != ADAPTER_MEDUSA ||
            error_input(e, "train: medusa's heads are trained by 'outpace train heads MODEL'"));
}

// The longest document, where the file does not say: a power of two, so that it divides a usual batch.
static int longest_document(const Shape *s) {
    int most = s->window && s->window < s->context ? s->window : s->context, n = MOST_ROWS;
    while (n > most) n /= 2;
    return n;
}

static bool open_target(AdapterRun *a, const char *dir, const TrainAdapterOptions *o, bool heads, Error *e) {
    TrainConfig *c = &a->run.file.config;
    Model shape;
    if (!model_open_config(&shape, dir, e)) return false;
    int context = c->shape.context ? c->shape.context : longest_document(&shape.shape);
    bool ok = choose_kind(&a->target.choice.kind, o, &shape, heads, e) &&
              adapter_check(&a->target.choice.kind, &shape, "the adapter to train", e);
    model_close(&shape);
    train_file_set_context(&a->run.file, context);
    if (!ok || !frozen_open(&a->target, dir, c, &a->run.line, e)) return false;
    c->shape = a->target.engine.model.shape;
    c->shape.context = context;
    c->adapter = &a->target.choice;
    return true;
}

static bool choose_tokens(AdapterRun *a, const char *dir, Error *e) {
    const Model *m = &a->target.engine.model;
    if (!a->target.engine.tokenizer)
        return error_input(e, "'%s' has no tokenizer.json to read text with", dir);
    if (!m->eos_count)
        return error_input(e, "'%s' has no eos_token_id in its config.json to end documents with", dir);
    a->run.tokenizer = a->target.engine.tokenizer;
    a->run.eos = m->eos[0];
    return true;
}

static bool write_adapter(AdapterRun *a, Error *e) {
    TrainRun *r = &a->run;
    ExportNotes notes = {.bos = -1, .eos = -1, .held_out_loss = r->held_out};
    if (!export_adapter(&r->trainer, &notes, r->file.out, &r->out, e)) return false;
    printf("wrote the %s to %s\n", a->target.choice.kind.variant == ADAPTER_MEDUSA ? "heads" : "adapter",
           SHOWN(r->file.out));
    return true;
}

bool train_adapter(const char *model, const TrainAdapterOptions *o, bool heads, int *code, Error *e) {
    AdapterRun a = {.run = {.stop_after = o->stop_after,
                            .figure = o->figure,
                            .fresh = o->fresh,
                            .adapter = true,
                            .out.force = o->force}};
    bool done = false;
    output_reads(&a.run.out, model);
    output_reads(&a.run.out, o->config);
    line_begin(&a.run.line, true);
    bool ok = read_settings(&a, o, e) && open_target(&a, model, o, heads, e) && choose_tokens(&a, model, e) &&
              train_run_open(&a.run, e) && train_run(&a.run, &done, code, e) &&
              (!done || (write_adapter(&a, e) && train_run_figure(&a.run, e)));
    train_run_close(&a.run);
    frozen_close(&a.target);
    return ok;
}
