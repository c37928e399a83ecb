// Gain and cost of drafting: CTAR, compression from it, and the best gamma and eta (Kangaroo, section 3).
//
// A draft model proposes tokens one after another, each costing time, until it has gamma of them or its
// confidence falls to eta or below; the token of low confidence is kept and verified too. Confidence and how
// often it is right are measured, and given as bins. Tokens are assumed independent:
//
//     q  = share of tokens above eta          P(at least j drafted)  = q^(j-1)
//     a  = share of tokens right              P(at least i accepted) = a r^(i-1)
//     r  = share of tokens above eta and right
//
// With eta = 0 every token is above it, r = a = alpha, and tokens per step are Lookahead's Eq. 4.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>

enum { DRAFT_MOST_GAMMA = 1024 };

// CTAR(w) as measured: the share of steps that accepted at least w drafted tokens; a step that drafted fewer
// fails. steps >= 1, w >= 0.
double ctar_measured(const int *accepted, size_t steps, int w);

// Tokens a step from CTAR(1 .. gamma): one more than their sum, without the last if the bonus is dropped.
double compression_from_ctar(const double *ctar, int gamma, bool bonus_dropped);

// Drafted tokens of one level of confidence.
typedef struct ConfidenceBin {
    double level; // its confidence, [0, 1]; stops the draft where level <= eta
    double share; // of all tokens; the bins' shares sum to 1
    double right; // of them, [0, 1]
} ConfidenceBin;

typedef struct DraftCost { // in units of one step of the target on one row; each at least 0
    double draft;          // of one drafted token
    double verify;         // of verifying, whatever is verified; above 0 (Kangaroo: the layers past the exit)
    double row;            // of each drafted token that is verified
} DraftCost;

typedef struct Draft {
    const ConfidenceBin *bins; // (count), borrowed
    size_t count;
    DraftCost cost;
} Draft;

typedef struct DraftChoice {
    int gamma;
    double eta;
    double tokens;  // a step
    double drafted; // a step
    double speedup; // tokens over the time that they take
} DraftChoice;

bool draft_check(const Draft *draft, Error *e);

// The result of (gamma, eta). draft must pass draft_check; gamma in [0, DRAFT_MOST_GAMMA].
DraftChoice draft_at(const Draft *draft, int gamma, double eta);

// The fastest over gamma 0 .. most and eta = 0 or a bin's level; smallest gamma, then eta, among equals.
DraftChoice draft_best(const Draft *draft, int most);
