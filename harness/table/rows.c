#include "harness/table/rows.h"

#include "engine/base/memory.h"

#include <math.h>
#include <string.h>

static const Quantity UNKNOWN = {NAN, NAN, NAN};

const char *table_keep(Table *t, const char *text) {
    mem_grow(&t->texts, &t->text_capacity, t->text_count + 1, sizeof *t->texts);
    char *copy = mem_text(text, strlen(text));
    if (copy) t->texts[t->text_count++] = copy;
    return copy;
}

TableRow *table_add_row(Table *t) {
    mem_grow(&t->rows, &t->row_capacity, t->row_count + 1, sizeof *t->rows);
    TableRow *row = &t->rows[t->row_count++];
    *row = (TableRow){.row = "",
                      .model = "",
                      .dataset = "",
                      .task = "",
                      .our_model = "",
                      .our_dataset = "",
                      .our_method = "",
                      .published = "",
                      .spread = "",
                      .own_name = "",
                      .why_not = "",
                      .stand_in = "",
                      .doubt = "",
                      .note = "",
                      .ours = UNKNOWN,
                      .passes = {NAN, NAN, 0},
                      .own = UNKNOWN,
                      .difference = UNKNOWN,
                      .above = UNKNOWN,
                      .text = {NAN, NAN, NAN, NAN, NAN}};
    return row;
}

void table_release(Table *t) {
    for (size_t i = 0; i < t->text_count; i++) mem_free(t->texts[i]);
    mem_free(t->texts);
    mem_free(t->chosen);
    mem_free(t->rows);
    published_release(&t->item);
    *t = (Table){0};
}
