// Placement, against the drawing of placement.h, and invariants of any placement.
#include "tests/support/check.h"

#include "engine/model/make/placement.h"

#include <math.h>
#include <string.h>

static Shape shape(int heads, int kv_heads, int head_dim) {
    return (Shape){.layers = 2,
                   .width = 8,
                   .heads = heads,
                   .kv_heads = kv_heads,
                   .head_dim = head_dim,
                   .mlp_width = 6,
                   .vocab = 10,
                   .rope = {.kind = ROPE_PLAIN, .theta = 10000, .factor = 1, .pairs = head_dim / 2}};
}

static void place(Placement *p, const Shape *small, const Shape *large) {
    Error e = {0};
    if (!placement_init(p, small, large, "large", &e)) fail_msg("%s", e.text);
}

static void expect(const Axis *a, const int *want, int n) {
    assert_int_equal(a->size, n);
    for (int i = 0; i < n; i++)
        if (a->from[i] != want[i]) fail_msg("at %d stands %d, want %d", i, a->from[i], want[i]);
    for (int i = a->end; i < n; i++) assert_int_equal(a->from[i], PLACE_PADDED);
    assert_true(a->end == 0 || a->from[a->end - 1] != PLACE_PADDED);
}

// The pictures of the header.
static void as_drawn(void **state) {
    (void)state;
    enum { P = PLACE_PADDED, D = PLACE_DEAD };
    Placement p;
    Shape small = shape(1, 1, 4), large = shape(1, 1, 16);
    place(&p, &small, &large);
    static const int turned[] = {0, P, P, P, 1, P, P, P, 2, P, P, P, 3, P, P, P};
    static const int first[] = {0, 1, 2, 3, P, P, P, P, P, P, P, P, P, P, P, P};
    expect(&p.axis[AXIS_Q], turned, 16);
    expect(&p.axis[AXIS_K], turned, 16);
    expect(&p.axis[AXIS_V], first, 16);
    expect(&p.axis[AXIS_O], first, 16);
    assert_int_equal(p.head_ratio, 4);
    placement_release(&p);

    small = shape(1, 1, 4), large = shape(1, 1, 16), small.rope.pairs = 1, large.rope.pairs = 4; // half of it
    place(&p, &small, &large);
    static const int part[] = {0, P, P, P, 1, P, P, P, 2, 3, P, P, P, P, P, P};
    expect(&p.axis[AXIS_Q], part, 16);
    expect(&p.axis[AXIS_K], part, 16);
    expect(&p.axis[AXIS_V], first, 16);
    placement_release(&p);

    small = shape(8, 2, 2), large = shape(10, 5, 2); // 4 to 1, 2 to 1: each key head twice
    place(&p, &small, &large);
    expect(&p.axis[AXIS_K], (const int[]){0, 1, 0, 1, 2, 3, 2, 3, P, P}, 10);
    expect(&p.axis[AXIS_Q], (const int[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, P, P, P, P},
           20);
    expect(&p.axis[AXIS_O], (const int[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, P, P, P, P},
           20);
    placement_release(&p);

    small = shape(4, 2, 2), large = shape(9, 3, 2); // 2 to 1, 3 to 1: a query head too many
    place(&p, &small, &large);
    expect(&p.axis[AXIS_Q], (const int[]){0, 1, 2, 3, P, P, 4, 5, 6, 7, P, P, P, P, P, P, P, P}, 18);
    expect(&p.axis[AXIS_O], (const int[]){0, 1, 2, 3, D, D, 4, 5, 6, 7, D, D, P, P, P, P, P, P}, 18);
    expect(&p.axis[AXIS_V], (const int[]){0, 1, 2, 3, P, P}, 6);
    placement_release(&p);
    placement_release(&p); // takes an empty one
}

// Bit for bit: a real pair is turned by the angle that it was turned by.
static void angles_are_kept(void **state) {
    (void)state;
    Random r = test_random(71);
    for (int round = 0; round < 300; round++) {
        static const int ratios[] = {1, 4, 16};
        double before[ROPE_MAX_PAIRS], after[ROPE_MAX_PAIRS];
        int m = ratios[test_between(&r, 0, 2)], pairs = test_between(&r, 1, ROPE_MAX_PAIRS / m);
        Shape small = shape(1, 1, 2 * pairs), large = shape(1, 1, 2 * pairs * m);
        small.rope.theta = large.rope.theta = test_between(&r, 2, 1000000);
        Placement p;
        place(&p, &small, &large);
        rope_frequencies(&small.rope, before);
        rope_frequencies(&large.rope, after);
        const int *from = p.axis[AXIS_Q].from;
        for (int i = 0, half = large.rope.pairs; i < half; i++) {
            assert_true((from[i] < 0) == (from[i + half] < 0));
            if (from[i] < 0) continue;
            assert_int_equal(from[i + half], from[i] + pairs);
            if (before[from[i]] != after[i])
                fail_msg("theta %g, %d pairs times %d: pair %d is turned by %.17g, was by %.17g",
                         small.rope.theta, pairs, m, from[i], after[i], before[from[i]]);
        }
        placement_release(&p);
    }
}

// Each small query head stands once, with its own key head.
static void heads_keep_their_keys(void **state) {
    (void)state;
    Random r = test_random(72);
    for (int round = 0; round < 500; round++) {
        int kv = test_between(&r, 1, 4), group = test_between(&r, 1, 5), room = test_between(&r, 1, 8);
        int copies = (group + room - 1) / room, large_kv = kv * copies + test_between(&r, 0, 2);
        Shape small = shape(kv * group, kv, 2), large = shape(large_kv * room, large_kv, 2);
        Placement p;
        if (large.heads < small.heads) continue;
        place(&p, &small, &large);
        const int *q = p.axis[AXIS_Q].from, *k = p.axis[AXIS_K].from, *o = p.axis[AXIS_O].from;
        int seen = 0;
        for (int h = 0; h < large.heads; h++) {
            int own = k[h / room * 2], head = q[h * 2];
            if (head < 0) {
                assert_int_equal(o[h * 2], own < 0 ? PLACE_PADDED : PLACE_DEAD);
                continue;
            }
            if (head != 2 * seen || head / 2 / group != own / 2 || o[h * 2] != head)
                fail_msg("%d to one, at %d to one: head %d is %d with keys %d", group, room, h, head / 2,
                         own / 2);
            seen++;
        }
        assert_int_equal(seen, small.heads);
        placement_release(&p);
    }
}

// Each once, in order, and an exit layer keeps its share; but for the first ones, where they stay the first.
static void layers_are_spread(void **state) {
    (void)state;
    for (int l = 1; l <= 20; l++)
        for (int L = l; L <= 90; L++)
            for (int first = 0; first <= l; first += first ? l : 1) {
                const Layers layers = {l, L, first};
                int next = 0;
                for (int i = 0; i < L; i++) {
                    int from = placement_layer_from(&layers, i);
                    if (from == PLACE_PADDED) continue;
                    if (from != next || placement_layer(&layers, from) != i)
                        fail_msg("%d of %d, first %d: layer %d is %d", l, L, first, i, from);
                    assert_true(i >= first || from == i);
                    assert_true(first || fabs((double)i / L - (double)from / l) < 1.0 / L);
                    next++;
                }
                assert_int_equal(next, l);
            }
    assert_int_equal(placement_layer(&(Layers){8, 32, 2}, 2), 2);
    assert_int_equal(placement_layer(&(Layers){8, 32, 0}, 2), 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_drawn),
        cmocka_unit_test(angles_are_kept),
        cmocka_unit_test(heads_keep_their_keys),
        cmocka_unit_test(layers_are_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
