// Device memory, as the runtime and the scheduler see it; how a word is watched is in memory.c.
#pragma once
#include "tests/ptx/machine.h"
#include "tests/ptx/order.h"

enum { TABLE_OWNER = 0xffff };      // of constant tables, which every device has
enum { SECTOR = 32, LINES = 4096 }; // bytes; of L1, as a block's table of them has room for
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

// The bytes of an access as the machine reaches them: checked that they may be touched, noted that they were.
unsigned char *memory_touch(const Warp *w, int lane, uint64_t address, unsigned bytes, bool write,
                            bool atomic, uint8_t access);
// unwritten: reads of what nobody wrote are let through.
unsigned char *memory_touch_shared(const Warp *w, int lane, uint64_t address, unsigned bytes, bool write,
                                   bool atomic, bool unwritten);
void memory_in_flight(Block *b, uint64_t address, bool flight); // an asynchronous copy of 16 bytes is
// An atomic of a word of global memory carries the fences of the blocks that came there before, and leaves
// this block's.
void memory_pass_on(Warp *w, uint64_t address);
void memory_fence(Warp *w);
// A shared address of 16 bytes that a collective reads; the shared waves of such addresses, one a lane.
const unsigned char *shared_row(Warp *w, int lane, uint64_t address, bool *written);
void count_waves(const uint64_t *address, uint32_t lanes, unsigned bytes);
