// A small sweep on the null backend without a program around it: the model in `tiny` here (model synth), also
// as its own draft, and prompts of our own.
#pragma once
#include "harness/run/run.h"

typedef struct SmallRun {
    Experiment x;
    Sweep sweep;
    Schedule schedule;
    Inputs inputs;
    char config[2048];
} SmallRun;

// methods and measurement: the text between the brackets of the config. Writes own.txt here.
SmallRun *small_open(const char *methods, const char *measurement, int prompts);
// The same with more of the model, such as "heads: DIR", on a device.
SmallRun *small_open_with(const char *model, const char *device, const char *methods, const char *measurement,
                          int prompts);
void small_close(SmallRun *r);

// Runs it, or continues it, in the store `db`.
bool small_try(const SmallRun *r, const char *db, const RunSeams *seams, RunResult *out, Error *e);
RunResult small_run(const SmallRun *r, const char *db, const RunSeams *seams); // must not fail
