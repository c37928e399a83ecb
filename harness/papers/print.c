// For people a row has few cells, each put together of several fields; for programs a field is a cell.
#include "harness/papers/table.h"

#include "engine/base/json.h"
#include "harness/cli/table.h"
#include "plots/letters.h"
#include "plots/page.h"

#include <math.h>

const char *const table_format_names[TABLE_FORMATS] = {"text", "md", "csv", "latex", "json"};

// --- rows ------------------------------------------------------------------------------------------------

static const Column COLUMNS[] = {
    {"row", "row", .least = 8},
    {"model", "model", .least = 8, .drop = 11},
    {.keys = "dataset task"},
    {.head = "dataset", .least = 8, .drop = 9},
    {"metric", "metric", .least = 8},
    {.keys = "computed_as published spread"},
    {.head = "published", .kind = AS_COUNT},
    {.keys = "our_model stand_in"},
    {.head = "our model", .least = 8, .drop = 8},
    {"our_dataset", "on", .least = 8, .drop = 7},
    {.keys = "our_method"},
    {.head = "our method", .least = 12, .drop = 10},
    {.keys = "point seeds ours low high"},
    {.head = "ours [95%]", .kind = AS_COUNT},
    {.keys = "passes pass_mean pass_deviation"},
    {.head = "passes", .kind = AS_COUNT, .drop = 4},
    {.keys = "own_name own own_low own_high"},
    {.head = "our own", .kind = AS_COUNT, .drop = 6},
    {.keys = "S"},
    {.head = "S", .kind = AS_MEASURED, .drop = 5}, // unless ours is S
    {"rows_per_step", "rows/step", AS_MEASURED, .drop = 5},
    {.keys = "difference difference_low difference_high"},
    {.head = "difference", .kind = AS_COUNT, .drop = 14},
    {.keys = "why_not above_ar above_ar_low above_ar_high"},
    {.head = "above AR", .kind = AS_COUNT, .drop = 4},
    {"bytes_per_step", "bytes/step", AS_MEASURED, .drop = 1},
    {"repeated", "repeated", AS_MEASURED, .drop = 2},
    {"S_calm", "S, no loops", AS_MEASURED, .drop = 3},
    {"doubt", "disturbed", .least = 10, .drop = 12},
    {.keys = "note"},
    {.head = "why not, note", .least = 16, .drop = 13},
};
static const TableForm FORM = {.within = "rows", TABLE_COLUMNS(COLUMNS)};

// What isn't known is null for programs, and nothing for people.
static Cell known(int x) { return x ? cell_int(x) : cell_text(NULL); }
static Cell known_real(double x) { return isfinite(x) ? cell_real(x) : cell_text(NULL); }

static void put_signed(const Quantity *q, Text *out) {
    if (isfinite(q->value)) text_puts(out, q->value >= 0 ? "+" : "");
    text_measured(out, q->value, q->low, q->high);
}

static void put_row(RecordTable *t, const TableRow *r) {
    enum { DATASET, PUBLISHED, MODEL, METHOD, OURS, PASSES, OWN, DIFFERENCE, ABOVE, WHY, CELLS };
    Text of[CELLS] = {{0}};
    const char *in[CELLS];
    text_printf(&of[DATASET], "%s%s%s", r->dataset, *r->task ? ", " : "", r->task);
    text_printf(&of[PUBLISHED], "%s%s%s", r->published, *r->spread ? " +- " : "", r->spread);
    text_printf(&of[MODEL], "%s%s", r->our_model,
                *r->stand_in     ? " (stand-in)"
                : r->other_model ? " (not the paper's)"
                                 : "");
    text_puts(&of[METHOD], r->our_method);
    if (r->seeds > 1) text_printf(&of[METHOD], ", %d seeds", r->seeds);
    text_measured(&of[OURS], r->ours.value, r->ours.low, r->ours.high);
    if (r->passes.count)
        text_printf(&of[PASSES], "%.3g +- %.2g of %d", r->passes.mean, r->passes.deviation, r->passes.count);
    char own[MEASURED_SIZE];
    if (isfinite(r->own.value))
        text_printf(&of[OWN], "%s %s", r->own_name,
                    measured_text(own, r->own.value, r->own.low, r->own.high));
    put_signed(&r->difference, &of[DIFFERENCE]);
    put_signed(&r->above, &of[ABOVE]);
    text_puts(&of[WHY], r->why_not);
    if (*r->note) text_printf(&of[WHY], "%s(%s)", *r->why_not ? " " : "", r->note);
    for (int i = 0; i < CELLS; i++) in[i] = text_get(&of[i]);
    TABLE_ROW(
        t, CELL(r->row), CELL(r->model), CELL(r->dataset), CELL(r->task), CELL(in[DATASET]), CELL(r->metric),
        CELL(r->measure), CELL(r->published), CELL(r->spread), CELL(in[PUBLISHED]), CELL(r->our_model),
        CELL(r->stand_in), CELL(in[MODEL]), CELL(r->our_dataset), CELL(r->our_method), CELL(in[METHOD]),
        known(r->point), known(r->seeds), CELL(r->ours.value), CELL(r->ours.low), CELL(r->ours.high),
        CELL(in[OURS]), known(r->passes.count), CELL(r->passes.mean), CELL(r->passes.deviation),
        CELL(in[PASSES]), CELL(r->own_name), CELL(r->own.value), CELL(r->own.low), CELL(r->own.high),
        CELL(in[OWN]), CELL(r->text.S), known_real(r->measure[0] == 'S' ? NAN : r->text.S),
        known_real(r->text.rows_per_step), CELL(r->difference.value), CELL(r->difference.low),
        CELL(r->difference.high), CELL(in[DIFFERENCE]), CELL(r->why_not), CELL(r->above.value),
        CELL(r->above.low), CELL(r->above.high), CELL(in[ABOVE]), known_real(r->text.bytes_per_step),
        known_real(r->text.repeated), known_real(r->text.calm), CELL(r->doubt), CELL(r->note), CELL(in[WHY]));
    for (int i = 0; i < CELLS; i++) text_release(&of[i]);
}

