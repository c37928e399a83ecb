// Device memory, as the runtime and the scheduler see it; how a word is watched is in memory.c.
#pragma once
#include "tests/ptx/machine.h"
#include "tests/ptx/order.h"

enum { TABLE_OWNER = 0xffff }; // of constant tables, which every device has
enum { LINES = 4096 };         // of L1, as a block's table of them has room for
void memory_take(void **device, size_t bytes, uint32_t owner);
bool memory_give(void *device);       // false: it isn't ours
bool memory_is_device(const void *p); // points into device memory, given back or not
// Where the host can touch it, for the work that happens; faults outside, and where it has no order with
// another stream's.
void *memory_reach(const void *p, size_t bytes, bool write, const char *who);
void memory_written_by_host(const void *device, size_t bytes); // all of it is known and in order from here on
void memory_copied(const void *to, const void *from, size_t bytes); // .. as much as its source
uint32_t memory_owner(const void *p);
size_t memory_live_bytes(void);
size_t memory_live_of(uint32_t owner);
void memory_begin_launch(const Launch *l, uint32_t blocks);
void memory_begin_block(Block *b);
void memory_end_block(Block *b);
void memory_leave(const Warp *w, uint32_t lanes); // faults with copies in flight, or without a wait

// The memory that the lanes of a warp touch in one instruction.
typedef struct Touch {
    Warp *w;
    unsigned bytes; // of each lane: 1, 2, 4, 8 or 16
    bool write, atomic;
    bool unwritten; // reads of shared memory that nobody wrote are let through
    uint8_t access;
    uint64_t address[LANES];
    unsigned char *at[LANES]; // the bytes as the machine reaches them
} Touch;
// Checks that these lanes may touch their bytes, notes that they did, and fills `at` of them.
void memory_touch(Touch *t, uint32_t lanes);
void memory_touch_shared(Touch *t, uint32_t lanes);
// An atomic of a word of global memory carries the fences of the blocks that came there before, and leaves
// this block's.
void memory_pass_on(Warp *w, uint64_t address);
void memory_fence(Warp *w);
void memory_prefetch(Warp *w, int lane, uint64_t address, uint64_t bytes); // faults outside of allocations

// Shared memory. A block of a cluster has SPAN bytes of its own behind one another's; what an instruction names
// is a place in its own block, or one of another, as mapa makes it: rank + 1 in the highest byte.
enum { SHARED_SPAN = 1 << 18, RANK_SHIFT = 24 };
uint64_t shared_place(Warp *w, int lane, uint64_t address, bool far); // far: it may be another block's

// By pieces of 16 bytes.
void shared_begin_block(const Block *b);
bool shared_is_written(uint64_t address);             // all of it
void shared_forget(uint64_t address, unsigned bytes); // it was written with what nobody wrote
bool shared_is_vague(uint64_t address, unsigned bytes);
void shared_in_flight(uint64_t address, bool flight);                     // an asynchronous copy to there is
void shared_is_mbarrier(uint64_t address, bool it_is);                    // its 8 bytes
bool shared_mbarrier_is_known(const Warp *w, int lane, uint64_t address); // it's in order behind its init
bool shared_mbarrier_is_shown(const Warp *w, int lane, uint64_t address); // .. with a fence, to bulk copies
void shared_check_shown(const Warp *w, int lane, uint64_t address, const char *who);
void shared_copied(const Block *b, uint64_t address, const void *from, int mbarrier, uint32_t phase);
bool shared_multiplied(Warp *w, uint64_t address); // by wgmma; false: some of it nobody has written
void count_waves(const uint64_t *address, uint32_t lanes, unsigned bytes);
