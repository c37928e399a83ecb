// Finds the fastest point of a method's space in little time, by successive halving.
//
//      surface   the time of a step by its rows, at the dataset's middle context; it tells which points
//                can't win, and how long answers should take
//      sample    points spread over the space by their rows answer a prompt, as the baseline does; the
//                fastest third goes on with further prompts, and so on, until no more are left than may race
//      race      those decode further prompts, round by round, until one is left (simulate/tuning.h)
//
// In a batch of B sequences a round is B prompts, which share their steps, and the surface is of shared
// steps.
//
// All parts together take no more than the budget, and no more than a share of a sweep of all
// points. A round is the runner's own round, stored as it ends.
#pragma once
#include "engine/base/text.h"
#include "harness/analysis/estimates.h"
#include "harness/bench/steps.h"
#include "harness/run/run.h"
#include "harness/tune/space.h"
#include "simulate/tuning.h"

// --- the sample steps that prices are fitted to

typedef struct TuneSurfaceAsk {
    int context;
    double most_rows; // that a point plans
    int longest;    // most tokens that a step can emit: a step that takes that many times as long as one row
                    // gains nothing
    double seconds; // limit for all of it, but what was begun is finished; two numbers of rows are always
                    // measured
    double steps;   // the same limit, as a multiple of a step of one row
    Clock clock;
    Watch *watch; // NULL: nobody looks
} TuneSurfaceAsk;

typedef struct TuneSurface {
    double rows[TUNING_MOST_CURVE], seconds[TUNING_MOST_CURVE]; // (count) as measured, medians
    int context, count;
    int disturbed; // of them: could not be measured undisturbed
    double took_s;
} TuneSurface;

// As a curve that never falls as rows grow. seconds: (TUNING_MOST_CURVE), memory for the curve.
TuningCurve tune_curve(const TuneSurface *s, double *seconds);

bool tune_surface(Engine *engine, const TuneSurfaceAsk *ask, TuneSurface *out, Error *e);

// --- tuning

enum { TUNE_CONTEXTS = 8 };

typedef struct TuneOptions {
    int contexts[TUNE_CONTEXTS], context_count; // to time steps at, too
    double budget_s;                            // nothing is begun that is expected to end later
    double share;    // most of the time that a sweep would take; a small space may get more
    int racers;      // at most
    int laps;        // of a race through the prompts, at most
    double margin;   // relative difference in time below which points count as equal
    bool exhaustive; // measure every point on every prompt once; no race, no budget
    bool processor;  // measure processor time, for a machine that is busy; the budget is by the wall clock
    bool quiet;
} TuneOptions;

// Replacements for tests; NULL: the real ones.
typedef struct TuneSeams {
    bool (*interrupted)(void);
    Clock (*clock)(const Session *target); // of measurements, and of the budget
} TuneSeams;

typedef struct TuneAnswer { // a round's prompts by one point, or several rounds summed
    int round;
    double tokens, steps, rows, seconds; // of decoding
    double whole_s;                      // with the prefill
    bool diverged;
} TuneAnswer;

typedef struct TuneSeat { // a point of the space, or the baseline, which is the last
    TuneAnswer *answers;  // (count), by round
    size_t count, capacity;
    bool sampled, raced;
    int out; // after which round of the race it dropped out; 0: it stayed
} TuneSeat;

typedef enum { TUNE_CERTAIN, TUNE_LAPS, TUNE_BUDGET, TUNE_SHARE, TUNE_SWEPT, TUNE_INTERRUPTED } TuneEnd;

typedef struct TuneResult {
    TuneSeat *seats; // (points + 1)
    int batch;       // prompts of a round
    TuneSurface surface;
    TuneSurface elsewhere[TUNE_CONTEXTS]; // (the options' contexts)
    int points;
    int excluded; // points that cannot win, whatever is accepted of them
    int sample_rounds, race_rounds;
    double sample_s, race_s, sweep_s; // sweep_s: of every point on every prompt once, as predicted
    int choice;                       // -1: nothing was measured
    Interval speedup;                 // of the choice, over the race's prompts; 0, 0: not known
    TuneEnd end;
    int diverged, failed; // points
} TuneResult;

// The prompts' last ones that don't fill a batch are left out. False with e filled where it cannot go on;
// what ended before is stored. Release also what failed.
bool tune_run(Ledger *ledger, const TuneSpace *space, const TuneOptions *o, const TuneSeams *seams,
              TuneResult *out, Error *e);
void tune_release(TuneResult *r);

// Summed over the rounds [from, to). False where it answered none of them.
bool tune_sum(const TuneSeat *s, int from, int to, TuneAnswer *out);

// The point's speedup over the baseline in the rounds from `from` on that it has answered; NAN: none.
double tune_speedup(const TuneResult *r, int point, int from);

// The point that would be fastest at the context of `there`, and its speedup, of those that raced (of the
// sample without a race): each step emits its tokens, and takes as much longer as a step of its rows does
// there; a draft's passes take as long as here. -1: there is none.
int tune_fastest_at(const TuneResult *r, const TuneSurface *there, double *speedup);

// --- printing

typedef struct TuneReport {
    const Plan *prepared;
    const TuneOptions *options;
    const TuneResult *result;
    const char *store; // where it is stored, as this run
    int64_t run;
    Text doubt; // about the choice's times, as the view point_doubt has it
} TuneReport;

void tune_report(const TuneReport *r);
json_t *tune_report_json(const TuneReport *r); // NULL: a name is not UTF-8
