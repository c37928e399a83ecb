// Random trees against a slow obvious model: a list of paths, each a string of tokens.
#include "tests/support/check.h"

#include "engine/core/tree.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VOCAB = 3, NODES = 60, MAX_DEPTH = 80 };

// The tokens from the root to a node.
static int path_tokens(const Tree *t, int node, int *out) {
    int path[MAX_DEPTH], n = tree_path(t, node, path);
    for (int i = 0; i < n; i++) out[i] = t->token[path[i]];
    return n;
}

static bool same_path(const Tree *t, int a, int b) {
    int x[MAX_DEPTH], y[MAX_DEPTH], n = path_tokens(t, a, x), m = path_tokens(t, b, y);
    return n == m && memcmp(x, y, sizeof(int) * (size_t)n) == 0;
}

static int first_with_path(const Tree *t, int node) {
    for (int i = 0; i < node; i++)
        if (same_path(t, i, node)) return i;
    return node;
}

static void grow(Tree *t, Random *r, int steps) {
    for (int i = 0; i < steps; i++) {
        if (test_between(r, 0, 9) == 0) tree_row(t);
        if (test_between(r, 0, 29) == 0 && t->parts < TREE_MAX_PARTS) tree_part(t);
        int parent = test_between(r, t->part_root[t->parts - 1], t->count - 1),
            token = test_between(r, 0, VOCAB - 1);
        if (test_between(r, 0, 1)) tree_propose(t, parent, token);
        else tree_probe(t, parent, token, test_between(r, 0, 1));
    }
}

static void check_against_model(const Tree *t) {
    tree_assert(t);
    for (int i = 0; i < t->count; i++) {
        assert_int_equal(t->canonical[i], first_with_path(t, i));
        for (int token = 0; token < VOCAB; token++) {
            int want = TREE_NONE;
            for (int j = t->count - 1; j >= 0; j--)
                if (t->parent[j] != TREE_NONE && same_path(t, t->parent[j], i) && t->token[j] == token)
                    want = t->canonical[j];
            assert_int_equal(tree_child(t, i, token), want);
        }
    }
}

// A part is connected and, if prefixes merge, has each of them once.
static void check_parts(const Tree *t) {
    for (int part = 0; part < t->parts; part++) {
        int first = t->part_root[part], last = part + 1 < t->parts ? t->part_root[part + 1] : t->count;
        assert_int_equal(t->parent[first], TREE_NONE);
        for (int i = first; i < last; i++) {
            assert_true(t->parent[i] == TREE_NONE || t->parent[i] >= first);
            for (int k = first; t->merge && k < i; k++) assert_false(same_path(t, i, k));
        }
    }
}

static void random_trees(void **state) {
    (void)state;
    Random r = test_random(1);
    Tree t;
    int parts = 0;
    tree_init(&t, NODES, VOCAB);
    for (int round = 0; round < 300; round++) {
        Layout layout = test_between(&r, 0, 1) ? LAYOUT_BATCH : LAYOUT_TREE;
        bool merge = test_between(&r, 0, 1);
        tree_clear(&t, 5, 5 + test_between(&r, 1, 12), merge, layout);
        assert_int_equal(tree_root(&t, 1), 0);
        grow(&t, &r, test_between(&r, 0, 100));
        check_against_model(&t);
        check_parts(&t);
        parts += t.parts;
    }
    assert_true(parts > 500);
    tree_release(&t);
}

// A tree that has grown and is cut is as it was.
static void cut_trees(void **state) {
    (void)state;
    Random r = test_random(3);
    Tree t;
    tree_init(&t, NODES, VOCAB);
    for (int round = 0; round < 100; round++) {
        int first[NODES], next[NODES], asked = 0, count = test_between(&r, 1, NODES - 1);
        tree_clear(&t, 5, 5 + MAX_DEPTH, false, LAYOUT_TREE);
        tree_root(&t, 1);
        for (int i = 1; i < NODES; i++) {
            if (i == count) {
                memcpy(first, t.first_child, sizeof first);
                memcpy(next, t.next_sibling, sizeof next);
                asked = t.asked;
            }
            tree_probe(&t, test_between(&r, 0, i - 1), test_between(&r, 0, VOCAB - 1), true);
        }
        tree_cut(&t, count);
        check_against_model(&t);
        assert_int_equal(t.asked, asked);
        assert_memory_equal(t.first_child, first, (size_t)count * sizeof *first);
        assert_memory_equal(t.next_sibling, next, (size_t)count * sizeof *next);
    }
    tree_release(&t);
}

