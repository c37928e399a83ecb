// An open model with its committed sequence and its open step: what methods and the decode loop talk to.
//
//      session_begin_step ---> tree_root, tree_propose ... ---> session_run ---> session_read
//             ^                        ^   may grow  |               |               |
//             |                        +-------------+---------------+               v
//             +---------------------------------------------- session_commit <-- the verifier
//
// A step's nodes live in scratch rows of the backend; only session_commit writes the cache. The session owns
// the tree, the slots and each node's progress through the layers, checks every call against them, and hands
// the backend finished integers.
//
// Invariants (session_assert): ancestors of a node are at least as far through the layers as the node;
// the tree's context equals the cache's length; nodes are read only at the last layer.
#pragma once
#include "engine/core/backend.h"
#include "engine/core/passes.h"

enum { UNDRAWN = -2 };

enum { SESSION_NAME = 256 };

typedef struct Session {
    char name[SESSION_NAME]; // of the model, for errors
    const Backend *backend;
    void *self; // the backend's instance
    Shape shape;
    int context; // positions in use: min(the shape's, the option's)
    Compute compute;
    Cache cache;
    Tree tree; // of the open step; readable until the next one begins
    bool open; // the step may still grow and run
    int *done; // (capacity): layers that node i has been through
    // what session_read left, by canonical node
    int *argmax;    // (capacity); -1: not read
    int *logit_row; // (capacity): row in logits, or -1
    int *drawn;     // (capacity): the token that session_draw drew, -1: none was left; UNDRAWN: not asked
    float *logits;  // (rows read, vocab)
    size_t logits_capacity;
    int logit_rows; // rows in use
    int *scratch;   // (2 * capacity)
    double passes;  // forward passes (session_run calls that ran at least one node)
    double rows;    // nodes run, counted once for each time they entered layer 0
    PassLog *log;   // where each pass is noted, as one of `log_as`; NULL: nowhere
    PassModel log_as;
    Progress progress;            // asked before each pass, and between the layers of a large one
    double prefilled, prefilling; // shares of a prefill: before the open step, and in it; 0: it is no prefill
} Session;

// Takes over the instance: session_release closes it, also when init fails.
bool session_init(Session *s, const Backend *backend, void *self, const Shape *shape, const BackendOptions *o,
                  Error *e);
void session_release(Session *s);

// Forgets the sequence.
void session_reset(Session *s);

// Opens a step on top of the committed sequence: an empty tree. What an earlier step left open is dropped.
void session_begin_step(Session *s, bool merge, Layout layout);

// How long its backend has worked (backend.h). True where that is by the device's own clock.
bool session_worked(const Session *s, PhaseSeconds *out);

// Runs every node that stands before layer b up to it. b = shape.layers finishes them.
bool session_run(Session *s, int b, Error *e);

// Sets the input rows of nodes [first, first + count) of a model that takes hidden states.
bool session_set_hidden(Session *s, int first, int count, const float *rows, Error *e);
bool session_get_hidden(Session *s, const int *nodes, int count, HiddenKind kind, float *rows, Error *e);

// Runs the LM head for the canonical nodes that want it (roots, candidates, NODE_READ) and were not read yet:
// HEAD_ARGMAX, and HEAD_LOGITS where asked.
bool session_read(Session *s, unsigned want, Error *e);
int session_argmax(const Session *s, int node);          // of the node's canonical node
const float *session_logits(const Session *s, int node); // (vocab); needs HEAD_LOGITS

// The nodes (tree.count at most) that a read of this kind has before it; gives how many.
int session_unread(const Session *s, unsigned want, int *nodes);

// HEAD_ARGMAX and HEAD_DRAW of chosen nodes, on a backend that draws; draws->drawn is left in s->drawn.
bool session_draw(Session *s, const int *nodes, int count, HeadDraws *draws, Error *e);

// The k best ids and logits of chosen nodes at the last layer; straight from the backend.
bool session_top(Session *s, const int *nodes, int count, int k, int *ids, float *logits, Error *e);

// Commits the first `count` nodes of the path root .. node and closes the step: its tree and outputs stay
// readable until the next begins, but nothing is added or run. count may stop short of the path's end (a
// dropped bonus), and may be 0.
bool session_commit(Session *s, int node, int count, Error *e);

// Takes the committed sequence back to `length` tokens (see cache_truncate); the open step is dropped.
bool session_truncate(Session *s, int length, Error *e);

// Runs and commits a chain of tokens in chunks of at most `chunk` (0: as many as a step holds). hidden, where
// not NULL, receives a row of `width` floats a token: the residual stream after hidden_layer >= 1 layers, or
// the final normed state where hidden_layer is the number of layers.
bool session_prefill(Session *s, const int *tokens, int count, int chunk, int hidden_layer, float *hidden,
                     Error *e);

// The same for a model of hidden states: rows (count, width) go in, a token names each of them.
bool session_prefill_hidden(Session *s, const int *tokens, int count, const float *rows, Error *e);

void session_assert(const Session *s);
