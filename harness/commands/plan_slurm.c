// Writes a Slurm job that runs an experiment in parts, with the time and memory that each needs.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "harness/run/cost.h"
#include "harness/run/slurm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TASKS = 1000 }; // Slurm's MaxArraySize is 1001, unless a cluster has set another one
static const double TASK_S = 3600, LEAST_TASK_S = 600; // a part by default, and the limit of one at least
static const double OTHER_BYTES = 5e8;                 // of memory, besides weights and cache

typedef struct {
    SweepOptions sweep;
    int tasks, concurrent;
    double margin;
    const char *time, *partition, *stores;
    Words sbatch;
} SlurmOptions;

#define AT(name) offsetof(SlurmOptions, name)
static const Arg OPTIONS[] = {
    {"tasks", ARG_INT, AT(tasks), 1, MOST_TASKS, "parts of about an hour", .help = "parts of the sweep",
     .value = "N"},
    {"concurrent", ARG_INT, AT(concurrent), 1, MOST_TASKS, "8", .help = "tasks that run at once, at most",
     .value = "N"},
    {"time", ARG_WORD, AT(time), .help = "limit of a task: " SLURM_TIMES,
     .fallback = "the estimate times --margin", .value = "TIME"},
    {"margin", ARG_REAL, AT(margin), 1, 100, "2", .help = "see --time", .value = "X"},
    {"partition", ARG_WORD, AT(partition), .help = "of the cluster", .fallback = "the cluster's",
     .value = "NAME"},
    {"sbatch", ARG_WORDS, AT(sbatch),
     .help = "an option of sbatch that the script does not set, such as account=X; repeatable",
     .value = "OPTION"},
    {"stores", ARG_WORD, AT(stores), .help = "the folder of the tasks' stores and logs", .value = "DIR",
     .fallback = "results/ and the config's name"},
    SWEEP_OPTIONS(AT),
};

// --- parts

typedef struct Parting {
    int tasks;
    double whole_s, longest_s; // seconds of all parts, and of the longest; 0: not known
} Parting;

static Parting part(Plan *p, const SlurmOptions *o, const CostDone *done, const CostPrice *prices) {
    CostParts all = cost_parts(p, done, prices, NULL);
    double hours = ceil(cost_seconds(&all) / TASK_S);
    int *shard_of = mem_new((size_t)p->sweep.count, sizeof *shard_of), most = p->sweep.count;
    if (most > MOST_TASKS) most = MOST_TASKS;
    Parting out = {.tasks = o->tasks ? o->tasks : hours < 1 ? 1 : hours < most ? (int)hours : most};
    plan_shards(p, out.tasks, shard_of);
    for (int i = 0; i < out.tasks; i++) {
        CostParts parts = cost_parts(p, done, prices, &(CostShard){shard_of, i});
        double seconds = cost_seconds(&parts);
        out.whole_s += seconds;
        if (seconds > out.longest_s) out.longest_s = seconds;
    }
    mem_free(shard_of);
    return out;
}

// --- the resources of a task

static double memory(const Plan *p) {
    double most = 0;
    for (int i = 0; i < p->schedule.setup_count; i++) {
        const Model *draft = &p->inputs.models[p->schedule.setups[i].model].draft;
        double bytes = cost_weights(p, i) + cost_cache(p, i);
        if (draft->shape.layers) bytes += (double)model_expected_bytes(draft);
        if (bytes > most) most = bytes;
    }
    return 1.25 * most + OTHER_BYTES;
}

// Threads of the setup that has most; 0: one has one a core, and takes whole nodes.
static int cpus(const Plan *p) {
    int most = 1;
    for (int i = 0; i < p->schedule.setup_count; i++) {
        const EngineOptions *o = &p->schedule.setups[i].settings->engine;
        if (o->threads == 0 && strncmp(o->device, "cpu", 3) == 0) return 0;
        if (o->threads > most) most = o->threads;
    }
    return most;
}

// Cards up to the last one that a device names: "cuda:1", "cuda:0+cuda:3".
static int gpus_of(const char *device) {
    int most = 0;
    for (const char *at = device; (at = strstr(at, "cuda")); at += 4) {
        int card = at[4] == ':' ? (int)strtol(at + 5, NULL, 10) : 0;
        if (card + 1 > most) most = card + 1;
    }
    return most;
}

static int gpus(const Plan *p) {
    int most = 0;
    for (int i = 0; i < p->schedule.setup_count; i++) {
        const char *draft = p->experiment.models[p->schedule.setups[i].model].draft_device;
        int n = gpus_of(p->schedule.setups[i].settings->engine.device), m = draft ? gpus_of(draft) : 0;
        most = n > most ? n : most;
        most = m > most ? m : most;
    }
    return most;
}

// --- the script

static void put_option(Text *out, const char *name, const char *value) {
    if (!value) return;
    text_printf(out, "%s%s ", out->length ? " " : "", name);
    shell_word(value, out);
}

static bool choose_time(const SlurmOptions *o, const Parting *parts, Text *limit, Text *about, Error *e) {
    char whole[32], longest[32];
    double seconds = o->margin * parts->longest_s;
    if (!o->time && !(parts->longest_s > 0))
        return error_input(
            e, "plan --slurm: how long this takes is not known here, without its device: give --time, "
               "or plan on a node that has it");
    if (o->time) text_puts(limit, o->time);
    else slurm_time((seconds > LEAST_TASK_S ? seconds : LEAST_TASK_S) + SLURM_NOTICE_S, limit);
    if (parts->longest_s > 0)
        text_printf(
            about,
            "The longest part takes %s, all of them %s: upper estimates of the machine that wrote this.",
            cost_time_text(parts->longest_s, longest), cost_time_text(parts->whole_s, whole));
    return true;
}

