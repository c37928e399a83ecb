// A child's input and output are temporary files, so that a full pipe can't block it.
#include "tests/support/child.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { COULD_NOT_START = 255 }; // not 127, a shell's code for an unknown command

pid_t child_start(const char *folder, const char *const *argv, int in, int out, int err) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    const int from[] = {in, out, err};
    for (int i = 0; i < 3; i++)
        if (dup2(from[i], i) < 0) _exit(COULD_NOT_START);
    if (folder && chdir(folder)) _exit(COULD_NOT_START);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(COULD_NOT_START);
}

static int wait_for(pid_t pid, struct rusage *used) {
    int status;
    assert_int_equal(wait4(pid, &status, 0, used), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int child_wait(pid_t pid) { return wait_for(pid, NULL); }

static void read_all(FILE *f, Text *out) {
    char buffer[4096];
    rewind(f);
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;) text_add(out, buffer, n);
    fclose(f);
}

static double seconds_of(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

void child_run(Child *c, const char *folder, const char *input, const char *const *argv) {
    FILE *in = tmpfile(), *out = tmpfile(), *err = tmpfile();
    assert_true(in && out && err);
    if (input) fputs(input, in);
    rewind(in); // flushes, too
    struct rusage used;
    *c = (Child){.code = wait_for(child_start(folder, argv, fileno(in), fileno(out), fileno(err)), &used)};
    c->seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    c->peak_bytes = (size_t)used.ru_maxrss << 10; // in KiB
    fclose(in);
    read_all(out, &c->out);
    read_all(err, &c->err);
    if (c->code == COULD_NOT_START) fail_msg("cannot start '%s'", argv[0]);
}

void child_release(Child *c) {
    text_release(&c->out);
    text_release(&c->err);
}

enum { MOST_WORDS = 30 };

// The program's path is for free.
static char *program_argv(const char *const *words, const char *argv[MOST_WORDS + 2]) {
    const char *program = getenv("OUTPACE");
    char *path = realpath(program ? program : "./outpace", NULL);
    assert_non_null(path);
    argv[0] = path;
    for (int i = 0; words[i] && i < MOST_WORDS; i++) argv[i + 1] = words[i];
    return path;
}

static void check_code(const Child *c, int code, const char *const *words) {
    if (c->code != code)
        fail_msg("outpace %s: wanted exit code %d, got %d: %s%s", words[0], code, c->code, text_get(&c->out),
                 text_get(&c->err));
}

void child_outpace(Child *c, const char *folder, int code, const char *const *words) {
    const char *argv[MOST_WORDS + 2] = {NULL};
    char *path = program_argv(words, argv);
    *c = (Child){.code = 0};
    child_run(c, folder, NULL, argv);
    free(path);
    check_code(c, code, words);
}

// A terminal ends with EIO, when the last who had it open has gone.
void child_terminal(Child *c, const char *folder, int columns, int code, const char *const *words) {
    const char *argv[MOST_WORDS + 2] = {NULL};
    char *path = program_argv(words, argv), bytes[4096];
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    struct termios as_it_comes = {0};
    FILE *err = tmpfile();
    int ours, theirs;
    cfmakeraw(&as_it_comes);
    assert_non_null(err);
    assert_int_equal(openpty(&ours, &theirs, NULL, &as_it_comes, &size), 0);
    pid_t pid = child_start(folder, argv, theirs, theirs, fileno(err));
    close(theirs);
    *c = (Child){.code = 0};
    for (ssize_t n; (n = read(ours, bytes, sizeof bytes)) > 0;) text_add(&c->out, bytes, (size_t)n);
    c->code = child_wait(pid);
    close(ours);
    read_all(err, &c->err);
    free(path);
    check_code(c, code, words);
}

int child_widest(const Child *c) {
    int most = 0, letters = 0;
    for (const char *at = text_get(&c->out); *at; at++) {
        if (*at == '\033') at += strcspn(at, "m") + 1; // a colour
        if (!*at) break;
        letters = *at == '\n' ? 0 : letters + (((unsigned char)*at & 0xc0) != 0x80);
        if (letters > most) most = letters;
    }
    return most;
}
