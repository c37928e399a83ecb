// A small store that has something to draw in every figure, always the same: a sweep of many methods over two
// datasets, one of an awkward name, with a method that failed, one that is skipped and one whose text is
// another; and a surface with a hole. Its model is a stand-in.
#pragma once
#include "plots/plots.h"
#include "results/store.h"

enum {
    PLOT_SWEEP = 1,
    PLOT_SURFACE = 2,
    PLOT_TEMPERATURE = 3, // one method over temperature
    PLOT_RIDGE = 4,       // one method over batches, of a model and its codes
    PLOT_ELSEWHERE = 5    // some of the first on another machine
};                        // its runs

// What might have been computed of the first (harness/papers/computed.h):
// tests/fixtures/plots/computed.json.
extern const char plot_computed[];

#define PLOT_AWKWARD "`id` <script>alert(1)</script> it's \"50%\" @x_{2} \\n"

// The run that has something for a figure, and what is computed of it: nothing for figures over batches,
// which show what was measured.
int64_t plot_store_run(const Figure *f);
const char *plot_store_computed(const Figure *f);

// change: 0, or another number for other measurements. Fails the test if it can't be written.
void plot_store_make(const char *path, int change);
