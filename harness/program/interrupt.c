#include "harness/program/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// A signal handler can reach nothing else: the mutable variables at file scope. The line is whole before a
// handler is there.
static volatile sig_atomic_t seen;
static char line[128];

static void mark(int number) {
    seen = 1;
    signal(number, SIG_DFL);
    ssize_t written = write(STDERR_FILENO, line, strlen(line));
    (void)written;
}

void interrupt_catch(const char *awaited) {
    if (awaited && isatty(STDERR_FILENO))
        snprintf(line, sizeof line, "\nstopping after %s; once more to stop at once\n", awaited);
    // A write that was under way goes on, so that what it wrote stays whole.
    struct sigaction action = {.sa_handler = mark, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool interrupt_seen(void) { return seen != 0; }

// Told once after a few seconds, then every minute.
static bool waits(const char *store, double before, double now) {
    enum { FIRST = 5, AGAIN = 60 };
    const char *clear = isatty(STDERR_FILENO) ? "\r\033[K" : "";
    if (before < FIRST && now >= FIRST)
        fprintf(stderr, "%swaiting for store '%s': another process keeps it locked\n", clear, store);
    else if ((int)(before / AGAIN) != (int)(now / AGAIN))
        fprintf(stderr, "%sstill waiting for store '%s', for %d min now\n", clear, store, (int)(now / AGAIN));
    return !interrupt_seen();
}

const StoreOptions interrupt_patience = {.waits = waits};
