// Times of a step's parts by themselves: what the price of any step is made of.
#pragma once
#include "harness/machine/bench.h"

typedef enum {
    PART_LAYERS,  // rows through layers [a, b)
    PART_HEAD,    // the LM head on rows, and the best token of each
    PART_PREFILL, // rows run and committed
    PART_COMMIT,  // rows that have been run, committed
    PART_HOST,    // a tree of rows built: no arithmetic
    PART_KINDS
} PartKind;
extern const char *const part_names[PART_KINDS]; // as the store calls them

typedef struct PartPoint {
    PartKind kind;
    int a, b; // LAYERS
    int rows, context;
    BenchTime time;
} PartPoint;

// As bench_point: the context is set as needed. False with e filled, also where interrupted.
bool part_time(Session *s, const BenchOptions *o, PartPoint *p, Error *e);
