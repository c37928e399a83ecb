// (alpha, f) of Lookahead's law from measured points, with intervals and with all that may be wrong with
// them.
//
// Two estimators: least squares of S over the grid, and maximum likelihood on accepted lengths, which are
// independent of the bonus. Intervals draw prompts again, the same ones at every point; where no prompts are
// known, S is moved by its standard error, or else by the size of the residuals, and steps are drawn again.
// The least-squares fit under other assumptions stands beside, since a wrong one can fit as well.
#pragma once
#include "simulate/bootstrap.h"
#include "simulate/leave_out.h"
#include "simulate/sample.h"

typedef struct FitValue {
    double value, se, low, high;
} FitValue;

typedef enum { DRAWN_PROMPTS, DRAWN_ERRORS, DRAWN_RESIDUALS, DRAWN_STEPS } FitDrawn;

typedef struct FitEstimate {
    bool given;
    Error refused; // why not, where it is not given
    FitValue alpha, f;
    FitDrawn drawn;                // what the intervals are made of
    double condition, correlation; // in (ln alpha, ln f)
    double rms;                    // least squares: of the residuals of S
    double log_likelihood;         // likelihood: per step
    bool interval;                 // false: there are too few points for one
    Interval *intervals;           // (2 + points) where there is one: of alpha, f, and what is predicted
} FitEstimate;

typedef struct FitOther {
    bool bonus_dropped;
    double output; // 0: no filling
    bool given;
    double alpha, f, rms;
} FitOther;

typedef struct FitPrediction {
    PointAt at;
    double S, se, predicted;
    double low, high; // of the prediction, over the best estimate's resamples; without one, the prediction
    bool fitted;
} FitPrediction;

enum { FIT_MOST_OTHERS = 3 };

typedef struct Fit {
    FitEstimate least_squares, likelihood;
    const FitEstimate *best;   // least squares where it is given, else likelihood
    bool chi_square_given;     // only where every point has its se
    double chi_square, chance; // chance: of one as large or larger if the law holds
    int freedom;
    FitOther others[FIT_MOST_OTHERS];
    int other_count;
    LeaveOut by_W, by_N;
    FitPrediction *predictions; // (count), in the file's order
    int count, fitted, prompts;
    bool candidates; // each step's own are known; else the corrected law takes b = G
} Fit;

enum { FIT_WARNING_CONDITION = 15 };
extern const double FIT_WARNING_CORRELATION; // 0.99

// Fails where neither estimator can give an answer. Release also what failed. The Fit points into itself: do
// not copy it.
bool fit_run(const Points *points, const FitOptions *o, Fit *out, Error *e);
void fit_release(Fit *f);

// What a reader must know about an estimate, a line each, at most `most`; returns their number.
enum { FIT_MOST_WARNINGS = 4 };
int fit_warnings(const FitEstimate *estimate, const char *out[FIT_MOST_WARNINGS]);
