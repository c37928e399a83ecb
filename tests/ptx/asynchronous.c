// Instructions of PTX that begin something and wait for it, decoded: barriers, mbarriers, bulk copies, wgmma.
#include "tests/ptx/reader.h"

#include <ctype.h>
#include <stdio.h>

typedef void Read(Reader *r, const char *opcode, const Argument *a, int count);

static Operand word_or(Reader *r, const Argument *a, int count, int i, uint64_t otherwise) {
    return i < count ? reader_source(r, a[i].word[0], 32) : reader_constant(r, otherwise, 32);
}
static Instruction *collective(Reader *r, Execute *execute, Count count, int latency) {
    Operand members = reader_constant(r, ALL, 32);
    Instruction *o = reader_emit(r, execute, count, latency);
    o->flow = FLOW_COLLECTIVE, o->members = members;
    return o;
}

// bar.sync id, threads
static void read_barrier(Reader *r, const char *opcode, const Argument *a, int count) {
    Operand id = word_or(r, a, count, 0, 0), threads = word_or(r, a, count, 1, 0);
    Instruction *o = reader_emit(r, run_barrier, COUNT_BARRIER, 0);
    o->flow = FLOW_BARRIER, o->more = opcode_has(opcode, "arrive") ? BARRIER_ARRIVE : BARRIER_SYNC;
    o->s[0] = id, o->s[1] = threads;
    o->sources = count > 1 ? 2 : 1;
}

static void read_cluster(Reader *r, const char *opcode, const Argument *a, int count) {
    bool wait = opcode_begins(opcode, "barrier.cluster.wait");
    (void)a, (void)count;
    if (opcode_has(opcode, "relaxed")) reader_refuse(r, "'%s' is not known", opcode);
    Instruction *o = collective(r, wait ? run_cluster_wait : run_cluster_arrive, COUNT_BARRIER, 0);
    if (wait) o->ready = cluster_ready;
}
// mapa{.shared::cluster}.u32 or u64 to, place, rank
static void read_map(Reader *r, const char *opcode, const Argument *a, int count) {
    int bits = type_bits(opcode);
    Operand to = reader_named(r, a[0].word[0]), from = reader_source(r, a[1].word[0], bits),
            rank = word_or(r, a, count, 2, 0);
    Instruction *o = reader_emit(r, run_map, COUNT_MOVE, QUICK_CYCLES);
    o->d[o->results++] = to, o->s[0] = from, o->s[1] = rank;
    o->sources = 2;
}

// --- mbarriers

static void read_mbarrier(Reader *r, const char *opcode, const Argument *a, int count) {
    bool init = opcode_begins(opcode, "mbarrier.init");
    Operand at = reader_address(r, &a[0], SPACE_SHARED), arrivals = word_or(r, a, count, 1, 1);
    Instruction *o = reader_emit(r, init ? run_mbarrier_init : run_mbarrier_drop, COUNT_MBARRIER, 1);
    o->s[0] = at, o->s[1] = arrivals;
    o->sources = 2, o->offset = a[0].offset;
}

// mbarrier.arrive{.expect_tx} state, [at], {count or bytes}; mbarrier.expect_tx [at], bytes
static void read_arrive(Reader *r, const char *opcode, const Argument *a, int count) {
    bool arrives = opcode_begins(opcode, "mbarrier.arrive"), expects = opcode_has(opcode, "expect_tx");
    bool state = arrives && strcmp(a[0].word[0], "_") != 0;
    Operand out = state ? reader_named(r, a[0].word[0]) : (Operand){0};
    a += arrives, count -= arrives;
    Operand at = reader_address(r, &a[0], SPACE_SHARED), last = word_or(r, a, count, 1, 1);
    Operand times = expects || !arrives ? reader_constant(r, arrives, 32) : last;
    Operand bytes = expects ? last : reader_constant(r, 0, 32);
    if (opcode_has(opcode, "noComplete")) reader_refuse(r, "'%s' is not known", opcode);
    Instruction *o = reader_emit(r, run_mbarrier_arrive, COUNT_MBARRIER, 1);
    o->s[0] = at, o->s[1] = times, o->s[2] = bytes;
    o->far = opcode_has(opcode, "shared::cluster"), o->wide = opcode_has(opcode, "cluster");
    o->sources = 3, o->offset = a[0].offset;
    if (state) o->d[o->results++] = out;
}

