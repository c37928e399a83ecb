// Handlers use only what POSIX allows in one (open, read, write, clock_gettime, signal, raise, _exit), and
// setitimer, which is a plain system call here. Their state is the only mutable state at file scope in the
// program; the lines that they print are complete before a handler is installed.
#include "harness/cli/signals.h"

#include "harness/cli/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

// --- interrupts ------------------------------------------------------------------------------------------

// A user waits at most two seconds.
static const struct timeval PATIENCE = {.tv_sec = 1, .tv_usec = 700000}, LATER = {.tv_usec = 100000};
enum { CODE = 130 }; // of a program that was interrupted

static volatile sig_atomic_t seen, caught, saving, asked, seen_ms;
static char first[160], last[320];

static void print(const char *s) {
    UNUSED ssize_t written = write(STDERR_FILENO, s, strlen(s)); // stderr is the last resort
}

static void wake_in(struct timeval time) {
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = time}, NULL);
}

static int now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int)((t.tv_sec % 1000000) * 1000 + t.tv_nsec / 1000000);
}

// One request may come twice: `timeout` and some shells signal both the process and its group.
static void handle(int number) {
    enum { TWICE_MS = 300 };
    if (caught && !seen) {
        seen = 1;
        seen_ms = now_ms();
        print(first);
        wake_in(PATIENCE);
        return;
    }
    if (caught && (unsigned)now_ms() - (unsigned)seen_ms < TWICE_MS) return;
    print(last);
    signal(number, SIG_DFL);
    raise(number);
}

// Asked for an end: sets the mark when the time for it is over.
static void handle_gently(int number) {
    asked = 1;
    if (!seen) wake_in((struct timeval){.tv_sec = number == SIGTERM ? GENTLY_TERM_S : GENTLY_S});
}

static void lose_patience(UNUSED int number) {
    if (asked && !seen) {
        seen = 1;
        wake_in(PATIENCE);
        return;
    }
    if (saving) {
        wake_in(LATER);
        return;
    }
    print(last);
    _exit(CODE);
}

static void install(int number, void (*handler)(int)) {
    // A write that was under way continues, so that its data stays whole.
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

void interrupt_gently(void) {
    install(SIGUSR1, handle_gently);
    if (getenv("SLURM_JOB_ID")) install(SIGTERM, handle_gently);
}

bool interrupt_asked(void) { return asked != 0; }
void interrupt_wait(bool is_saving) { saving = is_saving; }

// Prints a note after a few seconds, then one a minute.
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

static void makes(const char *directory) {
    fprintf(stderr, "note: made the directory '%s' for the store\n", SHOWN(directory));
}

const StoreOptions interrupt_patience = {.waits = waits, .makes = makes};

// --- files that shrink while mapped ----------------------------------------------------------------------

// Weights are read from mapped files. If one shrinks meanwhile (somebody downloads it again, for example),
// the next touch of a page past its end is a SIGBUS, in whichever thread and kernel that happens; checking
// before each touch would cost time and could not avoid the race. /proc/self/maps names the file that is
// mapped at the address, so no range needs to be registered.

enum { LINE = 4608 }; // a path of 4,096 bytes and the numbers before it

// Threads that share a matrix reach the missing page together; only the first one reports it.
static atomic_flag reported = ATOMIC_FLAG_INIT;

// "7f00-7fff r--p 00000000 08:01 123   /path": reads a number and skips the character after it.
static uintptr_t read_hex(const char **s) {
    uintptr_t x = 0;
    for (;; (*s)++) {
        char c = **s;
        if (c >= '0' && c <= '9') x = x << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f') x = x << 4 | (uintptr_t)(c - 'a' + 10);
        else break;
    }
    if (**s) (*s)++;
    return x;
}

// Reads the next line without its end, cut to LINE - 1 bytes.
static bool next_line(int maps, char line[LINE]) {
    size_t n = 0;
    for (char c; read(maps, &c, 1) == 1;) {
        line[n] = 0;
        if (c == '\n') return true;
        if (n + 1 < LINE) line[n++] = c;
    }
    return false;
}

static void handle_shrunk(int number, siginfo_t *info, UNUSED void *context) {
    char line[LINE];
    const char *path = NULL;
    while (atomic_flag_test_and_set(&reported)) pause(); // until the first thread ends the process
    int maps = info->si_code > 0 ? open("/proc/self/maps", O_RDONLY | O_CLOEXEC)
                                 : -1; // else another process sent it
    while (maps >= 0 && !path &&
           next_line(maps, line)) { // the mapping that holds the address ends with its path
        const char *at = line;
        uintptr_t address = (uintptr_t)info->si_addr, from = read_hex(&at), to = read_hex(&at);
        if (address >= from && address < to) path = strchr(at, '/');
    }
    if (!path) { // not a mapped file
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    print("outpace: cannot read '");
    print(path);
    print("': it shrank while in use; fetch it again\n");
    _exit(2);
}

void shrunk_catch(void) {
    struct sigaction action = {.sa_sigaction = handle_shrunk, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
