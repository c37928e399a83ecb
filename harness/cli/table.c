// See table.h. A row goes into the grid, or becomes an object of the list, at once; nothing else is kept.
#include "harness/cli/table.h"

#include "results/rows.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

Cell cell_text(const char *text) { return (Cell){CELL_TEXT, .text = text}; }
Cell cell_int(int x) { return cell_long(x); }
Cell cell_long(int64_t x) { return (Cell){CELL_COUNT, .count = x}; }
Cell cell_size(size_t x) { return cell_long((int64_t)x); }
Cell cell_real(double x) { return cell_measured(x, NAN, NAN); }
Cell cell_bool(bool x) { return (Cell){CELL_BOOL, .count = x}; }
Cell cell_measured(double value, double low, double high) {
    return (Cell){CELL_REAL, .real = {value, low, high}};
}
Cell cell_change(double a, double b) { return cell_measured(a, b, NAN); }

enum { KEY_SIZE = 48 };

// The next of a column's keys, from *at on (NULL: none).
static bool next_key(const char **at, char key[KEY_SIZE]) {
    size_t n = *at ? strcspn(*at, " ") : 0;
    if (n == 0) return false;
    assert(n < KEY_SIZE);
    snprintf(key, KEY_SIZE, "%.*s", (int)n, *at);
    *at += n + ((*at)[n] == ' ');
    return true;
}

// The cells of a column in a row.
static int cells_of(const Column *c) {
    char key[KEY_SIZE];
    int keys = 0;
    for (const char *at = c->keys; next_key(&at, key);) keys++;
    return c->kind == AS_REACH ? 0 : c->head || !keys ? 1 : keys;
}

// --- for people ------------------------------------------------------------------------------------------

static void set_columns(RecordTable *t) {
    static const bool LEFT[AS_REST] = {
        [AS_TEXT] = true, [AS_INTERVAL] = true, [AS_REACH] = true, [AS_CHANGE] = true};
    Grid *g = &t->grid;
    for (int i = 0; i < t->form->count && !g->columns; i++) {
        const Column *c = &t->form->columns[i];
        assert(g->count < GRID_MOST_COLUMNS);
        if (c->head) t->columns[g->count++] = (GridColumn){c->head, !LEFT[c->kind], c->least, c->drop};
    }
    g->columns = t->columns;
}

static void put_real(const Column *c, const Cell *x, Text *out) {
    char own[MEASURED_SIZE], other[MEASURED_SIZE];
    double scale = c->scale > 0 ? c->scale : 1, value = scale * x->real[0], low = scale * x->real[1],
           high = scale * x->real[2];
    if (!isfinite(value)) {
        text_puts(out, c->kind == AS_MEASURED ? "-" : "");
        return;
    }
    switch (c->kind) {
    case AS_FIXED: text_printf(out, "%.*f", c->digits, value); break;
    case AS_SHORT: text_printf(out, "%.*g", c->digits, value); break;
    case AS_SHARE: text_printf(out, "%.*f%%", c->digits, 100 * value); break;
    case AS_INTERVAL: text_measured(out, value, low, high); break;
    case AS_REACH: text_reach(out, value, low, high); break;
    case AS_CHANGE:
        if (isfinite(low))
            text_printf(out, "%s -> %s", measured_text(own, value, NAN, NAN),
                        measured_text(other, low, NAN, NAN));
        break;
    default: text_puts(out, measured_text(own, value, low, high));
    }
}

static void put_cell(const Column *c, const Cell *x, Text *out) {
    switch (x->kind) {
    case CELL_TEXT: text_puts(out, x->text ? x->text : ""); break;
    case CELL_COUNT: text_printf(out, "%lld", (long long)x->count); break;
    case CELL_REAL: put_real(c, x, out); break;
    case CELL_BOOL: text_puts(out, x->count ? "yes" : ""); break;
    case CELL_NONE: break;
    }
}

static void put_row(RecordTable *t, const Cell *x) {
    Grid *g = &t->grid;
    set_columns(t);
    if (!t->headed) grid_heads(g);
    t->headed = true;
    for (int i = 0; i < t->form->count; i++) {
        const Column *c = &t->form->columns[i];
        if (c->head || c->kind == AS_REST) put_cell(c, c->kind == AS_REACH ? x - 1 : x, &g->cell);
        if (c->head) grid_next(g);
        else if (g->cell.length) {
            grid_rest(g);
            return;
        }
        x += cells_of(c);
    }
    grid_end(g);
}

void table_line(RecordTable *t, int skip, const char *text) {
    if (records_asked(t->as)) return;
    set_columns(t);
    while (skip-- > 0) grid_next(&t->grid);
    text_puts(&t->grid.cell, text), grid_rest(&t->grid);
}

void table_group(RecordTable *t, const char *title) {
    if (records_asked(t->as)) return;
    set_columns(t);
    grid_end(&t->grid);
    if (title) table_line(t, 0, title);
    grid_heads(&t->grid);
    t->headed = true;
}

