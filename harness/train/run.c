// What training a model and training adapters have in common; train/adapter.c and commands/train.c tell what
// is trained, and write it.
#include "harness/train/run.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "harness/program/command.h"
#include "harness/program/terminal.h"
#include "harness/prompts/documents.h"
#include "harness/program/interrupt.h"
#include "plots/losses.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double SECONDS_BETWEEN_LINES = 10, SECONDS_ON_A_TERMINAL = 0.5;

static double now(void) { return clock_now(clock_monotonic()); }

// --- what is read ----------------------------------------------------------------------------------------

// Of the corpus's last document: a text of one token was not taken, and leaves its mark on none.
static bool note_origin(TrainRun *r, size_t bytes, Error *e) {
    void *list = r->origins;
    size_t documents = r->corpus.documents;
    if (!mem_grow(&list, &r->origin_capacity, documents, sizeof *r->origins))
        return error_system(e, "out of memory");
    r->origins = list;
    if (documents && !r->origins[documents - 1].bytes)
        r->origins[documents - 1] = (DocumentOrigin){r->reading, bytes};
    return true;
}

// BOS, the text, EOS.
static bool take_document(void *state, const char *text, size_t n, Error *e) {
    TrainRun *r = state;
    IdList ids = {0};
    bool ok = tokenizer_encode(r->tokenizer, text, n, true, &ids, e);
    void *list = ids.ids;
    if (ok && !mem_grow(&list, &ids.capacity, ids.count + 1, sizeof *ids.ids))
        ok = error_system(e, "out of memory");
    ids.ids = list;
    if (ok) ids.ids[ids.count++] = r->eos;
    ok = ok && corpus_add(&r->corpus, ids.ids, ids.count, e) && note_origin(r, n, e);
    ids_release(&ids);
    return ok && progress_say(&r->file.config.progress, "reading the text", -1, e);
}

static bool read_text(TrainRun *r, Error *e) {
    const TrainFile *f = &r->file;
    double start = now();
    for (r->reading = 0; r->reading < f->files.count; r->reading++)
        if (!documents_read(&f->files.items[r->reading], 1, f->separator, take_document, r, e)) return false;
    line_clear(&r->line);
    fprintf(stderr, "text      %zu documents, %zu tokens, read in %.1f s\n", r->corpus.documents,
            r->corpus.count, now() - start);
    return true;
}

static bool open_trainer(TrainRun *r, Error *e) {
    if (!trainer_open(&r->trainer, &r->file.config, &r->corpus, e)) return error_within(e, "train");
    const Trainer *t = &r->trainer;
    const Network *n = &t->networks[0];
    fprintf(stderr, "%-9s %zu parameters, kernels %s, %d threads\n", t->config.adapter ? "adapter" : "model",
            trainer_parameters(t), n->kernels->name, pool_threads(n->pool));
    fprintf(stderr, "split     %zu documents to learn from, %zu held out\n", t->feed.count,
            t->held_out.count);
    return true;
}

// The checkpoint stands beside the model's directory, so that this holds nothing but the model.
static bool name_checkpoint(TrainRun *r, Error *e) {
    Text path = {0};
    size_t n = strlen(r->file.out);
    while (n > 1 && r->file.out[n - 1] == '/') n--;
    text_printf(&path, "%.*s.checkpoint", (int)n, r->file.out);
    r->checkpoint = path.failed ? NULL : mem_text(path.data, path.length);
    text_release(&path);
    return r->checkpoint || error_system(e, "out of memory");
}

// Beside the checkpoint: "OUT.losses.tsv".
static void losses_path(const TrainRun *r, Text *out) {
    text_printf(out, "%.*s.losses.tsv", (int)(strlen(r->checkpoint) - strlen(".checkpoint")), r->checkpoint);
}

static bool check_losses(const TrainRun *r, Error *e) {
    Text path = {0};
    losses_path(r, &path);
    bool ok = output_check(&r->out, text_get(&path), &(OutputKind){.start = curve_heads}, e);
    text_release(&path);
    return ok;
}

