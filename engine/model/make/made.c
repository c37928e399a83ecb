// Writes and clears the directory of a model in the order that made.h promises.
#include "engine/model/make/made.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TOKENIZER = 64 << 20 };

// The name of config.json until all other files are complete; it names their maker.
static const char UNFINISHED[] = "outpace-unfinished.json";

bool made_text(const char *dir, const char *name, const char *text, Error *e) {
    LOCAL_MEMORY char *path = file_path(dir, name);
    return file_write(path, text, strlen(text), e);
}

bool made_json(const char *dir, const char *name, const json_t *root, Error *e) {
    LOCAL_MEMORY char *text = json_text(root, JSON_INDENT(2));
    return made_text(dir, name, text, e);
}

bool made_copy_tokenizer(const char *from, const char *dir, Error *e) {
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", "tokenizer.model",
                                        "generation_config.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        LOCAL_MEMORY char *file = file_path(from, files[i]), *copy = file_path(dir, files[i]), *bytes = NULL;
        size_t n;
        if (!file_exists(file)) continue;
        if (!file_read(file, MAX_TOKENIZER, &bytes, &n, e) || !file_write(copy, bytes, n, e)) return false;
    }
    return true;
}

static bool holds(const char *dir, const char *name) {
    char path[MADE_MAX_PATH];
    snprintf(path, sizeof path, "%s/%s", dir, name); // made_check has limited the length
    return access(path, F_OK) == 0;
}

static bool is_made(const char *name) {
    static const char *const patterns[] = {"model.safetensors",        "model.safetensors.index.json",
                                           "model-*-of-*.safetensors", "tokenizer.json",
                                           "model*.safetensors.part",  "tokenizer_config.json",
                                           "tokenizer.model",          "generation_config.json"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (fnmatch(patterns[i], name, 0) == 0) return true;
    return false;
}

static bool is_same(const char *a, int dir, const char *name) {
    struct stat s, t;
    return a && stat(a, &s) == 0 && fstatat(dir, name, &t, 0) == 0 && s.st_dev == t.st_dev &&
           s.st_ino == t.st_ino;
}

// In a directory without a config, a model's files belong to somebody, except parts that a killed maker left.
static bool check_files(const Made *m, Error *e) {
    DIR *d = opendir(m->dir);
    if (!d) return error_system(e, "cannot list '%s': %s", m->dir, strerror(errno));
    bool ok = true;
    for (struct dirent *f; ok && (f = readdir(d));)
        if (is_made(f->d_name) && fnmatch("*.part", f->d_name, 0) != 0 &&
            !is_same(m->rereads, dirfd(d), f->d_name))
            ok = error_input(e,
                             "'%s' holds '%s', without a config.json; give another directory, or "
                             "--force to replace it",
                             m->dir, f->d_name);
    closedir(d);
    return ok;
}

// False with e filled if the directory holds a model that this maker must not replace.
static bool check_owner(const Made *m, Error *e) {
    const char *name = holds(m->dir, "config.json") ? "config.json" : UNFINISHED;
    if (!holds(m->dir, name)) return check_files(m, e);
    LOCAL_MEMORY char *path = file_path(m->dir, name);
    json_auto_t *root = json_from_file(path, MADE_MAX_CONFIG, e);
    const char *type = json_string_value(json_object_get(root, "model_type"));
    bool is_adapter =
        (type && strcmp(type, "outpace_adapter") == 0) || json_object_get(root, "outpace_adapter");
    bool marked = json_object_get(root, m->mark) != NULL, ours = marked && is_adapter == m->adapter;
    if (root && !marked)
        error_input(
            e, "'%s' holds a model that '%s' did not write; give another directory, or --force to replace it",
            m->dir, m->maker);
    else if (root && !ours)
        error_input(e, "'%s' holds %s; give another directory, or --force to replace it", m->dir,
                    m->adapter ? "a model, not an adapter" : "an adapter, not a model");
    return ours;
}

bool made_check(const Made *m, Error *e) {
    struct stat st;
    if (strlen(m->dir) > MADE_MAX_PATH - 128) return error_input(e, "the path of the directory is too long");
    if (stat(m->dir, &st)) return true;
    if (!S_ISDIR(st.st_mode))
        return error_input(e, "'%s' is not a directory; give the path of one, or of nothing yet", m->dir);
    return m->force || check_owner(m, e);
}

bool made_is_new(const Made *m) {
    struct stat st;
    if (stat(m->dir, &st)) return true;
    return !holds(m->dir, "config.json") && !holds(m->dir, UNFINISHED) && check_files(m, NULL);
}

// Removes the files of an earlier maker, except m->rereads; config.json first: without it the directory has
// no model. Closes d, the directory.
static bool clear(DIR *d, const Made *m, Error *e) {
    rewinddir(d); // else it might not show files made after it was opened
    bool ok = !holds(m->dir, "config.json") || unlinkat(dirfd(d), "config.json", 0) == 0;
    for (struct dirent *f; ok && (f = readdir(d));)
        if (is_made(f->d_name) && !is_same(m->rereads, dirfd(d), f->d_name))
            ok = unlinkat(dirfd(d), f->d_name, 0) == 0;
    if (!ok) error_system(e, "cannot replace the model in '%s': %s", m->dir, strerror(errno));
    closedir(d);
    return ok;
}

// Removes the file that names the maker, and the directory unless something else is in it.
static void remove_last(const char *dir) {
    char path[MADE_MAX_PATH];
    snprintf(path, sizeof path, "%s/%s", dir, UNFINISHED);
    unlink(path);
    rmdir(dir);
}

// `replace` removes files of an earlier maker, and closes the directory.
static bool begin(const Made *m, const json_t *config, bool (*replace)(DIR *d, const Made *m, Error *e),
                  Error *e) {
    if (!made_check(m, e) || !file_make_directory(m->dir, e)) return false;
    DIR *d = opendir(m->dir); // before anything is written: a directory that can't be listed isn't touched
    if (!d) {
        error_system(e, "cannot list '%s': %s", m->dir, strerror(errno));
        rmdir(m->dir); // works only if it is new
        return false;
    }
    bool again = holds(m->dir, UNFINISHED); // a maker didn't finish: the file names the owner of its files
    bool written = made_json(m->dir, UNFINISHED, config, e);
    if (written && replace(d, m, e)) return true;
    if (!written) closedir(d);
    if (!again && (!written || holds(m->dir, "config.json"))) remove_last(m->dir); // nothing was replaced
    return false;
}

bool made_begin(const Made *m, const json_t *config, Error *e) { return begin(m, config, clear, e); }

static bool remove_config(DIR *d, const Made *m, Error *e) {
    bool ok = unlinkat(dirfd(d), "config.json", 0) == 0 || errno == ENOENT ||
              error_system(e, "cannot replace the model in '%s': %s", m->dir, strerror(errno));
    closedir(d);
    return ok;
}

bool made_replace(const Made *m, const json_t *config, Error *e) {
    return begin(m, config, remove_config, e);
}

bool made_finish(const Made *m, Error *e) {
    LOCAL_MEMORY char *from = file_path(m->dir, UNFINISHED), *to = file_path(m->dir, "config.json");
    return rename(from, to) == 0 || error_system(e, "cannot write '%s': %s", to, strerror(errno));
}

void made_abandon(const Made *m) {
    DIR *d = opendir(m->dir);
    if (d && clear(d, m, NULL)) remove_last(m->dir);
}