static void put_rows(const Table *t, const Records *as, RecordTable *out) {
    *out = (RecordTable){.form = &FORM, .as = as};
    for (size_t i = 0; i < t->row_count; i++) put_row(out, &t->rows[i]);
}

// --- text ------------------------------------------------------------------------------------------------

// A line about the table: what it tells, and a text, which may be empty: then there's no line.
typedef void (*PutLine)(const Page *p, const char *before, const char *text);

static void put_head(const Table *t, PutLine put, const Page *p) {
    put(p, "published: ", t->item.source);
    put(p, "ours: ", t->run);
    put(p, "on: ", t->machine);
    put(p, "measured: ", t->date);
    put(p, "by: ", t->command);
}

static void put_notes(const Table *t, PutLine put, const Page *p) {
    for (int i = 0; i < t->item.metric_count; i++) {
        LOCAL_TEXT line = {0};
        text_printf(&line, "%s: computed as our %s", t->item.metrics[i].name, t->item.metrics[i].measure);
        put(p, "", text_get(&line));
    }
    for (int i = 0; i < t->item.chosen_count; i++) put(p, "the paper leaves open: ", t->item.chosen[i]);
    for (size_t i = 0; i < t->chosen_count; i++) put(p, "chosen: ", t->chosen[i]);
    for (int i = 0; i < t->item.note_count; i++) put(p, "note: ", t->item.notes[i]);
}

static const char UNLIKE[] = "not trained alike, so what differs may be the training's: ";

// --- text ------------------------------------------------------------------------------------------------

static void put_text_line(const Page *p, const char *before, const char *text) {
    char letter[LETTER_SIZE];
    if (!*text) return;
    text_puts(p->out, before);
    while (letters_next(&text, letter)) text_puts(p->out, letter);
    text_puts(p->out, "\n");
}

static void print_text(const Table *t, int width, Text *out) {
    LOCAL_TEXT head = {0}, notes = {0};
    const Page before = {.out = &head}, after = {.out = &notes};
    RecordTable rows;
    put_rows(t, NULL, &rows);
    put_text_line(&before, UNLIKE, t->unlike);
    put_text_line(&before, "", t->item.title);
    put_head(t, put_text_line, &before);
    text_puts(&head, "\n");
    text_puts(&notes, "\n");
    put_notes(t, put_text_line, &after);
    terminal_fold(text_get(&head), width, out);
    grid_print(&rows.grid, width, out);
    terminal_fold(text_get(&notes), width, out);
    grid_release(&rows.grid);
}

// --- Markdown and LaTeX ----------------------------------------------------------------------------------

static void put_item(const Page *p, const char *before, const char *text) {
    if (!*text) return;
    text_puts(p->out, p->format == PAGE_MD ? "- " : "\\item ");
    text_puts(p->out, before);
    page_text(p, text);
    text_puts(p->out, "\n");
}

static void open_items(const Page *p) {
    text_puts(p->out, p->format == PAGE_MD ? "\n" : "\\begin{itemize}\n");
}
static void close_items(const Page *p) {
    text_puts(p->out, p->format == PAGE_MD ? "\n" : "\\end{itemize}\n");
}

static void print_page(const Table *t, PageFormat format, Text *out) {
    const Page p = {format, out, NULL};
    RecordTable rows;
    if (format == PAGE_TEX) {
        text_puts(out, "% For a page set across, with \\usepackage{longtable}.\n");
        page_tex_start(&p);
    }
    page_heading(&p, t->item.title);
    open_items(&p);
    put_item(&p, UNLIKE, t->unlike);
    put_head(t, put_item, &p);
    close_items(&p);
    put_rows(t, NULL, &rows);
    grid_page(&rows.grid, &p, t->item.title);
    grid_release(&rows.grid);
    open_items(&p);
    put_notes(t, put_item, &p);
    close_items(&p);
}

// --- for programs ----------------------------------------------------------------------------------------

static json_t *list_rows(const Table *t, const Records *as) {
    RecordTable rows;
    put_rows(t, as, &rows);
    return table_list(&rows);
}

static json_t *texts_json(const char *const *texts, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(list, json_from_text(texts[i]));
    return list;
}

bool table_fields_json(const Table *t, Text *out) {
    json_t *root = json_pack(
        "{s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}", "name", json_from_text(t->name),
        "title", json_from_text(t->item.title), "source", json_from_text(t->item.source), "run",
        json_from_text(t->run), "machine", json_from_text(t->machine), "date", json_from_text(t->date),
        "command", json_from_text(t->command), "unlike_training", json_from_text(t->unlike), "open",
        texts_json(t->item.chosen, (size_t)t->item.chosen_count), "chosen",
        texts_json(t->chosen, t->chosen_count), "rows", list_rows(t, &(Records){.json = true}));
    bool ok = json_append(root, JSON_INDENT(1), out);
    text_puts(out, "\n");
    return ok;
}

bool table_print(const Table *t, TableFormat format, int width, Text *out) {
    json_t *rows = NULL;
    switch (format) {
    case TABLE_TEXT: print_text(t, width, out); break;
    case TABLE_MD: print_page(t, PAGE_MD, out); break;
    case TABLE_LATEX: print_page(t, PAGE_TEX, out); break;
    case TABLE_CSV:
        records_csv(rows = list_rows(t, &(Records){.csv = true}), out);
        json_decref(rows);
        break;
    default: return table_fields_json(t, out);
    }
    return true;
}
