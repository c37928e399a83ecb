// A team of threads that runs one function at a time, all together, and waits for the last.
//
// The caller is thread 0. Workers spin for a short while after each task, since the next one comes within
// microseconds inside a step, and then sleep, so that an idle engine costs nothing. A pool of as many
// threads as there are cores keeps each on its own, the caller too until the pool is closed.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>

typedef struct Pool Pool;

// What every thread runs: thread in [0, threads).
typedef void PoolTask(void *argument, int thread, int threads);

// threads: at least 1; 1 makes no thread at all.
Pool *pool_open(int threads, Error *e);
void pool_close(Pool *p); // takes NULL
int pool_threads(const Pool *p);

// Returns when every thread has returned from task.
void pool_run(Pool *p, PoolTask *task, void *argument);

// The share of thread t in n things, cut at multiples of `unit`: [*from, *to).
void pool_share(int n, int unit, int thread, int threads, int *from, int *to);

// Inside a task: the next part of n things, [*from, *to), for this thread, until all are taken. First comes
// its own share, in parts that become smaller, at least `least` things each, and then what others have left
// of theirs: cores are rarely equally fast. A task takes from one n.
bool pool_take(Pool *p, int n, int least, int thread, int *from, int *to);

// Cores that this process may run on; hardware threads of one core count once.
int pool_cores(void);
