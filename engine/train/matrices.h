// The matrices of a layer as its products see them, and as they are packed for one direction of a pass: once,
// by all threads, for all rows.
#pragma once
#include "engine/train/linear.h"
#include "engine/train/network.h"

// Where a matrix begins in the parameters; NO_PARAMETER where the layer has none.
size_t matrix_at(const LayerPlan *plan, LayerMatrix m);

// Without scratch, which belongs to a thread.
Linear matrix_linear(const Network *n, int layer, LayerMatrix m);

// Room for the panels of any layer; network_close frees it.
bool matrices_open(Network *n);

// A thread's share of packing all matrices of a layer.
void matrices_pack(const Network *n, int layer, bool backward, int thread, int threads);
