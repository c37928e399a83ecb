// What tuning found, for people and as JSON.
#pragma once
#include "harness/tune/tune.h"

typedef struct TuneReport {
    const Prepared *prepared;
    const TuneSpace *space;
    const TuneOptions *options;
    const TuneResult *result;
    const char *store; // where it is stored, as this run
    int64_t run;
} TuneReport;

bool tune_report(const TuneReport *r, Error *e);
bool tune_report_json(const TuneReport *r, Error *e);
