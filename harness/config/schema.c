// Walks the tables of experiment.c. Values are plain YAML: a name may look like a number, and on and off are
// words or truth values, depending on the editor's YAML. What no schema can hold (keys that exclude each
// other, names that differ) is left to the program.
#include "harness/config/experiment.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// --- small pieces

static json_t *reference(const char *name) {
    return json_pack("{s:o}", "$ref", json_sprintf("#/definitions/%s", name));
}

static json_t *text(void) { return json_pack("{s:[s,s,s]}", "type", "string", "number", "boolean"); }
static json_t *any_of(json_t *a, json_t *b) { return json_pack("{s:[o,o]}", "anyOf", a, b); }
static json_t *list_of(json_t *item) {
    return json_pack("{s:s,s:o,s:i}", "type", "array", "items", item, "minItems", 1);
}
static json_t *one_or_list(const char *name) { return any_of(reference(name), list_of(reference(name))); }

static json_t *map_of(json_t *properties) {
    return json_pack("{s:s,s:o,s:b}", "type", "object", "properties", properties, "additionalProperties", 0);
}

static void describe(json_t *schema, const Arg *row) {
    if (row->help) json_object_set_new(schema, "description", json_string(row->help));
    if (row->fallback) json_object_set_new(schema, "default", json_string(row->fallback));
}

// --- one value

// As YAML reads the words: a number, a truth value (in older YAML on and off are), or itself.
static json_t *words_of(const char *const *words) {
    json_t *all = json_array();
    for (; *words; words++) {
        char *end;
        double number = strtod(*words, &end);
        bool on = strcmp(*words, "on") == 0;
        json_array_append_new(all, json_string(*words));
        if (!*end) json_array_append_new(all, json_integer((json_int_t)number));
        if (on || strcmp(*words, "off") == 0) json_array_append_new(all, json_boolean(on));
    }
    return json_pack("{s:o}", "enum", all);
}

static json_t *number(const char *type, double low, double high) {
    return json_pack("{s:s,s:f,s:f}", "type", type, "minimum", low, "maximum", high);
}

static json_t *value_of(const Arg *row) {
    static const char *const ON_OFF[] = {"on", "off", NULL};
    switch (row->type) {
    case ARG_FLAG:
    case ARG_NOT: return words_of(ON_OFF);
    case ARG_INT: return number("integer", row->low, row->high);
    case ARG_REAL: return number("number", row->low, row->high);
    case ARG_SEED: return json_pack("{s:s,s:i}", "type", "integer", "minimum", 0);
    case ARG_CHOICE: return words_of(row->choices);
    default: return text();
    }
}

// --- axes

static json_t *axis_value(const Arg *row) {
    bool is_number = row->type == ARG_INT || row->type == ARG_REAL || row->type == ARG_SEED;
    return is_number ? any_of(value_of(row), reference("range")) : value_of(row);
}

static json_t *axis_of(const Arg *row) {
    json_t *axis = any_of(axis_value(row), list_of(axis_value(row)));
    describe(axis, row);
    return axis;
}

static void add_axes(json_t *properties, const Arg *rows, size_t count) {
    for (size_t i = 0; i < count; i++) json_object_set_new(properties, rows[i].name, axis_of(&rows[i]));
}

// Every setting may be an axis of every method, too, unless the method has a parameter of that name.
static void add_settings(json_t *properties, json_t *definitions) {
    for (int i = 0; i < SETTINGS_SECTIONS; i++)
        for (size_t k = 0; k < settings_sections[i].count; k++) {
            const Arg *row = &settings_sections[i].params[k];
            char name[64];
            snprintf(name, sizeof name, "setting-%.50s", row->name);
            if (!json_object_get(definitions, name)) json_object_set_new(definitions, name, axis_of(row));
            if (!json_object_get(properties, row->name))
                json_object_set_new(properties, row->name, reference(name));
        }
}

// --- methods: the name decides which axes there are

static void method_definitions(json_t *definitions) {
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    for (size_t i = 0; i < count; i++) {
        json_t *axes = json_object();
        char name[128];
        add_axes(axes, table[i]->params, table[i]->param_count);
        add_settings(axes, definitions);
        snprintf(name, sizeof name, "axes-%s", table[i]->name);
        json_object_set_new(definitions, name, map_of(axes));
    }
}

