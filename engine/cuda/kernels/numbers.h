// The numbers of a model without files (synth_run), made on the device.
#pragma once
#include "engine/base/numbers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Numbers {
    void *to;
    Dtype dtype;
    bool bytes; // of codes
    uint64_t seed, stream;
    size_t first, count;
    float centre, spread;
} Numbers;
void gpu_numbers(const Numbers *n, void *stream);

#ifdef __cplusplus
}
#endif
