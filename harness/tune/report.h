// What tuning found, for people and as JSON.
#pragma once
#include "engine/base/text.h"
#include "harness/tune/tune.h"

typedef struct TuneReport {
    const Plan *prepared;
    const TuneSpace *space;
    const TuneOptions *options;
    const TuneResult *result;
    const char *store; // where it is stored, as this run
    int64_t run;
    Text doubt; // about the choice's times, as the view point_doubt has it
} TuneReport;

bool tune_report(const TuneReport *r);
bool tune_report_json(const TuneReport *r);
