// Kernels with one bug each, and the same kernels without: what the shim must catch, and what it must let
// pass.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

enum { PLANTED_ITEMS = 256 };

typedef enum {
    PLANT_NONE,
    PLANT_BARRIER,         // a block reads what others wrote without waiting for them
    PLANT_WAIT,            // an asynchronous copy is read before it was waited for
    PLANT_WAIT_OTHERS,     // .. by another thread, after the wait of the one that copied, with no barrier
                           // between
    PLANT_MATRIX,          // a row of a matrix of ldmatrix that is not at a multiple of 16 bytes
    PLANT_MMA,             // half a warp multiplies, the other half does not
    PLANT_LEAVE,           // a thread leaves without waiting for its copies
    PLANT_GLOBAL,          // one element beyond an allocation is written
    PLANT_GLOBAL_READ,     // .. is read
    PLANT_SHARED,          // .. beyond shared memory
    PLANT_ARRAY,           // .. beyond an array, inside the struct
    PLANT_ALIGNMENT,       // 16 bytes from an address that is not a multiple of 16
    PLANT_UNWRITTEN,       // a sum that starts from what was there
    PLANT_COLLECTIVE,      // half a warp shuffles, the other half votes
    PLANT_HALF_BARRIER,    // half a block waits at a barrier, the other half leaves after a collective of its
                           // own
    PLANT_TWO_BARRIERS,    // the halves of a block wait at different barriers
    PLANT_LANE_LEAVES,     // one lane leaves, the others shuffle
    PLANT_BLOCKS,          // a block reads what another wrote in the same launch
    PLANT_EARLY_NONE,      // a kernel that begins early, without a bug
    PLANT_EARLY_READ,      // a kernel that begins early reads what the launch in front writes
    PLANT_EARLY_COPY,      // .. copies it
    PLANT_EARLY_LEAVE,     // .. leaves without having waited
    PLANT_THREADS,         // a launch of too many threads
    PLANT_SHARED_BYTES,    // .. of too much shared memory
    PLANT_SHARED_STRUCT,   // .. of less than the kernel uses
    PLANT_CARDS_NONE,      // a kernel on either of two cards, a copy between them
    PLANT_CARDS_POINTER,   // the second reads memory of the first
    PLANT_CARDS_COPY,      // .. copies it as its own
    PLANT_CARDS_UNORDERED, // the copy does not wait for the kernel in front of it
    PLANT_CARDS_OVERWRITE, // the first card's next kernel does not wait for the copy
    PLANT_CARDS_LAUNCH,    // a launch into a stream of a card that is not the thread's
    PLANT_CARDS_EVENT,     // one card's event marks the other's stream
} Plant;

// out (PLANTED_ITEMS): item i is what the kernel makes of input (PLANTED_ITEMS), see planted.cu.
void planted_run(Plant plant, const float *input, float *out);

#ifdef __cplusplus
}
#endif
