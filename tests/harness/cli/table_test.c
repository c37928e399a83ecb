// One description of a table, and what each format makes of its rows.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "harness/cli/table.h"
#include "plots/page.h"
#include "results/rows.h"

#include <math.h>
#include <string.h>

static const Column COLUMNS[] = {
    {"name", "name", .least = 8, .help = "of the row"},
    {"why", .kind = AS_REST, .help = "it has no numbers"},
    {"S S_low S_high", "S", AS_MEASURED, .help = "tokens a step"},
    {.head = "[95%]", .kind = AS_REACH},
    {"step_s", "step ms", AS_FIXED, 1, .scale = 1e3, .help = "a step"},
    {"same", "same", AS_SHARE, 0, .help = "a share"},
    {"speed_a speed_b", "speed", AS_CHANGE, .help = "of both sides"},
    {"first second", .optional = true, .help = "for programs"},
};
static const TableForm FORM = {"test", TABLE_COLUMNS(COLUMNS), .within = "rows", .about = "A table."};

static void fill(RecordTable *t, const Records *as) {
    *t = (RecordTable){.form = &FORM, .as = as};
    table_group(t, "a title");
    TABLE_ROW(t, CELL("a|b"), NO_CELL, cell_measured(1.5, 1.25, 1.75), CELL(0.0125), CELL(0.5),
              cell_change(1, 2), CELL(3), CELL(true == 1));
    TABLE_ROW(t, CELL("c"), CELL("no model"));
    TABLE_ROW(t, CELL("d\xff"), NO_CELL, cell_measured(NAN, NAN, NAN), CELL((double)NAN), CELL((double)NAN),
              cell_change(1, NAN));
}

static void expect(const char *what, const char *wanted, const char *got) {
    if (strcmp(wanted, got) != 0) fail_msg("%s: wanted\n%s\ngot\n%s", what, wanted, got);
}

static void people(void **state) {
    (void)state;
    RecordTable t;
    Text text = {0};
    fill(&t, NULL);
    grid_print(&t.grid, 0, &text);
    expect("text",
           "\na title\n"
           "name     S  [95%]         step ms  same  speed\n"
           "a|b   1.50  [1.25, 1.75]     12.5   50%  1.00 -> 2.00\n"
           "c     no model\n"
           "d?       -\n",
           text_get(&text));
    text_release(&text);
    grid_release(&t.grid);
}

static void programs(void **state) {
    (void)state;
    RecordTable t;
    Text csv = {0};
    fill(&t, &(Records){.json = true});
    char *json = json_text(table_list(&t), JSON_COMPACT);
    expect(
        "JSON",
        "[{\"name\":\"a|b\",\"S\":1.5,\"S_low\":1.25,\"S_high\":1.75,\"step_s\":0.012500000000000001,\"same\":0.5,"
        "\"speed_a\":1.0,\"speed_b\":2.0,\"first\":3,\"second\":1},"
        "{\"name\":\"c\",\"why\":\"no model\"},"
        "{\"name\":\"d?\",\"S\":null,\"S_low\":null,\"S_high\":null,\"step_s\":null,\"same\":null,"
        "\"speed_a\":1.0,\"speed_b\":null}]",
        json);
    fill(&t, &(Records){.csv = true});
    json_t *list = table_list(&t);
    records_csv(list, &csv);
    expect("CSV",
           "name,S,S_low,S_high,step_s,same,speed_a,speed_b,first,second,why\r\n"
           "a|b,1.5,1.25,1.75,0.0125,0.5,1,2,3,1,\r\n"
           "c,,,,,,,,,,no model\r\n"
           "d\xff,,,,,,1,,,,\r\n",
           text_get(&csv));
    json_decref(list);
    text_release(&csv);
    mem_free(json);
}

// A column that is empty in all rows is left out.
static void pages(void **state) {
    static const char *const WANTED[PAGE_FORMATS] = {
        [PAGE_MD] = "| name | S |\n|---|---:|\n| a\\|b | 1.50 |\n\n",
        [PAGE_TEX] =
            "{\\footnotesize\n\\begin{longtable}{lr}\nname & S \\\\ \\hline\na\\textbar{}b & 1.50 \\\\\n"
            "\\end{longtable}}\n"};
    (void)state;
    for (int format = PAGE_MD; format < PAGE_FORMATS; format++) {
        RecordTable t = {.form = &FORM};
        Text text = {0};
        TABLE_ROW(&t, CELL("a|b"), NO_CELL, CELL(1.5));
        grid_page(&t.grid, &(Page){(PageFormat)format, &text, NULL}, "caption");
        expect(page_format_names[format], WANTED[format], text_get(&text));
        text_release(&text);
        grid_release(&t.grid);
    }
}

static void document(void **state) {
    (void)state;
    Text text = {0};
    table_document(&FORM, &text);
    expect("document",
           "\n## test\n\nA table.\n\n| key | meaning |\n| --- | --- |\n"
           "| `rows`, `rows.name` | of the row |\n| `rows.why` | it has no numbers |\n"
           "| `rows.S`, `rows.S_low`, `rows.S_high` | tokens a step |\n| `rows.step_s` | a step |\n"
           "| `rows.same` | a share |\n| `rows.speed_a`, `rows.speed_b` | of both sides |\n"
           "| *optional* `rows.first`, `rows.second` | for programs |\n",
           text_get(&text));
    text_release(&text);
}

// Columns with keys have the query's values, in any order of its columns; the others those that are given.
static void queries(void **state) {
    static const Column OF_QUERY[] = {{"name", .head = "name"},
                                      {.head = "made", .kind = AS_COUNT},
                                      {"S S_low S_high", "S", AS_MEASURED, .optional = true},
                                      {.head = "[95%]", .kind = AS_REACH}};
    static const TableForm OF = {TABLE_COLUMNS(OF_QUERY)};
    (void)state;
    Error e = {0};
    Text text = {0};
    RecordTable t = {.form = &OF};
    Store *store = store_open("trial.db", STORE_TRIAL, NULL, &e);
    Rows *r = store ? rows_open(store,
                                "SELECT 1 AS S_low, 2.0 AS S, 3 AS S_high, 'x' AS name UNION ALL"
                                " SELECT NULL, NULL, NULL, NULL",
                                &e)
                    : NULL;
    if (!r) fail_msg("%s", e.text);
    for (int i = 1; rows_next(r); i++) table_query_row(&t, r, (const Cell[]){CELL(i)});
    assert_true(rows_end(r, true, &e));
    grid_print(&t.grid, 0, &text);
    expect("rows of a query", "name  made    S  [95%]\nx        1  2.0  [1.0, 3.0]\n         2\n",
           text_get(&text));
    text_release(&text);
    grid_release(&t.grid);
    store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(people), cmocka_unit_test(programs),
                                       cmocka_unit_test(pages), cmocka_unit_test(document),
                                       cmocka_unit_test(queries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
