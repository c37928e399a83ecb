// LAYOUT_COPIED: each row of a batch attends over a copy of its own of the cached keys and values, as a
// framework does that expands a cache to a batch. It changes no bit.
//
// A row's copy is of all layers, in the slots that the cache has. It is made when a step first has that row;
// from then on a layer copies what was committed since it was there last, before it attends.
#include "engine/cpu/instance.h"

#include "engine/base/memory.h"

#include <string.h>

bool cpu_take_copies(Cpu *c, int rows, Error *e) {
    size_t layers = (size_t)c->model->shape.layers;
    if (!c->copies && !(c->copies = mem_alloc((size_t)c->max_nodes, sizeof *c->copies)))
        return error_system(e, "out of memory for copies of the cache");
    while (c->copy_rows < rows) {
        CacheCopy *row = &c->copies[c->copy_rows++]; // released even where it is not whole
        row->cache = (KeyValues){.k_bytes = c->cache.k_bytes, .v_bytes = c->cache.v_bytes};
        row->cache.k = mem_alloc(layers, row->cache.k_bytes);
        row->cache.v = mem_alloc(layers, row->cache.v_bytes);
        row->length = mem_alloc(layers, sizeof *row->length);
        if (!row->cache.k || !row->cache.v || !row->length)
            return error_system(e, "out of memory for %d copies of a cache of %zu MB", rows,
                                layers * (c->cache.k_bytes + c->cache.v_bytes) >> 20);
        c->cache_bytes += layers * (row->cache.k_bytes + row->cache.v_bytes);
    }
    return true;
}

void cpu_release_copies(Cpu *c) {
    for (int i = 0; i < c->copy_rows; i++) {
        mem_free(c->copies[i].cache.k);
        mem_free(c->copies[i].cache.v);
        mem_free(c->copies[i].length);
    }
    mem_free(c->copies);
}

void cpu_forget_copies(Cpu *c, int position) {
    for (int i = 0; i < c->copy_rows; i++)
        for (int layer = 0; layer < c->model->shape.layers; layer++)
            if (c->copies[i].length[layer] > position) c->copies[i].length[layer] = position;
}

static void copy_part(const KeyValues *from, const KeyValues *to, size_t layer, size_t k_first,
                      size_t k_bytes, size_t v_first, size_t v_bytes) {
    size_t k = layer * from->k_bytes + k_first, v = layer * from->v_bytes + v_first;
    memcpy((unsigned char *)to->k + k, (const unsigned char *)from->k + k, k_bytes);
    memcpy((unsigned char *)to->v + v, (const unsigned char *)from->v + v, v_bytes);
}

// Keys lie in blocks of slots: whole blocks, and the values of the same slots.
static void copy_blocks(const Work *k, const KeyValues *to, int first, int last) {
    const Cpu *c = k->c;
    const KeyLayout *l = &c->layout;
    size_t size = dtype_size(l->dtype), block = l->block_elements * size, value = l->row_elements * size;
    int end = last * KEY_BLOCK < c->slots ? last * KEY_BLOCK : c->slots;
    copy_part(&c->cache, to, (size_t)k->layer, (size_t)first * block, (size_t)(last - first) * block,
              (size_t)first * KEY_BLOCK * value, (size_t)(end - first * KEY_BLOCK) * value);
}

static void copy_share(void *argument, int thread, int threads) {
    const Work *k = argument;
    const Tree *t = k->run->tree;
    int visible = cache_first_visible(k->run->cache, t->context);
    for (int row = 0; row < k->c->paths.rows; row++) {
        const CacheCopy *copy = &k->c->copies[row];
        int length = copy->length[k->layer] > visible ? copy->length[k->layer] : visible;
        SlotRun runs[2];
        int n = length < t->context ? cache_runs(k->run->cache, length, t->context, runs) : 0;
        for (int i = 0; i < n; i++) {
            int first = runs[i].slot / KEY_BLOCK, last = (runs[i].slot + runs[i].count - 1) / KEY_BLOCK + 1;
            int from, to;
            pool_share(last - first, 1, thread, threads, &from, &to);
            if (from < to) copy_blocks(k, &copy->cache, first + from, first + to);
        }
    }
}

void cpu_copy_cache(const Work *k) {
    Work task = *k;
    const Tree *t = k->run->tree;
    if (t->context > 0) pool_run(k->c->pool, copy_share, &task);
    for (int row = 0; row < k->c->paths.rows; row++) k->c->copies[row].length[k->layer] = t->context;
}
