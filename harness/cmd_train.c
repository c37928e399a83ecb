// Trains a model as a YAML file says: reads the text, goes on from a checkpoint if there is one, and ends
// with a model directory, or well before that when it is interrupted.
#include "harness/command.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/text/tokenizer.h"
#include "engine/train/ngram.h"
#include "engine/train/train.h"
#include "harness/documents.h"
#include "harness/interrupt.h"
#include "harness/train_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const size_t MOST_TOKENIZER_BYTES = 256u << 20;
static const double SECONDS_BETWEEN_LINES = 10, SECONDS_ON_A_TERMINAL = 0.5;

typedef struct {
    int steps;
    bool fresh, baseline;
} TrainOptions;

#define AT(name) offsetof(TrainOptions, name)
static const Option OPTIONS[] = {
    {"stop-after", 0, OPTION_INT,  AT(steps),    0, 1 << 30, "N",
     "end with a checkpoint after so many steps more; 0: at the end",                                          "0" },
    {"fresh",      0, OPTION_FLAG, AT(fresh),    0, 0,       NULL, "start anew, whatever checkpoint there is", NULL},
    {"baseline",   0, OPTION_FLAG, AT(baseline), 0, 0,       NULL,
     "train nothing: print the held-out loss of a 5-gram model beside the checkpoint's",                       NULL},
};
#undef AT

typedef struct Run {
    const TrainOptions *o;
    TrainFile file;
    char *tokenizer_json;
    size_t tokenizer_bytes;
    Tokenizer *tokenizer;
    int bos, eos;
    Corpus corpus;
    Trainer trainer;
    char *checkpoint; // path
    // what is shown
    bool terminal;
    double start, shown; // seconds
    int first_step, shown_step;
    double held_out; // loss, at the last look
} Run;

static double now(void) { return clock_now(clock_monotonic()); }

// --- what is read ----------------------------------------------------------------------------------------

static bool find_specials(Run *r, Error *e) {
    IdList empty = {0};
    if (!tokenizer_encode(r->tokenizer, "", 0, true, &empty, e)) return false;
    r->bos = empty.count ? empty.ids[0] : -1;
    ids_release(&empty);
    r->eos = -1;
    for (int i = 0; i < tokenizer_size(r->tokenizer); i++) {
        const char *piece = tokenizer_piece(r->tokenizer, i);
        if (piece && strcmp(piece, r->file.eos) == 0) r->eos = i;
    }
    return r->eos >= 0 || error_input(e, "'%s' has no piece '%s' to end documents with; name it as eos",
                                      r->file.tokenizer, r->file.eos);
}

static bool open_tokenizer(Run *r, Error *e) {
    const char *path = r->file.tokenizer;
    if (!file_read(path, MOST_TOKENIZER_BYTES, &r->tokenizer_json, &r->tokenizer_bytes, e)) return false;
    r->tokenizer = tokenizer_parse(r->tokenizer_json, r->tokenizer_bytes, path, e);
    return r->tokenizer && find_specials(r, e);
}

// BOS, the text, EOS.
static bool take_document(void *state, const char *text, size_t n, Error *e) {
    Run *r = state;
    IdList ids = {0};
    bool ok = tokenizer_encode(r->tokenizer, text, n, true, &ids, e);
    void *list = ids.ids;
    if (ok && !mem_grow(&list, &ids.capacity, ids.count + 1, sizeof *ids.ids))
        ok = error_system(e, "out of memory");
    ids.ids = list;
    if (ok) ids.ids[ids.count++] = r->eos;
    ok = ok && corpus_add(&r->corpus, ids.ids, ids.count, e);
    ids_release(&ids);
    if (ok && interrupt_seen()) return error_system(e, "interrupted while reading the text");
    return ok;
}

