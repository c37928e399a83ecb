// Every query of docs/queries.md runs, and finds rows in a store that has a bit of everything.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "results/fit.h"
#include "results/rows.h"
#include "tests/support/filled_store.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <string.h>

static void run(Store *s, const char *sql, size_t n) {
    Error e = {0};
    char *query = mem_text(sql, n);
    Rows *r = rows_open(s, query, &e);
    if (!r) fail_msg("%s\n%s", query, e.text);
    int rows = 0;
    while (rows_next(r)) rows++;
    if (!rows_end(r, true, &e) || rows == 0) fail_msg("%s\ngave %d rows: '%s'", query, rows, e.text);
    mem_free(query);
}

static void documented(void **state) {
    static const char OPEN[] = "```sql\n", CLOSE[] = "\n```";
    const char *root = getenv("OUTPACE_ROOT");
    Error e = {0};
    FilledStore f;
    size_t size;
    int count = 0;
    if (!filled_open(&f, folder_path(*state, "a.db"), NULL, 3, 4, &e) || !filled_add_all(&f, 2, &e))
        fail_msg("%s", e.text);
    if (!store_flag(f.store, f.points[1], 0, f.prompts[0], FLAG_LOAD, &e)) fail_msg("%s", e.text);
    bool added;
    StoreFit fit = {.hash = "1",
                    .points = "p",
                    .point_ids = "[1]",
                    .title = "t",
                    .law = "paper",
                    .bonus = "kept",
                    .estimator = "likelihood",
                    .version = "0",
                    .estimates = {{.estimator = "likelihood", .alpha = 0.4, .f = 2}},
                    .estimate_count = 1};
    if (!store_fit(f.store, f.run, &fit, &added, &e)) fail_msg("%s", e.text);
    char *page = scratch_read(root ? root : ".", "docs/queries.md", &size);
    for (char *at = page; (at = strstr(at, OPEN)); count++) {
        at += strlen(OPEN);
        run(f.store, at, (size_t)(strstr(at, CLOSE) - at));
    }
    assert_true(count >= 20);
    mem_free(page);
    filled_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(documented, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
