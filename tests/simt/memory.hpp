// Memory that ends where a page without access begins, so that the first access beyond it stops the program.
//
//      | canary ... | data, rounded up to 16 bytes | no access |
//
// What stands before the data, and in the rounding after it, is checked when the memory is given back.
#pragma once
#include <cstddef>

struct Guarded {
    void *data;    // aligned to 16 bytes
    size_t bytes;  // as asked for
    void *map;     // NULL: nothing
    size_t mapped; // with the page without access
};

Guarded guarded_open(size_t bytes); // stops the program if the system has no memory
void guarded_close(Guarded *g);     // takes an empty one; stops the program if a canary is dead

// Device memory, a list of Guarded. new_bytes hold the poison; a pointer that is not from here stops the
// program.
void *device_take(size_t bytes);
void device_give(void *data);

// What holds this address stays in reach, the rest does not; and all is again.
void device_reach_only(const void *constant);
void device_reach_all();

// Puts all of it out of everybody's reach, or back into it; see SimtSettings.
void device_lock(bool locked);
