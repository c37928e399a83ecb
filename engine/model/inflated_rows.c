// All is random first, then what is not is put over it.
#include "engine/model/placement.h"

#include "engine/base/random.h"

#include <math.h>
#include <string.h>

typedef enum {
    KIND_NORM,
    KIND_BIAS,      // zero where it is not the small model's
    KIND_SILENT,    // padded rows are zero on real columns
    KIND_FREE,      // padded rows are random all over
    KIND_EMBEDDING, // as free, and real rows are zero on padded columns
} Kind;

// Rows of a vector have no axis: it has one.
typedef struct Role {
    AxisName rows, columns;
    Kind kind, added; // in a layer of the small model; in an added one
} Role;

static const Role ROLE[ROLES] = {
    [WEIGHT_ATTENTION_NORM] = {AXES, AXIS_RESIDUAL, KIND_NORM, KIND_NORM},
    [WEIGHT_Q] = {AXIS_Q, AXIS_RESIDUAL, KIND_SILENT, KIND_FREE},
    [WEIGHT_K] = {AXIS_K, AXIS_RESIDUAL, KIND_SILENT, KIND_FREE},
    [WEIGHT_V] = {AXIS_V, AXIS_RESIDUAL, KIND_SILENT, KIND_SILENT},
    [WEIGHT_Q_BIAS] = {AXES, AXIS_Q, KIND_BIAS, KIND_BIAS},
    [WEIGHT_K_BIAS] = {AXES, AXIS_K, KIND_BIAS, KIND_BIAS},
    [WEIGHT_V_BIAS] = {AXES, AXIS_V, KIND_BIAS, KIND_BIAS},
    [WEIGHT_O] = {AXIS_RESIDUAL, AXIS_O, KIND_SILENT, KIND_FREE},
    [WEIGHT_MLP_NORM] = {AXES, AXIS_RESIDUAL, KIND_NORM, KIND_NORM},
    [WEIGHT_GATE] = {AXIS_MLP, AXIS_RESIDUAL, KIND_SILENT, KIND_SILENT},
    [WEIGHT_UP] = {AXIS_MLP, AXIS_RESIDUAL, KIND_FREE, KIND_FREE},
    [WEIGHT_DOWN] = {AXIS_RESIDUAL, AXIS_MLP, KIND_SILENT, KIND_FREE},
    [WEIGHT_GATE_BIAS] = {AXES, AXIS_MLP, KIND_BIAS, KIND_BIAS},
    [ADAPTER_FINAL_NORM] = {AXES, AXIS_RESIDUAL, KIND_NORM, KIND_NORM},
    [ADAPTER_HEAD] = {AXIS_VOCABULARY, AXIS_RESIDUAL, KIND_FREE, KIND_FREE},
    [ROLE_EMBEDDING] = {AXIS_VOCABULARY, AXIS_RESIDUAL, KIND_EMBEDDING, KIND_FREE},
};

static inline void store(Dtype dtype, unsigned char *out, size_t i, float x) {
    uint16_t h = dtype == DTYPE_F16 ? f32_to_f16(x) : f32_to_bf16(x);
    if (dtype == DTYPE_F32) memcpy(out + 4 * i, &x, 4);
    else memcpy(out + 2 * i, &h, 2);
}

