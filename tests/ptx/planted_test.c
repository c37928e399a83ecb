// The PTX machine itself: kernels without a bug give the right numbers in every order of blocks and warps;
// each planted bug ends the program with the line that names it.
#include "tests/ptx/machine.h"
#include "tests/ptx/planted.h"
#include "tests/simt/settings.h"
#include "tests/support/check.h"

#include "engine/base/numbers.h"
#include "engine/cuda/kernels/runtime.h"
#include "tests/gpu/probe.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 64 };

static void make_input(float input[PLANTED_ITEMS]) {
    for (int i = 0; i < PLANTED_ITEMS; i++) input[i] = (float)(i * 7 % 31);
}
static float wanted(const float *input, int i) {
    float x = input[i / BLOCK * BLOCK + BLOCK - 1 - i % BLOCK] + 2 * input[i];
    for (int b = 0; i >= PLANTED_ITEMS - BLOCK && b < PLANTED_ITEMS / BLOCK; b++)
        x += input[b * BLOCK + i % BLOCK];
    return x;
}

static void right_numbers(void **state) {
    float input[PLANTED_ITEMS], out[PLANTED_ITEMS];
    (void)state;
    make_input(input);
    for (int order = 0; order < SIMT_ORDERS; order++) {
        simt_settings.order = (SimtOrder)order;
        planted_run(order ? PLANT_EARLY_NONE : PLANT_NONE, input, out);
        for (int i = 0; i < PLANTED_ITEMS; i++)
            if (out[i] != wanted(input, i))
                fail_msg("order %d: item %d is %g, wanted %g", order, i, (double)out[i],
                         (double)wanted(input, i));
    }
    assert_int_equal(simt_live_bytes(), 0);
}

static void run_plant(int plant) {
    float input[PLANTED_ITEMS], out[PLANTED_ITEMS];
    make_input(input);
    planted_run((Plant)plant, input, out);
    if (out[0] == -1) fputs("a launch failed", stderr);
}

// In a child, since a fault ends the program. What it wrote to stderr; empty where it came to its end.
static void run_child(void (*run)(int), int plant, char *text, size_t size) {
    int pipes[2], status;
    size_t n = 0;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        simt_settings.order = SIMT_NATURAL;
        setenv("OUTPACE_FAKE_GPUS", "90,90", 1);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(pipes[1], 2);
        run(plant);
        _exit(0);
    }
    close(pipes[1]);
    for (ssize_t got; n < size - 1 && (got = read(pipes[0], text + n, size - 1 - n)) > 0;) n += (size_t)got;
    text[n] = 0;
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!n && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        snprintf(text, size, "status %d without a word", status);
}

static void name_all(void (*run)(int), const char *const *names, int count) {
    char text[1024];
    int missed = 0;
    for (int p = 0; p < count; p++) {
        run_child(run, p, text, sizeof text);
        if (names[p] ? strstr(text, names[p]) != NULL : *text == 0) continue;
        print_error("plant %d: '%s', wanted '%s'\n", p, text, names[p] ? names[p] : "");
        missed++;
    }
    assert_int_equal(missed, 0);
}

