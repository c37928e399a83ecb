// The small kernels, one row at a time: embedding and angles, norms, sums that are in memory already, the
// commit of an accepted path, and copies of the cache.
//
// They run between two products that stream weights, so their time is mostly the latency of loads: a thread
// starts all of its loads at once, and those of the weights of a norm before the launch in front has ended.
#include "engine/cuda/kernels/outputs.h"
#include "engine/cuda/kernels/put.cuh"

enum { EMBED_THREADS = 512, PUT_THREADS = 128, COMMIT_THREADS = 64, COPY_THREADS = 128 };
enum { JOIN_THREADS = 256 };
enum { NORM_THREADS = 512, NORM_HELD = 4 };           // NORM_HELD: fours of a thread;
enum { NORM_AT_ONCE = NORM_THREADS * NORM_HELD * 4 }; // a wider row takes several turns
enum { HEAD_THREADS = 128, HEAD_WARPS = HEAD_THREADS / WARP };
enum { HEAD_HELD = HEAD_DIM_MAX / 2 / WARP }; // pairs of a lane

// --- the start of a step: rows of the embedding, and the cosines and sines of each node's position. Angles
// are computed in double, so that the last position is as exact as the first.

__global__ void __launch_bounds__(EMBED_THREADS) embed(Embed e) {
    let_next_begin();
    if ((int)blockIdx.x >= e.rows->count) return;
    int node = row_node(e.rows, (int)blockIdx.x);
    const StepNode *n = &step_nodes(e.step)[blockIdx.x];
    int token = n->token;
    if (token < 0) {
        token = likeliest_id(largest_key(e.likeliest + (-1 - token) * BEST_SLICES));
        if (e.names) token = e.names[token];
    }
    for (int i = (int)threadIdx.x; e.table.data && i < e.table.columns; i += EMBED_THREADS) {
        float learned = e.positions.data ? matrix_at(e.positions, n->position, i) : 0;
        e.hidden[(size_t)node * (size_t)e.table.columns + (size_t)i] =
            fmaf(matrix_at(e.table, token, i), e.scale, learned);
    }
    for (int i = (int)threadIdx.x; i < e.ropes * e.pairs; i += EMBED_THREADS) {
        bool second = i >= e.pairs;
        double angle = n->position * e.frequency[i], factor = second ? e.factor[1] : e.factor[0];
        size_t at = (size_t)node * (size_t)e.pairs + (size_t)(second ? i - e.pairs : i);
        if (second) at += e.table_size;
        e.cosine[at] = (float)(cos(angle) * factor);
        e.sine[at] = (float)(sin(angle) * factor);
    }
}

void gpu_embed(const Embed *e, int most, void *stream) {
    LAUNCH(embed, (unsigned)most, EMBED_THREADS, 0, stream, *e);
}

// --- the start of a model of tokens and hidden states, and rows that are kept on the way. A block has a row.

__global__ void __launch_bounds__(JOIN_THREADS) join_rows(Join j) {
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.x, width = j.width;
    if (row >= j.rows->count) return;
    int node = row_node(j.rows, row), parent = step_nodes(j.step)[row].parent;
    bool given = parent < 0;
    size_t wide = (size_t)width, stride = (size_t)(j.tokens ? 1 : j.states) * wide;
    const float *state = given ? j.given + (size_t)node * stride : j.hidden + (size_t)parent * wide;
#pragma unroll 1 // unrolled, both loops need more registers than there are
    for (int i = (int)threadIdx.x; i < width; i += JOIN_THREADS) {
        if (j.tokens && !j.to.data) j.given[(size_t)node * wide + (size_t)i] = state[i];
        else if (j.tokens) {
            put_activation(j.to, row, i, j.tokens[(size_t)node * wide + (size_t)i]);
            put_activation(j.to, row, width + i, state[i]);
        }
        j.hidden[(size_t)node * wide + (size_t)i] = j.tokens || given ? 0 : state[i];
    }
#pragma unroll 1
    for (int i = (int)threadIdx.x; !j.tokens && j.to.data && i < (int)stride; i += JOIN_THREADS)
        put_activation(j.to, row, i, given ? state[i] : 0);
}