static void read_wait(Reader *r, const char *opcode, const Argument *a, int count) {
    bool parity = opcode_has(opcode, "parity");
    Operand done = reader_named(r, a[0].word[0]), at = reader_address(r, &a[1], SPACE_SHARED);
    Operand phase = reader_source(r, a[2].word[0], parity ? 32 : 64);
    (void)count; // a hint how long to wait may follow
    Instruction *o = reader_emit(r, run_mbarrier_wait, COUNT_MBARRIER, SHARED_CYCLES);
    o->ready = mbarrier_ready, o->more = parity ? WAIT_PARITY : WAIT_STATE;
    o->s[0] = at, o->s[1] = phase, o->d[0] = done;
    o->wide = opcode_has(opcode, "cluster");
    o->sources = 2, o->results = 1, o->offset = a[1].offset;
}

// --- bulk copies

static void read_bulk(Reader *r, const char *opcode, const Argument *a, int count) {
    Operand to = reader_address(r, &a[0], SPACE_SHARED), from = reader_address(r, &a[1], SPACE_GLOBAL);
    Operand bytes = reader_source(r, a[2].word[0], 32), at = reader_address(r, &a[3], SPACE_SHARED);
    bool many = opcode_has(opcode, "multicast::cluster") && count > 4;
    Operand mask = many ? reader_source(r, a[4].word[0], 16) : (Operand){0};
    Instruction *o = reader_emit(r, run_bulk, COUNT_BULK, 1); // where the bytes should stay may follow
    o->s[0] = to, o->s[1] = from, o->s[2] = bytes, o->s[3] = at, o->s[4] = mask;
    o->far = opcode_has(opcode, "shared::cluster");
    o->sources = many ? 5 : 4, o->offset = a[0].offset, o->more = a[1].offset, o->third = a[3].offset;
}
static void read_prefetch(Reader *r, const char *opcode, const Argument *a, int count) {
    Operand from = reader_address(r, &a[0], SPACE_GLOBAL), bytes = word_or(r, a, count, 1, 0);
    Instruction *o = reader_emit(r, run_bulk_prefetch, COUNT_BULK, 1);
    (void)opcode;
    o->s[0] = from, o->s[1] = bytes;
    o->sources = count > 1 ? 2 : 1, o->offset = a[0].offset;
}
static void read_policy(Reader *r, const char *opcode, const Argument *a, int count) {
    Operand policy = reader_named(r, a[0].word[0]);
    Instruction *o = reader_emit(r, run_policy, COUNT_OTHER, QUICK_CYCLES);
    (void)opcode, (void)count;
    o->d[o->results++] = policy;
}

// --- fences, and what is said for a warp

static void read_fence(Reader *r, const char *opcode, const Argument *a, int count) {
    (void)a, (void)count;
    reader_emit(r, run_proxy_fence, COUNT_FENCE, PROXY_FENCE_CYCLES)->more =
        opcode_begins(opcode, "fence.mbarrier_init");
}
static void read_registers(Reader *r, const char *opcode, const Argument *a, int count) {
    Operand registers = word_or(r, a, count, 0, 0);
    Instruction *o = collective(r, run_registers, COUNT_OTHER, 1);
    (void)opcode;
    o->s[o->sources++] = registers;
}
static void read_trap(Reader *r, const char *opcode, const Argument *a, int count) {
    (void)opcode, (void)a, (void)count;
    reader_emit(r, run_trap, COUNT_OTHER, 0);
}
static void read_elect(Reader *r, const char *opcode, const Argument *a, int count) {
    bool leader = strcmp(a[0].word[0], "_") != 0;
    Operand d = leader ? reader_named(r, a[0].word[0]) : reader_register(r, 32),
            p = reader_named(r, a[0].also);
    Operand members = word_or(r, a, count, 1, ALL);
    Instruction *o = collective(r, run_elect, COUNT_SHUFFLE, VOTE_CYCLES);
    (void)opcode;
    o->members = members;
    o->d[0] = d, o->d[1] = p, o->results = 2;
}

// --- wgmma

