// Memory in the place of a mapped file: the same bytes, whatever becomes of the file afterwards.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "tests/support/folder.h"

#include <string.h>
#include <unistd.h>

enum { LARGEST = (16 << 20) + 4097 }; // two parts and some

static const char *made(const char *folder, unsigned char *bytes, size_t size, FileView *view) {
    const char *path = folder_path(folder, "file");
    Error e = {0};
    Random r = test_random(1);
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)random_bits(&r);
    if (!file_write(path, bytes, size, &e) || !file_map(path, view, &e)) fail_msg("%s", e.text);
    return path;
}

// Not a byte is another one, however large, and none goes with the file: cut short, it would end whoever read
// its mapping.
static void holds(void **state) {
    static const size_t sizes[] = {0, 1, 4096, 4097, 8 << 20, LARGEST};
    unsigned char *bytes = mem_new(LARGEST, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        FileView view;
        Error e = {0};
        const char *path = made(*state, bytes, sizes[i], &view);
        size_t first = i * 24;
        if (!file_hold(path, &view, first, NULL, &e)) fail_msg("%zu bytes: %s", sizes[i], e.text);
        assert_int_equal(truncate(path, 0), 0);
        assert_int_equal(view.size, sizes[i]);
        if (sizes[i]) assert_memory_equal(view.data, bytes, sizes[i]);
        if (sizes[i]) assert_int_equal(((size_t)view.data + first) % 64, 0);
        file_unmap(&view);
    }
    mem_free(bytes);
}

// What cannot be read any more is told with its name, and the view is what it was.
static void fails(void **state) {
    unsigned char *bytes = mem_new(LARGEST, 1);
    FileView view;
    Error e = {0};
    const char *path = made(*state, bytes, LARGEST, &view);
    assert_int_equal(truncate(path, LARGEST / 2), 0);
    assert_false(file_hold(path, &view, 0, NULL, &e));
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_non_null(strstr(e.text, path));
    assert_non_null(strstr(e.text, "shorter"));
    file_unmap(&view);

    path = made(*state, bytes, LARGEST, &view);
    const unsigned char *mapped = view.data;
    assert_int_equal(unlink(path), 0);
    assert_false(file_hold(path, &view, 0, NULL, &e));
    assert_non_null(strstr(e.text, "cannot open"));
    assert_ptr_equal(view.data, mapped);
    assert_memory_equal(view.data, bytes, LARGEST);
    file_unmap(&view);

    path = made(*state, bytes, LARGEST, &view);
    FileView beyond = {.data = view.data, .size = SIZE_MAX / 4};
    assert_false(file_hold(path, &beyond, 0, NULL, &e));
    assert_int_equal(e.kind, ERROR_SYSTEM);
    assert_non_null(strstr(e.text, "leave weights mapped"));
    assert_ptr_equal(beyond.data, view.data);
    file_unmap(&view);
    mem_free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(holds, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(fails, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
