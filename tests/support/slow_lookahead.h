// Lookahead's window and pool, slow and obvious: tokens lie on a grid of age and place, as in the paper's
// Figure 2, the model is asked about one path at a time, and the pool is one list in order of use.
#pragma once
#include "engine/base/random.h"
#include "engine/core/session.h"

enum { SLOW_NGRAMS = 8000, SLOW_N = 6, SLOW_REACH = 24, SLOW_NOTHING = -1 };

typedef struct SlowPool {
    int N, cap; // n-grams of N tokens, cap under a first token
    bool fifo;
    int ngrams[SLOW_NGRAMS][SLOW_N], count; // oldest first
} SlowPool;

void slow_pool_insert(SlowPool *p, const int *ngram);
void slow_pool_remove(SlowPool *p, const int *ngram); // if it's there

// The i-th newest n-gram of the key, or NULL.
const int *slow_pool_get(const SlowPool *p, int key, int i);

typedef struct SlowWindow {
    int W, N, rows;                   // rows of guesses; `rows` of them hold tokens
    int grid[SLOW_N + 1][SLOW_REACH]; // [row][place relative to the last token]
    bool missing[SLOW_REACH];         // by place of the new token: its column's end had no room
    int eos;                          // is not kept; -1: none
    Random random;
    Session *model; // asked by slow_next
    int context;    // available positions
} SlowWindow;

void slow_window_start(SlowWindow *w, const int *text, int count);

static inline bool slow_window_is_filling(const SlowWindow *w) { return w->rows < w->N - 1; }
int slow_window_columns(const SlowWindow *w);

// The path from after the last token to column i's end: row 0 up to place i, then the column. Gives its
// length.
int slow_window_path(const SlowWindow *w, int i, int *path);

// A step after the first `length` tokens of the text: asks the model, collects the n-grams. Random tokens
// are drawn from the text's first `drawn` tokens.
void slow_window_step(SlowWindow *w, const int *text, int length, int drawn, SlowPool *pool);
void slow_window_slide(SlowWindow *w, int by, const int *text, int drawn);
