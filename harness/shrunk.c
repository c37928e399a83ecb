// Weights are read from mapped files. If one shrinks meanwhile (a download begun again over it, say), the
// next touch of a page past its end is a SIGBUS, in whatever thread and kernel that happens; a check before
// each touch would cost, and could not be made without a race.
//
// Which file it was, the system knows: /proc/self/maps says what is mapped at the address. So no range has to
// be registered. The handler uses only what POSIX allows in one: open, read, write, signal, raise, _exit.
#include "harness/shrunk.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 4608 }; // a path of 4,096 bytes and the numbers before it

// Threads that share a matrix meet the missing page together; the first one speaks. A signal handler can
// reach nothing else.
static atomic_flag told = ATOMIC_FLAG_INIT;

// "7f00-7fff r--p 00000000 08:01 123   /path": moves over a number and the character after it.
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

// The path at the end of a line of maps, if the line's range holds the address.
static const char *path_of(const char *line, uintptr_t address) {
    uintptr_t from = read_hex(&line), to = read_hex(&line);
    return address >= from && address < to ? strchr(line, '/') : NULL;
}

// Reads the next line, without its end; what does not fit is left out.
static bool next_line(int maps, char line[LINE]) {
    size_t n = 0;
    for (char c; read(maps, &c, 1) == 1;) {
        line[n] = 0;
        if (c == '\n') return true;
        if (n + 1 < LINE) line[n++] = c;
    }
    return false;
}

static void say(const char *s) {
    ssize_t written = write(STDERR_FILENO, s, strlen(s));
    (void)written; // there is nobody else to tell
}

static void tell(const char *path) {
    say("outpace: cannot read '");
    say(path);
    say("': it shrank while in use; fetch it again\n");
}

static void handle(int number, siginfo_t *info, void *context) {
    char line[LINE];
    const char *path = NULL;
    (void)context;
    while (atomic_flag_test_and_set(&told)) pause(); // until the first one ends us all
    int maps =
        info->si_code > 0 ? open("/proc/self/maps", O_RDONLY | O_CLOEXEC) : -1; // else somebody sent it
    while (maps >= 0 && !path && next_line(maps, line)) path = path_of(line, (uintptr_t)info->si_addr);
    if (!path) { // not ours to explain
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    tell(path);
    _exit(2);
}

void shrunk_catch(void) {
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
