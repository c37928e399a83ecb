// One step over several processes, the ranks (Lookahead, section 3.4). Every rank has the whole model, cache
// and method, and builds the same tree; rank i runs part i of it. One collective of a fixed size then tells
// all ranks what the model answered at every node, so each rank verifies, commits and observes by itself:
//
//      every rank     the same tree of R parts                  (Tree, tree_part)
//      rank i         runs and reads part i                     (its own tree: tokens it lacks, then part i)
//      all            gather: status, digest, and for each node read: argmax, draw, chances of proposals
//      every rank     the same verdict; keeps the keys and values that it has
//
// A rank that did not run an accepted token runs it again as one more row of its next step: no keys or
// values are sent: results/ranks.md has the figures. The message's digest covers the tree and the method's
// state: ranks that drift apart fail in that step.
//
// The session, the methods and the verifier don't know of this: between ranks_begin and ranks_end the
// session's backend is a table that wraps the real one.
//
// Invariants while shared: tokens committed by the session = tokens in the own cache + tokens lacking; the
// own tree begins with the lacking tokens.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/core/session.h"

#include <stdint.h>

// The processes. Every rank calls the same functions in the same order.
typedef struct Team {
    int rank, count;
    void *self;
    // Collects everyone's `bytes` bytes into all, (count, bytes).
    bool (*gather)(void *self, const void *mine, void *all, size_t bytes, Error *e);
    // Rank 0 sends its message; the others wait for it, without using a core, and receive it in its place.
    bool (*tell)(void *self, Text *message, Error *e);
} Team;

// The most that one rank reads in a step.
typedef struct RankLimits {
    int nodes;     // whose outputs it reads
    int proposals; // below those nodes, in any part
} RankLimits;

typedef struct Ranks Ranks;

typedef struct RankTimes {
    double collective_s; // this rank in the collective: waiting for the slowest rank, and the message
    double message_s;    // of it the least of any rank: the message without the wait
    int collectives;
    int again;    // accepted tokens that the rank that lacked most of them ran again, over the steps
    size_t bytes; // of one rank's message
} RankTimes;

// Makes the session one of a team. `opening` is how the other ranks open the same model (engine.h); copied.
void session_share(Session *s, const Team *team, const Text *opening);
void ranks_release(Ranks *r); // takes NULL; called by session_release

const Team *ranks_team(const Ranks *r);
const Text *ranks_opening(const Ranks *r);

// Between these two calls, steps are shared. Neither waits for keys or values. `sampled`: nodes are drawn at.
// ranks_end tells the others that this rank has ended, or failed with e; it returns false with e filled if
// any rank failed, its name in front. Rank 0 may end first: the others' next step then fails.
void ranks_begin(Session *s, const RankLimits *most, bool sampled);
bool ranks_end(Session *s, bool ok, RankTimes *times, Error *e);

// Before session_run: a hash of all that the method remembers.
void ranks_digest(Session *s, uint64_t digest);

// All ranks call this: true if all of them are well. Else false, and e is the first failed rank's error.
bool ranks_agree(const Team *team, bool ok, Error *e);

// Continues a hash by these bytes.
uint64_t ranks_hash(uint64_t hash, const void *data, size_t bytes);
