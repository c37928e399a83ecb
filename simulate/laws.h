// Tokens a step, and S, by the laws of guess-and-verify decoding (Lookahead, section 4, Eq. 4 to 7).
//
// A step is good with probability phi = 1/f. A good step verifies b guesses of gamma tokens; each token is
// right with probability alpha, given that those before it in its guess are. So the accepted length A has the
// tail
//
//     P(A >= i) = phi (1 - (1 - alpha^i)^b),   i = 1 .. gamma
//
// and a step emits A + 1 tokens: the accepted ones and the model's own next one (the bonus, on a full match).
// Without terms this is the paper's law; each term accounts for one difference of implementations.
#pragma once
#include <stdbool.h>

typedef enum {
    LAW_PAPER = 0,
    LAW_BONUS_DROPPED = 1, // a full match emits gamma tokens, not gamma + 1
    LAW_FILLING = 2,       // the first `filling` steps of an output emit one token each
    LAW_CANDIDATES = 4,    // a share[c] of the steps has c guesses, instead of b in all
} LawTerm;

enum { LAW_MOST_GAMMA = 1024, LAW_MOST_GUESSES = 1 << 20 };

typedef struct Law {
    double alpha;        // [0, 1]
    double f;            // at least 1; 1: every step is good
    int gamma;           // [0, LAW_MOST_GAMMA]; 0: no guess, one token a step
    double b;            // guesses per step, [0, LAW_MOST_GUESSES]; may be fractional
    unsigned terms;      // of LawTerm
    int filling;         // LAW_FILLING: steps, at least 0
    double output;       // LAW_FILLING: tokens that an output emits on average, at least `filling`, above 0
    const double *share; // LAW_CANDIDATES: (share_count), sums to 1; borrowed
    int share_count;
} Law;

// Whether each parameter is in its domain. The functions below assert it.
bool law_is_valid(const Law *law);

double law_some_match(double alpha, int i, double b); // 1 - (1 - alpha^i)^b: some guess is right for i
double law_tail(const Law *law, int i);               // P(A >= i) of a step past filling; i >= 0
double law_good_tokens(const Law *law);               // tokens of a good step: Eq. 5 with the terms
double law_good_slope(const Law *law);                // its derivative by alpha
double law_tokens(const Law *law);                    // of a step past filling: (f - 1 + good) / f, Eq. 7
double law_compression(const Law *law);               // S, Eq. 6, with the filling steps counted

// law_with_filling: S of an output that begins with `filling` steps of one token each, given the tokens per
// step after them. law_without_filling is its inverse. Exact if `output` is the mean number of emitted tokens
// (Wald's identity), because S is summed tokens over summed steps. The inverse is infinite unless s is below
// output / filling, which no such process reaches.
double law_with_filling(double tokens, int filling, double output);
double law_without_filling(double s, int filling, double output);
