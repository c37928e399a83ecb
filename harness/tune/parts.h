// What the parts of tuning share: sample, prediction and race.
#pragma once
#include "harness/run/seats.h"
#include "harness/tune/tune.h"

typedef struct Tune {
    Ledger *ledger;
    const Inputs *in;
    const TuneSpace *space;
    const TuneOptions *o;
    TuneSeams seams;
    TuneResult *out;
    Models models;
    GroupRun g;
    PointState *states; // (points of the schedule)
    PromptList warm_up;
    Reporter reporter;
    Watch watch;
    bool *asked;               // (seats) for the next round
    int *passes;               // (prompts) so far
    double *expected;          // (seats) seconds of an answer by the clock that measures, its prefill with it
    double wall_s, answered_s; // of all rounds: by the wall, and of the answers by the clock that measures
    double begin_s;            // expected for a further point: to open it and wake it up
    double prompt_tokens;      // of the dataset's prompts, on average
    Clock wall;                // of the budget
    double began;
    double limit_s; // of the budget and of the sweep's share, what is less
    double least_s; // what the share is at least, with all that is spent by then
    int rounds;     // so far
    int awake;      // seats
} Tune;

double tune_spent(const Tune *t);

// The wall's seconds for one of those that measure, so far: more, where others use the machine.
double tune_scale(const Tune *t);

// Whether somebody has interrupted, or what would take `next` seconds more would not end by `until`, both of
// the wall.
bool tune_is_over(Tune *t, double until, double next);
void tune_say(const Tune *t, const char *what, int round);

// Asks the seat from now on; opens and wakes it up where it is not.
bool tune_seat(Tune *t, int seat, Error *e);

// The wall's seconds that the next round is expected to take.
double tune_round_seconds(const Tune *t);

// One prompt by all that are asked, and the baseline.
bool tune_round(Tune *t, int prompt, Error *e);

// What answers are expected to take, from what warming up took: `seat` is the only point that has.
void tune_expect_planned(Tune *t, int seat);
// The same from the predictions, but of points that have answered.
void tune_expect_predicted(Tune *t);
// The seat's own answers so far say it.
void tune_expect_answered(Tune *t, int seat);
// Sets limit_s and the result's sweep_s from what is expected.
void tune_set_limit(Tune *t);

// Chooses the sample and measures it.
bool tune_sample(Tune *t, Error *e);

// All of the space from what is measured of the sample.
bool tune_predict(Tune *t, Error *e);

// Among what the predictions choose; sets the choice, its speedup and how it ended.
bool tune_race(Tune *t, Error *e);
