// The insides of an open CUDA instance: its life (cuda.c), layers per card (fit.c, device.h), memory
// (memory.h, buffers.c, copies.c, weights.c), a run (turns.c, step.c) and its time (phases.c), outputs
// (head.c) and products by cuBLASLt (fast.c).
//
// Sequences that share steps are on the same cards, each with a cache and a range of the step area's nodes:
//
//      caches  | of sequence 0 | of sequence 1 | ..
//      nodes   | 0 .. max_nodes - 1 | max_nodes .. 2 max_nodes - 1 | ..   keys, values, states, angles
//
// All else is one for all of them: a step has rows of one sequence or of several, and a row has its node.
// Everything is allocated at open, for the largest step. A call puts copies and kernels into one stream and
// returns. The host waits only for data that it reads back (head, get_hidden), and for a commit after a run
// of which nothing was read, so that the time of a prefill is counted as its own.
//
//      host:   fill pinned memory ----+                        +--> ids, logits
//      stream:                        copy, graph of layers, head
#pragma once
#include "engine/core/backend.h"
#include "engine/cuda/layers.h"
#include "engine/cuda/memory.h"
#include "engine/cuda/kernels/outputs.h"
#include "engine/cuda/kernels/runtime.h"
#include "engine/model/model.h"

static inline int round_up(int n, int to) { return (n + to - 1) / to * to; }

// The launches of a run, captured once for all runs of these sizes. graph NULL: not captured.
typedef struct StepGraph {
    int most, a, b; // most 0: unused
    StepSizes sizes;
    bool copied, given; // it reads copies of the cache; some rows were given hidden states
    void *graph;
    unsigned long used; // graph_clock at the last use
} StepGraph;

typedef enum { PHASE_IDLE, PHASE_RUN, PHASE_HEAD, PHASE_COMMIT, PHASES } Phase;
enum { GRAPHS = 48, HEAD_GRAPHS = 5, STEP_STAGINGS = 2, MARKS = 64, TOPS_SIZE = 2 * TOPS + TREE_MAX_NODES };

// For all cards of an instance.
typedef struct CudaInstance {
    Cuda **holder;             // (nodes): the card with a node's newest hidden state
    int opened, capturing;     // sequences that were opened, and those that capture
    Move *moving;              // (moving_count): commits that wait for the next run
    int moving_count;          // at most `nodes`
    char names[512], isa[512]; // the cards' names, and what runs on them
} CudaInstance;

