// Trees of ranks: their shape against a slow search, and their text.
#include "tests/support/check.h"
#include "tests/support/rank_tree_text.h"

#include "engine/base/random.h"

#include <string.h>

static bool has_child(const RankTree *t, int count, int parent, int rank) {
    for (int i = 0; i < count; i++)
        if (t->nodes[i].parent == parent && t->nodes[i].rank == rank) return true;
    return false;
}

static double chance_of(const RankTree *t, int node) {
    double chance = 1;
    for (; node >= 0; node = t->nodes[node].parent)
        chance *= rank_tree_chance(t->nodes[node].depth, t->nodes[node].rank);
    return chance;
}

// No node that could be there and isn't is likelier than one that is.
static void check_likeliest(const RankTree *t, int depth, int ranks) {
    double least = 1;
    for (int i = 0; i < t->count; i++) least = chance_of(t, i) < least ? chance_of(t, i) : least;
    for (int parent = -1; parent < t->count; parent++)
        for (int rank = 0; rank < ranks; rank++) {
            int level = parent < 0 ? 0 : t->nodes[parent].depth + 1;
            if (level == depth || has_child(t, t->count, parent, rank)) continue;
            double chance = (parent < 0 ? 1 : chance_of(t, parent)) * rank_tree_chance(level, rank);
            if (chance > least * (1 + 1e-12))
                fail_msg("rank %d below %d: %g is left out, %g is in", rank, parent, chance, least);
        }
}

static void grows_the_likeliest(void **state) {
    (void)state;
    Random r = test_random(83);
    RankTree t;
    rank_tree_init(&t);
    for (int round = 0; round < 60; round++) {
        int wanted = test_between(&r, 1, 200), depth = test_between(&r, 1, 5),
            ranks = test_between(&r, 1, 10);
        rank_tree_grow(&t, wanted, depth, ranks);
        assert_in_range(t.count, 1, wanted);
        for (int i = 0; i < t.count; i++) {
            const RankNode *n = &t.nodes[i];
            assert_true(n->parent < i && n->rank < ranks && n->depth < depth);
            assert_int_equal(n->depth, n->parent < 0 ? 0 : t.nodes[n->parent].depth + 1);
            assert_false(has_child(&t, i, n->parent, n->rank));
        }
        check_likeliest(&t, depth, ranks);
        int whole = 0;
        for (int level = 0, size = 1; level < depth && whole < wanted; level++) whole += size *= ranks;
        assert_int_equal(t.count, whole < wanted ? whole : wanted);
    }
    rank_tree_release(&t);
}

static void text_comes_back(void **state) {
    (void)state;
    RankTree t, back;
    rank_tree_init(&t);
    rank_tree_init(&back);
    for (int count = 1; count < 120; count += 7) {
        char text[120 * 12];
        rank_tree_grow(&t, count, 4, 10);
        assert_int_equal(t.count, count);
        rank_tree_text(&t, text);
        assert_true(rank_tree_parse(&back, 4, text, "it", NULL));
        assert_int_equal(back.count, count);
        assert_memory_equal(t.nodes, back.nodes, (size_t)count * sizeof *t.nodes);
    }
    rank_tree_release(&t);
    rank_tree_release(&back);
}

static void wrong_trees(void **state) {
    (void)state;
    static const char *const BAD[][2] = {
        {"0;00000", "the path '00000' in it is longer than 4 ranks"},
        {"0;10", "the path '10' in it needs '1' before it"},
        {"00;0", "the path '00' in it needs '0' before it"},
        {"0;1;0", "the path '0' is in it twice"},
        {";;", "it holds no path, such as 0 or 01"},
    };
    RankTree t;
    rank_tree_init(&t);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        Error e = {0};
        assert_false(rank_tree_parse(&t, 4, BAD[i][0], "it", &e));
        assert_string_equal(e.text, BAD[i][1]);
    }
    rank_tree_release(&t);
}

static int children_of(const RankTree *t, int parent) {
    int n = 0;
    for (int i = 0; i < t->count; i++) n += t->nodes[i].parent == parent;
    return n;
}

// Choices per level: each node of a level has as many children as the list gives the next one.
static void levels(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int counts[5];
    } ROWS[] = {{"3x2x2", {3, 2, 2}}, {"1x1x1x1", {1, 1, 1, 1}}, {"10x3", {10, 3}}, {"2x1x4", {2, 1, 4}}};
    RankTree t;
    Error e = {0};
    rank_tree_init(&t);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        assert_true(rank_tree_read(&t, 4, ROWS[i].text, &e));
        assert_int_equal(children_of(&t, -1), ROWS[i].counts[0]);
        for (int n = 0; n < t.count; n++)
            assert_int_equal(children_of(&t, n), ROWS[i].counts[t.nodes[n].depth + 1]);
    }
    assert_int_equal(rank_tree_levels(&t), 3);
    assert_int_equal(rank_tree_width(&t), 4);
    rank_tree_release(&t);
}

// Published trees, by the size and depth that their authors give.
static void known(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int count, levels, width;
    } ROWS[] = {{"2.2.2", 80, 6, 8}, {"samd", 60, 5, 7}, {"eagle", 25, 5, 4}};
    RankTree t;
    rank_tree_init(&t);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        assert_true(rank_tree_read(&t, RANK_TREE_DEPTH, ROWS[i].name, NULL));
        assert_int_equal(t.count, ROWS[i].count);
        assert_int_equal(rank_tree_levels(&t), ROWS[i].levels);
        assert_int_equal(rank_tree_width(&t), ROWS[i].width);
    }
    rank_tree_release(&t);
}

static void wrong_parameters(void **state) {
    (void)state;
    static const char *const BAD[][2] = {
        {"3x0", "the tree '3x0' has 0 choices at level 2, must be 1 to 10"},
        {"11x2", "the tree '11x2' has 11 choices at level 1, must be 1 to 10"},
        {"1x1x1x1x1", "the tree '1x1x1x1x1' has more than 4 levels"},
        {"10x10x10", "the tree '10x10x10' has more than 1023 nodes"},
        {"2x", "No such file"},
        {"nowhere", "No such file"},
        {";;", "'tree' holds no path, such as 0 or 01"},
    };
    RankTree t;
    rank_tree_init(&t);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        Error e = {0};
        assert_false(rank_tree_read(&t, 4, BAD[i][0], &e));
        if (!strstr(e.text, BAD[i][1])) fail_msg("%s: got '%s', wanted '%s'", BAD[i][0], e.text, BAD[i][1]);
    }
    rank_tree_release(&t);
}

static void too_many(void **state) {
    (void)state;
    static char text[(RANK_TREE_MOST + 100) * 5];
    char *end = text;
    Error e = {0};
    RankTree t;
    rank_tree_init(&t);
    for (int i = 0; i < 10; i++) end += sprintf(end, "%d;", i);
    for (int i = 0; i < 100; i++) end += sprintf(end, "%02d;", i);
    for (int i = 0; i < 1000; i++) end += sprintf(end, "%03d;", i);
    assert_false(rank_tree_parse(&t, 4, text, "it", &e));
    assert_string_equal(e.text, "it has more than 1023 paths");
    rank_tree_release(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_the_likeliest),
        cmocka_unit_test(text_comes_back),
        cmocka_unit_test(wrong_trees),
        cmocka_unit_test(levels),
        cmocka_unit_test(known),
        cmocka_unit_test(wrong_parameters),
        cmocka_unit_test(too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
