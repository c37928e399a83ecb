// Documents, their split, and the rows that are cut from them, against slow and obvious ones.
#include "tests/support/check.h"

#include "engine/train/corpus.h"
#include "tests/support/learner.h"

#include <math.h>
#include <string.h>

enum { ROWS = 96, CONTEXT = 16 };

// A row's place is that of its token, if its document is there from its beginning.
static void expect_place(const Corpus *c, size_t first, int further, int token, size_t got) {
    bool begins = false;
    for (size_t i = 0; i < c->documents; i++) begins |= first == corpus_begin(c, i);
    if (first == NO_PLACE) {
        assert_true(got == NO_PLACE);
        return;
    }
    assert_true(begins && got == first + (size_t)further);
    assert_int_equal(c->ids[got], token);
}

// Rows go on from one to the next within a document, and no document crosses a multiple of the context.
static void rows_are_documents(void **state) {
    (void)state;
    Corpus c;
    Feed f;
    int tokens[ROWS], targets[ROWS], start[ROWS];
    size_t places[ROWS];
    learner_corpus(&c, 40, 60, test_seed());
    assert_true(feed_open(&f, &c, 0.3, false, 9, NULL));
    for (int batch = 0; f.epoch < 3; batch++) {
        feed_fill(&f, ROWS, CONTEXT, tokens, targets, start, places);
        for (int r = 0; r < ROWS; r++) {
            assert_true(start[r] <= r && start[r] / CONTEXT == r / CONTEXT);
            assert_int_equal(start[start[r]], start[r]);
            if (start[r] != r) assert_int_equal(tokens[r], targets[r - 1]);
            expect_place(&c, places[start[r]], r - start[r], tokens[r], places[r]);
            assert_int_equal(targets[r], (tokens[r] * 7 + 3) % LEARNER_VOCAB);
        }
    }
    feed_close(&f);
    corpus_release(&c);
}

static size_t tokens_of(const Corpus *c, size_t document) {
    return c->ends[document] - corpus_begin(c, document);
}

// The feed's rows are those of its documents in its order, epoch after epoch; and each epoch has each
// document.
static void an_epoch_is_all_documents(void **state) {
    (void)state;
    Corpus c;
    Feed f, slow;
    int token, target, start, orders_differ = 0;
    size_t place;
    learner_corpus(&c, 40, 60, test_seed());
    assert_true(feed_open(&f, &c, 0.3, false, 9, NULL));
    assert_true(feed_open(&slow, &c, 0.3, false, 9, NULL));
    for (uint64_t epoch = 0; epoch < 4; epoch++) {
        bool seen[40] = {false};
        assert_true(feed_seek(&slow, epoch, 0, 0));
        for (size_t i = 0; i < f.count; i++) {
            size_t d = slow.documents[i];
            assert_false(seen[d]);
            seen[d] = true;
            orders_differ += slow.documents[i] != slow.given[i];
            for (size_t k = 0; k + 1 < tokens_of(&c, d); k++) {
                feed_fill(&f, 1, 1, &token, &target, &start, &place);
                assert_int_equal(token, c.ids[corpus_begin(&c, d) + k]);
                assert_int_equal(target, c.ids[corpus_begin(&c, d) + k + 1]);
            }
        }
    }
    assert_true(orders_differ > 40);
    feed_close(&f);
    feed_close(&slow);
    corpus_release(&c);
}

// Both sides together are all documents; equal ones are on one side; the share is about what was asked for.
static void split_is_fair(void **state) {
    (void)state;
    Corpus c = {0};
    Feed learn, held;
    int held_documents[1000] = {0};
    for (int d = 0; d < 1000; d++) // 500 different ones, each twice
        corpus_add(&c, (int[]){d % 500, 1, d % 500 / 7}, 3);
    assert_true(feed_open(&learn, &c, 0.25, false, 3, NULL));
    assert_true(feed_open(&held, &c, 0.25, true, 3, NULL));
    assert_int_equal(learn.count + held.count, 1000);
    assert_true(fabs((double)held.count - 250) < 5 * sqrt(2 * 250 * 0.75));
    for (size_t i = 0; i < held.count; i++) held_documents[held.given[i]] = 1;
    for (int d = 0; d < 500; d++) assert_int_equal(held_documents[d], held_documents[d + 500]);
    for (size_t i = 0; i < learn.count; i++) assert_false(held_documents[learn.given[i]]);
    feed_close(&learn);
    feed_close(&held);
    corpus_release(&c);
}

