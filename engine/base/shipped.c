// Where shipped files are. Invariant: a path that is returned exists, or existed a moment ago.
#include "engine/base/shipped.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PATH = SHIPPED_PATH, PLACES = 4 };

void shipped_own_folder(char out[MAX_PATH]) {
    ssize_t n = readlink("/proc/self/exe", out, MAX_PATH - 1);
    out[n > 0 ? n : 0] = 0;
    char *slash = strrchr(out, '/');
    if (slash) *slash = 0;
}

// The path of `name` in the i-th place; false if it doesn't exist.
static bool place(int i, const char *name, char out[MAX_PATH]) {
    char own[MAX_PATH];
    const char *configs = getenv("OUTPACE_CONFIGS");
    shipped_own_folder(own);
    int n = i == 0   ? snprintf(out, MAX_PATH, "%s/%s", configs ? configs : "", name)
            : i == 1 ? snprintf(out, MAX_PATH, "%s/configs/%s", own, name)
            : i == 2 ? snprintf(out, MAX_PATH, "%s/../share/outpace/configs/%s", own, name)
                     : snprintf(out, MAX_PATH, "configs/%s", name);
    return n > 0 && n < MAX_PATH && (i > 0 || configs) && file_exists(out);
}

static bool find(const char *name, char out[MAX_PATH]) {
    for (int i = 0; i < PLACES; i++)
        if (place(i, name, out)) return true;
    return false;
}

char *shipped_path(const char *name) {
    char path[MAX_PATH];
    return find(name, path) ? mem_text(path, strlen(path)) : NULL;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool is_named(const struct dirent *f) {
    size_t n = strlen(f->d_name);
    return n > 5 && strcmp(f->d_name + n - 5, ".json") == 0;
}

static bool list_folder(const char *folder, Text *out, Error *e) {
    enum { MOST = 256 };
    char *names[MOST];
    int count = 0;
    DIR *d = opendir(folder);
    if (!d) return error_input(e, "cannot read the folder '%s'", folder);
    for (struct dirent *f; count < MOST && (f = readdir(d));)
        if (is_named(f)) names[count++] = mem_text(f->d_name, strlen(f->d_name) - 5);
    closedir(d);
    qsort(names, (size_t)count, sizeof *names, by_text);
    for (int i = 0; i < count; i++) {
        text_printf(out, "%s\n", names[i]);
        mem_free(names[i]);
    }
    return true;
}

bool shipped_names(const char *folder, Text *out, Error *e) {
    char path[MAX_PATH];
    if (find(folder, path)) return list_folder(path, out, e);
    return error_input(e, "cannot find the folder configs/%s: set OUTPACE_CONFIGS to the configs folder",
                       folder);
}

static void unknown(const char *folder, const char *what, const char *name, Error *e) {
    Text list = {0};
    if (shipped_names(folder, &list, e)) {
        for (size_t i = 0; i + 1 < list.length; i++)
            if (list.data[i] == '\n') list.data[i] = ' ';
        if (list.length) list.data[list.length - 1] = 0;
        error_input(e, "there is no %s '%s'; known are %s; or give the path of a file of your own", what,
                    name, text_get(&list));
    }
    text_release(&list);
}

char *shipped_named(const char *folder, const char *what, const char *name, Error *e) {
    char file[256], path[MAX_PATH];
    snprintf(file, sizeof file, "%s/%.200s.json", folder, name);
    if (strchr(name, '/') || strstr(name, ".json")) {
        if (file_exists(name)) return mem_text(name, strlen(name));
        error_input(e, "cannot read the %s '%s'", what, name);
    } else if (find(file, path)) return mem_text(path, strlen(path));
    else unknown(folder, what, name, e);
    return NULL;
}
