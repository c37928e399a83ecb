// What becomes of a product's outputs: every product ends here, whichever kernel made the sums.
#pragma once
#include "engine/cuda/rows.cuh"

__device__ __forceinline__ float activate(float x, Activation activation) {
    if (activation == ACTIVATION_SILU) return x / (1 + expf(-x));
    return 0.5f * x * (1 + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
}

__device__ __forceinline__ void put_head(const Heads &h, void *at, size_t i, float x) {
    if (h.dtype == DTYPE_F32) ((float *)at)[i] = x;
    else ((uint16_t *)at)[i] = round_half(h.dtype, h.overflow, x);
}

// Dimensions 2i and 2i + 1 of a head; the last pair fills the head's padding with zeros.
__device__ __forceinline__ void put_head_pair(const Heads &h, void *at, size_t head, int i, float x,
                                              float y) {
    size_t base = head * (size_t)h.pitch;
    put_head(h, at, base + (size_t)(2 * i), x);
    put_head(h, at, base + (size_t)(2 * i + 1), y);
    if (2 * i + 2 < h.head_dim) return;
    for (int d = h.head_dim; d < h.pitch; d++) put_head(h, at, base + (size_t)d, 0);
}

// A product's parts are added in ascending order.
__device__ __forceinline__ Pair add_parts(const Pair part[PARTS_MAX], int parts) {
    Pair sum = part[0];
#pragma unroll
    for (int i = 1; i < PARTS_MAX; i++)
        if (i < parts) sum = {sum.x + part[i].x, sum.y + part[i].y};
    return sum;
}

// Outputs m and m + 1 of a product of so many: what is the same in every row. m is even.
struct Place {
    int m;
    bool both, aligned; // the second is there; and a row's two can be loaded together
    int head, i;        // of PUT_QKV: which pair of which head, q's, k's and v's one after another
    Pair bias;
};
__device__ __forceinline__ Place place_of(const Put &p, int outputs, int m) {
    Place at = {
        m, m + 1 < outputs, m + 1 < outputs && p.stride % 2 == 0, 0, 0, {0, 0}
    };
    if (p.kind == PUT_QKV) at.head = m / p.heads.head_dim, at.i = m % p.heads.head_dim / 2;
    if (p.bias) at.bias = {p.bias[m], at.both ? p.bias[m + 1] : 0};
    return at;
}

// What a row's two outputs meet: asked for before their sum is there, so that neither waits for the other.
struct Ahead {
    int node;
    Pair met; // of the hidden state; or cosine and sine
};
// first_node: the list's.
__device__ __forceinline__ Ahead look_ahead(const Put &p, const Place &at, const RowList *list,
                                            int first_node, int row) {
    Ahead a = {
        0, {0, 0}
    };
    if (p.kind == PUT_LOGITS || p.kind == PUT_GATED || p.kind == PUT_ACTIVATED) return a;
    a.node = first_node >= 0 ? first_node + row : list->node[row];
    if (p.kind == PUT_QKV) {
        size_t angle = (size_t)a.node * (size_t)p.heads.pairs + (size_t)at.i;
        if (at.head < p.heads.heads + p.heads.kv_heads && at.i < p.heads.pairs)
            a.met = {p.cosine[angle], p.sine[angle]};
        return a;
    }
    const float *hidden = p.out + (size_t)a.node * (size_t)p.stride + (size_t)at.m;
    if (at.aligned) a.met = *(const Pair *)hidden;
    else a.met = {hidden[0], at.both ? hidden[1] : 0};
    return a;
}

__device__ __forceinline__ void put_qkv(const Put &p, const Place &at, int row, const Ahead &a, Pair v) {
    const Heads &h = p.heads;
    if (at.head < h.heads + h.kv_heads && at.i < h.pairs)
        v = {v.x * a.met.x - v.y * a.met.y, v.y * a.met.x + v.x * a.met.y};
    if (at.head < h.heads) {
        put_head_pair(h, p.q, (size_t)row * (size_t)h.heads + (size_t)at.head, at.i, v.x, v.y);
        return;
    }
    bool value = at.head >= h.heads + h.kv_heads;
    int kv = at.head - h.heads - (value ? h.kv_heads : 0);
    put_head_pair(h, value ? p.v : p.k, (size_t)kv * (size_t)p.area + (size_t)a.node, at.i, v.x, v.y);
}

__device__ __forceinline__ void put_floats(const Put &p, const Place &at, int row, Pair v) {
    float *out = p.out + (size_t)row * (size_t)p.stride + (size_t)at.m;
    if (at.aligned) {
        *(Pair *)out = v;
        return;
    }
    out[0] = v.x;
    if (at.both) out[1] = v.y;
}

// row: of the list. v: the sums.
__device__ __forceinline__ void put_pair(const Put &p, const Place &at, int row, const Ahead &a, Pair v) {
    if (p.bias) v = {v.x + at.bias.x, v.y + at.bias.y};
    switch (p.kind) {
    case PUT_LOGITS:
        put_floats(p, at, row, {at.m < p.real ? v.x : -INFINITY, at.m + 1 < p.real ? v.y : -INFINITY});
        break;
    case PUT_RESIDUAL: put_floats(p, at, a.node, {a.met.x + v.x, a.met.y + v.y}); break;
    case PUT_QKV: put_qkv(p, at, row, a, v); break;
    case PUT_GATED: put_activation(p.to, row, at.m / 2, activate(v.x, p.activation) * v.y); break;
    case PUT_ACTIVATED:
        put_activation(p.to, row, at.m, activate(v.x, p.activation));
        if (at.both) put_activation(p.to, row, at.m + 1, activate(v.y, p.activation));
        break;
    case PUT_ACTIVATED_RESIDUAL:
        put_floats(p, at, a.node,
                   {a.met.x + activate(v.x, p.activation), a.met.y + activate(v.y, p.activation)});
        break;
    }
}
