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
//
// By blocks (Sun et al.), a chain X1 .. Xg of draws is judged as a whole. It emits the same distribution and
// on average at least as many tokens:
//
//   r_0 = 1, r_i = min(1, r_(i-1) p(X_i) / q(X_i));  S_i = sum of max(0, r_i p - q) over the tokens below X_i
//   accept the first i, the largest with u_i < h_i = S_i / (S_i + 1 - r_i), or u_g < r_g for i = g
//   the bonus is drawn from max(0, r_i p - q), normalised, or from p for i = g
#pragma once
#include "engine/base/random.h"
#include "engine/core/draws.h"

typedef enum { VERIFICATION_TOKEN, VERIFICATION_BLOCK } Verification;
extern const char *const verification_names[]; // ending in NULL

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
    bool blocks;  // set after init: sampled steps have at most one chain of draws, judged as a whole
    Draws draws;  // empty if greedy, like the scratch below
    float *p, *q; // (vocab)
} Verifier;

void verifier_init(Verifier *v, const Sampling *sampling, uint64_t seed, int vocab);
void verifier_release(Verifier *v);

// Reads the outputs that the walk will need; the step's nodes have been through all layers.
bool verifier_read(Verifier *v, Session *s, Error *e);

// The walk. Fails only if the backend can't return a full distribution.
bool verify(Verifier *v, const Session *s, Verdict *out, Error *e);

// The rules of sampling as pure functions, so that a test can sum over all outcomes. q is NULL for a one-hot
// proposal.
double verify_acceptance(const float *p, const float *q, int token); // the chance that token is accepted
void verify_reject(float *p, const float *q, int token, int vocab);  // p becomes the rest after its rejection
double verify_rest(float *p, const float *q, double r, int vocab); // p becomes max(0, r p - q) / S; returns S
double verify_block(double r, double S);                           // h: the chance to accept up to here