// Whether what is there may be replaced, and a file made beside it. A checkpoint that is gone on from is
// looked at when it is read.
static bool check_place(TrainRun *r, Error *e) {
    if (r->looks) return true;
    bool replaces = r->fresh && !r->out.force && file_exists(r->checkpoint) && !checkpoint_is(r->checkpoint);
    if (replaces)
        return error_input(e, "'%s' is there, and is not a checkpoint: give another directory, or --force",
                           r->checkpoint);
    return check_losses(r, e) && export_check(r->file.out, r->adapter, r->file.tokenizer, &r->out, e) &&
           output_check(&r->out, r->checkpoint, &(OutputKind){0}, e);
}

// A checkpoint is written before the last one goes, and the model beside both.
static bool check_room(const TrainRun *r, Error *e) {
    if (r->looks) return true;
    double checkpoint = 3 * sizeof(float), model = sizeof(uint16_t),
           first = file_exists(r->checkpoint) ? 1 : 2;
    return file_has_room(r->checkpoint,
                         (double)trainer_parameters(&r->trainer) * (first * checkpoint + model),
                         "checkpoints and the model", e);
}

// Points that are lost are missing in the curve, and nothing else.
static void read_curve(TrainRun *r) {
    static const size_t MOST = 64u << 20;
    Text path = {0};
    char *text = NULL;
    size_t n;
    losses_path(r, &path);
    if (file_exists(text_get(&path)) && file_read(text_get(&path), MOST, &text, &n, NULL))
        curve_read(&r->curve, text, n, r->trainer.step, NULL);
    mem_free(text);
    text_release(&path);
}

static bool write_curve(TrainRun *r, Error *e) {
    const OutputKind kind = {.start = curve_heads};
    Output out = {.force = r->out.force};
    Text path = {0}, text = {0};
    losses_path(r, &path);
    curve_write(&r->curve, &text);
    bool ok = !(path.failed || text.failed) || error_system(e, "out of memory for the losses");
    ok = ok && output_add(&out, text_get(&path), &kind, text_get(&text), text.length, e) &&
         output_finish(&out, e);
    output_release(&out);
    text_release(&path);
    text_release(&text);
    return ok;
}

static bool resume(TrainRun *r, Error *e) {
    if (r->fresh || !file_exists(r->checkpoint)) return true;
    if (!checkpoint_read(&r->trainer, r->checkpoint, e)) return false;
    read_curve(r);
    fprintf(stderr, "resumed   at step %d from %s\n", r->trainer.step, SHOWN(r->checkpoint));
    return true;
}

// "x.svg" is an SVG.
static bool format_of(const char *path, PlotFormat *out, Error *e) {
    const char *dot = strrchr(path, '.');
    for (*out = PLOT_SVG; dot && *out <= PLOT_PDF; (*out)++)
        if (strcmp(plot_format_names[*out], dot + 1) == 0) return true;
    return error_input(e, "--figure '%s' must end in .svg, .png or .pdf", path);
}

bool train_run_open(TrainRun *r, Error *e) {
    PlotFormat format;
    if (r->figure && !format_of(r->figure, &format, e)) return false;
    r->held_out = NAN;
    r->file.config.progress = line_progress(&r->line);
    return name_checkpoint(r, e) && check_place(r, e) && read_text(r, e) && open_trainer(r, e) &&
           check_room(r, e) && resume(r, e);
}

void train_run_close(TrainRun *r) {
    trainer_close(&r->trainer);
    corpus_release(&r->corpus);
    mem_free(r->checkpoint);
    mem_free(r->origins);
    curve_release(&r->curve);
    output_release(&r->out);
    train_file_release(&r->file);
}

// --- what is said ----------------------------------------------------------------------------------------

