// How much a text repeats itself: a small model that falls into a loop makes any method look fast.
#pragma once
#include <stdbool.h>

// The share of its 4-grams that it has said before; below 0: it has none, or there is no memory.
double repetition_share(const int *ids, int count);

// Whether it goes in a loop: its last part stands there three times in a row, twelve tokens or more in all,
// or the same eight tokens stand in it three times, none of them twice.
bool repetition_loops(const int *ids, int count);