// However few documents there are, one is held out where any is to be, and the others are learned from.
static void few_documents(void **state) {
    (void)state;
    for (int count = 2; count < 20; count++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            Corpus c = {0};
            Feed learn, held;
            for (int d = 0; d < count; d++) corpus_add(&c, (int[]){d, 1, 7}, 3);
            assert_true(feed_open(&learn, &c, 1e-4, false, seed, NULL));
            assert_true(feed_open(&held, &c, 1e-4, true, seed, NULL));
            assert_int_equal(held.count, 1);
            assert_int_equal(learn.count, count - 1);
            for (size_t i = 0; i < learn.count; i++) assert_true(learn.given[i] != held.given[0]);
            feed_close(&learn);
            feed_close(&held);
            corpus_release(&c);
        }
}

// In order of how often they occur, of equals the lowest first, tokens that never occur last.
static void commonest(void **state) {
    (void)state;
    const int want[5][5] = {{7}, {2, 7}, {2, 3, 7}, {2, 3, 5, 7}, {0, 2, 3, 5, 7}};
    Corpus c = {0};
    corpus_add(&c, (int[]){7, 2, 7, 3, 7}, 5);
    corpus_add(&c, (int[]){5, 2, 3}, 3);
    for (int count = 1; count <= 5; count++) {
        int got[5];
        corpus_commonest(&c, 9, got, count);
        assert_memory_equal(got, want[count - 1], (size_t)count * sizeof *got);
    }
    assert_float_equal(corpus_share(&c, want[1], 2), 5.0 / 8, 1e-12);
    corpus_release(&c);
}

static void places(void **state) {
    (void)state;
    Corpus c = {0};
    Feed f;
    corpus_add(&c, (int[]){1}, 1); // teaches nothing
    assert_int_equal(c.documents, 0);
    corpus_add(&c, (int[]){1, 2, 3}, 3);
    assert_true(feed_open(&f, &c, 0, false, 3, NULL));
    assert_true(feed_seek(&f, 7, 0, 1));
    assert_false(feed_seek(&f, 7, 0, 2)); // its third token is only a target
    assert_int_equal(f.epoch, 0);
    assert_false(feed_seek(&f, 0, 1, 0));
    feed_close(&f);
    corpus_release(&c);
}

static bool is_odd(const void *state, size_t document) {
    (void)state;
    return document % 2;
}

static bool is_none(const void *state, size_t document) { return document == *(const size_t *)state; }

// A narrowed feed has the rows of what it keeps, and may be empty.
static void narrowed(void **state) {
    (void)state;
    Corpus c = {0};
    Feed f;
    size_t none = 99;
    int tokens[4], targets[4], start[4], sum = 0;
    size_t places[4];
    for (int i = 0; i < 4; i++) corpus_add(&c, (int[]){i, i + 10, i + 20}, 3);
    assert_true(feed_open(&f, &c, 0, false, 3, NULL));
    feed_fill(&f, 3, 4, tokens, targets, start, places);
    feed_narrow(&f, is_odd, NULL);
    assert_int_equal(f.count, 2);
    assert_int_equal(f.rows, 4);
    feed_fill(&f, 4, 4, tokens, targets, start, places);
    for (int i = 0; i < 4; i++) sum += tokens[i];
    assert_int_equal(sum, 1 + 11 + 3 + 13);
    feed_narrow(&f, is_none, &none);
    assert_int_equal(f.count, 0);
    assert_int_equal(f.rows, 0);
    feed_close(&f);
    corpus_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_documents),
                                       cmocka_unit_test(an_epoch_is_all_documents),
                                       cmocka_unit_test(few_documents),
                                       cmocka_unit_test(split_is_fair),
                                       cmocka_unit_test(commonest),
                                       cmocka_unit_test(places),
                                       cmocka_unit_test(narrowed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