static void show_progress(TrainRun *r, const TrainedStep *s) {
    const Trainer *t = &r->trainer;
    double at = now(), wait = r->line.terminal ? SECONDS_ON_A_TERMINAL : SECONDS_BETWEEN_LINES;
    int steps = t->config.optimizer.steps;
    if (at - r->shown < wait && t->step < steps) return;
    double speed = (double)(t->step - r->shown_step) * t->config.batch / (at - r->shown);
    int left = (int)((at - r->start) / (t->step - r->first_step) * (steps - t->step));
    Text text = {0};
    text_printf(&text, "step %d of %d  loss %.4f  gradient %.3f  rate %.2e  %.0f tokens/s  %d:%02d:%02d left",
                t->step, steps, s->loss, s->length, s->rate, speed, left / 3600, left / 60 % 60, left % 60);
    line_show(&r->line, text_get(&text));
    text_release(&text);
    r->shown = at;
    r->shown_step = t->step;
}

// Agreement is with the target or teacher, so a model by itself has none to show.
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
    printf("%sstep %d  held-out loss %.4f", r->line.terminal ? "\n" : "", t->step, r->held_out);
    for (int i = 0; t->target.head && i < t->count; i++)
        printf("%s%.1f%%", i ? ", " : "  agreement ", 100 * t->agreement[i]);
    puts("");
    return curve_add(&r->curve, t->step, NAN, r->held_out, e);
}

// --- the run ---------------------------------------------------------------------------------------------

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
    if (t->step % apart == 0 && !curve_add(&r->curve, t->step, s.loss, NAN, e)) return false;
    return isfinite(s.loss) ||
           error_input(e, "the loss of '%s' is not finite at step %d: try a lower rate or a longer warmup",
                       r->file.out, t->step);
}

static bool every(const TrainRun *r, int steps) { return r->trainer.step % steps == 0; }

// It takes the time that it takes, whoever interrupts.
static bool save(TrainRun *r, Error *e) {
    interrupt_wait(true);
    bool ok = checkpoint_write(&r->trainer, r->checkpoint, e) && write_curve(r, e);
    interrupt_wait(false);
    return ok;
}

// An interrupted step is as if it had not begun.
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
        ok = !every(r, r->file.held_out_every) || train_run_held_out(r, e);
        if (ok && every(r, r->file.checkpoint_every) && !save(r, e)) return false;
    }
    if (r->line.there) fputs("\n", stderr);
    return (ok || t->failure.kind == ERROR_INTERRUPTED) && save(r, e);
}

bool train_run_figure(const TrainRun *r, Error *e) {
    if (!r->figure) return true;
    Output out = {.force = r->out.force};
    PlotOptions o = {0};
    PlotLosses l = {.title = r->file.out, .count = r->curve.count};
    double *numbers = mem_alloc(3 * l.count + 1, sizeof *numbers);
    if (!numbers) return error_system(e, "out of memory for the losses");
    for (size_t i = 0; i < l.count; i++) {
        numbers[i] = r->curve.points[i].step;
        numbers[l.count + i] = r->curve.points[i].loss;
        numbers[2 * l.count + i] = r->curve.points[i].held_out;
    }
    l.steps = numbers;
    l.series[0] = numbers + l.count;
    l.series[1] = numbers + 2 * l.count;
    bool ok = format_of(r->figure, &o.format, e) && plot_losses(&l, &o, r->figure, &out, e) &&
              output_finish(&out, e);
    output_release(&out);
    mem_free(numbers);
    return ok;
}

static bool show_curve(const TrainRun *r, Error *e) {
    Text text = {0};
    curve_draw(&r->curve, &text);
    bool ok = !text.failed || error_system(e, "out of memory for the losses");
    if (ok) fputs(text_get(&text), stdout);
    text_release(&text);
    return ok;
}

bool train_run(TrainRun *r, bool *done, int *code, Error *e) {
    if (!take_steps(r, e)) return false;
    *done = r->trainer.step == r->trainer.config.optimizer.steps;
    if (*done) return train_run_held_out(r, e) && write_curve(r, e) && show_curve(r, e);
    fprintf(stderr, "stopped   after step %d; the same command goes on from %s\n", r->trainer.step,
            SHOWN(r->checkpoint));
    if (r->trainer.failure.kind == ERROR_INTERRUPTED) *code = EXIT_INTERRUPTED;
    return true;
}
