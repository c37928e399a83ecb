// The put: bias, rotation, activation or residual, and the write. Every product ends here, whichever kernel
// made the sums.
#pragma once
#include "engine/cuda/kernels/rows.cuh"

// Activates every stride'th number; divisions don't wait for one another.
template <int COUNT> __device__ __forceinline__ void activate(float *x, int stride, Activation activation) {
    float e[COUNT];
    if (activation == ACTIVATION_SILU) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) e[i] = expf(-x[i * stride]);
#pragma unroll
        for (int i = 0; i < COUNT; i++) x[i * stride] /= 1 + e[i];
    } else if (activation == ACTIVATION_GELU) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) x[i * stride] *= 0.5f * (1 + erff(x[i * stride] * 0.70710678f));
    } else if (activation == ACTIVATION_RELU2) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) x[i * stride] *= fmaxf(x[i * stride], 0);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            float v = x[i * stride];
            x[i * stride] = 0.5f * v * (1 + tanhf(0.7978845608028654f * (v + 0.044715f * v * v * v)));
        }
    }
}

__device__ __forceinline__ float finish_logit(float x, float scale, float cap) {
    if (scale != 0) x *= scale;
    return cap > 0 ? cap * tanhf(x / cap) : x;
}

// A product's parts are added in ascending order.
__device__ __forceinline__ Pair add(Pair a, Pair b) { return {a.x + b.x, a.y + b.y}; }

// Where outputs m and m + 1 of a product go, the same in every row. m is even.
struct Place {
    int m;
    bool both, aligned; // output m + 1 exists; and a row's two can be loaded together
    Pair bias;
    char *to; // of row 0, or of node 0; unused for packed activations
    size_t step;
    bool by_node;
    int turned; // of PUT_QKV: the index of the angle; -1: not rotated
    int zeros;  // .. and how many zeros follow
};

// For PUT_QKV: pair i of a head; the heads of q, k and v follow one another.
__device__ __forceinline__ Place place_in_head(const Put &p, int head, int i) {
    const Heads &h = p.heads;
    Place at = {0, true, true, {0, 0}, NULL, 0, head >= h.heads, -1, 0};
    size_t size = h.dtype == DTYPE_F32 ? 4 : 2, pitch = (size_t)h.pitch * size;
    bool value = head >= h.heads + h.kv_heads;
    at.to = (char *)(value ? p.v : at.by_node ? p.k : p.q) + 2 * (size_t)i * size;
    at.step = at.by_node ? pitch : pitch * (size_t)h.heads;
    if (at.by_node) head -= value ? h.heads + h.kv_heads : h.heads;
    at.to += at.by_node ? (size_t)head * (size_t)p.area * pitch : (size_t)head * pitch;
    if (!value && i < h.pairs) at.turned = i;
    if (2 * i + 2 >= h.head_dim) at.zeros = h.pitch - h.head_dim;
    return at;
}

__device__ __forceinline__ bool adds_to_hidden(const Put &p) {
    return p.kind == PUT_RESIDUAL || p.kind == PUT_ACTIVATED_RESIDUAL;
}

__device__ __forceinline__ Place place_of(const Put &p, int outputs, int m) {
    Place at = {m, true, true, {0, 0}, (char *)(p.out + m), (size_t)p.stride * 4, adds_to_hidden(p), -1, 0};
    if (p.kind == PUT_QKV) at = place_in_head(p, m / p.heads.head_dim, m % p.heads.head_dim / 2);
    at.m = m;
    at.both = m + 1 < outputs;
    at.aligned = at.both && p.stride % 2 == 0;
    if (p.bias) at.bias = {p.bias[m], at.both ? p.bias[m + 1] : 0};
    return at;
}

// Rows that a thread has at once, so that their loads don't wait for one another. The values that they're
// combined with are loaded before their sums are ready.
template <int ROWS> struct Ahead {
    int row, step, count; // of the list: row, row + step, .. (count of them)
    int index[ROWS];      // the node, or the row
    Pair met[ROWS];       // of the hidden state; or cosine and sine
};

template <int ROWS>
__device__ __forceinline__ void look_ahead(Ahead<ROWS> &a, const Put &p, const Place &at, const RowList *list,
                                           int first_node) {
    bool nodes = at.by_node || at.turned >= 0;
    int first = a.row + (nodes && first_node >= 0 ? first_node : 0);
#pragma unroll
    for (int i = 0; i < ROWS; i++) a.index[i] = first + i * a.step;
    if (nodes && first_node < 0) {
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (i < a.count) a.index[i] = list->node[a.index[i]];
    }
    if (at.turned >= 0) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            size_t angle = (size_t)a.index[i] * (size_t)p.heads.pairs + (size_t)at.turned;
            if (i < a.count) a.met[i] = {p.cosine[angle], p.sine[angle]};
        }
    } else if (adds_to_hidden(p)) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const float *from = (const float *)(at.to + (size_t)a.index[i] * at.step);
            if (i >= a.count) continue;
            if (at.aligned) a.met[i] = *(const Pair *)from;
            else a.met[i] = {from[0], at.both ? from[1] : 0};
        }
    }
}

