// A training run: the common part of models and adapters, and below it adapters and heads. A model's own part
// is in harness/commands/train.c. A run can be killed at any moment: checkpoint, losses and result each
// appear whole or not at all, and the same command resumes from the last checkpoint.
#include "harness/train/train.h"

#include "engine/base/memory.h"
#include "engine/base/ranges.h"
#include "harness/cli/command.h"
#include "harness/cli/records.h"
#include "harness/inputs/models.h"
#include "harness/inputs/prompts.h"
#include "plots/plots.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double SECONDS_BETWEEN_LINES = 10, SECONDS_ON_A_TERMINAL = 0.5;

static double now(void) { return clock_now(clock_monotonic()); }

static void train_run_check(const TrainRun *r) {
    const Trainer *t = &r->trainer;
    assert(r->corpus.documents <= r->origin_capacity && r->reading == r->file.files.count);
    assert(t->step >= 0 && t->step <= t->config.optimizer.steps);
    assert(!r->curve.count || r->curve.points[r->curve.count - 1].step <= t->step);
}

// --- reading ----------------------------------------------------------------------------------------------

void train_run_add(TrainRun *r, const IdList *ids, size_t bytes) {
    corpus_add(&r->corpus, ids->ids, ids->count);
    // corpus_add skips short texts: then the last document's origin is noted already.
    size_t documents = r->corpus.documents;
    mem_grow(&r->origins, &r->origin_capacity, documents, sizeof *r->origins);
    if (documents && !r->origins[documents - 1].bytes)
        r->origins[documents - 1] = (DocumentOrigin){r->reading, bytes};
}

// Adds BOS, the text, EOS.
static bool take_document(void *state, const char *text, size_t n, Error *e) {
    TrainRun *r = state;
    LOCAL(ids_release) IdList ids = {0};
    bool ok = tokenizer_encode(r->tokenizer, text, n, true, &ids, e);
    if (ok) {
        ids_add(&ids, r->eos);
        train_run_add(r, &ids, n);
    }
    return ok && progress_say(&r->file.config.progress, "reading the text", -1, e);
}

static bool read_text(TrainRun *r, Error *e) {
    const TrainFile *f = &r->file;
    double start = now();
    for (r->reading = 0; r->reading < f->files.count; r->reading++)
        if (!documents_read(&f->files.items[r->reading], 1, f->separator, take_document, r, e)) return false;
    if (r->answers && !train_run_answers(r, e)) return false;
    line_clear(&r->line);
    fprintf(stderr, "text      %zu documents, %zu tokens, read in %.1f s\n", r->corpus.documents,
            r->corpus.count, now() - start);
    return true;
}

char *train_run_beside(const TrainRun *r, const char *ending) {
    int n = (int)(strlen(r->checkpoint) - strlen("checkpoint"));
    return mem_printf("%.*s%s", n, r->checkpoint, ending);
}

static char *losses_path(const TrainRun *r) { return train_run_beside(r, "losses.tsv"); }

// Whether the run may write its files. A checkpoint that it resumes from is checked when it is read.
static bool check_place(TrainRun *r, Error *e) {
    if (r->looks) return true;
    bool replaces = r->fresh && !r->out.force && file_exists(r->checkpoint) && !checkpoint_is(r->checkpoint);
    if (replaces)
        return error_input(e, "'%s' is there, and is not a checkpoint: give another directory, or --force",
                           r->checkpoint);
    LOCAL_MEMORY char *losses = losses_path(r);
    return output_check(&r->out, losses, &(OutputKind){.start = curve_heads}, e) &&
           export_check(r->file.out, r->adapter, r->file.tokenizer, &r->out, e) &&
           output_check(&r->out, r->checkpoint, &(OutputKind){0}, e);
}

static bool write_curve(TrainRun *r, Error *e) {
    const OutputKind kind = {.start = curve_heads};
    LOCAL(output_release) Output out = output_more(&r->out);
    LOCAL_MEMORY char *path = losses_path(r);
    LOCAL_TEXT text = {0};
    curve_write(&r->curve, &text);
    return output_add(&out, path, &kind, text_get(&text), text.length, e) && output_finish(&out, e);
}

// The format of a picture by its extension.
static bool format_of(const char *path, PlotFormat *out, Error *e) {
    int i = text_among(records_format(NULL, path, ""), plot_format_names, PLOT_PDF + 1);
    *out = (PlotFormat)i;
    return i >= 0 || error_input(e, "--figure '%s' must end in .svg, .png or .pdf", path);
}

