// The pool: every task is run once for every thread, whatever their number and although one of them doesn't
// get a processor; one that was stopped at work gets the caller's; shares cover everything once; threads end
// with the pool, and are at most as many as there are processors. And cores: numbers that this process may
// use, each once.
#include "tests/support/check.h"

#include "engine/cpu/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { MOST = 17 };

typedef struct {
    atomic_int runs[MOST];
    atomic_int wrong;
    int threads;
} Seen;

static void note(void *argument, int thread, int threads) {
    Seen *s = argument;
    if (threads != s->threads || thread < 0 || thread >= threads) atomic_fetch_add(&s->wrong, 1);
    else atomic_fetch_add(&s->runs[thread], 1);
}

static void rest(long microseconds) {
    struct timespec t = {0, microseconds * 1000};
    nanosleep(&t, NULL);
}

static void all_run_once(void **state) {
    (void)state;
    for (int threads = 1; threads <= MOST; threads += threads < 4 ? 1 : 6) {
        Seen s = {.threads = threads};
        Pool *p = pool_open(threads, NULL);
        assert_non_null(p);
        assert_int_equal(pool_threads(p), threads);
        for (int round = 1; round <= 200; round++) {
            pool_run(p, note, &s);
            for (int i = 0; i < threads; i++)
                if (atomic_load(&s.runs[i]) != round)
                    fail_msg("thread %d of %d ran %d times in %d rounds", i, threads, atomic_load(&s.runs[i]),
                             round);
            if (round % 50 == 0) rest(3000); // long enough for workers to fall asleep
        }
        assert_int_equal(atomic_load(&s.wrong), 0);
        pool_close(p);
    }
}

// A thread stays in a signal's handler as it would off a processor: until it's let go, but at most so long.
enum { HELD_MOST_MS = 2000 };
static atomic_int held, let_go; // threads in the handler; whether they may leave it

static void hold(int signal) {
    (void)signal;
    atomic_fetch_add(&held, 1);
    for (int i = 0; i < HELD_MOST_MS && !atomic_load(&let_go); i++) rest(1000);
    atomic_fetch_sub(&held, 1);
}

static void name_thread(void *argument, int thread, int threads) {
    (void)threads;
    if (thread == 0) rest(3000); // the others have begun theirs before the caller helps
    ((pthread_t *)argument)[thread] = pthread_self();
}

static int processors(void) {
    Cores c;
    cores_find(&c);
    return c.count;
}

static void no_thread_is_without_a_processor(void **state) {
    (void)state;
    pthread_t ids[MOST];
    int most = processors() < MOST ? processors() : MOST;
    Pool *p = pool_open(MOST, NULL);
    for (int round = 0; round < 20; round++) {
        int different = 0;
        pool_run(p, name_thread, ids);
        for (int i = 0; i < MOST; i++) {
            bool seen = false;
            for (int j = 0; j < i; j++) seen = seen || pthread_equal(ids[i], ids[j]);
            different += !seen;
        }
        if (different > most) fail_msg("%d threads on %d processors", different, most);
    }
    pool_close(p);
}

static void a_thread_without_a_processor_is_not_waited_for(void **state) {
    (void)state;
    enum { THREADS = 3, ROUNDS = 5 };
    if (processors() == 1) skip();
    struct sigaction holding = {.sa_handler = hold}, before;
    sigaction(SIGUSR1, &holding, &before);
    for (int late = 1; late < THREADS; late++) {
        Seen s = {.threads = THREADS};
        pthread_t ids[THREADS];
        Pool *p = pool_open(THREADS, NULL);
        do pool_run(p, name_thread, ids);
        while (pthread_equal(ids[late], ids[0])); // the caller ran that slot on a busy machine
        atomic_store(&let_go, 0);
        assert_int_equal(pthread_kill(ids[late], SIGUSR1), 0);
        while (!atomic_load(&held)) rest(100);
        for (int round = 0; round < ROUNDS; round++) pool_run(p, note, &s);
        if (!atomic_load(&held))
            fail_msg("thread %d was held: tasks wanted before it's let go, not after", late);
        atomic_store(&let_go, 1);
        while (atomic_load(&held)) rest(100);
        for (int round = 0; round < ROUNDS; round++) pool_run(p, note, &s);
        for (int i = 0; i < THREADS; i++)
            if (atomic_load(&s.runs[i]) != 2 * ROUNDS)
                fail_msg("slot %d, thread %d held: run %d times, wanted %d", i, late, atomic_load(&s.runs[i]),
                         2 * ROUNDS);
        assert_int_equal(atomic_load(&s.wrong), 0);
        pool_close(p);
    }
    sigaction(SIGUSR1, &before, NULL);
}

