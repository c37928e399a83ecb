// The papers' numbers: tab-separated files embedded in the program, read once more at each use. All texts of
// a Published point into its `bytes`, where tabs and line ends became NULs. Their form is tested, so a wrong
// line is an assertion.
#include "results/published.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"

#include <assert.h>
#include <string.h>

// symbol, name of the item and its file
#define ITEMS(X)                                  \
    X(lookahead_table_2, "lookahead-table-2")     \
    X(lookahead_table_3, "lookahead-table-3")     \
    X(lookahead_table_4, "lookahead-table-4")     \
    X(lookahead_figure_4a, "lookahead-figure-4a") \
    X(lookahead_figure_4b, "lookahead-figure-4b") \
    X(lookahead_figure_5, "lookahead-figure-5")   \
    X(lookahead_figure_6, "lookahead-figure-6")   \
    X(lookahead_figure_7, "lookahead-figure-7")   \
    X(lookahead_figure_8, "lookahead-figure-8")   \
    X(ngrammys_figure_1, "ngrammys-figure-1")     \
    X(ngrammys_figure_2, "ngrammys-figure-2")     \
    X(ngrammys_figure_3, "ngrammys-figure-3")     \
    X(ngrammys_figure_4, "ngrammys-figure-4")     \
    X(ngrammys_figure_5, "ngrammys-figure-5")     \
    X(ngrammys_figure_6, "ngrammys-figure-6")     \
    X(ngrammys_figure_7, "ngrammys-figure-7")     \
    X(ngrammys_figure_8, "ngrammys-figure-8")     \
    X(ngrammys_figure_9, "ngrammys-figure-9")     \
    X(ngrammys_table_1, "ngrammys-table-1")       \
    X(kangaroo_figure_1a, "kangaroo-figure-1a")   \
    X(kangaroo_figure_1b, "kangaroo-figure-1b")   \
    X(kangaroo_figure_3a, "kangaroo-figure-3a")   \
    X(kangaroo_figure_3b, "kangaroo-figure-3b")   \
    X(kangaroo_table_1, "kangaroo-table-1")       \
    X(kangaroo_table_2, "kangaroo-table-2")       \
    X(ouroboros_table_1, "ouroboros-table-1")     \
    X(ouroboros_table_2, "ouroboros-table-2")     \
    X(ouroboros_table_3, "ouroboros-table-3")     \
    X(ouroboros_table_4, "ouroboros-table-4")     \
    X(ouroboros_figure_3, "ouroboros-figure-3")   \
    X(ouroboros_figure_4, "ouroboros-figure-4")   \
    X(ouroboros_figure_5, "ouroboros-figure-5")   \
    X(mistral_cache, "mistral-cache")             \
    X(mistral_window, "mistral-window")           \
    X(spec_bench, "spec-bench")
#define OWN(symbol, name) EMBED(published_##symbol, "results/published/" name ".tsv")
#define ROW(symbol, name) {name, published_##symbol, published_##symbol##_end},

ITEMS(OWN)

const PublishedItem published_items[] = {ITEMS(ROW)};
const int published_count = sizeof published_items / sizeof *published_items;

// The names of a row's cells, in their order.
static const char COLUMNS[] =
    "row\tmodel\tdataset\ttask\tprompts\tmethod\tgeneration\tdtype\tdevice\tmetric\tvalue\tspread\tnote";
enum { CELLS = sizeof(PublishedRow) / sizeof(char *) };

// "# key: value"
static void read_head(Published *p, char *line) {
    char *value = strstr(line, ": "), *equals;
    const char *key = line + 2;
    assert(value);
    *value = 0;
    value += 2;
    if (strcmp(key, "title") == 0) p->title = value;
    else if (strcmp(key, "source") == 0) p->source = value;
    else if (strcmp(key, "kind") == 0) p->kind = value;
    else if (strcmp(key, "metric") == 0) {
        equals = strstr(value, " = ");
        assert(equals && p->metric_count < PUBLISHED_METRICS);
        *equals = 0;
        p->metrics[p->metric_count++] = (PublishedMetric){value, equals + 3};
    } else if (strcmp(key, "chosen") == 0) {
        assert(p->chosen_count < PUBLISHED_LINES);
        p->chosen[p->chosen_count++] = value;
    } else {
        assert(strcmp(key, "note") == 0 && p->note_count < PUBLISHED_LINES);
        p->notes[p->note_count++] = value;
    }
}

static void add_row(Published *p, char *line) {
    PublishedRow *row = LIST_ADD(p->rows, p->row_count, p->capacity);
    for (const char **cell = (const char **)row; cell < (const char **)row + CELLS; cell++) {
        assert(line);
        *cell = strsep(&line, "\t");
    }
    assert(!line && row->value[0] && published_metric(p, row->metric));
}

void published_open(Published *out, const PublishedItem *item) {
    bool named = false; // the line of names has been read
    *out = (Published){.kind = "sweep", .bytes = mem_text(item->bytes, (size_t)(item->end - item->bytes))};
    for (char *at = out->bytes; at && *at;) {
        char *line = strsep(&at, "\n");
        if (named) add_row(out, line);
        else if (line[0] == '#') read_head(out, line);
        else named = strcmp(line, COLUMNS) == 0;
    }
    assert(named && out->title && out->source);
}

void published_release(Published *p) {
    MEM_FREE(p->rows, p->bytes);
    *p = (Published){0};
}

const PublishedMetric *published_metric(const Published *p, const char *name) {
    for (int i = 0; i < p->metric_count; i++)
        if (strcmp(p->metrics[i].name, name) == 0) return &p->metrics[i];
    return NULL;
}

const PublishedItem *published_find(const char *name) {
    for (int i = 0; i < published_count; i++)
        if (strcmp(published_items[i].name, name) == 0) return &published_items[i];
    return NULL;
}
