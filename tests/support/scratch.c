#include "tests/support/scratch.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SIZE = 1024 };

static void demand(bool ok, const char *what, const char *which) {
    if (ok) return;
    fprintf(stderr, "scratch: cannot %s '%s'\n", what, which);
    abort();
}

static void join(char out[PATH_SIZE], const char *dir, const char *name) {
    demand(snprintf(out, PATH_SIZE, "%s/%s", dir, name) < PATH_SIZE, "name", name);
}

char *scratch_read(const char *dir, const char *name, size_t *size) {
    char path[PATH_SIZE], *bytes;
    join(path, dir, name);
    demand(file_read(path, SIZE_MAX, &bytes, size, NULL), "read", path);
    return bytes;
}

void scratch_write(const char *dir, const char *name, const void *bytes, size_t size) {
    char path[PATH_SIZE];
    join(path, dir, name);
    FILE *f = fopen(path, "wb");
    demand(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0, "write", path);
}

void scratch_copy(const char *from, const char *to) {
    demand(mkdir(to, 0777) == 0, "make", to);
    DIR *d = opendir(from);
    demand(d != NULL, "list", from);
    for (struct dirent *f; (f = readdir(d));) {
        if (f->d_name[0] == '.') continue;
        size_t size;
        char *bytes = scratch_read(from, f->d_name, &size);
        scratch_write(to, f->d_name, bytes, size);
        mem_free(bytes);
    }
    closedir(d);
}

json_t *scratch_json(const char *dir, const char *name) {
    char path[PATH_SIZE];
    join(path, dir, name);
    json_t *root = json_load_file(path, JSON_DECODE_ANY, NULL);
    demand(root != NULL, "parse", path);
    return root;
}

void scratch_write_json(const char *dir, const char *name, const json_t *root) {
    char *text = json_dumps(root, JSON_ENCODE_ANY | JSON_COMPACT);
    demand(text != NULL, "write", name);
    scratch_write(dir, name, text, strlen(text));
    free(text); // jansson's own
}

void scratch_write_safetensors(const char *dir, const char *name, const char *header, const void *data,
                               size_t size) {
    size_t n = strlen(header);
    unsigned char *file = mem_new(8 + n + size, 1);
    demand(file != NULL, "write", name);
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)((uint64_t)n >> 8 * i);
    memcpy(file + 8, header, n);
    if (size) memcpy(file + 8 + n, data, size);
    scratch_write(dir, name, file, 8 + n + size);
    mem_free(file);
}
