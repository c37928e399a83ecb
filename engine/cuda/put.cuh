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

// Heads stand one after another: those of q, of k, of v.
__device__ __forceinline__ void put_qkv(const Put &p, int row, int node, int m, float x, float y) {
    const Heads &h = p.heads;
    int head = m / h.head_dim, i = m % h.head_dim / 2;
    if (head < h.heads + h.kv_heads && i < h.pairs) {
        float c = p.cosine[(size_t)node * (size_t)h.pairs + (size_t)i],
              s = p.sine[(size_t)node * (size_t)h.pairs + (size_t)i];
        float turned = x * c - y * s;
        y = y * c + x * s;
        x = turned;
    }
    if (head < h.heads) {
        put_head_pair(h, p.q, (size_t)row * (size_t)h.heads + (size_t)head, i, x, y);
        return;
    }
    bool value = head >= h.heads + h.kv_heads;
    int kv = head - h.heads - (value ? h.kv_heads : 0);
    put_head_pair(h, value ? p.v : p.k, (size_t)kv * (size_t)p.area + (size_t)node, i, x, y);
}

__device__ __forceinline__ void add_hidden(const Put &p, int node, int m, float x) {
    p.out[(size_t)node * (size_t)p.stride + (size_t)m] += x;
}

// Outputs m and m + 1 of a row; m is even, rows: those of the matrix.
__device__ __forceinline__ void put_pair(const Put &p, const RowList *list, int rows, int row, int m, float x,
                                         float y) {
    bool both = m + 1 < rows;
    if (p.bias) {
        x += p.bias[m];
        if (both) y += p.bias[m + 1];
    }
    int node = p.kind == PUT_LOGITS ? 0 : row_node(list, row);
    switch (p.kind) {
    case PUT_LOGITS: {
        float *out = p.out + (size_t)row * (size_t)p.stride + (size_t)m;
        out[0] = m < p.real ? x : -INFINITY;
        if (both) out[1] = m + 1 < p.real ? y : -INFINITY;
        break;
    }
    case PUT_RESIDUAL:
        add_hidden(p, node, m, x);
        if (both) add_hidden(p, node, m + 1, y);
        break;
    case PUT_QKV: put_qkv(p, row, node, m, x, y); break;
    case PUT_GATED: put_activation(p.to, row, m / 2, activate(x, p.activation) * y); break;
    case PUT_ACTIVATED:
        put_activation(p.to, row, m, activate(x, p.activation));
        if (both) put_activation(p.to, row, m + 1, activate(y, p.activation));
        break;
    case PUT_ACTIVATED_RESIDUAL:
        add_hidden(p, node, m, activate(x, p.activation));
        if (both) add_hidden(p, node, m + 1, activate(y, p.activation));
        break;
    }
}
