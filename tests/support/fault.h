// Failing allocations and system calls, one at a time. Only for programs named *_fault_test, which the
// Makefile links so that malloc and its family, open, read, write, fsync, close and rename of our own code go
// through fault.c, and jansson's allocations too. Other libraries' allocations are neither failed nor
// counted.
//
// The way to use it is fault_each: it fails the first, the second, the third... until a run has no failure.
#pragma once
#include "engine/base/error.h"

// FAULT_SPARSE_ALLOCATIONS: for long runs, whose first allocations are those of parts with tests of their
// own; the steps between failing ones grow by an eighth.
typedef enum { FAULT_ALLOCATION, FAULT_SPARSE_ALLOCATIONS, FAULT_CALL } FaultKind;

// The n-th allocation (from 1) or system call from now fails once. 0: none fails.
void fault_after(int n);
void fault_call_after(int n);

bool fault_seen(void); // whether it failed since
int fault_live(void);  // allocations alive
int fault_open(void);  // files open

// Runs `run`, failing each possible call in turn, until nothing failed; returns the number of failures.
// A failing call must make it return false with a system error, leave no allocation alive and no
// file open. A failing allocation may do the same, if a refused block is an error (mem_try), or end the
// process by mem_exhausted: each of those runs is a child, so `state` is unchanged, and `after` checks the
// leftovers of a killed run. ok is the run's result.
int fault_each(FaultKind kind, bool (*run)(void *state, Error *e), void (*after)(void *state, bool ok),
               void *state);

typedef enum {
    FAULT_NONE,
    FAULT_REFUSED,
    FAULT_ENDED
} FaultEnd; // nothing failed; false; ended by mem_exhausted

// The same for the calls of a run that reads a model: a file of it that cannot be read is an input error, and
// some failures leave nothing to report.
int fault_each_model_call(bool (*run)(void *state, Error *e), void (*after)(void *state, bool ok),
                          void *state);
