// For people a row has few cells, each put together of several fields; for programs a field is a cell.
#include "harness/papers/print.h"

#include "engine/base/json.h"
#include "harness/cli/terminal.h"
#include "plots/letters.h"
#include "plots/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const table_format_names[TABLE_FORMATS] = {"text", "md", "csv", "latex", "json"};

// --- cells -----------------------------------------------------------------------------------------------

static void put_number(Text *out, double value) { text_measured(out, value, NAN, NAN); }
static void put_interval(Text *out, const Quantity *q) { text_measured(out, q->value, q->low, q->high); }

static void cell_row(const TableRow *r, Text *out) { text_puts(out, r->row); }
static void cell_model(const TableRow *r, Text *out) { text_puts(out, r->model); }
static void cell_dataset(const TableRow *r, Text *out) {
    text_puts(out, r->dataset);
    if (*r->task) text_printf(out, ", %s", r->task);
}
static void cell_our_model(const TableRow *r, Text *out) {
    text_puts(out, r->our_model);
    text_puts(out, *r->stand_in ? " (stand-in)" : r->other_model ? " (not the paper's)" : "");
}
static void cell_our_dataset(const TableRow *r, Text *out) { text_puts(out, r->our_dataset); }
static void cell_our_method(const TableRow *r, Text *out) {
    text_puts(out, r->our_method);
    if (r->seeds > 1) text_printf(out, ", %d seeds", r->seeds);
}
static void cell_metric(const TableRow *r, Text *out) { text_puts(out, r->metric); }
static void cell_published(const TableRow *r, Text *out) {
    text_puts(out, r->published);
    if (*r->spread) text_printf(out, " +- %s", r->spread);
}
static void cell_ours(const TableRow *r, Text *out) { put_interval(out, &r->ours); }
static void cell_passes(const TableRow *r, Text *out) {
    if (r->passes.count)
        text_printf(out, "%.3g +- %.2g of %d", r->passes.mean, r->passes.deviation, r->passes.count);
}
static void cell_own(const TableRow *r, Text *out) {
    if (!isfinite(r->own.value)) return;
    char own[MEASURED_SIZE];
    text_printf(out, "%s %s", r->own_name, measured_text(own, r->own.value, r->own.low, r->own.high));
}
static void cell_difference(const TableRow *r, Text *out) {
    if (isfinite(r->difference.value)) text_puts(out, r->difference.value >= 0 ? "+" : "");
    put_interval(out, &r->difference);
}
static void cell_above(const TableRow *r, Text *out) {
    if (isfinite(r->above.value)) text_puts(out, r->above.value >= 0 ? "+" : "");
    put_interval(out, &r->above);
}
static void cell_S(const TableRow *r, Text *out) {
    if (strncmp(r->measure, "S", 1) != 0) put_number(out, r->text.S); // else ours is S
}
static void cell_rows(const TableRow *r, Text *out) { put_number(out, r->text.rows_per_step); }
static void cell_bytes(const TableRow *r, Text *out) { put_number(out, r->text.bytes_per_step); }
static void cell_repeated(const TableRow *r, Text *out) { put_number(out, r->text.repeated); }
static void cell_calm(const TableRow *r, Text *out) { put_number(out, r->text.calm); }
static void cell_doubt(const TableRow *r, Text *out) { text_puts(out, r->doubt); }
static void cell_why(const TableRow *r, Text *out) {
    text_puts(out, r->why_not);
    if (*r->note) text_printf(out, "%s(%s)", *r->why_not ? " " : "", r->note);
}

typedef void (*PutCell)(const TableRow *r, Text *out);

// A column that has nothing in any row is left out.
static const GridColumn CELLS[] = {
    {"row", false, 8, 0},         {"model", false, 8, 11},          {"dataset", false, 8, 9},
    {"metric", false, 8, 0},      {"published", true, 0, 0},        {"our model", false, 8, 8},
    {"on", false, 8, 7},          {"our method", false, 12, 10},    {"ours [95%]", true, 0, 0},
    {"passes", true, 0, 4},       {"our own", true, 0, 6},          {"S", true, 0, 5},
    {"rows/step", true, 0, 5},    {"difference", true, 0, 14},      {"above AR", true, 0, 4},
    {"bytes/step", true, 0, 1},   {"repeated", true, 0, 2},         {"S, no loops", true, 0, 3},
    {"disturbed", false, 10, 12}, {"why not, note", false, 16, 13},
};
enum { CELL_COUNT = sizeof CELLS / sizeof *CELLS };

