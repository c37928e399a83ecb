// What is held out of each domain of a text, and what a model loses there.
#pragma once
#include "harness/train/run.h"

typedef struct DomainLoss {
    DomainName name;
    size_t documents, rows; // held out; rows: those that are looked at, as many as held_out_rows
    double bytes;   // of text, a row; a row is a token that is foretold, and one of them ends the text
    double loss;    // nats a row
    double counted; // that of 5-grams; NAN: not asked
} DomainLoss;

typedef struct DomainLosses {
    DomainLoss list[WORDS_MAX + 1]; // (count), the last one of all together
    int count;
} DomainLosses;

// Of the run's model; counts: and of 5-grams that learn the run's text. There must be something held out.
bool domains_look(TrainRun *r, bool counts, DomainLosses *out, Error *e);

// As a Markdown table.
void domains_text(const DomainLosses *d, Text *out);

// Prompts of one domain: the beginnings of documents, no two alike.
typedef struct DomainPrompt {
    const int *ids; // (count), in the corpus
    int count;
    int length; // of the document
} DomainPrompt;

// At most `most` of a feed of the run, in its order; gives how many. Half of a document, and 64 tokens at
// most.
int domains_prompts(const TrainRun *r, const Feed *f, const DomainName *name, DomainPrompt *out, int most);

// The domains of a file, each once; gives how many, WORDS_MAX at most.
int domains_list(const TrainFile *f, DomainName *out);