static void every_bug_is_named(void **state) {
    static const char *const names[PLANTS] = {
        [PLANT_RELEASE] = "missing release",
        [PLANT_ACQUIRE] = "missing acquire",
        [PLANT_COUNTER] = "no atomic that the two share",
        [PLANT_CONSTANT] = "as constant (.nc), which this launch writes",
        [PLANT_TWO_BLOCKS] = "race: writes",
        [PLANT_WARPS] = "race: writes byte",
        [PLANT_LANES] = "race: reads byte",
        [PLANT_GLOBAL_WARPS] = "race: writes 0x",
        [PLANT_OVERWRITE] = "nothing orders the two",
        [PLANT_COPY_RACE] = "nothing orders the two",
        [PLANT_COPY_EARLY] = "where a copy is still on its way",
        [PLANT_COPY_LEFT] = "leaves with copies in flight",
        [PLANT_UNKNOWN_SHARED] = "of shared memory, which nobody has written",
        [PLANT_UNKNOWN_GLOBAL] = "which nobody has written",
        [PLANT_REGISTER_STORED] = "a value that is stored is made of what nobody has written",
        [PLANT_REGISTER_SUMMED] = "a value that is stored is made of what nobody has written",
        [PLANT_REGISTER_ADDRESS] = "an address is made of what nobody has written",
        [PLANT_REGISTER_ASKED] = "a predicate that nobody has written",
        [PLANT_MATRIX] = "a value that is stored is made of what nobody has written",
        [PLANT_OUTSIDE_SHARED] = "of shared memory, which has",
        [PLANT_BEYOND] = "outside of every allocation",
        [PLANT_FREED] = "in memory that was given back",
        [PLANT_ALIGNED] = "which is not aligned",
        [PLANT_BARRIER] = "lanes 0xffff of 0xffffffff are here",
        [PLANT_SHUFFLE] = "lanes 0xffff of 0xffffffff are here",
        [PLANT_ENDLESS] = "does not come to an end",
        [PLANT_EARLY_READ] = "before it has waited for the launch that writes it",
        [PLANT_EARLY_WRITE] = "before it has waited for the launches in front",
        [PLANT_EARLY_LEAVE] = "without having waited",
        [PLANT_CARDS_POINTER] = "touches memory of device 0 on device 1",
        [PLANT_CARDS_COPY] = "between them there is cudaMemcpyPeerAsync",
        [PLANT_CARDS_UNORDERED] = "race of streams: a stream of device 1 reads",
        [PLANT_CARDS_OVERWRITE] = "race of streams: a stream of device 1 reads",
        [PLANT_CARDS_LAUNCH] = "a launch failed",
        [PLANT_CARDS_EVENT] = "a launch failed",
        [PLANT_CARDS_PEER] = "a copy reads memory of device 0 for device 1's",
        [PLANT_SHARED_LIMIT] = "a launch failed",
    };
    (void)state;
    name_all(run_plant, names, PLANTS);
}

// --- bulk copies, mbarriers and wgmma

// Small whole numbers: sums are exact in any order.
static int number(int row, int column, int by) { return (row * by + column * 5) % 7 - 3; }
static void run_groups(int plant, float *out) {
    static uint16_t a[GROUPS_ROWS * GROUPS_K], b[GROUPS_COLUMNS * GROUPS_K];
    for (int r = 0; r < GROUPS_ROWS; r++)
        for (int k = 0; k < GROUPS_K; k++)
            a[((k / 8 * GROUPS_ROWS / 8 + r / 8) * 8 + r % 8) * 8 + k % 8] =
                f32_to_bf16((float)number(r, k, 3));
    for (int n = 0; n < GROUPS_COLUMNS; n++)
        for (int k = 0; k < GROUPS_K; k++) b[n * GROUPS_K + k] = f32_to_bf16((float)number(n, k, 2));
    planted_groups((GroupPlant)plant, a, b, out);
}
static void run_group_plant(int plant) {
    float out[GROUPS_ROWS * GROUPS_COLUMNS];
    run_groups(plant, out);
}

static void copies_and_multiplications(void **state) {
    float out[GROUPS_ROWS * GROUPS_COLUMNS];
    (void)state;
    for (int order = 0; order < SIMT_ORDERS; order++) {
        simt_settings.order = (SimtOrder)order;
        run_groups(GROUPS_NONE, out);
        for (int i = 0; i < GROUPS_ROWS * GROUPS_COLUMNS; i++) {
            int sum = 0, r = i / GROUPS_COLUMNS, n = i % GROUPS_COLUMNS;
            for (int k = 0; k < GROUPS_K; k++) sum += number(r, k, 3) * number(n, k, 2);
            if (out[i] != (float)sum)
                fail_msg("order %d: row %d, column %d is %g, wanted %d", order, r, n, (double)out[i], sum);
        }
    }
    simt_settings.order = SIMT_NATURAL;
    assert_int_equal(simt_live_bytes(), 0);
}

