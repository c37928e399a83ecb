// The stop filter against a search through the whole text, over every way of cutting a short text into two
// pieces and random ways of cutting longer ones.
#include "tests/support/check.h"

#include "harness/inputs/prompts.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 24 };

// Where the first stop string begins in text[0 .. n), reading as far as the first one that is complete: of
// those complete at the same byte the leftmost counts. -1: none.
static int slow_search(const Words *stops, const char *text, int n) {
    for (int end = 1; end <= n; end++)
        for (int start = 0; start < end; start++)
            for (int i = 0; i < stops->count; i++)
                if ((int)strlen(stops->items[i]) == end - start &&
                    memcmp(stops->items[i], text + start, (size_t)(end - start)) == 0)
                    return start;
    return -1;
}

// The longest end of text[0 .. n) that some stop string could begin with.
static int slow_held(const Words *stops, const char *text, int n) {
    for (int length = n; length > 0; length--)
        for (int i = 0; i < stops->count; i++)
            if (length < (int)strlen(stops->items[i]) &&
                memcmp(text + n - length, stops->items[i], (size_t)length) == 0)
                return length;
    return 0;
}

typedef struct {
    Words stops;
    char store[3][8];
    char text[LONGEST + 1];
    int n;
    bool cut[LONGEST + 1]; // cut[i]: a piece ends before byte i
} Case;

static void say(const Case *c, const char *what, int wanted, const Text *got) {
    char pieces[2 * LONGEST + 1];
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        if (i > 0 && c->cut[i]) pieces[n++] = '|';
        pieces[n++] = c->text[i];
    }
    fail_msg("'%.*s', stops '%s' '%s' '%s', %s: wanted the first %d bytes, got '%s'", n, pieces,
             c->stops.items[0], c->stops.count > 1 ? c->stops.items[1] : "",
             c->stops.count > 2 ? c->stops.items[2] : "", what, wanted, text_get(got));
}

static void expect(const Case *c, const char *what, int wanted, const Text *got) {
    if ((int)got->length != wanted || memcmp(text_get(got), c->text, (size_t)wanted))
        say(c, what, wanted, got);
}

// Feeds the pieces and holds the output against the slow search after each.
static void run_case(const Case *c) {
    StopFilter filter = {.stops = &c->stops};
    Text out = {0};
    bool stopped = false;
    for (int from = 0, to = 1; !stopped && to <= c->n; to++) {
        if (to < c->n && !c->cut[to]) continue;
        int at = slow_search(&c->stops, c->text, to);
        stopped = stop_feed(&filter, c->text + from, (size_t)(to - from), &out);
        if (stopped != (at >= 0)) say(c, stopped ? "stopped" : "did not stop", at, &out);
        expect(c, "after a piece", stopped ? at : to - slow_held(&c->stops, c->text, to), &out);
        from = to;
    }
    if (!stopped) {
        stop_flush(&filter, &out);
        expect(c, "at the end", c->n, &out);
    }
    stop_release(&filter);
    text_release(&out);
}

static void random_word(Random *r, char *out, int low, int high) {
    int n = test_between(r, low, high);
    for (int i = 0; i < n; i++) out[i] = (char)('a' + test_between(r, 0, 1));
    out[n] = 0;
}

// Only two letters, so that stop strings nearly match everywhere, and overlap each other and themselves.
static void random_case(Case *c, Random *r) {
    *c = (Case){.stops.count = test_between(r, 1, 3)};
    for (int i = 0; i < c->stops.count; i++) {
        random_word(r, c->store[i], 1, 6);
        c->stops.items[i] = c->store[i];
    }
    random_word(r, c->text, 0, LONGEST);
    c->n = (int)strlen(c->text);
}

static void every_split_in_two(void **state) {
    (void)state;
    Random r = test_random(71);
    for (int round = 0; round < 3000; round++) {
        Case c;
        random_case(&c, &r);
        for (int at = 0; at < c.n; at++) {
            memset(c.cut, 0, sizeof c.cut);
            c.cut[at] = true;
            run_case(&c);
        }
    }
}

// All 2^(n-1) ways of cutting texts of up to ten bytes.
static void every_split(void **state) {
    (void)state;
    Random r = test_random(72);
    for (int round = 0; round < 60; round++) {
        Case c;
        random_case(&c, &r);
        if (c.n > 10) c.n = 10;
        for (int mask = 0; mask < 1 << c.n; mask++) {
            for (int i = 0; i < c.n; i++) c.cut[i] = mask >> i & 1;
            run_case(&c);
        }
    }
}

// Stops may hold any byte but NUL, text any byte.
static void zero_bytes(void **state) {
    (void)state;
    Words stops = {.items = {"\n\n"}, .count = 1};
    StopFilter filter = {.stops = &stops};
    Text out = {0};
    assert_false(stop_feed(&filter, "a\0b\n", 4, &out));
    assert_int_equal(out.length, 3);
    assert_true(stop_feed(&filter, "\nrest", 5, &out));
    assert_int_equal(out.length, 3);
    assert_memory_equal(text_get(&out), "a\0b", 3);
    stop_release(&filter);
    text_release(&out);
}

static void no_stops(void **state) {
    (void)state;
    Words stops = {.count = 0};
    StopFilter filter = {.stops = &stops};
    Text out = {0};
    assert_false(stop_feed(&filter, "", 0, &out));
    assert_false(stop_feed(&filter, "all at once", 11, &out));
    assert_string_equal(text_get(&out), "all at once");
    stop_release(&filter);
    text_release(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_split_in_two),
        cmocka_unit_test(every_split),
        cmocka_unit_test(zero_bytes),
        cmocka_unit_test(no_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
