#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void fill(unsigned char *bytes, size_t n, Random *r) {
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)random_bits(r);
}

// Files read and map as they were written, whatever their bytes and size: none, one, around a page, many.
static void there_and_back(void **state) {
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 300000};
    static unsigned char bytes[300000];
    Random r = test_random(1);
    const char *path = folder_path(*state, "file");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i], got;
        char *data;
        FileView view;
        Error e = {0};
        fill(bytes, n, &r);
        assert_true(file_write(path, bytes, n, &e)); // over the last one, longer or shorter
        assert_true(file_read(path, n, &data, &got, &e));
        assert_int_equal(got, n);
        assert_memory_equal(data, bytes, n);
        assert_int_equal(data[n], 0);
        mem_free(data);
        assert_true(file_map(path, &view, &e));
        assert_int_equal(view.size, n);
        if (n) assert_memory_equal(view.data, bytes, n);
        else assert_null(view.data);
        file_unmap(&view);
        assert_null(view.data);
        file_unmap(&view); // a second time does no harm
    }
    assert_int_equal(folder_count(*state), 1);
}

// A mapped file that is written in place, cut, replaced or gone isn't what it was; one that is read still is.
static void changes_are_seen(void **state) {
    const char *path = folder_path(*state, "file");
    for (int change = 0; change < 5; change++) {
        FileView view;
        Error e = {0};
        folder_write(*state, "file", "0123456789");
        assert_true(file_map(path, &view, &e) && file_is_unchanged(&view, path, &e));
        usleep(20000); // times of files have the kernel's ticks
        int fd = open(path, change == 1 ? O_WRONLY : O_RDONLY);
        if (change == 1) assert_int_equal(pwrite(fd, "x", 1, 3), 1);
        close(fd);
        if (change == 2) assert_int_equal(truncate(path, 9), 0);
        if (change == 3) assert_true(file_write(path, "0123456789", 10, &e));
        if (change == 4) assert_int_equal(unlink(path), 0);
        if (file_is_unchanged(&view, path, &e) != (change == 0)) fail_msg("change %d: '%s'", change, e.text);
        if (change && !strstr(e.text, "changed while in use")) fail_msg("change %d: '%s'", change, e.text);
        file_unmap(&view);
    }
}

static void check_error(const Error *e, ErrorKind kind, const char *path, const char *part) {
    if (e->kind != kind || !strstr(e->text, path) || !strstr(e->text, part))
        fail_msg("want a message of kind %d on '%s' with '%s', got %d: %s", (int)kind, path, part,
                 (int)e->kind, e->text);
}

// The number that the next file would get: the same before and after, nothing was left open.
static int next_file(void) {
    int fd = open("/dev/null", O_RDONLY);
    close(fd);
    return fd;
}

static void what_cannot_be_read(void **state) {
    const char *paths[] = {folder_path(*state, "none"), folder_path(*state, "pipe"),
                           folder_path(*state, "dangling"), "/dev/null", *state};
    const char *why[] = {"No such file", "not a regular file", "No such file", "not a regular file",
                         "not a regular file"};
    assert_int_equal(mkfifo(paths[1], 0600), 0); // nobody writes to it: opening it must not wait
    assert_int_equal(symlink("nowhere", paths[2]), 0);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        int files = next_file();
        Error e = {0};
        FileView view = {.data = (const unsigned char *)"", .size = 1};
        char *data = "", text[FOLDER_PATH_SIZE];
        size_t size = 1;
        snprintf(text, sizeof text, "'%s'", paths[i]);
        assert_false(file_map(paths[i], &view, &e));
        check_error(&e, ERROR_INPUT, text, why[i]);
        assert_true(view.data == NULL && view.size == 0);
        e = (Error){0};
        assert_false(file_read(paths[i], 100, &data, &size, &e));
        check_error(&e, ERROR_INPUT, text, why[i]);
        assert_true(data == NULL && size == 0);
        assert_int_equal(next_file(), files);
    }
}

static void too_large(void **state) {
    const char *path = folder_path(*state, "file");
    Error e = {0};
    char *data;
    size_t size;
    scratch_write(*state, "file", "12345", 5);
    assert_false(file_read(path, 4, &data, &size, &e));
    check_error(&e, ERROR_INPUT, path, "5 bytes, at most 4");
    assert_null(data);
    assert_true(file_read(path, 5, &data, &size, &e)); // just fits
    mem_free(data);
}

// Why it was not made, not why it is not there.
static void no_directory(void **state) {
    const char *link = folder_path(*state, "link");
    Error e = {0};
    assert_int_equal(symlink("nowhere", link), 0);
    assert_false(file_make_directory(link, &e));
    check_error(&e, ERROR_SYSTEM, link, "File exists");
}

static void pointers(void **state) {
    static const char TEXT[] = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n";
    const char *path = folder_path(*state, "file");
    Error e = {0};
    FileView view;
    char *data;
    size_t size;
    scratch_write(*state, "file", TEXT, sizeof TEXT - 1);
    assert_false(file_read(path, 1000, &data, &size, &e));
    check_error(&e, ERROR_INPUT, path, "git lfs pull");
    e = (Error){0};
    assert_false(file_map(path, &view, &e));
    check_error(&e, ERROR_INPUT, path, "git lfs pull");
    assert_null(view.data);
}

