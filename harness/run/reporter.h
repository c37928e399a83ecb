// What a run says while it runs: one line that renews itself on a terminal, a plain one once a minute off it,
// or JSON events, a line each, on standard output.
#pragma once
#include "harness/program/line.h"
#include "harness/run/ledger.h"

// Where a run is. The texts outlive it, or the next place is told before they go.
typedef struct ReporterPlace {
    const char *phase; // "opening the model"; NULL: a round
    const char *model, *dataset;
    int first_point, last_point; // from 1
    int pass, prompt, prompts;   // from 0
    // The method at work, from 0, of how many; how many tokens it may write; and its label. 0 and NULL: none.
    int method, methods, tokens;
    const char *label;
    double S, speedup; // so far, of the method `of`; NAN: not yet
    const char *of;
} ReporterPlace;

typedef struct Reporter {
    Line line;
    bool json;
    int points;                // of the sweep
    bool (*interrupted)(void); // NULL: nobody does
    double work, done;         // what there is to do, in any unit; done since it began
    double round_work;         // of the round that is open; 0: none is
    double rounds_s, round_began;
    ReporterPlace place;
} Reporter;

void reporter_begin(Reporter *r, bool json, int points, double work, bool (*interrupted)(void));

void reporter_place(Reporter *r, const ReporterPlace *place); // a phase is written at once
// Which method is at work, from 0, of how many; and how many tokens it may write.
void reporter_method(Reporter *r, int method, int methods, const char *label, int tokens);
void reporter_round(Reporter *r, double work); // it begins
void reporter_round_end(Reporter *r);
void reporter_clear(Reporter *r); // before anything else is printed

// For the models of a run: what they are at is written behind the place. The work ends where interrupted()
// says.
Progress reporter_progress(Reporter *r);

// Events. Each clears the line first.
void reporter_sample(Reporter *r, const char *hash, const LedgerEntry *entry);
void reporter_divergence(Reporter *r, const char *label, const char *prompt, const LedgerEntry *entry);
void reporter_failure(Reporter *r, const char *label, const char *why);
void reporter_end(Reporter *r, const char *result, int points, int failed, int diverged, double seconds,
                  double harness_s);
