#include "tests/support/check.h"

#include "tests/support/cluster.h"

#include "tests/support/child.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int bash(const char *folder, const char *line, Child *c) {
    child_run(c, folder, NULL, (const char *const[]){"bash", "-c", line, NULL});
    return c->code;
}

static bool has_packages(void) {
    Child c;
    bool ok = bash(NULL, "PATH=$PATH:/usr/sbin command -v slurmctld slurmd munged sbatch scontrol", &c) == 0;
    child_release(&c);
    return ok;
}

bool cluster_start(const char *folder) {
    char script[4096], line[4200], conf[4096];
    Child c;
    if (geteuid() != 0 || !has_packages()) {
        printf("skipped: it needs root, and the packages of './setup slurm'\n");
        return false;
    }
    const char *root = getenv("OUTPACE_ROOT");
    char *path = realpath(root ? root : ".", NULL);
    assert_non_null(path);
    snprintf(script, sizeof script, "%s/tests/support/slurm", path);
    free(path);
    snprintf(line, sizeof line, "exec '%s' start slurm >slurm.out 2>&1 </dev/null", script);
    if (bash(folder, line, &c)) fail_msg("slurm does not start: see %s/slurm.out", folder);
    child_release(&c);
    snprintf(conf, sizeof conf, "%s/slurm/slurm.conf", folder);
    setenv("SLURM_CONF", conf, 1);
    setenv("SLURM_SCRIPT", script, 1);
    return true;
}

void cluster_stop(const char *folder) {
    Child c;
    bash(folder, "\"$SLURM_SCRIPT\" stop slurm >/dev/null 2>&1 </dev/null", &c);
    child_release(&c);
}

void cluster_bash(const char *folder, const char *line) {
    Child c;
    if (bash(folder, line, &c)) {
        Child queue;
        bash(folder, "squeue; tail -n 20 parts/*.log", &queue);
        fail_msg("%s: exit code %d: %s%s%s", line, c.code, text_get(&c.out), text_get(&c.err),
                 text_get(&queue.out));
    }
    child_release(&c);
}

bool cluster_wait(const char *folder, int seconds, const char *line) {
    static const struct timespec MOMENT = {.tv_nsec = 200000000};
    time_t end = time(NULL) + seconds;
    for (;;) {
        Child c;
        bool ok = bash(folder, line, &c) == 0;
        child_release(&c);
        if (ok || time(NULL) > end) return ok;
        nanosleep(&MOMENT, NULL);
    }
}
