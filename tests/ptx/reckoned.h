// The time of a step on a card that isn't here, reckoned from what its kernels do on the PTX machine. Never
// measured, and to be called reckoned wherever it is shown.
//
// The engine itself runs the step, on a model of one layer of the shape's sizes and zeros for weights; the
// machine counts launch by launch. Of products one tile with all its parts runs, of attention one key head,
// of the ranking one row; their counts are taken times the grid.
//
// A launch takes dependency + body + tail:
//
//      dependency  from the end of the launch in front: Card.launch_s, or dependent_s where it began early
//      body        the longest of
//          memory      bytes that no kernel of the step wrote, each once, at the data sheet's bandwidth; less
//                      what was fetched early (below)
//          l2          sectors read and written: of all processors at L2's rate, or of the busiest at its own
//          mma         of the busiest processor, at Card.mma_share of the data sheet
//          issue       its instructions, four a cycle; PTX, of which machine code has fewer
//          shared      its passes through the banks of shared memory, one a cycle
//          path        the longest block's way to its last mma, times the waves of blocks that the card holds
//                      at once by their registers, shared memory and threads
//      tail        what is behind the last mma and so beside nothing: the longest block's way from there, or
//                      the sectors that it moves. A kernel without mma has no tail
//
// and a launch that reads memory begins with the first bytes' latency. What early launches hide: an early
// launch's copies before its wait come in while the ones in front have nothing to read, from the moment that
// the launch in front of it was there. So much of memory's time, at most what the blocks that the card holds
// at once have asked for, is taken off.
//
// The model leaves out contention, the order of instructions in machine code, blocks of two launches that
// share a processor, bandwidth that a card does not reach. Paths are right within 40% (cards.h): `worst` has
// them that much longer, and it is what goals are held against.
#pragma once
#include "engine/core/shape.h"
#include "simulate/hardware.h"
#include "tests/ptx/machine.h"

// The data sheet of configs/hardware.
bool card_sheet(const Card *card, Hardware *out, Error *e);

typedef enum { TREE_CHAIN, TREE_LOOKAHEAD } TreeKind; // lookahead: W = 15, N = 5, G = 15, 121 rows

typedef struct Counted { // a launch
    char name[32];
    bool layer; // of the layer, not of what is once a step
    bool early;
    uint32_t blocks, threads, cluster; // of the grid; cluster: of one
    size_t shared;
    int registers;
    Counters c; // of c.blocks blocks, which ran
} Counted;

enum { MOST_COUNTED = 64 };
typedef struct CountedStep {
    int rows, context;
    TreeKind tree;
    Counted launch[MOST_COUNTED];
    int count;
} CountedStep;

// An open engine on the machine as the card has it. Gives NULL with e filled.
typedef struct Counting Counting;
Counting *counting_open(const Shape *shape, const Card *card, Error *e);
void counting_close(Counting *c); // takes NULL
// Contexts may only grow. `same`: a step of the same rows and tree at another context, or NULL: all but
// attention is taken from there.
bool counting_step(Counting *c, int rows, TreeKind tree, int context, const CountedStep *same,
                   CountedStep *out, Error *e);

typedef enum { BY_MEMORY, BY_L2, BY_MMA, BY_ISSUE, BY_SHARED, BY_PATH, BOUNDS } Bound;
extern const char *const BOUND_NAMES[BOUNDS];

typedef struct ReckonedLaunch { // seconds
    int held, busiest;          // blocks that a processor holds; that the busiest runs
    double dependency, by[BOUNDS], hidden, body, tail, total;
    double bytes, mmas; // from memory; of the grid
    Bound bound;
} ReckonedLaunch;

typedef struct ReckonedStep {
    ReckonedLaunch launch[MOST_COUNTED]; // with paths as they are
    double layer, once;             // seconds: of a layer in the midst of others, of all that is once a step
    double layer_worst, once_worst; // with paths as long as they may be
    double layer_floor, once_floor; // bytes at the bandwidth, or mma at the rate on all processors
} ReckonedStep;
void reckon_step(const CountedStep *s, const Card *card, const Hardware *sheet, ReckonedStep *out);
