// What a run says while it runs: one line that renews itself on a terminal, nothing off one, or JSON events,
// a line each, on standard output.
#pragma once
#include "harness/run/ledger.h"

typedef struct Reporter {
    bool terminal, json;
    int points;        // of the sweep
    double began;      // seconds, by the monotonic clock
    double work, done; // what there is to do, in any unit; done since it began
} Reporter;

void reporter_begin(Reporter *r, bool json, int points, double work);

// How far a group has come.
typedef struct ReporterLine {
    const char *model, *dataset, *label; // label: of the method that S and speedup are of
    int first_point, last_point;         // from 1
    int pass, prompt, prompts;           // from 0
    double S, speedup;                   // so far; NAN: not yet
} ReporterLine;
void reporter_line(const Reporter *r, const ReporterLine *line);
void reporter_clear(const Reporter *r); // before anything else is printed

// Events. Each clears the line first.
void reporter_sample(const Reporter *r, const char *hash, const LedgerEntry *entry);
void reporter_divergence(const Reporter *r, const char *label, const char *prompt, const LedgerEntry *entry);
void reporter_failure(const Reporter *r, const char *label, const char *why);
void reporter_end(const Reporter *r, const char *result, int points, int failed, int diverged, double seconds,
                  double harness_s);
