// Lookahead's window (section 3.1): N-1 rows of guesses at the text to come. Each row is the model's output
// for the row before it, so a token from each row down a column makes an n-gram. With p the position of the
// sequence's last token, row 0's token i is at position p+1+i and row l's at p+l+i; here W = 5, N = 4:
//
//      row 0  (orange)      1 2 3 4            a chain below the last token
//      row 1  (green)       1 2 3 4 5          token i below row 0's token i-1 (i = 0: the last token)
//      row 2  (red)           2 3 4 5 6        token i below row 1's token i
//      new                      3 4 5 6 7      the model's output after row 2's token i
//
// Column i is row 0's token i-1 (column 0: the last token), then token i of every row and the new one: an
// n-gram. After each step the rows move down by one, `new` becomes the last row, and the window slides along
// the sequence.
//
// The window starts with row 0 only: W+N-3 random tokens. Until all rows are filled, N-2 steps, no row moves
// down: each step fills one more row, and each row loses its first token.
//
// Invariant between steps: row 0 holds `length` tokens, rows 1 .. rows-1 hold one more.
#pragma once
#include "engine/base/random.h"
#include "engine/core/session.h"
#include "engine/decode/structures/ngram_pool.h"

typedef struct Window {
    int W, N;
    int rows;    // filled rows: from 1 to N-1
    int length;  // of row 0: from W+N-3 down to W-1
    int stride;  // of `tokens`: W+N-2, the most columns there are
    int *tokens; // (N, stride): row l's token i; row `rows` receives the new ones
    int *ends;   // (stride): the step's node at the end of each column; TREE_NONE if it did not fit
} Window;

// Random tokens are drawn from a text.
typedef struct WindowSource {
    Random *random;
    const int *tokens;
    int count; // at least 1
} WindowSource;

// W at least 1, N at least 2.
void window_init(Window *w, int W, int N);
void window_release(Window *w);

// Starts the window of a new sequence.
void window_start(Window *w, const WindowSource *from);

static inline bool window_is_filling(const Window *w) { return w->rows < w->N - 1; }
static inline int window_columns(const Window *w) { return w->length + 1; }

uint64_t window_digest(const Window *w); // a hash of its tokens, between steps

// Adds columns [first, last) below `base`, a root, together with the part of row 0 that they are children of.
// Between two calls of window_slide, every column is added once.
void window_probe(Window *w, Tree *tree, int base, int first, int last);

// Reads the new tokens; draws the token of a column that did not fit into the tree.
void window_read(Window *w, const Session *s, const WindowSource *from);

// Inserts the n-gram of every column, first column first; does nothing while the window fills. `last` is the
// token above the window; the pool's tuples have N-1 tokens.
void window_collect(const Window *w, int last, NgramPool *pool);

// Moves to the next step, `by` positions along the sequence (at least 1). Tokens listed in `eos` are replaced
// by drawn ones; so are those that a row lacks (by > 1).
void window_slide(Window *w, int by, const int *eos, int eos_count, const WindowSource *from);