static void every_bug_of_groups_is_named(void **state) {
    static const char *const names[GROUPS_PLANTS] = {
        [GROUPS_SHOW] = "without a fence.proxy.async of that thread",
        [GROUPS_SHOW_LATE] = "without a fence.proxy.async of that thread",
        [GROUPS_RACE] = "race: multiplies byte",
        [GROUPS_THREADS] = "to which others came as one of",
        [GROUPS_FENCE] = "written behind the last wgmma.fence",
        [GROUPS_SUMS] = "touches a register of a wgmma that has not been waited for",
        [GROUPS_REGISTERS] = "touches a register of a wgmma that has not been waited for",
        [GROUPS_OVERWRITE] = "nobody has waited for its group",
        [GROUPS_EMPTY_EARLY] = "wgmma of warpgroup 0 may still read",
        [GROUPS_COPY_OVER] = "expects 1 arrivals, and all have come",
        [GROUPS_READ_LANES] = "which another thread reads; nothing orders the two",
        [GROUPS_WAIT] = "where a copy is still on its way",
        [GROUPS_PARITY] = "where a copy is still on its way",
        [GROUPS_WAIT_ONCE] = "where a copy is still on its way",
        [GROUPS_EXPECT] = "to which nobody comes: 0 of 1 arrivals and -4096 bytes are missing",
        [GROUPS_ARRIVE_TWICE] = "to which nobody comes",
        [GROUPS_INIT_SHOWN] = "behind whose init there is no fence.mbarrier_init",
        [GROUPS_INIT_RACE] = "nothing orders its init before",
        [GROUPS_INIT_AGAIN] = "which is an mbarrier's",
        [GROUPS_AS_MEMORY] = "which is an mbarrier's",
        [GROUPS_STORED] = "a bulk copy overwrites byte",
        [GROUPS_COPY_LEFT] = "ends with bulk copies on their way",
        [GROUPS_COPY_SIZE] = "all must be multiples of 16",
        [GROUPS_COPY_ALIGNED] = "all must be multiples of 16",
        [GROUPS_COPY_BEYOND] = "is outside of every allocation",
        [GROUPS_PREFETCH] = "reaches beyond its allocation",
        [GROUPS_OUTSIDE] = "of shared memory, which has",
        [GROUPS_SWIZZLED] = "begin at a multiple of 1024",
        [GROUPS_DIFFERENT] = "the warps of a warpgroup multiply different matrices",
        [GROUPS_LANES] = "lanes of a warp have different descriptors",
    };
    (void)state;
    name_all(run_group_plant, names, GROUPS_PLANTS);
}

// --- clusters

static void run_clusters(int plant, bool by_launch, float *out) {
    float in[CLUSTERS_ITEMS];
    for (int i = 0; i < CLUSTERS_ITEMS; i++) in[i] = (float)(i * 5 % 13);
    planted_clusters((ClusterPlant)plant, by_launch, in, out);
}
static void run_cluster_plant(int plant) {
    float out[CLUSTERS_BLOCKS * 32] = {0};
    run_clusters(plant, false, out);
    if (out[0] == -1) fputs("a launch failed", stderr);
}
static void pairs_share_copies(void **state) {
    (void)state;
    for (int i = 0; i < 2 * SIMT_ORDERS; i++) {
        float out[CLUSTERS_BLOCKS * 32];
        simt_settings.order = (SimtOrder)(i / 2);
        run_clusters(CLUSTERS_NONE, i % 2, out);
        for (int j = 0; j < CLUSTERS_BLOCKS * 32; j++) {
            int sum = 0, first = j / 64 * 2;
            for (int k = 0; k < CLUSTERS_ITEMS; k += 32) sum += (k / 32 % 2 + 1) * ((k + j % 32) * 5 % 13);
            sum *= first + 1 + first + 2; // both blocks of the pair, each by its number + 1
            if (out[j] != (float)sum)
                fail_msg("order %d: block %d, %d is %g, wanted %d", i / 2, j / 32, j % 32, (double)out[j],
                         sum);
        }
    }
    simt_settings.order = SIMT_NATURAL;
    assert_int_equal(simt_live_bytes(), 0);
}

