// Rows of hidden states on their way from one model to another. They stay in the memory of the device that
// both models are open on if it supports that (HiddenMemory), and go through the host's memory otherwise.
#pragma once
#include "engine/core/session.h"

typedef struct HiddenRows {
    const HiddenMemory *memory; // NULL: the host's memory, where `rows` can be read and written
    void *self;                 // the instance that allocated the rows
    float *rows;                // (count, width): the reader's shape_given_width
    size_t width;
} HiddenRows;

// Rows for `count` states. to == NULL: in the host's memory. Close them before either session is released.
void hidden_open(HiddenRows *h, const Session *from, const Session *to, int count);
void hidden_close(HiddenRows *h); // accepts an empty one

// From a node to a row, like session_get_hidden; from a row to a node, like session_set_hidden.
bool hidden_keep(HiddenRows *h, int row, Session *from, int node, HiddenKind kind, Error *e);
bool hidden_give(const HiddenRows *h, int row, Session *to, int node, Error *e);
