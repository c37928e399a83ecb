// The head of the script, sbatch's options and the values of this sweep, is written here; the rest is
// slurm.sh, the same for all. Its users read the script, and may change it, so its own comments explain it.
#include "harness/run/slurm.h"

#include "engine/base/shipped.h"
#include "harness/cli/signals.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

EMBED(harness_run_slurm, "harness/run/slurm.sh")

_Static_assert(SLURM_NOTICE_S > GENTLY_S + 30, "a task is killed before it can end well");

void shell_word(const char *word, Text *out) {
    static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+%@-";
    if (*word && word[strspn(word, PLAIN)] == 0) {
        text_puts(out, word);
        return;
    }
    text_puts(out, "'");
    for (; *word; word++)
        if (*word == '\'') text_puts(out, "'\\''");
        else text_add(out, word, 1);
    text_puts(out, "'");
}

void slurm_time(double seconds, Text *out) {
    int minutes = seconds < 86400.0 * SLURM_MOST_DAYS ? (int)ceil(seconds / 60) : 1440 * SLURM_MOST_DAYS;
    if (minutes >= 1440) text_printf(out, "%d-", minutes / 1440);
    text_printf(out, "%02d:%02d:00", minutes / 60 % 24, minutes % 60);
}

// A number of at most nine digits, and not above `most`.
static bool read_part(const char **at, double most, double *out) {
    size_t digits = strspn(*at, "0123456789");
    if (digits < 1 || digits > 9) return false;
    *out = strtod(*at, NULL);
    *at += digits;
    return *out <= most;
}

// After days the first part is hours; else one part is minutes, two are minutes and seconds.
bool slurm_is_time(const char *text) {
    double days = 0, part[3] = {0};
    int count = 0;
    const char *dash = strchr(text, '-');
    if (dash && (!read_part(&text, INFINITY, &days) || text++ != dash)) return false;
    for (bool more = true; more; more = ++count < 3 && *text == ':' && text++)
        if (!read_part(&text, count ? 59 : dash ? 23 : INFINITY, &part[count])) return false;
    double first_s = dash || count == 3 ? 3600 : 60,
           seconds = 86400 * days + first_s * (part[0] + part[1] / 60 + part[2] / 3600);
    return !*text && seconds > 0 && seconds <= 86400.0 * SLURM_MOST_DAYS;
}

// A value within a line for sbatch, which reads quotes as a shell does.
static void put_option(Text *out, const char *name, const char *value) {
    text_printf(out, "#SBATCH --%s=", name);
    if (strpbrk(value, " \t'\"#")) text_puts(out, "\""), text_puts(out, value), text_puts(out, "\"");
    else text_puts(out, value);
    text_puts(out, "\n");
}

static void put_header(const SlurmJob *j, Text *out) {
    text_printf(out,
                "#!/bin/bash\n# %d parts of the sweep '%s', %d at a time; then one store and a report. "
                "Submit it with sbatch;\n",
                j->tasks, j->name, j->concurrent);
    text_puts(out, "#     outpace status --stores ");
    LOCAL_TEXT pattern = {0};
    text_printf(&pattern, "%s/*.db", j->stores);
    shell_word(text_get(&pattern), out);
    text_puts(out, "\n# prints how far it is. Lines that start with #SBATCH are sbatch's options: change "
                   "them as you like.\n");
    if (j->about) text_printf(out, "# %s\n", j->about);
    put_option(out, "job-name", j->name);
    text_printf(out, "#SBATCH --array=1-%d%%%d\n", j->tasks, j->concurrent);
    if (j->cpus) text_printf(out, "#SBATCH --cpus-per-task=%d\n", j->cpus);
    else text_puts(out, "#SBATCH --exclusive\n");
    text_printf(out, "#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --mem=%.0fM\n",
                ceil(j->memory / (1 << 20)));
    if (j->gpus) text_printf(out, "#SBATCH --gres=gpu:%d\n", j->gpus);
    put_option(out, "time", j->time);
    text_printf(out, "#SBATCH --requeue\n#SBATCH --signal=B:USR1@%d\n#SBATCH --open-mode=append\n",
                SLURM_NOTICE_S);
    put_option(out, "chdir", j->folder);
    LOCAL_TEXT log = {0};
    text_printf(&log, "%s/%%a.log", j->stores);
    put_option(out, "output", text_get(&log));
    for (int i = 0; i < j->options->count; i++) text_printf(out, "#SBATCH --%s\n", j->options->items[i]);
}

