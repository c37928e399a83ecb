// The counting model against probabilities worked out by hand, against a slow model of the same words, and
// against the law that probabilities add to one.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/train/corpus.h"

#include <math.h>
#include <string.h>

enum { VOCAB = 7, MOST_WINDOWS = 4000, ORDER = 5 };

static void add(Corpus *c, const int *ids, size_t n) { corpus_add(c, ids, n); }

static void expect_close(const char *what, double want, double got) {
    if (!(fabs(want - got) <= 1e-12)) fail_msg("%s: wanted %.15f, got %.15f", what, want, got);
}

// "0 1 2" and "0 1 3", the first twice, which changes nothing. Pairs: 01 twice, 12, 13; so n1 = 2, n2 = 1 and
// D(1) = 1 - 2 * 2/4 * 1/2 = 1/2; no pair is counted thrice, so D(2) = 1. Single tokens: 1, 2 and 3 stand
// after one token each, D(1) = 1/2 as none is counted twice.
static void by_hand(void **state) {
    (void)state;
    Corpus c = {0};
    Feed f;
    Ngram m;
    add(&c, (int[]){0, 1, 2}, 3);
    add(&c, (int[]){0, 1, 3}, 3);
    add(&c, (int[]){0, 1, 2}, 3);
    assert_true(feed_open(&f, &c, 0, false, 1, NULL));
    assert_true(ngram_learn(&m, &f, 2, 4, NULL));
    double seen = (0.5 + 1.5 / 4) / 3, unseen = 1.5 / 4 / 3;
    expect_close("p(2 | 1)", (0.5 + 1.0 * seen) / 2, ngram_probability(&m, (int[]){1, 2}, 1));
    expect_close("p(0 | 1)", 1.0 * unseen / 2, ngram_probability(&m, (int[]){1, 0}, 1));
    expect_close("p(1 | 0)", (1.0 + 1.0 * seen) / 2, ngram_probability(&m, (int[]){0, 1}, 1));
    expect_close("p(3 | 3)", seen, ngram_probability(&m, (int[]){3, 3}, 1));
    double loss = -log((1 + seen) / 2) - log((0.5 + seen) / 2);
    expect_close("loss", loss / 2, ngram_loss(&m, &f, 100));
    expect_close("loss of one row", -log((1 + seen) / 2), ngram_loss(&m, &f, 1));
    ngram_release(&m);
    feed_close(&f);
    corpus_release(&c);
}

// Random documents in which what comes next leans on the two tokens before.
static void make_corpus(Corpus *c, Random *r) {
    for (int d = 0; d < 25; d++) {
        int ids[40], n = test_between(r, 2, 40);
        ids[0] = 0;
        for (int i = 1; i < n; i++)
            ids[i] = random_below(r, 3) ? (ids[i - 1] * 2 + (i > 1 ? ids[i - 2] : 1)) % (VOCAB - 1)
                                        : test_between(r, 0, VOCAB - 2);
        add(c, ids, (size_t)n);
    }
}

// --- the slow model: lists that are searched from end to end

typedef struct {
    int ids[ORDER], count;
} Window;

typedef struct {
    Window *windows;
    int count;
    double discount[4];
} SlowLevel;

static bool same(const Window *a, const Window *b, int length) {
    return memcmp(a->ids + ORDER - length, b->ids + ORDER - length, sizeof(int) * (size_t)length) == 0;
}

static void slow_count(SlowLevel *l, const Window *w, int length) {
    for (int i = 0; i < l->count; i++)
        if (same(&l->windows[i], w, length)) {
            l->windows[i].count++;
            return;
        }
    assert_in_range(l->count, 0, MOST_WINDOWS - 1);
    l->windows[l->count] = *w;
    l->windows[l->count++].count = 1;
}

static void slow_discounts(SlowLevel *l) {
    double n[5] = {0};
    for (int i = 0; i < l->count; i++)
        if (l->windows[i].count <= 4) n[l->windows[i].count]++;
    double y = n[1] / (n[1] + 2 * n[2]);
    for (int c = 1; c <= 3; c++) {
        l->discount[c] = c - (c + 1) * y * n[c + 1] / n[c];
        if (n[c] == 0 || n[c + 1] == 0 || n[1] == 0 || !(l->discount[c] > 0)) l->discount[c] = c / 2.0;
    }
}

static Window slow_window(const int *ids, size_t at) {
    Window w = {.count = 1};
    for (size_t k = 0; k < ORDER; k++) w.ids[ORDER - 1 - k] = k <= at ? ids[at - k] : -1;
    return w;
}

static bool stood_before(const Corpus *c, size_t document) {
    size_t begin = corpus_begin(c, document), n = c->ends[document] - begin;
    for (size_t d = 0; d < document; d++)
        if (c->ends[d] - corpus_begin(c, d) == n &&
            !memcmp(c->ids + corpus_begin(c, d), c->ids + begin, n * sizeof *c->ids))
            return true;
    return false;
}

static void slow_learn(SlowLevel *levels, const Corpus *c) {
    for (int length = ORDER; length > 0; length--) {
        SlowLevel *l = &levels[length - 1];
        l->windows = mem_new(MOST_WINDOWS, sizeof *l->windows);
        for (size_t d = 0; length == ORDER && d < c->documents; d++)
            for (size_t begin = corpus_begin(c, d), i = begin + 1; i < c->ends[d] && !stood_before(c, d);
                 i++) {
                Window w = slow_window(c->ids + begin, i - begin);
                slow_count(l, &w, length);
            }
        for (int i = 0; length < ORDER && i < l[1].count; i++) slow_count(l, &l[1].windows[i], length);
        slow_discounts(l);
    }
}

static double slow_probability(const SlowLevel *levels, const Window *w, int length) {
    if (length == 0) return 1.0 / VOCAB;
    const SlowLevel *l = &levels[length - 1];
    double all = 0, own = 0, taken = 0, below = slow_probability(levels, w, length - 1);
    for (int i = 0; i < l->count; i++) {
        const Window *v = &l->windows[i];
        double d = l->discount[v->count < 3 ? v->count : 3];
        if (memcmp(v->ids + ORDER - length, w->ids + ORDER - length, sizeof(int) * (size_t)(length - 1)))
            continue;
        all += v->count;
        taken += d;
        if (v->ids[ORDER - 1] == w->ids[ORDER - 1]) own = v->count - d;
    }
    return all > 0 ? own / all + taken / all * below : below;
}

static void as_a_slow_model(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int round = 0; round < 5; round++) {
        Corpus c = {0};
        Feed f;
        Ngram m;
        SlowLevel levels[ORDER] = {0};
        make_corpus(&c, &r);
        assert_true(feed_open(&f, &c, 0, false, 1, NULL));
        assert_true(ngram_learn(&m, &f, ORDER, VOCAB, NULL));
        slow_learn(levels, &c);
        for (int i = 0; i < 300; i++) {
            int ids[8];
            double sum = 0;
            size_t at = (size_t)test_between(&r, 1, 7);
            for (size_t k = 0; k < at; k++) ids[k] = test_between(&r, 0, VOCAB - 2);
            for (ids[at] = 0; ids[at] < VOCAB; ids[at]++) {
                Window w = slow_window(ids, at);
                double p = ngram_probability(&m, ids, at);
                expect_close("p", slow_probability(levels, &w, ORDER), p);
                assert_true(p > 0);
                sum += p;
            }
            expect_close("sum", 1, sum);
        }
        for (int i = 0; i < ORDER; i++) mem_free(levels[i].windows);
        ngram_release(&m);
        feed_close(&f);
        corpus_release(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand), cmocka_unit_test(as_a_slow_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
