// A paper's table next to a stored run; the list of tables, and the papers' claims.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "harness/config/experiment.h"
#include "harness/analysis/choice.h"
#include "harness/analysis/estimates.h"
#include "harness/analysis/stored.h"
#include "harness/cli/table.h"
#include "harness/papers/catalogue.h"
#include "harness/papers/table.h"
#include "plots/plots.h"
#include "results/rows.h"
#include "results/transfer/transfer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *run, *db, *format;
    Choice choice;
    bool about, claims;
    Records records; // of the list; for a table another way to say --format
} TableArguments;

#define TASKS "tasks"

#define AT(name) offsetof(TableArguments, name)
static const Arg OPTIONS[] = {
    {"run", ARG_WORD, AT(run), .help = "a number or a name", .value = "RUN",
     .fallback = "the newest for this table"},
    {"format", ARG_WORD, AT(format), .help = "of the table", .value = "text|md|csv|latex|json",
     .fallback = "text", .literal = true},
    {"about", ARG_FLAG, AT(about), .help = "how to make it, what it needs, and its runs here"},
    {"claims", ARG_FLAG, AT(claims), .help = "the papers' claims in words, with a verdict each"},
    STORE_OPTION(AT(db)),
    RECORDS_OPTIONS(AT(records)),
    CHOICE_OPTIONS(AT, choice),
};

static bool find_format(const char *name, TableFormat *out, Error *e) {
    int i = text_among(name, table_format_names, TABLE_FORMATS);
    *out = (TableFormat)i;
    return i >= 0 || error_input(e, "a table cannot be '%s', but text, md, csv, latex or json", name);
}

// A run's disturbances, then its categories.
static bool print_page(Store *store, int64_t run, PageFormat format, Error *e) {
    LOCAL_TEXT text = {0};
    Page page = {.format = format, .out = &text};
    bool first = true;
    Rows *r = rows_named(store, report_sql, "doubt", run, e);
    if (rows_next(r)) page_sentence(&page, rows_text(r, 0));
    if (!rows_end(r, true, e)) return false;
    r = rows_named(store, report_sql, "tasks", run, e);
    for (; rows_next(r); first = false) {
        if (first) page_columns(&page, r, "Categories");
        page_row(&page, r);
    }
    if (!first) page_end_table(&page);
    fputs(text_get(&text), stdout);
    return rows_end(r, true, e);
}

// Not a paper's table: a run by category of its data.
static bool run_tasks(const TableArguments *a, Error *e) {
    TableFormat format = TABLE_TEXT;
    RecordTable table;
    int64_t run;
    if (!find_format(a->format, &format, e)) return false;
    LOCAL_STORE *store = store_open(a->db, STORE_READ, NULL, e);
    if (!store || !stored_run(store, a->run, &run, e) ||
        !estimates_ensure(&store, run, ESTIMATES_OF_TASKS, e) || !choice_apply(&a->choice, store, run, e))
        return false;
    if (format == TABLE_TEXT) return table_end(&table, stored_task_table(store, run, &table, e), e);
    if (format == TABLE_CSV) return store_export_csv(store, stored_tasks, run, stdout, e);
    if (format == TABLE_JSON) return store_export_jsonl(store, stored_tasks, run, stdout, e);
    return print_page(store, run, format == TABLE_MD ? PAGE_MD : PAGE_TEX, e);
}

// --- runs here -----------------------------------------------------------------------------------

EMBED(table_sql, "harness/commands/table.sql")

enum { HERE_SIZE = 64 };

static bool find_here(Store *store, const char *experiment, char out[HERE_SIZE], Error *e) {
    snprintf(out, HERE_SIZE, "-");
    if (!store) return true;
    Rows *r = rows_named(store, table_sql, "here", 0, e);
    rows_bind_text(r, 1, experiment);
    if (rows_next(r)) snprintf(out, HERE_SIZE, "%s", SHOWN(rows_text(r, 0)));
    return rows_end(r, true, e);
}

