#include "tests/support/check.h"

#include "harness/bench/surface.h"
#include "results/rows.h"
#include "tests/support/folder.h"

// In a batch every row has its root, in a tree all share one.
static void tokens(void **state) {
    (void)state;
    assert_int_equal(surface_tokens(LAYOUT_TREE, 5, 3), 16);
    assert_int_equal(surface_tokens(LAYOUT_BATCH, 5, 3), 20);
    assert_int_equal(surface_tokens(LAYOUT_COPIED, 5, 3), 20);
    assert_int_equal(surface_tokens(LAYOUT_TREE, 1, 0), 1);
}

// We warn, while measuring, of the points that the store's view calls drifted.
static void drifted(void **state) {
    char word[] = "test", *argv[] = {word};
    Error e = {0};
    StoreRun run = {.hash = "h", .kind = "surface", .name = "x", .version = "1"};
    StoreEnvironment machine = {.version = "1"};
    StoreModel model = {.name = "m", .hash = "m", .layers = 1};
    StoreSurface row = {.kind = "step", .device = "null", .k = 2, .rows = 2, .samples = 1, .median_s = 1};
    int64_t id, found, wanted = 0;
    Store *s = store_open(folder_path(*state, "a.db"), STORE_WRITE, NULL, &e);
    if (!s || !store_run(s, &run, &id, NULL, &e) ||
        !store_attempt(s, id, 1, argv, &machine, &row.attempt, &e) || !store_model(s, &model, &row.model, &e))
        fail_msg("%s", e.text);
    for (row.context = 50; row.context < 200; row.context++) {
        row.drift = 0.01 * row.context + 0.005;
        wanted += bench_drifted(1, row.drift);
        if (!store_surface(s, &row, 1, &e)) fail_msg("%s", e.text);
    }
    assert_true(rows_one_int(s, "SELECT count(*) FROM drifted WHERE run_id = ?1", id, &found, &e));
    assert_int_equal(found, wanted);
    assert_true(wanted > 100 && wanted < 150);
    store_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens), cmocka_unit_test_setup_teardown(drifted, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