static void put_variable(Text *out, const char *name, const char *value) {
    text_printf(out, "%s=", name);
    shell_word(value, out);
    text_puts(out, "\n");
}

// Options that the script sets and can't work without, and those to use instead. Others that it sets, as
// --mem, may be given again: sbatch takes the last.
static const struct {
    const char *name, *instead;
} OWN_OPTIONS[] = {
    {"array", "--tasks and --concurrent"},
    {"chdir", "that folder as the working directory"},
    {"cpus-per-task", "--threads"},
    {"dependency", NULL},
    {"error", "--stores"},
    {"job-name", "a config of that name"},
    {"kill-on-invalid-dep", NULL},
    {"nodes", NULL},
    {"no-requeue", NULL},
    {"ntasks", NULL},
    {"open-mode", NULL},
    {"output", "--stores"},
    {"requeue", NULL},
    {"signal", NULL},
    {"time", "--time"},
    {"wrap", NULL},
};

// sbatch knows an option by the start of its name, too.
static bool check_option(const char *option, Error *e) {
    size_t n = strcspn(option, "= ");
    for (size_t i = 0; i < sizeof OWN_OPTIONS / sizeof *OWN_OPTIONS; i++) {
        const char *name = OWN_OPTIONS[i].name, *instead = OWN_OPTIONS[i].instead;
        if (n && strncmp(option, name, n) == 0)
            return error_input(e, "plan --slurm: --sbatch is '%s', and the script sets --%s itself%s%s",
                               option, name, instead ? ": use " : "", instead ? instead : "");
    }
    return true;
}

// A line's end in a value would begin a line of the script; quotes and % mean something to sbatch.
static bool check_value(const char *what, const char *value, const char *without, Error *e) {
    for (const char *c = value; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127 || strchr(without, *c))
            return error_input(e, "the %s '%s' has a character that a script for sbatch cannot hold", what,
                               value);
    return true;
}

bool slurm_script(const SlurmJob *j, Text *out, Error *e) {
    assert(j->tasks >= 1 && j->concurrent >= 1);
    bool ok = check_value("folder", j->folder, "\"\\%", e) && check_value("folder", j->stores, "\"\\%", e) &&
              check_value("name", j->name, "\"\\%", e) && check_value("time", j->time, " ", e) &&
              check_value("path", j->program, "", e) && check_value("path", j->config, "", e) &&
              check_value("options", j->run, "", e);
    for (int i = 0; ok && i < j->options->count; i++)
        ok = check_value("option", j->options->items[i], "", e) && check_option(j->options->items[i], e);
    if (!ok) return false;
    put_header(j, out);
    text_puts(out, "\n");
    put_variable(out, "outpace", j->program);
    put_variable(out, "config", j->config);
    text_printf(out, "options=(%s)\n", j->run);
    put_variable(out, "stores", j->stores);
    text_printf(out, "tasks=%d\n", j->tasks);
    text_puts(out, "sbatch_options=(");
    for (int i = 0; i < j->options->count; i++) {
        text_puts(out, i ? " --" : "--");
        shell_word(j->options->items[i], out);
    }
    text_puts(out, ")\n");
    text_puts(out, harness_run_slurm);
    return true;
}

// --- within a job ------------------------------------------------------------------------------------------

// A number from Slurm's environment; `without` if it isn't set or isn't a number.
static int number_of(const char *name, int without) {
    enum { MOST = 1 << 22 }; // of MaxArraySize
    const char *text = getenv(name);
    char *end;
    long n = text && *text ? strtol(text, &end, 10) : 0;
    return text && *text && !*end && n >= 0 && n <= MOST ? (int)n : without;
}

bool slurm_task(int *shard, int *shards, Error *e) {
    int first = number_of("SLURM_ARRAY_TASK_MIN", 1), id = number_of("SLURM_ARRAY_TASK_ID", -1),
        count = number_of("SLURM_ARRAY_TASK_COUNT", 1);
    if (id < 0 || count < 2) return true;
    *shard = id - first;
    *shards = count;
    return (*shard >= 0 && *shard < count) ||
           error_input(e,
                       "task %d of a Slurm array of %d tasks from %d: give it numbers without gaps, "
                       "as --array=1-%d",
                       id, count, first, count);
}
