// Storing and copying keys and values, element by element in the layout of keys.h: both directions go through
// key_at and value_at, so that the layout is written down once.
#include "engine/cpu/kernels/keys.h"

static void store_key(const KeyLayout *l, const float *key, void *keys, size_t first, int i) {
    uint16_t *halves = keys, *at = halves + first + key_at(l, i, 0);
    if (l->dtype == DTYPE_F32)
        for (int d = 0; d < l->head_dim; d++) ((float *)keys)[first + key_at(l, i, d)] = key[d];
    else if (l->dtype == DTYPE_F16)
        for (int d = 0; d < l->head_dim; d++) halves[first + key_at(l, i, d)] = f32_to_f16(key[d]);
    else
        for (int d = 0; d < l->head_dim; d += 2, at += 2 * KEY_BLOCK) {
            at[0] = f32_to_bf16(key[d]);
            at[1] = f32_to_bf16(key[d + 1]);
        }
}

static void store_value(const KeyLayout *l, const float *value, void *values, size_t at) {
    if (l->dtype == DTYPE_F32) {
        memcpy((float *)values + at, value, (size_t)l->head_dim * sizeof *value);
        return;
    }
    uint16_t *to = (uint16_t *)values + at;
    if (l->dtype == DTYPE_F16)
        for (int d = 0; d < l->head_dim; d++) to[d] = f32_to_f16(value[d]);
    else
        for (int d = 0; d < l->head_dim; d++) to[d] = f32_to_bf16(value[d]);
}

void keys_store(const KeyLayout *l, const float *key, const float *value, void *keys, void *values, int i) {
    for (int h = 0; h < l->heads; h++, key += l->head_dim, value += l->head_dim) {
        store_key(l, key, keys, key_head(l, h), i);
        store_value(l, value, values, value_head(l, h) + value_at(l, i, 0));
    }
}

void keys_copy(const KeyLayout *l, const void *keys, const void *values, int from, void *to_keys,
               void *to_values, int to) {
    size_t size = dtype_size(l->dtype), row = l->row_elements * size;
    // A key's words are KEY_BLOCK words apart. A word is four bytes: one element of f32 or two of bf16; or
    // two bytes, one element of f16.
    size_t word = l->dtype == DTYPE_F16 ? 2 : 4, step = KEY_BLOCK * word;
    size_t words = (size_t)l->head_dim * size / word;
    for (int h = 0; h < l->heads; h++) {
        const unsigned char *source =
            (const unsigned char *)keys + (key_head(l, h) + key_at(l, from, 0)) * size;
        unsigned char *target = (unsigned char *)to_keys + (key_head(l, h) + key_at(l, to, 0)) * size;
        for (size_t i = 0; i < words; i++) memcpy(target + i * step, source + i * step, word);
    }
    memcpy((unsigned char *)to_values + (size_t)to * row, (const unsigned char *)values + (size_t)from * row,
           row);
}