// The finalizer of SplitMix64 (Steele et al., OOPSLA 2014): a seventh of what random_at costs, and a 7B has
// 1.8 billion draws.
static uint64_t draw(uint64_t base, uint64_t counter) {
    uint64_t x = base + (counter + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

// Uniform around 0, of a spread that keeps products of unit numbers at size 1, were they not zero; four from
// a draw, the same wherever a buffer begins.
static void fill_random(uint64_t base, const Elements *w, int columns, unsigned char *out) {
    float spread = sqrtf(3.0f / (float)columns);
    for (size_t at = w->from, end = w->from + w->count; at < end;) {
        uint64_t bits = draw(base, at / 4) >> 16 * (at % 4);
        size_t stop = at / 4 * 4 + 4 < end ? at / 4 * 4 + 4 : end;
        for (; at < stop; at++, bits >>= 16) {
            float u = ((float)(int)(bits & 0xffff) + 0.5f) * 0x1p-15f - 1.0f;
            store(w->dtype, out, at - w->from, spread * u);
        }
    }
}

static float load(const Tensor *t, int row, int column) {
    return dtype_load(t->dtype, t->data, (size_t)row * (size_t)t->columns + (size_t)column);
}

// Columns [from, to) of one row of a part; out is where column `from` goes.
typedef struct Span {
    int row, from, to;
    Dtype dtype;
    unsigned char *out;
} Span;

// Rounded once. A norm of padded dimensions, or of an added layer, is random as the others are.
static void put_norm(const Inflation *x, const Part *p, const Axis *columns, const Span *s) {
    double scale = sqrt(1 / x->width_ratio);
    for (int c = s->from; c < s->to; c++) {
        int from = p->small ? columns->from[c] : PLACE_PADDED;
        size_t i = (size_t)(c - s->from);
        float drawn = dtype_load(s->dtype, s->out, i);
        double real = from >= 0 ? (double)load(p->small, 0, from) : 1 + (double)drawn;
        store(s->dtype, s->out, i, (float)(real * scale));
    }
}

// The scale of scores is 1 / sqrt(head size), m times as large: q makes up for it by sqrt(m) = 1, 2 or 4.
static float scale_of(const Inflation *x, int role) {
    int m = role == WEIGHT_Q || role == WEIGHT_Q_BIAS ? x->places->head_ratio : 1;
    return m == 16 ? 4 : m == 4 ? 2 : 1;
}

static void put_bias(const Inflation *x, const Part *p, const Axis *columns, const Span *s) {
    for (int c = s->from; c < s->to; c++) {
        int from = p->small && p->small->data ? columns->from[c] : PLACE_PADDED;
        float real = from >= 0 ? scale_of(x, p->role) * load(p->small, 0, from) : 0;
        store(s->dtype, s->out, (size_t)(c - s->from), real);
    }
}

static void put_real_row(const Inflation *x, const Part *p, int from_row, const Axis *columns,
                         const Span *s) {
    float scale = scale_of(x, p->role);
    for (int c = s->from; c < s->to && c < columns->end; c++) {
        int from = columns->from[c];
        if (from == PLACE_PADDED) continue;
        float real = from >= 0 ? scale * load(p->small, from_row, from) : 0;
        store(s->dtype, s->out, (size_t)(c - s->from), real);
    }
    int padded = s->from > columns->end ? s->from : columns->end;
    for (int c = padded; ROLE[p->role].kind == KIND_EMBEDDING && c < s->to; c++)
        store(s->dtype, s->out, (size_t)(c - s->from), 0);
}

static void put_padded_row(Kind kind, const Axis *columns, const Span *s) {
    for (int c = s->from; kind == KIND_SILENT && c < s->to && c < columns->end; c++)
        if (columns->from[c] != PLACE_PADDED) store(s->dtype, s->out, (size_t)(c - s->from), 0);
}

static void put_row(const Inflation *x, const Part *p, const Span *s) {
    const Role *role = &ROLE[p->role];
    const Axis *axes = x->places->axis, *columns = &axes[role->columns];
    Kind kind = p->small ? role->kind : role->added;
    if (kind == KIND_NORM) put_norm(x, p, columns, s);
    else if (kind == KIND_BIAS) put_bias(x, p, columns, s);
    else {
        int from = p->small ? axes[role->rows].from[s->row] : PLACE_PADDED;
        if (from >= 0) put_real_row(x, p, from, columns, s);
        else put_padded_row(kind, columns, s);
    }
}

static const Part *part_of(const Elements *w, int row) {
    int i = 0;
    while (i + 1 < w->part_count && row >= w->parts[i + 1].first_row) i++;
    return &w->parts[i];
}

void inflated_fill(const Inflation *x, const Elements *w, unsigned char *out) {
    size_t columns = (size_t)w->parts[0].columns, size = dtype_size(w->dtype);
    uint64_t stream = STREAM_WEIGHTS + ((uint64_t)w->tensor << 8);
    fill_random(random_at(x->seed, stream, 0), w, (int)columns, out);
    for (size_t at = w->from, end = w->from + w->count; at < end;) {
        size_t row = at / columns, stop = (row + 1) * columns < end ? (row + 1) * columns : end;
        const Part *p = part_of(w, (int)row);
        put_row(x, p,
                &(Span){.row = (int)row - p->first_row,
                        .from = (int)(at - row * columns),
                        .to = (int)(stop - row * columns),
                        .dtype = w->dtype,
                        .out = out + (at - w->from) * size});
        at = stop;
    }
}
