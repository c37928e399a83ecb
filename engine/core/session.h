// An open model with its committed sequence and its open step: the interface of methods and the decode loop.
//
//      session_begin_step ---> tree_root, tree_propose ... ---> session_run ---> session_read
//             ^                        ^   may grow  |               |               |
//             |                        +-------------+---------------+               v
//             +---------------------------------------------- session_commit <-- the verifier
//
// A step's nodes are in scratch rows of the backend; only session_commit writes the cache. The session owns
// the tree, the slots and each node's progress through the layers, checks every call against them, and passes
// finished integers to the backend.
//
// Invariants (session_assert): a node's ancestors have been through at least as many layers as the node; the
// tree's context is the cache's length; nodes are read only at the last layer, except session_peek's.
#pragma once
#include "engine/core/backend.h"
#include "engine/core/cache.h"
#include "engine/core/step.h"

enum { UNDRAWN = -2, SESSION_NAME = 256 };
typedef struct Session {
    char name[SESSION_NAME]; // of the model, for errors
    const Backend *backend;
    void *self; // the backend's instance
    Shape shape;
    int context; // positions in use: min(the shape's, the option's)
    Compute compute;
    Cache cache;
    int *sequence; // (context): the committed tokens, cache.length of them
    Tree tree;     // of the open step; readable until the next one begins
    bool open;     // the step may still grow and run
    int *done;     // (capacity): layers that node i has been through
    int given;     // of a model of tokens and hidden states: nodes [0, given) of the step have hidden rows
    Captures captures;
    // results of session_read, by canonical node
    int *argmax;    // (capacity); -1: not read
    int *logit_row; // (capacity): row in logits, or -1
    int *drawn;     // (capacity): the token that session_draw drew, -1: none was left, UNDRAWN: not drawn yet
    float *logits;  // (rows read, vocab)
    size_t logits_capacity;
    int logit_rows; // rows in use
    HeadOut best;   // top, top_id, top_logit for session_top, (2 * capacity, top); half: the read's at work
    Grown grown;
    int peek;      // the node of session_peek, or TREE_NONE
    int *scratch;  // (2 * capacity)
    double passes; // forwards: runs of neighbouring nodes from one layer to another
    double rows;   // nodes run, counted each time they enter layer 0
    PassLog *log;  // records each pass, as one of the model `log_as`; NULL: none
    PassModel log_as;
    struct Lane *lane;            // of sequences that share steps (batch.h); NULL: none
    int role;                     // in the lane
    struct Ranks *ranks;          // processes that share steps (ranks.h); NULL: this one only
    Progress progress;            // called before each pass, and between the layers of a large one
    double prefilled, prefilling; // shares of a prefill: before the open step and in it; 0: not a prefill
} Session;

// Takes over the instance: session_release closes it.
void session_init(Session *s, const Backend *backend, void *self, const Shape *shape,
                  const BackendOptions *o);
void session_release(Session *s);
void session_reset(Session *s); // forgets the sequence

// Opens a step on top of the committed sequence: an empty tree. Drops a step that is still open.
void session_begin_step(Session *s, bool merge, Layout layout);
// Opens a step of all rows of a block (block.h) that begins with this token; DSpark's heads on one of them.
void session_begin_block(Session *s, int rows, int root);
bool session_follow(Session *s, int node, Follow *f, Error *e);
// The backend's work so far (backend.h), and whether it's by its own clock, which takes a batch as one.
bool session_worked(const Session *s, PhaseSeconds *out);

// Runs every node that is below layer b up to it; b = shape.layers finishes them.
bool session_run(Session *s, int b, Error *e);
// Sets input rows, (count, shape_given_width). If it reads tokens, too, others start from parents' outputs.
bool session_set_hidden(Session *s, int first, int count, const float *rows, Error *e);
void session_note_given(Session *s, int first, int count); // the caller set them itself (hidden.h)
// Keeps every node's residual stream after these layers (NULL: none), from the next step on.
bool session_capture(Session *s, const Captures *captures, Error *e);
bool session_get_hidden(Session *s, const int *nodes, int count, HiddenKind kind, float *rows, Error *e);

