// The domains of a training's text: losses by domain, and texts that its model writes in each.
#pragma once
#include "harness/train/train.h"

typedef struct DomainLoss {
    DomainName name;
    size_t documents, rows; // held out; rows: at most held_out_rows, those that are measured
    double bytes; // of text per row; a row is a predicted token, and one row per document predicts its end
    double loss;  // nats per row
} DomainLoss;

typedef struct DomainLosses {
    DomainLoss list[WORDS_MAX + 1]; // (count), the last one of all domains together
    int count;
} DomainLosses;

// Measures the run's model. An Error if nothing is held out.
bool domains_look(TrainRun *r, DomainLosses *out, Error *e);

// Writes a Markdown table.
void domains_text(const DomainLosses *d, Text *out);

typedef struct DomainTexts {
    const char *file, *model; // to write; the model's directory
    int prompts;              // per domain
    int tokens;               // maximum of each output
} DomainTexts;

// Writes the model's continuations of documents that it learnt from, half of them greedy and half at
// temperature 0.3, with the run's separator: training text for adapters, heads and drafts.
bool domains_write(TrainRun *r, const DomainTexts *o, Error *e);
