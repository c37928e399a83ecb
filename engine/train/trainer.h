// A training run, of a model or of an adapter: steps over a corpus, held-out loss, and everything that a
// checkpoint has to remember.
//
// Of the same configuration, corpus and kernel set every run gives the same weights, bit for bit, whatever
// the number of threads and however often it was stopped and resumed.
#pragma once
#include "engine/train/corpus.h"
#include "engine/train/optimizer.h"
#include "engine/train/target.h"

typedef struct TrainConfig {
    Shape shape; // of the model; of an adapter the target's, and its context is the longest document
    OptimizerOptions optimizer;
    int batch;         // rows a step
    int pass;          // rows that go through the network together; gradients add up over batch / pass passes
    double held_out;   // share of the documents; 0: none
    int held_out_rows; // most that are looked at
    uint64_t seed;
    int threads;                 // 0: one a core
    const char *isa;             // NULL: the best there is
    const Model *start;          // whose weights a model starts from; NULL: random ones
    const char *start_name;      // model_identity: a checkpoint goes on with the same start only
    const TargetChoice *adapter; // of an adapter: its target, and what it is. NULL: a model
    const TargetChoice *teacher; // whose distributions a model learns in place of tokens, where its kind is
                                 // not read; same vocabulary. NULL: tokens
    Progress progress;           // asked before each pass
} TrainConfig;

typedef struct Trainer {
    TrainConfig config;
    const Corpus *corpus;
    Target target;                           // of an adapter, or a model's teacher
    Network networks[ADAPTER_HEADS_MAX];     // (count): the model, the adapter, or Medusa's heads
    Optimizer optimizers[ADAPTER_HEADS_MAX]; // (count)
    int count;
    Feed feed, held_out;                 // held_out.count is 0 where nothing is held out
    int *tokens, *targets, *start;       // (pass)
    int step;                            // steps done
    double loss;                         // of the last one
    double agreement[ADAPTER_HEADS_MAX]; // (count): share of the held-out rows whose likeliest token is the
                                         // target's, or the text's where there is none; at the last look
    Error failure; // why a target could not run, or that a step was interrupted; losses are NAN then
} Trainer;

typedef struct TrainedStep {
    double loss;   // mean over the batch, before the step; of Medusa's heads the weighted mean
    double length; // of the gradient, of all networks together
    double rate;
} TrainedStep;

// Checks the configuration; weights start from the seed, or a model. The corpus must outlive the trainer.
bool trainer_open(Trainer *t, const TrainConfig *c, const Corpus *corpus, Error *e);
void trainer_close(Trainer *t); // takes an empty or half-built one

// One step; nothing is allocated in it. Where it fails, weights, reading and the number of steps are those
// before it: a checkpoint can still be written, and nothing else.
TrainedStep trainer_step(Trainer *t);

size_t trainer_parameters(const Trainer *t);

// Mean loss over the first held_out_rows rows that are held out; nothing is learned. NAN if there are none.
double trainer_held_out(Trainer *t);