static void note_late(void *argument, int thread, int threads) {
    if (thread > 0) rest(5000); // longer than the caller spins
    note(argument, thread, threads);
}

static void a_thread_inside_a_task_is_waited_for(void **state) {
    (void)state;
    Seen s = {.threads = 3};
    Pool *p = pool_open(3, NULL);
    for (int round = 1; round <= 3; round++) {
        pool_run(p, note_late, &s);
        for (int i = 0; i < 3; i++)
            if (atomic_load(&s.runs[i]) != round)
                fail_msg("slot %d: run %d times before the end of round %d", i, atomic_load(&s.runs[i]),
                         round);
    }
    pool_close(p);
}

typedef struct Lending {
    atomic_int caller; // its processor; -1: unknown
    bool by_worker, lent;
    cpu_set_t allowed; // to the worker, when its slot begins
} Lending;

static bool may_only_use(int processor) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1 &&
           CPU_ISSET((size_t)processor, &set);
}

static void be_stopped(void *argument, int thread, int threads) {
    Lending *l = argument;
    (void)threads;
    if (thread == 0) {
        rest(3000);
        atomic_store(&l->caller, sched_getcpu());
    }
    if (thread != 1 || atomic_load(&l->caller) >= 0) return; // the caller runs slot 1, too
    l->by_worker = sched_getaffinity(0, sizeof l->allowed, &l->allowed) == 0;
    l->lent = false;
    while (atomic_load(&l->caller) < 0) rest(100);
    for (int i = 0; i < HELD_MOST_MS && !l->lent; i++) {
        rest(1000);
        l->lent = may_only_use(atomic_load(&l->caller));
    }
}

static void a_stopped_thread_gets_the_callers_processor(void **state) {
    (void)state;
    if (processors() == 1) skip();
    Pool *p = pool_open(processors(), NULL);
    cpu_set_t before;
    CPU_ZERO(&before);
    for (int round = 0; round < 3; round++) {
        Lending l = {.by_worker = false};
        while (!l.by_worker) {
            atomic_store(&l.caller, -1);
            pool_run(p, be_stopped, &l);
        }
        assert_true(l.lent);
        if (round) assert_true(CPU_EQUAL(&l.allowed, &before)); // it's back on its own
        before = l.allowed;
    }
    pool_close(p);
}

static void counts_are_checked(void **state) {
    (void)state;
    Error e = {0};
    assert_null(pool_open(0, &e));
    assert_non_null(strstr(e.text, "cannot run 0 threads"));
    assert_null(pool_open(100000, &e));
    pool_close(NULL);
}

static void shares_cover(void **state) {
    (void)state;
    Random r = test_random(32);
    for (int round = 0; round < 2000; round++) {
        int n = test_between(&r, 0, 500), unit = test_between(&r, 1, 40), threads = test_between(&r, 1, 20),
            end = 0;
        for (int t = 0; t < threads; t++) {
            int from, to;
            pool_share(n, unit, t, threads, &from, &to);
            assert_int_equal(from, end);
            assert_true(to >= from && (from % unit == 0 || from == n));
            end = to;
        }
        assert_int_equal(end, n);
    }
}

enum { THINGS = 300 };

typedef struct Parts {
    Pool *pool;
    int n, least;
    atomic_int times[THINGS];
    atomic_int wrong, done;
    int late; // thread that takes one part and then waits for the others; -1: none
    int left; // whether there was one more for it
} Parts;

