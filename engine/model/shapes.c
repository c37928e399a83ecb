#include "engine/model/shapes.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PATH = 4096, PLACES = 4 };

// The folder of the running program, without the last slash; empty if that cannot be found out.
static void own_folder(char out[MAX_PATH]) {
    ssize_t n = readlink("/proc/self/exe", out, MAX_PATH - 1);
    out[n > 0 ? n : 0] = 0;
    char *slash = strrchr(out, '/');
    if (slash) *slash = 0;
}

// The i-th folder to look in; false if it does not apply.
static bool place(int i, char out[MAX_PATH]) {
    char own[MAX_PATH];
    const char *configs = getenv("OUTPACE_CONFIGS");
    own_folder(own);
    int n = i == 0   ? snprintf(out, MAX_PATH, "%s/shapes", configs ? configs : "")
            : i == 1 ? snprintf(out, MAX_PATH, "%s/configs/shapes", own)
            : i == 2 ? snprintf(out, MAX_PATH, "%s/../share/outpace/configs/shapes", own)
                     : snprintf(out, MAX_PATH, "configs/shapes");
    return n > 0 && n < MAX_PATH && (i > 0 || configs) && access(out, R_OK) == 0;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool is_shape(const struct dirent *f) {
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
        if (is_shape(f) && (names[count] = mem_text(f->d_name, strlen(f->d_name) - 5))) count++;
    closedir(d);
    qsort(names, (size_t)count, sizeof *names, by_text);
    for (int i = 0; i < count; i++) {
        text_printf(out, "%s\n", names[i]);
        mem_free(names[i]);
    }
    return true;
}

bool shape_names(Text *out, Error *e) {
    char folder[MAX_PATH];
    for (int i = 0; i < PLACES; i++)
        if (place(i, folder)) return list_folder(folder, out, e);
    return error_input(e, "cannot find the folder configs/shapes: set OUTPACE_CONFIGS to the configs folder");
}

static void unknown_shape(const char *name, Error *e) {
    Text list = {0};
    if (shape_names(&list, e)) {
        for (size_t i = 0; i + 1 < list.length; i++)
            if (list.data[i] == '\n') list.data[i] = ' ';
        if (list.length) list.data[list.length - 1] = 0;
        error_input(e, "there is no shape '%s'; known are %s; or give the path of a config.json", name,
                    text_get(&list));
    }
    text_release(&list);
}

char *shape_file(const char *name, Error *e) {
    char folder[MAX_PATH], file[256];
    if (strchr(name, '/') || strstr(name, ".json")) {
        char *path = mem_text(name, strlen(name));
        if (!path) error_system(e, "out of memory for the path of the shape '%s'", name);
        if (!path || file_exists(path)) return path;
        mem_free(path);
        error_input(e, "cannot read the shape '%s'", name);
        return NULL;
    }
    snprintf(file, sizeof file, "%.200s.json", name);
    for (int i = 0; i < PLACES; i++) {
        if (!place(i, folder)) continue;
        char *path = file_path(folder, file);
        if (!path) error_system(e, "out of memory for the path of the shape '%s'", name);
        if (!path || file_exists(path)) return path;
        mem_free(path);
    }
    unknown_shape(name, e);
    return NULL;
}
