#include "tests/support/slow_lookahead.h"

#include "tests/support/check.h"
#include "tests/support/null_session.h"

#include <string.h>

// --- the pool

void slow_pool_remove(SlowPool *p, const int *ngram) {
    for (int i = 0; i < p->count; i++) {
        if (memcmp(p->ngrams[i], ngram, (size_t)p->N * sizeof *ngram) != 0) continue;
        memmove(p->ngrams[i], p->ngrams[i + 1], (size_t)(p->count - i - 1) * sizeof p->ngrams[0]);
        p->count--;
        return;
    }
}

static bool holds(const SlowPool *p, const int *ngram) {
    for (int i = 0; i < p->count; i++)
        if (memcmp(p->ngrams[i], ngram, (size_t)p->N * sizeof *ngram) == 0) return true;
    return false;
}

const int *slow_pool_get(const SlowPool *p, int key, int i) {
    for (int k = p->count - 1; k >= 0; k--)
        if (p->ngrams[k][0] == key && i-- == 0) return p->ngrams[k];
    return NULL;
}

void slow_pool_insert(SlowPool *p, const int *ngram) {
    if (p->fifo && holds(p, ngram)) return;
    slow_pool_remove(p, ngram);
    const int *last = slow_pool_get(p, ngram[0], p->cap - 1);
    if (last) slow_pool_remove(p, last);
    assert_true(p->count + 1 < SLOW_NGRAMS);
    memcpy(p->ngrams[p->count++], ngram, (size_t)p->N * sizeof *ngram);
}

// --- the window

static int draw(SlowWindow *w, const int *text, int count) {
    return text[random_below(&w->random, (uint32_t)count)];
}

int slow_window_columns(const SlowWindow *w) {
    return slow_window_is_filling(w) ? w->W + w->N - 1 - w->rows : w->W;
}

// The places of row l: row 0's begin at 1, row l's at l.
static int first_place(int l) { return l == 0 ? 1 : l; }
static int last_place(const SlowWindow *w, int l) { return l + slow_window_columns(w) - 1; }

static void clear_grid(SlowWindow *w) {
    for (int l = 0; l <= SLOW_N; l++)
        for (int q = 0; q < SLOW_REACH; q++) w->grid[l][q] = SLOW_NOTHING;
}

void slow_window_start(SlowWindow *w, const int *text, int count) {
    w->rows = 1;
    clear_grid(w);
    for (int q = 1; q <= w->W + w->N - 3; q++) w->grid[0][q] = draw(w, text, count);
}

int slow_window_path(const SlowWindow *w, int i, int *path) {
    int n = 0;
    for (int q = 1; q <= i; q++) path[n++] = w->grid[0][q];
    for (int l = 1; l < w->rows; l++) path[n++] = w->grid[l][l + i];
    return n;
}

static int says(SlowWindow *w, const int *text, int length, const int *path, int n) {
    int whole[400];
    assert_true(length + n <= 400);
    memcpy(whole, text, (size_t)length * sizeof *whole);
    memcpy(whole + length, path, (size_t)n * sizeof *whole);
    return slow_next(w->model, whole, length + n, NULL);
}

// Down every column: its token of row 0 is one place before that of row 1.
static void collect(const SlowWindow *w, int last, SlowPool *pool) {
    for (int i = 0; i < slow_window_columns(w) && !slow_window_is_filling(w); i++) {
        int ngram[SLOW_N];
        ngram[0] = i == 0 ? last : w->grid[0][i];
        for (int l = 1; l < w->N; l++) ngram[l] = w->grid[l][l + i];
        if (!w->missing[w->rows + i]) slow_pool_insert(pool, ngram);
    }
}

void slow_window_step(SlowWindow *w, const int *text, int length, int drawn, SlowPool *pool) {
    int path[SLOW_REACH];
    for (int i = 0; i < slow_window_columns(w); i++) {
        int n = slow_window_path(w, i, path), place = w->rows + i;
        w->missing[place] = length + n > w->context;
        w->grid[w->rows][place] = w->missing[place] ? draw(w, text, drawn) : says(w, text, length, path, n);
    }
    collect(w, text[length - 1], pool);
}

// Places count from the last token, so they shrink as it moves on; rows move down once all are full.
void slow_window_slide(SlowWindow *w, int by, const int *text, int drawn) {
    int old[SLOW_N + 1][SLOW_REACH], down = slow_window_is_filling(w) ? 0 : 1, *new = w->grid[w->rows];
    for (int i = 0; i < slow_window_columns(w); i++)
        if (new[w->rows + i] == w->eos) new[w->rows + i] = draw(w, text, drawn);
    memcpy(old, w->grid, sizeof old);
    clear_grid(w);
    if (!down) w->rows++;
    for (int l = 0; l < w->rows; l++)
        for (int q = first_place(l); q <= last_place(w, l); q++) {
            int was = q + by < SLOW_REACH ? old[l + down][q + by] : SLOW_NOTHING;
            w->grid[l][q] = was != SLOW_NOTHING ? was : draw(w, text, drawn);
        }
}
