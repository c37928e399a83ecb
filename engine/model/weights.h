// Every weight of a model, described once: WEIGHT_ROWS.
//
// Binding to files, counts of bytes and parameters, the check for numbers that aren't finite, random and
// inflated models, training and the packing for a GPU are loops over these rows. A new weight is a member of
// Weight (model.h), a row here, and the code that computes with it.
#pragma once
#include "engine/model/model.h"
#include "engine/model/roles.h"
#include "engine/model/safetensors.h"

// The dimensions of weights.
typedef enum {
    AXIS_ONE,
    AXIS_RESIDUAL,
    AXIS_MLP,
    AXIS_EXPERTS,
    AXIS_EXPERT, // the width of one
    AXIS_SHARED,
    AXIS_VOCABULARY,
    AXIS_TOKENS,
    AXIS_POSITIONS,
    AXIS_ATTENTION, // the input of q, k and v
    AXIS_FC,
    AXIS_RANK, // of a Markov head (block.h); inputs and outputs of its G, inputs of W
    AXIS_GATE,
    AXIS_GATED,
    AXIS_CONFIDENCE,
    AXIS_Q,
    AXIS_K,
    AXIS_V,
    AXIS_O,      // columns of o: as many as rows of q
    AXIS_Q_NORM, // one head or all heads; these can't be inflated
    AXIS_K_NORM,
    AXES
} AxisName;

int axis_size(const Shape *s, int layer, AxisName axis);

typedef enum { WEIGHT_MATRIX, WEIGHT_NORM, WEIGHT_BIAS } WeightKind; // the last two are vectors

// How inflating (placement.h) fills the rows of a matrix that the small model lacks. First all is random.
typedef enum {
    FILL_RANDOM,
    FILL_SILENT,    // zero in the small model's columns: the output is zero
    FILL_EMBEDDING, // random, but the small model's own rows are zero in the added columns
} Fill;

typedef struct WeightRow {
    const char *name; // in transformers, without layer and ending; NULL: only adapters have this weight
    WeightKind kind;
    AxisName rows, columns;        // a vector has one row
    WeightGroup group;             // GROUPS: none
    const char *fused;             // the tensor of the whole group, in architectures that fuse it
    const char *gguf, *gguf_fused; // the same two in GGUF files
    enum { EVERY_LAYER, DENSE_LAYERS, SPARSE_LAYERS } layers; // those that have it
    bool optional;      // only some architectures have it, and they can't be trained
    Fill padded, added; // of padded rows, and of all rows in a layer that the small model lacks
} WeightRow;

extern const WeightRow WEIGHT_ROWS[WEIGHTS];

// Whether a layer of a model of this shape has the weight; for one of the whole model, `layer` doesn't
// matter.
bool weight_present(const Shape *s, int layer, Weight w);

// The first optional weight of a shape; WEIGHTS: none.
Weight weight_optional(const Shape *s);

// How a file stores a weight. All but the first are rearranged in memory when the model is opened.
typedef enum {
    STORED_AS_READ,
    STORED_LESS_ONE,     // one is added to each number
    STORED_TRANSPOSED,   // (columns, rows)
    STORED_ROW_A_HEAD,   // of a vector of all heads, (heads, head_dim)
    STORED_EACH_HEAD,    // of such a vector, each head's part as a tensor: NAME.0, NAME.1, ..
    STORED_HEAD_BY_HEAD, // rows of q, k and v take turns, a head of each
    STORED_PAIRED,       // rows of a head: both of each pair that rope turns, one pair after another
} StoredForm;

// A weight's stored name and size. A fused tensor holds several weights, each some of its rows; fused vectors
// are rows of it, all of one length.
typedef struct WeightSpec {
    char name[TENSOR_NAME]; // empty: the model doesn't have this weight
    Weight which;
    int layer; // -1: of the whole model
    int expert;
    int rows, columns; // of this weight
    int first_row;     // where it begins in the stored tensor
    int stored_rows;   // rows of the stored tensor
    int planes;  // the tensor holds this many such matrices, one for each expert; 0: it has two dimensions
    bool vector; // stored with one dimension (columns)
    int heads;   // of STORED_ROW_A_HEAD and STORED_EACH_HEAD
    StoredForm form;
} WeightSpec;

// The sizes of a weight of this layer that has a tensor of its own, without a name.
WeightSpec weight_sized(const Shape *s, int layer, Weight w);

// All weights of a model in the order of its files: embedding, layers, final norm, head.
int weights_count(const Model *m);
WeightSpec weights_at(const Model *m, int i);

// The name of a coded weight's scales. False if it is too long.
bool scales_name(char out[TENSOR_NAME], const char *weight);

// The tensor of a weight; `layer` doesn't matter for a weight of the whole model, `expert` only for one of an
// expert.
const Tensor *weight_tensor(const Model *m, int layer, int expert, Weight w);

// Allocates the layers, for a shape that is known, with tensors of every expert.
void weights_take_layers(Model *m, ModelWeights *w);

typedef struct Shard {
    Safetensors header;
    const unsigned char *data;
    const char *name;
} Shard;

// Maps the files of a directory, which its index names, as w->files (model.c). The caller closes what is open
// of the shards (MODEL_MAX_SHARDS) after a failure, too.
bool shards_open(ModelWeights *w, const char *dir, Shard *shards, Error *e);
void shards_close(const ModelWeights *w, Shard *shards);  // frees them; the files stay mapped
bool shards_hold(const ModelWeights *w, const Tensor *t); // all of its bytes, or they were rearranged

// The tensor of a head of STORED_EACH_HEAD, whose spec names that of head 0.
void weight_of_head(const WeightSpec *s, int head, char out[TENSOR_NAME]);

// Fills one Tensor of m from the shard, or nothing if the spec has no name.
bool weight_bind(Model *m, ModelWeights *w, const WeightSpec *s, const Shard *shard, const char *dir,
                 Error *e);

// Fills every Tensor of m from the shards. The caller has allocated the layers.
bool weights_bind(Model *m, ModelWeights *w, const Shard *shards, int count, const char *dir, Error *e);
