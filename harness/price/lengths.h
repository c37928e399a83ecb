// Mean lengths of guesses that others published, priced on a machine: how many tokens to draft there. A file
// of them has, for a model and a mode, tokens a step by how many are drafted:
//
//      kimi-k2.5:
//        thinking_on:
//          1: 1.83
//          2: 2.43
#pragma once
#include "harness/cli/table.h"
#include "harness/price/prediction.h"

enum { LENGTHS_MOST = 512, DRAFTED_MOST = 64 };

// Texts are the tree's.
typedef struct PublishedLength {
    const char *model, *mode;
    int drafted;
    double length; // tokens a step, the model's own included
} PublishedLength;

typedef struct PublishedLengths {
    PublishedLength *items; // (count) as in the file
    int count;
    struct YamlTree *tree; // harness/config/yaml.h
} PublishedLengths;

// False with e filled, at the place of the mistake. Release takes an empty one.
bool lengths_open(const char *path, PublishedLengths *out, Error *e);
void lengths_release(PublishedLengths *l);

// How a draft is priced, beside what the prediction was asked for.
typedef struct LengthsPrice {
    int context; // committed tokens of a sequence
    bool block;  // the draft guesses all tokens in one pass
} LengthsPrice;

extern const TableForm lengths_form;
void lengths_put(const PublishedLengths *l, const Prediction *p, const LengthsPrice *how, RecordTable *t);
