// The passes that a step has run, on all of its models: their shapes, from which the step's time on other
// hardware can be computed. Equal passes are counted together, in the order in which each kind first came.
#pragma once

typedef enum { PASS_TARGET, PASS_DRAFT, PASS_ADAPTER } PassModel;

// a < b: nodes through layers [a, b). a = b, the number of layers: the LM head on nodes.
typedef struct Pass {
    PassModel model;
    int a, b;
    int rows;    // nodes of one pass
    int context; // tokens committed before it
    int count;   // passes like this one
} Pass;

enum { PASS_LOG_SIZE = 512 };

typedef struct PassLog {
    Pass passes[PASS_LOG_SIZE]; // (count)
    int count;
} PassLog;

static inline void pass_log_clear(PassLog *log) { log->count = 0; }

// Counts a pass (its `count` is ignored). When the log is nearly full, a pass is counted with the last one of
// the same model and layers, whatever its rows and context.
void pass_log_add(PassLog *log, const Pass *pass);

// Name of a model: target, draft, adapter.
const char *pass_model_name(PassModel model);
