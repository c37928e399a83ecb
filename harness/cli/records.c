// Records as JSON and as CSV: see records.h.
#include "harness/cli/records.h"

#include "engine/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Lists the keys of a record in order of appearance, as members of `columns`.
static void list_columns(json_t *columns, json_t *record, const char *before) {
    const char *key;
    json_t *value;
    json_object_foreach(record, key, value) {
        LOCAL_TEXT name = {0};
        text_printf(&name, "%s%s%s", before, *before ? "." : "", key);
        if (json_is_object(value)) list_columns(columns, value, text_get(&name));
        else json_object_set_new(columns, text_get(&name), json_null());
    }
}

// The value at "key.key"; NULL: the record has none.
static json_t *find(json_t *record, const char *name) {
    json_t *whole = json_object_get(record, name);
    const char *dot = strchr(name, '.');
    if (whole || !dot) return whole;
    json_t *inner = json_object_getn(record, name, (size_t)(dot - name));
    return json_is_object(inner) ? find(inner, dot + 1) : NULL;
}

static void put_value(const json_t *value, Text *out) {
    if (!value || json_is_null(value)) return;
    if (json_is_string(value)) {
        text_csv(out, json_string_value(value));
        return;
    }
    if (json_is_real(value)) {
        char shortest[32]; // that reads back as the same number
        double x = json_real_value(value);
        for (int digits = 6; digits <= 17; digits++) {
            snprintf(shortest, sizeof shortest, "%.*g", digits, x);
            if (strtod(shortest, NULL) == x) break;
        }
        text_puts(out, shortest);
        return;
    }
    LOCAL_MEMORY char *text = json_text(value, JSON_ENCODE_ANY | JSON_COMPACT);
    text_csv(out, text);
}

void records_csv(json_t *list, Text *out) {
    json_t *columns = json_object(), *record, *ignored;
    const char *key;
    size_t i;
    json_array_foreach(list, i, record) { list_columns(columns, record, ""); }
    json_object_foreach(columns, key, ignored) {
        text_puts(out, out->length ? "," : "");
        text_csv(out, key);
    }
    text_puts(out, "\r\n");
    json_array_foreach(list, i, record) {
        bool first = true;
        json_object_foreach(columns, key, ignored) {
            text_puts(out, first ? "" : ",");
            put_value(find(record, key), out);
            first = false;
        }
        text_puts(out, "\r\n");
    }
    json_decref(columns);
}

json_t *records_files(const Output *out) {
    json_t *files = json_array();
    const char *path;
    for (size_t i = 0; (path = output_path(out, i)); i++) json_array_append_new(files, json_from_text(path));
    return files;
}

const char *records_format(const char *asked, const char *path, const char *otherwise) {
    const char *dot = path ? strrchr(path, '.') : NULL;
    return asked ? asked : dot && !strchr(dot, '/') ? dot + 1 : otherwise;
}

bool records_print(json_t *records, const char *rows, const Records *r, Error *e) {
    LOCAL_TEXT out = {0};
    bool ok = records && !(r->json && r->csv);
    if (!records) error_input(e, "a name is not UTF-8: JSON cannot hold it");
    else if (!ok) error_input(e, "--json and --csv do not go together");
    else if (r->json)
        ok = json_print(json_incref(records), json_is_array(records) ? JSON_COMPACT : 0, stdout);
    else {
        json_t *list = rows ? json_object_get(records, rows) : records;
        json_auto_t *all = json_is_array(list) ? json_incref(list) : json_pack("[O]", records);
        records_csv(all, &out);
        fputs(text_get(&out), stdout);
    }
    json_decref(records);
    return ok;
}
