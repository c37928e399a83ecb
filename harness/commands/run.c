// Runs an experiment, or goes on with one: every step into the store, a table at the end.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "harness/analysis/estimates.h"
#include "harness/analysis/stored.h"
#include "harness/ranks/ranks.h"
#include "harness/run/run.h"
#include "results/rows.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    SweepOptions sweep;
    RanksOver ranks;
    bool json, again, record;
} RunOptions;

#define AT(name) offsetof(RunOptions, name)
static const Arg OPTIONS[] = {
    SWEEP_OPTIONS(AT),
    RANKS_OPTION(AT(ranks)),
    {"again", ARG_FLAG, AT(again), .help = "a new run, though one of this content is there"},
    {"record-guesses", ARG_FLAG, AT(record), .help = "store what steps rejected, and the target's margin"},
    {"json", ARG_FLAG, AT(json), .help = "events on standard output, one JSON object a line"},
};

static const char *result_of(const RunResult *r) {
    if (r->interrupted) return "interrupted";
    if (r->diverged) return "failed";
    return r->skipped || r->failed ? "partial" : "done";
}

// Of a row of step_guess, as its pages hold it: measured, by dbstat, over the guesses of a run.
static const double GUESS_BYTES = 22;

static bool print_table(const Ledger *l, const RunResult *r, Error *e) {
    RecordTable table;
    bool ok = table_end(&table, stored_table(l->store, l->run, NULL, &table, e), e);
    if (ok) {
        printf("\nrun %lld in %s: %d points measured, ", (long long)l->run, SHOWN(store_path(l->store)),
               r->points);
        if (r->left) printf("%d left, ", r->left);
        printf("%d skipped, %d failed, %d with another text", r->skipped, r->failed, r->diverged);
        if (r->baselines) printf("; %d baselines were added for them", r->baselines);
        puts("");
        if (r->rounds)
            printf("%d rounds in %.1f s; harness overhead %.2f ms per round, %.2f%% of the time\n", r->rounds,
                   r->seconds, 1e3 * r->harness_s / r->rounds, 100 * r->harness_s / r->seconds);
        if (l->record_s > 0)
            printf("recording %.0f rejected guesses took %.2f s (%.1f%% of the time, in no other number) and "
                   "about %.2g MB of the store\n",
                   l->rejected, l->record_s, 100 * l->record_s / r->seconds, l->rejected * GUESS_BYTES / 1e6);
        if (r->interrupted && interrupt_asked() && !r->rounds)
            puts("interrupted before its first prompt ended: give it more time");
        else if (r->interrupted) puts("interrupted: the same command goes on");
    }
    return ok;
}

// Measures what the plan holds, and prints the result.
static bool measure(Plan *p, const RunOptions *o, int argc, char **argv, int *code, Error *e) {
    LOCAL(ledger_close) Ledger l = {0};
    RunResult result;
    LedgerStart start = {.store = p->db ? p->db : o->sweep.db,
                         .config_file = p->file,
                         .config = p->config,
                         .overrides = p->overrides,
                         .again = o->again,
                         .record = o->record,
                         .machine = &p->machine,
                         .argc = argc,
                         .argv = argv};
    LOCAL_TEXT warnings = {0};
    if (!o->json) machine_warnings(&p->machine, &warnings);
    for (const char *at = text_get(&warnings); *at; at += strcspn(at, "\n") + 1)
        fprintf(stderr, "warning: %.*s\n", (int)strcspn(at, "\n"), at);
    plan_warn(p);
    // Before anything is made or measured: users may want to fix these first.
    LOCAL_TEXT refused = {0};
    int count = inputs_refused(&p->inputs);
    plan_refusals(p, &refused);
    if (count)
        fprintf(stderr, "%d of %d points cannot be run, and are left out:\n%s", count, p->sweep.count,
                text_get(&refused));
    Line line;
    line_begin(&line, !o->json);
    bool ok = inputs_make(&p->inputs, line_progress(&line), e);
    line_clear(&line);
    if (!ok || !ledger_open(&l, &p->inputs, &start, e)) return false;
    ok = run_plan(&l, o->json, NULL, &result, e) && (result.interrupted || ledger_choose_baselines(&l, e)) &&
         estimates_make(l.store, l.run, ESTIMATES_OF_TASKS, e);
    if (!ok) ledger_end_early(&l, e);
    else ok = ledger_end(&l, result_of(&result), e);
    if (ok) {
        // A start that stored nothing would end in the same way again.
        *code = result.interrupted ? interrupt_asked() && result.rounds ? EXIT_AGAIN : EXIT_INTERRUPTED
                : result.diverged  ? EXIT_FAILED
                : result.skipped || result.failed ? EXIT_PARTIAL
                                                  : EXIT_DONE;
        reporter_end(&(Reporter){.json = o->json}, result_of(&result), result.points,
                     result.failed + result.skipped, result.diverged, result.seconds, result.harness_s);
        ok = o->json || print_table(&l, &result, e);
    }
    return ok;
}

