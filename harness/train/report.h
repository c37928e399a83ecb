// A report on a trained model: its losses by domain, its texts, and the gain of every method on it.
#pragma once
#include "harness/train/train.h"

// --- domains ---------------------------------------------------------------------------------------------

typedef struct DomainLoss {
    DomainName name;
    size_t documents, rows; // held out; rows: at most held_out_rows, those that are measured
    double bytes;   // of text per row; a row is a predicted token, and one row per document predicts its end
    double loss;    // nats per row
    double counted; // the loss of 5-grams; NAN: not measured
} DomainLoss;

typedef struct DomainLosses {
    DomainLoss list[WORDS_MAX + 1]; // (count), the last one of all domains together
    int count;
} DomainLosses;

// Measures the run's model and, with `counts`, 5-grams that learn the run's text. An Error if nothing is held
// out.
bool domains_look(TrainRun *r, bool counts, DomainLosses *out, Error *e);

// Writes a Markdown table.
void domains_text(const DomainLosses *d, Text *out);

// --- the report ------------------------------------------------------------------------------------------

typedef struct TrainReport {
    const char *dir;   // directory of report.md; for outputs, the file
    const char *model; // directory of the model
    const char *draft,
        *adapters[ADAPTER_ROLES]; // for the methods that need one; NULL leaves those methods out
    int prompts;                  // per domain
    int tokens;                   // maximum of each output
} TrainReport;

// Writes and prints the report. The run is open with the model's weights.
bool train_report(TrainRun *r, const TrainReport *o, Error *e);

// Writes a text of the model's continuations of documents that it learnt from, half of them greedy and half
// at temperature 0.3, with the run's separator: training text for adapters, heads and drafts.
bool train_outputs(TrainRun *r, const TrainReport *o, Error *e);
