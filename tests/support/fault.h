// Failing allocations and system calls, one at a time. Only for programs named *_fault_test, which the
// Makefile links so that malloc and its family, open, read, write, fsync, close and rename of our own code go
// through fault.c. jansson allocates through there too; other libraries' allocations are neither failed nor
// counted.
//
// The way to use it is fault_each: it fails the first, the second, the third... until a run has no failure.
#pragma once
#include "engine/base/error.h"

typedef enum { FAULT_ALLOCATION, FAULT_CALL } FaultKind;

// The n-th allocation (from 1) or system call from now fails once. 0: none fails.
void fault_after(int n);
void fault_call_after(int n);

bool fault_seen(void); // whether it failed since
int fault_live(void);  // allocations alive
int fault_open(void);  // files open

// Runs `run`, failing what can fail one after the other, until nothing failed; returns how many failures
// there were. Each failing run must return false with a system error, the last one true; none may leave an
// allocation alive or a file open. `after`, where given, checks what a run left behind; ok is what the run
// returned.
int fault_each(FaultKind kind, bool (*run)(void *state, Error *e), void (*after)(void *state, bool ok),
               void *state);

// The same for a run that reads or writes JSON. jansson (2.14) reads and writes wrong things where memory
// runs out in it, and may crash: its allocations are tried a second time, so a run may survive the first
// failing. A file of a model that cannot be read is an input error.
int fault_each_json(FaultKind kind, bool (*run)(void *state, Error *e), void (*after)(void *state, bool ok),
                    void *state);
