// The shim itself: a kernel without a bug gives the same numbers in every order and with every poison; each
// planted bug stops the program, or shows as numbers that differ.
#include "tests/support/check.h"
#include "tests/simt/planted.h"
#include "tests/simt/settings.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CRASHED = 1, RUNS = 2 * SIMT_ORDERS };

static void make_input(float input[PLANTED_ITEMS]) {
    for (int i = 0; i < PLANTED_ITEMS; i++) input[i] = (float)(i * 7 % 31);
}

// Lanes are added in pairs, so the sum of whole numbers below 2^24 is exact.
static float wanted(const float *input, int i) {
    float sum = 0;
    for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++) sum += input[k];
    return input[i / 64 * 64 + 63 - i % 64] + sum + 2 * input[i];
}

static void set_run(int run) {
    simt_settings.early = true;
    simt_settings.order = (SimtOrder)(run % SIMT_ORDERS);
    simt_settings.poison = run < SIMT_ORDERS ? 0xff : 0x3c;
}

static void no_bug(void **state) {
    (void)state;
    float input[PLANTED_ITEMS], out[PLANTED_ITEMS];
    make_input(input);
    for (int run = 0; run < RUNS; run++) {
        set_run(run);
        planted_run(PLANT_NONE, input, out);
        for (int i = 0; i < PLANTED_ITEMS; i++)
            if (out[i] != wanted(input, i))
                fail_msg("run %d: item %d is %g, wanted %g", run, i, (double)out[i],
                         (double)wanted(input, i));
    }
    assert_int_equal(simt_live_bytes(), 0);
    assert_true(simt_blocks() >= RUNS * 4);
}

// In a child, since a bug ends the program. Gives CRASHED, or what came out.
static int run_child(Plant plant, int run, const float *input, float *out) {
    int pipes[2], status;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE}; // cmocka's no more
        for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        setenv("OUTPACE_FAKE_GPUS", "90,90", 1);
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        set_run(run);
        planted_run(plant, input, out);
        _exit(write(pipes[1], out, PLANTED_ITEMS * sizeof *out) < 0);
    }
    close(pipes[1]);
    ssize_t n = read(pipes[0], out, PLANTED_ITEMS * sizeof *out);
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && n == (ssize_t)(PLANTED_ITEMS * sizeof *out)
               ? 0
               : CRASHED;
}

static bool caught(Plant plant) {
    float input[PLANTED_ITEMS], out[PLANTED_ITEMS], first[PLANTED_ITEMS];
    make_input(input);
    for (int run = 0; run < RUNS; run++) {
        if (run_child(plant, run, input, out) == CRASHED) return true;
        if (run == 0) memcpy(first, out, sizeof out);
        if (memcmp(first, out, sizeof out)) return true;
    }
    return false;
}

static void every_bug_is_caught(void **state) {
    (void)state;
    static const char *const names[] = {
        [PLANT_NONE] = "none",
        [PLANT_BARRIER] = "missing barrier",
        [PLANT_WAIT] = "missing wait for a copy",
        [PLANT_WAIT_OTHERS] = "missing barrier behind a wait for a copy",
        [PLANT_MATRIX] = "matrix that is not aligned",
        [PLANT_MMA] = "half a multiplication",
        [PLANT_LEAVE] = "leaving with copies in flight",
        [PLANT_GLOBAL] = "write beyond an allocation",
        [PLANT_GLOBAL_READ] = "read beyond an allocation",
        [PLANT_SHARED] = "read beyond shared memory",
        [PLANT_ARRAY] = "read beyond an array in a struct",
        [PLANT_ALIGNMENT] = "read that is not aligned",
        [PLANT_UNWRITTEN] = "sum of unwritten memory",
        [PLANT_COLLECTIVE] = "divergent collective",
        [PLANT_HALF_BARRIER] = "collective that half a warp has left",
        [PLANT_TWO_BARRIERS] = "two barriers at once",
        [PLANT_LANE_LEAVES] = "a lane that leaves",
        [PLANT_BLOCKS] = "a block that counts on another",
        [PLANT_EARLY_READ] = "early read",
        [PLANT_EARLY_COPY] = "early copy",
        [PLANT_EARLY_LEAVE] = "early kernel that has not waited",
        [PLANT_THREADS] = "too many threads",
        [PLANT_SHARED_BYTES] = "too much shared memory",
        [PLANT_SHARED_STRUCT] = "too little shared memory",
        [PLANT_CARDS_POINTER] = "memory of another card",
        [PLANT_CARDS_COPY] = "a copy of another card's memory as its own",
        [PLANT_CARDS_UNORDERED] = "a copy that does not wait for another card",
        [PLANT_CARDS_OVERWRITE] = "a kernel that does not wait for another card's copy",
        [PLANT_CARDS_LAUNCH] = "a launch into another card's stream",
        [PLANT_CARDS_EVENT] = "another card's event",
    };
    assert_false(caught(PLANT_NONE));
    assert_false(caught(PLANT_EARLY_NONE));
    assert_false(caught(PLANT_CARDS_NONE));
    for (size_t i = PLANT_NONE + 1; i < sizeof names / sizeof *names; i++) {
        if (names[i] && !caught((Plant)i)) fail_msg("not caught: %s", names[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_bug), cmocka_unit_test(every_bug_is_caught)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
