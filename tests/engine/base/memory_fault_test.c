// Whatever allocation fails: an error, and nothing left behind.
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
    (void)state;
    void *p = NULL;
    size_t capacity = 0;
    bool ok = true;
    for (size_t need = 1; ok && need < 1000; need *= 3) {
        size_t before = capacity;
        void *was = p;
        ok = mem_grow(&p, &capacity, need, 3);
        if (!ok) assert_true(p == was && capacity == before); // nothing changed
    }
    mem_free(p);
    return ok || error_system(e, "out of memory");
}

static bool build_text(void *state, Error *e) {
    (void)state;
    Text t = {0};
    for (int i = 0; i < 100; i++) {
        text_puts(&t, "a few words ");
        text_printf(&t, "and %d", i);
        text_add(&t, "\n", 1);
        if (t.failed) assert_int_equal(text_get(&t)[t.length], 0); // still a text
    }
    bool ok = !t.failed;
    size_t length = t.length;
    text_puts(&t, "more");
    if (!ok) assert_true(t.failed && t.length == length); // failed once and for all
    text_release(&t);
    return ok || error_system(e, "out of memory");
}

static bool copy_texts(void *state, Error *e) {
    (void)state;
    char *copy = mem_text("abc", 3), *path = file_path("dir", "name");
    bool ok = copy && path;
    mem_free(copy);
    mem_free(path);
    return ok || error_system(e, "out of memory");
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
    if (!root && e->kind == ERROR_INPUT)
        e->kind = ERROR_SYSTEM; // jansson tells some of these as wrong syntax
    return root != NULL;
}

static void everything(void **state) {
    // Strings below 16 bytes: see json.h for longer ones.
    static const char JSON[] =
        "{\"text\": \"\\u00e4\", \"list\": [1, 2.5,"
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

// What jansson does not explain is not the file's fault.
static void json_out_of_memory(void **state) {
    (void)state;
    Error e = {0};
    fault_after(1);
    assert_null(json_from_bytes("{}", 2, "place", &e));
    assert_true(fault_seen());
    assert_int_equal(e.kind, ERROR_SYSTEM);
    assert_string_equal(e.text, "out of memory parsing 'place'");
}

// The net itself: it sees a leak's count, and fails exactly the allocation asked for.
static void counting(void **state) {
    (void)state;
    int before = fault_live();
    fault_after(2);
    void *a = mem_alloc(1, 1), *b = mem_alloc(1, 1), *c = mem_alloc(1, 1);
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
        cmocka_unit_test(json_out_of_memory),
        cmocka_unit_test_setup_teardown(everything, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
