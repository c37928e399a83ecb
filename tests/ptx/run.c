// Warps, blocks, launches; what is counted; the critical path.
//
// The critical path is reckoned, not simulated: each warp issues its instructions in order, one a cycle, each
// when its operands are there, but that within a basic block up to WINDOW of them pass one that waits, since
// machine code has loads moved to the front; latencies are constants (forms.c, memory.c). Warps of a block
// meet at barriers. Warps that compete for units, memory that is busy and blocks that share a processor are
// not in it.
#include "tests/ptx/memory.h"
#include "tests/simt/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KERNELS = 256 };
static const uint64_t ENDLESS = (uint64_t)1 << 23; // more instructions of one warp than anybody believes

PtxSettings ptx_settings = {.checked = true, .processors = 4, .shared_kb = 227};

static struct {
    struct {
        const Kernel *kernel;
        Counters counters;
    } kept[MOST_KERNELS];
    size_t kernels;
    Counters *now;
    const Instruction *at;                  // the one that runs
    int latency;                            // .. if memory's
    uint32_t epochs, random, times, groups; // times: of blocks that have ended; groups: likewise
    uint64_t blocks;
    unsigned char *registers, *shared; // kept from launch to launch: they are large
    size_t register_bytes, shared_bytes;
} m;

void machine_fault(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("ptx: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

void fault(const Warp *w, int lane, const char *format, ...) {
    const Block *b = w->block;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    machine_fault("%s (%s:%d), block %u, warp %d, lane %d: %s", b->kernel->name, b->kernel->file,
                  m.at ? m.at->line : 0, b->number + (uint32_t)w->rank, w->number - w->first, lane, text);
}

Counters *machine_counters(void) { return m.now; }
void machine_latency(int cycles) { m.latency = cycles; }
uint32_t machine_epoch(void) { return ++m.epochs; }
uint32_t machine_random(void) {
    m.random = m.random * 1664525u + 1013904223u;
    return m.random >> 8;
}
uint64_t ptx_blocks(void) { return m.blocks; }

void run_nothing(Warp *w, const Instruction *o, uint32_t lanes) { (void)w, (void)o, (void)lanes; }
void run_launch_wait(Warp *w, const Instruction *o, uint32_t lanes) {
    (void)o;
    w->waited |= lanes;
}

// --- one warp

static void come_to(uint64_t *at, uint64_t other) {
    if (other > *at) *at = other;
}

// Nothing moves across what ends a basic block, or what waits for copies and fences.
static bool holds_back(const Instruction *o) {
    bool flows = o->flow == FLOW_NEXT || o->flow == FLOW_COLLECTIVE;
    return !flows || o->count == COUNT_COPY || o->count == COUNT_FENCE || o->count == COUNT_ATOMIC;
}

static void reckon_before(Warp *w, const Instruction *o) {
    uint64_t *begun = &w->begun[w->issued++ % WINDOW];
    m.now->warp[o->count]++;
    w->now++;
    come_to(&w->now, *begun);
    *begun = w->now;
    for (int i = 0; i < o->sources; i++)
        if (!o->s[i].constant) come_to(begun, w->ready[o->s[i].id]);
    if (o->guarded) come_to(begun, w->ready[o->guard.id]);
    come_to(&w->latest, *begun);
    if (holds_back(o)) w->now = *begun = w->latest;
    w->begins = *begun;
    m.latency = 0;
}
static void reckon_behind(Warp *w, const Instruction *o) {
    uint64_t then = w->begins + (uint64_t)(o->latency < 0 ? m.latency : o->latency);
    for (int i = 0; i < o->results; i++) w->ready[o->d[i].id] = then;
    if (o->count == COUNT_FENCE) w->now = then;
}

// Nearly always all that is read is known, and so is what is made of it. An operand that is not there is
// register 0, which is known.
static void follow(Warp *w, const Instruction *o, uint32_t lanes) {
    uint32_t *u = w->unknown, unknown = u[o->s[0].id] | u[o->s[1].id] | u[o->s[2].id];
    for (int i = 3; i < o->sources; i++) unknown |= u[o->s[i].id];
    if (unknown & lanes) {
        known_pass(w, o, lanes);
        return;
    }
    u[o->d[0].id] &= ~lanes;
    for (int i = 1; i < o->results; i++) u[o->d[i].id] &= ~lanes;
}

static void begin(Warp *w, const Instruction *o) {
    m.at = o;
    if (++w->executed > ENDLESS) fault(w, 0, "does not come to an end");
    if (ptx_settings.counted) reckon_before(w, o);
}
static void execute(Warp *w, const Instruction *o, uint32_t lanes) {
    if (ptx_settings.checked) follow(w, o, lanes);
    if (w->tensor.busy && lanes && ptx_settings.checked) warpgroups_check(w, o);
    if (lanes) o->execute(w, o, lanes);
    if (ptx_settings.counted) reckon_behind(w, o);
}

static uint32_t on(const Warp *w, const Instruction *o, uint32_t lanes) {
    if (!o->guarded) return lanes;
    if (ptx_settings.checked && w->unknown[o->guard.id] & lanes)
        fault(w, __builtin_ctz(w->unknown[o->guard.id] & lanes),
              "asks for a predicate that nobody has written");
    uint32_t p = *(const uint32_t *)operand_at(w, &o->guard);
    return lanes & (o->negated ? ~p : p);
}

static uint32_t members(const Warp *w, const Instruction *o, uint32_t lanes) {
    return (uint32_t)operand_lane(w, &o->members, __builtin_ctz(lanes));
}

static uint32_t lanes_at(const Warp *w, uint32_t among, uint32_t pc) {
    uint32_t lanes = 0;
    for (int l = 0; l < LANES; l++) lanes |= (uint32_t)(among >> l & 1 && w->pc[l] == pc) << l;
    return lanes;
}
static uint32_t lowest(const Warp *w, uint32_t among) {
    uint32_t low = UINT32_MAX;
    for (int l = 0; l < LANES; l++)
        if (among >> l & 1 && w->pc[l] < low) low = w->pc[l];
    return low;
}
static void go_to(Warp *w, uint32_t lanes, uint32_t pc) {
    for (int l = 0; l < LANES; l++)
        if (lanes >> l & 1) w->pc[l] = pc;
}

// Nearly always a collective names the lanes that come to it together, and nobody waits.
static bool alone(const Warp *w, const Instruction *o, uint32_t lanes) {
    return o->flow > FLOW_BARRIER && !w->waiting && members(w, o, lanes) == lanes;
}

// A collective: runs when all lanes that it names are there, else those that are there wait. True: it ran.
static bool meet(Warp *w, const Instruction *o, uint32_t pc, uint32_t lanes) {
    uint32_t here = lanes | lanes_at(w, w->waiting, pc),
             wanted = o->flow <= FLOW_BARRIER ? ALL : members(w, o, lanes);
    m.at = o;
    if (wanted & ~w->alive)
        fault(w, __builtin_ctz(lanes), "%s waits for lanes that have left (%#x)",
              o->flow <= FLOW_BARRIER ? "a barrier" : "a collective", wanted & ~w->alive);
    if (lanes & ~wanted)
        fault(w, __builtin_ctz(lanes & ~wanted), "takes part in a collective that does not name it");
    if (wanted & ~here) {
        w->waiting |= here;
        return false;
    }
    w->waiting &= ~here;
    begin(w, o);
    execute(w, o, wanted);
    if (o->flow == FLOW_WARP_SYNC) warp_meets(w);
    go_to(w, here, pc + 1);
    return true;
}

// From pc on for these lanes, until they branch apart, meet others at `next`, or come to something
// collective.
static void run_straight(Warp *w, uint32_t pc, uint32_t lanes, uint32_t next) {
    const Instruction *code = w->block->kernel->code;
    while (pc != next) {
        const Instruction *o = &code[pc];
        uint32_t active = on(w, o, lanes);
        m.at = o;
        if (o->ready && active && !o->ready(w, o, active)) {
            w->stalled |= lanes;
            break;
        }
        if (o->flow >= FLOW_BARRIER) {
            if (active != lanes)
                fault(w, __builtin_ctz(lanes & ~active), "a collective behind a condition that differs");
            if (alone(w, o, lanes)) {
                begin(w, o);
                execute(w, o, lanes);
                if (o->flow == FLOW_WARP_SYNC) warp_meets(w);
                pc++;
                continue;
            }
            go_to(w, lanes, pc);
            meet(w, o, pc, lanes);
            return;
        }
        begin(w, o);
        if (o->flow == FLOW_NEXT) {
            execute(w, o, active);
            pc++;
            continue;
        }
        w->now += BRANCH_CYCLES;
        if (o->flow == FLOW_EXIT) {
            memory_leave(w, active);
            w->alive &= ~active;
            cluster_leave(w);
            go_to(w, lanes & ~active, pc + 1);
            return;
        }
        if (!active) {
            pc++;
            continue;
        }
        if (active != lanes) {
            go_to(w, active, o->target);
            go_to(w, lanes & ~active, pc + 1);
            return;
        }
        pc = o->target;
        if (next != UINT32_MAX && pc > next) break;
    }
    go_to(w, lanes, pc);
}

// Until the warp is at a barrier of its block, or at what isn't ready, or has left. False: it could do
// nothing.
static bool run_warp(Warp *w) {
    uint64_t before = w->executed;
    w->stalled = 0;
    while (w->alive && w->barrier < 0) {
        uint32_t free_lanes = w->alive & ~w->waiting & ~w->stalled;
        if (!free_lanes && w->stalled) break;
        if (!free_lanes) {
            uint32_t pc = lowest(w, w->waiting);
            const Instruction *o = &w->block->kernel->code[pc];
            m.at = o;
            fault(w, __builtin_ctz(lanes_at(w, w->waiting, pc)),
                  "divergent collective: lanes %#x of %#x are here, the others wait elsewhere",
                  lanes_at(w, w->waiting, pc), w->alive);
        }
        uint32_t pc = lowest(w, free_lanes), lanes = lanes_at(w, free_lanes, pc);
        run_straight(w, pc, lanes, lowest(w, free_lanes & ~lanes));
    }
    return w->executed != before;
}

// --- one block

// The order of threads and blocks that a test set: 0, 1, ..; the other way round; or shuffled.
static void put_order(uint32_t *order, uint32_t count_of) {
    for (uint32_t i = 0; i < count_of; i++)
        order[i] = simt_settings.order == SIMT_REVERSED ? count_of - 1 - i : i;
    for (uint32_t i = count_of; simt_settings.order == SIMT_RANDOM && i > 1; i--) {
        uint32_t j = machine_random() % i, kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}

static void begin_warp(Warp *w) {
    const Kernel *k = w->block->kernel;
    const Launch *l = w->block->launch;
    const uint32_t n = w->block->number + (uint32_t)w->rank, x = l->grid[0], y = l->grid[1];
    const uint32_t block[3] = {n % x, n / x % y, n / x / y};
    uint32_t first[SPECIALS] = {
        0,          0,          0,          block[0],   block[1],          block[2],
        l->grid[0], l->grid[1], l->grid[2], l->threads, (uint32_t)w->rank, (uint32_t)l->cluster,
        0};
    if (ptx_settings.counted) memset(w->ready, 0, k->registers * sizeof *w->ready);
    memset(w->unknown, 0xff, k->registers * sizeof *w->unknown);
    memset(w->unknown, 0, SPECIALS * sizeof *w->unknown);
    memset(w->pc, 0, sizeof w->pc);
    memset(w->closed, 0, sizeof w->closed);
    if (k->local_bytes) memset(w->local, 0xfe, LANES * (size_t)k->local_bytes);
    w->alive = (uint32_t)(w->number - w->first) < w->block->each ? ALL : 0;
    w->waiting = w->waited = w->carry = w->copy_count = 0;
    w->stalled = w->denied = w->parted = w->show_count = 0;
    w->barrier = -1, w->came = 0, w->most_registers = 0;
    w->time = w->block->begun;
    past_begin(&w->past, w->time);
    warpgroups_begin(w);
    w->executed = w->mmas = w->flight = w->most_flight = 0;
    w->now = w->latest = 0;
    memset(w->begun, 0, sizeof w->begun);
    w->constants = k->constants;
    for (int i = 0; i < SPECIALS; i++)
        for (int t = 0; t < LANES; t++)
            ((uint32_t *)operand_at(w, &k->special[i]))[t] =
                i ? first[i] : (uint32_t)((w->number - w->first) * LANES + t);
}

// No warp can go on, and nothing is on its way.
static void stuck(Block *b) {
    for (uint32_t i = 0; i < b->warp_count; i++) {
        Warp *w = &b->warps[i];
        if (!w->stalled) continue;
        uint32_t pc = lowest(w, w->stalled);
        const Instruction *o = m.at = &b->kernel->code[pc];
        if (o->ready == cluster_ready) cluster_stuck(w);
        if (o->ready == mbarrier_ready) mbarrier_stuck(w, o, __builtin_ctz(lanes_at(w, w->stalled, pc)));
        fault(w, 0, "waits for wgmma that not all warps of the warpgroup come to");
    }
    for (uint32_t i = 0; i < b->warp_count; i++) {
        const Warp *w = &b->warps[i];
        if (w->barrier < 0) continue;
        m.at = b->meetings[w->barrier].at;
        fault(w, 0, "a barrier that a warp of the block has left, or waits beyond");
    }
}

static void begin_block(Block *b) {
    b->epoch = machine_epoch();
    b->acquired = NULL;
    b->acquired_count = b->acquired_space = 0;
    b->line_count = 0;
    b->begun = m.times, b->groups = m.groups;
    cluster_begin(b);
    for (int i = 0; i < b->ranks * BARRIERS; i++) {
        b->meetings[i] = (Meeting){0};
        past_begin(&b->meetings[i].past, b->begun);
    }
    for (int i = 0; i < MOST_MBARRIERS; i++) b->mbarriers[i].live = false;
    memory_begin_block(b);
    for (uint32_t i = 0; i < b->warp_count; i++) begin_warp(&b->warps[i]);
}

// Until all of its warps have left.
static void run_block(Block *b) {
    uint32_t order[LANES];
    for (;;) {
        bool moved = false;
        uint32_t left = 0;
        put_order(order, b->warp_count);
        for (uint32_t i = 0; i < b->warp_count; i++) moved |= run_warp(&b->warps[order[i]]);
        for (uint32_t i = 0; i < b->warp_count; i++) left += !b->warps[i].alive;
        if (left == b->warp_count) return;
        if (!moved && !bulk_arrives(b)) stuck(b);
    }
}

static void end_block(Block *b) {
    uint64_t end = 0, flight[MOST_RANKS] = {0};
    for (uint32_t i = 0; i < b->warp_count; i++) {
        const Warp *w = &b->warps[i];
        if (w->executed > m.now->longest) m.now->longest = w->executed;
        if (w->mmas > m.now->longest_mma) m.now->longest_mma = w->mmas;
        come_to(&end, w->now);
        come_to(&m.now->flight, flight[w->rank] += w->most_flight);
        if (w->time >= m.times) m.times = w->time + 1;
        if (w->tensor.closed > m.groups) m.groups = w->tensor.closed;
    }
    for (int i = 0; i < MOST_MBARRIERS; i++)
        if (b->mbarriers[i].done >= m.times) m.times = b->mbarriers[i].done + 1;
    barriers_end_block(b);
    cluster_end(b);
    come_to(&m.now->path, end);
    m.now->blocks += (uint32_t)b->ranks;
    m.blocks += (uint32_t)b->ranks;
    memory_end_block(b);
}

// --- launches

static Counters *counters_of(const Kernel *k) {
    size_t i = 0;
    while (i < m.kernels && m.kept[i].kernel != k) i++;
    if (i == MOST_KERNELS) machine_fault("too many kernels");
    if (i == m.kernels) m.kept[m.kernels++].kernel = k;
    return &m.kept[i].counters;
}
static void add_counters(Counters *to,
                         const Counters *c) { // all are uint64_t; from `longest` on the most counts
    uint64_t *sum = (uint64_t *)to;
    const uint64_t *one = (const uint64_t *)c;
    for (size_t i = 0; i < sizeof *c / sizeof *sum; i++)
        if (i < offsetof(Counters, longest) / sizeof *sum) sum[i] += one[i];
        else if (one[i] > sum[i]) sum[i] = one[i];
}
const Counters *ptx_counters(const char *part_of_name) {
    for (size_t i = 0; i < m.kernels; i++)
        if (m.kept[i].counters.launches && strstr(m.kept[i].kernel->name, part_of_name))
            return &m.kept[i].counters;
    return NULL;
}
void ptx_counters_clear(void) {
    for (size_t i = 0; i < m.kernels; i++) memset(&m.kept[i].counters, 0, sizeof m.kept[i].counters);
}

static unsigned char *kept(unsigned char **area, size_t *has, size_t bytes) {
    if (*has >= bytes && *area) return *area;
    free(*area);
    *has = (bytes + 4095) / 4096 * 4096 + 4096;
    *area = aligned_alloc(4096, *has);
    if (!*area) machine_fault("no memory");
    memset(*area, 0xfe, *has); // registers begin with whatever was there
    return *area;
}

void ptx_launch(Launch *l) {
    const Kernel *k = l->kernel;
    if (k->refused) machine_fault("%s (%s): %s", k->name, k->file, k->refused);
    if (l->threads % LANES || l->threads > 1024 ||
        (k->most_threads && l->threads > (uint32_t)k->most_threads))
        machine_fault("%s: %u threads a block", k->name, l->threads);
    uint32_t each = l->threads / LANES, ranks = (uint32_t)l->cluster,
             stride = ranks > 1 ? (each + 3) / 4 * 4 : each;
    uint32_t clusters = l->grid[0] * l->grid[1] * l->grid[2] / ranks, warps = (ranks - 1) * stride + each;
    if (ranks > MOST_RANKS || warps > WARPS)
        machine_fault("%s: clusters of %u blocks of %u threads don't fit this machine", k->name, ranks,
                      l->threads);
    uint32_t *order = malloc((clusters + 1) * sizeof *order);
    size_t own_bytes = (k->register_bytes + 63) / 64 * 64, shared = k->shared_bytes + l->shared;
    Warp *w = calloc(warps, sizeof *w);
    unsigned char *registers = kept(&m.registers, &m.register_bytes, warps * own_bytes);
    unsigned char *local = malloc((size_t)warps * LANES * k->local_bytes + 1);
    uint64_t *ready = malloc((size_t)warps * k->registers * sizeof *ready + 1);
    uint32_t *unknown = malloc((size_t)warps * k->registers * sizeof *unknown + 1);
    if (!order || !w || !local || !ready || !unknown) machine_fault("no memory");
    Block b = {.kernel = k,
               .launch = l,
               .shared =
                   kept(&m.shared, &m.shared_bytes, (ranks - 1) * SHARED_SPAN + (shared + 127) / 128 * 128),
               .shared_bytes = shared,
               .warps = w,
               .warp_count = warps,
               .ranks = (int)ranks,
               .stride = stride,
               .each = each};
    for (uint32_t i = 0; i < warps; i++) {
        w[i].block = &b, w[i].number = (int)i;
        w[i].rank = (int)(i / stride), w[i].first = (int)(i / stride * stride);
        w[i].registers = registers + (size_t)i * own_bytes;
        w[i].local = local + (size_t)i * LANES * k->local_bytes;
        w[i].ready = ready + (size_t)i * k->registers;
        w[i].unknown = unknown + (size_t)i * k->registers;
        if (!k->tensor) continue;
        w[i].tensor.busy = calloc(k->registers, sizeof *w[i].tensor.busy);
        w[i].tensor.wrote = calloc(k->registers, sizeof *w[i].tensor.wrote);
        if (!w[i].tensor.busy || !w[i].tensor.wrote) machine_fault("no memory");
    }
    m.random = simt_settings.seed;
    Counters own = {.launches = 1};
    m.now = &own;
    memory_begin_launch(l, clusters * ranks);
    put_order(order, clusters);
    for (uint32_t i = 0; i < clusters; i++) {
        uint32_t n = order[i] * ranks;
        if (ptx_settings.only && !ptx_settings.only(l, n)) continue;
        b.number = n;
        begin_block(&b);
        run_block(&b);
        end_block(&b);
    }
    add_counters(counters_of(k), &own);
    for (uint32_t i = 0; i < warps; i++) {
        const Multiplying *x = &w[i].tensor;
        free(w[i].copies), free(w[i].own), free(w[i].shows);
        free(x->busy), free(x->wrote), free(x->ended);
    }
    free(b.bulk);
    free(order), free(w), free(local), free(ready), free(unknown);
}
