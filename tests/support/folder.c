#include "tests/support/check.h"

#include "tests/support/folder.h"

#include <dirent.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

void folder_make(char path[FOLDER_PATH_SIZE]) {
    const char *place = getenv("TMPDIR");
    snprintf(path, FOLDER_PATH_SIZE, "%s/outpace-test-XXXXXX", place ? place : "/tmp");
    if (!mkdtemp(path)) fail_msg("cannot make a folder '%s'", path);
}

static int remove_entry(const char *path, const struct stat *s, int type, struct FTW *at) {
    (void)s;
    (void)type;
    (void)at;
    return remove(path) == 0 || (umount2(path, MNT_DETACH) == 0 && remove(path) == 0) ? 0 : -1;
}

void folder_remove(const char *path) {
    enum { OPEN_FOLDERS = 16 };
    nftw(path, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

int folder_setup(void **state) {
    char *path = calloc(1, FOLDER_PATH_SIZE);
    if (!path) return -1;
    folder_make(path);
    *state = path;
    return 0;
}

int folder_teardown(void **state) {
    folder_remove(*state);
    free(*state);
    return 0;
}

const char *folder_path(const char *folder, const char *name) {
    static char paths[8][2 * FOLDER_PATH_SIZE];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void folder_write(const char *folder, const char *name, const char *text) {
    FILE *f = fopen(folder_path(folder, name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

int folder_count(const char *folder) {
    DIR *d = opendir(folder);
    int n = 0;
    if (!d) fail_msg("cannot list '%s'", folder);
    while (readdir(d)) n++;
    closedir(d);
    return n - 2; // . and ..
}

bool folder_disk(const char *folder, const char *name, int kilobytes) {
    char size[32];
    const char *path = folder_path(folder, name);
    snprintf(size, sizeof size, "size=%dk", kilobytes);
    return mkdir(path, 0777) == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", path, "tmpfs", 0, size) == 0;
}
