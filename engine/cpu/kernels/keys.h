// The layout of keys and values in memory, in the cache (by slot) and in the step area (by node) alike.
//
// Keys are in blocks of KEY_BLOCK, so that a vector has one dimension of 16 keys, and a query's product with
// all of them needs no sum across lanes. f16 is widened by an instruction; bf16 has two dimensions side by
// side, which a shift and a mask turn into f32:
//
//      block of 16 keys, one head:   f32, f16 | d0: key 0 .. key 15 | d1: key 0 .. key 15 | ...
//                                    bf16     | d0 d1 of key 0, d0 d1 of key 1, .. key 15 | d2 d3 of key 0
//                                    ...
//
// A value is a row; each head's part is padded to whole vectors. The padding is never written, and results
// from it are never read.
#pragma once
#include "engine/base/numbers.h"
#include "engine/core/shape.h"

enum { KEY_BLOCK = 16, VALUE_PAD = 32 };

typedef struct KeyLayout {
    Dtype dtype;
    int heads, head_dim;
    size_t block_elements; // of KEY_BLOCK keys, all heads
    size_t row_elements;   // of one value, all heads with their padding
} KeyLayout;

static inline size_t key_value_pad(int head_dim) {
    return ((size_t)head_dim + VALUE_PAD - 1) / VALUE_PAD * VALUE_PAD;
}

static inline KeyLayout key_layout(const Shape *s, Dtype dtype) {
    return (KeyLayout){dtype, s->kv_heads, s->head_dim, (size_t)KEY_BLOCK * (size_t)shape_kv_width(s),
                       (size_t)s->kv_heads * key_value_pad(s->head_dim)};
}

// Elements that n keys, or n values, take.
static inline size_t key_area(const KeyLayout *l, int n) {
    return ((size_t)n + KEY_BLOCK - 1) / KEY_BLOCK * l->block_elements;
}
static inline size_t value_area(const KeyLayout *l, int n) { return (size_t)n * l->row_elements; }

// Where a head's keys and values begin in an area.
static inline size_t key_head(const KeyLayout *l, int head) {
    return (size_t)head * KEY_BLOCK * (size_t)l->head_dim;
}
static inline size_t value_head(const KeyLayout *l, int head) {
    return (size_t)head * key_value_pad(l->head_dim);
}

// Dimension d of key i, and of value i, from there.
static inline size_t key_at(const KeyLayout *l, int i, int d) {
    size_t block = (size_t)(i / KEY_BLOCK) * l->block_elements, lane = (size_t)(i % KEY_BLOCK);
    if (l->dtype != DTYPE_BF16) return block + (size_t)d * KEY_BLOCK + lane;
    return block + (size_t)(d / 2) * (2 * KEY_BLOCK) + lane * 2 + (size_t)(d % 2);
}
static inline size_t value_at(const KeyLayout *l, int i, int d) {
    return (size_t)i * l->row_elements + (size_t)d;
}

// Writes key and value i of an area, all heads, from rows of f32 (heads * head_dim).
void keys_store(const KeyLayout *l, const float *key, const float *value, void *keys, void *values, int i);

// Copies key and value `from` of one area to `to` of another.
void keys_copy(const KeyLayout *l, const void *keys, const void *values, int from, void *to_keys,
               void *to_values, int to);
