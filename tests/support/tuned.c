#include "tests/support/check.h"

#include "tests/support/tuned.h"

bool tuned_try(Tuned *t, const TuneAsk *ask, const TuneOptions *o, const TuneSeams *seams, const char *db,
               Error *e) {
    Ledger ledger;
    char word[] = "test", *argv[] = {word, NULL};
    if (!tune_prepare(ask, &t->p, e)) fail_msg("%s", e->text);
    tune_space_open(&t->p, &t->space);
    LedgerStart start = {.store = db,
                         .config_file = t->p.file,
                         .config = t->p.config,
                         .overrides = t->p.overrides,
                         .again = true,
                         .machine = &t->p.machine,
                         .argc = 1,
                         .argv = argv};
    if (!ledger_open(&ledger, &t->p.inputs, &start, e)) fail_msg("%s", e->text);
    bool ok = tune_run(&ledger, &t->space, o, seams, &t->result, e) && ledger_end(&ledger, "done", e);
    ledger_close(&ledger);
    return ok;
}

void tuned_open(Tuned *t, const TuneAsk *ask, const TuneOptions *o, const TuneSeams *seams, const char *db) {
    Error e = {0};
    if (!tuned_try(t, ask, o, seams, db, &e)) fail_msg("%s", e.text);
}

void tuned_release(Tuned *t) {
    tune_release(&t->result);
    tune_space_release(&t->space);
    plan_release(&t->p);
}

double tuned_took(const TuneResult *r) { return r->surface.took_s + r->sample_s + r->race_s; }
