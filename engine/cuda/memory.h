// Memory on a card, and errors that name the card.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct Cuda Cuda; // instance.h

bool cuda_ok(const Cuda *c, int code, const char *what, Error *e); // code 0; else e names the card and `what`

// Takes a block, of zeros if `zero`, adds its size to *total, and stores its address in *out.
bool cuda_take(Cuda *c, void *out, size_t bytes, bool zero, size_t *total, Error *e);

// Pinned memory on its way to the device: nothing writes it before the copy has read it.
typedef struct Staging {
    void *host;
    size_t bytes;
    void *event;
    bool sent;
} Staging;
void *staging_begin(Staging *s); // waits for the last copy from this memory, which may then be written
bool staging_send(Cuda *c, Staging *s, void *to, size_t bytes, Error *e);
