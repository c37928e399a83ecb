// A run's reports while it runs: on a terminal, a single line that is rewritten; elsewhere a plain line once
// a minute, or JSON events on standard output, one per line.
#pragma once
#include "harness/cli/line.h"
#include "harness/run/ledger.h"

// Where a run is. The texts must live until the next place is set.
typedef struct ReporterPlace {
    const char *phase; // "opening the model"; NULL: a round
    const char *model, *dataset;
    int first_point, last_point; // from 1, of Reporter.points
    int pass, prompt, prompts;   // from 0
    // The current method, from 0, of how many; how many tokens it may write; and its label. 0 and NULL: none.
    int method, methods, tokens;
    const char *label;
    double S, speedup; // so far, of the method `of`; NAN: not yet
    const char *of;
} ReporterPlace;

typedef struct Reporter {
    Line line;
    bool json;
    int points;                // that this part of the sweep has
    bool (*interrupted)(void); // NULL: it can't be interrupted
    double work, done;         // all work, in any unit; the part done since the start
    double round_work;         // of the open round; 0: none is open
    double rounds_s, round_began;
    ReporterPlace place;
} Reporter;

void reporter_begin(Reporter *r, bool json, int points, double work, bool (*interrupted)(void));

void reporter_place(Reporter *r, const ReporterPlace *place); // a phase is written at once
void reporter_method(Reporter *r, int method, int methods, const char *label, int tokens);
void reporter_round(Reporter *r, double work); // a round begins
void reporter_round_end(Reporter *r);
void reporter_clear(Reporter *r); // before anything else is printed

// For the models of a run: shows their work after the place, and stops it when interrupted() returns true.
Progress reporter_progress(Reporter *r);

// Events. Each clears the line first.
void reporter_sample(Reporter *r, const char *hash, const Answer *answer);
void reporter_divergence(Reporter *r, const char *label, const char *prompt, const Answer *answer);
void reporter_failure(Reporter *r, const char *label, const char *why);
// `count` of a baseline's texts, this one first, aren't those that were written first for their prompts.
void reporter_stray(Reporter *r, int point, int count, const char *prompt, int pass);
void reporter_end(Reporter *r, const char *result, int points, int failed, int diverged, double seconds,
                  double harness_s);