// Runs the head for the canonical nodes that need it (roots, candidates, NODE_READ) and were not read yet,
// for HEAD_ARGMAX, and HEAD_LOGITS if wanted.
bool session_read(Session *s, unsigned want, Error *e);
int session_argmax(const Session *s, int node);          // of the node's canonical node
const float *session_logits(const Session *s, int node); // (vocab); needs HEAD_LOGITS

// Runs and reads `node`, the newest, adds a node of its likeliest id, and so on, until there are `count` ids,
// the last without a node, or no room. *made: the ids, at least one. names: (vocab) the tokens of the ids in
// the tree and in `ids`, or NULL: the same. session_chains: whether a device does it without the host.
bool session_chain(Session *s, int node, const int *names, int count, int *ids, int *made, Error *e);
bool session_chains(const Session *s);
// Lets a device, if it can, run and read ahead: the nodes that haven't run, up to `node`, the newest, and as
// many levels of k nodes below it, by Backend.grow. The caller goes on as if it hadn't, with the same nodes:
// session_run and session_likeliest then find their work done.
bool session_grow(Session *s, int node, int k, int levels, const int *names, Error *e);

// Runs and reads the open steps of several sequences (BackendOptions.first) as one. Lanes (batch.h) do, too.
bool session_step_together(Session *const *all, int count, Error *e);
// An early exit: until the next session_run, reads are only of this canonical node, at the layer that it has
// been through. The results are forgotten then.
void session_peek(Session *s, int node);
// Writes the nodes (tree.count at most) that such a read would run the head for; returns their number.
int session_unread(const Session *s, unsigned want, int *nodes);

// HEAD_ARGMAX and HEAD_DRAW of the given nodes, on a backend that draws; copies draws->drawn to s->drawn.
bool session_draw(Session *s, const int *nodes, int count, HeadDraws *draws, Error *e);

// The k best ids and logits of nodes at the last layer: those that reads have kept since session_keep_top
// (from the next step on; 0: none), or by a head of its own.
void session_keep_top(Session *s, int k);
bool session_top(Session *s, const int *nodes, int count, int k, int *ids, float *logits, Error *e);

// The same with ln p (never above 0) of the ids in place of logits, p over all ids at temperature 1. Only for
// models of tokens and hidden states.
bool session_likeliest(Session *s, const int *nodes, int count, int k, int *ids, float *log_p, Error *e);

// Commits the first `count` nodes, maybe none, of the path root .. node and closes the step: its tree and
// outputs stay readable until the next one begins, but it can't grow or run.
bool session_commit(Session *s, int node, int count, Error *e);

// Takes the committed sequence back to `length` tokens (see cache_truncate); drops the open step.
bool session_truncate(Session *s, int length, Error *e);
bool session_rewind(Session *s, const int *tokens, int count); // to these tokens, if it begins with them
// Until session_resume gets the length that this returns, steps follow nothing and aren't committed.
int session_set_aside(Session *s);
void session_resume(Session *s, int length);

enum { HIDDEN_NONE = -1, LAYERS_CAPTURED = -2 };
typedef struct Prefill {
    const int *tokens; // (count)
    int count, chunk;  // chunk: most tokens of a step; 0: as many as it holds
    int hidden_layer;  // of the rows in `hidden`: LAYERS_CAPTURED, or as in session_prefill
    float *hidden;     // NULL: no rows are needed
    // Called after each chunk, tokens [first, first + count): nodes [0, count) are readable. May be NULL.
    bool (*ran)(void *state, int first, int count, Error *e);
    void *state;
} Prefill;

// Runs and commits a chain of tokens, chunk by chunk.
bool session_prefill_parts(Session *s, const Prefill *p, Error *e);

// The same in one call. hidden, if not NULL, receives a row of `width` floats per token: the residual stream
// after hidden_layer >= 1 layers, or the final normed state after the last one. LAYERS_CAPTURED: rows of
// captures.count * width floats.
bool session_prefill(Session *s, const int *tokens, int count, int chunk, int hidden_layer, float *hidden,
                     Error *e);

// The same for a model of hidden states, rows (count, shape_given_width). Models that don't read the tokens
// use them as names of the rows.
bool session_prefill_hidden(Session *s, const int *tokens, int count, const float *rows, Error *e);

void session_assert(const Session *s);