void gpu_join(const Join *j, int most, void *stream) {
    LAUNCH_EARLY(join_rows, (unsigned)most, JOIN_THREADS, 0, stream, NULL, *j);
}

__global__ void __launch_bounds__(JOIN_THREADS) keep_rows(Keep k) {
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.x;
    if (row >= k.rows->count) return;
    size_t node = (size_t)row_node(k.rows, row);
    const float *from = k.hidden + node * (size_t)k.width;
    float *to = k.kept + node * (size_t)k.stride + (size_t)k.column;
    for (int i = (int)threadIdx.x; i < k.width; i += JOIN_THREADS) to[i] = from[i];
}

void gpu_keep(const Keep *k, int most, void *stream) {
    LAUNCH_EARLY(keep_rows, (unsigned)most, JOIN_THREADS, 0, stream, NULL, *k);
}

// --- RMSNorm of rows of the residual stream, in the form that the next product reads. A block has a row.

struct NormShared {
    float part[NORM_THREADS / WARP];
};

// Adds all threads' sums, in order.
__device__ __forceinline__ float over_block(NormShared *sm, float sum) {
    sum = warp_sum(sum);
    __syncthreads(); // the numbers of the sum before
    if (warp_lane() == 0) sm->part[warp_number()] = sum;
    __syncthreads();
    float total = 0;
    for (int i = 0; i < NORM_THREADS / WARP; i++) total += sm->part[i];
    return total;
}

// Loads every NORM_THREADS'th four from column `from` on; zeros after the row's end.
__device__ __forceinline__ void fetch_fours(float4 held[NORM_HELD], const float *row, int from, int width) {
#pragma unroll
    for (int i = 0; i < NORM_HELD; i++) {
        int at = from + ((int)threadIdx.x + i * NORM_THREADS) * 4;
        held[i] = at < width ? *(const float4 *)(row + at) : make_float4(0, 0, 0, 0);
    }
}

__device__ __forceinline__ float add_squares(float sum, float4 x) {
    return fmaf(x.w, x.w, fmaf(x.z, x.z, fmaf(x.y, x.y, fmaf(x.x, x.x, sum))));
}
__device__ __forceinline__ float4 scaled(float4 x, float scale, float4 w) {
    return make_float4(x.x * scale * w.x, x.y * scale * w.y, x.z * scale * w.z, x.w * scale * w.w);
}

