// The papers' numbers: tab-separated files embedded in the program, read once more at each use. All texts of
// a Published point into its `bytes`, where tabs and line ends became NULs.
#include "results/published.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"

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

#define AT(name) offsetof(PublishedRow, name)
static const struct {
    const char *name;
    size_t offset;
} COLUMNS[] = {
    {"row", AT(row)},         {"model", AT(model)},   {"dataset", AT(dataset)},       {"task", AT(task)},
    {"prompts", AT(prompts)}, {"method", AT(method)}, {"generation", AT(generation)}, {"dtype", AT(dtype)},
    {"device", AT(device)},   {"metric", AT(metric)}, {"value", AT(value)},           {"spread", AT(spread)},
    {"note", AT(note)},
};
#undef AT
enum { COLUMN_COUNT = sizeof COLUMNS / sizeof *COLUMNS };

// A file that is being read.
typedef struct Reader {
    Published *out;
    const char *name;
    int line;
    bool named; // the line of names has been read
} Reader;

static bool wrong(const Reader *r, Error *e, const char *what) {
    return error_input(e, "%s.tsv:%d: %s", r->name, r->line, what);
}

// Cuts the text before `end`, which becomes a NUL. *at moves behind it, to NULL if there is no `end`.
static char *cut(char **at, char end) {
    char *from = *at, *stop = strchr(from, end);
    *at = stop ? stop + 1 : NULL;
    if (stop) *stop = 0;
    return from;
}

// --- the lines above the rows ---------------------------------------------------------------------------

static bool add_metric(const Reader *r, char *text, Error *e) {
    Published *p = r->out;
    char *equals = strstr(text, " = ");
    if (!equals || p->metric_count == PUBLISHED_METRICS)
        return wrong(r, e, "a metric is written NAME = MEASURE, and there are 16 at most");
    *equals = 0;
    p->metrics[p->metric_count++] = (PublishedMetric){text, equals + 3};
    return true;
}

static bool add_text(const Reader *r, const char *text, const char **list, int *count, Error *e) {
    if (*count == PUBLISHED_LINES) return wrong(r, e, "there are 16 lines of a kind at most");
    list[(*count)++] = text;
    return true;
}

static bool read_head(const Reader *r, char *line, Error *e) {
    Published *p = r->out;
    char *value = strstr(line, ": ");
    if (!value) return wrong(r, e, "a line above the rows is written '# key: value'");
    *value = 0;
    value += 2;
    const char *key = line + 2;
    if (strcmp(key, "title") == 0) p->title = value;
    else if (strcmp(key, "source") == 0) p->source = value;
    else if (strcmp(key, "kind") == 0) p->kind = value;
    else if (strcmp(key, "metric") == 0) return add_metric(r, value, e);
    else if (strcmp(key, "chosen") == 0) return add_text(r, value, p->chosen, &p->chosen_count, e);
    else if (strcmp(key, "note") == 0) return add_text(r, value, p->notes, &p->note_count, e);
    else return wrong(r, e, "the key is none of title, source, kind, metric, chosen and note");
    return true;
}

// --- rows ------------------------------------------------------------------------------------------------

static bool add_row(const Reader *r, char *line, Error *e) {
    Published *p = r->out;
    PublishedRow row = {0};
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (!line) return wrong(r, e, "the row has too few cells");
        *(const char **)((char *)&row + COLUMNS[i].offset) = cut(&line, '\t');
    }
    if (line) return wrong(r, e, "the row has a cell too many");
    if (!row.value[0]) return wrong(r, e, "the row has no value; what is not legible is NA");
    if (!published_metric(p, row.metric)) return wrong(r, e, "the row's metric is not named above");
    mem_grow(&p->rows, &p->capacity, p->row_count + 1, sizeof *p->rows);
    p->rows[p->row_count++] = row;
    return true;
}

static bool read_line(Reader *r, char *line, Error *e) {
    r->line++;
    if (line[0] == '#' && line[1] == ' ' && !r->named) return read_head(r, line, e);
    if (r->named) return add_row(r, line, e);
    r->named = true;
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (!line || strcmp(cut(&line, '\t'), COLUMNS[i].name) != 0)
            return wrong(r, e, "the columns are not those of results/published.h");
    return !line || wrong(r, e, "there is a column too many");
}

static bool read_all(Reader *r, Error *e) {
    for (char *at = r->out->bytes; at && *at;)
        if (!read_line(r, cut(&at, '\n'), e)) return false;
    if (!r->named || !r->out->title || !r->out->source)
        return wrong(r, e, "the file has no title, no source or no line of names");
    return true;
}

bool published_parse(Published *out, const char *name, const char *bytes, size_t n, Error *e) {
    *out = (Published){.kind = "sweep"};
    Reader r = {.out = out, .name = name};
    if (memchr(bytes, 0, n)) return error_input(e, "%s.tsv: the file has a NUL in it", name);
    out->bytes = mem_text(bytes, n);
    if (read_all(&r, e)) return true;
    published_release(out);
    return false;
}

bool published_open(Published *out, const PublishedItem *item, Error *e) {
    return published_parse(out, item->name, item->bytes, (size_t)(item->end - item->bytes), e);
}

void published_release(Published *p) {
    mem_free(p->rows);
    mem_free(p->bytes);
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
