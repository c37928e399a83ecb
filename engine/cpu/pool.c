// A task is published by raising `round`. It has a slot for each thread, which one thread claims and runs:
// nearly always its own; the caller runs those whose threads haven't begun by the time it waits for them. A
// thread that doesn't get a processor then holds up a task only if it was stopped inside it, not at each of a
// step's tasks: with eleven busy neighbours on two cores a step takes 8 to 10 times as long, not 15
// (docs/speed.md). And if one was stopped inside it, the caller, which has nothing else to do, moves it to
// its own processor and sleeps: next to one busy neighbour, steps take two thirds of the time.
//
// No more threads are started than there are processors: they would wait for each other's time slices. The
// others' slots are shared among those that there are.
//
// Whoever waits spins on an atomic and then sleeps until the system sees it change (a futex). Nobody yields,
// which would give the core to a busy neighbour for a whole time slice, and nobody holds a lock, with which a
// thread might be stopped. Whoever changes the atomic looks afterwards for sleepers; those announce
// themselves before they look at the atomic, so no wake-up is lost.
//
// Invariants: while no task runs, each slot's `begun` is `round`; while one runs, `begun` is `round` where
// the slot has been claimed, else `round` - 1. So a thread that is rounds behind cannot claim anything.
//
// If a pool takes every core, each thread stays on its own core: it then reads a share of the weights through
// the same caches every time, and two shares never compete for one core. A smaller pool leaves placement to
// the system: another program's pool may run at the same time, and would choose the same cores.
//
// A task's items are taken by raising a count that each thread has for its own share. A count carries the
// round in which it was raised; one from an earlier round means that nothing is taken, so counts are never
// reset.
#include "engine/cpu/pool.h"

#include "engine/base/memory.h"
#include "engine/base/system.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// --- cores

// The lowest processor on the same core as this one; the processor itself if the system doesn't report it.
static int first_sibling(int cpu) {
    char path[96];
    int first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "re");
    if (!f) return cpu;
    if (fscanf(f, "%d", &first) != 1) first = cpu;
    fclose(f);
    return first;
}

// The processors that any thread of this process may run on: a pool may have pinned the calling one to a
// single processor.
static void find_allowed(cpu_set_t *allowed) {
    if (sched_getaffinity(0, sizeof *allowed, allowed) != 0) CPU_ZERO(allowed);
    DIR *threads = opendir("/proc/self/task");
    if (!threads) return;
    for (struct dirent *d; (d = readdir(threads));) {
        cpu_set_t one;
        int id = (int)strtol(d->d_name, NULL, 10);
        if (id > 0 && sched_getaffinity(id, sizeof one, &one) == 0) CPU_OR(allowed, allowed, &one);
    }
    closedir(threads);
}

void cores_find(Cores *c) {
    cpu_set_t allowed;
    bool seen[CORES_MAX] = {false}, second[CORES_MAX] = {false};
    *c = (Cores){.count = 0};
    find_allowed(&allowed);
    for (int i = 0; i < CORES_MAX; i++) {
        if (!CPU_ISSET((size_t)i, &allowed)) continue;
        int core = first_sibling(i);
        second[i] = core >= 0 && core < CORES_MAX && seen[core];
        if (core >= 0 && core < CORES_MAX) seen[core] = true;
        if (!second[i]) c->number[c->count++] = i;
    }
    c->physical = c->count;
    for (int i = 0; i < CORES_MAX; i++)
        if (second[i]) c->number[c->count++] = i;
    if (c->count == 0) *c = (Cores){.count = 1, .physical = 1};
    assert(c->physical >= 1 && c->physical <= c->count);
}

// --- threads

// Some tenths of a millisecond, since a processor's pause takes 40 to 140 cycles: longer than the gaps inside
// a step, short compared with a scheduler's time slice.
enum { SPINS = 20000, MAX_THREADS = 1024 };

// After so many spins the caller looks for slots to run. Threads that have a processor end together, so that
// it rarely looks, which would fetch a cache line from each of their cores.
enum { SPINS_BEFORE_HELP = 100 };

// Every so many spins, some hundredths of a millisecond, the caller checks whether a worker was stopped:
// whether it used no processor time during LOOK_SPINS.
enum { SPINS_BEFORE_LOOK = 2000, LOOK_SPINS = 100 };

typedef struct Worker {
    Pool *pool;
    pthread_t id;
    int number;
    int core;            // -1: the system decides
    atomic_bool working; // runs slots of a round
    atomic_bool lent;    // is on the caller's processor, where it must not spin
    cpu_set_t before;    // of a lent one: the processors that it could run on
} Worker;

typedef struct Slot {
    _Alignas(64) _Atomic uint64_t taken; // of its share, by any thread: round << 32 | count
    atomic_uint begun;                   // the last round in which its task was claimed
} Slot;

