// A task is published by raising `round`; a worker that has done it raises `finished`. Both sides first spin
// on the atomic, then take the mutex and sleep on a condition: whoever may be waited for signals under the
// mutex, after the atomic has changed, so no wake-up is lost.
//
// Where a pool takes every core, each thread stays on its own: a share of the weights is then always read
// through the same caches, and two shares never wait for one core. A smaller pool goes where the system puts
// it: another program's may be beside it, and would choose the same cores.
//
// What a task shares out is taken by raising a count that every thread has of its own share. A count carries
// the round that it was raised in: one of an earlier round stands for nothing taken, so none is ever reset.
#include "engine/cpu/pool.h"

#include "engine/base/memory.h"
#include "engine/cpu/cores.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// Some tenths of a millisecond, as a processor's pause takes 40 to 140 cycles: longer than the gaps inside a
// step, short against a scheduler's slice.
enum { SPINS = 20000, MAX_THREADS = 1024 };

typedef struct Worker {
    Pool *pool;
    pthread_t id;
    int number;
    int core; // -1: where the system likes
} Worker;

// How much of a thread's share has been taken, by whomever, and in which round: round << 32 | count.
typedef struct Taken {
    _Alignas(64) _Atomic uint64_t count;
} Taken;

struct Pool {
    int threads;
    Worker *workers; // (threads - 1)
    Taken *taken;    // (threads)
    int started;
    cpu_set_t before; // where the caller might run
    bool pinned;      // the caller too
    PoolTask *task;
    void *argument;
    _Alignas(64) atomic_uint round;
    _Alignas(64) atomic_int finished;
    _Alignas(64) atomic_int sleepers; // workers that wait on `woken`
    atomic_bool closing;
    pthread_mutex_t mutex;
    pthread_cond_t woken;
};

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void sleep_until_round_changes(Pool *p, unsigned seen) {
    pthread_mutex_lock(&p->mutex);
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(&p->round) == seen && !atomic_load(&p->closing))
        pthread_cond_wait(&p->woken, &p->mutex);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->mutex);
}

static void *work(void *argument) {
    Worker *w = argument;
    Pool *p = w->pool;
    for (unsigned seen = 0;; seen++) {
        for (int i = 0; i < SPINS && atomic_load_explicit(&p->round, memory_order_acquire) == seen; i++)
            relax();
        if (atomic_load(&p->round) == seen) sleep_until_round_changes(p, seen);
        if (atomic_load(&p->closing)) return NULL;
        p->task(p->argument, w->number, p->threads);
        atomic_fetch_add_explicit(&p->finished, 1, memory_order_release);
    }
}

static void wake(Pool *p) {
    if (atomic_load(&p->sleepers) == 0) return;
    pthread_mutex_lock(&p->mutex);
    pthread_cond_broadcast(&p->woken);
    pthread_mutex_unlock(&p->mutex);
}

// Called before a worker starts: a thread inherits what its maker may use.
static void pin_threads(Pool *p) {
    Cores cores;
    cores_find(&cores);
    bool whole = p->threads >= cores.physical && p->threads <= cores.count;
    for (int i = 0; i < p->threads - 1; i++)
        p->workers[i] = (Worker){.pool = p, .number = i + 1, .core = whole ? cores.number[i + 1] : -1};
    p->pinned =
        whole && sched_getaffinity(0, sizeof p->before, &p->before) == 0 && cores_pin(cores.number[0]);
}

// On its core from the start, so that whoever asks where this process may run finds them all.
static int start(Worker *w) {
    pthread_attr_t attributes;
    cpu_set_t one;
    pthread_attr_init(&attributes);
    CPU_ZERO(&one);
    if (w->core >= 0) {
        CPU_SET((size_t)w->core, &one);
        pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
    }
    int why = pthread_create(&w->id, &attributes, work, w);
    if (why && w->core >= 0) why = pthread_create(&w->id, NULL, work, w); // the core may have been taken away
    pthread_attr_destroy(&attributes);
    return why;
}

