// Memory that is taken after the opening, when a step first wants it: copies of the cache, which rows of a
// batch read in its place, and the states of captured layers. Recorded graphs have its address, so those that
// use it are closed when it moves.
//
// Invariants: copies <= copies_room; the copies equal the cache wherever it's intact; kept has room for what
// is captured.
#include "engine/cuda/instance.h"

#include <assert.h>
#include <string.h>

static void check(const Cuda *c) {
    assert(c->copies >= 0 && c->copies <= c->copies_room);
    assert(!c->captures.count == !c->kept);
}

size_t cuda_cache_size(const Cuda *c) {
    size_t head = (size_t)c->heads.pitch * dtype_size(c->heads.dtype), layers = (size_t)(c->to - c->from);
    return layers * (size_t)c->model->shape.kv_heads * (size_t)c->slots * head;
}

// Graphs have the addresses that they read and write. copied: only those that read copies.
static void close_graphs(Cuda *c, bool copied) {
    for (int i = 0; i < GRAPHS; i++)
        if (c->graphs[i].copied || !copied) {
            if (c->graphs[i].graph) gpu_graph_close(c->graphs[i].graph);
            c->graphs[i] = (StepGraph){.most = 0};
        }
}

static void give_copies(Cuda *c) {
    gpu_give(c->copies_k);
    gpu_give(c->copies_v);
    c->cache_bytes -= 2 * (size_t)c->copies_room * cuda_cache_size(c);
    c->copies_k = c->copies_v = NULL;
    c->copies = c->copies_room = 0;
}

static bool make_room(Cuda *c, int rows, Error *e) {
    size_t bytes = (size_t)rows * cuda_cache_size(c);
    if (!cuda_ok(c, gpu_stream_wait(c->stream), "a kernel failed", e)) return false;
    close_graphs(c, true);
    give_copies(c);
    if (gpu_take(&c->copies_k, bytes) || gpu_take(&c->copies_v, bytes)) {
        gpu_launched(); // the error is this one
        give_copies(c);
        return error_input(
            e,
            "cuda:%d: no memory for %d copies of the cache, %.1f GB: use fewer rows, a shorter "
            "--context, or a layout that shares the cache (--layout batch)",
            c->ordinal, rows, 2e-9 * (double)bytes);
    }
    c->copies_room = rows;
    c->cache_bytes += 2 * bytes;
    return true;
}

// All that a ring still has: when tokens are taken back, older ones are seen again, and a block of 16 slots
// is read as one.
static void fill_copies(Cuda *c, const Cache *cache, int rows) {
    SlotRun runs[2];
    size_t bytes = cuda_cache_size(c), at = (size_t)c->copies * bytes;
    int n = cache_runs(cache, cache_first_intact(cache), cache->highest, runs);
    for (int i = 0; i < n; i++) {
        Copies copies = {.cache_k = c->cache_k,
                         .cache_v = c->cache_v,
                         .copies_k = (char *)c->copies_k + at,
                         .copies_v = (char *)c->copies_v + at,
                         .copy_bytes = bytes,
                         .count = rows - c->copies,
                         .layers = c->to - c->from,
                         .slots = c->slots,
                         .slot = runs[i].slot,
                         .positions = runs[i].count,
                         .heads = c->heads};
        gpu_copies(&copies, c->stream);
    }
}

bool cuda_take_copies(Cuda *c, const Cache *cache, int rows, Error *e) {
    if (rows <= c->copies) return true;
    if (!cuda_ok(c, gpu_use(c->ordinal), "cannot be used", e)) return false;
    if (rows > c->copies_room && !make_room(c, rows, e)) return false;
    fill_copies(c, cache, rows);
    c->copies = rows;
    check(c);
    return cuda_ok(c, gpu_launched(), "cannot copy its cache", e);
}

static bool same_captures(const Captures *a, const Captures *b) {
    return a->count == b->count && memcmp(a->layers, b->layers, (size_t)a->count * sizeof *a->layers) == 0;
}

bool cuda_take_kept(Cuda *c, const Captures *captures, Error *e) {
    size_t bytes = (size_t)captures->count * (size_t)c->model->shape.width * sizeof *c->kept;
    void *kept = NULL;
    if (same_captures(captures, &c->captures)) return true;
    if (!cuda_ok(c, gpu_use(c->ordinal), "cannot be used", e) ||
        !cuda_ok(c, gpu_stream_wait(c->stream), "a kernel failed", e))
        return false;
    close_graphs(c, false);
    gpu_give(c->kept);
    c->step_bytes -= c->kept_bytes;
    c->kept = NULL;
    c->kept_bytes = 0;
    c->captures.count = 0;
    bytes *= (size_t)c->max_nodes;
    if (bytes && !cuda_ok(c, gpu_take(&kept, bytes), "no memory for the states of several layers", e))
        return false;
    c->kept = kept;
    c->kept_bytes = bytes;
    c->step_bytes += bytes;
    c->captures = *captures;
    check(c);
    return true;
}
