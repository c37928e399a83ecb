// The parts of the program `card` (card.c). Each writes one JSON object to the file given by -o, or to
// stdout, and returns the exit code. --small makes sizes and times tiny: the same work, for a rehearsal.
#pragma once
#include "engine/base/error.h"
#include "engine/cuda/kernels/runtime.h"

#include <jansson.h>
#include <stdbool.h>

int card_probe(int argc, char **argv); // what the card can do (probe.c)
int card_lab(int argc, char **argv);   // variants of kernels against each other (lab.c)

// join OUT KEY/NAME=FILE..: files as values of one object, as JSON if they are, or else as text.
int card_join(int argc, char **argv);

typedef struct CardOptions {
    const char *out, *choice; // choice: a file for the lab's fastest variants
    bool small;
} CardOptions;
bool card_options(int argc, char **argv, CardOptions *out, Error *e);

// A card in use, and what times its work. Every function fills e on failure.
typedef struct Card {
    GpuFacts facts;
    void *stream, *from, *to;
    bool small;
} Card;
bool card_open(Card *c, bool small, Error *e);
void card_close(Card *c);
bool card_ok(int code, const char *what, Error *e);

// Puts work into the card's stream. May be called many times.
typedef void CardWork(void *with, void *stream);

// Median seconds of a call, of at least `runs` and `seconds` together, after one that isn't counted.
bool card_time(Card *c, CardWork *work, void *with, int runs, double seconds, double *median, Error *e);

// The card's name, compute capability, processors, memory, versions; clocks, power and heat at this moment.
json_t *card_facts_json(const Card *c);
json_t *card_gauge_json(void);
bool card_write(json_t *root, const char *path, Error *e); // takes root