static const PutCell PUT[CELL_COUNT] = {
    cell_row,        cell_model, cell_dataset,  cell_metric, cell_published, cell_our_model, cell_our_dataset,
    cell_our_method, cell_ours,  cell_passes,   cell_own,    cell_S,         cell_rows,      cell_difference,
    cell_above,      cell_bytes, cell_repeated, cell_calm,   cell_doubt,     cell_why};

// Letters that a terminal shows, each as one.
static int width_of(const char *text) {
    int width = 0;
    char letter[LETTER_SIZE];
    while (letters_next(&text, letter)) width++;
    return width;
}

static void find_widths(const Table *t, int widths[CELL_COUNT]) {
    Text cell = {0};
    for (int i = 0; i < CELL_COUNT; i++) {
        int most = 0;
        for (size_t k = 0; k < t->row_count; k++) {
            text_clear(&cell);
            PUT[i](&t->rows[k], &cell);
            int width = width_of(text_get(&cell));
            if (width > most) most = width;
        }
        widths[i] = most > 0 && width_of(CELLS[i].head) > most ? width_of(CELLS[i].head) : most;
    }
    text_release(&cell);
}

// --- text ------------------------------------------------------------------------------------------------

static void put_letters(const char *text, Text *out) {
    char letter[LETTER_SIZE];
    while (letters_next(&text, letter)) text_puts(out, letter);
}

static void put_line(const char *before, const char *text, Text *out) {
    if (!*text) return;
    text_puts(out, before);
    put_letters(text, out);
    text_puts(out, "\n");
}

static void put_rows(const Table *t, int width, Text *out) {
    Grid g = {.columns = CELLS, .count = CELL_COUNT};
    grid_heads(&g);
    for (size_t i = 0; i < t->row_count; i++) {
        for (int k = 0; k < CELL_COUNT; k++) PUT[k](&t->rows[i], &g.cell), grid_next(&g);
        grid_end(&g);
    }
    grid_print(&g, width, out);
    grid_release(&g);
}

static const char UNLIKE[] = "not trained alike, so what differs may be the training's: ";

static void put_head(const Table *t, Text *out) {
    put_line(UNLIKE, t->unlike, out);
    put_line("", t->item.title, out);
    put_line("published: ", t->item.source, out);
    put_line("ours: ", t->run, out);
    put_line("on: ", t->machine, out);
    put_line("measured: ", t->date, out);
    put_line("by: ", t->command, out);
    text_puts(out, "\n");
}

static void put_notes(const Table *t, Text *out) {
    text_puts(out, "\n");
    for (int i = 0; i < t->item.metric_count; i++)
        text_printf(out, "%s: computed as our %s\n", t->item.metrics[i].name, t->item.metrics[i].measure);
    for (int i = 0; i < t->item.chosen_count; i++)
        put_line("the paper leaves open: ", t->item.chosen[i], out);
    for (size_t i = 0; i < t->chosen_count; i++) put_line("chosen: ", t->chosen[i], out);
    for (int i = 0; i < t->item.note_count; i++) put_line("note: ", t->item.notes[i], out);
}

static void print_text(const Table *t, int width, Text *out) {
    Text head = {0}, notes = {0};
    put_head(t, &head);
    put_notes(t, &notes);
    terminal_fold(text_get(&head), width, out);
    put_rows(t, width, out);
    terminal_fold(text_get(&notes), width, out);
    text_release(&head);
    text_release(&notes);
}

// --- Markdown and LaTeX ----------------------------------------------------------------------------------

static void put_page_row(const Page *p, const TableRow *r, const int widths[CELL_COUNT]) {
    Text cell = {0};
    bool first = true;
    for (int i = 0; i < CELL_COUNT; i++) {
        if (!widths[i]) continue;
        text_clear(&cell);
        if (r) PUT[i](r, &cell);
        text_puts(p->out, p->format == PAGE_MD ? "| " : first ? "" : " & ");
        page_text(p, r ? text_get(&cell) : CELLS[i].head);
        text_puts(p->out, p->format == PAGE_MD ? " " : "");
        first = false;
    }
    text_puts(p->out, p->format == PAGE_MD ? "|\n" : r ? " \\\\\n" : " \\\\ \\hline\n");
    text_release(&cell);
}

enum { MOST_LETTERS = 30 }; // of a cell; a longer one takes several lines in LaTeX

