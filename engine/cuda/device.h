// The devices of this machine: finding one, and reading its gauges.
#pragma once
#include "engine/core/backend.h"
#include "engine/cuda/instance.h"
#include "engine/cuda/kernels/runtime.h"

// Makes device `ordinal` this thread's device and reads its facts. On failure the error names the missing
// piece: a driver, a GPU, this number, or the compute capability.
bool device_find(int ordinal, GpuFacts *out, Error *e);

// The part of a build's codes (gpu_codes) that a card runs: machine code for its major version and at most
// its minor one, the newest there is; or the newest PTX that isn't above it, which the driver compiles at
// first use. An 'a' is for that version alone.
typedef struct CardCode {
    int version; // 90 for 9.0; 0: there is none that it can run
    bool compiles;
} CardCode;
CardCode device_code(const char *codes, int major, int minor);

// Compares wgmma's bits with mma.sync's, where products would use both (GpuFacts.wgmma_differs). Memory has
// been taken.
bool device_compare_bits(Cuda *c, Error *e);

// Reads clocks, power, temperature and throttling of the card with this UUID from NVML; other fields of `out`
// are left alone. Without the library, or where the card doesn't report a value, the value is NAN or the text
// empty.
void nvml_read(const char *uuid, Gauge *out);

// --- cards ----------------------------------------------------------------------------------------------

// An instance is a list of cards, usually one. A card has consecutive layers with their keys and values, and
// its own stream, buffers and graphs; the first card also has the embedding, the last the head. Each card
// gets a copy of the step. Hidden states go from card to card where a run crosses their border:
//
//      card 0:   copy up, layers 0..39 --+         wait for the copy
//      card 1:   copy up, wait ----------+- copy, layers 40..79, head
//
// The host enqueues everything and waits at the end, for one card after another, so that the error names the
// first card that fails.
static inline Cuda *cuda_last(Cuda *c) {
    while (c->next) c = c->next;
    return c;
}

// fit.c. Divides the layers among the cards by their free memory; the error gives the missing memory and a
// fix.
bool cuda_fit(Cuda *first, const BackendOptions *o, Error *e);
void cuda_set_context(Cuda *first, int context, const BackendOptions *o);
// The longest context that fits, up to the one that is set; 0: none.
int cuda_longest(Cuda *first, const BackendOptions *o);