// --- lists -----------------------------------------------------------------------------------------------

static const Column COLUMNS[] = {
    {"item", "item", .help = "its name for `table`"},
    {"experiment", "experiment", .drop = 1, .help = "its name for `run`"},
    {"here", "here", .least = 14, .help = "the newest run in the store"},
    {.head = "about; at full scale: how much, of what", .least = 36},
    {"about takes needs", .help = "contents; amount; models and data"},
};
static const TableForm ITEMS = {
    "table", TABLE_COLUMNS(COLUMNS),
    .about = "The list, `outpace table --json`; a table of a paper is described in [tables.md](tables.md)."};

static bool print_items(const Catalogue *c, Store *store, const Records *as, Error *e) {
    RecordTable t = {.form = &ITEMS, .as = as};
    bool ok = true;
    for (int i = 0; ok && i < c->item_count; i++) {
        const CatalogueItem *item = &c->items[i];
        char here[HERE_SIZE];
        LOCAL_TEXT about = {0};
        ok = find_here(store, item->experiment, here, e);
        text_printf(&about, "%s; %s; %s", item->title, item->takes, item->needs);
        TABLE_ROW(&t, CELL(item->name), CELL(item->experiment), CELL(here), CELL(text_get(&about)),
                  CELL(item->title), CELL(item->takes), CELL(item->needs));
    }
    ok = table_end(&t, ok, e);
    if (ok && !records_asked(as))
        terminal_printf(
            "\n'outpace table ITEM --about' prints the commands, and what is simulated or not run; --claims "
            "lists the papers' claims in words. 'outpace table tasks' is of any run, "
            "by category of its data.\n");
    return ok;
}

static bool print_claims(const Catalogue *c, Store *store, Error *e) {
    int counts[CLAIM_VERDICTS] = {0}, chance[CLAIM_VERDICTS] = {0}; // of those, by intervals
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
        chance[v.verdict] += !v.counted;
        text_release(&v.why);
    }
    terminal_printf("\n%d hold, %d do not, %d are undecided, %d were not run: by the newest runs of '%s', "
                    "with the models and data of these\n",
                    counts[CLAIM_HOLDS], counts[CLAIM_DOES_NOT], counts[CLAIM_UNDECIDED],
                    counts[CLAIM_NOT_RUN], store_path(store));
    int decided = chance[CLAIM_HOLDS] + chance[CLAIM_DOES_NOT];
    if (decided > 0)
        terminal_printf(
            "%d of them are decided by intervals of 95%%, each of which misses on that side in at most one "
            "case of 40: %.1f false verdicts are to be expected at most\n",
            decided, decided / 40.0);
    return true;
}

// --- one item --------------------------------------------------------------------------------------------

// How to run it, at the scales that it has; without its config here, at the paper's and at smoke scale.
static void print_commands(const CatalogueItem *item, const Experiment *x) {
    if (item->full) {
        terminal_printf("%-10s %s\n%-10s %s\n", "full", item->full, "smoke", item->smoke);
        return;
    }
    terminal_printf("%-10s outpace run configs/%s.yaml\n", "full", item->experiment);
    for (int i = 0; i < EXPERIMENT_SCALES; i++)
        if (x->name ? x->scales[i] != NULL : strcmp(experiment_scales[i], SCALE_SMOKE) == 0)
            terminal_printf("%-10s outpace run configs/%s.yaml --scale %s\n", experiment_scales[i],
                            item->experiment, experiment_scales[i]);
}

