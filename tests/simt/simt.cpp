// Blocks one after another, threads in turns.
//
//      ready    threads that can go on, taken from the front (natural), the back (reversed) or anywhere
//      waiting  at the barrier, or in a collective of their warp; the last to come makes all others ready
//
// Invariant: a thread that has not left is running, ready or waiting. If none is ready and some wait, they
// wait for ever.
#include "tests/simt/simt.hpp"

#include "tests/simt/fiber.hpp"
#include "tests/simt/memory.hpp"
#include "tests/simt/settings.h"

#include <cstdarg>
#include <vector>

enum { THREADS_MAX = 1024, SHARED_MAX = 227 << 10, WARP = 32 };

SimtIndex threadIdx, blockIdx;
dim3 blockDim, gridDim;
SimtSettings simt_settings = {SIMT_NATURAL, 1, 0xff, false, false, -1, 0, false, 13000, -1};

struct Copy {
    void *to;
    const void *from;
    int group;
};

struct BulkCopy {
    void *to;
    const void *from;
    int bytes;
    SimtBarrier *barrier;
};

struct Later {
    std::function<void()> work;
    int group;
};

struct Thread {
    SimtIndex index;
    bool left, waited; // waited: for the launches in front
    const char *waits; // for what; NULL: for nothing
    std::vector<Copy> copies;
    int groups, groups_done; // of copies: committed, landed
    std::vector<Later> later;
    int later_groups;
    const SimtBarrier *at; // where it waits
};

struct Warp {
    SimtOp *op;
    void *lanes[WARP];
    int arrived;
};

static struct {
    Fiber *fibers; // (THREADS_MAX)
    Fiber host;    // the thread that launches
    Thread threads[THREADS_MAX];
    Warp warps[THREADS_MAX / WARP];
    int ready[THREADS_MAX]; // a ring
    unsigned first, ready_count;
    int count, live, current;
    int at_barrier;
    const char *barrier;
    const std::function<void()> *body;
    Guarded shared;
    size_t shared_bytes;
    unsigned long blocks, launches;
    bool early;           // this launch may begin early
    const void *constant; // and read this before it waits
    bool locked_out;      // this block cannot reach the rest before
    std::vector<BulkCopy> bulk;
} s;

static void die(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fprintf(stderr, "simt: ");
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, " (thread %d of block %u, %u)\n", s.current, blockIdx.x, blockIdx.y);
    abort();
}

// --- turns

static void make_ready(int thread) { s.ready[(s.first + s.ready_count++) % THREADS_MAX] = thread; }

static uint32_t draw(uint32_t below) {
    simt_settings.seed = simt_settings.seed * 1664525u + 1013904223u;
    return (simt_settings.seed >> 8) % below;
}

static int next_ready() {
    if (s.ready_count == 0) return -1;
    unsigned last = (s.first + s.ready_count - 1) % THREADS_MAX, at = s.first;
    s.ready_count--;
    if (simt_settings.order == SIMT_REVERSED) return s.ready[last];
    if (simt_settings.order == SIMT_RANDOM) at = (s.first + draw(s.ready_count + 1)) % THREADS_MAX;
    int thread = s.ready[at];
    s.ready[at] = s.ready[s.first];
    s.first = (s.first + 1) % THREADS_MAX;
    return thread;
}

static void go_on(int thread) {
    s.current = thread;
    threadIdx = s.threads[thread].index;
}

static void stuck() {
    for (int i = 0; i < s.count; i++)
        if (!s.threads[i].left) die("deadlock: thread %d waits for ever at %s", i, s.threads[i].waits);
}

// Gives the turn to whoever is ready; comes back when somebody has made the caller ready.
static void give_turn(bool last) {
    int self = s.current, next = next_ready();
    if (next < 0 && s.live) stuck();
    if (next == self) return;
    if (next >= 0) go_on(next);
    fiber_switch(&s.fibers[self], next >= 0 ? &s.fibers[next] : &s.host, last);
}

static void wait_for(const char *what) {
    s.threads[s.current].waits = what;
    give_turn(false);
}

// --- barriers and collectives

static const char WAITS_FOR_LAUNCHES[] = "the wait for the launches in front";

static void open_barrier() {
    if (s.locked_out && s.barrier == WAITS_FOR_LAUNCHES) device_reach_all();
    s.at_barrier = 0;
    for (int i = 0; i < s.count; i++)
        if (!s.threads[i].left) make_ready(i);
}

void simt_barrier(const char *place) {
    if (s.at_barrier && s.barrier != place)
        die("threads of a block are at different barriers: %s and %s", s.barrier, place);
    s.barrier = place;
    if (++s.at_barrier == s.live) open_barrier();
    wait_for(place);
}

