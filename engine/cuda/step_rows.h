// What a step is on the device.
//
// Rows are the nodes that a run takes through layers, or those that the head looks at. How many there are,
// and all else that changes from step to step, is read on the device, from one buffer that one copy fills:
//
//      | Step | StepNode of node 0, 1, .. count-1 | path of node 0 | path of node 1 | ..
//
// so that a launch's arguments never change and it can be part of a graph. What is launched is sized by
// `most`, an upper bound of the rows; blocks without work leave at once.
#pragma once
#include <stdint.h>

typedef struct RowList {
    int count;
    int first;  // row r is node first + r; or, where it is negative,
    int node[]; // (count)
} RowList;

typedef struct StepNode {
    int token, position;
    unsigned path; // where its path begins: nodes of this step from its root to itself
} StepNode;

typedef struct Step {
    int count, first; // as in RowList
    int nodes;        // of the tree so far
    int context;      // committed positions
} Step;

static inline const RowList *step_rows(const Step *s) { return (const RowList *)(const void *)s; }
