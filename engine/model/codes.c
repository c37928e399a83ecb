// Binds weights that files store as codes and scales: those of quantise.h, and the blocks of GGUF files.
#include "engine/model/binding.h"

#include <stdio.h>
#include <string.h>

bool scales_name(char out[TENSOR_NAME], const char *weight) {
    int n = snprintf(out, TENSOR_NAME, "%s.scales", weight);
    return n > 0 && n < TENSOR_NAME;
}

// A scale that is 0, infinite or a NaN wasn't written by any quantiser.
static bool check_scales(const Binding *b, const Found *f, Error *e) {
    const StoredTensor *t = f->t;
    size_t count = (t->end - t->begin) / sizeof(uint16_t), columns = (size_t)t->dims[1];
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, found_data(f) + i * sizeof half, sizeof half);
        const char *what = !(half & 0x7fffu)             ? "0"
                           : (half & 0x7c00u) != 0x7c00u ? NULL
                           : half & 0x3ffu               ? "a NaN"
                                                         : "an infinity";
        if (what)
            return error_input(
                e,
                "tensor '%s' in '%s/%s' holds %s at row %zu, column %zu, which is not a scale: "
                "quantise the model again",
                t->name, b->dir, f->shard->name, what, i / columns, i % columns);
    }
    return true;
}

bool codes_bind(const Binding *b, const WeightSpec *s, const Found *f, Error *e) {
    Found scales;
    const StoredTensor *t = f->t;
    char name[TENSOR_NAME];
    int bits = strcmp(t->dtype, "I8") == 0 ? 8 : 4, group = b->m->group;
    if (t->rank != 2 || t->dims[0] != s->rows || t->dims[1] != (int64_t)s->columns * bits / 8 ||
        s->columns % group)
        return error_input(
            e,
            "tensor '%s' in '%s/%s' isn't codes of %d bits for (%d, %d) numbers in groups of %d, "
            "which config.json needs: are both of the same model?",
            t->name, b->dir, f->shard->name, bits, s->rows, s->columns, group);
    if (!scales_name(name, s->name)) return error_input(e, "the name of tensor '%s' is too long", s->name);
    if (!binding_find(b, name, &scales, e)) return false;
    const StoredTensor *x = scales.t;
    if (strcmp(x->dtype, "F16") != 0 || x->rank != 2 || x->dims[0] != s->rows ||
        x->dims[1] != s->columns / group || x->begin % sizeof(uint16_t))
        return error_input(e, "tensor '%s' in '%s/%s' must hold (%d, %d) scales in F16, at an even byte",
                           name, b->dir, scales.shard->name, s->rows, s->columns / group);
    *binding_place(b, s) = (Tensor){.data = found_data(f),
                                    .dtype = DTYPE_BF16,
                                    .rows = s->rows,
                                    .columns = s->columns,
                                    .codes = {bits, group, SCALES_F16, found_data(&scales)}};
    return check_scales(b, &scales, e);
}

bool blocks_bind(const Binding *b, const WeightSpec *s, const BlockFormat *format, const Found *f, Error *e) {
    Tensor t = {.dtype = DTYPE_BF16, .rows = 1, .columns = s->columns, .codes = format->codes};
    bool valued = t.codes.bits == 8 && t.codes.kind == SCALES_PAIRS;
    size_t row = (size_t)s->columns / (size_t)format->numbers * (size_t)format->bytes, rows = (size_t)s->rows;
    size_t code_bytes = tensor_row_bytes(&t), scale_bytes = tensor_row_scale_bytes(&t), bad = 0;
    size_t value_bytes = (size_t)s->columns * sizeof(uint16_t), groups = (size_t)(t.columns / t.codes.group);
    unsigned char *codes = binding_take(b, s, valued ? 1 : rows, code_bytes, e);
    unsigned char *scales = codes ? binding_take(b, s, valued ? 1 : rows, scale_bytes, e) : NULL;
    unsigned char *values = scales && valued ? binding_take(b, s, rows, value_bytes, e) : NULL;
    if (!scales || (valued && !values)) return false;
    for (size_t r = 0; r < rows; r++) {
        size_t place = valued ? 0 : r;
        t.data = codes + place * code_bytes;
        t.codes.scales = scales + place * scale_bytes;
        block_row(format, found_data(f) + binding_row(b, s, r) * row, s->columns, codes + place * code_bytes,
                  scales + place * scale_bytes);
        if ((bad = tensor_bad_scale(&t)) < groups)
            return error_input(
                e,
                "tensor '%s' in '%s/%s' has a scale that isn't finite, at row %zu, group %zu: fetch "
                "the model again",
                s->name, b->dir, f->shard->name, r, bad);
        if (valued) tensor_decode_row(&t, 0, (uint16_t *)(void *)(values + r * value_bytes));
    }
    Tensor *out = binding_place(b, s);
    *out = (Tensor){
        .data = valued ? values : codes, .dtype = DTYPE_BF16, .rows = s->rows, .columns = s->columns};
    b->m->valued += valued;
    if (valued) return true;
    out->codes = format->codes;
    out->codes.scales = scales;
    return true;
}
