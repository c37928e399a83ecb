// The kernels of the probe, in three files. A function returns false if the code that the device has lacks
// the instructions that it's about, and then puts nothing into the stream: such an item is listed, never
// measured.
//
// The simulated card has no bulk copies, clusters, barriers in shared memory (mbarrier), prefetches and no
// wgmma but that of instructions.cuh; code for other cards than 9.0a lacks the same.
#pragma once
#include "engine/cuda/kernels/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CODE_WARPGROUPS = 1, CODE_HOPPER = 2 };
void probe_code(unsigned *flags, void *stream); // what the code that the device has loaded can do

// --- probe_memory.cu

typedef enum { READ_STRIDE, READ_CHUNKS, READ_WARPS, READ_BULK, READ_WAYS } ReadWay;
typedef struct Read {
    ReadWay way;  // loads, blocks side by side or each its own part; copies of 2 KB a warp; bulk copies
    int depth;    // loads or pieces on their way
    int piece;    // bytes of a bulk copy
    int share;    // blocks of a cluster that get each bulk copy
    bool leaving; // what is read leaves L2 first
    int blocks, passes;
    const void *data;
    size_t bytes;
    uint32_t *sink; // (blocks, 256)
    int code;
} Read;
size_t read_in_flight(const Read *r); // bytes, of a block
size_t read_shared(const Read *r);    // bytes of shared memory that a block takes
size_t read_bytes(const Read *r);     // that arrive at the blocks, all passes
bool probe_read_way(const Read *r, void *stream);

// Adds 16 bytes a turn for so many turns, in one chain, on every processor, and asks for `ahead` bytes to
// come to L2.
bool probe_idle(int blocks, int turns, const void *data, size_t ahead, int code, uint32_t *sink,
                void *stream);

// One thread's chain of `count` of them, on memory of `bytes`.
typedef enum {
    WAIT_LOAD,
    WAIT_LOADED,
    WAIT_ATOMIC,
    WAIT_FENCE,
    WAIT_PROXY_FENCE,
    WAIT_MBARRIER,
    WAITS
} WaitKind;
void probe_chain(uint32_t *data, size_t bytes, void *stream); // makes the loads' chain
bool probe_wait(WaitKind kind, uint32_t *data, size_t bytes, int count, int blocks, int code,
                long long *clocks, void *stream);

// Clocks of a load of each line, `pitch` bytes apart and in L2, by a thread of each block's processor: the
// processor's number, then the lines. data: zeros.
enum { DISTANCE_LINES = 64 };
typedef struct Distances {
    uint32_t processor, clocks[DISTANCE_LINES];
} Distances;
bool probe_distances(const uint32_t *data, size_t pitch, int blocks, int code, Distances *out, void *stream);

// --- probe_multiply.cu

typedef enum { WGMMA_SHARED, WGMMA_SWIZZLED, WGMMA_REGISTERS, WGMMA_WAYS } WgmmaWay;
enum { WGMMA_WIDTHS = 11 };
extern const int WGMMA_WIDTH[WGMMA_WIDTHS];
// `groups` warpgroups a block; wait: groups of multiplications that may be unfinished, 0 or 1. Returns the
// operations.
double probe_wgmma_way(WgmmaWay way, int width, int groups, int wait, int rounds, int blocks, int code,
                       float *sink, void *stream);

// out (64, width) = a (64, columns) b (width, columns), bf16, row after row. SUM_WAYS: mma.sync, and the ways
// of wgmma.
enum { SUM_WAYS = 1 + WGMMA_WAYS };
bool probe_sums(int way, int width, const uint16_t *a, const uint16_t *b, int columns, int code, float *out,
                void *stream);

// Decodes in registers, with `columns` / 8 multiplications of each operand after it (0, 8 or 16). Returns the
// weights.
double probe_decode(int bits, int columns, int rounds, int blocks, uint32_t *sink, void *stream);

// --- probe_launch.cu

void probe_nothing(int blocks, size_t shared, bool early, const void *constant, uint32_t *sink, void *stream);
enum { STRAIGHT_SIZES = 5 };
extern const int STRAIGHT_KB[STRAIGHT_SIZES];
void probe_straight(int size, int blocks, float *sink, void *stream); // so much code, once through

typedef enum {
    MEET_GRID,
    MEET_PAIR,
    MEET_FOUR,
    MEET_REMOTE,
    MEETS
} MeetKind; // REMOTE: loads of a pair's other memory
bool probe_meet(MeetKind kind, int rounds, int blocks, int code, unsigned *counter, void *stream);

#ifdef __cplusplus
}
#endif