static void open_rows(const Page *p, const int widths[CELL_COUNT]) {
    if (p->format == PAGE_TEX) {
        int columns = 0;
        for (int i = 0; i < CELL_COUNT; i++) columns += widths[i] > 0;
        page_tex_table(p, columns);
        for (int i = 0; i < CELL_COUNT; i++)
            if (widths[i] > MOST_LETTERS) text_printf(p->out, "p{%dex}", MOST_LETTERS);
            else if (widths[i]) text_puts(p->out, CELLS[i].number ? "r" : "l");
        text_puts(p->out, "}\n");
    }
    put_page_row(p, NULL, widths);
    if (p->format == PAGE_TEX) return;
    for (int i = 0; i < CELL_COUNT; i++)
        if (widths[i]) text_puts(p->out, CELLS[i].number ? "|---:" : "|---");
    text_puts(p->out, "|\n");
}

static void page_line(const Page *p, const char *before, const char *text) {
    if (!*text) return;
    text_puts(p->out, p->format == PAGE_MD ? "- " : "\\item ");
    text_puts(p->out, before);
    page_text(p, text);
    text_puts(p->out, "\n");
}

static void open_lines(const Page *p) {
    text_puts(p->out, p->format == PAGE_MD ? "\n" : "\\begin{itemize}\n");
}
static void close_lines(const Page *p) {
    text_puts(p->out, p->format == PAGE_MD ? "\n" : "\\end{itemize}\n");
}

static void print_page(const Table *t, PageFormat format, Text *out) {
    const Page p = {format, out, NULL};
    int widths[CELL_COUNT];
    find_widths(t, widths);
    if (format == PAGE_TEX) {
        text_puts(out, "% For a page set across, with \\usepackage{longtable}.\n");
        page_tex_start(&p);
    }
    page_heading(&p, t->item.title);
    open_lines(&p);
    page_line(&p, UNLIKE, t->unlike);
    page_line(&p, "published: ", t->item.source);
    page_line(&p, "ours: ", t->run);
    page_line(&p, "on: ", t->machine);
    page_line(&p, "measured: ", t->date);
    page_line(&p, "by: ", t->command);
    close_lines(&p);
    open_rows(&p, widths);
    for (size_t i = 0; i < t->row_count; i++) put_page_row(&p, &t->rows[i], widths);
    page_end_table(&p);
    open_lines(&p);
    for (int i = 0; i < t->item.metric_count; i++) {
        text_puts(out, format == PAGE_MD ? "- " : "\\item ");
        page_text(&p, t->item.metrics[i].name);
        text_puts(out, ": computed as our ");
        page_text(&p, t->item.metrics[i].measure);
        text_puts(out, "\n");
    }
    for (int i = 0; i < t->item.chosen_count; i++)
        page_line(&p, "the paper leaves open: ", t->item.chosen[i]);
    for (size_t i = 0; i < t->chosen_count; i++) page_line(&p, "chosen: ", t->chosen[i]);
    for (int i = 0; i < t->item.note_count; i++) page_line(&p, "note: ", t->item.notes[i]);
    close_lines(&p);
}

bool table_print(const Table *t, TableFormat format, int width, Text *out) {
    switch (format) {
    case TABLE_TEXT: print_text(t, width, out); break;
    case TABLE_MD: print_page(t, PAGE_MD, out); break;
    case TABLE_LATEX: print_page(t, PAGE_TEX, out); break;
    case TABLE_CSV: table_fields_csv(t, out); break;
    default: return table_fields_json(t, out);
    }
    return true;
}

// --- every field, for programs

typedef enum { ARG_WORD, ARG_REAL, ARG_INT } FieldType; // INT: 0 is none

typedef struct Field {
    const char *name;
    FieldType type;
    size_t offset;
} Field;

