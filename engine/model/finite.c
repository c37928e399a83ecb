// Scans the weights of a model for numbers that aren't finite. Scales of codes are checked when it's opened.
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
    if (t->codes.bits) return 0; // scales are checked when the model is opened
    switch (t->dtype) {
    case DTYPE_F32: return count_words(t->data, n, 0x7f800000u);
    case DTYPE_F16: return count_halves(t->data, n, 0x7c00u);
    case DTYPE_BF16: return count_halves(t->data, n, 0x7f80u);
    }
    return 0;
}

static const char *file_of(const ModelWeights *w, const void *data) {
    uintptr_t at = (uintptr_t)data;
    for (int i = 0; i < w->file_count; i++) {
        uintptr_t start = (uintptr_t)w->files[i].view.data;
        if (at >= start && at - start < w->files[i].view.size) return w->files[i].name;
    }
    return "?";
}

// s: the first weight with such numbers; total: how many there are in all weights.
static bool report(const Model *m, const ModelWeights *w, const WeightSpec *s, size_t total, Error *e) {
    const Tensor *t = weight_tensor(m, s->layer, s->expert, s->which);
    size_t i = 0, columns = (size_t)t->columns;
    while (isfinite(dtype_load(t->dtype, t->data, i))) i++;
    return error_input(
        e,
        "tensor '%s' in '%s/%s' holds %s at row %zu, column %zu, the first of %zu weights that "
        "are not finite: fetch or save the model again",
        s->name, w->dir, file_of(w, t->data),
        isnan(dtype_load(t->dtype, t->data, i)) ? "a NaN" : "an infinity", (size_t)s->first_row + i / columns,
        i % columns, total);
}

bool model_check_finite(const Model *m, const ModelWeights *w, Error *e) {
    size_t total = 0;
    WeightSpec first = {.name = ""};
    for (int i = 0; i < weights_count(m); i++) {
        WeightSpec s = weights_at(m, i);
        size_t bad = s.name[0] ? count_bad(weight_tensor(m, s.layer, s.expert, s.which)) : 0;
        if (bad && !total) first = s;
        total += bad;
    }
    return total == 0 || report(m, w, &first, total, e);
}
