#include "engine/core/hidden.h"

#include "engine/base/memory.h"

#include <assert.h>

static float *row_at(const HiddenRows *h, int row) { return h->rows + (size_t)row * h->width; }

// What the device refuses, for want of room or because they are on two of them, the host has.
bool hidden_open(HiddenRows *h, const Session *from, const Session *to, int count, Error *e) {
    const HiddenMemory *memory = to && to->backend == from->backend ? from->backend->hidden : NULL;
    *h = (HiddenRows){.width = (size_t)from->shape.width};
    if (memory) h->rows = memory->take(from->self, to->self, (size_t)count * h->width * sizeof *h->rows);
    if (h->rows) {
        h->memory = memory;
        h->self = from->self;
        return true;
    }
    h->rows = mem_alloc((size_t)count, h->width * sizeof *h->rows);
    return h->rows || error_system(e, "out of memory for %d hidden states", count);
}

void hidden_close(HiddenRows *h) {
    if (h->memory) h->memory->drop(h->self, h->rows);
    else mem_free(h->rows);
    *h = (HiddenRows){0};
}

bool hidden_keep(HiddenRows *h, int row, Session *from, int node, HiddenKind kind, Error *e) {
    if (!h->memory) return session_get_hidden(from, &node, 1, kind, row_at(h, row), e);
    assert(kind == HIDDEN_RAW || from->done[node] == from->shape.layers);
    return h->memory->keep(from->self, node, kind, row_at(h, row), e);
}

bool hidden_give(const HiddenRows *h, int row, Session *to, int node, Error *e) {
    if (!h->memory) return session_set_hidden(to, node, 1, row_at(h, row), e);
    assert(to->open && to->shape.input == INPUT_HIDDEN && node < to->tree.count);
    return h->memory->give(to->self, node, row_at(h, row), e);
}