static bool read_text(Run *r, Error *e) {
    const TrainFile *f = &r->file;
    double start = now();
    if (!documents_read(f->files.items, f->files.count, f->separator, take_document, r, e)) return false;
    fprintf(stderr, "text      %zu documents, %zu tokens, read in %.1f s\n", r->corpus.documents,
            r->corpus.count, now() - start);
    return true;
}

static bool open_trainer(Run *r, Error *e) {
    TrainConfig *c = &r->file.config;
    c->shape.vocab = c->shape.real_vocab = tokenizer_size(r->tokenizer);
    if (!trainer_open(&r->trainer, c, &r->corpus, e)) return error_within(e, "train");
    const Trainer *t = &r->trainer;
    fprintf(stderr, "model     %zu parameters, kernels %s, %d threads\n", t->networks[0].parameters.total,
            t->networks[0].kernels->name, pool_threads(t->networks[0].pool));
    fprintf(stderr, "split     %zu documents to learn from, %zu held out\n", t->feed.count,
            t->held_out.count);
    return true;
}

// The checkpoint stands beside the model's directory, so that this holds nothing but the model.
static bool resume(Run *r, Error *e) {
    Text path = {0};
    size_t n = strlen(r->file.out);
    while (n > 1 && r->file.out[n - 1] == '/') n--;
    text_printf(&path, "%.*s.checkpoint", (int)n, r->file.out);
    r->checkpoint = path.failed ? NULL : mem_text(path.data, path.length);
    text_release(&path);
    if (!r->checkpoint) return error_system(e, "out of memory");
    if (r->o->fresh || !file_exists(r->checkpoint)) return true;
    if (!checkpoint_read(&r->trainer, r->checkpoint, e)) return false;
    fprintf(stderr, "resumed   at step %d from %s\n", r->trainer.step, r->checkpoint);
    return true;
}

static bool open_run(Run *r, const char *config, Error *e) {
    r->terminal = isatty(STDERR_FILENO);
    r->held_out = NAN;
    return train_file_open(&r->file, config, e) && open_tokenizer(r, e) && read_text(r, e) &&
           open_trainer(r, e) && resume(r, e);
}

static void close_run(Run *r) {
    trainer_close(&r->trainer);
    corpus_release(&r->corpus);
    tokenizer_close(r->tokenizer);
    mem_free(r->tokenizer_json);
    mem_free(r->checkpoint);
    train_file_release(&r->file);
}

// --- what is said ----------------------------------------------------------------------------------------

static void show_progress(Run *r, const StepReport *s) {
    const Trainer *t = &r->trainer;
    double at = now(), wait = r->terminal ? SECONDS_ON_A_TERMINAL : SECONDS_BETWEEN_LINES;
    int steps = t->config.optimizer.steps;
    if (at - r->shown < wait && t->step < steps) return;
    double speed = (double)(t->step - r->shown_step) * t->config.batch / (at - r->shown);
    int left = (int)((at - r->start) / (t->step - r->first_step) * (steps - t->step));
    fprintf(stderr,
            "%sstep %d of %d  loss %.4f  gradient %.3f  rate %.2e  %.0f tokens/s  %d:%02d:%02d left%s",
            r->terminal ? "\r" : "", t->step, steps, s->loss, s->length, s->rate, speed, left / 3600,
            left / 60 % 60, left % 60, r->terminal ? "  " : "\n");
    r->shown = at;
    r->shown_step = t->step;
}

static void show_held_out(Run *r) {
    r->held_out = trainer_held_out(&r->trainer);
    if (!isnan(r->held_out))
        printf("%sstep %d  held-out loss %.4f\n", r->terminal ? "\n" : "", r->trainer.step, r->held_out);
    fflush(stdout);
}

// --- the run ---------------------------------------------------------------------------------------------

