#include "harness/table/fields.h"

#include "engine/base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static void put_csv(const char *text, Text *out) {
    bool quoted = text[strcspn(text, "\",\r\n")] != 0;
    text_puts(out, quoted ? "\"" : "");
    for (; *text; text++) text_add(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    text_puts(out, quoted ? "\"" : "");
}

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
    case ARG_WORD: put_csv(*(const char *const *)at(r, f), out); break;
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

// Text that is no UTF-8 would be no JSON: letters that it cannot hold become U+FFFD.
static json_t *text_json(const char *text) {
    json_t *j = json_string(text);
    if (j) return j;
    Text clean = {0};
    for (; *text; text++) text_add(&clean, (unsigned char)*text < 0x80 ? text : "?", 1);
    j = json_string(text_get(&clean));
    text_release(&clean);
    return j;
}

static json_t *field_json(const TableRow *r, const Field *f) {
    switch (f->type) {
    case ARG_WORD: return text_json(*(const char *const *)at(r, f));
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
        if (json_array_append_new(list, text_json(texts[i])) != 0) {
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
                     text_json(t->name), "title", text_json(t->item.title), "source",
                     text_json(t->item.source), "run", text_json(t->run), "machine", text_json(t->machine),
                     "date", text_json(t->date), "command", text_json(t->command), "unlike_training",
                     text_json(t->unlike), "open", texts_json(t->item.chosen, (size_t)t->item.chosen_count),
                     "chosen", texts_json(t->chosen, t->chosen_count), "rows", rows);
}

bool table_fields_json(const Table *t, Text *out) {
    bool ok = json_append(table_json(t), JSON_INDENT(1), out);
    text_puts(out, "\n");
    return ok;
}