template <int ROWS>
__device__ __forceinline__ void put_floats(const Ahead<ROWS> &a, const Place &at, const Pair v[ROWS]) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        char *to = at.to + (size_t)a.index[i] * at.step;
        if (at.aligned) store_some(to, v[i], i < a.count);
        else if (i < a.count) {
            ((float *)to)[0] = v[i].x;
            if (at.both) ((float *)to)[1] = v[i].y;
        }
    }
}

template <int ROWS>
__device__ __forceinline__ void put_heads(const Ahead<ROWS> &a, const Heads &h, const Place &at,
                                          Pair v[ROWS]) {
    bool over = false, half = h.dtype != DTYPE_F32;
    if (at.turned >= 0) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            Pair t = a.met[i];
            v[i] = {v[i].x * t.x - v[i].y * t.y, v[i].y * t.x + v[i].x * t.y};
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) { // q is stored by row
        char *to = at.to + (size_t)(at.by_node ? a.index[i] : a.row + i * a.step) * at.step;
        uint16_t x = f32_half(h.dtype, v[i].x), y = f32_half(h.dtype, v[i].y);
        bool there = i < a.count;
        over |= there & (is_overflow(h.dtype, x) | is_overflow(h.dtype, y));
        store_some(to, (uint32_t)x | (uint32_t)y << 16, there & half);
        store_some(to, v[i], there & !half);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        char *to = at.to + (size_t)(at.by_node ? a.index[i] : a.row + i * a.step) * at.step;
        for (int k = 0; k < at.zeros && i < a.count; k++)
            if (half) ((uint16_t *)to)[2 + k] = 0;
            else ((float *)to)[2 + k] = 0;
    }
    if (over) record_overflow(h.overflow);
}

template <int ROWS>
__device__ __forceinline__ void put_activations(const Ahead<ROWS> &a, const Activations &to, int column,
                                                const float *v, int stride) {
    bool over = false;
    if (to.form != FORM_PACKED) {
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (i < a.count) put_activation(to, a.row + i * a.step, column, v[i * stride]);
        return;
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        uint16_t h = f32_half(to.dtype, v[i * stride]);
        store_some((uint16_t *)to.data + packed_at(to.pitch, a.row + i * a.step, column), h, i < a.count);
        over |= (i < a.count) & is_overflow(to.dtype, h);
    }
    if (over) record_overflow(to.overflow);
}

// Puts the rows' sums v.
template <int ROWS>
__device__ __forceinline__ void put_pairs(const Ahead<ROWS> &a, const Put &p, const Place &at, Pair v[ROWS]) {
    if (p.bias) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) v[i] = add(v[i], at.bias);
    }
    bool gated = p.kind == PUT_GATED, all = p.kind == PUT_ACTIVATED || p.kind == PUT_ACTIVATED_RESIDUAL;
    if (gated || all) activate<ROWS>(&v->x, 2, p.activation);
    if (all) activate<ROWS>(&v->y, 2, p.activation);
    switch (p.kind) {
    case PUT_QKV: put_heads(a, p.heads, at, v); return;
    case PUT_GATED:
    case PUT_ACTIVATED:
        if (gated) {
#pragma unroll
            for (int i = 0; i < ROWS; i++) v[i].x *= v[i].y;
        }
        put_activations(a, p.to, gated ? at.m / 2 : at.m, &v->x, 2);
        if (!gated && at.both) put_activations(a, p.to, at.m + 1, &v->y, 2);
        return;
    case PUT_LOGITS: {
        bool real = at.m < p.real, next = at.m + 1 < p.real;
        if (p.scale != 0 || p.cap > 0) {
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                v[i] = {finish_logit(v[i].x, p.scale, p.cap), finish_logit(v[i].y, p.scale, p.cap)};
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) v[i] = {real ? v[i].x : -INFINITY, next ? v[i].y : -INFINITY};
        break;
    }
    case PUT_RESIDUAL:
    case PUT_ACTIVATED_RESIDUAL:
        if (p.scale != 0) {
#pragma unroll
            for (int i = 0; i < ROWS; i++) v[i] = {v[i].x * p.scale, v[i].y * p.scale};
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) v[i] = add(a.met[i], v[i]);
    }
    put_floats(a, at, v);
}

// Puts a pair of a head's, PUT_QKV.
__device__ __forceinline__ void put_pair_of_head(const Put &p, const Place &at, const RowList *list, int row,
                                                 Pair v) {
    Ahead<1> a = {row, 0, 1, {0}, {{0, 0}}};
    look_ahead(a, p, at, list, list->first);
    if (p.bias) v = add(v, at.bias);
    put_heads(a, p.heads, at, &v);
}

// Puts a single row.
__device__ __forceinline__ void put_pair(const Put &p, const Place &at, const RowList *list, int row,
                                         Pair v) {
    Ahead<1> a = {row, 0, 1, {0}, {{0, 0}}};
    look_ahead(a, p, at, list, list->first);
    put_pairs(a, p, at, &v);
}

// product_plain.cu, for matrices of FORM_PLAIN.
void gpu_product_plain(const Product *p, int most, void *stream);