// Epochs after the first take the states of the target, or teacher, from memory.
static void show_kept(const Trainer *t) {
    double gigabyte = 1e-9, all = (double)target_kept_bytes(&t->target, t->corpus->count) * gigabyte;
    fprintf(stderr, "states    of the %s, in f32: %.2f GB for the whole text",
            t->config.adapter ? "target" : "teacher", all);
    if (t->target.places < t->corpus->count)
        fprintf(stderr, "; %.0f%% are kept in memory, the others are run in each epoch (keep: GB)",
                100 * (double)t->target.places / (double)t->corpus->count);
    fputs("\n", stderr);
}

bool train_run_open(TrainRun *r, Error *e) {
    PlotFormat format;
    if (r->figure && !format_of(r->figure, &format, e)) return false;
    r->held_out = NAN;
    r->file.config.progress = line_progress(&r->line);
    for (int i = 0; i < r->file.files.count; i++) output_reads(&r->out, r->file.files.items[i]);
    size_t n = strlen(r->file.out);
    while (n > 1 && r->file.out[n - 1] == '/') n--;
    r->checkpoint = mem_printf("%.*s.checkpoint", (int)n, r->file.out); // next to the directory, not in it
    if (r->figure && !output_check(&r->out, r->figure, &(OutputKind){0}, e)) return false;
    if (!trainer_check_config(&r->file.config, e)) return error_within(e, "train");
    if (!check_place(r, e) || !read_text(r, e)) return false;
    if (!trainer_open(&r->trainer, &r->file.config, &r->corpus, e)) return error_within(e, "train");
    const Trainer *t = &r->trainer;
    const Network *network = &t->networks[0];
    fprintf(stderr, "%-9s %zu parameters, kernels %s, %d threads\n", t->config.adapter ? "adapter" : "model",
            trainer_parameters(t), network->kernels->name, pool_threads(network->pool));
    if (t->draft_ids) {
        int vocab = t->config.adapter->kind.vocab;
        fprintf(stderr, "tokens    %d of %d, which are %.2f%% of the text\n", vocab,
                t->config.adapter->model->shape.real_vocab,
                100 * corpus_share(t->corpus, t->draft_ids, vocab));
    }
    fprintf(stderr, "split     %zu documents to learn from, %zu held out\n", t->feed.count,
            t->held_out.count);
    if (t->target.states) show_kept(t);
    // A checkpoint is written before the previous one is removed, and the model next to both.
    double checkpoint = 3 * sizeof(float), model = sizeof(uint16_t),
           first = file_exists(r->checkpoint) ? 1 : 2,
           bytes = (double)trainer_parameters(&r->trainer) * (first * checkpoint + model);
    if (!r->looks && !file_has_room(r->checkpoint, bytes, "checkpoints and the model", e)) return false;
    if (!r->fresh && file_exists(r->checkpoint)) {
        if (!checkpoint_read(&r->trainer, r->checkpoint, e)) return false;
        static const size_t MOST = 64u << 20;
        LOCAL_MEMORY char *path = losses_path(r), *text = NULL;
        size_t bytes_read; // if the file can't be read, the curve only lacks its points
        if (file_exists(path) && file_read(path, MOST, &text, &bytes_read, NULL))
            curve_read(&r->curve, text, bytes_read, r->trainer.step);
        fprintf(stderr, "resumed   at step %d from %s\n", r->trainer.step, SHOWN(r->checkpoint));
    }
    if (r->out.made.count)
        fprintf(stderr, "made      the directory %s\n", SHOWN(r->out.made.items[r->out.made.count - 1]));
    train_run_check(r);
    return true;
}

void train_run_close(TrainRun *r) {
    trainer_close(&r->trainer);
    corpus_release(&r->corpus);
    MEM_FREE(r->checkpoint, r->origins);
    curve_release(&r->curve);
    output_release(&r->out);
    train_file_release(&r->file);
}

// --- reporting --------------------------------------------------------------------------------------------

