// Blocks on the device, copies from pinned memory, and the errors of both. While an instance is planned,
// blocks are only added up.
//
// Invariant: every block on the device is in `blocks`, and block_count <= block_capacity.
#include "engine/cuda/instance.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

bool cuda_ok(const Cuda *c, int code, const char *what, Error *e) {
    return code == 0 || error_system(e, "cuda:%d: %s: %s", c->ordinal, what, gpu_error(code));
}

bool cuda_take(Cuda *c, void *out, size_t bytes, bool zero, size_t *total, Error *e) {
    void *block = NULL;
    size_t unit = bytes > (size_t)1 << 20 ? (size_t)2 << 20 : 512; // devices round sizes up to this
    *total += (bytes + unit - 1) / unit * unit;
    if (c->planning) return true;
    assert(c->block_count <= c->block_capacity);
    mem_grow(&c->blocks, &c->block_capacity, c->block_count + 1, sizeof *c->blocks);
    if (!cuda_ok(c, gpu_take(&block, bytes), "no memory for the model", e)) return false;
    c->blocks[c->block_count++] = block;
    memcpy(out, &block, sizeof block);
    return !zero || cuda_ok(c, gpu_fill(block, 0, bytes, c->stream), "cannot write its memory", e);
}

void *staging_begin(Staging *s) {
    assert(s->host);
    if (s->sent) gpu_event_wait(s->event);
    s->sent = false;
    return s->host;
}

bool staging_send(Cuda *c, Staging *s, void *to, size_t bytes, Error *e) {
    assert(bytes <= s->bytes && !s->sent);
    s->sent = true;
    return cuda_ok(c, gpu_copy(to, s->host, bytes, c->stream), "cannot copy to it", e) &&
           cuda_ok(c, gpu_event_record(s->event, c->stream), "cannot mark its work", e);
}
