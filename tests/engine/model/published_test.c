// Published config.json files, in their authors' form and in that of today's transformers: each opens with as
// many parameters as transformers counts, or is refused by name. tests/oracle/configs.py made the table; an
// architecture that is added has its "refused" taken away there.
#include "tests/support/check.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/core/shape.h"
#include "engine/model/config.h"
#include "engine/model/weights.h"

#include <stdio.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1 << 16, ROWS_AT_LEAST = 178 };

typedef struct {
    const char *model, *form, *refused; // refused: words of the refusal, NULL if the file opens
    size_t parameters;
    json_t *config;
} Row;

static Row row_of(json_t *line) {
    return (Row){
        json_string_value(json_object_get(line, "model")), json_string_value(json_object_get(line, "form")),
        json_string_value(json_object_get(line, "refused")),
        (size_t)json_integer_value(json_object_get(line, "parameters")), json_object_get(line, "config")};
}

// Returns what is wrong with the outcome in `why`, which is empty if nothing is.
static void check_row(const Row *r, Text *why) {
    Model m = {.bos = -1};
    Error e = {0};
    char *text = json_text(r->config, 0);
    bool opens = config_parse(&m, text, strlen(text), "config.json", &e);
    size_t parameters = opens ? shape_parameters(&m.shape) : 0;
    mem_free(text);
    if (opens && r->refused) text_puts(why, "opens now: take its \"refused\" out of the table");
    else if (opens && parameters != r->parameters)
        text_printf(why, "has %zu parameters, transformers counts %zu", parameters, r->parameters);
    else if (!opens && !r->refused) text_printf(why, "is refused: %s", e.text);
    else if (!opens &&
             (!strstr(e.text, r->refused) || !strstr(e.text, "'config.json'") || strchr(e.text, '\n')))
        text_printf(why, "is refused with '%s', wanted '%s' and the file", e.text, r->refused);
}

static void published(void **state) {
    (void)state;
    char line[LINE_MAX_BYTES];
    int rows = 0, wrong = 0;
    FILE *f = fopen("tests/fixtures/configs.jsonl", "re");
    assert_non_null(f);
    for (; fgets(line, sizeof line, f); rows++) {
        Error e = {0};
        Text why = {0};
        json_t *parsed = json_from_bytes(line, strlen(line), "configs.jsonl", &e);
        if (!parsed) fail_msg("line %d: %s", rows + 1, e.text);
        Row r = row_of(parsed);
        check_row(&r, &why);
        if (why.length) printf("%s (%s) %s\n", r.model, r.form, text_get(&why));
        wrong += why.length > 0;
        text_release(&why);
        json_decref(parsed);
    }
    fclose(f);
    assert_int_equal(wrong, 0);
    assert_true(rows >= ROWS_AT_LEAST);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(published)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
