// Trains a model from a YAML file, or adapters on top of one: reads the text, goes on from a checkpoint if
// there is one, and ends with a model directory, or well before that when it is interrupted.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "harness/inputs/models.h"
#include "harness/train/domains.h"

#include <stdio.h>
#include <string.h>

static const size_t MOST_TOKENIZER_BYTES = 256u << 20;

typedef struct {
    TrainOptions run;
    bool loss;
    const char *start, *snapshot, *outputs;
} TrainArguments;

#define AT(name) offsetof(TrainArguments, name)
static const Arg OPTIONS[] = {
    {"stop-after", ARG_INT, AT(run.stop_after), 0, 1 << 30, "0",
     .help = "end with a checkpoint after so many steps more; 0: at the end", .value = "N"},
    {"fresh", ARG_FLAG, AT(run.fresh), .help = "start anew, whatever checkpoint there is"},
    ARG_FORCE(AT(run.force)),
    {"json", ARG_FLAG, AT(run.json), .help = "print one JSON object at the end (keys: docs/json.md)"},
    {"start", ARG_WORD, AT(start), .help = "begin with this model's weights; with --loss, print its loss",
     .value = "MODEL"},
    {"begun", ARG_INT, AT(run.begun), 0, 1 << 30, "0",
     .help = "with --start: after N steps of it; the schedule and the reading go on from there",
     .value = "N"},
    {"snapshot", ARG_WORD, AT(snapshot),
     .help = "train nothing: write the checkpoint's model to DIR, to look at or to --start from",
     .value = "DIR"},
    {"loss", ARG_FLAG, AT(loss),
     .help = "train nothing: print the held-out loss of the checkpoint, or of --start's model"},
    {"preset", ARG_WORD, AT(run.preset),
     .help = "a model's size and schedule: 5m, 20m, 60m; the file's own keys win", .value = "NAME"},
    {"tokenizer", ARG_WORD, AT(run.tokenizer), .help = "of a model, in place of the file's", .value = "FILE"},
    {"figure", ARG_WORD, AT(run.figure),
     .help = "draw the losses at the end: .svg, .png, .pdf; needs gnuplot", .value = "FILE"},
    {"outputs", ARG_WORD, AT(outputs), .help = "train nothing: write the model's continuations of documents",
     .value = "FILE"},
    {"dataset", ARG_WORDS, AT(run.answers.datasets),
     .help = "on top of MODEL: learn from its answers; repeatable", .value = "DATASET"},
    {"answers", ARG_WORD, AT(run.answers.file), .help = "where those answers are kept", .value = "FILE",
     .fallback = "OUT.answers.jsonl"},
    {"split", ARG_WORD, AT(run.answers.split),
     .help = "of datasets that aren't files; all: of those that have none", .value = "NAME",
     .fallback = "train", .literal = true},
    {"template", ARG_WORD, AT(run.answers.template),
     .help = "put their prompts into a chat template; model: the model's own", .value = "TEMPLATE",
     .fallback = "the model's, if it has one, for prompts that ask"},
    {"prompts", ARG_INT, AT(run.answers.prompts), 0, 1 << 20, "0",
     .help = "of each domain (0: 10) or dataset (0: all)", .value = "N"},
    {"max-tokens", ARG_INT, AT(run.answers.tokens), 1, 1 << 16, "128",
     .help = "of each output or answer, at most", .value = "N", .letter = 'n'},
    {"exit-layer", ARG_INT, AT(run.exit_layer), 1, 1000, "2",
     .help = "adapter: it reads what L layers of the model give", .value = "L", .letter = 'l'},
    {"variant", ARG_WORD, AT(run.variant), .help = "adapter: kangaroo, with-head, one-layer, mlp",
     .value = "NAME", .fallback = "kangaroo", .literal = true},
    {"heads", ARG_INT, AT(run.heads), 1, ADAPTER_HEADS_MAX, "4", .help = "heads: how many", .value = "N"},
    {"draft-vocab", ARG_INT, AT(run.draft_vocab), -1, 1 << 24, "-1",
     .help = "eagle3: its head's tokens, the text's commonest; 0: all; -1: a quarter", .value = "N"},
    {"config", ARG_WORD, AT(run.config), .help = "on top of MODEL: a YAML file of what follows and more",
     .value = "FILE"},
    {"out", ARG_WORD, AT(run.out), .help = "the directory to write", .value = "DIR", .letter = 'o'},
    {"text", ARG_WORDS, AT(run.files), .help = "what to learn from; repeatable, and a pattern in quotes",
     .value = "FILE"},
    {"separator", ARG_WORD, AT(run.separator), .help = "the line that ends a document in the files",
     .value = "LINE"},
    {"steps", ARG_INT, AT(run.steps), 0, 1 << 30, "0", .help = "how many; 0: the file's", .value = "N"},
    {"batch", ARG_INT, AT(run.batch), 0, 1 << 24, "0",
     .help = "tokens a step, in whole passes (the file's, or 1024); 0: the file's", .value = "N"},
    {"rate", ARG_REAL, AT(run.rate), 0, 10, "0", .help = "of learning; 0: the file's", .value = "R"},
    {"threads", ARG_INT, AT(run.threads), 0, 1024, "0", .help = "0: the file's, or one a core", .value = "N"},
};