static bool says(const Argument *a, const char *number) { return strcmp(a->word[0], number) == 0; }

static void read_wgmma(Reader *r, const char *opcode, const Argument *a, int count) {
    const bool shared = a[1].words == 1; // where the first matrix is
    bool f16 = opcode_has(opcode, "f16"),
         plain = says(&a[4], "1") && says(&a[5], "1") && says(&a[6], "0") && (!shared || says(&a[7], "0"));
    int columns = 0;
    sscanf(opcode, "wgmma.mma_async.sync.aligned.m64n%dk16", &columns);
    if (columns != 2 * a[0].words || columns % 8 || columns > 256 || count != (shared ? 8 : 7) || !plain ||
        (!strstr(opcode, ".f32.bf16.bf16") && !strstr(opcode, ".f32.f16.f16"))) {
        reader_refuse(r, "'%s' of %d sums is not known", opcode, a[0].words);
        return;
    }
    Operand *sums = malloc((size_t)a[0].words * sizeof *sums), s[MOST_OPERANDS];
    if (!sums) machine_fault("no memory");
    for (int i = 0; i < a[0].words; i++) sums[i] = reader_named(r, a[0].word[i]);
    s[0] = reader_source(r, a[2].word[0], 64);
    s[1] = reader_source(r, a[3].word[0], 1);
    for (int i = 0; i < a[1].words; i++)
        s[2 + i] = shared ? reader_source(r, a[1].word[0], 64) : reader_named(r, a[1].word[i]);
    Instruction *o = collective(r, run_wgmma, COUNT_WGMMA, 1);
    memcpy(o->s, s, sizeof s);
    o->sources = (uint8_t)(2 + a[1].words), o->more = f16;
    o->sums = sums, o->sum_count = (uint16_t)a[0].words;
    r->k->tensor = true;
}
static void read_group(Reader *r, const char *opcode, const Argument *a, int count) {
    bool fence = opcode_begins(opcode, "wgmma.fence"), wait = opcode_begins(opcode, "wgmma.wait_group");
    Instruction *o = collective(r,
                                fence  ? run_wgmma_fence
                                : wait ? run_wgmma_wait
                                       : run_wgmma_commit,
                                COUNT_WGMMA, 1);
    if (!wait) return;
    o->ready = wgmma_ready;
    o->more = count ? strtoll(a[0].word[0], NULL, 0) : 0;
}

static const struct {
    const char *begins;
    Read *read;
} INSTRUCTIONS[] = {
    {"bar.sync", read_barrier},
    {"bar.arrive", read_barrier},
    {"barrier.sync", read_barrier},
    {"barrier.arrive", read_barrier},
    {"barrier.cta.sync", read_barrier},
    {"barrier.cta.arrive", read_barrier},
    {"barrier.cluster.arrive", read_cluster},
    {"barrier.cluster.wait", read_cluster},
    {"mapa.", read_map},
    {"mbarrier.init.shared", read_mbarrier},
    {"mbarrier.inval.shared", read_mbarrier},
    {"mbarrier.arrive", read_arrive},
    {"mbarrier.expect_tx", read_arrive},
    {"mbarrier.try_wait", read_wait},
    {"mbarrier.test_wait", read_wait},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", read_bulk},
    {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes", read_bulk},
    {"cp.async.bulk.prefetch.L2.global", read_prefetch},
    {"prefetch.global.L2", read_prefetch},
    {"createpolicy.fractional.L2", read_policy},
    {"fence.proxy.async", read_fence},
    {"fence.mbarrier_init", read_fence},
    {"setmaxnreg.", read_registers},
    {"elect.sync", read_elect},
    {"trap", read_trap},
    {"wgmma.mma_async.", read_wgmma},
    {"wgmma.fence", read_group},
    {"wgmma.commit_group", read_group},
    {"wgmma.wait_group", read_group},
};

bool read_asynchronous(Reader *r, const char *opcode, const Argument *a, int count) {
    for (size_t i = 0; i < sizeof INSTRUCTIONS / sizeof *INSTRUCTIONS; i++) {
        if (!opcode_begins(opcode, INSTRUCTIONS[i].begins)) continue;
        INSTRUCTIONS[i].read(r, opcode, a, count);
        return true;
    }
    return false;
}
