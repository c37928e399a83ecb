// Runs an experiment, or goes on with one: every step into the store, a table at the end.
#include "harness/program/command.h"

#include "engine/base/memory.h"
#include "harness/program/terminal.h"
#include "harness/run/baselines.h"
#include "harness/stored/estimates.h"
#include "harness/program/interrupt.h"
#include "harness/program/line.h"
#include "harness/run/prepare.h"
#include "harness/run/runner.h"
#include "harness/stored/stored.h"
#include "results/rows.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    SweepOptions sweep;
    bool json, again;
} RunOptions;

#define AT(name) offsetof(RunOptions, name)
static const Option OPTIONS[] = {
    SWEEP_OPTIONS(AT),
    {"again", 0, OPTION_FLAG, AT(again), 0, 0, NULL, "a new run, though one of this content is there", NULL},
    {"json", 0, OPTION_FLAG, AT(json), 0, 0, NULL, "events on standard output, one JSON object a line", NULL},
};
static const Option RESUME_OPTIONS[] = {
    {"db", 0, OPTION_TEXT, AT(sweep.db), 0, 0, "FILE", "the store", STORE_DEFAULT},
    CACHE_OPTION(AT(sweep.cache)),
    {"json", 0, OPTION_FLAG, AT(json), 0, 0, NULL, "events on standard output, one JSON object a line", NULL},
};
#undef AT

static const char *result_of(const RunnerResult *r) {
    if (r->interrupted) return "interrupted";
    if (r->diverged) return "failed";
    return r->skipped || r->failed ? "partial" : "done";
}

static int code_of(const RunnerResult *r) {
    if (r->interrupted) return EXIT_INTERRUPTED;
    if (r->diverged) return EXIT_FAILED;
    return r->skipped || r->failed ? EXIT_PARTIAL : EXIT_DONE;
}

static void print_warnings(const Machine *m) {
    Text warnings = {0};
    machine_warnings(m, &warnings);
    for (const char *line = text_get(&warnings); *line; line += strcspn(line, "\n") + 1)
        fprintf(stderr, "warning: %.*s\n", (int)strcspn(line, "\n"), line);
    text_release(&warnings);
}

static bool print_table(const Ledger *l, const RunnerResult *r, Error *e) {
    Grid table = {0};
    bool ok = stored_table(l->store, l->run, &table, e) && grid_show(&table, e);
    if (ok) {
        printf("\nrun %lld in %s: %d points measured, ", (long long)l->run, SHOWN(store_path(l->store)),
               r->points);
        if (r->left) printf("%d left, ", r->left);
        printf("%d skipped, %d failed, %d with another text", r->skipped, r->failed, r->diverged);
        if (r->baselines) printf("; %d baselines were added for them", r->baselines);
        puts("");
        if (r->rounds)
            printf("%d rounds in %.1f s; beside decoding %.2f ms a round, %.2f%% of the time\n", r->rounds,
                   r->seconds, 1e3 * r->harness_s / r->rounds, 100 * r->harness_s / r->seconds);
        if (r->interrupted) puts("interrupted: the same command goes on");
    }
    grid_release(&table);
    return ok;
}

static bool run_ledger(Ledger *l, const RunOptions *o, int *code, Error *e) {
    RunnerResult result;
    bool ok = runner_run(l, o->json, NULL, &result, e) && (result.interrupted || baselines_choose(l, e)) &&
              estimates_make(l->store, l->run, e);
    if (!ok) return ledger_end_early(l, e);
    *code = code_of(&result);
    if (!ledger_end(l, result_of(&result), e)) return false;
    reporter_end(&(Reporter){.json = o->json}, result_of(&result), result.points,
                 result.failed + result.skipped, result.diverged, result.seconds, result.harness_s);
    return o->json || print_table(l, &result, e);
}

// Before anything is made or measured: who has an hour may want to mend these first.
static bool tell_refusals(const Prepared *p, Error *e) {
    Text lines = {0};
    int count = inputs_refused(&p->inputs);
    bool ok = prepare_refusals(p, &lines, e);
    if (ok && count)
        fprintf(stderr, "%d of %d points cannot be run, and are left out:\n%s", count, p->sweep.count,
                text_get(&lines));
    text_release(&lines);
    return ok;
}

static bool run_prepared(Prepared *p, const RunOptions *o, int argc, char **argv, int *code, Error *e) {
    Ledger ledger;
    LedgerStart start = {.store = o->sweep.db,
                         .config_file = p->file,
                         .config = p->config,
                         .overrides = p->overrides,
                         .again = o->again,
                         .machine = &p->machine,
                         .argc = argc,
                         .argv = argv};
    if (!o->json) print_warnings(&p->machine);
    prepare_warn(p);
    if (!tell_refusals(p, e)) return false;
    Line line;
    line_begin(&line, !o->json);
    bool made = inputs_make(&p->inputs, line_progress(&line), e);
    line_clear(&line);
    if (!made || !ledger_open(&ledger, &p->inputs, &start, e)) return false;
    bool ok = run_ledger(&ledger, o, code, e);
    ledger_close(&ledger);
    return ok;
}

