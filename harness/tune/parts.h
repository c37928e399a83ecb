// Shared by the parts of tuning: sample, prediction and race.
#pragma once
#include "harness/run/run.h"
#include "harness/tune/tune.h"

// Tokens per step where nothing is measured yet.
static const double GUESSED_S = 1.5;

typedef struct Tune {
    Ledger *ledger;
    const Inputs *in;
    const TuneSpace *space;
    const TuneOptions *o;
    TuneSeams seams;
    TuneResult *out;
    Models models;
    GroupRun g;
    PointProgress *states; // (points of the schedule)
    PromptList warm_up;
    Reporter reporter;
    char phase[96]; // of its place
    Watch watch;
    bool *asked;               // (seats) for the next round
    int *passes;               // (prompts) so far
    double *expected;          // (seats) seconds of an answer with its prefill, by the measuring clock
    double wall_s, answered_s; // of all rounds by the wall clock; of their answers by the measuring clock
    double begin_s;            // expected time to open one more point and wake it up
    double prompt_tokens;      // of the dataset's prompts, on average
    Clock wall;                // of the budget
    double began;
    double limit_s; // the smaller of the budget and the share of a sweep
    double least_s; // lower bound of that share, counted from the start
    int rounds;     // so far
    int awake;      // seats
} Tune;

// Rounds.

double tune_spent(const Tune *t); // seconds, by the wall clock

// Wall-clock seconds per second of the measuring clock, so far: above 1 where others use the machine, too.
double tune_scale(const Tune *t);

// True if somebody has interrupted, or if work of `next` more seconds would end after `until`, both by the
// wall clock.
bool tune_is_over(Tune *t, double until, double next);
void tune_say(Tune *t, const char *what, int round);

// `ok`; an interruption is not a failure, but the end.
bool tune_goes_on(Tune *t, bool ok, Error *e);

// From now on the seat is asked in every round; it is opened and woken up if it is not yet.
bool tune_seat(Tune *t, int seat, Error *e);

// How long the next round is expected to take, by the wall clock.
double tune_round_seconds(const Tune *t);

// All seats that are asked, and the baseline, answer one prompt.
bool tune_round(Tune *t, int prompt, Error *e);

// Sets t->expected, how long each point's answers should take: first of all points, from the warm-up of one
// (`seat`); then, of points that have not answered, from the predictions; and of a seat from its own answers.
void tune_expect_planned(Tune *t, int seat);
void tune_expect_predicted(Tune *t);
void tune_expect_answered(Tune *t, int seat);

// Sets limit_s and the result's sweep_s from the expected times.
void tune_set_limit(Tune *t);

// Chooses the sample and measures it.
bool tune_sample(Tune *t, Error *e);

// Predicts every point of the space from the measured ones.
bool tune_predict(Tune *t, Error *e);

// Races the points that the predictions choose; sets the winner, its speedup, and why the race ended.
bool tune_race(Tune *t, Error *e);
