// The linker's --wrap=X sends every call of X in our objects to __wrap_X and gives the C library's as
// __real_X.
#include "tests/support/check.h"

#include "tests/support/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
int __real_open(const char *path, int flags, mode_t mode);
ssize_t __real_read(int fd, void *data, size_t n);
ssize_t __real_write(int fd, const void *data, size_t n);
int __real_fsync(int fd);
int __real_close(int fd);
int __real_rename(const char *from, const char *to);

// Threads of the code under test allocate too, hence atomic.
static atomic_int allocations_left, calls_left, live, files;
static atomic_bool seen;

static void arm(int allocations, int calls) {
    allocations_left = allocations;
    calls_left = calls;
    seen = false;
}

void fault_after(int n) { arm(n, 0); }
void fault_call_after(int n) { arm(0, n); }
bool fault_seen(void) { return seen; }
int fault_live(void) { return live; }
int fault_open(void) { return files; }

// Counts down to the failing one; below it nothing fails any more.
static bool fails(atomic_int *left, int why) {
    if (*left <= 0 || atomic_fetch_sub(left, 1) != 1) return false;
    seen = true;
    errno = why;
    return true;
}

static void *counted(void *p) {
    if (p) live++;
    return p;
}

static bool allocation_fails(void) { return fails(&allocations_left, ENOMEM); }
static bool call_fails(void) { return fails(&calls_left, EIO); }

void *__wrap_malloc(size_t n) { return allocation_fails() ? NULL : counted(__real_malloc(n)); }
void *__wrap_calloc(size_t count, size_t size) {
    return allocation_fails() ? NULL : counted(__real_calloc(count, size));
}
void *__wrap_realloc(void *p, size_t n) {
    if (allocation_fails()) return NULL;
    return p ? __real_realloc(p, n) : counted(__real_malloc(n));
}
void __wrap_free(void *p) {
    if (p) live--;
    __real_free(p);
}

int __wrap_open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? va_arg(args, mode_t) : 0;
    va_end(args);
    int fd = call_fails() ? -1 : __real_open(path, flags, mode);
    if (fd >= 0) files++;
    return fd;
}
ssize_t __wrap_read(int fd, void *data, size_t n) { return call_fails() ? -1 : __real_read(fd, data, n); }
ssize_t __wrap_write(int fd, const void *data, size_t n) {
    return call_fails() ? -1 : __real_write(fd, data, n);
}
int __wrap_fsync(int fd) { return call_fails() ? -1 : __real_fsync(fd); }
int __wrap_rename(const char *from, const char *to) { return call_fails() ? -1 : __real_rename(from, to); }
int __wrap_close(int fd) { // closes all the same, as Linux does
    bool failing = call_fails();
    int result = __real_close(fd);
    if (result == 0) files--;
    if (failing) errno = EIO;
    return failing ? -1 : result;
}

typedef bool (*FaultRun)(void *, Error *);
typedef void (*FaultAfter)(void *, bool);

// `own`: the error must be called the system's.
static void check_run(int n, bool ok, const Error *e, int leaked, int opened, bool own) {
    if (leaked) fail_msg("failure %d: %d allocations more than before it: '%s'", n, leaked, e->text);
    if (opened) fail_msg("failure %d: %d files more are open than before it: '%s'", n, opened, e->text);
    if (!ok && fault_seen() && (!e->text[0] || (own && e->kind != ERROR_SYSTEM)))
        fail_msg("failure %d is not called the system's: '%s'", n, e->text);
    if (!ok && !fault_seen()) fail_msg("nothing failed, but: '%s'", e->text);
}

// --- allocations: every run in a process of its own, which mem_exhausted may end

enum { WHOLE = 10, REFUSED, WRONG }; // exit codes of such a process; 1 is mem_exhausted's

static _Noreturn void run_apart(int n, FaultRun run, void *state) {
    Error e = {.kind = ERROR_NONE};
    int before = fault_live(), were_open = fault_open();
    arm(n, 0);
    bool ok = run(state, &e), failed = fault_seen();
    arm(0, 0);
    int leaked = fault_live() - before, opened = fault_open() - were_open;
    if (leaked) fprintf(stderr, "%d allocations more than before it: '%s'", leaked, e.text);
    else if (opened) fprintf(stderr, "%d files more are open than before it: '%s'", opened, e.text);
    else if (ok && failed) fprintf(stderr, "want an error, got success");
    else if (!ok && !failed) fprintf(stderr, "nothing failed, but: '%s'", e.text);
    else if (!ok && e.kind != ERROR_SYSTEM) fprintf(stderr, "not a system error: '%s'", e.text);
    else _exit(ok ? WHOLE : REFUSED);
    _exit(WRONG);
}

static int each_allocation(FaultRun run, FaultAfter after, void *state, bool sparse) {
    for (int n = 1, failures = 0;; n += sparse ? 1 + n / 8 : 1, failures++) {
        int ends[2], code;
        char line[1000] = "";
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            dup2(ends[1], STDERR_FILENO);
            run_apart(n, run, state);
        }
        __real_close(ends[1]);
        ssize_t length = __real_read(ends[0], line, sizeof line - 1);
        __real_close(ends[0]);
        assert_int_equal(waitpid(child, &code, 0), child);
        code = WIFEXITED(code) ? WEXITSTATUS(code) : WRONG;
        bool one_line =
            strncmp(line, "outpace: out of memory", 22) == 0 && strchr(line, '\n') == line + length - 1;
        if (code == 1 ? !one_line : code != WHOLE && code != REFUSED) fail_msg("allocation %d: %s", n, line);
        if (after) after(state, code == WHOLE);
        if (code == WHOLE) return failures;
    }
}

// --- calls

static int each_call(FaultRun run, FaultAfter after, void *state, bool of_model) {
    for (int n = 1;; n++) {
        Error e = {.kind = ERROR_NONE};
        int before = fault_live(), were_open = fault_open();
        arm(0, n);
        bool ok = run(state, &e), failed = fault_seen();
        check_run(n, ok, &e, fault_live() - before, fault_open() - were_open, !of_model);
        arm(0, 0);
        if (failed && ok && !of_model) fail_msg("failure %d: want a system error, got success", n);
        if (after) after(state, ok);
        if (!failed) return n - 1;
    }
}

int fault_each(FaultKind kind, FaultRun run, FaultAfter after, void *state) {
    return kind == FAULT_CALL ? each_call(run, after, state, false)
                              : each_allocation(run, after, state, kind == FAULT_SPARSE_ALLOCATIONS);
}

int fault_each_model_call(FaultRun run, FaultAfter after, void *state) {
    return each_call(run, after, state, true);
}