#define AT(name) offsetof(TableRow, name)
static const Field FIELDS[] = {
    {"row", ARG_WORD, AT(row)},
    {"model", ARG_WORD, AT(model)},
    {"dataset", ARG_WORD, AT(dataset)},
    {"task", ARG_WORD, AT(task)},
    {"metric", ARG_WORD, AT(metric)},
    {"computed_as", ARG_WORD, AT(measure)},
    {"published", ARG_WORD, AT(published)},
    {"spread", ARG_WORD, AT(spread)},
    {"our_model", ARG_WORD, AT(our_model)},
    {"stand_in", ARG_WORD, AT(stand_in)},
    {"our_dataset", ARG_WORD, AT(our_dataset)},
    {"our_method", ARG_WORD, AT(our_method)},
    {"point", ARG_INT, AT(point)},
    {"seeds", ARG_INT, AT(seeds)},
    {"ours", ARG_REAL, AT(ours.value)},
    {"low", ARG_REAL, AT(ours.low)},
    {"high", ARG_REAL, AT(ours.high)},
    {"passes", ARG_INT, AT(passes.count)},
    {"pass_mean", ARG_REAL, AT(passes.mean)},
    {"pass_deviation", ARG_REAL, AT(passes.deviation)},
    {"own_name", ARG_WORD, AT(own_name)},
    {"own", ARG_REAL, AT(own.value)},
    {"own_low", ARG_REAL, AT(own.low)},
    {"own_high", ARG_REAL, AT(own.high)},
    {"S", ARG_REAL, AT(text.S)},
    {"rows_per_step", ARG_REAL, AT(text.rows_per_step)},
    {"difference", ARG_REAL, AT(difference.value)},
    {"difference_low", ARG_REAL, AT(difference.low)},
    {"difference_high", ARG_REAL, AT(difference.high)},
    {"why_not", ARG_WORD, AT(why_not)},
    {"above_ar", ARG_REAL, AT(above.value)},
    {"above_ar_low", ARG_REAL, AT(above.low)},
    {"above_ar_high", ARG_REAL, AT(above.high)},
    {"bytes_per_step", ARG_REAL, AT(text.bytes_per_step)},
    {"repeated", ARG_REAL, AT(text.repeated)},
    {"S_calm", ARG_REAL, AT(text.calm)},
    {"doubt", ARG_WORD, AT(doubt)},
    {"note", ARG_WORD, AT(note)},
};
#undef AT
enum { FIELD_COUNT = sizeof FIELDS / sizeof *FIELDS };

static const void *at(const TableRow *r, const Field *f) { return (const char *)r + f->offset; }

// --- CSV -------------------------------------------------------------------------------------------------

// The shortest text that reads back as the same number.
static void put_real(double value, Text *out) {
    char text[32];
    if (!isfinite(value)) return;
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    text_puts(out, text);
}

static void put_field(const TableRow *r, const Field *f, Text *out) {
    switch (f->type) {
    case ARG_WORD: text_csv(out, *(const char *const *)at(r, f)); break;
    case ARG_REAL: put_real(*(const double *)at(r, f), out); break;
    case ARG_INT:
        if (*(const int *)at(r, f)) text_printf(out, "%d", *(const int *)at(r, f));
        break;
    }
}

void table_fields_csv(const Table *t, Text *out) {
    for (int i = 0; i < FIELD_COUNT; i++) text_printf(out, "%s%s", i ? "," : "", FIELDS[i].name);
    text_puts(out, "\r\n");
    for (size_t k = 0; k < t->row_count; k++) {
        for (int i = 0; i < FIELD_COUNT; i++) {
            text_puts(out, i ? "," : "");
            put_field(&t->rows[k], &FIELDS[i], out);
        }
        text_puts(out, "\r\n");
    }
}

// --- JSON ------------------------------------------------------------------------------------------------

static json_t *field_json(const TableRow *r, const Field *f) {
    switch (f->type) {
    case ARG_WORD: return json_from_text(*(const char *const *)at(r, f));
    case ARG_INT: return *(const int *)at(r, f) ? json_integer(*(const int *)at(r, f)) : json_null();
    case ARG_REAL: break;
    }
    return json_number(*(const double *)at(r, f));
}

static json_t *row_json(const TableRow *r) {
    json_t *object = json_object();
    for (int i = 0; i < FIELD_COUNT; i++)
        if (json_object_set_new(object, FIELDS[i].name, field_json(r, &FIELDS[i])) != 0) {
            json_decref(object);
            return NULL;
        }
    return object;
}

static json_t *texts_json(const char *const *texts, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(list, json_from_text(texts[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *table_json(const Table *t) {
    json_t *rows = json_array();
    bool ok = rows != NULL;
    for (size_t i = 0; ok && i < t->row_count; i++)
        ok = json_array_append_new(rows, row_json(&t->rows[i])) == 0;
    if (!ok) {
        json_decref(rows);
        return NULL;
    }
    return json_pack("{s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}", "name",
                     json_from_text(t->name), "title", json_from_text(t->item.title), "source",
                     json_from_text(t->item.source), "run", json_from_text(t->run), "machine",
                     json_from_text(t->machine), "date", json_from_text(t->date), "command",
                     json_from_text(t->command), "unlike_training", json_from_text(t->unlike), "open",
                     texts_json(t->item.chosen, (size_t)t->item.chosen_count), "chosen",
                     texts_json(t->chosen, t->chosen_count), "rows", rows);
}

bool table_fields_json(const Table *t, Text *out) {
    bool ok = json_append(table_json(t), JSON_INDENT(1), out);
    text_puts(out, "\n");
    return ok;
}
