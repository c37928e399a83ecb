// The JSON Schema of configs takes every config that ships, and marks mistakes that the program refuses, too.
// A small walk of the parts of JSON Schema that it uses.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "harness/config/experiment.h"
#include <glob.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

// --- YAML as JSON: a plain word is what it looks like

static json_t *word_json(const YamlNode *n) {
    char *end;
    double x = strtod(n->text, &end);
    if (n->quoted || !*n->text) return json_string(n->text);
    if (strcmp(n->text, "true") == 0 || strcmp(n->text, "false") == 0) return json_boolean(n->text[0] == 't');
    if (*end) return json_string(n->text);
    return strpbrk(n->text, ".eE") ? json_real(x) : json_integer((json_int_t)x);
}

static json_t *yaml_json(const YamlNode *n) {
    if (n->kind == NODE_VALUE) return word_json(n);
    json_t *all = n->kind == NODE_LIST ? json_array() : json_object();
    for (const YamlNode *child = n->first; child; child = child->next)
        if (n->kind == NODE_LIST) json_array_append_new(all, yaml_json(child));
        else json_object_set_new(all, child->key, yaml_json(child));
    return all;
}

// --- the walk

static bool is_valid(const json_t *root, const json_t *s, const json_t *v);

static bool is_type(const char *type, const json_t *v) {
    return (strcmp(type, "string") == 0 && json_is_string(v)) ||
           (strcmp(type, "integer") == 0 && json_is_integer(v)) ||
           (strcmp(type, "number") == 0 && json_is_number(v)) ||
           (strcmp(type, "boolean") == 0 && json_is_boolean(v)) ||
           (strcmp(type, "array") == 0 && json_is_array(v)) ||
           (strcmp(type, "object") == 0 && json_is_object(v));
}

static bool any_type(const json_t *types, const json_t *v) {
    if (json_is_string(types)) return is_type(json_string_value(types), v);
    for (size_t i = 0; i < json_array_size(types); i++)
        if (is_type(json_string_value(json_array_get(types, i)), v)) return true;
    return false;
}

static bool in_enum(const json_t *words, const json_t *v) {
    for (size_t i = 0; i < json_array_size(words); i++)
        if (json_equal(json_array_get(words, i), v)) return true;
    return false;
}

static int how_many(const json_t *root, const json_t *schemas, const json_t *v) {
    int count = 0;
    for (size_t i = 0; i < json_array_size(schemas); i++)
        count += is_valid(root, json_array_get(schemas, i), v);
    return count;
}

static bool has_pattern(const char *pattern, const char *text) {
    regex_t r;
    assert_int_equal(regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool found = regexec(&r, text, 0, NULL, 0) == 0;
    regfree(&r);
    return found;
}

static bool valid_object(const json_t *root, const json_t *s, const json_t *v) {
    const json_t *properties = json_object_get(s, "properties"), *required = json_object_get(s, "required");
    const json_t *other = json_object_get(s, "additionalProperties");
    const char *key;
    json_t *value;
    for (size_t i = 0; i < json_array_size(required); i++)
        if (!json_object_get(v, json_string_value(json_array_get(required, i)))) return false;
    json_object_foreach((json_t *)(uintptr_t)v, key, value) {
        const json_t *property = json_object_get(properties, key);
        if (property ? !is_valid(root, property, value) : json_is_false(other)) return false;
    }
    return true;
}

static bool is_valid(const json_t *root, const json_t *s, const json_t *v) {
    static const char *const KNOWN =
        " $ref type enum const minimum maximum pattern items minItems anyOf allOf if then "
        "properties required additionalProperties description default definitions $schema title ";
    const char *key;
    json_t *rule;
    json_object_foreach((json_t *)(uintptr_t)s, key, rule) {
        char word[64];
        snprintf(word, sizeof word, " %s ", key);
        if (!strstr(KNOWN, word)) fail_msg("the walk doesn't know '%s'", key);
        if (strcmp(key, "$ref") == 0) {
            const json_t *to = json_object_get(json_object_get(root, "definitions"),
                                               json_string_value(rule) + strlen("#/definitions/"));
            if (!to) fail_msg("%s leads nowhere", json_string_value(rule));
            if (!is_valid(root, to, v)) return false;
        }
        if (strcmp(key, "type") == 0 && !any_type(rule, v)) return false;
        if (strcmp(key, "enum") == 0 && !in_enum(rule, v)) return false;
        if (strcmp(key, "const") == 0 && !json_equal(rule, v)) return false;
        if (strcmp(key, "minimum") == 0 && json_number_value(v) < json_number_value(rule)) return false;
        if (strcmp(key, "maximum") == 0 && json_number_value(v) > json_number_value(rule)) return false;
        if (strcmp(key, "pattern") == 0 && !has_pattern(json_string_value(rule), json_string_value(v)))
            return false;
        if (strcmp(key, "anyOf") == 0 && how_many(root, rule, v) == 0) return false;
        if (strcmp(key, "allOf") == 0 && how_many(root, rule, v) < (int)json_array_size(rule)) return false;
        if (strcmp(key, "if") == 0 && is_valid(root, rule, v) &&
            !is_valid(root, json_object_get(s, "then"), v))
            return false;
        if (strcmp(key, "minItems") == 0 && json_array_size(v) < (size_t)json_integer_value(rule))
            return false;
        for (size_t i = 0; strcmp(key, "items") == 0 && i < json_array_size(v); i++)
            if (!is_valid(root, rule, json_array_get(v, i))) return false;
    }
    return !json_is_object(v) || valid_object(root, s, v);
}

static bool takes(const json_t *schema, const YamlTree *t) {
    json_t *v = yaml_json(t->root);
    bool valid = is_valid(schema, schema, v);
    json_decref(v);
    return valid;
}

// --- the tests

static void shipped_configs(void **state) {
    (void)state;
    json_t *schema = config_schema();
    glob_t files;
    assert_int_equal(glob("configs/*.yaml", 0, NULL, &files), 0);
    assert_true(files.gl_pathc > 20);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        YamlTree t;
        Error e = {0};
        if (!yaml_open(&t, files.gl_pathv[i], &e)) fail_msg("%s", e.text);
        if (!takes(schema, &t)) fail_msg("%s: its schema refuses it", files.gl_pathv[i]);
        yaml_release(&t);
    }
    globfree(&files);
    json_decref(schema);
}

