// The race, and what it shares with the parts of tuning before it.
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
    bool *asked; // (seats) for the next round
    Clock wall;  // of the budget
    double began;
    int rounds; // so far; the next one's prompt and pass follow
} Tune;

// Whether that share of the budget is gone, or somebody has interrupted.
bool tune_is_over(Tune *t, double share);
void tune_say(const Tune *t, const char *what, int round);

// Asks the seat from now on; opens and warms it up where it is not.
bool tune_seat(Tune *t, int seat, Error *e);

// One prompt by all that are asked, and the baseline.
bool tune_round(Tune *t, Error *e);

// Among what the predictions choose; sets the choice, its speedup and how it ended.
bool tune_race(Tune *t, Error *e);
