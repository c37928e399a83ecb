// A method tuned in this process: its space, and all that came of it.
#pragma once
#include "harness/tune/space.h"
#include "harness/tune/tune.h"

typedef struct Tuned {
    Plan p;
    TuneSpace space;
    TuneResult result;
} Tuned;

// As a run of its own in the store `db`. False with e filled where the tuning failed; the test fails where it
// could not begin.
bool tuned_try(Tuned *t, const TuneAsk *ask, const TuneOptions *o, const TuneSeams *seams, const char *db,
               Error *e);

// The test fails where it cannot be done.
void tuned_open(Tuned *t, const TuneAsk *ask, const TuneOptions *o, const TuneSeams *seams, const char *db);
void tuned_release(Tuned *t);

double tuned_took(const TuneResult *r); // seconds, by the clock of the seams
