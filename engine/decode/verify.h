// The one place that decides which proposed tokens are emitted. No method can break losslessness, because no
// method comes here.
//
// Greedy: walk down from the root; the model's argmax at a node is the next token; where a candidate child
// bears it, go there, else stop. Sampling: at each node, try its proposals in order against the model's
// distribution p (METHODS.md; Leviathan et al., Chen et al., SpecInfer):
//
//   one-hot x        accept with p(x); on rejection p(x) = 0, p renormalised. The tree lists equal ones once.
//   x drawn from q   accept with min(1, p(x)/q(x)); on rejection p = max(0, p - q), renormalised. Each is
//                    tried, in the order drawn; a later sibling without replacement uses q without the
//                    tokens drawn.
//
// and if none is accepted, draw from what is left of p. The last token so gained is the bonus.
#pragma once
#include "engine/base/random.h"
#include "engine/core/draws.h"

typedef struct Verdict {
    int accepted; // candidates accepted: depth of `node`
    int node;     // the deepest accepted node (canonical), or the root
    int bonus;    // the token that the model says after it
    int tried;    // proposals looked at
} Verdict;

typedef struct Verifier {
    Sampling sampling;
    Random random; // STREAM_VERIFY: one number a proposal that is looked at, one for the bonus
    int vocab;
    Draws draws;  // empty when greedy, as are
    float *p, *q; // (vocab) scratch
} Verifier;

bool verifier_init(Verifier *v, const Sampling *sampling, uint64_t seed, int vocab, Error *e);
void verifier_release(Verifier *v);

// Reads what the walk will ask of the step's nodes, which have been through all layers.
bool verifier_read(Verifier *v, Session *s, Error *e);

// The walk. It fails where a backend does that is asked for a whole distribution.
bool verify(Verifier *v, const Session *s, Verdict *out, Error *e);

// The two rules of sampling, as pure functions, so that a test can sum over all outcomes. q is NULL for a
// one-hot proposal.
double verify_acceptance(const float *p, const float *q, int token); // the chance that token is accepted
void verify_reject(float *p, const float *q, int token, int vocab);  // p becomes what its rejection leaves
