// A training run as the program carries it out, of a model or of adapters: text to tokens, steps with a
// progress line, checkpoints, and an end that an interrupt may bring earlier.
#pragma once
#include "engine/base/output.h"
#include "engine/text/tokenizer.h"
#include "engine/train/train.h"
#include "harness/program/line.h"
#include "harness/train/config.h"
#include "harness/train/curve.h"

// A document of the corpus: which of the file's files it is from, and the bytes of its text.
typedef struct DocumentOrigin {
    int file;
    size_t bytes;
} DocumentOrigin;

typedef struct TrainRun {
    // set by the caller
    TrainFile file;
    const Tokenizer *tokenizer;
    int eos;            // what ends a document
    int stop_after;     // steps; 0: at the end
    bool fresh;         // whatever checkpoint there is
    bool adapter;       // it is one that is trained
    bool looks;         // it trains and writes nothing
    const char *figure; // where the curve is drawn at the end, too: a path that ends in svg, png or pdf.
                        // NULL: nowhere
    Output out;         // what is read, and whether all may be replaced
    Line line;
    // the run
    Corpus corpus;
    DocumentOrigin *origins; // (corpus.documents)
    size_t origin_capacity;
    int reading; // the file
    Trainer trainer;
    Curve curve;
    char *checkpoint;    // path
    double held_out;     // loss, at the last look; NAN: none yet
    double start, shown; // seconds
    int first_step, shown_step;
} TrainRun;

// Asks first whether the result may be written, then reads the text, opens the trainer by file.config and
// goes on from a checkpoint if there is one; what the disk must have room for is known by then, and asked,
// too.
bool train_run_open(TrainRun *r, Error *e);
void train_run_close(TrainRun *r); // takes an empty or half-opened one; releases the file too

// Steps until the end, an interrupt, or as many as were asked for, and a checkpoint. *done: at the end; what
// was reached is then in r->held_out. *code as the program's.
bool train_run(TrainRun *r, bool *done, int *code, Error *e);

// Draws r->figure, where it is wanted: at the end, when what was trained is written.
bool train_run_figure(const TrainRun *r, Error *e);

// Looks at what is held out, and says what it saw.
bool train_run_held_out(TrainRun *r, Error *e);