static bool write_script(const Plan *p, const SlurmOptions *o, const Parting *parts, const char *stores,
                         Text *out, Error *e) {
    char program[4096], folder[4096];
    LOCAL_TEXT run = {0}, limit = {0}, about = {0}, partition = {0};
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    Words options = {.count = 0};
    if (n <= 0 || !getcwd(folder, sizeof folder))
        return error_system(e, "plan --slurm: this program's path, or the working directory, cannot be read");
    program[n] = 0;
    // The words that change the config, for every task.
    const SweepOptions *w = &o->sweep;
    put_option(&run, "--scale", w->scale);
    put_option(&run, "--model", w->model);
    put_option(&run, "--device", w->device);
    put_option(&run, "--threads", w->threads);
    put_option(&run, "--cache", w->cache);
    for (int i = 0; i < w->sets.count; i++) put_option(&run, "--set", w->sets.items[i]);
    LOCAL_MEMORY char *config = mem_printf("%s%s", *p->file == '-' ? "./" : "", p->file);
    if (o->partition) {
        text_printf(&partition, "partition=%s", o->partition);
        options.items[options.count++] = text_get(&partition);
    }
    for (int i = 0; i < o->sbatch.count && options.count < WORDS_MAX; i++)
        options.items[options.count++] = o->sbatch.items[i] + strspn(o->sbatch.items[i], "-");
    bool ok = choose_time(o, parts, &limit, &about, e);
    SlurmJob job = {.program = program,
                    .folder = folder,
                    .config = config,
                    .run = text_get(&run),
                    .name = p->experiment.name,
                    .stores = stores,
                    .about = about.length ? text_get(&about) : NULL,
                    .tasks = parts->tasks,
                    .concurrent = o->concurrent < parts->tasks ? o->concurrent : parts->tasks,
                    .cpus = cpus(p),
                    .gpus = gpus(p),
                    .memory = memory(p),
                    .time = text_get(&limit),
                    .options = &options};
    return ok && slurm_script(&job, out, e);
}

// Parts begin anew, in stores of their own; a store of earlier runs tells how fast this machine is.
static bool print_script(Plan *p, const SlurmOptions *o, Error *e) {
    CostDone done = {.rounds = mem_new((size_t)p->schedule.point_count, sizeof *done.rounds)};
    LOCAL_MEMORY CostPrice *prices = mem_new((size_t)p->schedule.setup_count, sizeof *prices);
    // results/NAME of configs/NAME.yaml, or as the user named it; without slashes at its end, and not to be
    // taken for an option.
    const char *slash = strrchr(p->file, '/'), *base = slash ? slash + 1 : p->file, *dot = strrchr(base, '.');
    size_t n = o->stores ? strlen(o->stores) : 0;
    while (n > 1 && o->stores[n - 1] == '/') n--;
    LOCAL_MEMORY char *stores =
        n ? mem_printf("%s%.*s", *o->stores == '-' ? "./" : "", (int)n, o->stores)
          : mem_printf("results/%.*s", dot ? (int)(dot - base) : (int)strlen(base), base);
    Parting parts = {0};
    LOCAL_TEXT script = {0};
    bool ok =
        o->tasks <= p->sweep.count ||
        error_input(e, "plan --slurm: --tasks is %d, and there are only %d points", o->tasks, p->sweep.count);
    if (ok && file_exists(o->sweep.db))
        ok = (done.store = store_open(o->sweep.db, STORE_READ, NULL, e)) != NULL;
    ok = ok && cost_prices(p, &done, prices, e);
    if (ok) parts = part(p, o, &done, prices);
    ok = ok && write_script(p, o, &parts, stores, &script, e) && file_make_directory(stores, e);
    if (ok) fputs(text_get(&script), stdout);
    store_close(done.store);
    mem_free(done.rounds);
    return ok;
}

static bool plan_slurm(void *options, CommandLine *line, Error *e) {
    SlurmOptions *o = options;
    if (o->sweep.shard) return error_input(e, "plan --slurm: the script has all parts: it takes no --shard");
    if (o->time && !slurm_is_time(o->time))
        return error_input(e,
                           "plan --slurm: --time is '%s', must be " SLURM_TIMES ", above 0, at most %d days",
                           o->time, SLURM_MOST_DAYS);
    o->sweep.shard = "1/1"; // also within a job
    LOCAL_MEMORY Plan *p = mem_new(1, sizeof *p);
    bool ok = plan_open(p, line->words.items[0], &o->sweep, e);
    if (ok) plan_warn(p);
    ok = ok && print_script(p, o, e);
    if (p->config) plan_release(p);
    return ok;
}

const Command command_plan_slurm = {
    .name = "plan --slurm",
    .usage = "CONFIG.yaml [OPTIONS]",
    .summary = "write an experiment as a Slurm job: its parts as an array, then a merge and a report",
    .arguments = {1, 1},
    COMMAND_OPTIONS(OPTIONS, SlurmOptions),
    .run = plan_slurm};
