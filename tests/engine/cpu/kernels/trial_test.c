// A trial returns the result of its check, and the worst check leaves nothing behind here.
#include "tests/support/check.h"

#include "engine/cpu/kernels/features.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool passes(void) { return true; }
static bool fails(void) { return false; }
static bool dies_of(int number) {
    raise(number);
    return true;
}
static bool illegal(void) {
#if defined(__x86_64__)
    __asm__ volatile("ud2");
#else
    raise(SIGILL);
#endif
    return true;
}
static bool segment(void) { return dies_of(SIGSEGV); }
static bool killed(void) { return dies_of(SIGKILL); }

static void ends(void **state) {
    (void)state;
    assert_int_equal(trial_run(passes), TRIAL_PASSED);
    assert_int_equal(trial_run(fails), TRIAL_FAILED);
    assert_int_equal(trial_run(illegal), TRIAL_KILLED);
    assert_int_equal(trial_run(segment), TRIAL_KILLED);
    assert_int_equal(trial_run(killed), TRIAL_KILLED);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); // every child has been waited for
    assert_int_equal(errno, ECHILD);
}

// A handler of ours that would report success isn't called, and is still installed.
static void say_yes(int number) {
    (void)number;
    _exit(0);
}

static void handlers(void **state) {
    (void)state;
    struct sigaction ours = {.sa_handler = say_yes}, before, after;
    assert_int_equal(sigaction(SIGILL, &ours, &before), 0);
    assert_int_equal(trial_run(illegal), TRIAL_KILLED);
    assert_int_equal(sigaction(SIGILL, &before, &after), 0);
    assert_true(after.sa_handler == say_yes);
}

// If the system drops exit statuses, the result is unknown, and reported as such.
static void ignored(void **state) {
    (void)state;
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    assert_int_equal(trial_run(passes), TRIAL_NOT_RUN);
    signal(SIGCHLD, before);
    assert_int_equal(trial_run(passes), TRIAL_PASSED);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ends), cmocka_unit_test(handlers),
                                       cmocka_unit_test(ignored)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
