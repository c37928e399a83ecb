// Fills the axes of placement.h. On an open axis, everything from `end` on is padded and the entry before it
// isn't; no entry names an index that the small model doesn't have.
#include "engine/model/make/placement.h"

#include "engine/base/memory.h"

#include <assert.h>

static void placement_check(const Placement *p, UNUSED const Shape *small) {
    assert(p->head_ratio == 1 || p->head_ratio == 4 || p->head_ratio == 16);
    for (AxisName i = 0; i < AXES; i++) {
        const Axis *a = &p->axis[i];
        assert(a->end >= 0 && a->end <= a->size);
        assert(a->end == 0 || a->from[a->end - 1] != PLACE_PADDED);
        for (int k = 0; k < a->size; k++) {
            assert(a->from[k] < axis_size(small, 0, i) &&
                   a->from[k] >= (i == AXIS_O ? PLACE_DEAD : PLACE_PADDED));
            assert(k < a->end || a->from[k] == PLACE_PADDED);
        }
    }
}

typedef struct Size {
    const char *name;
    int small, large;
} Size;

static bool check_sizes(const Shape *s, const Shape *l, const char *place, Error *e) {
    const Size sizes[] = {
        {"layers", s->layers, l->layers},
        {"hidden size", s->width, l->width},
        {"intermediate size", s->mlp_width, l->mlp_width},
        {"vocabulary", s->vocab, l->vocab},
        {"attention heads", s->heads, l->heads},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].small > sizes[i].large)
            return error_input(e, "%s of '%s' is %d, the model to inflate has %d: take a larger shape",
                               sizes[i].name, place, sizes[i].large, sizes[i].small);
    return true;
}

static bool check_heads(const Shape *s, const Shape *l, const char *place, Error *e) {
    int m = l->head_dim / s->head_dim;
    if (l->head_dim % s->head_dim || (m != 1 && m != 4 && m != 16))
        return error_input(e,
                           "heads of '%s' have size %d, those of the model to inflate %d: it must be 1, 4 or "
                           "16 times that",
                           place, l->head_dim, s->head_dim);
    if (l->rope.pairs != m * s->rope.pairs)
        return error_input(
            e,
            "heads of '%s' are rotated in %d of %d dimensions, those of the model to inflate in %d "
            "of %d: it must be the same part",
            place, 2 * l->rope.pairs, l->head_dim, 2 * s->rope.pairs, s->head_dim);
    int group = s->heads / s->kv_heads, room = l->heads / l->kv_heads, copies = (group + room - 1) / room;
    if (s->kv_heads * copies > l->kv_heads)
        return error_input(e,
                           "'%s' has %d key heads for %d query heads each, the model to inflate, with %d for "
                           "%d each, needs %d",
                           place, l->kv_heads, room, s->kv_heads, group, s->kv_heads * copies);
    return true;
}

static void put(Axis *a, int at, int from) {
    a->from[at] = from;
    if (at >= a->end) a->end = at + 1;
}

static void first_in_order(Axis *a, int small) {
    for (int i = 0; i < small; i++) put(a, i, i);
}

// Rows side by side, each in order.
static void place_rows(Axis *a, int count, int small, int large) {
    for (int i = 0; i < count * small; i++) put(a, i / small * large + i % small, i);
}

// Places a head whose dimensions keep their angles of rotation; dimensions without rotation come after them.
static void place_turned(Axis *a, int at, int from, const Shape *s, const Shape *l) {
    int pairs = s->rope.pairs, m = l->head_dim / s->head_dim;
    for (int i = 0; i < pairs; i++) {
        put(a, at * l->head_dim + i * m, from * s->head_dim + i);
        put(a, at * l->head_dim + l->rope.pairs + i * m, from * s->head_dim + pairs + i);
    }
    for (int i = 2 * pairs; i < s->head_dim; i++)
        put(a, at * l->head_dim + 2 * l->rope.pairs + i - 2 * pairs, from * s->head_dim + i);
}

static void place_in_order(Axis *a, int at, int from, const Shape *s, const Shape *l) {
    for (int i = 0; i < s->head_dim; i++) put(a, at * l->head_dim + i, from * s->head_dim + i);
}

// Copy `copy` of small key head k, with the query heads that it serves.
static void place_group(Placement *p, int k, int copy, const Shape *s, const Shape *l) {
    int group = s->heads / s->kv_heads, room = l->heads / l->kv_heads, copies = (group + room - 1) / room;
    int at = k * copies + copy;
    place_turned(&p->axis[AXIS_K], at, k, s, l);
    place_in_order(&p->axis[AXIS_V], at, k, s, l);
    for (int i = 0; i < room; i++) {
        int q = copy * room + i;
        if (q >= group) {
            for (int d = 0; d < l->head_dim; d++)
                put(&p->axis[AXIS_O], (at * room + i) * l->head_dim + d, PLACE_DEAD);
            continue;
        }
        place_turned(&p->axis[AXIS_Q], at * room + i, k * group + q, s, l);
        place_in_order(&p->axis[AXIS_O], at * room + i, k * group + q, s, l);
    }
}

bool placement_init(Placement *p, const Shape *s, const Shape *l, const char *place, Error *e) {
    *p = (Placement){.head_ratio = 0};
    if (!check_sizes(s, l, place, e) || !check_heads(s, l, place, e)) return false;
    p->head_ratio = l->head_dim / s->head_dim;
    for (AxisName i = 0; i < AXES; i++) {
        int size = axis_size(l, 0, i), *from = mem_new((size_t)size, sizeof *from);
        for (int k = 0; k < size; k++) from[k] = PLACE_PADDED;
        p->axis[i] = (Axis){.from = from, .size = size};
    }
    first_in_order(&p->axis[AXIS_RESIDUAL], s->width);
    first_in_order(&p->axis[AXIS_MLP], s->mlp_width);
    first_in_order(&p->axis[AXIS_VOCABULARY], s->vocab);
    first_in_order(&p->axis[AXIS_TOKENS], shape_tokens(s));
    place_rows(&p->axis[AXIS_ATTENTION], shape_attention_width(s, 0) / s->width, s->width, l->width);
    place_rows(&p->axis[AXIS_FC], shape_fc_width(s) / s->width, s->width, l->width);
    int group = s->heads / s->kv_heads, room = l->heads / l->kv_heads, copies = (group + room - 1) / room;
    for (int k = 0; k < s->kv_heads; k++)
        for (int copy = 0; copy < copies; copy++) place_group(p, k, copy, s, l);
    placement_check(p, s);
    return true;
}

void placement_release(Placement *p) {
    for (int i = 0; i < AXES; i++) mem_free(p->axis[i].from);
    *p = (Placement){.head_ratio = 0};
}

int placement_layer(const Layers *l, int small_layer) {
    int i = small_layer - l->first, small = l->small - l->first, large = l->large - l->first;
    return i <= 0 ? small_layer : l->first + i * large / small;
}

int placement_layer_from(const Layers *l, int large_layer) {
    int small = l->small - l->first, large = l->large - l->first, i = large_layer - l->first;
    if (i < 0) return large_layer;
    if (small == 0) return PLACE_PADDED;
    i = l->first + (i * small + large - 1) / large; // the first at or after it
    return i < l->small && placement_layer(l, i) == large_layer ? i : PLACE_PADDED;
}