__device__ __forceinline__ float4 add(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// Puts the sums that a product has left in parts into the fours of a hidden state, as put_rows does.
__device__ __forceinline__ void put_left(float4 x[NORM_HELD], const PutRows &p, int row, size_t first,
                                         int from, int width) {
    const float *sums = p.sums + (size_t)row * (size_t)p.stride;
    float4 part[NORM_HELD][PARTS_MAX];
#pragma unroll
    for (int k = 0; k < PARTS_MAX; k++, sums += p.part)
        if (k < p.parts) {
#pragma unroll
            for (int i = 0; i < NORM_HELD; i++) {
                int at = from + ((int)threadIdx.x + i * NORM_THREADS) * 4;
                if (at < width) part[i][k] = *(const float4 *)(sums + at);
            }
        }
#pragma unroll
    for (int i = 0; i < NORM_HELD; i++) {
        int at = from + ((int)threadIdx.x + i * NORM_THREADS) * 4;
        if (at >= width) continue;
        float4 sum = part[i][0];
#pragma unroll
        for (int k = 1; k < PARTS_MAX; k++)
            if (k < p.parts) sum = add(sum, part[i][k]);
        if (p.put.bias) sum = add(sum, *(const float4 *)(p.put.bias + at));
        if (p.put.scale != 0) {
            float scale = p.put.scale;
            sum = make_float4(sum.x * scale, sum.y * scale, sum.z * scale, sum.w * scale);
        }
        x[i] = add(x[i], sum);
        *(float4 *)(p.put.out + first + at) = x[i];
    }
}

// A row of a multiple of four numbers, which is held in registers up to NORM_AT_ONCE. Short: between two
// products its instructions come from memory, too (results/gpu/log.md).
template <Dtype FORMAT, bool LEFT> __global__ void __launch_bounds__(NORM_THREADS) norm_rows(Norm n) {
    SHARED(NormShared, sm);
    float4 x[NORM_HELD], weight[NORM_HELD];
    fetch_fours(weight, n.weight, 0, n.width);
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.x;
    if (row >= n.rows->count) return;
    size_t first = (size_t)row_node(n.rows, row) * (size_t)n.stride;
    float sum = 0;
#pragma unroll 1
    for (int from = 0; from < n.width; from += NORM_AT_ONCE) {
        fetch_fours(x, n.hidden + first, from, n.width);
        if (LEFT) put_left(x, n.left, row, first, from, n.width);
#pragma unroll
        for (int i = 0; i < NORM_HELD; i++) sum = add_squares(sum, x[i]); // zeros add nothing
    }
    float scale = 1 / sqrtf(over_block(sm, sum) / (float)n.width + n.epsilon);
#pragma unroll 1
    for (int from = 0; from < n.width; from += NORM_AT_ONCE) {
        if (n.width > NORM_AT_ONCE) {
            fetch_fours(x, n.hidden + first, from, n.width);
            fetch_fours(weight, n.weight, from, n.width);
        }
#pragma unroll
        for (int i = 0; i < NORM_HELD; i++) {
            int at = from + ((int)threadIdx.x + i * NORM_THREADS) * 4;
            if (at >= n.width) continue;
            float4 y = scaled(x[i], scale, weight[i]);
            put_four<FORMAT>(n.to, row, n.column + at, y);
            if (n.residual) *(float4 *)(n.residual + first + at) = y;
        }
    }
}

__device__ __forceinline__ float scale_of(NormShared *sm, const float *x, int width, float epsilon) {
    float sum = 0;
    for (int i = (int)threadIdx.x; i < width; i += NORM_THREADS) sum = fmaf(x[i], x[i], sum);
    return 1 / sqrtf(over_block(sm, sum) / (float)width + epsilon);
}

// A product's sum that it has left in parts: output i of a row.
__device__ __forceinline__ float left_sum(const PutRows &p, int row, int i) {
    const float *part = p.sums + (size_t)row * (size_t)p.stride + (size_t)i;
    float sum = *part;
    for (int k = 1; k < p.parts; k++) sum += *(part += p.part);
    return p.put.bias ? sum + p.put.bias[i] : sum;
}

// Any row, in any form; without weights it stays as it is.
__global__ void __launch_bounds__(NORM_THREADS) norm_any_rows(Norm n) {
    SHARED(NormShared, sm);
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.x;
    if (row >= n.rows->count) return;
    size_t first = (size_t)row_node(n.rows, row) * (size_t)n.stride;
    const float *x = n.hidden + first;
    float scale = n.weight ? scale_of(sm, x, n.width, n.epsilon) : 1;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < n.width; i += NORM_THREADS) {
        float y = n.weight ? x[i] * scale * n.weight[i] : x[i];
        put_activation(n.to, row, n.column + i, y);
        if (n.residual) n.residual[first + (size_t)i] = y;
    }
}

// --- LayerNorm, in the same form. Its mean is known before squares are summed, so that no digits cancel.

__global__ void __launch_bounds__(NORM_THREADS) layer_norm_rows(Norm n) {
    SHARED(NormShared, sm);
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.x;
    if (row >= n.rows->count) return;
    const size_t first = (size_t)row_node(n.rows, row) * (size_t)n.stride;
    const float *x = n.hidden + first;
    float sum = 0, squares = 0;
    for (int i = (int)threadIdx.x; n.left.parts && i < n.width; i += NORM_THREADS) { // a thread's own numbers
        float more = left_sum(n.left, row, i);
        n.left.put.out[first + (size_t)i] += n.left.put.scale != 0 ? more * n.left.put.scale : more;
    }
    for (int i = (int)threadIdx.x; i < n.width; i += NORM_THREADS) sum += x[i];
    float mean = over_block(sm, sum) / (float)n.width;
    for (int i = (int)threadIdx.x; i < n.width; i += NORM_THREADS)
        squares = fmaf(x[i] - mean, x[i] - mean, squares);
    float scale = 1 / sqrtf(over_block(sm, squares) / (float)n.width + n.epsilon);
    for (int i = (int)threadIdx.x; i < n.width; i += NORM_THREADS)
        put_activation(n.to, row, n.column + i,
                       (x[i] - mean) * scale * n.weight[i] + (n.bias ? n.bias[i] : 0));
}

