#include "harness/models/model_files.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/sha256.h"
#include "engine/model/shapes.h"
#include "engine/model/synth.h"
#include "harness/models/inflated.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static bool out_of_memory(Error *e) { return error_system(e, "out of memory for the paths of models"); }

static bool has_config(const char *dir) {
    char *path = file_path(dir, "config.json");
    bool there = path && file_exists(path);
    mem_free(path);
    return there;
}

// --- the reference family --------------------------------------------------------------------------------

// The i-th folder that may hold it: $OUTPACE_MODELS, models beside the program, in its share, and here.
static bool reference_place(int i, char out[PATH_SIZE]) {
    char own[PATH_SIZE];
    const char *set = getenv("OUTPACE_MODELS");
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    own[n > 0 ? n : 0] = 0;
    char *slash = strrchr(own, '/');
    if (slash) *slash = 0;
    int written = i == 0   ? snprintf(out, PATH_SIZE, "%s", set ? set : "")
                  : i == 1 ? snprintf(out, PATH_SIZE, "%.4000s/models", own)
                  : i == 2 ? snprintf(out, PATH_SIZE, "%.4000s/../share/outpace/models", own)
                           : snprintf(out, PATH_SIZE, "models");
    return written > 0 && written < PATH_SIZE && i < 4;
}

static char *find_reference(const ModelSpec *m, const char *name, Error *e) {
    char folder[PATH_SIZE];
    for (int i = 0; i < 4; i++) {
        char *dir = reference_place(i, folder) ? file_path(folder, name) : NULL;
        if (dir && has_config(dir)) return dir;
        mem_free(dir);
    }
    yaml_error(m->at, e,
               "the reference model '%s' is not there: no models/%s here or beside the program; set "
               "OUTPACE_MODELS to the folder that holds it, or give another model with --model target=DIR",
               name, name);
    return NULL;
}

// --- random models ---------------------------------------------------------------------------------------

// Named by what it is made of: the shape's file, whatever its name, and the seed.
static char *synth_place(const char *shape, uint64_t seed, const char *cache, Error *e) {
    char hash[SHA256_TEXT], name[256];
    char *file = shape_file(shape, e);
    bool ok = file && sha256_file(file, hash, e);
    mem_free(file);
    if (!ok) return NULL;
    const char *slash = strrchr(shape, '/'), *base = slash ? slash + 1 : shape;
    snprintf(name, sizeof name, "random/%.100s-%" PRIu64 "-%.16s", base, seed, hash);
    char *dir = file_path(cache, name);
    if (!dir) out_of_memory(e);
    return dir;
}

static char *make_random(const ModelSpec *m, const char *cache, Error *e) {
    if (!cache) {
        yaml_error(m->at, e, "there is no place for a random model: set HOME or XDG_CACHE_HOME");
        return NULL;
    }
    SynthOptions o = {.shape = m->synthesise, .seed = m->seed};
    char *dir = synth_place(m->synthesise, m->seed, cache, e);
    if (dir && (has_config(dir) || (file_make_directory(dir, e) && model_synth(dir, &o, e)))) return dir;
    mem_free(dir);
    error_within(e, "%s:%d:%d", m->at->file, m->at->line, m->at->column);
    return NULL;
}

// --- all of them -----------------------------------------------------------------------------------------

static bool copy(const char *path, char **out, Error *e) {
    *out = path ? mem_text(path, strlen(path)) : NULL;
    return !path || *out || out_of_memory(e);
}

// Beside a reference model: a member of its family by name, or a path.
static bool find_beside(const ModelSpec *m, const char *path, char **out, Error *e) {
    if (!path || !m->reference || strchr(path, '/')) return copy(path, out, e);
    *out = find_reference(m, path, e);
    return *out != NULL;
}

static bool find_target(const ModelSpec *m, const char *cache, char **out, Error *e) {
    if (m->target) return copy(m->target, out, e);
    *out = m->reference ? find_reference(m, m->reference, e) : make_random(m, cache, e);
    return *out != NULL;
}

// A path in place of itself, of the model in another shape; `adapter` is of the small model, or NULL.
static bool inflate_one(const ModelSpec *m, const char *cache, const char *small, const char *adapter,
                        char **path, Error *e) {
    InflateOptions o = {.small = small, .adapter = adapter, .shape = m->inflate, .seed = m->seed};
    char *dir = inflated_open(cache, &o, e);
    if (!dir) return error_within(e, "%s:%d:%d", m->at->file, m->at->line, m->at->column);
    mem_free(*path);
    *path = dir;
    return true;
}

// The draft stays as small as it is: inflate it by itself where it should not.
static bool inflate_all(const ModelSpec *m, const char *cache, ModelFiles *f, Error *e) {
    char *small = NULL;
    if (!cache)
        return yaml_error(m->at, e, "there is no place for an inflated model: set HOME or XDG_CACHE_HOME");
    bool ok = copy(f->target, &small, e) && inflate_one(m, cache, small, NULL, &f->target, e) &&
              (!f->adapter || inflate_one(m, cache, small, f->adapter, &f->adapter, e)) &&
              (!f->heads || inflate_one(m, cache, small, f->heads, &f->heads, e));
    mem_free(small);
    return ok;
}

bool model_files_find(const ModelSpec *m, const char *cache, ModelFiles *out, Error *e) {
    *out = (ModelFiles){0};
    if (find_target(m, cache, &out->target, e) && find_beside(m, m->draft, &out->draft, e) &&
        find_beside(m, m->adapter, &out->adapter, e) && find_beside(m, m->heads, &out->heads, e) &&
        (!m->inflate || inflate_all(m, cache, out, e)))
        return true;
    model_files_release(out);
    return false;
}

void model_files_release(ModelFiles *f) {
    mem_free(f->target);
    mem_free(f->draft);
    mem_free(f->adapter);
    mem_free(f->heads);
    *f = (ModelFiles){0};
}
