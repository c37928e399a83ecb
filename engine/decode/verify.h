// The only place that decides which proposed tokens are emitted. Methods never get here, so no method can
// break losslessness.
//
// Greedy: walk down from the root; the model's argmax at a node is the next token; continue at the candidate
// child that has it, else stop. Sampling: at each node, try its proposals in order against the model's
// distribution p (docs/methods.md; Leviathan et al., Chen et al., SpecInfer):
//
//   one-hot x        accept with p(x); on rejection p(x) = 0, p renormalised. The tree lists equal ones once.
//   x drawn from q   accept with min(1, p(x)/q(x)); on rejection p = max(0, p - q), renormalised. Each draw
//                    is tried, in the order drawn; a later sibling without replacement uses q without the
//                    tokens drawn before it.
//
// and if none is accepted, draw from the rest of p. The last token gained this way is the bonus.
#pragma once
#include "engine/base/random.h"
#include "engine/core/draws.h"

typedef struct Verdict {
    int accepted; // accepted candidates: the depth of `node`
    int node;     // the deepest accepted node (canonical), or the root
    int bonus;    // the model's token after it
    int tried;    // proposals looked at
} Verdict;

typedef struct Verifier {
    Sampling sampling;
    Random random; // STREAM_VERIFY: one number per proposal looked at, one for the bonus
    int vocab;
    Draws draws;  // empty if greedy, like the scratch below
    float *p, *q; // (vocab)
} Verifier;

void verifier_init(Verifier *v, const Sampling *sampling, uint64_t seed, int vocab);
void verifier_release(Verifier *v);

// Reads the outputs that the walk will need; the step's nodes have been through all layers.
bool verifier_read(Verifier *v, Session *s, Error *e);

// The walk. Fails only if the backend can't return a full distribution.
bool verify(Verifier *v, const Session *s, Verdict *out, Error *e);

// The two rules of sampling as pure functions, so that a test can sum over all outcomes. q is NULL for a
// one-hot proposal.
double verify_acceptance(const float *p, const float *q, int token); // the chance that token is accepted
void verify_reject(float *p, const float *q, int token, int vocab);  // p becomes the rest after its rejection
