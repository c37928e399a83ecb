// Hidden states between two models. Invariant: rows belong to `memory` if that is set, else to the host. If
// the device can't store them (too little memory, or the models are on two devices), the host does.
#include "engine/core/hidden.h"

#include "engine/base/memory.h"

#include <assert.h>

static void hidden_check(const HiddenRows *h) {
    assert(h->rows && h->width > 0);
    assert(!h->memory || h->self);
}

static float *row_at(const HiddenRows *h, int row) {
    hidden_check(h);
    assert(row >= 0);
    return h->rows + (size_t)row * h->width;
}

void hidden_open(HiddenRows *h, const Session *from, const Session *to, int count) {
    const HiddenMemory *memory = to && to->backend == from->backend ? from->backend->hidden : NULL;
    *h = (HiddenRows){.self = from->self,
                      .width = (size_t)(to ? shape_given_width(&to->shape) : from->shape.width)};
    if (memory) h->rows = memory->take(from->self, to->self, (size_t)count * h->width * sizeof *h->rows);
    if (h->rows) h->memory = memory;
    else h->rows = mem_new((size_t)count, h->width * sizeof *h->rows);
    hidden_check(h);
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
    assert(to->open && to->shape.input != INPUT_TOKENS && node < to->tree.count);
    session_note_given(to, node, 1);
    return h->memory->give(to->self, node, row_at(h, row), e);
}