struct Pool {
    int threads;
    int running;     // threads that there are, the caller included; at most one a processor
    Worker *workers; // (running - 1)
    Slot *slots;     // (threads)
    int started;
    cpu_set_t before; // the processors that the caller could run on
    bool pinned;      // the caller is pinned too
    PoolTask *task;
    void *argument;
    _Alignas(64) atomic_uint round;
    _Alignas(64) atomic_uint finished; // slots, by other threads than the caller
    _Alignas(64) atomic_int sleepers;  // workers that sleep until `round` changes
    atomic_bool waiting;               // the caller sleeps until `finished` changes
    atomic_bool closing;
};

// While no task runs.
static void pool_check(Pool *p) {
    assert(p->threads >= 1 && p->threads <= MAX_THREADS);
    assert(p->running >= 1 && p->running <= p->threads && p->started == p->running - 1);
    assert(!atomic_load(&p->waiting) && atomic_load(&p->sleepers) >= 0 &&
           atomic_load(&p->sleepers) < p->running);
    assert(!atomic_load(&p->closing));
}

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Returns when the word has changed, or for no reason.
static void sleep_on(atomic_uint *word, unsigned seen) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void wake(atomic_uint *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }

static void sleep_until_round_changes(Pool *p, unsigned seen) {
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(&p->round) == seen) sleep_on(&p->round, seen);
    atomic_fetch_sub(&p->sleepers, 1);
}

static void begin_round(Pool *p) {
    atomic_fetch_add(&p->round, 1);
    if (atomic_load(&p->sleepers) > 0) wake(&p->round);
}

static bool claim(Pool *p, int thread, unsigned round) {
    unsigned last = round - 1;
    return atomic_compare_exchange_strong(&p->slots[thread].begun, &last, round);
}

// Runs those of slots [from, to) that no thread has claimed, and returns their number.
static unsigned run_slots(Pool *p, int from, int to, unsigned round) {
    unsigned count = 0;
    for (int i = from; i < to; i++) {
        if (!claim(p, i, round)) continue;
        p->task(p->argument, i, p->threads);
        count++;
    }
    return count;
}

static void *work(void *argument) {
    Worker *w = argument;
    Pool *p = w->pool;
    for (unsigned seen = 0;;) {
        for (int i = 0; i < SPINS && atomic_load_explicit(&p->round, memory_order_acquire) == seen &&
                        !atomic_load_explicit(&w->lent, memory_order_relaxed);
             i++)
            relax();
        if (atomic_load(&p->round) == seen) sleep_until_round_changes(p, seen);
        seen = atomic_load(&p->round);
        if (atomic_load(&p->closing)) return NULL; // set before its round
        atomic_store(&w->working, true);
        unsigned count = run_slots(p, w->number, w->number + 1, seen);
        count += run_slots(p, p->running, p->threads, seen);
        if (count) atomic_fetch_add(&p->finished, count);
        if (count && atomic_load(&p->waiting)) wake(&p->finished);
        atomic_store(&w->working, false);
    }
}

static bool pin_caller(int core) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0; // false: the system refuses
}

// Pins the caller, if at all, before a worker starts: a thread inherits its creator's processors.
static void place_threads(Pool *p) {
    Cores cores;
    cores_find(&cores);
    p->running = p->threads < cores.count ? p->threads : cores.count;
    bool whole = p->running >= cores.physical;
    for (int i = 0; i < p->running - 1; i++)
        p->workers[i] = (Worker){.pool = p, .number = i + 1, .core = whole ? cores.number[i + 1] : -1};
    p->pinned =
        whole && sched_getaffinity(0, sizeof p->before, &p->before) == 0 && pin_caller(cores.number[0]);
}

// Starts a thread on its core right away, so that cores_find in any thread sees all of the process's
// processors.
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
    if (why && w->core >= 0)
        why = pthread_create(&w->id, NULL, work, w); // the core may have been taken away meanwhile
    pthread_attr_destroy(&attributes);
    return why;
}

Pool *pool_open(int threads, Error *e) {
    if (threads < 1 || threads > MAX_THREADS) {
        error_input(e, "cannot run %d threads: from 1 to %d are allowed", threads, MAX_THREADS);
        return NULL;
    }
    Pool *p = mem_new(1, sizeof *p);
    p->workers = mem_new((size_t)threads, sizeof *p->workers);
    p->slots = mem_new((size_t)threads, sizeof *p->slots);
    p->threads = threads;
    place_threads(p);
    for (int i = 0; i < p->running - 1; i++) {
        int why = start(&p->workers[i]);
        if (why) {
            error_system(e, "cannot start thread %d of %d: %s", i + 1, p->running, strerror(why));
            pool_close(p);
            return NULL;
        }
        p->started = i + 1;
    }
    pool_check(p);
    return p;
}

