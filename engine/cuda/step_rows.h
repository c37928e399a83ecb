// What a step is on the device.
//
// Rows are the nodes that a run takes through layers, or those that the head looks at. How many there are,
// and all else that changes from step to step, is read on the device, from one buffer that one copy fills:
//
//      | Step | Tile of tile 0, 1, .. tiles-1 | Turn of turn 0, 1, .. turns-1 | StepNode of node 0, 1, .. |
//
// so that a launch's arguments never change and it can be part of a graph. What is launched is sized by
// `most`, an upper bound of the rows; blocks without work leave at once.
#pragma once
#include "engine/cuda/matrix.h"

#include <stdint.h>

typedef struct RowList {
    int count;
    int first;  // row r is node first + r; or, where it is negative,
    int node[]; // (count)
} RowList;

typedef struct StepNode {
    int token, position;
} StepNode;

typedef struct Step {
    int count, first; // as in RowList
    int context;      // committed positions
    int tiles, turns;
    int unused[3]; // what follows is read 8 bytes at a time
} Step;

// Attention cuts positions at multiples of 16 into blocks, of SPAN into spans. A tile is some nodes whose
// queries go through attention together; a turn is a block for those of the tile's nodes whose paths agree in
// it, up to where each of them ends. A block that is committed as a whole is one turn for all nodes, and is
// in no list. turns.c makes tiles and turns, once a step for all layers and heads.
enum { TILE_NODES = 16, BLOCK = 16, SPAN = 128, SPAN_TURNS = 16, STEP_SPANS = 9, NO_KEY = 0xffff };

typedef struct Tile {
    int nodes;           // 0: a launch has more tiles than the step
    int lowest, highest; // positions that any of them sees
    int unused;
    int turn[STEP_SPANS + 1]; // of the k-th span from the one that position `context` is in: turn[k] up to,
                              // not with, turn[k + 1]
    int position[TILE_NODES];
    uint16_t row[TILE_NODES];
} Tile;

typedef struct Turn {
    int base;            // the block's first position
    uint16_t nodes;      // a bit for each of the tile's
    uint16_t last;       // where in the block the path ends
    uint16_t key[BLOCK]; // the path's nodes; NO_KEY: committed, or behind the path's end
} Turn;

static inline const RowList *step_rows(const Step *s) { return (const RowList *)(const void *)s; }
HOST_AND_DEVICE static inline int block_of(int position) { return position / BLOCK * BLOCK; }
