// The papers' tables and figures, and their claims: what each needs, and what of it the store has.
#include "harness/program/command.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "harness/config/experiment.h"
#include "harness/program/terminal.h"
#include "harness/table/catalogue.h"
#include "harness/table/claims.h"
#include "results/rows.h"
#include "results/store.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct {
    const char *db;
    bool claims;
} ListOptions;

#define AT(name) offsetof(ListOptions, name)
static const Option OPTIONS[] = {
    {"claims", 0, OPTION_FLAG, AT(claims), 0, 0, NULL, "what the papers say in their text", NULL},
    {"db", 0, OPTION_TEXT, AT(db), 0, 0, "FILE", "the store", STORE_DEFAULT},
};
#undef AT

// --- what was run here -----------------------------------------------------------------------------------

enum { HERE_SIZE = 64 };

// The newest run of an experiment: "run 12, smoke, 2026-11-21, done, 36 s".
static bool find_run(Store *store, const char *experiment, char out[HERE_SIZE], Error *e) {
    static const char SQL[] =
        "SELECT run.id, created, coalesce(overrides, '') LIKE '%\"--scale\",\"smoke\"%', result,"
        " (SELECT coalesce(sum(ended - started), 0) FROM attempt WHERE run_id = run.id) FROM run"
        " JOIN attempt ON run_id = run.id WHERE name = ?1 ORDER BY run.id DESC, attempt.id DESC LIMIT 1";
    Rows *r = store ? rows_open(store, SQL, e) : NULL;
    snprintf(out, HERE_SIZE, "-");
    if (!r) return !store;
    rows_bind_text(r, 1, experiment);
    if (rows_next(r)) {
        char text[16] = "?";
        time_t t = (time_t)rows_real(r, 1);
        struct tm day;
        if (localtime_r(&t, &day)) strftime(text, sizeof text, "%Y-%m-%d", &day);
        Text result = {0};
        terminal_letters(rows_type(r, 3) == VALUE_NULL ? "not ended" : rows_text(r, 3), &result);
        snprintf(out, HERE_SIZE, "run %lld%s, %s, %s, %.0f s", (long long)rows_int(r, 0),
                 rows_int(r, 2) ? ", smoke" : "", text, text_get(&result), rows_real(r, 4));
        text_release(&result);
    }
    return rows_end(r, true, e);
}

// --- lists -----------------------------------------------------------------------------------------------

static const GridColumn COLUMNS[] = {
    {"item", false, 0, 0},
    {"experiment", false, 0, 1},
    {"here", false, 14, 0},
    {"what it is; at full scale: how much, of what", false, 36, 0},
};

static bool print_items(const Catalogue *c, Store *store, Error *e) {
    Grid g = {.columns = COLUMNS, .count = sizeof COLUMNS / sizeof *COLUMNS};
    bool ok = true;
    grid_heads(&g);
    for (int i = 0; ok && i < c->item_count; i++) {
        const CatalogueItem *item = &c->items[i];
        char here[HERE_SIZE];
        ok = find_run(store, item->experiment, here, e);
        text_puts(&g.cell, item->name), grid_next(&g);
        text_puts(&g.cell, item->experiment), grid_next(&g);
        text_puts(&g.cell, here), grid_next(&g);
        text_printf(&g.cell, "%s; %s; %s", item->title, item->takes, item->needs), grid_next(&g);
        grid_end(&g);
    }
    ok = ok && grid_show(&g, e);
    grid_release(&g);
    if (ok)
        terminal_printf("\n'outpace list ITEM' has the commands, and what is simulated or not run; --claims "
                        "what the papers say in words.\n");
    return ok;
}

static bool print_claims(const Catalogue *c, Store *store, Error *e) {
    int counts[CLAIM_VERDICTS] = {0};
    for (int i = 0; i < c->claim_count; i++) {
        const CatalogueClaim *claim = &c->claims[i];
        ClaimJudgement v;
        if (!claim_judge(store, claim, &v, e)) return false;
        terminal_printf("%-10s %s, %s: %s\n%-10s %s: %s\n", claim_verdicts[v.verdict], claim->paper,
                        claim->where, claim->claim, "", claim->state, claim->stands);
        if (!claim->query) terminal_printf("%-10s %s\n", "", claim->holds_when);
        else
            terminal_printf("%-10s holds when %s%s%s\n", "", claim->holds_when, v.why.length ? ": " : "",
                            text_get(&v.why));
        counts[v.verdict]++;
        text_release(&v.why);
    }
    terminal_printf("\n%d hold, %d do not, %d are undecided, %d were not run: by the newest runs of '%s', "
                    "with the models and data of these\n",
                    counts[CLAIM_HOLDS], counts[CLAIM_DOES_NOT], counts[CLAIM_UNDECIDED],
                    counts[CLAIM_NOT_RUN], store_path(store));
    return true;
}

