#include "harness/program/interrupt.h"

#include "harness/program/terminal.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

// A user waits two seconds at most.
static const struct timeval PATIENCE = {.tv_sec = 1, .tv_usec = 700000}, LATER = {.tv_usec = 100000};
enum { CODE = 130 }; // of a program that was interrupted

// A signal handler can reach nothing else: the mutable variables at file scope. The lines are whole before a
// handler is there.
static volatile sig_atomic_t seen, caught, saving;
static char first[160], last[320];

static void say(const char *s) {
    ssize_t written = write(STDERR_FILENO, s, strlen(s));
    (void)written; // there is nobody else to tell
}

// setitimer is a plain system call here, though POSIX does not list it for handlers.
static void wake_in(struct timeval time) {
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = time}, NULL);
}

static void handle(int number) {
    if (caught && !seen) {
        seen = 1;
        say(first);
        wake_in(PATIENCE);
        return;
    }
    say(last);
    signal(number, SIG_DFL);
    raise(number);
}

static void lose_patience(int number) {
    (void)number;
    if (saving) {
        wake_in(LATER);
        return;
    }
    say(last);
    _exit(CODE);
}

static void install(int number, void (*handler)(int)) {
    // A write that was under way goes on, so that what it wrote stays whole.
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void interrupt_begin(const char *command, const char *kept) {
    struct sigaction hangup;
    const char *clear = isatty(STDERR_FILENO) ? "\r\033[K" : "";
    if (isatty(STDERR_FILENO))
        snprintf(first, sizeof first, "%sstopping; once more to stop at once\n", clear);
    snprintf(last, sizeof last, "%soutpace: %s: interrupted%s%s\n", clear, command, kept ? "; " : "",
             kept ? kept : "");
    install(SIGALRM, lose_patience);
    install(SIGINT, handle);
    install(SIGTERM, handle);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) install(SIGHUP, handle);
}

void interrupt_catch(void) { caught = 1; }
bool interrupt_seen(void) { return seen != 0; }
void interrupt_wait(bool is_saving) { saving = is_saving; }

// Told once after a few seconds, then every minute.
static bool waits(const char *store, double before, double now) {
    enum { FIRST = 5, AGAIN = 60 };
    const char *clear = isatty(STDERR_FILENO) ? "\r\033[K" : "";
    if (before < FIRST && now >= FIRST)
        fprintf(stderr, "%swaiting for store '%s': another process keeps it locked\n", clear, SHOWN(store));
    else if ((int)(before / AGAIN) != (int)(now / AGAIN))
        fprintf(stderr, "%sstill waiting for store '%s', for %d min now\n", clear, SHOWN(store),
                (int)(now / AGAIN));
    return !interrupt_seen();
}

const StoreOptions interrupt_patience = {.waits = waits};