void pool_close(Pool *p) {
    if (!p) return;
    atomic_store(&p->closing, true);
    begin_round(p);
    for (int i = 0; i < p->started; i++) pthread_join(p->workers[i].id, NULL);
    if (p->pinned) sched_setaffinity(0, sizeof p->before, &p->before);
    MEM_FREE(p->slots, p->workers, p);
}

int pool_threads(const Pool *p) { return p->threads; }

// Processor time, in nanoseconds; -1: unknown.
static int64_t time_used(const Worker *w) {
    clockid_t clock;
    struct timespec t;
    if (pthread_getcpuclockid(w->id, &clock) != 0 || clock_gettime(clock, &t) != 0) return -1;
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static bool is_stopped(const Worker *w) {
    int64_t before = time_used(w);
    for (int i = 0; i < LOOK_SPINS; i++) relax();
    return before >= 0 && atomic_load(&w->working) && time_used(w) == before;
}

// Moves workers that were stopped at work to this processor, which the caller then leaves to them.
static bool lend_processor(Pool *p) {
    bool any = false;
    int here = sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    if (here < 0) return false;
    CPU_SET((size_t)here, &one);
    for (Worker *w = p->workers; w < p->workers + p->started; w++) {
        if (!atomic_load(&w->working) || !is_stopped(w)) continue;
        if (pthread_getaffinity_np(w->id, sizeof w->before, &w->before) != 0) continue;
        atomic_store(&w->lent, true);
        if (pthread_setaffinity_np(w->id, sizeof one, &one) == 0) any = true;
        else atomic_store(&w->lent, false);
    }
    return any;
}

static void take_back(Pool *p) {
    for (Worker *w = p->workers; w < p->workers + p->started; w++) {
        if (!atomic_load(&w->lent)) continue;
        pthread_setaffinity_np(w->id, sizeof w->before, &w->before);
        atomic_store(&w->lent, false);
    }
}

static void sleep_until_finished(Pool *p, unsigned wanted) {
    unsigned seen;
    atomic_store(&p->waiting, true);
    while ((seen = atomic_load(&p->finished)) < wanted) sleep_on(&p->finished, seen);
    atomic_store(&p->waiting, false);
}

void pool_run(Pool *p, PoolTask *task, void *argument) {
    unsigned others = (unsigned)p->threads - 1; // slots that other threads run
    if (others == 0) {
        atomic_fetch_add_explicit(&p->round, 1, memory_order_relaxed);
        task(argument, 0, 1);
        return;
    }
    p->task = task;
    p->argument = argument;
    atomic_store_explicit(&p->finished, 0, memory_order_relaxed);
    begin_round(p);
    unsigned round = atomic_load(&p->round);
    task(argument, 0, p->threads);
    others -= run_slots(p, p->running, p->threads, round);
    bool lent = false;
    for (int i = 1; atomic_load_explicit(&p->finished, memory_order_acquire) < others; i++) {
        if (i == SPINS_BEFORE_HELP) others -= run_slots(p, 1, p->threads, round);
        else if (i % SPINS_BEFORE_LOOK == 0) lent |= lend_processor(p);
        if (lent || i >= SPINS) sleep_until_finished(p, others);
        else relax();
    }
    if (lent) take_back(p); // else their cache lines stay with the workers
    pool_check(p);
}

void pool_share(int n, int unit, int thread, int threads, int *from, int *to) {
    assert(n >= 0 && unit >= 1 && thread >= 0 && thread < threads);
    int units = (n + unit - 1) / unit;
    int a = (int)((long long)units * thread / threads) * unit;
    int b = (int)((long long)units * (thread + 1) / threads) * unit;
    *from = a < n ? a : n;
    *to = b < n ? b : n;
}

// Takes half of the rest of one thread's share: large parts first, small ones towards the end, where they
// decide which thread finishes last.
static bool take_of(Pool *p, int whose, int n, int least, int *from, int *to) {
    uint64_t round = atomic_load_explicit(&p->round, memory_order_relaxed);
    _Atomic uint64_t *count = &p->slots[whose].taken;
    uint64_t seen = atomic_load_explicit(count, memory_order_relaxed);
    int first, last, taken, part;
    pool_share(n, 1, whose, p->threads, &first, &last);
    do {
        taken = seen >> 32 == round ? (int)(seen & UINT32_MAX) : 0;
        int left = last - first - taken, half = p->threads > 1 ? (left + 1) / 2 : left;
        part = half > least ? half : least < left ? least : left;
        assert(taken <= last - first && least >= 1);
        if (part == 0) return false;
    } while (!atomic_compare_exchange_weak_explicit(count, &seen, round << 32 | (uint64_t)(taken + part),
                                                    memory_order_relaxed, memory_order_relaxed));
    *from = first + taken;
    *to = *from + part;
    assert(*from < *to && *to <= last);
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
    return system_processors(cores.physical);
}