// --- one item --------------------------------------------------------------------------------------------

// What the paper leaves open, where the config is here.
static bool print_chosen(const CatalogueItem *item, Error *e) {
    char path[256];
    snprintf(path, sizeof path, "configs/%s.yaml", item->experiment);
    if (item->full || !file_exists(path)) return true;
    Experiment *x = mem_alloc(1, sizeof *x);
    if (!x) return error_system(e, "out of memory");
    bool ok = experiment_open(x, path, NULL, e);
    for (int i = 0; ok && i < x->chosen.count; i++)
        terminal_printf("%-10s %s\n", i ? "" : "chosen", x->chosen.items[i]);
    experiment_release(x);
    mem_free(x);
    return ok;
}

static bool print_item(const CatalogueItem *item, Store *store, Error *e) {
    char here[HERE_SIZE];
    if (!find_run(store, item->experiment, here, e)) return false;
    terminal_printf("%-10s %s\n%-10s %s\n", "item", item->name, "shows", item->title);
    if (item->full) terminal_printf("%-10s %s\n%-10s %s\n", "full", item->full, "smoke", item->smoke);
    else
        terminal_printf(
            "%-10s outpace run configs/%s.yaml\n%-10s outpace run configs/%s.yaml --scale smoke\n", "full",
            item->experiment, "smoke", item->experiment);
    terminal_printf("%-10s %s\n%-10s %s\n%-10s %s\n", "then", item->then, "needs", item->needs, "takes",
                    item->takes);
    if (item->limits) terminal_printf("%-10s %s\n", "not run", item->limits);
    terminal_printf("%-10s %s\n", "here", here);
    return print_chosen(item, e);
}

// --- all of it -------------------------------------------------------------------------------------------

// Without a store nothing was run yet.
static bool open_store(const char *db, Store **out, Error *e) {
    *out = file_exists(db) ? store_open(db, STORE_READ, NULL, e) : NULL;
    return *out || !file_exists(db);
}

// Queries need a store, be it an empty one.
static bool list_claims(const char *db, const Catalogue *c, Error *e) {
    Store *store = store_open(db, file_exists(db) ? STORE_READ : STORE_TRIAL, NULL, e);
    bool ok = store && print_claims(c, store, e);
    store_close(store);
    return ok;
}

static bool list(const ListOptions *o, const char *name, const Catalogue *c, Error *e) {
    const CatalogueItem *item = name ? catalogue_find(c, name, e) : NULL;
    Store *store;
    if ((name && !item) || !open_store(o->db, &store, e)) return false;
    bool ok = item ? print_item(item, store, e) : print_items(c, store, e);
    store_close(store);
    return ok;
}

static bool run(int argc, char **argv, int *code, Error *e) {
    (void)code;
    ListOptions o = {.db = STORE_DEFAULT};
    Positionals rest;
    bool stop;
    if (!command_parse(&command_list, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    if (o.claims && rest.count) return command_misused(&command_list, e);
    Catalogue *c = mem_alloc(1, sizeof *c);
    if (!c) return error_system(e, "out of memory");
    bool ok = catalogue_open(c, e);
    if (ok && o.claims) ok = list_claims(o.db, c, e);
    else if (ok) ok = list(&o, rest.count ? rest.items[0] : NULL, c, e);
    catalogue_release(c);
    mem_free(c);
    return ok;
}

const Command command_list = {
    .name = "list",
    .usage = "[ITEM] [OPTIONS]",
    .summary = "the papers' tables and figures: what makes each, what it needs, whether it was run here",
    .arguments = {0, 1},
    .lesson =
        "One line for each of the 34 tables and figures that this laboratory reproduces. Several may come\n"
        "from one experiment. ITEM prints the commands that make it, at full scale and at smoke scale\n"
        "(the reference model, minutes on two cores), what the config chose where the paper is silent,\n"
        "and what is not run and why.\n"
        "--claims lists what the papers say in their text: whether it holds by what the store has, does "
        "not,\n"
        "is undecided or was not run; whether it is measured, computed or simulated, and where our number\n"
        "stands; and when it would hold. A comparison is made prompt by prompt: a claim holds where the 95%\n"
        "interval of the mean margin is above 0, does not where it is below; of several comparisons all "
        "must\n"
        "hold, and their intervals are wider for it. Real weights and cards decide what needs them.\n"
        "\n"
        "  outpace list\n"
        "  outpace list lookahead-table-3\n"
        "  outpace list --claims\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};
