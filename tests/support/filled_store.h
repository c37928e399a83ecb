// A store filled with made-up samples: one run, one model, one dataset, an autoregressive point and others
// that divide by it. A sample is a pure function of (point, pass, prompt), so two fillings can be compared.
#pragma once
#include "engine/base/text.h"
#include "results/store.h"

enum { FILLED_POINTS = 64, FILLED_PROMPTS = 512, FILLED_STEPS = 512 };

typedef struct FilledStore {
    Store *store;
    int64_t run, attempt, model, dataset;
    int64_t points[FILLED_POINTS];   // (point_count): [0] is autoregressive
    int64_t prompts[FILLED_PROMPTS]; // (prompt_count)
    int point_count, prompt_count;
    int steps; // of a sample, at least; the autoregressive ones have as many as tokens
} FilledStore;

// Opens or makes the store and its run, points and prompts. False with e filled, and nothing open.
bool filled_open(FilledStore *f, const char *path, const StoreOptions *options, int points, int prompts,
                 Error *e);
void filled_close(FilledStore *f);

// One sample of point number `point`, prompt number `prompt`; true where it was there already.
bool filled_add(FilledStore *f, int point, int pass, int prompt, Error *e);

// All samples of these passes, prompt by prompt, those there already left out.
bool filled_add_all(FilledStore *f, int passes, Error *e);

// The content of its samples, in a fixed order and without ids: equal for equal content, however it came in.
void filled_dump(Store *s, Text *out);