static void show_progress(TrainRun *r, const TrainedStep *s) {
    const Trainer *t = &r->trainer;
    double at = now(), wait = r->line.terminal ? SECONDS_ON_A_TERMINAL : SECONDS_BETWEEN_LINES;
    int steps = t->config.optimizer.steps;
    if (at - r->shown < wait && t->step < steps) return;
    double speed = (double)(t->step - r->shown_step) * t->config.batch / (at - r->shown);
    int left = (int)((at - r->start) / (t->step - r->first_step) * (steps - t->step));
    LOCAL_TEXT text = {0};
    text_printf(&text, "step %d of %d  loss %.4f  %d:%02d:%02d left  gradient %.3f  rate %.2e  %.0f tokens/s",
                t->step, steps, s->loss, left / 3600, left / 60 % 60, left % 60, s->length, s->rate, speed);
    line_show(&r->line, text_get(&text));
    r->shown = at;
    r->shown_step = t->step;
}

bool train_run_json(const TrainRun *r, Error *e) {
    const Trainer *t = &r->trainer;
    json_t *agreement = json_array();
    for (int i = 0; t->target.head && i < trainer_parts(t); i++)
        json_array_append_new(agreement, json_number(t->agreement[i]));
    return records_print(json_pack("{s:o, s:o, s:i, s:i, s:I, s:I, s:I, s:o, s:o}", "output",
                                   json_from_text(r->file.out), "checkpoint", json_from_text(r->checkpoint),
                                   "step", t->step, "steps", t->config.optimizer.steps, "parameters",
                                   (json_int_t)trainer_parameters(t), "documents",
                                   (json_int_t)r->corpus.documents, "tokens", (json_int_t)r->corpus.count,
                                   "held_out_loss", json_number(r->held_out), "agreement", agreement),
                         NULL, &(Records){.json = true}, e);
}

// Agreement is with the target or teacher, so a model without a teacher has none.
bool train_run_held_out(TrainRun *r, Error *e) {
    Trainer *t = &r->trainer;
    r->held_out = trainer_held_out(t);
    if (t->failure.kind != ERROR_NONE) {
        if (e) *e = t->failure;
        return false;
    }
    if (!t->held_out.count) return true;
    if (!isfinite(r->held_out))
        return error_input(e, "the held-out loss of '%s' is not finite at step %d: try a lower rate",
                           r->file.out, t->step);
    fprintf(r->tell, "%sstep %d  held-out loss %.4f", r->line.terminal ? "\n" : "", t->step, r->held_out);
    for (int i = 0; t->target.head && i < trainer_parts(t) && !isnan(t->agreement[i]); i++)
        fprintf(r->tell, "%s%.1f%%", i ? ", " : "  agreement ", 100 * t->agreement[i]);
    fputs("\n", r->tell);
    curve_add(&r->curve, t->step, NAN, r->held_out);
    return true;
}

// --- steps ------------------------------------------------------------------------------------------------

enum { POINTS = 1000 }; // of the curve, at most

static bool one_step(TrainRun *r, Error *e) {
    Trainer *t = &r->trainer;
    TrainedStep s = trainer_step(t);
    if (t->failure.kind != ERROR_NONE) {
        if (e) *e = t->failure;
        return false;
    }
    show_progress(r, &s);
    int apart = t->config.optimizer.steps / POINTS + 1;
    if (t->step % apart == 0) curve_add(&r->curve, t->step, s.loss, NAN);
    return isfinite(s.loss) ||
           error_input(e, "the loss of '%s' is not finite at step %d: try a lower rate or a longer warmup",
                       r->file.out, t->step);
}

// An interrupt waits until both files are written: the losses first, since a resumed run reads them up to the
// checkpoint's step and so never misses any.
static bool save(TrainRun *r, Error *e) {
    interrupt_wait(true);
    bool ok = write_curve(r, e) && checkpoint_write(&r->trainer, r->checkpoint, e);
    interrupt_wait(false);
    return ok;
}

// Steps, with held-out losses and checkpoints in between. An interrupted step leaves no trace.
static bool take_steps(TrainRun *r, Error *e) {
    Trainer *t = &r->trainer;
    int end = t->config.optimizer.steps;
    bool ok = true;
    if (r->stop_after && r->stop_after < end - t->step) end = t->step + r->stop_after;
    r->start = r->shown = now();
    r->first_step = r->shown_step = t->step;
    while (ok && t->step < end) {
        ok = one_step(r, e);
        if (!ok || t->step == end) break;
        ok = t->step % r->file.held_out_every != 0 || train_run_held_out(r, e);
        if (ok && t->step % r->file.checkpoint_every == 0 && !save(r, e)) return false;
    }
    if (r->line.there) fputs("\n", stderr);
    return (ok || t->failure.kind == ERROR_INTERRUPTED) && save(r, e);
}