struct Cuda { // one card
    CudaInstance *instance;
    Cuda *first, *next; // the instance's cards in the order of their layers; the last has next NULL
    int from, to;       // its layers: [from, to)
    void *passed;       // event: this stream's work before a copy between cards, or the copy
    const Model *model;
    Compute compute;
    int ordinal;
    GpuFacts facts;
    int sequences;                 // that share steps
    int context, max_nodes, slots; // of one of them
    Cache cache;                   // only its window and ring
    Heads heads;
    void *stream;
    bool shares_stream, planning; // the stream is another instance's; nothing is allocated, only added up
    struct {
        Phase phase; // from the event on
        void *event;
    } marks[MARKS]; // (mark_count): since the last wait for the stream
    int mark_count;
    bool unread, stepped; // the stream has a run of which nothing was read; there was a run
    double seconds[PHASES], waited_s;
    // device memory; every block is in `blocks` too
    void **blocks;
    size_t block_count, block_capacity, weight_bytes, cache_bytes, step_bytes, kept_bytes;
    bool rounded, coded; // weights were rounded from f16 to bf16 or back; some are codes here
    size_t decoded;      // bytes of values that files have as codes
    GpuLayer *layers;
    Matrix embedding, positions, fc, head, markov; // markov: F of a block's draft
    int *names;       // (vocab) the tokens of its ids, of a draft with a vocabulary of its own; else NULL
    const int *named; // the list that they were copied from
    float *fc_bias, *token_norm, *fc_norm, *state_norm;
    void *cache_k, *cache_v, *step_k, *step_v, *q;
    void *copies_k, *copies_v; // (sequences, copies_room) of the caches, so many filled of each (copies.c)
    int copies[SEQUENCES_MAX], copies_room;
    Choices choices;                  // of how products are cut
    bool plain, no_graphs;            // attention isn't fused; steps cannot be recorded
    RowList *running;                 // the run's rows; the three that follow are in the same block (turns.c)
    RowList *given_rows, *foreseen;   // those that were given hidden states; those that the head should read
    Step *step;                       // with its tiles, turns and nodes
    RowList *chosen;                  // the nodes that the head reads, where they weren't foreseen
    MoveList *moves;                  // of commits
    float *hidden;                    // (nodes, width)
    float *given, *tokens, *followed; // of drafts: (nodes, given width or width); F's input, (rank)
    Captures captures;
    float *kept; // (nodes, captures.count * width), if there are any
    float *sums; // (rows, q k v or width): a product that is normed, if the model norms heads or outputs
    ExpertBuffers experts;
    double *frequency;    // (ropes, pairs)
    float *cosine, *sine; // (ropes, nodes, pairs)
    float *final_norm, *final_norm_bias, *head_bias;
    Activations roles[ROLES][FORMS];
    struct Fast *fast;                       // NULL: exact
    float *parts, *attention_parts, *scores; // scores: if plain, else NULL
    size_t attention_floats, scores_floats;
    unsigned *done, *attention_done, *overflow, *host_overflow; // the lowest place of one, or OVERFLOW_NONE
    uint64_t *best, *host_best;                                 // (PANEL_ROWS, BEST_SLICES); pinned
    int *tops, *host_tops, *slice_id, *grown_above;             // (TOPS_SIZE), head.c's Tops; pinned
    float *draw_p, *slice_logit, *grown_score;                  // (vocab); grown: as in Grow, (nodes)
    float *logits;                                              // logits: (PANEL_ROWS, max(vocab, width))
    DrawAsks *draw_asks;
    double *draw_answers, *host_answers; // chances of nodes, then confidences and ids of rows
    int held[PANEL_ROWS], held_count;    // the nodes whose logits are on the device
    const RowList *held_rows;            // their list: `foreseen` or `chosen`
    Staging steps[STEP_STAGINGS], list, rows, asks;
    int turn;                  // index of the last step's staging
    float *host_p, *following; // (vocab); not pinned: scratch of follow.h
    StepGraph graphs[GRAPHS];
    unsigned long graph_clock;
    void *head_graphs[HEAD_GRAPHS]; // of 8, 16, .. 128 foreseen rows
};
static inline int cuda_nodes(const Cuda *c) { return c->sequences * c->max_nodes; }
// buffers.c. Everything but weights and copies; pinned memory.
bool cuda_take_buffers(Cuda *c, Error *e);
bool cuda_take_pinned(Cuda *c, Error *e);
void cuda_give_all(Cuda *c);
bool cuda_name(Cuda *c, const int *names); // returns whether the card has them now
static inline const Activations *cuda_role(const Cuda *c, Role role, const Matrix *reader) {
    return &c->roles[role][reader->form];
}

// weights.c. Describes and allocates all matrices; fills them.
bool cuda_take_weights(Cuda *c, Error *e);
bool cuda_load_weights(Cuda *c, const Progress *progress, Error *e);
void cuda_link_products(Cuda *c);
// Bytes that a step reads: of a layer of this card without its experts, or of its first expert.
size_t cuda_reads(const Cuda *c, int layer, bool expert);
size_t cuda_tensor_reads(const Matrix *m, const Tensor *t); // of a tensor in its matrix

// phases.c. Starts a phase of the card's stream (PHASE_IDLE: it has nothing to do), on this thread's device.
bool cuda_begin(Cuda *c, Phase phase, Error *e);
bool cuda_wait(Cuda *c, Error *e); // for the streams of all the instance's cards; counts their time
bool cuda_take_events(Cuda *c, Error *e);
void cuda_give_events(Cuda *c);

// turns.c. Rows that activations have room for; tiles and bytes of the largest step; where its block has what
// follows the list of rows; most spans that a tile of rows at [from, to] sees.
int cuda_rows_limit(const Cuda *c);
int cuda_tiles_limit(const Cuda *c);
size_t cuda_step_size(const Cuda *c);
RowList *cuda_given_rows(const Cuda *c, RowList *block), *cuda_foreseen(const Cuda *c, RowList *block);
Step *cuda_step_in(const Cuda *c, RowList *block);
int cuda_spans(const Cuda *c, int from, int to);
