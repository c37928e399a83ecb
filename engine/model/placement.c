#include "engine/model/placement.h"

#include "engine/base/memory.h"

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

static bool axis_init(Axis *a, int size) {
    *a = (Axis){.from = mem_new((size_t)size, sizeof *a->from), .size = size};
    for (int i = 0; a->from && i < size; i++) a->from[i] = PLACE_PADDED;
    return a->from != NULL;
}

static void put(Axis *a, int at, int from) {
    a->from[at] = from;
    if (at >= a->end) a->end = at + 1;
}

static bool first_in_order(Axis *a, int small, int large) {
    if (!axis_init(a, large)) return false;
    for (int i = 0; i < small; i++) put(a, i, i);
    return true;
}

// A head whose dimensions keep the angles by which RoPE turns them; those that it does not turn stand after
// it.
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

static void place_dead(Axis *a, int at, const Shape *l) {
    for (int i = 0; i < l->head_dim; i++) put(a, at * l->head_dim + i, PLACE_DEAD);
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
            place_dead(&p->axis[AXIS_O], at * room + i, l);
            continue;
        }
        place_turned(&p->axis[AXIS_Q], at * room + i, k * group + q, s, l);
        place_in_order(&p->axis[AXIS_O], at * room + i, k * group + q, s, l);
    }
}

static bool place_heads(Placement *p, const Shape *s, const Shape *l) {
    int group = s->heads / s->kv_heads, room = l->heads / l->kv_heads, copies = (group + room - 1) / room;
    if (!axis_init(&p->axis[AXIS_Q], shape_q_width(l)) || !axis_init(&p->axis[AXIS_K], shape_kv_width(l)) ||
        !axis_init(&p->axis[AXIS_V], shape_kv_width(l)) || !axis_init(&p->axis[AXIS_O], shape_q_width(l)))
        return false;
    for (int k = 0; k < s->kv_heads; k++)
        for (int copy = 0; copy < copies; copy++) place_group(p, k, copy, s, l);
    return true;
}

bool placement_init(Placement *p, const Shape *s, const Shape *l, const char *place, Error *e) {
    *p = (Placement){.head_ratio = 0};
    if (!check_sizes(s, l, place, e) || !check_heads(s, l, place, e)) return false;
    p->head_ratio = l->head_dim / s->head_dim;
    return first_in_order(&p->axis[AXIS_RESIDUAL], s->width, l->width) &&
           first_in_order(&p->axis[AXIS_MLP], s->mlp_width, l->mlp_width) &&
           first_in_order(&p->axis[AXIS_VOCABULARY], s->vocab, l->vocab) && place_heads(p, s, l);
}

void placement_release(Placement *p) {
    for (int i = 0; i < AXES; i++) mem_free(p->axis[i].from);
    *p = (Placement){.head_ratio = 0};
}

int placement_layer(int small_layer, int small_layers, int large_layers) {
    return small_layer * large_layers / small_layers;
}

int placement_layer_from(int large_layer, int small_layers, int large_layers) {
    int i = (large_layer * small_layers + large_layers - 1) / large_layers; // the first at or after it
    return i < small_layers && placement_layer(i, small_layers, large_layers) == large_layer ? i
                                                                                             : PLACE_PADDED;
}