static bool note_part(Parts *p, int thread) {
    int from, to;
    if (!pool_take(p->pool, p->n, p->least, thread, &from, &to)) return false;
    if (from < 0 || to <= from || to > p->n) atomic_fetch_add(&p->wrong, 1);
    else
        for (int i = from; i < to; i++) atomic_fetch_add(&p->times[i], 1);
    return true;
}

static void take_parts(void *argument, int thread, int threads) {
    Parts *p = argument;
    if (thread == p->late) {
        note_part(p, thread);
        while (atomic_load(&p->done) < threads - 1) rest(100);
        p->left = note_part(p, thread);
        return;
    }
    while (note_part(p, thread)) {}
    atomic_fetch_add(&p->done, 1);
}

static void run_parts(Parts *p) {
    for (int i = 0; i < THINGS; i++) p->times[i] = 0;
    p->wrong = p->done = p->left = 0;
    pool_run(p->pool, take_parts, p);
    assert_int_equal(p->wrong, 0);
    for (int i = 0; i < THINGS; i++)
        if (p->times[i] != (i < p->n))
            fail_msg("thing %d of %d, at least %d at a time, %d threads: taken %d times", i, p->n, p->least,
                     pool_threads(p->pool), p->times[i]);
}

static void parts_are_taken_once(void **state) {
    (void)state;
    Random r = test_random(33);
    for (int threads = 1; threads <= MOST; threads += threads < 4 ? 1 : 6) {
        Parts p = {.pool = pool_open(threads, NULL), .late = -1};
        assert_non_null(p.pool);
        for (int round = 0; round < 20; round++) {
            p.n = test_between(&r, 0, THINGS);
            p.least = test_between(&r, 1, 40);
            run_parts(&p);
        }
        pool_close(p.pool);
    }
}

static void a_late_share_is_taken_by_others(void **state) {
    (void)state;
    if (processors() == 1) skip(); // one thread runs all
    for (int late = 0; late < 3; late++) {
        Parts p = {.pool = pool_open(3, NULL), .n = THINGS, .least = 1, .late = late};
        assert_non_null(p.pool);
        for (int round = 0; round < 3; round++) {
            run_parts(&p);
            assert_int_equal(p.left, 0);
        }
        pool_close(p.pool);
    }
}

static void cores_are_ours(void **state) {
    (void)state;
    Cores c;
    cpu_set_t allowed;
    bool seen[CORES_MAX] = {false};
    cores_find(&c);
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    assert_int_equal(c.count, CPU_COUNT(&allowed));
    assert_true(c.physical >= 1 && c.physical <= c.count);
    for (int i = 0; i < c.count; i++) {
        assert_true(CPU_ISSET((size_t)c.number[i], &allowed) && !seen[c.number[i]]);
        seen[c.number[i]] = true;
    }
    assert_int_equal(pool_cores(), c.physical);
}

static int may_use(void) {
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    return CPU_COUNT(&set);
}

// A pool of all cores pins its caller until it's closed; a smaller one doesn't.
static void caller_is_freed(void **state) {
    (void)state;
    int before = may_use(), cores = pool_cores();
    Pool *p = pool_open(cores, NULL);
    assert_int_equal(may_use(), 1);
    assert_int_equal(pool_cores(), cores); // a second pool finds all of them, too
    pool_close(p);
    assert_int_equal(may_use(), before);
    if (cores == 1) return;
    p = pool_open(cores - 1, NULL);
    assert_int_equal(may_use(), before);
    pool_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_run_once),
                                       cmocka_unit_test(a_thread_without_a_processor_is_not_waited_for),
                                       cmocka_unit_test(a_thread_inside_a_task_is_waited_for),
                                       cmocka_unit_test(no_thread_is_without_a_processor),
                                       cmocka_unit_test(a_stopped_thread_gets_the_callers_processor),
                                       cmocka_unit_test(counts_are_checked),
                                       cmocka_unit_test(shares_cover),
                                       cmocka_unit_test(parts_are_taken_once),
                                       cmocka_unit_test(a_late_share_is_taken_by_others),
                                       cmocka_unit_test(cores_are_ours),
                                       cmocka_unit_test(caller_is_freed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
