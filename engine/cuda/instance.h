// The insides of an open CUDA instance, shared by cuda.c (its life), fit.c (which card has which layers),
// memory.c (what it allocates), weights.c (what it loads), phases.c (how long it works), step.c and layers.c
// (a run), head.c (what comes out), fast.c (products by cuBLASLt), hidden.c (states that go to another card
// or instance); cards.h, of what is on several cards.
//
// Everything is allocated at open, for the largest step. A call puts copies and kernels into one stream and
// comes back; only what is read back is waited for (head, get_hidden), and a commit that nothing was read
// before, so that the time of a prefill is its own.
//
//      host:   fill pinned memory ----+                        +--> ids, logits
//      stream:                        copy, graph of layers, head
#pragma once
#include "engine/core/backend.h"
#include "engine/cuda/kernels.h"
#include "engine/cuda/phases.h"
#include "engine/cuda/runtime.h"
#include "engine/model/model.h"

// Products of a layer, and the vectors beside them. Absent: data NULL.
typedef struct GpuLayer {
    Matrix qkv, o;   // rows of q, k, v one after another, q's and k's in rotary pairs
    Matrix in, down; // in: gate and up in turns, or gate alone
    bool gated;      // in has up
    float *attention_norm, *qkv_bias, *qk_norm, *mlp_norm, *gate_bias; // NULL: none
} GpuLayer;

// Activations by what they are; of the form that the product wants which reads them.
typedef enum { ROLE_NORMED, ROLE_MIXED, ROLE_GATED, ROLES } Role;

// Pinned memory on its way to the device: it is not written again before it has been read.
typedef struct Staging {
    void *host;
    size_t bytes;
    void *event;
    bool sent;
} Staging;

// Launches of a run, captured once for all runs alike. graph NULL: not yet, or it cannot be (no_graphs).
typedef struct StepGraph {
    int most, tiles, spans, a, b; // most 0: free
    void *graph;
    unsigned long used; // when last
} StepGraph;
enum { GRAPHS = 48, STEP_STAGINGS = 2 };

typedef struct Cuda Cuda; // a card
struct Cuda {
    Cuda *first, *next; // the instance's cards in the order of their layers; next NULL: the last
    int from, to;       // its layers
    Cuda **holder;      // the first card's: (max_nodes), which card has the newest hidden state of a node
    Cuda *lender;       // the first card's: the one whose stream takes hidden states (hidden.c)
    void *passed;       // event: of this stream's work before a copy between cards, or of the copy
    char names[512], isa[512]; // the first card's, of all
    const Model *model;
    Compute compute;
    int ordinal;
    GpuFacts facts;
    int context, max_nodes, slots;
    Cache cache; // its window and ring
    Heads heads;
    void *stream;
    bool shares_stream; // it is another instance's
    Mark marks[MARKS];  // (mark_count): since the stream was last waited for
    int mark_count;
    bool unread; // a run is in the stream that nothing was read of
    double seconds[PHASES], waited_s;

    // device memory; every block is in `blocks` too
    bool planning; // nothing is allocated, only summed up
    void **blocks;
    size_t block_count, block_capacity;
    size_t weight_bytes, cache_bytes, step_bytes;
    bool rounded; // weights were, from f16 to bf16 or the other way round

    GpuLayer *layers;
    Matrix embedding, head;
    float *final_norm;
    void *cache_k, *cache_v, *step_k, *step_v;
    Step *step;      // and its tiles, turns and nodes
    RowList *chosen; // nodes that the head looks at
    CommitList *moves;
    float *hidden; // (max_nodes, width)
    void *q;
    float *qkv; // (rows, q k v): sums of a model that norms heads; else NULL
    double *frequency;
    float *cosine, *sine;
    Activations roles[ROLES][FORMS];
    struct Fast *fast; // NULL: exact
    float *parts, *attention_parts;
    size_t attention_floats;
    unsigned *done, *attention_done, *overflow; // overflow: the least place that was told
    float *logits;                              // (PANEL_ROWS, max(vocab, width))
    int *top_id, *slice_id;
    float *top_logit, *slice_logit;
    DrawAsks *draw_asks;
    double *draw_answers;             // (nodes) chances, (PANEL_ROWS) confidences, (PANEL_ROWS) ids, closely
    float *draw_p;                    // (vocab)
    int held[PANEL_ROWS], held_count; // nodes whose logits are there
    Staging steps[STEP_STAGINGS], list, rows, asks;
    int turn;                   // of the step stagings
    int *host_id;               // pinned: (PANEL_ROWS, TOP_MAX), then as many logits
    float *host_logit, *host_p; // host_p: (vocab)
    unsigned *host_overflow;
    double *host_answers; // as draw_answers
    StepGraph graphs[GRAPHS];
    unsigned long graph_clock;
    bool no_graphs; // a step could not be recorded
};

// memory.c. A block of zeros where `zero`; counted in *total. False with e filled.
bool cuda_take(Cuda *c, void *out, size_t bytes, bool zero, size_t *total, Error *e);
bool cuda_take_buffers(Cuda *c, Error *e); // everything but weights
bool cuda_take_pinned(Cuda *c, Error *e);
void cuda_give_all(Cuda *c);
bool cuda_ok(const Cuda *c, int code, const char *what, Error *e);
// Memory that may be written now: waits for the last copy from it. And the copy.
void *staging_begin(Staging *s);
bool staging_send(Cuda *c, Staging *s, void *to, size_t bytes, Error *e);

// weights.c. Describes all matrices, and allocates them; fills them.
bool cuda_take_weights(Cuda *c, Error *e);
bool cuda_load_weights(Cuda *c, const Progress *progress, Error *e);

// phases.c. What goes into the card's stream from now on is of this phase (PHASE_IDLE: nothing does), and the
// card is this thread's. Waits for all that is in the streams of the instance's cards, and counts its time.
bool cuda_begin(Cuda *c, Phase phase, Error *e);
bool cuda_wait(Cuda *c, Error *e);
bool cuda_take_events(Cuda *c, Error *e);
void cuda_give_events(Cuda *c);
// step.c. A run; spans of positions, at most, that a tile of rows at positions [from, to] sees.
bool cuda_step(Cuda *c, const StepRun *run, Error *e);
int cuda_spans(const Cuda *c, int from, int to);
// turns.c. Writes a step of at most `most` rows, and gives its bytes; those of the largest; tiles, at most.
size_t cuda_write_step(const Cuda *c, const StepRun *run, int most, Step *to);
size_t cuda_step_size(const Cuda *c);
int cuda_tiles_limit(const Cuda *c);
// layers.c. Puts the kernels of a run's layers into the stream.
void cuda_layers(Cuda *c, const StepGraph *run);

// head.c
bool cuda_head(Cuda *c, const int *nodes, int count, unsigned want, HeadOut *out, Error *e);
bool cuda_distribution(Cuda *c, int node, const Sampling *sampling, int vocab, float *p, Error *e);
bool cuda_normed(Cuda *c, const int *nodes, int count, float *rows, Error *e);
// Puts the normed states of at most PANEL_ROWS nodes into device memory.
bool cuda_norm_to(Cuda *c, const int *nodes, int count, float *rows, Error *e);

int cuda_rows_limit(const Cuda *c); // that activations have room for
static inline const Activations *cuda_role(const Cuda *c, Role role, const Matrix *reader) {
    return &c->roles[role][reader->form];
}