bool train_run_figure(const TrainRun *r, Error *e) {
    if (!r->figure) return true;
    LOCAL(output_release) Output out = output_more(&r->out);
    PlotOptions o = {0};
    PlotLosses l = {.title = r->file.out, .count = r->curve.count};
    LOCAL_MEMORY double *numbers = mem_new(3 * l.count + 1, sizeof *numbers);
    for (size_t i = 0; i < l.count; i++) {
        numbers[i] = r->curve.points[i].step;
        numbers[l.count + i] = r->curve.points[i].loss;
        numbers[2 * l.count + i] = r->curve.points[i].held_out;
    }
    l.steps = numbers;
    l.series[0] = numbers + l.count;
    l.series[1] = numbers + 2 * l.count;
    return format_of(r->figure, &o.format, e) && plot_losses(&l, &o, r->figure, &out, e) &&
           output_finish(&out, e);
}

bool train_run(TrainRun *r, bool *done, int *code, Error *e) {
    if (!take_steps(r, e)) return false;
    train_run_check(r);
    *done = r->trainer.step == r->trainer.config.optimizer.steps;
    if (*done) {
        LOCAL_TEXT text = {0};
        if (!train_run_held_out(r, e) || !write_curve(r, e)) return false;
        curve_draw(&r->curve, &text);
        fputs(text_get(&text), r->tell);
        return true;
    }
    fprintf(stderr, "stopped   after step %d; the same command resumes from %s\n", r->trainer.step,
            SHOWN(r->checkpoint));
    if (r->trainer.failure.kind == ERROR_INTERRUPTED) *code = EXIT_INTERRUPTED;
    return true;
}

// --- adapters and heads -----------------------------------------------------------------------------------

enum { MOST_ROWS = TREE_MAX_NODES };

const char *const TOP_NAMES[TOP_KINDS] = {"adapter", "heads", "eagle", "eagle3", "mtp", "dflash", "dspark"};

int train_find_piece(const Tokenizer *t, const char *text) {
    int id = -1;
    for (int i = 0; i < tokenizer_size(t); i++) {
        const char *piece = tokenizer_piece(t, i);
        if (piece && strcmp(piece, text) == 0) id = i;
    }
    return id;
}

typedef struct AdapterRun {
    TrainRun run;
    FrozenModel target;
} AdapterRun;

