// (alpha, f) of Lookahead's law from measured points, with intervals and warnings.
//
// Two estimators: least squares of S over the grid, and maximum likelihood on accepted lengths, which doesn't
// depend on the bonus. Intervals resample prompts, the same ones at every point; without known prompts, S
// moves by its standard error, or else by the size of the residuals, and steps are drawn again. Least squares
// under other assumptions is reported, too, since a wrong assumption can fit as well.
#pragma once
#include "simulate/points.h"
#include "simulate/statistics.h"

// --- estimators -----------------------------------------------------------------------------------------

// Least squares of S over a grid of points. phi = 1/f enters linearly, so for each alpha the best phi is
// known (variable projection); a search over alpha remains, which no start can mislead. gsl_multifit_nlinear
// then finishes on S itself.
typedef struct LeastSquares {
    double alpha, phi;
    double squares;     // weighed residuals of S, squared and summed; chi-square if every se is known
    double condition;   // of the Jacobian by (ln alpha, ln f); infinite if they are indistinguishable
    double correlation; // of ln alpha and ln f
} LeastSquares;

// Fails if the points can't separate alpha from f: one point, constant S, a law with the same value
// everywhere.
bool least_squares(const Sample *s, LeastSquares *out, Error *e);

// Only the search, started near alpha: for resamples. s must have a fitted point.
void least_squares_near(const Sample *s, double alpha, LeastSquares *out);

// Maximum likelihood of the lengths that steps accepted: one point is enough. P(A >= i) = phi (1 - (1 -
// alpha^i)^b). For each alpha the likelihood is concave in phi, whose best value is found by Newton's method
// in a bracket; a search over alpha remains.
typedef struct Likelihood {
    double alpha, phi;
    double log_likelihood; // per step
    double condition;      // of the root of the information on (ln alpha, ln f)
    double correlation;    // of ln alpha and ln f
} Likelihood;

// Fails if there are no accepted lengths, none is above 0, or they can't separate alpha from f.
bool likelihood(const Sample *s, Likelihood *out, Error *e);

// Only the search, started near alpha: for resamples. s must have accepted lengths.
void likelihood_near(const Sample *s, double alpha, Likelihood *out);

typedef double (*SearchFunction)(double x, void *context);

// The minimum of f in [low, high]: the best border of `cells` equal cells, then Brent's method around it down
// to `tolerance`. Finds the lowest of several valleys if each is wider than a cell. f must be finite.
double search_minimum(SearchFunction f, void *context, double low, double high, int cells, double tolerance);

// The same if the minimum is likely within `reach` of `guess`: the rest is searched only if no valley is
// there.
double search_minimum_near(SearchFunction f, void *context, double low, double high, int cells,
                           double tolerance, double guess, double reach);

// --- leaving points out ---------------------------------------------------------------------------------

// How well the law predicts points that it has not seen, compared with rivals that explain the same numbers.
// All points of one W (or one N) are left out, the rest is fitted, the left-out points are predicted; for
// each W in turn. A rival takes part only if the remaining points determine it.
typedef enum {
    RIVAL_LAW,      // the law itself, by least squares
    RIVAL_LOG,      // S = c0 + c1 ln b
    RIVAL_PROMPT,   // a phi for each prompt, one alpha
    RIVAL_POSITION, // phi = 1, an alpha for each position; the last one holds beyond
    RIVAL_COUNT
} Rival;

typedef struct LeaveOut {
    int points[RIVAL_COUNT]; // predicted
    double rms[RIVAL_COUNT]; // of S; 0 where there are no points
} LeaveOut;

extern const char *const RIVAL_NAMES[RIVAL_COUNT];

// s is unchanged afterwards.
void leave_out(Sample *s, const Points *points, bool by_N, LeaveOut *out);

// --- the fit --------------------------------------------------------------------------------------------

typedef struct FitValue {
    double value, se, low, high;
} FitValue;

typedef enum { DRAWN_PROMPTS, DRAWN_ERRORS, DRAWN_RESIDUALS, DRAWN_STEPS } FitDrawn;

typedef struct FitEstimate {
    bool given;
    Error refused; // the reason, if not given
    FitValue alpha, f;
    FitDrawn drawn;                // the source of the intervals
    double condition, correlation; // in (ln alpha, ln f)
    double rms;                    // least squares: of the residuals of S
    double log_likelihood;         // likelihood: per step
    bool interval;                 // false: too few points for one
    Interval *intervals;           // (2 + points) if there is one: alpha, f, predictions
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
    const FitEstimate *best;   // least squares if given, else likelihood
    bool chi_square_given;     // only if every point has an se
    double chi_square, chance; // chance: of one at least as large if the law holds
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

// Fails if neither estimator has an answer; release even then. The Fit points into itself: do not copy it.
bool fit_run(const Points *points, const FitOptions *o, Fit *out, Error *e);
void fit_release(Fit *f);

// Warnings about an estimate, one line each; returns their number.
enum { FIT_MOST_WARNINGS = 4 };
int fit_warnings(const FitEstimate *estimate, const char *out[FIT_MOST_WARNINGS]);