// --- RMSNorm of products: of outputs on their way to the residual stream, and of q and of k as whole rows

__global__ void __launch_bounds__(NORM_THREADS) norm_output(NormOutput n) {
    SHARED(NormShared, sm);
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.x;
    if (row >= n.rows->count) return;
    float *x = n.sums + (size_t)row * (size_t)n.width;
    for (int i = (int)threadIdx.x; n.left.parts && i < n.width; i += NORM_THREADS)
        x[i] = left_sum(n.left, row, i);
    float *to = n.hidden + (size_t)row_node(n.rows, row) * (size_t)n.width;
    float scale = scale_of(sm, x, n.width, n.epsilon);
    for (int i = (int)threadIdx.x; i < n.width; i += NORM_THREADS)
        to[i] += x[i] * scale * n.weight[i] * n.scale;
}

void gpu_norm_output(const NormOutput *n, int most, void *stream) {
    LAUNCH_EARLY(norm_output, (unsigned)most, NORM_THREADS, sizeof(NormShared), stream, NULL, *n);
}

__global__ void __launch_bounds__(NORM_THREADS) norm_q_and_k(NormRows n) {
    SHARED(NormShared, sm);
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.x, begin = blockIdx.y ? n.q_width : 0,
        width = blockIdx.y ? n.kv_width : n.q_width;
    if (row >= n.rows->count) return;
    float *x = n.sums + (size_t)row * (size_t)n.stride + (size_t)begin;
    float scale = scale_of(sm, x, width, n.epsilon);
    for (int i = (int)threadIdx.x; i < width; i += NORM_THREADS) x[i] = x[i] * scale * n.weight[begin + i];
}

void gpu_norm_q_and_k(const NormRows *n, int most, void *stream) {
    LAUNCH_EARLY(norm_q_and_k, dim3((unsigned)most, 2), NORM_THREADS, sizeof(NormShared), stream, NULL, *n);
}

template <Dtype FORMAT> static void norm_fours(const Norm *n, bool left, int most, void *stream) {
    if (left)
        LAUNCH_EARLY((norm_rows<FORMAT, true>), (unsigned)most, NORM_THREADS, sizeof(NormShared), stream,
                     n->weight, *n);
    else
        LAUNCH_EARLY((norm_rows<FORMAT, false>), (unsigned)most, NORM_THREADS, sizeof(NormShared), stream,
                     n->weight, *n);
}

// Sums that were left in parts save a launch and a way through L2 if the norm adds them.
void gpu_norm(const Norm *n, int most, void *stream) {
    bool fours =
             !n->layer && n->weight && n->width % 4 == 0 && n->column % 4 == 0 && n->to.form != FORM_PLAIN,
         left = n->left.parts && (n->layer || (fours && !n->residual));
    if (n->left.parts && !left) gpu_put_rows(&n->left, most, stream);
    if (n->layer)
        LAUNCH_EARLY(layer_norm_rows, (unsigned)most, NORM_THREADS, sizeof(NormShared), stream, NULL, *n);
    else if (!fours)
        LAUNCH_EARLY(norm_any_rows, (unsigned)most, NORM_THREADS, sizeof(NormShared), stream, NULL, *n);
    else if (n->to.dtype == DTYPE_F16) norm_fours<DTYPE_F16>(n, left, most, stream);
    else norm_fours<DTYPE_BF16>(n, left, most, stream);
}