// The verifier sees the same with merging, without, and in rows.
static void proposals_do_not_depend_on_merging(void **state) {
    (void)state;
    enum { WAYS = 3, CHAINS = 8, LENGTH = 4 };
    Random r = test_random(2);
    for (int round = 0; round < 200; round++) {
        int seen[WAYS][CHAINS * LENGTH][2 + LENGTH], count[WAYS] = {0};
        uint64_t start = r.counter;
        for (int way = 0; way < WAYS; way++) {
            Tree t;
            r.counter = start;
            tree_init(&t, 64, VOCAB);
            tree_clear(&t, 0, 100, way == 0, way == 2 ? LAYOUT_BATCH : LAYOUT_TREE);
            tree_root(&t, 0);
            for (int c = 0; c < CHAINS; c++) {
                int node = tree_row(&t);
                for (int i = 0; i < LENGTH; i++)
                    node = tree_propose(&t, node, test_between(&r, 0, VOCAB - 1));
            }
            // Depth first in the order of the proposals: the order in which the verifier would meet them.
            int stack[128], top = 0;
            stack[top++] = 0;
            while (top) {
                int node = stack[--top];
                for (int p = t.first_proposal[node]; p != TREE_NONE; p = t.proposals[p].next) {
                    int *row = seen[way][count[way]++];
                    memset(row, 0, sizeof seen[0][0]);
                    row[0] = path_tokens(&t, t.proposals[p].child, row + 1);
                    stack[top++] = t.proposals[p].child;
                }
            }
            tree_release(&t);
        }
        for (int way = 1; way < WAYS; way++) {
            assert_int_equal(count[way], count[0]);
            assert_memory_equal(seen[way], seen[0], sizeof seen[0][0] * (size_t)count[0]);
        }
    }
}

static void full_trees_refuse(void **state) {
    (void)state;
    Tree t;
    tree_init(&t, 4, VOCAB);
    tree_clear(&t, 10, 13, true, LAYOUT_TREE);
    int root = tree_root(&t, 0), a = tree_propose(&t, root, 1), b = tree_propose(&t, a, 1);
    assert_int_equal(b, 2);
    assert_int_equal(tree_propose(&t, b, 1), TREE_NONE);         // position 13 does not exist
    assert_int_equal(tree_propose(&t, TREE_NONE, 1), TREE_NONE); // and a chain stays TREE_NONE
    assert_int_equal(tree_propose(&t, root, 2), 3);
    assert_int_equal(tree_propose(&t, root, 0), TREE_NONE); // full
    assert_int_equal(tree_propose(&t, root, 2), 3);         // merging needs no room
    assert_int_equal(tree_propose_sampled(&t, root, 2, 0, false),
                     TREE_NONE); // but must not decide by the token
    assert_int_equal(t.proposal_count, 3);
    int nodes[3];
    tree_clear(&t, 10, 13, true, LAYOUT_TREE);
    root = tree_root(&t, 0);
    assert_int_equal(tree_chain(&t, root, (int[]){1, 2, 0}, 3, nodes), 2); // the last that found room
    assert_memory_equal(nodes, ((int[]){1, 2, TREE_NONE}), sizeof nodes);
    assert_int_equal(tree_chain(&t, 2, (int[]){1}, 1, NULL), TREE_NONE);
    assert_int_equal(tree_chain(&t, root, NULL, 0, NULL), TREE_NONE);
    tree_clear(&t, 13, 13, true, LAYOUT_TREE);
    assert_int_equal(tree_root(&t, 0), TREE_NONE);
    tree_release(&t);
}