// --- for programs ----------------------------------------------------------------------------------------

// CSV may have texts that aren't UTF-8, JSON may not.
static json_t *value_of(const Cell *x, int value, const Records *as) {
    switch (x->kind) {
    case CELL_TEXT:
        return !x->text ? json_null() : as->csv ? json_string_nocheck(x->text) : json_from_text(x->text);
    case CELL_COUNT: return json_integer(x->count);
    case CELL_REAL: return json_number(x->real[value]);
    default: return json_boolean(x->count);
    }
}

static void put_object(RecordTable *t, const Cell *x) {
    json_t *object = json_object();
    for (int i = 0; i < t->form->count; i++) {
        const Column *c = &t->form->columns[i];
        const char *at = c->keys;
        char key[KEY_SIZE];
        for (int k = 0; next_key(&at, key); k++) {
            const Cell *cell = c->head ? x : x + k;
            if (cell->kind != CELL_NONE)
                json_object_set_new(object, key, value_of(cell, c->head ? k : 0, t->as));
        }
        x += cells_of(c);
    }
    if (!t->list) t->list = json_array();
    json_array_append_new(t->list, object);
}

void table_row(RecordTable *t, const Cell *cells, int count) {
    Cell all[TABLE_MOST_CELLS] = {{0}};
    int most = 0;
    for (int i = 0; i < t->form->count; i++) most += cells_of(&t->form->columns[i]);
    assert(count <= most && most <= TABLE_MOST_CELLS);
    memcpy(all, cells, (size_t)count * sizeof *cells);
    if (records_asked(t->as)) put_object(t, all);
    else put_row(t, all);
}

// --- rows of a query -------------------------------------------------------------------------------------

int query_column(const Rows *r, const char *name) {
    int i = 0;
    while (i < rows_columns(r) && strcmp(rows_name(r, i), name) != 0) i++;
    assert(i < rows_columns(r));
    return i;
}

Cell query_cell(const Rows *r, int column) {
    switch (rows_type(r, column)) {
    case VALUE_NULL: return cell_text(NULL);
    case VALUE_INT: return CELL(rows_int(r, column));
    case VALUE_REAL: return CELL(rows_real(r, column));
    default: return CELL(rows_text(r, column));
    }
}

void table_query_row(RecordTable *t, const Rows *r, const Cell *made) {
    Cell cells[TABLE_MOST_CELLS];
    int n = 0;
    for (int i = 0; i < t->form->count; i++) {
        const Column *c = &t->form->columns[i];
        const char *at = c->keys;
        char key[KEY_SIZE];
        double values[3] = {NAN, NAN, NAN};
        int k = 0;
        for (; next_key(&at, key); k++) {
            int column = query_column(r, key);
            if (k < 3) values[k] = rows_real(r, column);
            if (!c->head || k == 0) cells[n++] = query_cell(r, column);
        }
        if (c->head && k > 1)
            cells[n - 1] =
                c->optional && isnan(values[0]) ? NO_CELL : cell_measured(values[0], values[1], values[2]);
        if (k == 0 && c->kind != AS_REACH) cells[n++] = *made++;
    }
    table_row(t, cells, n);
}

bool query_sentences(Rows *r, Error *e) {
    while (rows_next(r)) terminal_printf("%s\n", SHOWN(rows_text(r, 0)));
    return rows_end(r, true, e);
}

json_t *table_list(RecordTable *t) {
    json_t *list = t->list ? t->list : json_array();
    t->list = NULL;
    return list;
}

json_t *table_object(RecordTable *t) {
    json_t *list = table_list(t), *object = json_incref(json_array_get(list, 0));
    json_decref(list);
    return object;
}

bool table_end(RecordTable *t, bool ok, Error *e) {
    if (ok && records_asked(t->as)) return records_print(table_list(t), NULL, t->as, e);
    set_columns(t);
    if (ok) grid_show(&t->grid);
    grid_release(&t->grid);
    json_decref(t->list);
    return ok;
}

// --- docs/json.md ----------------------------------------------------------------------------------------

void table_document(const TableForm *f, Text *out) {
    bool named = false; // the array
    if (f->name) text_printf(out, "\n## %s\n\n", f->name);
    if (f->about) text_printf(out, "%s\n\n", f->about);
    if (f->name) text_puts(out, "| key | meaning |\n| --- | --- |\n");
    for (int i = 0; i < f->count; i++) {
        const Column *c = &f->columns[i];
        const char *before = c->optional ? "| *optional* " : "| ", *at = c->keys;
        if (at && f->within && !named)
            text_printf(out, "%s`%s`", before, f->within), named = true, before = ", ";
        char key[KEY_SIZE];
        for (; next_key(&at, key); before = ", ")
            text_printf(out, "%s`%s%s%s`", before, f->within ? f->within : "", f->within ? "." : "", key);
        assert(!c->keys || c->help);
        if (c->keys) text_printf(out, " | %s |\n", c->help);
    }
}
