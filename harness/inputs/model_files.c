// Finding never writes: models that are not there are described, so that a plan can be made with them, until
// model_files_make makes them. A directory in the cache is named by a hash of everything it is made of, so it
// is never stale.
#include "harness/inputs/models.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "engine/model/config.h"
#include "engine/model/make/synth.h"
#include "harness/cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

// --- models that are made once -----------------------------------------------------------------------------

// Locks the directory to be, for the only process that makes it; others wait here, and then find it. The lock
// ends with its process, however that ends, and its file DIR.lock stays: nobody can tell whether it is the
// one that another process waits for. -1 with e filled.
static int lock_directory(const char *dir, Error *e) {
    LOCAL_MEMORY char *above = file_directory(dir), *path = mem_printf("%s.lock", dir);
    bool there = file_make_directory(above, e), held = false;
    int fd = there ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        fprintf(stderr, "waiting for another process, which makes '%s'\n", SHOWN(dir));
    while (fd >= 0 && !(held = flock(fd, LOCK_EX) == 0) && errno == EINTR) continue;
    if (there && !held)
        error_system(e, "cannot lock '%s': %s; --cache names a directory on another disk", path,
                     strerror(errno));
    if (!held && fd >= 0) close(fd);
    return held ? fd : -1;
}

// --- random models ---------------------------------------------------------------------------------------

// The directory's name is a hash of its content: the shape's file, whatever its name, and the seed.
static char *synth_place(const char *shape, uint64_t seed, const char *cache, Error *e) {
    char hash[SHA256_TEXT], name[256];
    LOCAL_MEMORY char *file = shape_file(shape, e);
    bool ok = file && sha256_file(file, hash, e);
    if (!ok) return NULL;
    const char *slash = strrchr(shape, '/'), *base = slash ? slash + 1 : shape;
    snprintf(name, sizeof name, "random/%.100s-%" PRIu64 "-%.16s", base, seed, hash);
    return file_path(cache, name);
}

static SynthOptions synth_options(const ModelSpec *m) {
    return (SynthOptions){.shape = m->synthesise, .seed = m->seed, .force = true}; // the cache is ours
}

static bool make_random(const ModelSpec *m, const ModelFiles *f, const Progress *progress, Error *e) {
    SynthOptions o = synth_options(m);
    o.progress = *progress;
    int lock = lock_directory(f->target, e);
    bool ok = lock >= 0 && (shipped_model_at(f->target) || model_synth(f->target, &o, e));
    if (lock >= 0) close(lock);
    return ok || yaml_within(m->at, e);
}

// --- all of them -----------------------------------------------------------------------------------------

// A name in a config as a path; beside a reference model, a word without a slash is a member of its family.
static bool find_named(const ModelSpec *m, const char *name, bool member, char **out, Error *e) {
    *out = !name ? NULL : member ? shipped_member(name, e) : shipped_model(name, e);
    return !name || *out || yaml_within(m->at, e);
}

static bool find_beside(const ModelSpec *m, const char *name, char **out, Error *e) {
    return find_named(m, name, name && m->reference && !strchr(name, '/'), out, e);
}

static bool find_target(const ModelSpec *m, const char *cache, ModelFiles *f, Error *e) {
    if (m->target || m->reference)
        return find_named(m, m->target ? m->target : m->reference, !m->target, &f->target, e);
    SynthOptions o = synth_options(m);
    if (!cache) return yaml_error(m->at, e, "there is no place for a random model: give a --cache");
    f->target = synth_place(m->synthesise, m->seed, cache, e);
    f->unmade = f->target && !shipped_model_at(f->target);
    return (f->target && (!f->unmade || synth_describe(&o, &f->model, e))) || yaml_within(m->at, e);
}

// --- inflated models -------------------------------------------------------------------------------------

// Options to inflate the small model, or, unless NULL, its `adapter`.
static InflateOptions inflate_options(const ModelSpec *m, const char *small, const char *adapter) {
    return (InflateOptions){
        .small = small, .adapter = adapter, .shape = m->inflate, .seed = m->seed, .first = m->inflate_first};
}

static InflateOptions inflate_draft_options(const ModelSpec *m, const char *small) {
    return (InflateOptions){.small = small, .shape = m->inflate_draft, .seed = m->seed};
}

// Replaces *path by the directory where the model is or will be.
static bool find_one(const ModelSpec *m, const char *cache, InflateOptions o, char **path, bool *unmade,
                     Inflated *what, Error *e) {
    bool there;
    char *dir = inflated_find(cache, &o, what, &there, e);
    if (!dir) return yaml_within(m->at, e);
    mem_free(*path);
    *path = dir;
    *unmade = *unmade || !there;
    return true;
}

// No paper uses a draft that costs more than a fifth of its target.
static bool find_inflated_draft(const ModelSpec *m, const char *cache, ModelFiles *f, Error *e) {
    Inflated what;
    f->small_draft = f->draft;
    f->draft = NULL;
    InflateOptions o = inflate_draft_options(m, f->small_draft);
    if (!find_one(m, cache, o, &f->draft, &f->draft_unmade, &what, e)) return false;
    f->unmade = f->unmade || f->draft_unmade;
    f->draft_model = what.model;
    double share = (double)shape_parameters(&what.model.shape) / (double)shape_parameters(&f->model.shape);
    return share <= 0.2 ||
           yaml_error(m->at, e,
                      "inflate_draft '%s' has %.0f%% of the parameters of '%s': take a shape of at most 20%%",
                      m->inflate_draft, 100 * share, m->inflate);
}

