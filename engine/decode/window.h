// Lookahead's window (section 3.1): N-1 rows of guesses for what comes, each row what the model said of the
// one before it, so that a token down every column makes an n-gram. With p the position of the sequence's
// last token, row 0's token i stands at p+1+i and row l's at p+l+i; here W = 5, N = 4:
//
//      row 0  (orange)      1 2 3 4            a chain below the last token
//      row 1  (green)       1 2 3 4 5          token i below row 0's token i-1 (i = 0: the last token)
//      row 2  (red)           2 3 4 5 6        token i below row 1's token i
//      new                      3 4 5 6 7      what the model says after row 2's token i
//
// Column i is row 0's token i-1 (column 0: the last token), then token i of every row and the new one: an
// n-gram. A step later the rows move down by one, `new` being the last, and the window slides along the
// sequence.
//
// At the start there is row 0 alone, of W+N-3 random tokens. Until all rows are filled, N-2 steps, no row
// moves down: each step fills one more, and each loses its first token.
//
// Invariant between steps: row 0 holds `length` tokens, rows 1 .. rows-1 hold one more.
#pragma once
#include "engine/base/random.h"
#include "engine/core/session.h"
#include "engine/decode/ngram_pool.h"

typedef struct Window {
    int W, N;
    int rows;    // with tokens: from 1 up to N-1
    int length;  // of row 0: from W+N-3 down to W-1
    int stride;  // of the array below: W+N-2, the most columns there are
    int *tokens; // (N, stride): row l's token i; row `rows` receives the new ones
    int *ends;   // (stride): the step's node at the end of each column, or TREE_NONE where there was no room
} Window;

// Random tokens are drawn from a text.
typedef struct WindowSource {
    Random *random;
    const int *tokens;
    int count; // at least 1
} WindowSource;

// W at least 1, N at least 2.
bool window_init(Window *w, int W, int N, Error *e);
void window_release(Window *w);

// The window of a new sequence.
void window_start(Window *w, const WindowSource *from);

static inline bool window_is_filling(const Window *w) { return w->rows < w->N - 1; }
static inline int window_columns(const Window *w) { return w->length + 1; }
static inline int window_nodes(int W, int N) { return (W - 1) + (N - 2) * W; } // in the steady state

// Adds columns [first, last) below `base`, a root; with them as much of row 0 as they hang off. Between two
// window_slide, every column is added once.
void window_probe(Window *w, Tree *tree, int base, int first, int last);

// Reads the new tokens; where a column had no room in the tree, its is drawn from the source.
void window_read(Window *w, const Session *s, const WindowSource *from);

// Inserts every column's n-gram, (N-1)-tuples, first column first; none while filling. `last` is the token
// that the window hangs off.
void window_collect(const Window *w, int last, NgramPool *pool);

// Goes on to the next step, `by` positions along the sequence, at least 1. Tokens of a kind that `eos` lists
// are not kept; in their place, and where a row has run out (by > 1), stand drawn ones.
void window_slide(Window *w, int by, const int *eos, int eos_count, const WindowSource *from);
