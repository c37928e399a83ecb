// A second model: the Follower keeps it in step with the target, the Drafter turns its outputs into
// proposals.
//
// The Follower has a cache of its own and takes one step for each step of the target:
//
//      its cache            its open step: a chain, then a chain or a tree
//      x0 .. x(n-1)   |     x(n) .. x(last)  -  d1 - d2 ...
//                           missing tokens      its guesses, run to guess further
//
// Its step stays open while the target verifies; then the path that the sequence confirmed is committed.
// Nothing is ever taken back, so a rolling window never loses anything it needs. After a full acceptance the
// last guess was never run: the next chain starts with two tokens.
//
// A draft of several steps (Ouroboros) is appended to the sequence and committed as it is written; the part
// that turned out wrong is taken back.
//
// Invariant between steps: the cache holds the first session->cache.length tokens of the sequence, at most
// all except the last.
#pragma once
#include "engine/base/args.h"
#include "engine/core/draws.h"
#include "engine/decode/rank_tree.h"

typedef struct Follower {
    Session *session;
    int *sequence; // (capacity): prompt and output, then a draft if there is one
    int length, capacity;
} Follower;

// limit: the length of the longest sequence to come.
void follower_init(Follower *f, Session *session, int limit);
void follower_release(Follower *f);

// A new sequence: the whole prompt except the last token goes into the cache. hidden: (count - 1, width) if
// the model's input is hidden states, else NULL. A prompt that is too long for the model isn't followed.
bool follower_begin(Follower *f, const int *prompt, int count, const float *hidden, Error *e);

// Tokens that the cache lacks: at least the last one.
static inline int follower_missing(const Follower *f) { return f->length - f->session->cache.length; }

// Reads all missing tokens but the last one if they are more than a step holds, as after many steps without a
// guess. Not for a model of hidden states.
bool follower_approach(Follower *f, Error *e);

// Opens a step with the missing tokens. Returns the last one's node; if the model has no room for them,
// TREE_NONE, and no step is open.
int follower_catch_up(Follower *f);

// Adds a guess below `node`, to be run; TREE_NONE if there is no room.
int follower_guess(Follower *f, int node, int token);

// Copies tokens to `out`, which may be `tokens`. Ids that the model lacks, as it may where its vocabulary is
// smaller than the target's, become id 0: so does every such id of the sequence.
void follower_known(const Follower *f, const int *tokens, int count, int *out);

// Appends to the sequence, or to a draft after it.
void follower_append(Follower *f, const int *tokens, int count);

// Cuts the cache back to the first `length` tokens of the sequence if it holds more. If the cache's ring has
// already dropped tokens that this needs, the model reads the sequence again.
bool follower_take_back(Follower *f, int length, Error *e);

// Appends the tokens that the target's step emitted and commits the nodes that they confirm. All nodes have
// been run.
bool follower_settle(Follower *f, const int *emitted, int count, Error *e);

// A draft's own sampling, as parameters; -1: the same as the run's.
typedef struct DraftSampling {
    double temperature, top_p;
    int top_k;
} DraftSampling;

// Rows of a method's table; `where` is the offset of its DraftSampling.
#define DRAFT_SAMPLING_PARAMS(where)                                                    \
    {"draft_temperature",                                                               \
     ARG_REAL,                                                                          \
     (where) + offsetof(DraftSampling, temperature),                                    \
     -1,                                                                                \
     100,                                                                               \
     "-1",                                                                              \
     .help = "of the draft; 0: greedy, -1: as the run"},                                \
        {"draft_top_k", ARG_INT, (where) + offsetof(DraftSampling, top_k),      -1,     \
         1 << 24,       "-1",    .help = "of the draft; 0: off, -1: as the run"},       \
    {                                                                                   \
        "draft_top_p", ARG_REAL, (where) + offsetof(DraftSampling, top_p), -1, 1, "-1", \
            .help = "of the draft; 1: off, -1: as the run"                              \
    }

// Proposes the model's most likely token as a one-hot, or a draw from its distribution q together with q, so
// that the verifier can weigh both.
typedef struct Drafter {
    Session *session; // the model that guesses
    bool greedy;
    bool confidence; // compute Draft.confidence
    int vocab;       // ids that both models have
    const int *ids;  // (vocab): the target's id of each of them; NULL: the same. Set after init
    Draws draws;     // empty if greedy and without confidence
    Random random;   // STREAM_DRAFT
} Drafter;

typedef struct Draft {
    int token, node;   // node: in the target's tree, or TREE_NONE if it did not fit
    double confidence; // chance of the model's most likely token, at temperature 1; 1 if not computed
} Draft;

// target_vocab: the length of q in the target's tree.
void drafter_init(Drafter *d, Session *session, int target_vocab, const DraftSampling *own,
                  const Sampling *run, bool confidence);
void drafter_release(Drafter *d);

// A new output: its draws start from the seed.
void drafter_begin(Drafter *d, uint64_t seed);

// Reads the session's output at `node`, which has been through all layers (or is its session_peek), and
// proposes it below `parent`.
bool drafter_propose(Drafter *d, int node, Tree *tree, int parent, Draft *out, Error *e);

// The same from the logits of a guess, (session's vocab), which are left as they are.
void drafter_propose_from(Drafter *d, const float *logits, Tree *tree, int parent, Draft *out);

// Guesses in the shape of a tree, written level by level, with one forward for each. Greedy: the child of
// rank r is the model's r-th best token after its parent. Sampling: the children of a node are drawn in order
// from its distribution, without replacement, and ranks don't matter; if no token is left, a child is
// missing.
typedef struct DraftTree {
    RankTree shape; // placed: nodes of the target's tree
    int *own;  // (1 + shape.count): for the root and each guess, the node that the model runs, or TREE_NONE
    int *best; // (1 + shape.count, width): of a level, the best tokens after each node
    float *logits; // of them
    float *rest;   // (vocab): tokens that are left to draw
    int width;     // choices below a node
} DraftTree;

// Takes over the shape, which has a node at least.
void draft_tree_init(DraftTree *t, const RankTree *shape, const Drafter *d);
void draft_tree_release(DraftTree *t);

// `node` is follower_catch_up's. Proposes below a row of the target's tree.
bool draft_tree_grow(DraftTree *t, Drafter *d, Follower *f, int node, Tree *tree, Error *e);
