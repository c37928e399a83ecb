// The few calls of the CUDA runtime that the engine makes, so that tests can replace the machine
// (tests/simt). Every call returns 0 or an error code; gpu_error returns its text.
//
// A stream is a queue of copies and kernels that run later, in order. Don't touch memory that a copy reads or
// writes until an event behind the copy has come or the stream was waited for.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct GpuFacts {
    char name[256];
    int major, minor; // compute capability: 8.0, 9.0
    int multiprocessors;
    size_t shared_bytes;     // most that a block can have
    size_t shared_processor; // that the blocks of a processor have together
    size_t l2_bytes;
    bool wgmma_differs; // from mma.sync, as device_compare_bits found: products do without it
    size_t total_bytes, free_bytes;
    char uuid[48];
    int driver, runtime; // versions, 13000 for 13.0
} GpuFacts;

const char *gpu_error(int code);

// The codes that the kernels of this build have: machine code (sm) and PTX (compute), for 8.0, for 9.0 with
// wgmma, .. ("sm_80 sm_90a compute_90").
const char *gpu_codes(void);

int gpu_versions(int *driver, int *runtime); // 13000 for 13.0; driver 0: none
int gpu_count(int *count);                   // devices; 0 if there are none, or no driver
int gpu_use(int ordinal);                    // the device of this thread's calls from here on
int gpu_facts(int ordinal, GpuFacts *out);

int gpu_take(void **device, size_t bytes);
int gpu_give(void *device);                     // takes NULL
int gpu_take_pinned(void **host, size_t bytes); // host memory that copies reach at full speed
int gpu_give_pinned(void *host);                // takes NULL

int gpu_stream_open(void **stream);
int gpu_stream_close(void *stream);
int gpu_stream_wait(void *stream);                                    // until it's empty
int gpu_copy(void *to, const void *from, size_t bytes, void *stream); // each side is device or host
// From one device's memory to another's, in a stream of either.
int gpu_copy_peer(void *to, int to_ordinal, const void *from, int from_ordinal, size_t bytes, void *stream);
int gpu_fill(void *device, int byte, size_t bytes, void *stream);
int gpu_launched(void); // 0 if all launches since the last call were accepted

// Whether a kernel may begin before the one in front has ended, on this thread's device: if the code that it
// loaded is for 9.0 or later. OUTPACE_EARLY=no turns it off, to measure its gain or to find the cause of a
// wrong number. gpu_early: its last answer for this device, for launches.
bool gpu_begins_early(void);
bool gpu_early(void);

// Whether this thread's device has loaded the code for 9.0a, which alone has wgmma.
bool gpu_has_warpgroups(void);

// A mark in a stream; seconds between two marks that have come. An event, like a stream, belongs to the
// device that was in use when it was opened, and marks only that device's streams.
int gpu_event_open(void **event);
int gpu_event_close(void *event);
int gpu_event_record(void *event, void *stream);
int gpu_event_wait(void *event);
int gpu_stream_after(void *stream,
                     void *event); // pauses it until the event's last mark has come, on any device
int gpu_event_seconds(void *from, void *to, double *seconds);

// Work put into the stream between begin and end isn't run, but becomes a graph that can be put into a stream
// as a whole, many times, with the same arguments.
int gpu_graph_begin(void *stream);
int gpu_graph_end(void *stream, void **graph);
int gpu_graph_run(void *graph, void *stream);
int gpu_graph_close(void *graph);

// The card's ceilings (probe.cu): reads `bytes`; or multiplies, bf16 by mma or wgmma or f32 by fma, and
// returns the operations. Of code without wgmma the first number of `sink` is 0 afterwards.
void gpu_probe_read(const void *data, size_t bytes, int blocks, uint32_t *sink, void *stream);
double gpu_probe_mma(int rounds, int blocks, float *sink, void *stream);
double gpu_probe_wgmma(int rounds, int blocks, float *sink, void *stream);
double gpu_probe_fma(int rounds, int blocks, float *sink, void *stream);

// Adds to *differ how many threads found sums of wgmma, where the code has it, of other bits than mma.sync's.
void gpu_compare_bits(unsigned *differ, void *stream);

#ifdef __cplusplus
}
#endif
