#include "plots/gnuplot.h"

#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct Run {
    const char *program;
    const char *folder, *script; // the script's file; NULL: the script comes from `in`
    int in, out, complaints;     // in -1: nothing; out -1: with the complaints
} Run;

static int start(const Run *r, pid_t *pid) {
    // No settings of the user's: a plot is the same for everyone.
    char *const argv[] = {(char *)(uintptr_t)r->program, (char *)(uintptr_t) "-d",
                          (char *)(uintptr_t)r->script, NULL};
    posix_spawn_file_actions_t actions;
    int code = posix_spawn_file_actions_init(&actions);
    if (code) return code;
    if (r->folder) code = posix_spawn_file_actions_addchdir_np(&actions, r->folder);
    if (!code && r->in < 0)
        code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    else if (!code) code = posix_spawn_file_actions_adddup2(&actions, r->in, STDIN_FILENO);
    if (!code) code = posix_spawn_file_actions_adddup2(&actions, r->out, STDOUT_FILENO);
    if (!code) code = posix_spawn_file_actions_adddup2(&actions, r->complaints, STDERR_FILENO);
    if (!code) code = posix_spawnp(pid, r->program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static void read_all(int from, Text *out) {
    char bytes[4096];
    for (;;) {
        ssize_t n = read(from, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        text_add(out, bytes, (size_t)n);
    }
}

static int wait_for(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return status;
}

// Of what it said, the last line, which says what is wrong; those before it show the place, under marks.
static void complaint(Text *said, const char **line) {
    *line = "it said nothing";
    for (char *at = said->data, *end; at && *at; at = end) {
        end = at + strcspn(at, "\n");
        if (*end) *end++ = 0;
        at += strspn(at, " \t^");
        if (*at) *line = at;
    }
}

// To its end. An error names `what` it was to draw.
static bool run(Run *r, const char *what, Error *e) {
    int ends[2];
    pid_t pid;
    Text said = {0};
    const char *line;
    if (pipe2(ends, O_CLOEXEC)) return error_system(e, "cannot make a pipe: %s", strerror(errno));
    r->complaints = ends[1];
    if (r->out < 0) r->out = ends[1];
    int code = start(r, &pid);
    close(ends[1]);
    if (!code) read_all(ends[0], &said);
    close(ends[0]);
    if (code == ENOENT)
        return error_system(
            e, "'%s' is not there, and draws the plots: install it (Debian: apt-get install gnuplot-nox)",
            r->program);
    if (code) return error_system(e, "cannot run '%s': %s", r->program, strerror(code));
    int status = wait_for(pid);
    bool ok = status == 0;
    if (!ok) {
        complaint(&said, &line);
        error_system(e, "'%s' failed on '%s': %s", r->program, what, line);
    }
    text_release(&said);
    return ok;
}

bool gnuplot_run(const char *program, const char *folder, const char *script, Error *e) {
    Run r = {.program = program, .folder = folder, .script = script, .in = -1, .out = -1};
    Text what = {0};
    text_printf(&what, "%s/%s", folder, script);
    bool ok = run(&r, text_get(&what), e);
    text_release(&what);
    return ok;
}

// --- without files ---------------------------------------------------------------------------------------

static bool read_back(FILE *from, Text *out, Error *e) {
    rewind(from);
    read_all(fileno(from), out);
    return !out->failed || error_system(e, "out of memory for a figure");
}

static bool put(FILE *to, const Text *script, Error *e) {
    return (fwrite(text_get(script), 1, script->length, to) == script->length && fflush(to) == 0 &&
            fseek(to, 0, SEEK_SET) == 0) ||
           error_system(e, "cannot write a script for gnuplot: %s", strerror(errno));
}

// Files without a name: whatever ends the program, nothing is left of them.
bool gnuplot_text(const char *program, const Text *script, Text *out, Error *e) {
    FILE *in = tmpfile(), *drawn = tmpfile();
    bool ok = in && drawn;
    if (!ok) error_system(e, "cannot make a temporary file: %s", strerror(errno));
    Run r = {.program = program};
    if (ok) r.in = fileno(in), r.out = fileno(drawn);
    ok = ok && put(in, script, e) && run(&r, "a figure", e) && read_back(drawn, out, e);
    if (in) fclose(in);
    if (drawn) fclose(drawn);
    return ok;
}
