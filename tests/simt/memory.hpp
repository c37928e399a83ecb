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

// Device memory, a list of Guarded, each of one device. New bytes hold the poison; a pointer that is not from
// here stops the program.
void *device_take(size_t bytes, int owner);
void device_give(void *data);
bool device_holds(const void *data, size_t bytes); // all of them are of one allocation

// What holds this address stays in reach, the rest does not; and all is again.
void device_reach_only(const void *constant);
void device_reach_all();

// Whose memory is in reach: one device's, everybody's, nobody's. Gives what it was before. What is touched
// out of reach ends the program, with a line on whose it is.
enum { OF_ALL = -1, OF_NONE = -2 };
int device_reach(int owner);
size_t device_live_bytes(int owner);
