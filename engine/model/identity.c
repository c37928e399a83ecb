#include "engine/model/identity.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"

#include <stdint.h>

enum { MOST_CONFIG = 1 << 20 };

static bool add_config(const char *dir, Text *out, Error *e) {
    char *bytes = NULL, *path = file_path(dir, "config.json");
    size_t n;
    bool ok = path ? file_read(path, MOST_CONFIG, &bytes, &n, e) : error_system(e, "out of memory");
    if (ok) text_add(out, bytes, n);
    mem_free(bytes);
    mem_free(path);
    return ok;
}

// The length that stands in front of it, and the JSON; checked when the file was opened.
static size_t header_bytes(const FileView *view) {
    uint64_t n = 0;
    for (int i = 0; i < 8; i++) n |= (uint64_t)view->data[i] << 8 * i;
    return 8 + (size_t)n;
}

static void add_samples(const FileView *view, Text *out) {
    size_t whole = (size_t)IDENTITY_SAMPLES * IDENTITY_BYTES;
    if (view->size <= whole) {
        text_add(out, (const char *)view->data, view->size);
        return;
    }
    size_t last = view->size - IDENTITY_BYTES, step = last / (IDENTITY_SAMPLES - 1);
    for (size_t i = 0; i < IDENTITY_SAMPLES; i++) {
        size_t at = i + 1 < IDENTITY_SAMPLES ? i * step : last;
        text_add(out, (const char *)view->data + at, IDENTITY_BYTES);
    }
}

// Begins with its name and size, so that no two lists of files read the same.
static void add_file(const WeightFile *file, Text *out) {
    text_printf(out, "\n%s\n%zu\n", file->name, file->view.size);
    text_add(out, (const char *)file->view.data, header_bytes(&file->view));
    add_samples(&file->view, out);
}

bool model_identity(const Model *m, const char *dir, char out[SHA256_TEXT], Error *e) {
    Text all = {0};
    bool ok = add_config(dir, &all, e);
    for (int i = 0; i < m->shard_count; i++) add_file(&m->shards[i], &all);
    if (ok && all.failed) ok = error_system(e, "out of memory for the identity of '%s'", dir);
    ok = ok && sha256_bytes(text_get(&all), all.length, out, e);
    text_release(&all);
    return ok;
}