typedef struct ModelRun {
    TrainRun run;
    char *tokenizer_json;
    size_t tokenizer_bytes;
    Tokenizer *tokenizer;
    int bos;
    Model start; // whose weights training begins with; empty: none
    ModelWeights weights;
    char start_name[SHA256_TEXT];
    FrozenModel teacher; // whose distributions it learns; empty: none
    char *start_dir, *teacher_dir;
} ModelRun;

// The mask of a draft that guesses `parallel` tokens in one forward: the first guess needs none.
static bool find_mask(TrainFile *f, const Tokenizer *t, Error *e) {
    f->config.masks = f->parallel - 1;
    if (!f->config.masks) return true;
    if (!f->mask)
        return error_input(e, "train: 'parallel' needs 'mask', a piece of '%s' that no text has",
                           f->tokenizer);
    f->config.shape.mask_token = train_find_piece(t, f->mask);
    return f->config.shape.mask_token > 0 ||
           error_input(e, "'%s' has no piece '%s' behind its first one; name another as mask", f->tokenizer,
                       f->mask);
}

static bool find_specials(ModelRun *m, Error *e) {
    LOCAL(ids_release) IdList empty = {0};
    if (!tokenizer_encode(m->tokenizer, "", 0, true, &empty, e)) return false;
    m->bos = empty.count ? empty.ids[0] : -1;
    m->run.eos = train_find_piece(m->tokenizer, m->run.file.eos);
    if (m->run.eos < 0)
        return error_input(e, "'%s' has no piece '%s' to end documents with; name it as eos",
                           m->run.file.tokenizer, m->run.file.eos);
    return find_mask(&m->run.file, m->tokenizer, e);
}

static bool open_start(ModelRun *m, const char *dir, Error *e) {
    if (!dir) dir = m->run.file.start;
    if (!dir) return true;
    dir = m->start_dir = shipped_model(dir, e);
    if (!dir) return error_within(e, "start");
    output_reads(&m->run.out, dir);
    m->run.file.config.start = &m->start;
    m->run.file.config.start_name = m->start_name;
    if (!model_open(&m->start, &m->weights, dir, e)) return false;
    shape_warn(&m->start, dir);
    if (model_coded(&m->start))
        return error_input(e,
                           "'%s' has weights of %d bits, which training can't start from: give its original",
                           dir, model_coded(&m->start)->codes.bits);
    return model_check_finite(&m->start, &m->weights, e) &&
           model_identity(&m->weights, dir, m->start_name, e);
}

// A start's loss is of the text; a checkpoint's needs the run's teacher.
static bool open_teacher(ModelRun *m, Error *e) {
    TrainFile *f = &m->run.file;
    if (!f->teacher || (m->run.looks && m->run.fresh)) return true;
    m->teacher_dir = shipped_model(f->teacher, e);
    if (!m->teacher_dir) return error_within(e, "teacher");
    output_reads(&m->run.out, m->teacher_dir);
    f->config.teacher = &m->teacher.choice;
    return frozen_open(&m->teacher, m->teacher_dir, &f->config, &m->run.line, e);
}

// Outputs are of the model that is there.
static bool open_run(ModelRun *m, const char *config, const TrainArguments *o, Error *e) {
    const char *start = o->start, *path;
    Shape *s = &m->run.file.config.shape;
    if (!train_file_open_model(&m->run.file, config, &o->run, e)) return false;
    path = m->run.file.tokenizer;
    if (!file_read(path, MOST_TOKENIZER_BYTES, &m->tokenizer_json, &m->tokenizer_bytes, e)) return false;
    m->tokenizer = tokenizer_parse(m->tokenizer_json, m->tokenizer_bytes, path, e);
    if (!m->tokenizer || !find_specials(m, e)) return false;
    if (!open_start(m, o->outputs && !start ? m->run.file.out : start, e) || !open_teacher(m, e))
        return false;
    s->vocab = s->real_vocab = tokenizer_size(m->tokenizer);
    m->run.tokenizer = m->tokenizer;
    return train_run_open(&m->run, e);
}

static bool write_model(ModelRun *m, const char *dir, Error *e) {
    ExportNotes notes = {.bos = m->bos,
                         .eos = m->run.eos,
                         .held_out_loss = m->run.held_out,
                         .tokenizer = m->run.file.tokenizer};
    LOCAL_MEMORY char *path = file_path(dir, "tokenizer.json");
    bool ok = output_add(&m->run.out, path, &(OutputKind){0}, m->tokenizer_json, m->tokenizer_bytes, e) &&
              export_model(&m->run.trainer, &notes, dir, &m->run.out, e);
    if (ok) fprintf(m->run.tell, "wrote the model to %s\n", SHOWN(dir));
    return ok;
}