static bool run(int argc, char **argv, int *code, Error *e) {
    RunOptions o = {.sweep = {.threads = -1, .db = STORE_DEFAULT}};
    Positionals rest;
    bool stop;
    if (!command_parse(&command_run, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    Prepared *p = mem_alloc(1, sizeof *p);
    if (!p) return error_system(e, "out of memory");
    interrupt_catch();
    bool ok = prepare_file(p, rest.items[0], &o.sweep, e);
    if (ok) {
        ok = run_prepared(p, &o, argc, argv, code, e);
        prepare_release(p);
    }
    mem_free(p);
    return ok;
}

const Command command_run = {
    .name = "run",
    .usage = "CONFIG.yaml [OPTIONS]",
    .summary = "run an experiment; every step goes into the store",
    .arguments = {1, 1},
    .kept = "every prompt that ended is kept: the same command goes on",
    .lesson =
        "Reads and checks all that the config names, then measures its points: every prompt is decoded\n"
        "by all methods and by the autoregressive baseline, one after the other, in turned order. Greedy\n"
        "text is held against the baseline's as it comes. Whatever kills the program, a prompt that ended\n"
        "is kept (a loss of power may take those of the last two seconds), and the same command again goes\n"
        "on; changed content (config, program, model, data, machine) is another run. Ctrl-C ends it\n"
        "within two seconds; the prompt that was being decoded is decoded again. A second one ends it at\n"
        "once. While another program keeps the store locked, the run waits.\n"
        "\n"
        "Tables that a method makes of a model, and inflated models, are kept in --cache. A default that\n"
        "cannot be written is a warning: tables are then made for this run alone.\n"
        "\n"
        "At the end stands the table that 'outpace show' prints; its --help explains the columns.\n"
        "\n"
        "Exit codes: 0 done; 1 failed, or a text differs; 2 usage; 3 some points could not be run; 130\n"
        "interrupted.\n"
        "\n"
        "  outpace run configs/demo.yaml\n"
        "  outpace run mine.yaml --model target=DIR,draft=DIR2 --set generation.max_tokens=64\n"
        "  outpace run mine.yaml --db /tmp/mine.db --json | jq -c 'select(.event == \"sample\")'\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};

// --- going on with a stored run --------------------------------------------------------------------------

typedef struct StoredConfig {
    Text config, file, overrides, hash;
} StoredConfig;

static bool read_config(const char *db, const char *which, StoredConfig *out, Error *e) {
    int64_t id;
    Store *store = store_open(db, STORE_READ, NULL, e);
    Rows *r = store && stored_run(store, which, &id, e)
                  ? rows_open(store,
                              "SELECT config, config_file, overrides, hash, EXISTS (SELECT 1 FROM content"
                              " WHERE run_id = run.id AND kind = 'import') FROM run WHERE id = ?1",
                              e)
                  : NULL;
    if (r) rows_bind_int(r, 1, id);
    if (r && rows_next(r)) {
        text_puts(&out->config, rows_text(r, 0));
        text_puts(&out->file, rows_text(r, 1));
        text_puts(&out->overrides, rows_text(r, 2));
        text_puts(&out->hash, rows_text(r, 3));
    }
    bool imported = r && rows_int(r, 4), ok = rows_end(r, true, e);
    if (ok && imported)
        ok = error_input(
            e,
            "run %lld was imported: let it go on in the store where it was measured, then 'outpace "
            "merge' that",
            (long long)id);
    else if (ok && !out->config.length)
        ok = error_input(e,
                         "run %lld was not made by 'outpace run'; a surface goes on by its own command again",
                         (long long)id);
    store_close(store);
    return ok;
}

static bool resume_config(const StoredConfig *c, const RunOptions *o, int argc, char **argv, int *code,
                          Error *e) {
    Prepared *p = mem_alloc(1, sizeof *p);
    if (!p) return error_system(e, "out of memory");
    interrupt_catch();
    bool ok =
        prepare_text(p, text_get(&c->config), text_get(&c->file), text_get(&c->overrides), o->sweep.cache, e);
    if (ok && strcmp(p->inputs.hash, text_get(&c->hash)) != 0)
        ok = error_input(e,
                         "program, models, data or machine are not those of that run any more: 'outpace run "
                         "%s' makes a new one",
                         p->file);
    else if (ok) ok = run_prepared(p, o, argc, argv, code, e);
    prepare_release(p);
    mem_free(p);
    return ok;
}

static bool resume(int argc, char **argv, int *code, Error *e) {
    RunOptions o = {.sweep = {.threads = -1, .db = STORE_DEFAULT}};
    Positionals rest;
    bool stop;
    if (!command_parse(&command_resume, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    StoredConfig c = {0};
    bool ok = read_config(o.sweep.db, rest.count ? rest.items[0] : NULL, &c, e) &&
              resume_config(&c, &o, argc, argv, code, e);
    text_release(&c.config);
    text_release(&c.file);
    text_release(&c.overrides);
    text_release(&c.hash);
    return ok;
}

const Command command_resume = {
    .name = "resume",
    .usage = "[RUN] [OPTIONS]",
    .summary = "go on with a stored run that was interrupted",
    .arguments = {0, 1},
    .kept = "every prompt that ended is kept: the same command goes on",
    .lesson =
        "Takes the config and its overrides from the store. Refuses where the program, a model, a dataset\n"
        "or the machine is not the run's any more: what they would measure is another run.\n"
        "\n"
        "  outpace resume            the newest\n"
        "  outpace resume 12\n",
    .options = RESUME_OPTIONS,
    .option_count = sizeof RESUME_OPTIONS / sizeof *RESUME_OPTIONS,
    .run = resume};
