#include "tests/check.h"

#include "tests/folder.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>

int folder_setup(void **state) {
    Folder *f = calloc(1, sizeof *f);
    if (!f) return -1;
    snprintf(f->path, sizeof f->path, "/tmp/outpace-test-XXXXXX");
    *state = f;
    return mkdtemp(f->path) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *walk) {
    (void)st, (void)type, (void)walk;
    return remove(path);
}

int folder_teardown(void **state) {
    Folder *f = *state;
    int result = nftw(f->path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(f);
    return result;
}

const char *folder_path(const Folder *f, const char *name) {
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", f->path, name);
    return path;
}

int folder_count(const Folder *f) {
    DIR *d = opendir(f->path);
    int n = 0;
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n - 2; // . and ..
}

static FILE *open_or_fail(const Folder *f, const char *name, const char *mode) {
    FILE *file = fopen(folder_path(f, name), mode);
    if (!file) fail_msg("cannot open '%s'", folder_path(f, name));
    return file;
}

void folder_write(const Folder *f, const char *name, const void *data, size_t size) {
    FILE *file = open_or_fail(f, name, "wb");
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

size_t folder_read(const Folder *f, const char *name, void *data, size_t capacity) {
    FILE *file = open_or_fail(f, name, "rb");
    size_t n = fread(data, 1, capacity, file);
    fclose(file);
    return n;
}
