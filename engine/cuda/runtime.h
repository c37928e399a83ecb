// The few calls of the CUDA runtime that the engine makes, so that a test can put another machine in their
// place (tests/simt). Every call gives 0, or a code that gpu_error turns into words.
//
// A stream is a queue of copies and kernels: what is put into it happens in order, later. Memory that a copy
// reads or writes stays as it is until an event after the copy has come, or the stream was waited for.
#pragma once
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct GpuFacts {
    char name[256];
    int major, minor; // what it can do: 8.0, 9.0
    int multiprocessors;
    size_t shared_bytes; // most that a block can have
    size_t total_bytes, free_bytes;
    char uuid[48];
    int driver, runtime; // versions, 13000 for 13.0
} GpuFacts;

const char *gpu_error(int code);

int gpu_versions(int *driver, int *runtime); // 13000 for 13.0; driver 0: none
int gpu_count(int *count); // devices that this machine and its driver have; 0 where it has neither
int gpu_use(int ordinal);  // this thread's calls are about that device from here on
int gpu_facts(int ordinal, GpuFacts *out);

int gpu_take(void **device, size_t bytes);
int gpu_give(void *device);                     // takes NULL
int gpu_take_pinned(void **host, size_t bytes); // host memory that copies reach at full speed
int gpu_give_pinned(void *host);                // takes NULL

int gpu_stream_open(void **stream);
int gpu_stream_close(void *stream);
int gpu_stream_wait(void *stream);                                    // until all that is in it has happened
int gpu_copy(void *to, const void *from, size_t bytes, void *stream); // either side device or host
// From one device's memory to another's, in a stream of either.
int gpu_copy_peer(void *to, int to_ordinal, const void *from, int from_ordinal, size_t bytes, void *stream);
int gpu_fill(void *device, int byte, size_t bytes, void *stream);
int gpu_launched(void); // whether the launches since the last call could be made

// Whether a kernel may begin before the one in front has ended, on this thread's device: where the code that
// it loaded is for 9.0 or later, unless OUTPACE_EARLY=no, which shows what that gains, and whether a wrong
// number comes from it.
bool gpu_begins_early(void);
// Whether blocks of a launch can read one another's shared memory: code for 9.0 or later, unless
// OUTPACE_CLUSTERS=no, which must give the same numbers.
bool gpu_has_clusters(void);

// A mark in a stream; seconds between two that have come. An event is the device's that was in use when it
// was opened, as a stream is, and marks streams of that device alone.
int gpu_event_open(void **event);
int gpu_event_close(void *event);
int gpu_event_record(void *event, void *stream);
int gpu_event_wait(void *event);
int gpu_stream_after(void *stream, void *event); // goes on when the event's last mark has come, on any device
int gpu_event_seconds(void *from, void *to, double *seconds);

// What is put into the stream between begin and end does not happen, but becomes a graph that can be put in
// as one, many times, with the same arguments.
int gpu_graph_begin(void *stream);
int gpu_graph_end(void *stream, void **graph);
int gpu_graph_run(void *graph, void *stream);
int gpu_graph_close(void *graph);

#ifdef __cplusplus
}
#endif