// --- norm of each head's q and k; then rotation and the write, as after any product of q, k and v. A warp
// has a head of a row, including those of v, which are only written.

// Loads every WARP'th pair of a head; zeros after its end.
__device__ __forceinline__ void fetch_pairs(Pair held[HEAD_HELD], const float *head, int pairs) {
#pragma unroll
    for (int i = 0; i < HEAD_HELD; i++) {
        int at = warp_lane() + i * WARP;
        held[i] = at < pairs ? ((const Pair *)head)[at] : Pair{0, 0};
    }
}

// Takes the mean away. The zeros after the head's end stay.
__device__ __forceinline__ void centre_head(Pair x[HEAD_HELD], int n) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < HEAD_HELD; i++) sum += x[i].x + x[i].y;
    float mean = warp_sum(sum) / (float)n;
#pragma unroll
    for (int i = 0; i < HEAD_HELD; i++)
        if (warp_lane() + i * WARP < n / 2) x[i] = {x[i].x - mean, x[i].y - mean};
}

// For the sum, a lane goes up the head; then lanes are added in order.
__device__ __forceinline__ void norm_head(Pair x[HEAD_HELD], const Pair weight[HEAD_HELD], int n,
                                          float epsilon) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < HEAD_HELD; i++) sum = fmaf(x[i].y, x[i].y, fmaf(x[i].x, x[i].x, sum));
    float scale = 1 / sqrtf(warp_sum(sum) / (float)n + epsilon);
#pragma unroll
    for (int i = 0; i < HEAD_HELD; i++) x[i] = {x[i].x * scale * weight[i].x, x[i].y * scale * weight[i].y};
}

__global__ void __launch_bounds__(HEAD_THREADS) norm_heads(NormHeads n) {
    const Heads &h = n.put.heads;
    int head = (int)blockIdx.x * HEAD_WARPS + warp_number(), row = (int)blockIdx.y, pairs = h.head_dim / 2;
    int normed = h.heads + h.kv_heads, all = normed + h.kv_heads;
    Pair x[HEAD_HELD], weight[HEAD_HELD];
    int which = n.own ? head : head >= h.heads;
    fetch_pairs(weight, n.weight + (size_t)which * (size_t)h.head_dim, head < normed ? pairs : 0);
    let_next_begin();
    wait_for_launches();
    if (head >= all || row >= n.rows->count) return;
    fetch_pairs(x, n.sums + ((size_t)row * (size_t)all + (size_t)head) * (size_t)h.head_dim, pairs);
    if (n.own && head < normed) centre_head(x, h.head_dim);
    if (head < normed) norm_head(x, weight, h.head_dim, n.epsilon);
#pragma unroll
    for (int i = 0; i < HEAD_HELD; i++) {
        int at = warp_lane() + i * WARP;
        if (at < pairs) put_pair_of_head(n.put, place_in_head(n.put, head, at), n.rows, row, x[i]);
    }
}

void gpu_norm_heads(const NormHeads *n, int most, void *stream) {
    int heads = n->put.heads.heads + 2 * n->put.heads.kv_heads;
    dim3 grid((unsigned)(heads + HEAD_WARPS - 1) / HEAD_WARPS, (unsigned)most);
    LAUNCH_EARLY(norm_heads, grid, HEAD_THREADS, 0, stream, n->weight, *n);
}

// --- sums that are in memory: another library's, or a product's parts if the blocks of a launch cannot read
// one another's (put.cuh). A thread has two neighbours of a row.

__global__ void __launch_bounds__(PUT_THREADS) put_rows(PutRows p) {
    let_next_begin();
    wait_for_launches();
    int row = (int)blockIdx.y, m = ((int)blockIdx.x * PUT_THREADS + (int)threadIdx.x) * 2;
    int count = p.rows->count, first_node = p.rows->first;
    if (row >= count || m >= p.outputs) return;
    const float *sums = p.sums + (size_t)row * (size_t)p.stride + (size_t)m;
    Place at = place_of(p.put, p.outputs, m);
    Ahead<1> ahead = {row, 0, 1, {0}, {{0, 0}}};
    look_ahead(ahead, p.put, at, p.rows, first_node);
    Pair part[PARTS_MAX];
#pragma unroll
    for (int i = 0; i < PARTS_MAX; i++, sums += p.part)
        if (i < p.parts) part[i] = {sums[0], at.both ? sums[1] : 0};
#pragma unroll
    for (int i = 1; i < PARTS_MAX; i++)
        if (i < p.parts) part[0] = add(part[0], part[i]);
    put_pairs(ahead, p.put, at, part);
}