static bool find_inflated(const ModelSpec *m, const char *cache, ModelFiles *f, Error *e) {
    Inflated what;
    if (!cache) return yaml_error(m->at, e, "there is no place for an inflated model: give a --cache");
    f->small = f->target;
    f->target = NULL;
    InflateOptions target = inflate_options(m, f->small, NULL);
    if (!find_one(m, cache, target, &f->target, &f->unmade, &what, e)) return false;
    f->model = what.model;
    for (int i = 0; i < ADAPTER_ROLES; i++) {
        InflateOptions adapter = inflate_options(m, f->small, f->adapters[i]);
        if (f->adapters[i] && !find_one(m, cache, adapter, &f->adapters[i], &f->unmade, &what, e))
            return false;
        f->kinds[i] = what.kind;
    }
    bool draft = m->inflate_draft && strcmp(m->inflate_draft, INFLATE_NONE) != 0;
    return !draft || find_inflated_draft(m, cache, f, e);
}

static bool make_one(const ModelSpec *m, const char *cache, InflateOptions o, const Progress *progress,
                     Error *e) {
    o.progress = *progress;
    LOCAL_MEMORY char *dir = inflated_open(cache, &o, e);
    return dir || yaml_within(m->at, e);
}

static bool make_inflated(const ModelSpec *m, const char *cache, const ModelFiles *f,
                          const Progress *progress, Error *e) {
    bool ok = make_one(m, cache, inflate_options(m, f->small, NULL), progress, e);
    for (int i = 0; ok && i < ADAPTER_ROLES; i++) {
        LOCAL_MEMORY char *adapter = NULL; // of the small model
        ok = find_beside(m, m->adapters[i], &adapter, e) &&
             (!adapter || make_one(m, cache, inflate_options(m, f->small, adapter), progress, e));
    }
    return ok &&
           (!f->small_draft || make_one(m, cache, inflate_draft_options(m, f->small_draft), progress, e));
}

// --- all of it -------------------------------------------------------------------------------------------

bool model_files_find(const ModelSpec *m, const char *cache, ModelFiles *out, Error *e) {
    *out = (ModelFiles){0};
    bool ok = find_target(m, cache, out, e) && find_beside(m, m->draft, &out->draft, e);
    for (int i = 0; ok && i < ADAPTER_ROLES; i++) ok = find_beside(m, m->adapters[i], &out->adapters[i], e);
    if (ok && (!m->inflate || find_inflated(m, cache, out, e))) return true;
    model_files_release(out);
    return false;
}

bool model_files_make(const ModelSpec *m, const char *cache, ModelFiles *f, const Progress *progress,
                      Error *e) {
    if (f->unmade && !(f->small ? make_inflated(m, cache, f, progress, e) : make_random(m, f, progress, e)))
        return false;
    f->unmade = f->draft_unmade = false;
    return true;
}

Tokenizer *model_files_tokenizer(const ModelFiles *f, Error *e) {
    if (!f->unmade || f->small) return tokenizer_open(f->unmade ? f->small : f->target, e);
    if (f->model.shape.vocab < SYNTH_TOKENIZER_MIN) {
        error_input(e, "a random model of %d tokens has no tokenizer, it needs %d", f->model.shape.vocab,
                    SYNTH_TOKENIZER_MIN);
        return NULL;
    }
    LOCAL_MEMORY char *text = synth_tokenizer(f->model.shape.vocab);
    return text ? tokenizer_parse(text, strlen(text), "tokenizer.json", e) : NULL;
}

void model_files_release(ModelFiles *f) {
    MEM_FREE(f->target, f->draft);
    for (int i = 0; i < ADAPTER_ROLES; i++) mem_free(f->adapters[i]);
    MEM_FREE(f->small, f->small_draft);
    *f = (ModelFiles){0};
}

// --- the cache -------------------------------------------------------------------------------------------

enum { KEY_DIGITS = 20 }; // digits of the key in the directory's name; inflate_is compares them all

char *inflated_find(const char *cache, const InflateOptions *o, Inflated *out, bool *there, Error *e) {
    if (!inflate_describe(o, out, e)) return NULL;
    char *dir = mem_printf("%s/inflated/%.*s", cache, KEY_DIGITS, out->key);
    *there = inflate_is(dir, out->key);
    return dir;
}

char *inflated_open(const char *cache, const InflateOptions *o, Error *e) {
    Inflated what;
    bool there;
    char *dir = inflated_find(cache, o, &what, &there, e);
    if (!dir || there) return dir;
    InflateOptions ours = *o;
    ours.force = true; // the lock is ours, and so is the directory
    int fd = lock_directory(dir, e);
    bool ok = fd >= 0 && (inflate_is(dir, what.key) || model_inflate(dir, &ours, e));
    if (fd >= 0) close(fd);
    if (ok) return dir;
    mem_free(dir);
    return NULL;
}

char *models_cache(const char *option) {
    const char *above = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool is_set = above && above[0] == '/'; // its specification ignores relative paths
    if (option) return option[0] ? mem_text(option, strlen(option)) : NULL;
    if (is_set) return file_path(above, "outpace");
    return home && file_exists(home) ? file_path(home, ".cache/outpace") : NULL;
}