Pool *pool_open(int threads, Error *e) {
    if (threads < 1 || threads > MAX_THREADS) {
        error_input(e, "cannot run %d threads: from 1 to %d are allowed", threads, MAX_THREADS);
        return NULL;
    }
    Pool *p = mem_alloc(1, sizeof *p);
    if (p) p->workers = mem_alloc((size_t)threads, sizeof *p->workers);
    if (p) p->taken = mem_alloc((size_t)threads, sizeof *p->taken);
    if (!p || !p->workers || !p->taken) {
        if (p) mem_free(p->workers);
        if (p) mem_free(p->taken);
        mem_free(p);
        error_system(e, "out of memory for %d threads", threads);
        return NULL;
    }
    p->threads = threads;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->woken, NULL);
    pin_threads(p);
    for (int i = 0; i < threads - 1; i++) {
        int why = start(&p->workers[i]);
        if (why) {
            error_system(e, "cannot start thread %d of %d: %s", i + 1, threads, strerror(why));
            pool_close(p);
            return NULL;
        }
        p->started = i + 1;
    }
    return p;
}

void pool_close(Pool *p) {
    if (!p) return;
    pthread_mutex_lock(&p->mutex);
    atomic_store(&p->closing, true);
    atomic_fetch_add(&p->round, 1);
    pthread_cond_broadcast(&p->woken);
    pthread_mutex_unlock(&p->mutex);
    for (int i = 0; i < p->started; i++) pthread_join(p->workers[i].id, NULL);
    pthread_cond_destroy(&p->woken);
    pthread_mutex_destroy(&p->mutex);
    if (p->pinned) sched_setaffinity(0, sizeof p->before, &p->before);
    mem_free(p->taken);
    mem_free(p->workers);
    mem_free(p);
}

int pool_threads(const Pool *p) { return p->threads; }

void pool_run(Pool *p, PoolTask *task, void *argument) {
    if (p->threads == 1) {
        atomic_fetch_add_explicit(&p->round, 1, memory_order_relaxed);
        task(argument, 0, 1);
        return;
    }
    p->task = task;
    p->argument = argument;
    atomic_store_explicit(&p->finished, 0, memory_order_relaxed);
    atomic_fetch_add(&p->round, 1);
    wake(p);
    task(argument, 0, p->threads);
    // The others end within their share of the work; if one was preempted, let it have this core.
    for (int i = 0; atomic_load_explicit(&p->finished, memory_order_acquire) < p->threads - 1; i++) {
        if (i < SPINS) relax();
        else sched_yield();
    }
}

void pool_share(int n, int unit, int thread, int threads, int *from, int *to) {
    int units = (n + unit - 1) / unit;
    int a = (int)((long long)units * thread / threads) * unit;
    int b = (int)((long long)units * (thread + 1) / threads) * unit;
    *from = a < n ? a : n;
    *to = b < n ? b : n;
}

// Half of what is left of one thread's share: large parts first, small ones where it matters who ends last.
static bool take_of(Pool *p, int whose, int n, int least, int *from, int *to) {
    uint64_t round = atomic_load_explicit(&p->round, memory_order_relaxed);
    _Atomic uint64_t *count = &p->taken[whose].count;
    uint64_t seen = atomic_load_explicit(count, memory_order_relaxed);
    int first, last, taken, part;
    pool_share(n, 1, whose, p->threads, &first, &last);
    do {
        taken = seen >> 32 == round ? (int)(seen & UINT32_MAX) : 0;
        int left = last - first - taken, half = p->threads > 1 ? (left + 1) / 2 : left;
        part = half > least ? half : least < left ? least : left;
        if (part == 0) return false;
    } while (!atomic_compare_exchange_weak_explicit(count, &seen, round << 32 | (uint64_t)(taken + part),
                                                    memory_order_relaxed, memory_order_relaxed));
    *from = first + taken;
    *to = *from + part;
    return true;
}

bool pool_take(Pool *p, int n, int least, int thread, int *from, int *to) {
    for (int i = 0; i < p->threads; i++)
        if (take_of(p, (thread + i) % p->threads, n, least, from, to)) return true;
    return false;
}

int pool_cores(void) {
    Cores cores;
    cores_find(&cores);
    return cores.physical;
}
