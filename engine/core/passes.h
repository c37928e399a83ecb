// The log of a step's passes, from which its time on other hardware can be computed.
#pragma once

typedef enum { PASS_TARGET, PASS_DRAFT, PASS_ADAPTER } PassModel;

// One forward. a < b: nodes through layers [a, b). a = b: the LM head on nodes that have been through a
// layers; a = b = 0: EAGLE-3's fc on the states that nodes were given.
typedef struct Pass {
    PassModel model;
    int a, b;
    int rows;    // nodes of one pass
    int context; // tokens committed before it
    int count;   // equal passes
} Pass;

enum { PASS_LOG_SIZE = 512 };

// The passes of all models of a step; equal ones are counted together, in the order of the first of them.
typedef struct PassLog {
    Pass passes[PASS_LOG_SIZE]; // (count)
    int count;
} PassLog;

static inline void pass_log_clear(PassLog *log) { log->count = 0; }

// Counts a pass (not its `count`). A nearly full log counts it with the last one of its model and layers.
void pass_log_add(PassLog *log, const Pass *pass);
