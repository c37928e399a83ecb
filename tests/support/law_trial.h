// A law of simulate held against the real loop. The method `oracle` decodes prompts on the null backend with
// the law's own alpha, so the law must give its S: within the interval that so many prompts leave. The
// law's process is also drawn directly, without the loop and without the closed form.
//
//      sequences:alpha=0.7,gamma=4,b=3   --->  S by Eq. 5              2.93
//                                        --->  drawn (montecarlo.h)    2.93 +- 0.01
//                                        --->  oracle, through decode  2.90, inside 2.88 .. 2.98
#pragma once
#include "engine/base/text.h"
#include "tests/support/montecarlo.h"

#include <stdint.h>

enum { LAW_TRIAL_DEPTH = 8 };

// The loop's result, with each output's last step in full.
typedef struct LawTrialCounts {
    double tokens, steps, drafted;
    double settled;                      // steps past filling
    double reached[LAW_TRIAL_DEPTH + 1]; // of them, those that accepted at least i tokens
} LawTrialCounts;

typedef struct LawTrialSize {
    int prompts, tokens; // tokens of each output, at least
    uint64_t seed;
} LawTrialSize;

// The loop alone. method: of `oracle`.
bool law_trial_loop(const char *method, const LawTrialSize *size, LawTrialCounts *out, Error *e);

typedef struct LawTrial {
    Text law, method;                 // with their parameters
    const char *equation;             // where the law is from
    double S, se;                     // of the law; the standard error that so many prompts have
    Estimate drawn;                   // the processes, over many more prompts; se below 0: not drawn
    double tail[LAW_TRIAL_DEPTH + 1]; // P(A >= i)
    LawTrialCounts seen;
    bool drafts;          // law `drafting`: the next ones are there
    DraftChoice at, best; // best: the fastest at the stated costs
    double drafted_se;
} LawTrial;

static inline double law_trial_seen(const LawTrial *t) { return t->seen.tokens / t->seen.steps; }
// How far the loop's S is from the law's, in standard errors.
static inline double law_trial_score(const LawTrial *t) {
    double off = law_trial_seen(t) - t->S;
    return off < 0 || off > 0 ? off / t->se : 0;
}

// text: "NAME:k=v,...". False with e filled: there is no such law or parameter, or a value is outside its
// domain. Release also what failed.
bool law_trial_run(const char *text, const LawTrialSize *size, LawTrial *out, Error *e);
void law_trial_release(LawTrial *t);

// Name, equation and one line a parameter, of every law.
void law_trial_describe(Text *out);