bool frozen_open(FrozenModel *f, const char *dir, const TrainConfig *c, Line *line, Error *e) {
    EngineOptions o = {.threads = c->threads,
                       .progress = line_progress(line),
                       .context = c->shape.context,
                       .max_nodes = c->pass};
    BackendReport report;
    char identity[SHA256_TEXT];
    if (!engine_open(&f->engine, dir, &o, NULL, e) || !model_identity(&f->engine.weights, dir, identity, e))
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

// Reads the file, if there is one, and applies the options of the command line.
static bool read_settings(AdapterRun *a, const TrainOptions *o, Error *e) {
    TrainFile *f = &a->run.file;
    if (!train_file_open_adapter(f, o->config, o, e)) return false;
    if (!f->out) return error_input(e, "train: give the directory to write with -o DIR");
    return f->files.count || o->answers.datasets.count ||
           error_input(e, "train: give text to learn from with --text FILE, a --dataset, or a --config");
}

// The layers that eagle3 reads, "[1, 4, 7]" or "1,4,7". None: adapter_captures chooses them.
static bool choose_layers(Captures *read, const Words *words, int most, Error *e) {
    for (int i = 0; i < words->count; i++) {
        IntList list;
        if (!int_list_parse(words->items[i], "'layers'", 1, most, &list, e)) return false;
        for (int j = 0; j < list.count; j++) {
            bool fits = read->count < SHAPE_MAX_STATES;
            if (!fits || (read->count && list.items[j] <= read->layers[read->count - 1]))
                return error_input(e,
                                   "train: 'layers' must be at most %d of the target's, in ascending order",
                                   SHAPE_MAX_STATES);
            read->layers[read->count++] = list.items[j];
        }
    }
    return true;
}

// How many tokens eagle3's head has, for AdapterKind.vocab. The published heads for Llama 3
// have a quarter of its tokens; fewer than LEAST would save little.
static int choose_vocab(int asked, int vocab) {
    enum { LEAST = 8192, MOST = 32000 };
    int quarter = vocab / 4 < LEAST ? LEAST : vocab / 4 > MOST ? MOST : vocab / 4;
    if (asked < 0) asked = quarter;
    return asked < vocab ? asked : 0;
}

// Keys of the file that this kind has no use for.
static bool check_keys(OnTop what, const TrainFile *f, Error *e) {
    enum { THIRD = 1 << TOP_EAGLE3, MTP = 1 << TOP_MTP, EAGLES = THIRD | MTP | 1 << TOP_EAGLE };
    enum { SPARK = 1 << TOP_DSPARK, BLOCKS = SPARK | 1 << TOP_DFLASH };
    bool third = what == TOP_EAGLE3, parallel = f->parallel > 1;
    const struct {
        const char *key;
        bool given;
        int kinds;
    } ROWS[] = {{"forwards", f->forwards, EAGLES},
                {"layers", f->layers.count, THIRD | BLOCKS},
                {"draft_vocab", f->draft_vocab > 0, THIRD},
                {"normed_heads", f->normed_heads, THIRD},
                {"state", f->state, MTP},
                {"recycle", f->recycle, MTP},
                {"parallel", parallel, THIRD},
                {"draft_layers", f->draft_layers, THIRD | BLOCKS},
                {"block", f->block, BLOCKS},
                {"mask", f->mask, THIRD | BLOCKS},
                {"markov_rank", f->markov_rank, SPARK}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        if (!ROWS[i].given || ROWS[i].kinds & 1 << what) continue;
        LOCAL_TEXT whose = {0};
        for (int k = 0; k < TOP_KINDS; k++)
            if (ROWS[i].kinds & 1 << k) text_printf(&whose, " %s", TOP_NAMES[k]);
        error_input(e, "train: '%s' is not for %s, only for:%s", ROWS[i].key, TOP_NAMES[what],
                    text_get(&whose));
        return false;
    }
    if (third && parallel && f->forwards)
        return error_input(e, "train: 'parallel: %d' has so many forwards: take 'forwards' out", f->parallel);
    return !third || parallel || !(f->mask || f->draft_layers) ||
           error_input(e, "train: '%s' is for eagle3 in parallel: add 'parallel: K'",
                       f->mask ? "mask" : "draft_layers");
}

// EAGLE-1 learns on the target's states alone and EAGLE-3 in seven forwards, as their authors trained them,
// an MTP layer in three, as FastMTP's; DFlash's and DSpark's defaults are DeepSpec's. A mask is at first the
// vocabulary's last id.
static bool choose_kind(TargetChoice *c, OnTop what, const TrainFile *f, const TrainOptions *o,
                        const Model *m, Error *e) {
    static const AdapterVariant VARIANTS[TOP_KINDS] = {ADAPTER_KANGAROO, ADAPTER_MEDUSA, ADAPTER_EAGLE,
                                                       ADAPTER_EAGLE3,   ADAPTER_MTP,    ADAPTER_DFLASH,
                                                       ADAPTER_DFLASH};
    static const int FORWARDS[TOP_KINDS] = {[TOP_EAGLE] = 1, [TOP_EAGLE3] = 7, [TOP_MTP] = 3};
    AdapterKind *k = &c->kind;
    *k = (AdapterKind){
        .variant = VARIANTS[what], .exit_layer = m->shape.layers, .heads = what == TOP_HEADS ? o->heads : 1};
    if (!check_keys(what, f, e)) return false;
    if (what == TOP_ADAPTER) {
        k->exit_layer = o->exit_layer;
        if (!adapter_variant_find(o->variant, &k->variant, e)) return false;
        if (k->variant > ADAPTER_MEDUSA)
            return error_input(e, "train: '%s' is a draft, not an adapter", o->variant);
        if (k->variant == ADAPTER_MEDUSA)
            return error_input(e, "train: medusa's heads are trained by 'outpace train heads MODEL'");
    }
    c->forwards = f->forwards ? f->forwards : FORWARDS[what];
    k->recycles_normed = f->recycle;
    if (what == TOP_MTP && !f->state) k->captures = (Captures){1, {m->shape.layers}};
    if (what == TOP_EAGLE3) k->vocab = choose_vocab(f->draft_vocab, m->shape.real_vocab);
    k->normed_heads = f->normed_heads;
    if (f->parallel > 1) {
        c->forwards = f->parallel;
        k->mask = m->shape.vocab - 1;
        k->layers = f->draft_layers > 1 ? f->draft_layers : 0;
    }
    if (k->variant == ADAPTER_DFLASH) {
        k->normed_heads = true;
        k->layers = f->draft_layers ? f->draft_layers : 5;
        k->mask = m->shape.vocab - 1;
        k->block = (BlockDraft){.rows = f->block ? f->block : 7, .from_root = true};
    }
    if (what == TOP_DSPARK) {
        k->block.markov = MARKOV_VANILLA;
        k->block.rank = f->markov_rank ? f->markov_rank : 256;
        k->block.confidence = CONFIDENCE_TOKEN;
    }
    return adapter_check(k, m, "what is to be trained", e) &&
           choose_layers(&k->captures, &f->layers, m->shape.layers - 1, e);
}

// A mask that is a piece by name. 0 is none in EAGLE-3's files.
static bool choose_mask(TrainFile *f, AdapterKind *k, const Tokenizer *t, Error *e) {
    bool block = k->variant == ADAPTER_DFLASH;
    if (f->mask) k->mask = train_find_piece(t, f->mask);
    if (f->mask && k->mask < !block)
        return error_input(e, "train: the model has no piece '%s'%s to be the mask", f->mask,
                           block ? "" : " behind its first one");
    if (!block) return true;
    f->config.masks = k->block.rows - 1;
    f->config.shape.mask_token = k->mask;
    return true;
}

static bool open_target(AdapterRun *a, OnTop what, const char *dir, const TrainOptions *o, Error *e) {
    TrainConfig *c = &a->run.file.config;
    Model shape;
    if (!model_open_config(&shape, dir, e)) return false;
    // The longest document if the file has no context: a power of two, so that it divides a usual batch.
    int window = shape.shape.window, most = shape.shape.context, context = MOST_ROWS;
    if (window && window < most) most = window;
    while (context > most) context /= 2;
    if (c->shape.context) context = c->shape.context;
    bool ok = choose_kind(&a->target.choice, what, &a->run.file, o, &shape, e);
    train_file_set_context(&a->run.file, context);
    if (!ok || !frozen_open(&a->target, dir, c, &a->run.line, e)) return false;
    c->shape = a->target.engine.model.shape;
    c->shape.context = context;
    c->adapter = &a->target.choice;
    const Engine *engine = &a->target.engine;
    if (!engine->tokenizer) return error_input(e, "'%s' has no tokenizer.json to read text with", dir);
    if (!engine->model.eos_count)
        return error_input(e, "'%s' has no eos_token_id in its config.json to end documents with", dir);
    a->run.tokenizer = engine->tokenizer;
    a->run.eos = engine->model.eos[0];
    return choose_mask(&a->run.file, &a->target.choice.kind, engine->tokenizer, e);
}

static bool write_adapter(AdapterRun *a, OnTop what, Error *e) {
    TrainRun *r = &a->run;
    ExportNotes notes = {.bos = -1, .eos = -1, .held_out_loss = r->held_out};
    if (!export_adapter(&r->trainer, &notes, r->file.out, &r->out, e)) return false;
    fprintf(r->tell, "wrote the %s to %s\n",
            what == TOP_ADAPTER  ? "adapter"
            : what == TOP_HEADS  ? "heads"
            : what >= TOP_DFLASH ? "draft"
                                 : "head",
            SHOWN(r->file.out));
    return true;
}

bool train_adapter(OnTop what, const char *model, const TrainOptions *o, int *code, Error *e) {
    AnswerOptions answers = o->answers;
    AdapterRun a = {.run = {.stop_after = o->stop_after,
                            .figure = o->figure,
                            .fresh = o->fresh,
                            .adapter = true,
                            .answers = answers.datasets.count ? &answers : NULL,
                            .tell = o->json ? stderr : stdout,
                            .out.force = o->force}};
    bool done = false;
    answers.model = model;
    answers.beside = &a.target.engine;
    output_reads(&a.run.out, model);
    output_reads(&a.run.out, o->config);
    line_begin(&a.run.line, true);
    bool ok = read_settings(&a, o, e) && open_target(&a, what, model, o, e) && train_run_open(&a.run, e) &&
              train_run(&a.run, &done, code, e) &&
              (!done || (write_adapter(&a, what, e) && train_run_figure(&a.run, e))) &&
              (!o->json || train_run_json(&a.run, e));
    train_run_close(&a.run);
    frozen_close(&a.target);
    return ok;
}
