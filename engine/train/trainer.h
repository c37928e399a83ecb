// A training run: steps over a corpus, held-out loss, and everything that a checkpoint has to remember.
//
// Of the same configuration, corpus and kernel set every run gives the same weights, bit for bit, whatever
// the number of threads and however often it was stopped and resumed.
#pragma once
#include "engine/train/corpus.h"
#include "engine/train/optimizer.h"

typedef struct TrainConfig {
    Shape shape;
    OptimizerOptions optimizer;
    int batch;         // rows a step
    int pass;          // rows that go through the network together; gradients add up over batch / pass passes
    double held_out;   // share of the documents; 0: none
    int held_out_rows; // most that are looked at
    uint64_t seed;
    int threads;     // 0: one a core
    const char *isa; // NULL: the best there is
} TrainConfig;

typedef struct Trainer {
    TrainConfig config;
    const Corpus *corpus;
    Network network;
    Optimizer optimizer;
    Feed feed, held_out;           // held_out.count is 0 where nothing is held out
    int *tokens, *targets, *start; // (pass)
    int step;                      // steps done
    double loss;                   // of the last one
} Trainer;

typedef struct StepReport {
    double loss;   // mean over the batch, before the step
    double length; // of the gradient
    double rate;
} StepReport;

// Checks the configuration; weights start from the seed. The corpus must outlive the trainer.
bool trainer_open(Trainer *t, const TrainConfig *c, const Corpus *corpus, Error *e);
void trainer_close(Trainer *t); // takes an empty or half-built one

// One step; nothing is allocated in it.
StepReport trainer_step(Trainer *t);

// Mean loss over the first held_out_rows rows that are held out; nothing is learned. NAN if there are none.
double trainer_held_out(Trainer *t);