// While it's set, a limit is a smaller capacity.
static void limited_rows(void **state) {
    (void)state;
    Tree t;
    tree_init(&t, 10, 5);
    tree_clear(&t, 0, 100, true, LAYOUT_TREE);
    int root = tree_root(&t, 0);
    assert_int_equal(tree_room(&t), 9);
    tree_limit_rows(&t, 2);
    int a = tree_propose(&t, root, 1);
    assert_int_not_equal(a, TREE_NONE);
    assert_int_equal(tree_propose(&t, a, 1), TREE_NONE);
    assert_int_equal(tree_propose(&t, root, 1), a); // merged: no row
    tree_limit_rows(&t, 1);                         // fewer than it has
    assert_int_equal(tree_room(&t), 0);
    tree_limit_rows(&t, 99);
    assert_int_equal(tree_room(&t), 8);
    tree_limit_rows(&t, 3);
    tree_clear(&t, 0, 100, true, LAYOUT_TREE);
    assert_int_equal(tree_room(&t), 10);
    tree_release(&t);
}

static void roles_of_a_merged_node(void **state) {
    (void)state;
    Tree t;
    tree_init(&t, 8, VOCAB);
    tree_clear(&t, 0, 9, true, LAYOUT_TREE);
    int root = tree_root(&t, 0), a = tree_probe(&t, root, 1, false);
    assert_int_equal(t.flags[a], NODE_PROBE);
    assert_int_equal(t.first_proposal[root], TREE_NONE); // a probe is never tried
    assert_int_equal(tree_propose(&t, root, 1), a);
    assert_int_equal(t.flags[a], NODE_PROBE | NODE_CANDIDATE | NODE_READ);
    assert_int_equal(t.asked, 3);
    float *q;
    int n = tree_distribution(&t, &q);
    q[0] = q[1] = q[2] = 1.0f / 3;
    assert_int_equal(tree_propose_sampled(&t, root, 1, n, false), a);
    assert_int_equal(tree_propose_sampled(&t, root, 1, n, false), a); // every sampled proposal counts
    assert_int_equal(tree_propose_sampled(&t, root, 2, TREE_NONE, false), TREE_NONE); // a draw without its q
    assert_int_equal(t.proposal_count, 3);
    tree_release(&t);
}

static void token_too_large(Tree *t) { tree_propose(t, 0, VOCAB); }
static void token_below_0(Tree *t) { tree_probe(t, 0, -1, true); }
static void parent_not_there(Tree *t) { tree_propose(t, t->count, 1); }
static void parent_below_0(Tree *t) { tree_propose(t, -2, 1); }
static void root_too_large(Tree *t) { tree_root(t, VOCAB); }
static void nothing_wrong(Tree *t) { tree_propose(t, 0, VOCAB - 1); }

// The signal that ends a process that does this; 0: none.
static int ends_by(void (*deed)(Tree *t)) {
    int status;
    Tree t;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL); // not the test's own handler
        if (!freopen("/dev/null", "w", stderr)) _exit(2);
        tree_init(&t, 8, VOCAB);
        tree_clear(&t, 0, 9, true, LAYOUT_TREE);
        tree_root(&t, 0);
        deed(&t);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

// Proposals that a method must not make are caught here, before a backend reads out of bounds.
static void wrong_proposals_are_caught(void **state) {
    (void)state;
    void (*const wrong[])(Tree * t) = {token_too_large, token_below_0, parent_not_there, parent_below_0,
                                       root_too_large};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (ends_by(wrong[i]) != SIGABRT) fail_msg("deed %zu was let pass", i);
    assert_int_equal(ends_by(nothing_wrong), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_trees),
        cmocka_unit_test(proposals_do_not_depend_on_merging),
        cmocka_unit_test(cut_trees),
        cmocka_unit_test(full_trees_refuse),
        cmocka_unit_test(limited_rows),
        cmocka_unit_test(roles_of_a_merged_node),
        cmocka_unit_test(wrong_proposals_are_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