#define CONFIG "name: a\nmodels: [{reference: reference}]\ndatasets: [reference-code]\nmethods: "

static void as_the_program(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool good;
    } CASES[] = {
        {CONFIG "[autoregressive, jacobi]\n", true},
        {CONFIG "jacobi\n", true},
        {CONFIG "[{name: lookahead, matrix: {W: [5, 2..14+2], N: 3..5, temperature: 0.5}}]\n", true},
        {CONFIG "[{name: lookahead, zip: [{W: [5, 7], seed: [1, 2]}], exclude where: W > 5}]\n", true},
        {CONFIG "[jacobi]\ngeneration: {ignore_eos: on, top_p: 0.9}\n", true},
        {CONFIG "[jacobi]\nmeasurement: {stop: timing, passes: 3}\n", true},
        {CONFIG "[\"lookahead:W=5,N=3\"]\n", true},
        {CONFIG "[jacoby]\n", false},
        {CONFIG "[{name: jacobi, matrix: {W: 5}}]\n", false},
        {CONFIG "[{name: lookahead, matrix: {W: 0}}]\n", false},
        {CONFIG "[{name: lookahead, matrix: {W: five}}]\n", false},
        {CONFIG "[{name: lookahead, zip: [{w: [5]}]}]\n", false},
        {CONFIG "[{matrix: {W: 5}}]\n", false},
        {CONFIG "[]\n", false},
        {CONFIG "[jacobi]\ngeneration: {ignore_eos: perhaps}\n", false},
        {CONFIG "[jacobi]\ngeneration: {top_p: 2}\n", false},
        {CONFIG "[jacobi]\nhardware: {speed: 2}\n", false},
        {CONFIG "[jacobi]\nmeasurement: {stop: soon}\n", false},
        {CONFIG "[jacobi]\nmeasurements: {passes: 3}\n", false},
        {"models: [m]\ndatasets: [reference-code]\nmethods: [jacobi]\n", false},
    };
    json_t *schema = config_schema();
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        YamlTree t;
        Error e = {0};
        Experiment *x = mem_new(1, sizeof *x);
        bool read = experiment_parse(x, CASES[i].text, strlen(CASES[i].text), "c.yaml", NULL, &e);
        if (read != CASES[i].good) fail_msg("the program on\n%s%s", CASES[i].text, e.text);
        if (read) experiment_release(x);
        mem_free(x);
        e = (Error){0};
        if (!yaml_parse(&t, CASES[i].text, strlen(CASES[i].text), "c.yaml", &e)) fail_msg("%s", e.text);
        if (takes(schema, &t) != CASES[i].good) fail_msg("the schema on\n%s", CASES[i].text);
        yaml_release(&t);
    }
    json_decref(schema);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shipped_configs), cmocka_unit_test(as_the_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