static bool print_item(const CatalogueItem *item, Store *store, Error *e) {
    char here[HERE_SIZE], path[256];
    LOCAL_MEMORY Experiment *x = mem_new(1, sizeof *x);
    snprintf(path, sizeof path, "configs/%s.yaml", item->experiment);
    bool ok = find_here(store, item->experiment, here, e) &&
              (item->full || !file_exists(path) || experiment_open(x, path, NULL, e));
    if (ok) {
        terminal_printf("%-10s %s\n%-10s %s\n", "item", item->name, "shows", item->title);
        print_commands(item, x);
        terminal_printf("%-10s %s\n%-10s %s\n%-10s %s\n", "then", item->then, "needs", item->needs, "takes",
                        item->takes);
        if (item->limits) terminal_printf("%-10s %s\n", "not run", item->limits);
        terminal_printf("%-10s %s\n", "here", here);
        for (int i = 0; i < x->chosen.count; i++) // where the paper is silent
            terminal_printf("%-10s %s\n", i ? "" : "chosen", x->chosen.items[i]);
    }
    experiment_release(x);
    return ok;
}

// --- all of it -------------------------------------------------------------------------------------------

// What needs no table: the items, one of them, or the claims.
static bool print_catalogue(const TableArguments *a, const char *name, Error *e) {
    LOCAL_MEMORY Catalogue *c = mem_new(1, sizeof *c);
    const CatalogueItem *item = NULL;
    LOCAL_STORE *store = NULL; // without one nothing was run yet; claims query an empty one
    bool there = file_exists(a->db), ok;
    catalogue_open(c);
    ok = a->claims || !name || (item = catalogue_find(c, name, e));
    if (ok && (there || a->claims)) {
        store = store_open(a->db, there ? STORE_READ : STORE_TRIAL, NULL, e);
        ok = store != NULL;
    }
    ok = ok && (a->claims ? print_claims(c, store, e)
                : item    ? print_item(item, store, e)
                          : print_items(c, store, &a->records, e));
    catalogue_release(c);
    return ok;
}

// --- the command

static bool run(void *options, CommandLine *line, Error *e) {
    TableArguments *a = options;
    int64_t which;
    TableFormat format = TABLE_TEXT;
    if (a->records.json) a->format = "json";
    if (a->records.csv) a->format = "csv";
    if (a->claims && (line->words.count || a->about)) return command_misused(line->command, e);
    if (a->claims || a->about || line->words.count == 0) return print_catalogue(a, line->words.items[0], e);
    if (strcmp(line->words.items[0], TASKS) == 0) return run_tasks(a, e);
    const char *name = line->words.items[0];
    const PublishedItem *item = published_find(name);
    const char *near =
        item ? NULL : suggest(name, published_items, (size_t)published_count, sizeof *published_items);
    if (near) return error_input(e, "there is no table '%s'; did you mean '%s'?", name, near);
    if (!item) return error_input(e, "there is no table '%s'; 'outpace table' lists them", name);
    if (!find_format(a->format, &format, e)) return false;
    if (access(a->db, F_OK) != 0 && !a->run) return catalogue_none(item->name, a->db, e);
    LOCAL(published_release) Published p;
    LOCAL(table_release) Table t = {0};
    LOCAL_TEXT text = {0};
    published_open(&p, item);
    LOCAL_STORE *store = store_open(a->db, STORE_READ, NULL, e);
    bool ok = store && (a->run ? stored_run(store, a->run, &which, e)
                               : table_run_find(store, name, p.kind, &which, e) &&
                                     (which || catalogue_none(name, a->db, e)));
    ok = ok && estimates_ensure(&store, which, ESTIMATES_OF_POINTS, e) &&
         choice_apply(&a->choice, store, which, e) && table_make(store, which, item, &t, e) &&
         table_run_chosen(store, which, &t, e) && table_print(&t, format, terminal_width(), &text);
    if (ok) fputs(text_get(&text), stdout);
    return ok;
}

const Command command_table = {
    .name = "table",
    .usage = "[ITEM] [OPTIONS]",
    .summary = "the papers' tables and figures: list them, print one next to ours, judge the claims",
    .arguments = {0, 1},
    COMMAND_OPTIONS(OPTIONS, TableArguments),
    .run = run,
    .tables = TABLES(&ITEMS)};
