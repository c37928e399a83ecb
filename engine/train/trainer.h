// Training of small models, adapters and heads: backward passes and AdamW or Muon. The page of this folder.
//
//      kernels     the products and row operations of each instruction set, forward and backward
//      parameters  a model's numbers by name
//      network     a whole model: loss and gradients of a batch (pass.h: forward.c, backward.c, head.c,
//                  eagle.c, attention.c, linear.c)
//      optimizer   updates the parameters
//      corpus      documents, their split, batches, and n-grams
//      target      the frozen model that an adapter, or a small model, learns from
//      learn       a tokenizer
//      trainer     steps over a corpus, held-out loss, checkpoints, and the model as files
//
// Opening allocates everything; a step allocates nothing. Every run with the same configuration, corpus and
// kernel set gives the same weights, bit for bit, for any number of threads and however often it was stopped
// and resumed.
#pragma once
#include "engine/base/output.h"
#include "engine/train/corpus.h"
#include "engine/train/optimizer.h"
#include "engine/train/target.h"

typedef struct TrainConfig {
    Shape shape; // of the model; for an adapter the target's, with the longest document as its context
    OptimizerOptions optimizer;
    int batch;         // rows a step
    int pass;          // rows that go through the network together; a batch is one or more passes
    double held_out;   // share of the documents; 0: none
    int held_out_rows; // maximum that trainer_held_out reads
    int masks;         // consecutive mask tokens, shape.mask_token, of a parallel draft (PARD) or in a block
                       // after its first row; 0: none
    uint64_t seed;
    int threads;                 // 0: one per core
    const char *isa;             // NULL: the best of this processor
    const Model *start;          // whose weights a model starts from; NULL: random ones
    const char *start_name;      // model_identity: a checkpoint resumes only with the same start
    const TargetChoice *adapter; // the target of an adapter, and its kind. NULL: a model
    const TargetChoice *teacher; // whose distributions a model learns instead of tokens; its kind is ignored,
                                 // its vocabulary is the model's. NULL: tokens
    size_t keep;       // bytes of memory for states of the target or teacher, which are then run only once
    Progress progress; // called before each pass
} TrainConfig;

typedef struct Trainer {
    TrainConfig config;
    const Corpus *corpus;
    int *draft_ids;                          // of an EAGLE-3 head for fewer tokens, the commonest; else NULL
    Target target;                           // of an adapter, or a model's teacher
    Network networks[ADAPTER_HEADS_MAX];     // (count): the model, the adapter, or Medusa's heads
    Optimizer optimizers[ADAPTER_HEADS_MAX]; // (count)
    int count;
    Feed feed, held_out;           // held_out.count is 0 if nothing is held out
    int *tokens, *targets, *start; // (pass)
    int *masked, *masked_start;    // (pass): what is read instead, and where its documents or blocks begin
    size_t *places;                // (pass)
    int step;                      // steps done
    double loss;                   // of the last step
    // Of each network, forward of an EAGLE head, or slot of blocks (trainer_parts): the share of the held-out
    // rows whose likeliest token is the target's (the text's without one), at the last trainer_held_out.
    double agreement[PARTS_MAX];
    Error failure; // why the target failed, or that a step was interrupted; losses are NAN then
} Trainer;

typedef struct TrainedStep {
    double loss;   // mean over the batch, before the step; for Medusa's heads the weighted mean
    double length; // of the gradient, of all networks together
    double rate;
} TrainedStep;

// Whether numbers of steps, rows and vocabulary fit each other: before a text is read, or made.
bool trainer_check_config(const TrainConfig *c, Error *e);

// Checks the configuration, and fills the weights by the seed or from a model. The corpus must outlive the
// trainer.
bool trainer_open(Trainer *t, const TrainConfig *c, const Corpus *corpus, Error *e);
void trainer_close(Trainer *t); // takes an empty or half-built one

// One step. If it fails, t->failure is filled, and weights, feed and the number of steps are those before it;
// after that the trainer can only write a checkpoint.
TrainedStep trainer_step(Trainer *t);

size_t trainer_parameters(const Trainer *t);
int trainer_parts(const Trainer *t);

// Mean loss over the first held_out_rows held-out rows; NAN if there are none, or t->failure is filled.
double trainer_held_out(Trainer *t);

// --- checkpoints (checkpoint.c) --------------------------------------------------------------------------

// The whole state of a run in one safetensors file, so that a killed run resumes to the same result, bit for
// bit.
//
//      NAME          F32  a parameter, under its Hugging Face name
//      NAME.mean     F32  the optimiser's moving average of its gradient
//      NAME.square   F32  AdamW's moving average of the gradient's square; Muon has none
//      progress      I64  steps done; epoch, document and offset of the feed
//      loss          F64  of the last step
//      identity      U8   SHA-256 (as text) of configuration, kernel set and corpus
//
// Random numbers are functions of the seed and of the feed's place (engine/base/random.h), so there is no
// other state.
bool checkpoint_write(const Trainer *t, const char *path, Error *e);

// Reads into a trainer that was opened with the same configuration and corpus. Any other checkpoint is an
// Error, and leaves the trainer at its start.
bool checkpoint_read(Trainer *t, const char *path, Error *e);

// Whether a file is a checkpoint of any run; only such a file may be replaced by another checkpoint.
bool checkpoint_is(const char *path);

// --- the result (export.c) -------------------------------------------------------------------------------

// The trained model as a Hugging Face directory of the Llama kind, in bf16, which `outpace generate` and
// other programs run: config.json, generation_config.json, model.safetensors. The caller adds the tokenizer's
// files.
typedef struct ExportNotes {
    int bos, eos;          // ids, or -1
    double held_out_loss;  // for config.json; NAN: unknown
    const char *tokenizer; // the file that a model was trained with, which may already be in its directory
} ExportNotes;

// Checks before the training whether the result may go into `dir`, by made.h and by the files that `out`
// reads. tokenizer: as in ExportNotes; NULL for an adapter.
bool export_check(const char *dir, bool adapter, const char *tokenizer, const Output *out, Error *e);

// Makes `dir` if necessary. The model's files appear together with those that the caller added to `out`, all
// of them or, if there is no room for one, none; config.json comes last.
bool export_model(const Trainer *t, const ExportNotes *notes, const char *dir, Output *out, Error *e);

// An adapter's directory (engine/model/adapter.h), or an EAGLE head's in its authors' form
// (docs/models.md), in bf16 too; of the notes it uses only the loss, which is written with t->agreement.
bool export_adapter(const Trainer *t, const ExportNotes *notes, const char *dir, Output *out, Error *e);

// --- a tokenizer (learn.c) ---------------------------------------------------------------------------------

typedef struct Learner Learner;

enum { LEARN_MIN_VOCAB = 3 + 256 + 96 }; // specials, bytes, and ASCII's printable characters

Learner *learner_open(void);
void learner_close(Learner *l); // takes NULL

// Counts the words of one text. Bytes that are not UTF-8 are skipped.
void learner_add(Learner *l, const char *text, size_t n);

// Returns a tokenizer.json with `vocab` pieces, for mem_free; NULL with e filled if the text is too small for
// so many. Deterministic: of equal counts, the piece with the lower ids comes first.
char *learner_finish(Learner *l, int vocab, Error *e);
