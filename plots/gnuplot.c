#include "plots/gnuplot.h"

#include "engine/base/text.h"

#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// Its output and errors go into one pipe: a script writes its plot into a file.
static int start(const char *program, const char *folder, const char *script, int to, pid_t *pid) {
    // No settings of the user's: a plot is the same for everyone.
    char *const argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t) "-d", (char *)(uintptr_t)script,
                          NULL};
    posix_spawn_file_actions_t actions;
    int code = posix_spawn_file_actions_init(&actions);
    if (code) return code;
    code = posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (!code) code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!code) code = posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
    if (!code) code = posix_spawn_file_actions_adddup2(&actions, to, STDERR_FILENO);
    if (!code) code = posix_spawnp(pid, program, &actions, NULL, argv, environ);
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

// Of what it said, the line that says what is wrong: the place is on lines before, behind marks.
static void complaint(Text *said, const char **line) {
    *line = "it said nothing";
    for (char *at = said->data, *end; at && *at; at = end) {
        end = at + strcspn(at, "\n");
        if (*end) *end++ = 0;
        at += strspn(at, " \t^");
        if (*at) *line = at;
    }
}

bool gnuplot_run(const char *program, const char *folder, const char *script, Error *e) {
    int ends[2];
    pid_t pid;
    Text said = {0};
    const char *line;
    if (pipe2(ends, O_CLOEXEC)) return error_system(e, "cannot make a pipe: %s", strerror(errno));
    int code = start(program, folder, script, ends[1], &pid);
    close(ends[1]);
    if (!code) read_all(ends[0], &said);
    close(ends[0]);
    if (code == ENOENT)
        return error_system(
            e, "'%s' is not there, and draws the plots: install it (Debian: apt-get install gnuplot-nox)",
            program);
    if (code) return error_system(e, "cannot run '%s': %s", program, strerror(code));
    int status = wait_for(pid);
    bool ok = status == 0;
    if (!ok) {
        complaint(&said, &line);
        error_system(e, "'%s' failed on '%s/%s': %s", program, folder, script, line);
    }
    text_release(&said);
    return ok;
}