// Where a text has more domains than one. A teacher's distributions are not the text.
static bool show_domains(TrainRun *r, Error *e) {
    DomainLosses losses;
    LOCAL_TEXT text = {0};
    if (!r->trainer.held_out.count || r->file.config.teacher) return true;
    if (!domains_look(r, &losses, e)) return false;
    domains_text(&losses, &text);
    if (losses.count > 2) fputs(text_get(&text), r->tell);
    return true;
}

// A checkpoint has three numbers of four bytes a parameter; its model one of two.
static bool take_snapshot(ModelRun *m, const char *dir, Error *e) {
    int steps = m->run.trainer.step;
    if (!steps)
        return error_input(e, "'%s' has nothing yet to take a snapshot of: train first", m->run.checkpoint);
    if (!export_check(dir, false, m->run.file.tokenizer, &m->run.out, e) || !train_run_held_out(&m->run, e) ||
        !write_model(m, dir, e))
        return false;
    fprintf(m->run.tell, "go on from it with: --fresh --start %s --begun %d\n", SHOWN(dir), steps);
    return true;
}

static bool write_outputs(ModelRun *m, const TrainArguments *o, Error *e) {
    const AnswerOptions *a = &o->run.answers;
    DomainTexts outputs = {.file = o->outputs,
                           .model = o->start ? o->start : m->run.file.out,
                           .prompts = a->prompts ? a->prompts : 10,
                           .tokens = a->tokens};
    output_reads(&m->run.out, m->run.file.tokenizer);
    if (file_exists(outputs.file) && !o->run.force)
        return error_input(e, "'%s' is there: give another file, or --force", outputs.file);
    return output_check(&m->run.out, outputs.file, &(OutputKind){0}, e) &&
           domains_write(&m->run, &outputs, e);
}

static bool train_model(const TrainArguments *o, const char *config, int *code, Error *e) {
    ModelRun m = {.run = {.stop_after = o->run.stop_after,
                          .figure = o->run.figure,
                          .fresh = o->run.fresh || o->outputs,
                          .looks = o->loss || o->outputs || o->snapshot,
                          .tell = o->run.json ? stderr : stdout,
                          .out.force = o->run.force}};
    output_reads(&m.run.out, config);
    bool done = false;
    line_begin(&m.run.line, true);
    bool ok = open_run(&m, config, o, e);
    if (ok && o->outputs) ok = write_outputs(&m, o, e);
    else if (ok && o->snapshot) ok = take_snapshot(&m, o->snapshot, e);
    else if (ok && o->loss && !m.run.trainer.held_out.count)
        ok = error_input(e, "a loss needs documents that are held out; set held_out");
    else if (ok && o->loss && !m.run.trainer.step && !m.run.file.config.start)
        ok = error_input(e, "'%s' has nothing yet to measure: train first, or give --start MODEL",
                         m.run.checkpoint);
    else if (ok && o->loss) ok = train_run_held_out(&m.run, e);
    else
        ok = ok && train_run(&m.run, &done, code, e) &&
             (!done ||
              (write_model(&m, m.run.file.out, e) && show_domains(&m.run, e) && train_run_figure(&m.run, e)));
    if (ok && o->run.json) ok = train_run_json(&m.run, e);
    train_run_close(&m.run);
    model_close(&m.weights);
    frozen_close(&m.teacher);
    tokenizer_close(m.tokenizer);
    MEM_FREE(m.tokenizer_json, m.start_dir, m.teacher_dir);
    return ok;
}

static bool run(void *options, CommandLine *line, Error *e) {
    const TrainArguments *o = options;
    interrupt_catch();
    if (line->words.count < 2 && o->run.answers.datasets.count)
        return error_input(e, "train: --dataset is for what learns from a model's answers: 'outpace train "
                              "adapter|heads|eagle|eagle3|mtp|dflash|dspark MODEL --dataset NAME'");
    if (line->words.count == 0 && o->run.preset) return train_model(o, NULL, &line->code, e);
    if (line->words.count == 1) return train_model(o, line->words.items[0], &line->code, e);
    int what = line->words.count == 2 ? text_among(line->words.items[0], TOP_NAMES, TOP_KINDS) : -1;
    if (what >= 0) return train_adapter((OnTop)what, line->words.items[1], &o->run, &line->code, e);
    return command_misused(line->command, e);
}

const Command command_train = {
    .name = "train",
    .usage = "FILE.yaml | --preset NAME | adapter|heads|eagle|eagle3|mtp|dflash|dspark MODEL [OPTIONS]",
    .summary = "train a small model from text, or an adapter or heads for a model",
    .arguments = {0, 2},
    .kept = "the last checkpoint, if one was written, is kept: the same command goes on from it",
    COMMAND_OPTIONS(OPTIONS, TrainArguments),
    .run = run};
