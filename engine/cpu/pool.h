// A team of threads that runs one function at a time, all together, and waits for the last; and the cores
// that the threads run on.
//
// The caller is thread 0. After each task, workers spin for a short while, since inside a step the next one
// comes within microseconds, and then sleep, so that an idle engine costs nothing. The caller runs the parts
// of workers that don't get a processor, and lends its own to a worker that was stopped inside its part. A
// pool with as many threads as there are cores, or more, keeps each thread on its own core, the caller too
// until the pool is closed.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>

typedef struct Pool Pool;

// The function that is run once for each thread in [0, threads). One thread may run several of them in turn,
// so none may wait for another.
typedef void PoolTask(void *argument, int thread, int threads);

// threads: at least 1, which creates no thread at all. Of more threads than there are processors, the others
// run the parts.
Pool *pool_open(int threads, Error *e);
void pool_close(Pool *p); // accepts NULL
int pool_threads(const Pool *p);

// Returns when every thread has returned from task.
void pool_run(Pool *p, PoolTask *task, void *argument);

// The share of thread t in n items, cut at multiples of `unit`: [*from, *to).
void pool_share(int n, int unit, int thread, int threads, int *from, int *to);

// Inside a task: takes the next part of n items, [*from, *to), for this thread; false when all are taken. A
// thread takes its own share first, in parts that shrink but have at least `least` items, and then whatever
// others have left of theirs: cores are rarely equally fast. All threads of a task take from the same n.
bool pool_take(Pool *p, int n, int least, int thread, int *from, int *to);

// Cores that this process may run on, of whose time a container may allow fewer; the hardware threads of a
// core count once.
int pool_cores(void);

enum { CORES_MAX = 1024 };

// Processors that this process may run on, in the order in which threads should take them.
typedef struct Cores {
    int number[CORES_MAX]; // (count): the first hardware thread of each core, then the second ones
    int count;
    int physical; // how many of them are the first of their core
} Cores;

// Where the system doesn't report the topology, every allowed processor counts as a core.
void cores_find(Cores *c);