static void every_bug_of_clusters_is_named(void **state) {
    static const char *const names[CLUSTERS_PLANTS] = {
        [CLUSTERS_BEGIN] = "nothing says that it has begun",
        [CLUSTERS_END] = "which may have left: nothing orders the two",
        [CLUSTERS_STORE] = "of shared memory, which nobody has written",
        [CLUSTERS_NO_WAIT] = "without having waited at the cluster's barrier",
        [CLUSTERS_WAIT_ALONE] = "to which it has not come",
        [CLUSTERS_TWICE] = "once more, and has not waited",
        [CLUSTERS_STUCK] = "to which not all warps of its blocks come",
        [CLUSTERS_LEFT] = "in shared memory of block 1, which has left",
        [CLUSTERS_MASK] = "to blocks 0x5 of a cluster of 2",
        [CLUSTERS_MASK_NONE] = "to blocks 0 of a cluster of 2",
        [CLUSTERS_MAP] = "a place in block 2 of a cluster of 2",
        [CLUSTERS_COUNTS_HERE] = "that counts at an mbarrier of block",
        [CLUSTERS_EXPECT] = "where a copy is still on its way",
        [CLUSTERS_EXPECT_NONE] = "to which nobody comes",
        [CLUSTERS_EMPTY] = "where a copy is still on its way",
        [CLUSTERS_ARRIVE_SCOPE] = "tells its own block alone",
        [CLUSTERS_WAIT_SCOPE] = "which another thread reads; nothing orders the two",
        [CLUSTERS_STORE_HERE] = "only .shared::cluster may name it",
        [CLUSTERS_INIT_SHOWN] = "behind whose init there is no fence.mbarrier_init",
        [CLUSTERS_ODD] = "a launch failed",
    };
    (void)state;
    name_all(run_cluster_plant, names, CLUSTERS_PLANTS);
}

// Every width, layout and place of operands against mma.sync, bit for bit.
static void sums_are_those_of_mma(void **state) {
    enum { K = 128 };
    static uint16_t host[(64 + 256) * K];
    static float out[SUM_WAYS][64 * 256];
    Random r = test_random(31);
    void *stream, *in, *sums;
    (void)state;
    for (size_t i = 0; i < sizeof host / sizeof *host; i++) host[i] = f32_to_bf16(random_normal(&r));
    gpu_stream_open(&stream);
    gpu_take(&in, sizeof host);
    gpu_take(&sums, sizeof out[0]);
    gpu_copy(in, host, sizeof host, stream);
    for (int width = 0; width < WGMMA_WIDTHS; width += test_some(5, 1))
        for (int way = 0; way < SUM_WAYS; way++) {
            const uint16_t *a = in;
            assert_true(probe_sums(way, WGMMA_WIDTH[width], a, a + 64 * K, K, CODE_HOPPER, sums, stream));
            gpu_copy(out[way], sums, sizeof out[way], stream);
            gpu_stream_wait(stream);
            if (memcmp(out[way], out[0], (size_t)(64 * WGMMA_WIDTH[width]) * sizeof(float)))
                fail_msg("width %d: way %d of wgmma has other bits than mma.sync", WGMMA_WIDTH[width], way);
        }
    gpu_give(in);
    gpu_give(sums);
    gpu_stream_close(stream);
}

static void the_runtime_refuses(void **state) {
    (void)state;
    const char *passed = planted_refusals();
    if (passed) fail_msg("lets pass: %s", passed);
    assert_int_equal(simt_live_bytes(), 0);
}

