// What a trained model is like: its losses, what it writes, and what every method gains on it.
#pragma once
#include "harness/train/run.h"

typedef struct TrainReport {
    const char *dir;                     // to write report.md into; of outputs, the file
    const char *model;                   // the directory that is reported on
    const char *draft, *adapter, *heads; // for the methods that need one; NULL: these are left out
    int prompts;                         // of each domain
    int tokens;                          // of each output, at most
} TrainReport;

// The run is open with the model's weights. The report is printed, too.
bool train_report(TrainRun *r, const TrainReport *o, Error *e);

// Writes a text of what the model writes after the beginnings of documents that it learned from, half of it
// greedy and half at temperature 0.3, with the run's separator: for adapters, heads and drafts to learn from.
bool train_outputs(TrainRun *r, const TrainReport *o, Error *e);
