// The time of a step on a machine, from a few numbers: the bytes it must read, the operations it must
// compute, and how the work divides into tiles (N-Grammys, section 3).
//
// Each product of a layer takes the longer of two times, or their sum where they do not overlap: its bytes at
// the memory's speed, and its tiles at the processors'. Tiles come in waves: 109 tiles on 108 processors take
// as long as 216. Experts are read once each, as many as the rows touch. Attention reads the cached context
// once, or once a sequence where rows repeat it; a copied cache costs that copy too, plain attention the way
// of its scores. With the shares at 1 a data sheet's machine is a floor; fitted (surface.h) it is a model.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { HARDWARE_NAME = 80 };

typedef struct Hardware {
    char name[HARDWARE_NAME];
    // from the data sheet, or measured
    double bytes_per_s;      // memory, read
    double operations_per_s; // products in 16 bits, dense; a multiply-add counts two
    double memory_bytes;
    int processors;              // that run one tile each at a time
    int tile_rows, tile_columns; // largest tile of a product's output
    int least_rows;              // tiles have fewer rows where the product has, down to these
    double launch_s;             // of one kernel after another
    int launches;                // kernels of a layer
    // reached shares: fitted, else 1, and 0 for step_s
    double read_share, compute_share;
    double cache_share;     // of the speed that reads reach, in attention
    double attention_share; // of operations_per_s, in attention
    double row_passes;      // times that a row's activations pass through memory in a layer, outside products
    double overlap;         // p of (a^p + b^p)^(1/p), from 1 (reading and computing take turns) up
    double step_s;          // of a step, whatever it runs
    int most_rows;          // of the steps that they were fitted to; 0: not known
    int head_width;         // a score costs as much as one of so wide a head; 0: by its own head's width
} Hardware;

// A mixture of experts in place of a layer's MLP: each row runs `chosen` of `count` experts.
typedef struct StepExperts {
    int count, chosen; // count 0: the model has none
    int width;         // of one expert's MLP
    int shared;        // of the MLP that all rows run beside them; 0: none
    double share;      // of the layers that have them, above 0
} StepExperts;

// A decoder's widths, as far as a step's cost goes.
typedef struct StepModel {
    int layers, width, q_width, kv_width, mlp_width, vocab;
    int heads;          // of queries; 0: not known
    int window;         // 0: none
    int local_window;   // of some layers in its place
    double local_share; // these layers, of all
    bool ungated;       // an MLP has two products, not three
    StepExperts experts;
    int attention_width;              // of the input of q, k and v; 0: width
    int fc_width;                     // of the input of a product in front of a layer; 0: there is none
    double weight_bytes, cache_bytes; // of one number
    double head_bytes, plain_bytes;   // of the LM head; of routers and adapters; 0: weight_bytes
    double score_bytes; // that all heads of a layer move for a row and a key, where attention is plain
    bool plain;         // it writes its scores to memory and reads them, masked ones too, as frameworks do
} StepModel;

typedef struct StepPlan {
    int rows;       // nodes run, of all sequences
    int read;       // of them that reach the LM head
    int context;    // committed tokens, of a sequence
    int sequences;  // times such a context is read: 1, or the rows or sequences of a batch
    double seen;    // positions that the nodes see, summed over nodes
    bool copied;    // the cache is copied for each sequence of a batch, not viewed
    double experts; // that a layer reads; below 1: as many as the rows touch at random
} StepPlan;

typedef struct StepPrice { // seconds
    double products, attention, copy, rows, launches;
    double total;
} StepPrice;

// Sets the reached shares to those of a floor; the data sheet's part is set already.
void hardware_floor(Hardware *h);

// Whether the shares are still those of a floor: none was fitted.
bool hardware_is_floor(const Hardware *h);

// False with e filled (name and domain) if a number is outside its domain: above 0 and finite, overlap at
// least 1.
bool hardware_check(const Hardware *h, Error *e);

// Steps as the bench runs them; every node is read. tokens >= 1; k >= 1, w >= 0.
StepPlan step_chain(int tokens, int context);
StepPlan step_tree(int k, int w, int context);  // k chains of w below one root
StepPlan step_batch(int k, int w, int context); // k sequences of w + 1, each repeating the context

// The same step of so many sequences together, each with such a context of its own.
StepPlan step_shared(StepPlan one, int sequences);

// Makes weights codes of 8 or 4 bits, in groups with a scale of 16; the head's have 8. bits 16: none.
enum { CODE_GROUP = 32 }; // as 'model quantise' makes them
void step_model_code(StepModel *m, int bits, int group);

// The time of (rows, inner) x (inner, columns). rows >= 1; 0 columns cost nothing.
double hardware_product(const Hardware *h, int rows, int inner, int columns, double weight_bytes);

// How many times as long as one tile the product's tiles take. Fewer tiles than processors are split along
// the sum, so that all processors work on them.
double hardware_waves(const Hardware *h, int rows, int columns);

// Experts of a layer that at least one row runs, on average, where a row runs any of them as likely.
double experts_touched(const StepExperts *x, int rows);

StepPrice hardware_price(const Hardware *h, const StepModel *m, const StepPlan *step);

// configs/hardware/NAME.json: each number an object of "value" and "source"; one without a source is refused.
bool hardware_open(const char *path, Hardware *out, Error *e);
// The reached shares may be in the file, too, in the same form.
bool hardware_parse(const char *bytes, size_t n, const char *place, Hardware *out, Error *e);

// The text of such a file, for mem_free, with the sources of the data sheet's part and of the reached shares.
// NULL if a text is not UTF-8.
char *hardware_write(const Hardware *h, const char *sheet, const char *reached);

// --- recorded passes ------------------------------------------------------------------------------------

// Passes that ran on one machine, priced on another. A pass through layers costs these layers and a constant,
// one of the LM head the head. A priced model of another depth runs the same share of its layers. A step
// costs the sum over its passes.
typedef struct RecordedPass {
    double layers; // of the priced model, may be fractional; ignored if `head`
    bool head;     // the LM head over `rows`
    int rows, context;
    double count;  // passes like this
    int sequences; // that share it, each with such rows and context; 0: one
} RecordedPass;

// Seconds; of a shared pass, one sequence's part. h must pass hardware_check; rows >= 1. Each node sees the
// context and itself; the cache is viewed, not copied.
double recorded_price(const Hardware *h, const StepModel *m, const RecordedPass *pass);

// A prompt of `tokens` tokens in one pass without the head, which the first step runs. 0 tokens cost nothing.
double recorded_prefill(const Hardware *h, const StepModel *m, int tokens);

// Keys and values of `tokens` tokens read and written once, in `steps` steps.
double recorded_commit(const Hardware *h, const StepModel *m, double tokens, double steps);

// Bytes of the weights of layers and head, all experts.
double step_model_bytes(const StepModel *m);