void simt_wait_for_launches() {
    s.threads[s.current].waited = true;
    if (s.locked_out) simt_barrier(WAITS_FOR_LAUNCHES);
}

void simt_warp(SimtOp *op, void *lane) {
    int warp = s.current / WARP;
    Warp *w = &s.warps[warp];
    if (w->arrived && w->op != op) die("lanes of a warp are in different collectives");
    w->op = op;
    w->lanes[s.current % WARP] = lane;
    if (++w->arrived < WARP) {
        wait_for("a collective of its warp");
        return;
    }
    w->arrived = 0;
    op(w->lanes);
    for (int i = warp * WARP; i < (warp + 1) * WARP; i++)
        if (i != s.current) make_ready(i);
}

// --- copies

void simt_copy(void *to, const void *from) {
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16) die("a copy of 16 bytes is not aligned");
    Thread *t = &s.threads[s.current];
    memset(to, simt_settings.poison, 16);
    if (from) (void)*(const volatile char *)from; // now, where it may be out of reach
    t->copies.push_back({to, from, t->groups});
}

static size_t prefetched;
size_t simt_prefetched() { return prefetched; }
void simt_prefetch(const void *global, int bytes) {
    if ((uintptr_t)global % 16 || bytes % 16 || !device_holds(global, (size_t)bytes))
        die("a prefetch is not aligned, or not of one allocation");
    prefetched += (size_t)bytes;
}

void simt_copy_commit() { s.threads[s.current].groups++; }

void simt_copy_wait(int groups_left) {
    Thread *t = &s.threads[s.current];
    size_t n = 0;
    for (; n < t->copies.size() && t->copies[n].group < t->groups - groups_left; n++) {
        if (t->copies[n].from) memcpy(t->copies[n].to, t->copies[n].from, 16);
        else memset(t->copies[n].to, 0, 16);
    }
    t->copies.erase(t->copies.begin(), t->copies.begin() + (long)n);
}

// --- barriers that count bytes

enum { OPEN = 0xb7 };

static void wake(const SimtBarrier *b) {
    for (int i = 0; i < s.count; i++)
        if (s.threads[i].at == b) {
            s.threads[i].at = nullptr;
            make_ready(i);
        }
}

static void end_phase(SimtBarrier *b) {
    if (b->left || b->bytes) return;
    b->phase ^= 1;
    b->left = b->arrivals;
    wake(b);
}

void simt_barrier_open(SimtBarrier *b, int arrivals) {
    *b = {0, (unsigned char)arrivals, (unsigned char)arrivals, OPEN, 0};
}

static void check_open(const SimtBarrier *b) {
    if (b->open != OPEN) die("a barrier in shared memory is used before it is opened");
}

void simt_barrier_arrive(SimtBarrier *b, int bytes) {
    check_open(b);
    if (b->left == 0) die("more arrive at a barrier in shared memory than it was opened for");
    b->left--;
    b->bytes += bytes;
    end_phase(b);
}

// As late as they may be: when someone waits for them.
static void land(SimtBarrier *b) {
    std::vector<BulkCopy> rest;
    for (const BulkCopy &c : s.bulk)
        if (c.barrier != b) rest.push_back(c);
        else {
            memcpy(c.to, c.from, (size_t)c.bytes);
            b->bytes -= c.bytes;
        }
    s.bulk.swap(rest);
    end_phase(b);
}

void simt_barrier_wait(SimtBarrier *b, int phase) {
    check_open(b);
    while (b->phase == phase) {
        land(b);
        if (b->phase != phase) return;
        s.threads[s.current].at = b;
        wait_for("a barrier in shared memory");
    }
}

void simt_copy_bulk(void *to, const void *from, int bytes, SimtBarrier *b) {
    check_open(b);
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16 || bytes % 16 || bytes <= 0)
        die("a copy of %d bytes is not aligned to 16", bytes);
    memset(to, simt_settings.poison, (size_t)bytes);
    (void)*(const volatile char *)from; // now, where it may be out of reach
    (void)((const volatile char *)from)[bytes - 1];
    s.bulk.push_back({to, from, bytes, b});
    wake(b);
}

// --- what a warpgroup multiplies

void simt_later(std::function<void()> work) {
    Thread *t = &s.threads[s.current];
    t->later.push_back({std::move(work), t->later_groups});
}
void simt_group_end() { s.threads[s.current].later_groups++; }
void simt_groups_wait(int groups_left) {
    Thread *t = &s.threads[s.current];
    size_t n = 0;
    for (; n < t->later.size() && t->later[n].group < t->later_groups - groups_left; n++) t->later[n].work();
    t->later.erase(t->later.begin(), t->later.begin() + (long)n);
}

