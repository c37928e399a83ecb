// The price model against the world: S and speedup as papers printed them, beside the price of
// a step (results/prices.tsv). speedup / S is the time of a step of one token over that of the
// method's step, which needs no run of ours.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

// A program's loss against the price is one constant, estimated from its other pairs, none of the same row,
// model and machine.
typedef enum LossKind {
    LOSS_STEP,  // a share of the step
    LOSS_DRAFT, // a share of the draft; from all other pairs, as few models tell
    LOSS_PASS,  // seconds of a pass of the draft: one of few bytes, that waits for its host
    LOSS_LAYER  // seconds that the host takes for a layer: no step is faster, be it of one token or of many
} LossKind;

typedef struct PricePair {
    const char *family; // pairs of one program
    const char *item, *row, *model, *task, *machine, *taken;
    double S, speedup; // as published
    double one, verify, draft,
        step;      // seconds by the price, of data sheets: of one token; of the method's step
    double passes; // of the draft, a step
    int layers;
    LossKind loss;
    double with_loss; // seconds of the step with the loss of the others of its family; NAN: there are none
} PricePair;

typedef struct Prices {
    PricePair *list; // (count)
    size_t count, capacity;
    char *text; // that the list points into
    struct Published *published;
    size_t published_count, published_capacity;
} Prices;

// False with e filled, and out empty.
bool prices_open(Prices *out, Error *e);
void prices_close(Prices *p); // takes an empty one

// Of speedup / S, relative.
double price_error(const PricePair *p);
double price_error_with_loss(const PricePair *p); // NAN: there are no others

// As Markdown: the table of results/prices.md.
void prices_print(const Prices *p, Text *out);
