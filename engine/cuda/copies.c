// Memory that is taken after the opening, when a step first wants it: copies of the cache, which rows of a
// batch read in its place, and the states of captured layers. Recorded graphs have its address, so those that
// use it are closed when it moves.
//
// Invariants: each sequence's copies <= copies_room; the copies equal the cache wherever it's intact; kept
// has room for the captured states.
#include "engine/cuda/sequence.h"

#include <assert.h>
#include <string.h>

static void copies_check(const Cuda *c) {
    for (int i = 0; i < c->sequences; i++) assert(c->copies[i] >= 0 && c->copies[i] <= c->copies_room);
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
    c->cache_bytes -= 2 * (size_t)(c->sequences * c->copies_room) * cuda_cache_size(c);
    c->copies_k = c->copies_v = NULL;
    c->copies_room = 0;
    memset(c->copies, 0, sizeof c->copies);
}

static bool make_room(Cuda *c, int rows, Error *e) {
    size_t bytes = (size_t)(c->sequences * rows) * cuda_cache_size(c);
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
            c->ordinal, c->sequences * rows, 2e-9 * (double)bytes);
    }
    c->copies_room = rows;
    c->cache_bytes += 2 * bytes;
    return true;
}

// All that a ring still has: when tokens are taken back, older ones are seen again, and a block of 16 slots
// is read as one.
static void fill_copies(Cuda *c, int sequence, const Cache *cache, int rows) {
    SlotRun runs[2];
    size_t bytes = cuda_cache_size(c), of = (size_t)sequence * bytes,
           at = (size_t)(sequence * c->copies_room + c->copies[sequence]) * bytes;
    int n = cache_runs(cache, cache_first_intact(cache), cache->highest, runs);
    for (int i = 0; i < n; i++) {
        Copies copies = {.cache_k = (char *)c->cache_k + of,
                         .cache_v = (char *)c->cache_v + of,
                         .copies_k = (char *)c->copies_k + at,
                         .copies_v = (char *)c->copies_v + at,
                         .copy_bytes = bytes,
                         .count = rows - c->copies[sequence],
                         .layers = c->to - c->from,
                         .slots = c->slots,
                         .slot = runs[i].slot,
                         .positions = runs[i].count,
                         .heads = c->heads};
        gpu_copies(&copies, c->stream);
    }
    c->copies[sequence] = rows;
}

// Rows of a batch.
static int count_roots(const StepRun *run) {
    int count = 0;
    for (int i = 0; i < run->last; i++) count += run->tree->parent[i] == TREE_NONE;
    return count;
}

bool cuda_take_copies(Cuda *c, const SequenceRun *runs, int count, Error *e) {
    int most = 0;
    bool full = true;
    for (const SequenceRun *r = runs; r < runs + count; r++) {
        int rows = count_roots(r->run);
        full = full && rows <= c->copies[r->sequence->number];
        if (rows > most) most = rows;
    }
    if (full) return true;
    if (!cuda_ok(c, gpu_use(c->ordinal), "cannot be used", e)) return false;
    if (most > c->copies_room && !make_room(c, most, e)) return false;
    for (const SequenceRun *r = runs; r < runs + count; r++) {
        int rows = count_roots(r->run), number = r->sequence->number;
        if (rows > c->copies[number]) fill_copies(c, number, r->run->cache, rows);
    }
    copies_check(c);
    return cuda_ok(c, gpu_launched(), "cannot copy its cache", e);
}

bool cuda_take_kept(Cuda *c, const Captures *captures, Error *e) {
    size_t bytes = (size_t)captures->count * (size_t)c->model->shape.width * sizeof *c->kept;
    void *kept = NULL;
    if (captures->count == c->captures.count &&
        memcmp(captures->layers, c->captures.layers, (size_t)captures->count * sizeof *captures->layers) == 0)
        return true;
    if (!cuda_ok(c, gpu_use(c->ordinal), "cannot be used", e) ||
        !cuda_ok(c, gpu_stream_wait(c->stream), "a kernel failed", e))
        return false;
    close_graphs(c, false);
    gpu_give(c->kept);
    c->step_bytes -= c->kept_bytes;
    c->kept = NULL;
    c->kept_bytes = 0;
    c->captures.count = 0;
    bytes *= (size_t)cuda_nodes(c);
    if (bytes && !cuda_ok(c, gpu_take(&kept, bytes), "no memory for the states of several layers", e))
        return false;
    c->kept = kept;
    c->kept_bytes = bytes;
    c->step_bytes += bytes;
    c->captures = *captures;
    copies_check(c);
    return true;
}
