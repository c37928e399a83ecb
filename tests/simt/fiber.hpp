// Stacks that take turns: a block's threads. A switch costs about 7 ns on x86-64 (six registers), and what
// ucontext costs elsewhere.
#pragma once
#include <cstddef>

struct Fiber {
    void *stack;   // its lowest byte
    void *machine; // where it stopped: a stack pointer, or a ucontext_t
    void *shadow;  // AddressSanitizer's
};

enum { FIBER_STACK = 192 << 10 };

// `count` stacks in one mapping, for the program's life.
Fiber *fibers_open(int count);

// The next switch to it runs entry, which never returns.
void fiber_begin(Fiber *f, void (*entry)());

// Leaves `from` (the caller's own; without a stack it is the system's thread) for `to`; comes back when
// someone switches to `from`. `last`: nobody ever will.
void fiber_switch(Fiber *from, Fiber *to, bool last);

// The first thing that an entry does.
void fiber_arrived(Fiber *self);
