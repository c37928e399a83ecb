// Reports of sources, against rows kept as plain tokens and compared with the accepted path.
#include "tests/support/check.h"

#include "engine/decode/sources.h"

#include <string.h>

enum { MOST_ROWS = 12, MOST_TOKENS = 6, SOURCES = 3, CONTEXT = 100 };

static const char *const NAMES[] = {"one", "two", "three"};

typedef struct {
    int source, count, tokens[MOST_TOKENS];
} Row;

typedef struct {
    Tree tree;
    Sources sources;
    Row rows[MOST_ROWS];
    int count;
} World;

// Rows of few kinds of tokens, so that prefixes are shared.
static void propose_rows(World *w, Random *r, int room) {
    bool merge = test_between(r, 0, 1);
    tree_clear(&w->tree, CONTEXT - room, CONTEXT, merge, test_between(r, 0, 1) ? LAYOUT_TREE : LAYOUT_BATCH);
    tree_root(&w->tree, 0);
    w->sources.count = 0;
    w->count = test_between(r, 0, MOST_ROWS);
    for (int i = 0; i < w->count; i++) {
        Row *row = &w->rows[i];
        row->source = test_between(r, 0, SOURCES - 1);
        row->count = test_between(r, 1, MOST_TOKENS);
        for (int k = 0; k < row->count; k++) row->tokens[k] = test_between(r, 0, 2);
        sources_propose(&w->sources, &w->tree, row->source, row->tokens, row->count);
        if (row->count > room - 1) row->count = room - 1; // the context's end
    }
}

static void slow_reports(const World *w, const int *accepted, int count, SourceReport *out) {
    for (int i = 0; i < SOURCES; i++) out[i] = (SourceReport){.name = NAMES[i]};
    for (int i = 0; i < w->count; i++) {
        const Row *row = &w->rows[i];
        SourceReport *x = &out[row->source];
        int match = 0;
        while (match < row->count && match < count && row->tokens[match] == accepted[match]) match++;
        if (row->count == 0) continue;
        x->rows++;
        if (match > x->match) x->rank = x->rows;
        if (match > x->match) x->match = match;
    }
}

static void check_reports(const World *w, int node) {
    int path[CONTEXT], accepted[CONTEXT], depth = tree_path(&w->tree, node, path) - 1;
    SourceReport got[SOURCES], want[SOURCES];
    Verdict v = {.accepted = depth, .node = node};
    for (int i = 0; i < depth; i++) accepted[i] = w->tree.token[path[i + 1]];
    sources_judge(&w->sources, &w->tree, &v, got);
    slow_reports(w, accepted, depth, want);
    for (int i = 0; i < SOURCES; i++)
        if (got[i].name != want[i].name || got[i].rows != want[i].rows || got[i].match != want[i].match ||
            got[i].rank != want[i].rank)
            fail_msg("source %s behind node %d: rows %d, match %d, rank %d, want %d, %d, %d", NAMES[i], node,
                     got[i].rows, got[i].match, got[i].rank, want[i].rows, want[i].match, want[i].rank);
}

static void every_path(void **state) {
    (void)state;
    Random r = test_random(110);
    World *w = test_calloc(1, sizeof *w);
    w->sources.names = NAMES;
    w->sources.source_count = SOURCES;
    tree_init(&w->tree, CONTEXT, 3);
    for (int round = 0; round < 2000; round++) {
        propose_rows(w, &r, test_between(&r, 0, 3) ? MOST_TOKENS + 1 : test_between(&r, 1, MOST_TOKENS));
        for (int n = 0; n < w->tree.count; n++)
            if (w->tree.canonical[n] == n) check_reports(w, n);
    }
    tree_release(&w->tree);
    test_free(w);
}

static void totals_go_to_the_first_of_equals(void **state) {
    (void)state;
    SourceTotals t[2] = {{0}};
    const SourceReport steps[][2] = {
        {{"a", 2, 3, 1}, {"b", 4, 3, 2}},
        {{"a", 1, 0, 0}, {"b", 5, 2, 5}},
        {{"a", 0, 0, 0}, {"b", 6, 0, 0}},
    };
    for (int i = 0; i < 3; i++) sources_add(t, steps[i], 2);
    sources_add(t, NULL, 0);
    assert_string_equal(t[1].name, "b");
    assert_true(t[0].rows == 3 && t[0].won == 1 && t[0].tokens == 3);
    assert_true(t[1].rows == 15 && t[1].won == 1 && t[1].tokens == 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_path),
                                       cmocka_unit_test(totals_go_to_the_first_of_equals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