// A name alone, or with parameters behind a colon.
static json_t *method_names(void) {
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    json_t *names = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(names, json_string(table[i]->name));
    return any_of(json_pack("{s:o}", "enum", names),
                  json_pack("{s:s,s:s}", "type", "string", "pattern", ":"));
}

static json_t *axes_by_name(void) {
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    json_t *all = json_array();
    for (size_t i = 0; i < count; i++) {
        char axes[128];
        snprintf(axes, sizeof axes, "axes-%s", table[i]->name);
        json_array_append_new(all, json_pack("{s:{s:{s:{s:s}}},s:{s:{s:o,s:o}}}", "if", "properties", "name",
                                             "const", table[i]->name, "then", "properties", "matrix",
                                             reference(axes), "zip", one_or_list(axes)));
    }
    return all;
}

// --- the tables

static json_t *table_of(const ArgTable *t);

// A part with its own reader. The axes of a method's maps depend on its name (axes_by_name), and the
// sections of scales merge in ways of their own: their insides are open here.
static json_t *node_of(const Arg *row) {
    for (const SettingsSection *x = settings_sections; x < settings_sections + SETTINGS_SECTIONS; x++) {
        if (strcmp(row->name, x->name) != 0) continue;
        json_t *axes = json_object();
        add_axes(axes, x->params, x->count);
        return map_of(axes);
    }
    if (strcmp(row->name, "exclude where") == 0) return one_or_list("text");
    if (strcmp(row->name, "zip") == 0) return json_pack("{s:[s,s]}", "type", "object", "array");
    return json_pack("{s:s}", "type", "object");
}

static json_t *row_of(const Arg *row) {
    switch (row->type) {
    case ARG_WORDS: return one_or_list("text");
    case ARG_NODE: return node_of(row);
    case ARG_MAP: return table_of(row->table);
    case ARG_EACH: return one_or_list(row->name);
    default: return value_of(row);
    }
}

static json_t *table_of(const ArgTable *t) {
    json_t *properties = json_object(), *required = json_array();
    for (size_t i = 0; i < t->count; i++) {
        json_t *property = row_of(&t->rows[i]);
        describe(property, &t->rows[i]);
        json_object_set_new(properties, t->rows[i].name, property);
        if (t->rows[i].required) json_array_append_new(required, json_string(t->rows[i].name));
    }
    json_t *map = map_of(properties);
    json_object_set_new(map, "required", required);
    return map;
}

// The items of the config's lists: a map, or the value of its lone key.
static void item_definitions(json_t *definitions) {
    for (size_t i = 0; i < experiment_keys.count; i++) {
        const ArgTable *t = experiment_keys.rows[i].table;
        if (experiment_keys.rows[i].type != ARG_EACH) continue;
        const Arg *lone_row = arg_find(t->rows, t->count, t->lone_key);
        assert(lone_row);
        json_t *map = table_of(t), *lone = row_of(lone_row);
        if (strcmp(experiment_keys.rows[i].name, "methods") == 0) {
            json_decref(lone);
            lone = method_names();
            json_object_set_new(json_object_get(map, "properties"), "name", method_names());
            json_object_set_new(map, "allOf", axes_by_name());
        }
        json_object_set_new(definitions, experiment_keys.rows[i].name, any_of(lone, map));
    }
}

json_t *config_schema(void) {
    json_t *schema = table_of(&experiment_keys), *definitions = json_object();
    json_object_set_new(schema, "$schema", json_string("http://json-schema.org/draft-07/schema#"));
    json_object_set_new(schema, "title", json_string("An experiment of Outpace"));
    json_object_set_new(definitions, "text", text());
    json_object_set_new(
        definitions, "range",
        json_pack("{s:s,s:s}", "type", "string", "pattern", "^-?[0-9.]+\\.\\.-?[0-9.]+([+*][0-9.]+)?$"));
    item_definitions(definitions);
    method_definitions(definitions);
    json_object_set_new(schema, "definitions", definitions);
    return schema;
}