// --- blocks

void *simt_shared(size_t bytes) {
    if (bytes > s.shared_bytes)
        die("a kernel uses %zu bytes of shared memory, launched with %zu", bytes, s.shared_bytes);
    return s.shared.data;
}

static void thread_main() {
    fiber_arrived(&s.fibers[s.current]);
    (*s.body)();
    Thread *t = &s.threads[s.current];
    if (s.early && !t->waited) die("a thread leaves a kernel that begins early, and has not waited");
    if (!t->copies.empty()) die("a thread leaves with asynchronous copies in flight");
    if (!t->later.empty()) die("a thread leaves while its warpgroup multiplies");
    if (s.warps[s.current / WARP].arrived) die("a lane leaves while others of its warp are in a collective");
    t->left = true;
    s.live--;
    if (s.live && s.at_barrier == s.live) open_barrier();
    give_turn(true);
    abort();
}

static void run_block(unsigned number, bool locked_out) {
    blockIdx = {number % gridDim.x, number / gridDim.x % gridDim.y, number / gridDim.x / gridDim.y};
    if (s.shared_bytes) memset(s.shared.data, simt_settings.poison, s.shared_bytes);
    s.live = s.count;
    s.at_barrier = 0;
    s.first = s.ready_count = 0;
    for (int i = 0; i < s.count; i++) {
        Thread *t = &s.threads[i];
        t->index = {(unsigned)i % blockDim.x, (unsigned)i / blockDim.x % blockDim.y,
                    (unsigned)i / blockDim.x / blockDim.y};
        t->left = t->waited = false;
        t->groups = t->later_groups = 0;
        t->at = nullptr;
        t->copies.clear();
        fiber_begin(&s.fibers[i], thread_main);
        make_ready(i);
    }
    for (int i = 0; i < s.count / WARP; i++) s.warps[i].arrived = 0;
    s.locked_out = locked_out;
    if (locked_out) device_reach_only(s.constant);
    int first = next_ready();
    go_on(first);
    fiber_switch(&s.host, &s.fibers[first], false);
    if (!s.bulk.empty()) die("a block ends with copies in flight");
    s.blocks++;
}

// Blocks too come in the order asked for: none may count on another. The first and the last to come stand for all
// where a launch begins early: taking memory away from each costs more than the kernels.
static void run_blocks() {
    unsigned n = gridDim.x * gridDim.y * gridDim.z;
    std::vector<unsigned> order(n);
    for (unsigned i = 0; i < n; i++) order[i] = simt_settings.order == SIMT_REVERSED ? n - 1 - i : i;
    if (simt_settings.order == SIMT_RANDOM)
        for (unsigned i = n; i > 1; i--) std::swap(order[i - 1], order[draw(i)]);
    for (unsigned i = 0; i < n; i++)
        run_block(order[i], s.early && simt_settings.early && (i == 0 || i == n - 1));
}

static void use_shared(size_t bytes) {
    if (bytes == s.shared_bytes) return;
    guarded_close(&s.shared);
    s.shared = guarded_open(bytes);
    s.shared_bytes = bytes;
}

void simt_begin_early(const void *constant) {
    s.early = true;
    s.constant = constant;
}

void simt_launch(dim3 grid, dim3 block, size_t shared, const std::function<void()> &thread) {
    size_t threads = (size_t)block.x * block.y * block.z, blocks = (size_t)grid.x * grid.y * grid.z;
    s.current = 0;
    blockIdx = {0, 0, 0};
    if (threads == 0 || threads > THREADS_MAX || threads % WARP)
        die("%zu threads a block: a multiple of %d up to %d can be launched", threads, WARP, THREADS_MAX);
    if (blocks == 0 || grid.y > 65535 || grid.z > 65535)
        die("a grid of %u, %u, %u cannot be launched", grid.x, grid.y, grid.z);
    if (shared > SHARED_MAX) die("%zu bytes of shared memory: a block has %d", shared, SHARED_MAX);
    if (!s.fibers) s.fibers = fibers_open(THREADS_MAX);
    gridDim = grid;
    blockDim = block;
    s.count = (int)threads;
    s.body = &thread;
    s.launches++;
    use_shared(shared);
    run_blocks();
    s.early = false;
}

unsigned long simt_blocks() { return s.blocks; }
unsigned long simt_launches() { return s.launches; }
