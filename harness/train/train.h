// A training run as the program carries it out, of a model or of adapters and heads: a YAML file, text to
// tokens, steps with a progress line, checkpoints, and an end that an interrupt may bring earlier.
#pragma once
#include "engine/engine.h"
#include "engine/train/trainer.h"
#include "harness/config/values.h"
#include "harness/train/curve.h"
#include "harness/cli/terminal.h"

// --- the file (config.c) ---------------------------------------------------------------------------------

// The name of a part of the text: a key of `domains`, or a file's name without directory and extension.
typedef struct DomainName {
    const char *text;
    int length;
} DomainName;

// One flat YAML mapping, read strictly; texts belong to the tree. An adapter's file has neither shape nor
// tokenizer, which are its target's, and everything in it has a default.
typedef struct TrainFile {
    const YamlNode *at;
    const char *out;             // directory of the model, or of the adapter
    const char *tokenizer;       // a tokenizer.json
    const char *eos;             // the piece that ends a document
    const char *start;           // the model whose weights it starts from, by path or name; NULL: random ones
    const char *teacher;         // the model whose distributions are learnt; NULL: the text's tokens
    const char *separator, *isa; // separator NULL: a file is a document
    Words files;                 // paths and patterns, including those of `domains`
    DomainName domains[WORDS_MAX]; // (files.count)
    const YamlNode *domain_map;
    Words layers;            // whose states eagle3, dflash read; empty: as adapter_captures chooses
    int forwards, head_size; // forwards of EAGLE's heads, 0: their default; head_size 0: width / heads
    int draft_vocab;         // eagle3's tokens; 0: all; -1: a quarter
    bool normed_heads;       // eagle3's
    int state, recycle;      // mtp's: 0 raw, 1 normed
    int draft_layers, block, markov_rank; // of dflash, dspark and P-EAGLE; 0: their default
    int parallel;     // tokens that a draft guesses in one forward (PARD, P-EAGLE); 1: it isn't taught to
    const char *mask; // the piece in place of an unknown token, for `parallel` and dflash
    int checkpoint_every, held_out_every; // steps
    int optimizer, schedule, decays;      // the enums of config.optimizer
    double norm_epsilon;
    double keep; // GB of memory for states of a target or teacher; -1: half of the free memory
    YamlTree tree;
    TrainConfig config; // without the vocabulary, which is the tokenizer's
} TrainFile;
typedef enum { TRAIN_MODEL, TRAIN_ADAPTER } TrainKind;

// The message of an error has file, line, column and the fix. Release with train_file_release.
bool train_file_parse(TrainFile *f, const char *bytes, size_t n, const char *place, TrainKind kind, Error *e);

// The target's answers to prompts of datasets, to learn from (answers.c).
typedef struct AnswerOptions {
    const char *file; // where they are kept; NULL: "OUT.answers.jsonl"
    Words datasets;   // none: there are no answers
    const char *split, *template;
    int prompts, tokens; // of each dataset, 0: all; of each answer, at most
    const char *model;   // the target's directory, and its engine: by train_adapter
    const Engine *beside;
} AnswerOptions;

// The command line replaces the file's keys; a preset fills in keys that the file doesn't have.
typedef struct TrainOptions {
    const char *preset, *tokenizer, *out, *separator; // NULL: not given
    Words files;
    int steps, batch, begun, stop_after, threads; // 0: not given
    double rate;                                  // 0: not given
    const char *figure;                           // as in TrainRun
    bool fresh, force, json;
    // of an adapter or heads
    const char *config, *variant;       // config: its file; NULL: none
    int exit_layer, heads, draft_vocab; // draft_vocab -1: not given
    AnswerOptions answers;
} TrainOptions;

// path: NULL if there is no file; preset, out, tokenizer and files must then be given.
bool train_file_open_model(TrainFile *f, const char *path, const TrainOptions *o, Error *e);
bool train_file_open_adapter(TrainFile *f, const char *path, const TrainOptions *o, Error *e);
void train_file_set_context(TrainFile *f, int context); // and the pass, if the file has none
void train_file_release(TrainFile *f);                  // accepts an empty one

// --- a run (train.c) -------------------------------------------------------------------------------------

typedef struct DocumentOrigin {
    int file;     // of the file's files: where a document of the corpus is from
    size_t bytes; // of its text
} DocumentOrigin;

typedef struct TrainRun {
    TrainFile file; // this and the following are set by the caller
    const Tokenizer *tokenizer;
    int eos;                      // ends a document
    int stop_after;               // steps; 0: at the end
    bool fresh;                   // ignore a checkpoint
    bool adapter, looks;          // trains an adapter; trains nothing and writes nothing
    const AnswerOptions *answers; // of an adapter, to learn from after the files; NULL: none
    const char *figure;           // draw the curve at the end to this .svg, .png or .pdf; NULL: don't
    FILE *tell;                   // of lines for people
    Output out;                   // the files that are read, and whether all may be replaced
    Line line;
    Corpus corpus;           // from here on it is the run's
    DocumentOrigin *origins; // (corpus.documents)
    size_t origin_capacity;
    Trainer trainer;
    Curve curve;
    char *checkpoint;                    // path
    double held_out;                     // the last held-out loss; NAN: none yet
    double start, shown;                 // seconds
    int first_step, shown_step, reading; // reading: index of the file
} TrainRun;

// Checks that the result may be written and has space, reads the text, and resumes from a checkpoint.
bool train_run_open(TrainRun *r, Error *e);
char *train_run_beside(const TrainRun *r, const char *ending);    // "OUT.ENDING", next to the checkpoint
void train_run_add(TrainRun *r, const IdList *ids, size_t bytes); // a document of the text
bool train_run_answers(TrainRun *r, Error *e); // adds r->answers, those that are missing made before
void train_run_close(TrainRun *r);             // accepts an empty or half-opened one; releases the file too

// Steps until the end, an interrupt, or stop_after, then writes a checkpoint. *done: it reached the end.
bool train_run(TrainRun *r, bool *done, int *code, Error *e);
bool train_run_figure(const TrainRun *r, Error *e); // draws r->figure, once the result is written
bool train_run_held_out(TrainRun *r, Error *e);     // measures and prints the held-out loss
bool train_run_json(const TrainRun *r, Error *e);   // prints one object, at the end

// --- adapters and heads (train.c) ------------------------------------------------------------------------

// A model that runs in the engine while another model learns from it.
typedef struct FrozenModel {
    Engine engine;
    char name[SHA256_TEXT + 32]; // its content, the kernels that run it, and f16
    TargetChoice choice;         // the caller sets its kind
} FrozenModel;

// With the pass, the threads and the context of c.
bool frozen_open(FrozenModel *f, const char *dir, const TrainConfig *c, Line *line, Error *e);
void frozen_close(FrozenModel *f); // accepts an empty one

// What is trained on top of a model, by the word after `outpace train`.
typedef enum {
    TOP_ADAPTER,
    TOP_HEADS,
    TOP_EAGLE,
    TOP_EAGLE3,
    TOP_MTP,
    TOP_DFLASH,
    TOP_DSPARK,
    TOP_KINDS
} OnTop;
extern const char *const TOP_NAMES[TOP_KINDS];
int train_find_piece(const Tokenizer *t, const char *text); // -1: the tokenizer has no such piece
bool train_adapter(OnTop what, const char *model, const TrainOptions *o, int *code, Error *e);
