// What a step must move and compute: the numerators of the two floors under its time.
#pragma once
#include "engine/core/backend.h"

typedef struct StepShape {
    int rows;          // nodes run
    int read;          // of them that reach the LM head
    int context;       // committed tokens
    int cache_readers; // times the cached context is read or written: 1, or one a row of LAYOUT_BATCH
    double seen;       // positions that the nodes see, summed over nodes
} StepShape;

typedef struct StepCost {
    double bytes;      // weights once, cached keys and values
    double operations; // products and attention; a multiply-add counts two
} StepCost;

StepCost step_cost(const Shape *shape, const BackendReport *report, const StepShape *step);