static void what_cannot_be_written(void **state) {
    const char *folder = *state, *inner = folder_path(folder, "folder"), *file = folder_path(folder, "file");
    scratch_write(folder, "file", "old", 3);
    assert_int_equal(mkdir(inner, 0777), 0);
    Error e = {0};
    assert_false(file_write(folder_path(folder, "none/file"), "x", 1, &e));
    check_error(&e, ERROR_SYSTEM, "none/file", "No such file or directory");
    assert_false(file_write(folder_path(folder, "file/file"), "x", 1, &e)); // a file is no directory
    check_error(&e, ERROR_SYSTEM, "file/file", "Not a directory");
    assert_false(file_write(inner, "x", 1, &e));
    check_error(&e, ERROR_INPUT, inner, "not a regular file");
    assert_false(file_write("/dev/null", "x", 1, &e)); // root could put a file in its place
    check_error(&e, ERROR_INPUT, "/dev/null", "not a regular file");
    char long_name[5000];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    assert_false(file_write(long_name, "x", 1, &e));
    check_error(&e, ERROR_SYSTEM, "nnn", "");
    long_name[300] = 0;
    assert_false(file_write(long_name, "x", 1, &e));
    check_error(&e, ERROR_SYSTEM, long_name, "too long");
    assert_int_equal(folder_count(folder), 2);
    assert_true(file_exists(file));
}

// A disk that fills up midway: the old content stays whole, and nothing is left next to it.
static void full_disk(void **state) {
    static char bytes[100000];
    struct rlimit was, low;
    scratch_write(*state, "file", "old", 3);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    low = was;
    low.rlim_cur = 50000; // the first write is cut short, the second fails
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    Error e = {0};
    bool ok = file_write(folder_path(*state, "file"), bytes, sizeof bytes, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_false(ok);
    check_error(&e, ERROR_SYSTEM, "/file'", "File too large");
    size_t n;
    char *now = scratch_read(*state, "file", &n);
    assert_int_equal(n, 3);
    assert_string_equal(now, "old");
    mem_free(now);
    assert_int_equal(folder_count(*state), 1);
}

static void permissions(void **state) {
    static const mode_t masks[] = {022, 077, 002};
    struct stat st;
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        const char *path = folder_path(*state, "file");
        mode_t was = umask(masks[i]);
        assert_true(file_write(path, "x", 1, NULL));
        umask(was);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0666 & ~masks[i]);
    }
}

// In the working directory, where a path has no slash; the directory to sync is then ".".
static void bare_name(void **state) {
    char *was = getcwd(NULL, 0);
    assert_int_equal(chdir(*state), 0);
    Error e = {0};
    bool ok = file_write("name", "x", 1, &e);
    assert_int_equal(chdir(was), 0);
    free(was);
    if (!ok) fail_msg("%s", e.text);
    assert_true(file_exists(folder_path(*state, "name")));
}

// The names that a writer would take, left by processes that died: passed over and left alone.
static void names_in_use(void **state) {
    enum { LEFT = 20 };
    for (int i = 0; i < LEFT; i++) {
        char name[64];
        snprintf(name, sizeof name, "file.%ld-%d.part", (long)getpid(), i);
        scratch_write(*state, name, "theirs", 6);
    }
    Error e = {0};
    if (!file_write(folder_path(*state, "file"), "ours", 4, &e)) fail_msg("%s", e.text);
    assert_int_equal(folder_count(*state), LEFT + 1);
    for (int i = 0; i < LEFT; i++) {
        char name[64];
        size_t n;
        snprintf(name, sizeof name, "file.%ld-%d.part", (long)getpid(), i);
        char *data = scratch_read(*state, name, &n);
        assert_string_equal(data, "theirs");
        mem_free(data);
    }
}

typedef struct {
    const char *path;
    char letter;
    bool ok;
} Writer;

enum { WRITERS = 3, WRITES = 12, LENGTH = 200000 };

static void *write_often(void *arg) {
    Writer *w = arg;
    char *text = mem_new(LENGTH, 1);
    memset(text, w->letter, LENGTH);
    w->ok = true;
    for (int i = 0; i < WRITES; i++) w->ok = file_write(w->path, text, LENGTH, NULL) && w->ok;
    mem_free(text);
    return NULL;
}

// Writers of one path at the same time: whoever reads meanwhile sees one of the files, whole.
static void writers_at_once(void **state) {
    const char *path = folder_path(*state, "file");
    Writer writers[WRITERS];
    pthread_t threads[WRITERS];
    scratch_write(*state, "file", "", 0);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (Writer){.path = path, .letter = (char)('a' + i)};
        assert_int_equal(pthread_create(&threads[i], NULL, write_often, &writers[i]), 0);
    }
    for (int i = 0; i < 200; i++) {
        char *data;
        size_t n;
        Error e;
        if (!file_read(path, LENGTH, &data, &n, &e)) fail_msg("%s", e.text);
        assert_true(n == LENGTH || n == 0);
        for (size_t j = 1; j < n; j++)
            if (data[j] != data[0]) fail_msg("a file of '%c' has '%c' at byte %zu", data[0], data[j], j);
        mem_free(data);
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(writers[i].ok);
    }
    assert_int_equal(folder_count(*state), 1);
}

static void paths(void **state) {
    static const char *const rows[][3] = {{"dir", "name", "dir/name"},
                                          {"dir/", "name", "dir/name"},
                                          {"/", "name", "/name"},
                                          {"", "name", "/name"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *path = file_path(rows[i][0], rows[i][1]);
        assert_string_equal(path, rows[i][2]);
        mem_free(path);
    }
    assert_false(file_exists(folder_path(*state, "none")));
    assert_true(file_exists(*state));
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        in_folder(there_and_back),
        in_folder(changes_are_seen),
        in_folder(what_cannot_be_read),
        in_folder(too_large),
        in_folder(pointers),
        in_folder(no_directory),
        in_folder(full_disk),
        in_folder(what_cannot_be_written),
        in_folder(permissions),
        in_folder(bare_name),
        in_folder(names_in_use),
        in_folder(writers_at_once),
        in_folder(paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
