// Rows of hidden states on their way from one model to another: in the memory of the device that both are
// open on, where it can keep them (HiddenMemory), else in the host's.
#pragma once
#include "engine/core/session.h"

typedef struct HiddenRows {
    const HiddenMemory *memory; // NULL: the host's, where `rows` can be read and written
    void *self;                 // the instance that took it
    float *rows;                // (count, width)
    size_t width;
} HiddenRows;

// to NULL: the host's own. Close also what failed, before either session is released.
bool hidden_open(HiddenRows *h, const Session *from, const Session *to, int count, Error *e);
void hidden_close(HiddenRows *h); // takes an empty one

// From a node to a row, as session_get_hidden; from a row to a node, as session_set_hidden.
bool hidden_keep(HiddenRows *h, int row, Session *from, int node, HiddenKind kind, Error *e);
bool hidden_give(const HiddenRows *h, int row, Session *to, int node, Error *e);
