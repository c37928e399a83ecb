// The order of operations across streams.
//
// A clock tells of each stream how many of its works have surely happened: works of one stream in turn; what
// the host had waited for when it put a work in; what was in front of the event that a stream waits for. Two
// works that touch one allocation, one of them to write, must be in order by these clocks, whatever order the
// machine takes them in.
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { MOST_STREAMS = 24 };

typedef struct Clock {
    uint32_t at[MOST_STREAMS];
} Clock;
static inline void clock_join(Clock *c, const Clock *other) {
    for (int i = 0; i < MOST_STREAMS; i++)
        if (other->at[i] > c->at[i]) c->at[i] = other->at[i];
}

// Of an allocation: the last works of each stream that wrote and read it.
typedef struct History {
    Clock wrote, read;
    uint32_t writing, reading; // the last works of any
} History;

// The work that happens from now on is of this stream, and comes after all that its clock has.
void order_begin(int stream, uint32_t device, const Clock *now);
// Ends the program, with a line, where another stream's access has no order with this one.
void order_touch(History *h, bool write);