void gpu_put_rows(const PutRows *p, int most, void *stream) {
    int pairs = (p->outputs + 1) / 2;
    dim3 grid((unsigned)(pairs + PUT_THREADS - 1) / PUT_THREADS, (unsigned)most);
    LAUNCH_EARLY(put_rows, grid, PUT_THREADS, 0, stream, NULL, *p);
}

// --- keys and values of an accepted path, from the step area to their slots, all layers in one launch

// A block copies one head of one node in one layer, 16 bytes at a time; a head's pitch is a multiple of that.
__global__ void __launch_bounds__(COMMIT_THREADS) commit(Commit c) {
    if ((int)blockIdx.x >= c.list->count) return;
    const Move *m = &c.list->move[blockIdx.x];
    size_t node = (size_t)m->node, slot = (size_t)m->slot, cache = (size_t)(m->sequence * c.each + c.nth);
    size_t size = c.heads.dtype == DTYPE_F32 ? 4 : 2, pieces = (size_t)c.heads.pitch * size / sizeof(uint4);
    size_t heads = (size_t)c.heads.kv_heads, head = (size_t)blockIdx.z * heads + blockIdx.y,
           before = cache * (size_t)c.layers * heads; // heads of the caches in front
    size_t from = (head * (size_t)c.area + node) * pieces,
           to = ((before + head) * (size_t)c.slots + slot) * pieces;
    for (size_t i = threadIdx.x; i < pieces; i += COMMIT_THREADS) {
        ((uint4 *)c.cache_k)[to + i] = ((const uint4 *)c.step_k)[from + i];
        ((uint4 *)c.cache_v)[to + i] = ((const uint4 *)c.step_v)[from + i];
    }
}

void gpu_commit(const Commit *c, int count, void *stream) {
    LAUNCH(commit, dim3((unsigned)count, (unsigned)c->heads.kv_heads, (unsigned)c->layers), COMMIT_THREADS, 0,
           stream, *c);
}

// --- copies of the cache, which rows of a batch read in its place

// A block takes pieces of a head in a layer: it reads each once and writes it to all copies.
__global__ void __launch_bounds__(COPY_THREADS) copy_slots(Copies c) {
    size_t size = c.heads.dtype == DTYPE_F32 ? 4 : 2, pieces = (size_t)c.heads.pitch * size / sizeof(uint4);
    size_t begin = ((size_t)blockIdx.y * (size_t)c.slots + (size_t)c.slot) * pieces;
    size_t i = (size_t)blockIdx.x * COPY_THREADS + threadIdx.x, copy = c.copy_bytes / sizeof(uint4);
    if (i >= (size_t)c.positions * pieces) return;
    uint4 k = ((const uint4 *)c.cache_k)[begin + i], v = ((const uint4 *)c.cache_v)[begin + i];
    for (size_t n = 0; n < (size_t)c.count; n++) {
        ((uint4 *)c.copies_k)[n * copy + begin + i] = k;
        ((uint4 *)c.copies_v)[n * copy + begin + i] = v;
    }
}

void gpu_copies(const Copies *c, void *stream) {
    size_t size = c->heads.dtype == DTYPE_F32 ? 4 : 2, bytes = (size_t)c->heads.pitch * size;
    size_t pieces = (size_t)c->positions * (bytes / sizeof(uint4));
    dim3 grid((unsigned)((pieces + COPY_THREADS - 1) / COPY_THREADS),
              (unsigned)(c->layers * c->heads.kv_heads));
    LAUNCH(copy_slots, grid, COPY_THREADS, 0, stream, *c);
}
