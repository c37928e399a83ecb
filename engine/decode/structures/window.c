// The window's rows in one array. Besides rows 0 to rows-1, the array has room for the new row, which
// window_read fills and window_slide makes part of the window.
//
// Invariants between steps, asserted by window_check(): 1 <= rows <= N-1, and length = W+N-2 - rows, so the
// window is W+N-3 wide with row 0 only and W-1 wide when it is full.
#include "engine/decode/structures/window.h"

#include "engine/base/memory.h"
#include "engine/core/ranks.h"

#include <assert.h>

static void window_check(const Window *w) {
    assert(w->rows >= 1 && w->rows <= w->N - 1);
    assert(w->length == w->W + w->N - 2 - w->rows && window_columns(w) <= w->stride);
}

void window_init(Window *w, int W, int N) {
    assert(W >= 1 && N >= 2);
    *w = (Window){.W = W, .N = N, .stride = W + N - 2};
    w->tokens = mem_new((size_t)N * (size_t)w->stride, sizeof *w->tokens);
    w->ends = mem_new((size_t)w->stride, sizeof *w->ends);
}

void window_release(Window *w) {
    MEM_FREE(w->tokens, w->ends);
    *w = (Window){0};
}

static int *row(const Window *w, int l) { return w->tokens + (size_t)l * (size_t)w->stride; }
static int row_length(int l, int length) { return l == 0 ? length : length + 1; }

static int draw(const WindowSource *from) {
    return from->tokens[random_below(from->random, (uint32_t)from->count)];
}

void window_start(Window *w, const WindowSource *from) {
    w->rows = 1;
    w->length = w->W + w->N - 3;
    for (int i = 0; i < w->length; i++) row(w, 0)[i] = draw(from);
    window_check(w);
}

uint64_t window_digest(const Window *w) {
    uint64_t hash = (uint64_t)w->rows;
    for (int l = 0; l < w->rows; l++)
        hash = ranks_hash(hash, row(w, l), (size_t)row_length(l, w->length) * sizeof(int));
    return hash;
}

void window_probe(Window *w, Tree *tree, int base, int first, int last) {
    int chain = base, deepest = w->rows - 1;
    window_check(w);
    assert(first >= 0 && last <= window_columns(w));
    for (int i = 0; i < last && first < last; i++) {
        if (i > 0) chain = tree_probe(tree, chain, row(w, 0)[i - 1], deepest == 0 && i >= first);
        int node = chain;
        for (int l = 1; l <= deepest && i >= first; l++)
            node = tree_probe(tree, node, row(w, l)[i], l == deepest);
        if (i >= first) w->ends[i] = node;
    }
}

void window_read(Window *w, const Session *s, const WindowSource *from) {
    window_check(w);
    assert(from->count >= 1);
    for (int i = 0; i < window_columns(w); i++)
        row(w, w->rows)[i] = w->ends[i] == TREE_NONE ? draw(from) : session_argmax(s, w->ends[i]);
}

void window_collect(const Window *w, int last, NgramPool *pool) {
    int tuple[TREE_MAX_NODES];
    window_check(w);
    assert(pool->width == w->N - 1 && pool->width <= TREE_MAX_NODES);
    if (window_is_filling(w)) return;
    for (int i = 0; i < window_columns(w); i++) {
        if (w->ends[i] == TREE_NONE) continue;
        for (int l = 1; l < w->N; l++) tuple[l - 1] = row(w, l)[i];
        ngram_pool_insert(pool, i == 0 ? last : row(w, 0)[i - 1], tuple);
    }
}

// While filling, each row keeps its number and its tokens move `by` positions along. After that, row l+1
// becomes row l: its tokens were one position further along, except those of row 1, which started where row 0
// did.
void window_slide(Window *w, int by, const int *eos, int eos_count, const WindowSource *from) {
    assert(by >= 1);
    bool filling = window_is_filling(w);
    int rows = filling ? w->rows + 1 : w->rows, length = filling ? w->length - 1 : w->length;
    for (int i = 0; i < window_columns(w); i++)
        for (int k = 0; k < eos_count; k++)
            if (row(w, w->rows)[i] == eos[k]) row(w, w->rows)[i] = draw(from);
    for (int l = 0; l < rows; l++) {
        int old = filling ? l : l + 1, skip = filling || l == 0 ? by : by - 1;
        int have = row_length(old, w->length) - skip;
        for (int i = 0; i < row_length(l, length); i++)
            row(w, l)[i] = i < have ? row(w, old)[i + skip] : draw(from);
    }
    w->rows = rows;
    w->length = length;
    window_check(w);
}