static bool write_model(Run *r, Error *e) {
    ExportNotes notes = {.bos = r->bos, .eos = r->eos, .held_out_loss = r->held_out};
    if (!export_model(&r->trainer, &notes, r->file.out, e)) return false;
    char *path = file_path(r->file.out, "tokenizer.json");
    bool ok =
        path ? file_write(path, r->tokenizer_json, r->tokenizer_bytes, e) : error_system(e, "out of memory");
    mem_free(path);
    if (ok) printf("wrote the model to %s\n", r->file.out);
    return ok;
}

static bool every(const Run *r, int steps) { return r->trainer.step % steps == 0; }

// Steps until the end, an interrupt, or as many as were asked for; a checkpoint whatever it was.
static bool train(Run *r, Error *e) {
    Trainer *t = &r->trainer;
    int end = t->config.optimizer.steps;
    if (r->o->steps && r->o->steps < end - t->step) end = t->step + r->o->steps;
    r->start = r->shown = now();
    r->first_step = r->shown_step = t->step;
    while (t->step < end && !interrupt_seen()) {
        StepReport s = trainer_step(t);
        show_progress(r, &s);
        if (!isfinite(s.loss))
            return error_input(e, "the loss is no number at step %d: try a lower rate or a longer warmup",
                               t->step);
        if (every(r, r->file.held_out_every) && t->step < end) show_held_out(r);
        if (every(r, r->file.checkpoint_every) && t->step < end && !checkpoint_write(t, r->checkpoint, e))
            return false;
    }
    if (r->terminal) fputs("\n", stderr);
    return checkpoint_write(t, r->checkpoint, e);
}

// What counting alone reaches on the same split, and what the checkpoint has reached.
static bool show_baseline(Run *r, Error *e) {
    enum { ORDER = 5 };
    Trainer *t = &r->trainer;
    Ngram m;
    if (!t->held_out.count)
        return error_input(e, "a baseline needs documents that are held out; set held_out");
    if (!ngram_learn(&m, &t->feed, ORDER, t->config.shape.vocab, e)) return false;
    printf("%d-gram  held-out loss %.4f\n", ORDER,
           ngram_loss(&m, &t->held_out, (size_t)t->config.held_out_rows));
    ngram_release(&m);
    if (t->step) show_held_out(r);
    return true;
}

static bool finish(Run *r, int *code, Error *e) {
    bool done = r->trainer.step == r->trainer.config.optimizer.steps;
    if (!done) {
        fprintf(stderr, "stopped   after step %d; the same command goes on from %s\n", r->trainer.step,
                r->checkpoint);
        if (interrupt_seen()) *code = EXIT_INTERRUPTED;
        return true;
    }
    show_held_out(r);
    return write_model(r, e);
}

static bool run(int argc, char **argv, int *code, Error *e) {
    TrainOptions o = {0};
    Positionals rest;
    bool stop;
    if (!command_parse(&command_train, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    if (rest.count != 1) return error_input(e, "train: usage: outpace train %s", command_train.usage);
    Run r = {.o = &o};
    interrupt_catch();
    bool ok = open_run(&r, rest.items[0], e) &&
              (o.baseline ? show_baseline(&r, e) : train(&r, e) && finish(&r, code, e));
    close_run(&r);
    return ok;
}

const Command command_train = {
    .name = "train",
    .usage = "CONFIG.yaml [OPTIONS]",
    .summary = "train a small model from text",
    .lesson = "Trains a decoder-only model (RMSNorm, grouped heads, RoPE, SwiGLU, tied head) as the YAML "
              "file says\n"
              "and writes it as a Hugging Face directory. Ctrl-C ends with a checkpoint beside that "
              "directory; the\n"
              "same command goes on from it, to the same result bit for bit. configs/train/ has examples.\n"
              "--baseline tells what a model that only counts (5-grams, modified Kneser-Ney) reaches on the\n"
              "same split.\n"
              "\n"
              "  outpace tokenizer train 'corpus/*.txt' --vocab 2048 -o tokenizer.json\n"
              "  outpace train configs/train/small.yaml\n"
              "  outpace generate models/small \"Once upon a time\"\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};
