#include "harness/program/interrupt.h"

#include <signal.h>
#include <stddef.h>

// A signal handler can reach nothing else: the one mutable variable at file scope.
static volatile sig_atomic_t seen;

static void mark(int number) {
    seen = 1;
    signal(number, SIG_DFL);
}

void interrupt_catch(void) {
    // A write that was under way goes on, so that what it wrote stays whole.
    struct sigaction action = {.sa_handler = mark, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool interrupt_seen(void) { return seen != 0; }
