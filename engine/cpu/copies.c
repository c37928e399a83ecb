// LAYOUT_COPIED: each row of a batch attends over a copy of its own of the cached keys and values, as a
// framework does that expands a cache to a batch. It costs what they pay, and changes no bit.
//
// The copies are of one layer: made anew before that layer attends, in the slots that the cache has. So the
// bytes that move are those of copies of all layers, and the memory is that of one.
#include "engine/cpu/instance.h"

#include <string.h>

static void copy_part(const KeyValues *from, size_t layer, const KeyValues *to, size_t row, size_t k_first,
                      size_t k_bytes, size_t v_first, size_t v_bytes) {
    memcpy((unsigned char *)to->k + row * to->k_bytes + k_first,
           (const unsigned char *)from->k + layer * from->k_bytes + k_first, k_bytes);
    memcpy((unsigned char *)to->v + row * to->v_bytes + v_first,
           (const unsigned char *)from->v + layer * from->v_bytes + v_first, v_bytes);
}

// Keys lie in blocks of slots: whole blocks, and the values of the same slots.
static void copy_blocks(const Work *k, int row, int first, int last) {
    const Cpu *c = k->c;
    const KeyLayout *l = &c->layout;
    size_t size = dtype_size(l->dtype), block = l->block_elements * size, value = l->row_elements * size;
    int end = last * KEY_BLOCK < c->slots ? last * KEY_BLOCK : c->slots;
    copy_part(&c->cache, (size_t)k->layer, &c->copies, (size_t)row, (size_t)first * block,
              (size_t)(last - first) * block, (size_t)first * KEY_BLOCK * value,
              (size_t)(end - first * KEY_BLOCK) * value);
}

static void copy_share(void *argument, int thread, int threads) {
    const Work *k = argument;
    const Tree *t = k->run->tree;
    SlotRun runs[2];
    int n = cache_runs(k->run->cache, cache_first_visible(k->run->cache, t->context), t->context, runs);
    for (int i = 0; i < n; i++) {
        int first = runs[i].slot / KEY_BLOCK, last = (runs[i].slot + runs[i].count - 1) / KEY_BLOCK + 1;
        int from, to;
        pool_share(last - first, 1, thread, threads, &from, &to);
        for (int row = 0; from < to && row < k->c->paths.rows; row++)
            copy_blocks(k, row, first + from, first + to);
    }
}

void cpu_copy_cache(const Work *k) {
    Work task = *k;
    if (k->run->tree->context > 0) pool_run(k->c->pool, copy_share, &task);
}
