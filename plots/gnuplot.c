#include "plots/gnuplot.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct Run {
    const char *program;
    const char *folder;      // where it runs; NULL: here
    int in, out, complaints; // in: the script
} Run;

static int start(const Run *r, pid_t *pid) {
    // No settings of the user's: a plot is the same for everyone.
    char *const argv[] = {(char *)(uintptr_t)r->program, (char *)(uintptr_t) "-d", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    int code = posix_spawn_file_actions_init(&actions);
    if (code) return code;
    code = posix_spawnattr_init(&attributes);
    if (code) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (r->folder) code = posix_spawn_file_actions_addchdir_np(&actions, r->folder);
    if (!code) code = posix_spawn_file_actions_adddup2(&actions, r->in, STDIN_FILENO);
    if (!code) code = posix_spawn_file_actions_adddup2(&actions, r->out, STDOUT_FILENO);
    if (!code) code = posix_spawn_file_actions_adddup2(&actions, r->complaints, STDERR_FILENO);
    if (!code) code = posix_spawnp(pid, r->program, &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
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

// To its end.
static bool run(Run *r, Error *e) {
    int ends[2];
    pid_t pid;
    Text said = {0};
    const char *line;
    if (pipe2(ends, O_CLOEXEC)) return error_system(e, "cannot make a pipe: %s", strerror(errno));
    r->complaints = ends[1];
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
        error_system(e, "'%s' failed on a figure: %s", r->program, line);
    }
    text_release(&said);
    return ok;
}

// A file without a name, in memory: no disk can be too full for it.
static int memory_file(Error *e) {
    int fd = memfd_create("gnuplot", MFD_CLOEXEC);
    if (fd < 0) error_system(e, "cannot make a file in memory for gnuplot: %s", strerror(errno));
    return fd;
}

static bool put(int to, const Text *script, Error *e) {
    FilePart file = {.fd = to};
    return (file_part_write(&file, text_get(script), script->length) && lseek(to, 0, SEEK_SET) == 0) ||
           error_system(e, "cannot write a script for gnuplot: %s", strerror(errno));
}

static bool run_script(Run *r, const Text *script, Text *out, Error *e) {
    r->in = memory_file(e);
    r->out = r->in < 0 ? -1 : memory_file(e);
    bool ok = r->out >= 0 && put(r->in, script, e) && run(r, e);
    if (ok && out) {
        lseek(r->out, 0, SEEK_SET);
        read_all(r->out, out);
        ok = !out->failed || error_system(e, "out of memory for a figure");
    }
    if (r->in >= 0) close(r->in);
    if (r->out >= 0) close(r->out);
    return ok;
}

bool gnuplot_text(const char *program, const Text *script, Text *out, Error *e) {
    return run_script(&(Run){.program = program}, script, out, e);
}

// --- into files ------------------------------------------------------------------------------------------

// Takes a file that gnuplot wrote out of the folder.
static bool take(const char *folder, const char *name, Text *out, Error *e) {
    static const size_t MOST_BYTES = (size_t)1 << 30;
    char *path = file_path(folder, name), *bytes = NULL;
    size_t n = 0;
    bool ok =
        path ? file_read(path, MOST_BYTES, &bytes, &n, e) : error_system(e, "out of memory for a figure");
    if (ok) text_add(out, bytes, n);
    if (path) unlink(path);
    mem_free(bytes);
    mem_free(path);
    return ok;
}

static void hold_signals(sigset_t *before) {
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ending, before);
}

bool gnuplot_files(const char *program, const Text *script, const char *const names[2], Text out[2],
                   Error *e) {
    const char *set = getenv("TMPDIR");
    char *folder = file_path(set && *set ? set : "/tmp", "outpace-XXXXXX");
    sigset_t before;
    if (!folder) return error_system(e, "out of memory for a figure");
    hold_signals(&before);
    bool made = mkdtemp(folder) != NULL;
    bool ok = made || error_system(e, "cannot make the folder '%s': %s", folder, strerror(errno));
    ok = ok && run_script(&(Run){.program = program, .folder = folder}, script, NULL, e);
    for (int i = 0; made && i < 2; i++) ok = take(folder, names[i], &out[i], ok ? e : NULL) && ok;
    if (made) rmdir(folder);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    mem_free(folder);
    return ok;
}
