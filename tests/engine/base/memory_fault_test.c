// Whatever allocation fails: the program ends with one line, or there is an error and nothing is left behind.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "tests/support/fault.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <string.h>

static bool grow(void *state, Error *e) {
    (void)state, (void)e;
    char *p = NULL;
    size_t capacity = 0;
    for (size_t need = 1; need < 1000; need *= 3) mem_grow(&p, &capacity, need, 3);
    mem_free(p);
    return true;
}

static bool build_text(void *state, Error *e) {
    (void)state, (void)e;
    Text t = {0};
    for (int i = 0; i < 100; i++) {
        text_puts(&t, "a few words ");
        text_printf(&t, "and %d", i);
        text_add(&t, "\n", 1);
    }
    text_release(&t);
    return true;
}

static bool copy_texts(void *state, Error *e) {
    (void)state, (void)e;
    char *copy = mem_text("abc", 3), *path = file_path("dir", "name");
    mem_free(copy);
    mem_free(path);
    return true;
}

static bool read_file(void *state, Error *e) {
    char *data;
    size_t size;
    if (!file_read(folder_path(state, "file"), 100, &data, &size, e)) {
        assert_true(data == NULL && size == 0);
        return false;
    }
    mem_free(data);
    return true;
}

static bool write_file(void *state, Error *e) { return file_write(folder_path(state, "file"), "{}", 2, e); }

static bool read_json(void *state, Error *e) {
    json_t *root = json_from_file(folder_path(state, "json"), 1000, e);
    json_decref(root);
    return root != NULL;
}

static void everything(void **state) {
    static const char JSON[] =
        "{\"text\": \"\\u00e4 and more than fits the first sixteen bytes\", \"list\": [1, 2.5,"
        "[[], {}], true, null, -3e5], \"a\": {\"b\": {\"c\": [\"d\", \"e\"]}}, \"f\": 1, \"g\": 2,"
        "\"h\": 3, \"i\": 4, \"j\": 5, \"k\": 6, \"l\": 7}";
    scratch_write(*state, "file", "content", 7);
    scratch_write(*state, "json", JSON, sizeof JSON - 1);
    assert_in_range(fault_each(FAULT_ALLOCATION, grow, NULL, NULL), 5, 8);
    assert_in_range(fault_each(FAULT_ALLOCATION, build_text, NULL, NULL), 5, 20);
    assert_int_equal(fault_each(FAULT_ALLOCATION, copy_texts, NULL, NULL), 2);
    assert_int_equal(fault_each(FAULT_ALLOCATION, read_file, NULL, *state), 1);
    assert_in_range(fault_each(FAULT_ALLOCATION, write_file, NULL, *state), 1, 6);
    assert_in_range(fault_each(FAULT_ALLOCATION, read_json, NULL, *state), 40, 400);
}

// The net itself: it sees a leak's count, and fails exactly the allocation asked for.
static void counting(void **state) {
    (void)state;
    int before = fault_live();
    fault_after(2);
    void *a = mem_try(1, 1), *b = mem_try(1, 1), *c = mem_try(1, 1);
    assert_non_null(a);
    assert_null(b);
    assert_non_null(c); // once only
    assert_true(fault_seen());
    assert_int_equal(fault_live() - before, 2);
    mem_free(a);
    mem_free(c);
    assert_int_equal(fault_live(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counting),
        cmocka_unit_test_setup_teardown(everything, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
