// What a test sets and asks of the SIMT shim. The rest is in simt.hpp.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { SIMT_NATURAL, SIMT_REVERSED, SIMT_RANDOM, SIMT_ORDERS } SimtOrder;

typedef struct SimtSettings {
    SimtOrder order;      // of threads, and of blocks
    uint32_t seed;        // of the random order
    unsigned char poison; // byte of memory that nothing has been written to
    bool locked;          // device memory is out of the host's reach while nothing runs (slow)
    bool early;           // kernels that begin early cannot reach what they may not read yet (slow)
    long fail_after;      // so many allocations succeed, the next does not; negative: all do
    double tick;          // seconds between the events around a kernel or a copy; 0: as many as it takes
    bool no_graphs;       // nothing can be recorded
    int driver;           // the version of CUDA that the driver is for, 13000 for 13.0; 0: there is no driver
    int lost;             // calls on this device fail; negative: on none
} SimtSettings;

// Natural order, poison 0xff (a NaN in every float format), not locked, no failures, the machine's clock,
// graphs, a driver for 13.0.
extern SimtSettings simt_settings;

// Puts a call into a stream, with a copy of the bytes that it is given.
void simt_call(void *stream, void (*function)(void *), const void *data, size_t bytes);

// Whether kernels run on the CPU; false on a card.
extern const bool simt_emulated;

// Bytes of device and pinned memory that are allocated now.
size_t simt_live_bytes(void);

// Blocks run since the program began: whether a test reached the kernels at all.
unsigned long simt_blocks(void);
size_t simt_prefetched(void);      // bytes that kernels asked L2 for
unsigned long simt_launches(void); // of kernels, likewise; of the shim alone

#ifdef __cplusplus
}
#endif
