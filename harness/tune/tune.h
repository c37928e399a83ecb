// Finds the fastest point of a method's space in little time: the surface once, a few points of the space,
// what they say of all, and a race among the best few.
//
//      surface   the time of a step by its rows, at the dataset's middle context
//      sample    the points of a design decode the same prompts, in turned order, beside the baseline
//      predict   all of the space (simulate/tuning.h)
//      close in  points that may be the best, as far as is known, decode the sample's prompts, two at a time
//      race      the best few on the prompts behind those, round by round, till one is left
//      (simulate/race.h); then
//                that one with those who could be ahead of it, as far as all these prompts say
//
// What each part may take is planned with what steps were measured to take (simulate/plan.h): all together no
// more than the budget, nor than a share of what the sweep of all points would take. Rounds are the runner's
// own, and all that is measured is stored as they end.
#pragma once
#include "harness/run/runner.h"
#include "harness/stored/tally.h"
#include "harness/tune/space.h"
#include "harness/tune/surface.h"

typedef struct TuneOptions {
    double budget_s; // nothing is begun that would not end in it, as far as is known
    double share;    // of what the sweep would take, at most; but what a small space needs it gets
    int prompts;     // of the sample, at most
    int sample;      // points of its design, at most; 0: as many as the space asks for
    int racers;      // at most
    int laps;        // of a race through the prompts, at most
    double margin;   // of time: points nearer than that are the same
    bool exhaustive; // every point on every prompt once, and no race; the budget is not looked at
    bool processor;  // measure processor time, on a machine that is not at rest; the budget is the wall's
    bool quiet;
} TuneOptions;

// What a test puts in place of the real things; NULL: those.
typedef struct TuneSeams {
    bool (*interrupted)(void);
    Clock (*clock)(const Session *target); // of what is measured, and of the budget
} TuneSeams;

typedef struct TuneAnswer { // one prompt by one point, or several summed
    int round, prompt;
    double tokens, steps, rows, seconds; // of decoding
    double whole_s;                      // with the prefill
    bool diverged;
} TuneAnswer;

typedef struct TuneSeat { // a point of the space, or the baseline, which is the last
    TuneAnswer *answers;  // (count), by round
    size_t count, capacity;
    bool sampled, raced;
    int out; // rounds of the race behind which it dropped out; 0: it stayed
} TuneSeat;

typedef enum { TUNE_CERTAIN, TUNE_LAPS, TUNE_BUDGET, TUNE_SHARE, TUNE_SWEPT, TUNE_INTERRUPTED } TuneEnd;

typedef struct TuneResult {
    TuneSeat *seats;               // (points + 1)
    TuningPrediction *predictions; // (points); zeros where it was interrupted before
    TuningLaw law;
    double prompt_error; // of the logarithm of a point's S: what other prompts than the sample's may do to
                         // its rank
    TuneSurface surface;
    int points;
    int excluded; // points that cannot win, whatever is accepted of them
    int sample_prompts, sample_rounds, race_rounds;
    int heat;                         // rounds before the race's last heat, which the choice's speedup is of
    double sample_s, race_s, sweep_s; // sweep_s: of every point on every prompt once, as predicted
    int choice;                       // -1: nothing was measured
    Interval speedup;                 // of the choice, over the race's prompts; 0, 0: not known
    TuneEnd end;
    int diverged, failed; // points
} TuneResult;

// False with e filled where it cannot go on; what ended before is stored. Release also what failed.
bool tune_run(Ledger *ledger, const TuneSpace *space, const TuneOptions *o, const TuneSeams *seams,
              TuneResult *out, Error *e);
void tune_release(TuneResult *r);

// Summed over the rounds [from, to). False where it answered none of them.
bool tune_sum(const TuneSeat *s, int from, int to, TuneAnswer *out);

// The point's speedup over the baseline in the rounds from `from` on that it has answered; NAN: none.
double tune_speedup(const TuneResult *r, int point, int from);
