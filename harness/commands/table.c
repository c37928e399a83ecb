// A paper's table beside a stored run.
#include "harness/program/command.h"

#include "engine/base/error.h"
#include "harness/predict/prices.h"
#include "harness/table/catalogue.h"
#include "harness/stored/choice.h"
#include "harness/stored/estimates.h"
#include "harness/program/terminal.h"
#include "harness/stored/stored.h"
#include "harness/table/print.h"
#include "harness/table/run.h"
#include "harness/table/table.h"
#include "results/store.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *run, *db, *format;
    Choice choice;
} TableArguments;

#define PRICES "price-model"

#define AT(name) offsetof(TableArguments, name)
static const Option OPTIONS[] = {
    {"run", 0, OPTION_TEXT, AT(run), 0, 0, "RUN", "a number or a name", "the newest for this table"},
    {"format", 0, OPTION_TEXT, AT(format), 0, 0, "text|md|csv|latex|json", "of the table", "text"},
    {"db", 0, OPTION_TEXT, AT(db), 0, 0, "FILE", "the store", STORE_DEFAULT},
    CHOICE_OPTIONS(AT, choice),
};
#undef AT

static const char *item_name(const void *table, size_t i) { return ((const PublishedItem *)table)[i].name; }

static bool list_items(Error *e) {
    for (int i = 0; i < published_count; i++) {
        Published p;
        if (!published_open(&p, &published_items[i], e)) return false;
        terminal_printf("%-20s %4zu published  %s\n", published_items[i].name, p.row_count, p.title);
        published_release(&p);
    }
    terminal_printf("%-20s                 the price model beside published pairs of S and speedup\n",
                    PRICES);
    return true;
}

static const PublishedItem *find_item(const char *name, Error *e) {
    const PublishedItem *item = published_find(name);
    if (item) return item;
    const char *near = suggest(name, published_items, (size_t)published_count, item_name);
    if (near) error_input(e, "there is no table '%s'; did you mean '%s'?", name, near);
    else error_input(e, "there is no table '%s'; 'outpace table' lists them", name);
    return NULL;
}

static bool find_format(const char *name, TableFormat *out, Error *e) {
    for (int i = 0; i < TABLE_FORMATS; i++)
        if (strcmp(name, table_format_names[i]) == 0) {
            *out = (TableFormat)i;
            return true;
        }
    return error_input(e, "a table cannot be '%s', but text, md, csv, latex or json", name);
}

static bool find_run(Store *store, const TableArguments *a, const PublishedItem *item, int64_t *run,
                     Error *e) {
    Published p;
    if (a->run) return stored_run(store, a->run, run, e);
    if (!published_open(&p, item, e)) return false;
    bool ok =
        table_run_find(store, item->name, p.kind, run, e) && (*run || catalogue_none(item->name, a->db, e));
    published_release(&p);
    return ok;
}

static bool print(Store *store, int64_t run, const PublishedItem *item, TableFormat format, Error *e) {
    Table t;
    Text text = {0};
    if (!table_make(store, run, item, &t, e)) return false;
    bool ok = table_run_chosen(store, run, &t, e) && table_print(&t, format, terminal_width(), &text, e);
    if (ok) fputs(text_get(&text), stdout);
    text_release(&text);
    table_release(&t);
    return ok;
}

// No paper's table, and of no run: what papers printed beside prices.
static bool print_prices(const char *format, Error *e) {
    Prices p;
    Text text = {0};
    TableFormat f = TABLE_TEXT;
    if (!find_format(format, &f, e)) return false;
    if (f != TABLE_TEXT && f != TABLE_MD && f != TABLE_CSV)
        return error_input(e, "table " PRICES " cannot be '%s', but text, md or csv", format);
    if (!prices_open(&p, e)) return false;
    prices_print(&p, f == TABLE_MD ? PRICES_MD : f == TABLE_CSV ? PRICES_CSV : PRICES_TEXT, &text);
    bool ok = !text.failed || error_system(e, "out of memory for a table");
    if (ok) fputs(text_get(&text), stdout);
    text_release(&text);
    prices_close(&p);
    return ok;
}

static bool run(int argc, char **argv, int *code, Error *e) {
    (void)code;
    TableArguments a = {.db = STORE_DEFAULT, .format = "text"};
    Positionals rest;
    bool stop;
    int64_t which;
    TableFormat format = TABLE_TEXT;
    if (!command_parse(&command_table, argc, argv, &a, &rest, &stop, e)) return false;
    if (stop) return true;
    if (rest.count == 0) return list_items(e);
    if (strcmp(rest.items[0], PRICES) == 0) return print_prices(a.format, e);
    const PublishedItem *item = find_item(rest.items[0], e);
    if (!item || !find_format(a.format, &format, e)) return false;
    if (access(a.db, F_OK) != 0 && !a.run) return catalogue_none(item->name, a.db, e);
    Store *store = store_open(a.db, STORE_READ, NULL, e);
    bool ok = store && find_run(store, &a, item, &which, e) && estimates_ensure(&store, which, e) &&
              choice_apply(&a.choice, store, which, e) && print(store, which, item, format, e);
    store_close(store);
    return ok;
}

const Command command_table = {
    .name = "table",
    .usage = "[NAME] [OPTIONS]",
    .summary = "print a paper's table or figure: its numbers, ours beside them",
    .arguments = {0, 1},
    .lesson =
        "Without NAME, lists the tables and figures there are. A row is a published number; beside it\n"
        "stands what a stored run measured, computed as the paper computes it, with our own measure where\n"
        "that is another, and the difference: only where model, dataset, dtype and device are the\n"
        "published ones; else the last column says why not. Below stand points that the paper has not. A "
        "stand-in is a\n"
        "model with the shape of the published one whose weights are others; above AR: a quality of text\n"
        "less autoregressive decoding's; S, no loops: without outputs that end in a loop.\n"
        "\n"
        "  outpace run configs/lookahead-table-3.yaml --scale smoke\n"
        "  outpace table lookahead-table-3\n"
        "  outpace table spec-bench --run 3 --format md\n"
        "  outpace table price-model                     needs no run: prices beside published pairs\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};
