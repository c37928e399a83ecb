#include "tests/support/small_run.h"

#include "engine/base/memory.h"
#include "harness/analysis/estimates.h"
#include "harness/run/ledger.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

#define MUST(call)                           \
    do {                                     \
        if (!(call)) fail_msg("%s", e.text); \
    } while (0)

static void write_prompts(int count) {
    FILE *f = fopen("own.txt", "w");
    assert_non_null(f);
    for (int i = 0; i < count; i++) fprintf(f, "text %d of this file\n", i);
    fclose(f);
}

SmallRun *small_open(const char *methods, const char *measurement, int prompts) {
    return small_open_with("draft: tiny", "null", methods, measurement, prompts);
}

SmallRun *small_open_with(const char *model, const char *device, const char *methods, const char *measurement,
                          int prompts) {
    Error e = {0};
    SmallRun *r = mem_new(1, sizeof *r);
    assert_non_null(r);
    write_prompts(prompts);
    snprintf(r->config, sizeof r->config,
             "name: test\nmodels: [{target: tiny, %s}]\ndatasets: [{name: own, path: own.txt}]\n"
             "hardware: {device: '%s'}\ngeneration: {max_tokens: 24, ignore_eos: on}\nmethods: [%s]\n"
             "measurement: {%s}\n",
             model, device, methods, measurement);
    MUST(experiment_parse(&r->x, r->config, strlen(r->config), "x.yaml", NULL, &e));
    MUST(sweep_expand(&r->x, &r->sweep, &e));
    MUST(schedule_make(&r->x, &r->sweep, &r->schedule, &e));
    MUST(inputs_open(&r->inputs, &r->x, &r->schedule, "here", NULL, &e));
    return r;
}

void small_close(SmallRun *r) {
    inputs_release(&r->inputs);
    schedule_release(&r->schedule);
    sweep_release(&r->sweep);
    experiment_release(&r->x);
    mem_free(r);
}

bool small_try(const SmallRun *r, const char *db, const RunSeams *seams, RunResult *out, Error *e) {
    Ledger l;
    Machine machine = {.cores = 1};
    char word[] = "test", *argv[] = {word, NULL};
    LedgerStart start = {.store = db,
                         .config_file = "x.yaml",
                         .config = r->config,
                         .overrides = "[]",
                         .machine = &machine,
                         .argc = 1,
                         .argv = argv};
    if (!ledger_open(&l, &r->inputs, &start, e)) return false;
    bool ok = run_plan(&l, false, seams, out, e) && (out->interrupted || ledger_choose_baselines(&l, e)) &&
              estimates_make(l.store, l.run, ESTIMATES_OF_TASKS, e);
    ledger_close(&l);
    return ok;
}

RunResult small_run(const SmallRun *r, const char *db, const RunSeams *seams) {
    Error e = {0};
    RunResult result;
    MUST(small_try(r, db, seams, &result, &e));
    return result;
}