// --- a stored run

// A stored run has its own settings.
static bool check_stored_options(const RunOptions *o, Error *e) {
    if (o->again || o->sweep.scale || o->sweep.sets.count || o->sweep.model || o->sweep.device ||
        o->sweep.threads)
        return error_input(e,
                           "run: a stored run keeps its settings; only --db, --cache and --json go with it");
    return true;
}

static bool open_stored(Plan *p, const char *which, const RunOptions *o, Error *e) {
    static const char SQL[] = "SELECT config, config_file, overrides, hash, EXISTS (SELECT 1 FROM content"
                              " WHERE run_id = run.id AND kind = 'import') FROM run WHERE id = ?1";
    int64_t id;
    bool opened = false;
    if (!check_stored_options(o, e)) return false;
    LOCAL_STORE *store = store_open(o->sweep.db, STORE_READ, NULL, e);
    Rows *r = store && stored_run(store, which, &id, e) ? rows_ask(store, SQL, id, e) : NULL;
    bool ok = r && rows_next(r);
    if (ok && rows_int(r, 4))
        ok = error_input(
            e,
            "run %lld was imported: continue it in the store where it was measured, then merge that "
            "('outpace store merge')",
            (long long)id);
    else if (ok && !*rows_text(r, 0))
        ok = error_input(
            e, "run %lld was not made by 'outpace run'; repeat the command of a surface to continue it",
            (long long)id);
    else if (ok)
        ok = opened = plan_reopen(p, rows_text(r, 0), rows_text(r, 1), rows_text(r, 2), &o->sweep, e);
    if (ok && strcmp(p->inputs.hash, rows_text(r, 3)) != 0)
        ok = error_input(e,
                         "program, models, data or machine have changed since that run: 'outpace run %s' "
                         "makes a new one",
                         p->file);
    if (opened && !ok) plan_release(p);
    return rows_end(r, ok, e);
}

// --- the command

// A stored run comes before a config that ships under the same name, except with settings, which it can't
// take.
static bool open_word(Plan *p, const char *word, const RunOptions *o, Error *e) {
    const char *db = o->sweep.db;
    int64_t id;
    bool file = file_exists(word) || strchr(word, '/') || text_ends(word, ".yaml") || text_ends(word, ".yml");
    Store *store = !file && file_exists(db) ? store_open(db, STORE_READ, NULL, NULL) : NULL;
    bool stored = store && stored_run(store, word, &id, NULL);
    store_close(store);
    LOCAL_MEMORY char *config = file ? NULL : shipped_config(word, stored ? NULL : e);
    stored = stored && (!config || check_stored_options(o, NULL));
    if (config && stored)
        fprintf(stderr, "note: continuing the run '%s' of '%s'; the config is '%s'\n", SHOWN(word), SHOWN(db),
                config);
    else if (config) fprintf(stderr, "note: running '%s'\n", config);
    file = file || (config && !stored);
    if (file) return plan_open(p, word, &o->sweep, e);
    return e->kind == ERROR_NONE && open_stored(p, word, o, e);
}

static bool run(void *options, CommandLine *line, Error *e) {
    RunOptions *o = options;
    Processes processes;
    if (!processes_join(&processes, o->ranks, e)) return false;
    if (processes_follows(&processes)) return processes_follow(&processes, e);
    o->sweep.team = processes_team(&processes);
    interrupt_catch();
    interrupt_gently();
    LOCAL_MEMORY Plan *p = mem_new(1, sizeof *p);
    const char *word = line->words.items[0];
    bool ok = open_word(p, word, o, e);
    if (ok) {
        ok = measure(p, o, line->argc, line->argv, &line->code, e);
        plan_release(p);
    }
    processes_leave(&processes);
    return ok;
}

const Command command_run = {
    .name = "run",
    .usage = "CONFIG.yaml|RUN [OPTIONS]",
    .summary = "run an experiment, or continue a stored one; every step goes into the store",
    .arguments = {1, 1},
    .kept = "every prompt that ended is kept: the same command continues",
    COMMAND_OPTIONS(OPTIONS, RunOptions),
    .run = run};
