// The network of engine/train in double, written to be read: what its losses and gradients are held against.
#pragma once
#include "engine/base/random.h"
#include "engine/train/network.h"

enum { PLAIN_ROWS = 200, PLAIN_WIDTH = 192 }; // most rows of a batch; most of any row

// Loss and gradients of a batch against the plain network with the same weights: a few numbers of every
// tensor, by finite differences.
void plain_compare(Network *n, const Batch *b, Random *r);