// The code for 8.0 never waits for the launch in front, not even on a card of 9.0.
static void the_loaded_code_decides(void **state) {
    static const struct {
        const char *card;
        bool old_code, early;
    } rows[] = {{"90", false, true}, {"90", true, false}, {"80", false, false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        GpuFacts facts;
        setenv("OUTPACE_FAKE_GPUS", rows[i].card, 1);
        ptx_settings.old_code = rows[i].old_code;
        assert_int_equal(gpu_facts(0, &facts), 0);
        assert_int_equal(facts.major * 10 + facts.minor, atoi(rows[i].card));
        if (gpu_begins_early() != rows[i].early)
            fail_msg("a card of %s, old code %d: early launches %d, wanted %d", rows[i].card,
                     rows[i].old_code, gpu_begins_early(), rows[i].early);
    }
    ptx_settings.old_code = false;
    unsetenv("OUTPACE_FAKE_GPUS");
}

static void want(uint64_t got, uint64_t wanted_count, const char *what, int stride) {
    if (got != wanted_count)
        fail_msg("stride %d: %lu %s, wanted %lu", stride, (unsigned long)got, what,
                 (unsigned long)wanted_count);
}

// What can be counted by hand: 32 lanes of 4 bytes are 4 sectors and one pass of the banks; further apart
// they are more.
static void counts_are_right(void **state) {
    static const struct {
        int stride;
        uint64_t sectors, waves;
    } cases[] = {{1, 4, 1}, {2, 8, 2}, {4, 16, 4}, {8, 32, 8}, {32, 32, 32}};
    uint64_t path = 0;
    (void)state;
    ptx_settings.counted = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptx_counters_clear();
        planted_count(2, cases[i].stride, 5);
        const Counters *c = ptx_counters("counted");
        assert_non_null(c);
        want(c->load_sectors, 2 * cases[i].sectors, "sectors", cases[i].stride);
        want(c->load_ideal, 2 * 4, "sectors at best", cases[i].stride);
        want(c->shared_waves, 4 * cases[i].waves, "passes of the banks", cases[i].stride);
        want(c->shared_ideal, 4, "passes at best", cases[i].stride);
        want(c->warp[COUNT_MMA], 10, "multiplications", cases[i].stride);
        want(c->longest_mma, 5, "multiplications of a warp", cases[i].stride);
        want(c->warp[COUNT_ATOMIC], 2, "atomics", cases[i].stride);
        want(c->blocks, 1, "blocks", cases[i].stride);
        want(c->warp[COUNT_BARRIER], 2, "barriers", cases[i].stride);
        assert_true(c->path > path || cases[i].stride == 1); // conflicts take time
        path = i ? path : c->path;
    }
    ptx_counters_clear();
    planted_count(1, 1, 105);
    // Each multiplication takes the sums of the one before it.
    assert_true(ptx_counters("counted")->path >= path + 100 * 33);
    assert_null(ptx_counters("last_block"));
    ptx_settings.counted = false;
}

// Each byte of a comes from L2 once; both slots of the ring are on their way before the first is waited for.
static void copies_are_counted(void **state) {
    float out[GROUPS_ROWS * GROUPS_COLUMNS];
    const uint64_t stages = 4, stage = GROUPS_ROWS * GROUPS_K * 2 / stages;
    (void)state;
    ptx_settings.counted = true;
    ptx_counters_clear();
    run_groups(GROUPS_NONE, out);
    const Counters *c = ptx_counters("groups");
    assert_non_null(c);
    want(c->copy_sectors * 32, GROUPS_ROWS * GROUPS_K * 2, "bytes of copies", 1);
    want(c->flight, 2 * stage, "bytes on their way at once", 1);
    want(c->warp[COUNT_BULK], stages, "bulk copies", 1);
    want(c->longest_mma, stages * 4, "multiplications of a warp", 1);
    assert_true(c->path > 0);
    ptx_settings.counted = false;
}

// A copy to both comes from L2 once, and is under way in both.
static void shared_copies_are_counted(void **state) {
    float out[CLUSTERS_BLOCKS * 32];
    (void)state;
    ptx_settings.counted = true;
    ptx_counters_clear();
    run_clusters(CLUSTERS_NONE, false, out);
    const Counters *c = ptx_counters("pairs");
    assert_non_null(c);
    want(c->copy_sectors * 32, CLUSTERS_BLOCKS / 2 * CLUSTERS_ITEMS * sizeof(float), "bytes of copies", 1);
    want(c->flight, 2 * 2 * 32 * sizeof(float), "bytes on their way at once", 1);
    want(c->blocks, CLUSTERS_BLOCKS, "blocks", 1);
    ptx_settings.counted = false;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(right_numbers),
                                       cmocka_unit_test(every_bug_is_named),
                                       cmocka_unit_test(the_runtime_refuses),
                                       cmocka_unit_test(the_loaded_code_decides),
                                       cmocka_unit_test(counts_are_right),
                                       cmocka_unit_test(copies_and_multiplications),
                                       cmocka_unit_test(copies_are_counted),
                                       cmocka_unit_test(every_bug_of_groups_is_named),
                                       cmocka_unit_test(pairs_share_copies),
                                       cmocka_unit_test(shared_copies_are_counted),
                                       cmocka_unit_test(every_bug_of_clusters_is_named),
                                       cmocka_unit_test(sums_are_those_of_mma)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
