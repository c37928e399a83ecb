// A float is not finite iff all bits of its exponent are set, in each of the three formats.
#include "engine/model/finite.h"

#include "engine/model/weights.h"

#include <math.h>
#include <stdint.h>

static size_t count_halves(const uint16_t *x, size_t n, uint16_t exponent) {
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) bad += (x[i] & exponent) == exponent;
    return bad;
}

static size_t count_words(const uint32_t *x, size_t n, uint32_t exponent) {
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) bad += (x[i] & exponent) == exponent;
    return bad;
}

static size_t count_bad(const Tensor *t) {
    size_t n = (size_t)t->rows * (size_t)t->columns;
    switch (t->dtype) {
    case DTYPE_F32: return count_words(t->data, n, 0x7f800000u);
    case DTYPE_F16: return count_halves(t->data, n, 0x7c00u);
    case DTYPE_BF16: return count_halves(t->data, n, 0x7f80u);
    }
    return 0;
}

// What was found so far.
typedef struct {
    size_t total;
    WeightSpec spec; // of the first tensor that holds any
    const Tensor *tensor;
} Found;

static void scan(Found *f, const Tensor *t, const WeightSpec *spec) {
    size_t bad = t->data ? count_bad(t) : 0;
    if (bad && !f->total) {
        f->spec = *spec;
        f->tensor = t;
    }
    f->total += bad;
}

static const char *file_of(const Model *m, const void *data) {
    uintptr_t at = (uintptr_t)data;
    for (int i = 0; i < m->shard_count; i++) {
        uintptr_t start = (uintptr_t)m->shards[i].view.data;
        if (at >= start && at - start < m->shards[i].view.size) return m->shards[i].name;
    }
    return "?";
}

static bool report(const Found *f, const Model *m, const char *dir, Error *e) {
    const Tensor *t = f->tensor;
    size_t i = 0, columns = (size_t)t->columns;
    while (isfinite(dtype_load(t->dtype, t->data, i))) i++;
    return error_input(
        e,
        "tensor '%s' in '%s/%s' holds %s at row %zu, column %zu, the first of %zu weights that "
        "are not finite: fetch or save the model again",
        f->spec.name, dir, file_of(m, t->data),
        isnan(dtype_load(t->dtype, t->data, i)) ? "a NaN" : "an infinity",
        (size_t)f->spec.first_row + i / columns, i % columns, f->total);
}

bool model_check_finite(const Model *m, const char *dir, Error *e) {
    WeightSpec specs[LAYER_WEIGHTS];
    Found f = {0};
    const Tensor *const ends[3] = {&m->embedding, &m->final_norm, &m->head};
    int n = weights_of_ends(m, specs);
    for (int i = 0; i < n; i++) scan(&f, ends[i], &specs[i]);
    for (int layer = 0; layer < m->shape.layers; layer++) {
        n = weights_of_layer(m, layer, specs);
        for (int i = 0; i < n; i++) scan(&f, weights_field(&m->layers[layer], i), &specs[i]);
    }
    return f.total == 0 || report(&f, m, dir, e);
}
