// A follower has one model open, and methods by rank 0's names for them. A new model closes them all.
#include "harness/ranks/ranks.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/decode/call.h"
#include "engine/engine.h"
#include "harness/cli/version.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const ranks_over_names[] = {"none", "mpi", NULL};
_Static_assert(sizeof(RanksOver) == sizeof(int), "a choice is stored as an int");

// --- joining

static bool same_program(const Team *team, Error *e) {
    enum { SIZE = 128 };
    char mine[SIZE] = "", *all = mem_new((size_t)team->count, SIZE);
    snprintf(mine, SIZE, "%s", version_text());
    bool ok = team->gather(team->self, mine, all, SIZE, e);
    for (int i = 1; ok && i < team->count; i++)
        if (memcmp(all, all + i * SIZE, SIZE) != 0)
            ok = error_input(e, "rank 0 is outpace %s, rank %d is %s: start the same program on all machines",
                             all, i, all + i * SIZE);
    mem_free(all);
    return ok;
}

bool processes_join(Processes *p, RanksOver over, Error *e) {
    *p = (Processes){0};
    if (over == RANKS_NONE) return true;
    p->mpi = mpi_join(e);
    if (!p->mpi) return false;
    p->team = mpi_team(p->mpi);
    if (p->team.count > TREE_MAX_PARTS)
        error_input(e, "%d processes, at most %d share a step", p->team.count, TREE_MAX_PARTS);
    else if (same_program(&p->team, e)) return true;
    mpi_leave(p->mpi);
    p->mpi = NULL;
    return false;
}

void processes_leave(Processes *p) {
    if (p->mpi && p->team.rank == 0) call_quit(&p->team, NULL);
    mpi_leave(p->mpi);
    *p = (Processes){0};
}

bool processes_fit(const Processes *p, const Method *m, Error *e) {
    RankLimits most;
    int ranks = m->info->ranks ? m->info->ranks(m->self, &most) : 1;
    if (!p->mpi || ranks == p->team.count) return true;
    return error_input(e,
                       "--ranks mpi: method '%s' has %d rank%s, but %d process%s were started; the method "
                       "is lookahead:ranks=R, the launcher mpirun -n R",
                       m->info->name, ranks, ranks == 1 ? "" : "s", p->team.count,
                       p->team.count == 1 ? "" : "es");
}

// --- following

typedef struct Known {
    uint64_t name;
    Method method;
} Known;

typedef struct Follower {
    const Team *team;
    Engine engine;
    Text opening; // of the engine; empty: none is open
    Known *known; // (count)
    size_t capacity;
    int count;
} Follower;

static void forget(Follower *f, int i) {
    method_close(&f->known[i].method);
    f->known[i] = f->known[--f->count];
}

static int find(const Follower *f, uint64_t name) {
    int i = 0;
    while (i < f->count && f->known[i].name != name) i++;
    return i;
}

static void close_model(Follower *f) {
    while (f->count) forget(f, 0);
    if (f->opening.length) engine_close(&f->engine);
    text_clear(&f->opening);
}

static bool open_model(Follower *f, const CallView *v, Error *e) {
    size_t n = v->call.opening_bytes;
    if (f->opening.length == n && memcmp(f->opening.data, v->opening, n) == 0) return true;
    close_model(f);
    if (!engine_open_shared(&f->engine, v->opening, f->team, mpi_local_rank(), e)) return false;
    text_add(&f->opening, v->opening, n);
    return true;
}

static Method *find_method(Follower *f, const CallView *v, Error *e) {
    const Call *c = &v->call;
    int i = find(f, c->method);
    if (i < f->count && c->first) forget(f, i), i = f->count;
    if (i < f->count) return &f->known[i].method;
    MethodEnv env = call_env(v, &f->engine.session, f->engine.model.eos, f->engine.model.eos_count);
    mem_grow(&f->known, &f->capacity, (size_t)f->count + 1, sizeof *f->known);
    f->known[i].name = c->method;
    if (!method_open(&f->known[i].method, v->text, &env, e)) return NULL;
    f->count++;
    return &f->known[i].method;
}

static bool serve(Follower *f, const Text *message, bool *quit, Error *e) {
    LOCAL(call_release) CallView v = {0};
    if (!call_read(message, &v, e)) return false;
    *quit = v.call.kind == CALL_QUIT;
    if (v.call.kind == CALL_ANSWER) {
        DecodeResult result = {0};
        Method *m = open_model(f, &v, e) ? find_method(f, &v, e) : NULL;
        Error why = {0}; // a failure after all were ready has reached rank 0, which reports it
        if (ranks_agree(f->team, m != NULL, m ? &why : e) &&
            decode(&f->engine.session, m, v.prompt, v.call.prompt_count, &v.call.o, &result, &why))
            decode_result_release(&result);
    }
    int i = find(f, v.call.method);
    if (v.call.kind == CALL_CLOSE && i < f->count) forget(f, i);
    return true;
}

// Rank 0 decides when all end; if it dies, the launcher kills the others.
bool processes_follow(Processes *p, Error *e) {
    Follower f = {.team = &p->team};
    LOCAL_TEXT message = {0};
    bool quit = false, ok = true;
    Error why = {0};
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, SIG_IGN); // Slurm's, before a time limit
    while (ok && !quit) ok = p->team.tell(p->team.self, &message, e) && serve(&f, &message, &quit, &why);
    if (!ok && why.kind != ERROR_NONE) *e = why;
    close_model(&f);
    text_release(&f.opening);
    mem_free(f.known);
    processes_leave(p);
    return ok;
}

// --- the link between ranks -----------------------------------------------------------------------------

// A gather is timed on every rank. The last one to arrive waits least, so a gather's cost is the least of the
// ranks' times; its median over the repetitions counts.

enum { SMALL = 8, LARGE = 1 << 20, SMALL_TIMES = 4000, LARGE_TIMES = 100 };

static int compare(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool time_gathers(const Team *team, size_t bytes, int times, double *median, Error *e) {
    Clock clock = clock_monotonic();
    size_t ranks = (size_t)team->count, n = (size_t)times;
    LOCAL_MEMORY char *mine = mem_new(bytes, 1), *all = mem_new(bytes, ranks);
    LOCAL_MEMORY double *took = mem_new(n, sizeof *took), *of_all = mem_new(n * ranks, sizeof *of_all);
    bool ok = true;
    for (int i = 0; ok && i < times; i++) {
        double start = clock_now(clock);
        ok = team->gather(team->self, mine, all, bytes, e);
        took[i] = clock_now(clock) - start;
    }
    ok = ok && team->gather(team->self, took, of_all, n * sizeof *took, e);
    for (size_t i = 0; i < n; i++)
        for (size_t rank = 0; rank < ranks; rank++) took[i] = fmin(took[i], of_all[rank * n + i]);
    qsort(took, n, sizeof *took, compare);
    *median = took[n / 2];
    return ok;
}

bool link_measure(const Team *team, LinkSpeed *out, Error *e) {
    double large;
    if (!time_gathers(team, SMALL, SMALL_TIMES, &out->gather_s, e) ||
        !time_gathers(team, LARGE, LARGE_TIMES, &large, e))
        return false;
    double hops = ceil(log2(team->count)), more = fmax(large - out->gather_s, 1e-9);
    out->latency_s = out->gather_s / fmax(hops, 1);
    out->bytes_per_s = (double)team->count * LARGE / more;
    return true;
}
