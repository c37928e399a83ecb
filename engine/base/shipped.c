// Where shipped files are, and models with them. Invariant: a path that is returned exists, or existed a
// moment ago.
#include "engine/base/shipped.h"

#include "engine/base/file.h"
#include "engine/base/gguf.h"
#include "engine/base/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATH = SHIPPED_PATH, PLACES = 4 };

// A folder that ships with the program, and the variable that names another one.
typedef struct Folder {
    const char *name, *variable;
} Folder;
static const Folder CONFIGS = {"configs", "OUTPACE_CONFIGS"}, MODELS = {"models", "OUTPACE_MODELS"};

void shipped_own_folder(char out[MAX_PATH]) {
    ssize_t n = readlink("/proc/self/exe", out, MAX_PATH - 1);
    out[n > 0 ? n : 0] = 0;
    char *slash = strrchr(out, '/');
    if (slash) *slash = 0;
}

// The path of `name` in the i-th place of a folder; false if it doesn't exist.
static bool place(const Folder *of, int i, const char *name, char out[MAX_PATH]) {
    char own[MAX_PATH];
    const char *set = getenv(of->variable);
    shipped_own_folder(own);
    int n = i == 0   ? snprintf(out, MAX_PATH, "%s/%s", set ? set : "", name)
            : i == 1 ? snprintf(out, MAX_PATH, "%s/%s/%s", own, of->name, name)
            : i == 2 ? snprintf(out, MAX_PATH, "%s/../share/outpace/%s/%s", own, of->name, name)
                     : snprintf(out, MAX_PATH, "%s/%s", of->name, name);
    return n > 0 && n < MAX_PATH && (i > 0 || set) && file_exists(out);
}

static bool find(const char *name, char out[MAX_PATH]) {
    for (int i = 0; i < PLACES; i++)
        if (place(&CONFIGS, i, name, out)) return true;
    return false;
}

char *shipped_path(const char *name) {
    char path[MAX_PATH];
    return find(name, path) ? mem_text(path, strlen(path)) : NULL;
}

// --- names -----------------------------------------------------------------------------------------------

enum { MOST_NAMES = 256 };

typedef struct Names {
    char *items[MOST_NAMES];
    int count;
} Names;

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
bool shipped_model_at(const char *path) {
    LOCAL_MEMORY char *file = gguf_named(path) ? mem_printf("%s", path) : file_path(path, "config.json");
    return file_exists(file);
}

// Adds a folder's files with this ending, which is cut, or, if that is NULL, its models.
static bool add_names(Names *names, const char *folder, const char *ending, Error *e) {
    DIR *d = opendir(folder);
    if (!d) return error_input(e, "cannot read the folder '%s'", folder);
    for (struct dirent *f; names->count < MOST_NAMES && (f = readdir(d));) {
        size_t n = strlen(f->d_name) - (ending ? strlen(ending) : 0);
        LOCAL_MEMORY char *path = file_path(folder, f->d_name);
        if (f->d_name[0] != '.' && (ending ? text_ends(f->d_name, ending) : shipped_model_at(path)))
            names->items[names->count++] = mem_text(f->d_name, n);
    }
    closedir(d);
    qsort(names->items, (size_t)names->count, sizeof *names->items, by_text);
    return true;
}

// Writes each name once.
static void write_names(const Names *names, const char *between, Text *out) {
    for (int i = 0; i < names->count; i++)
        if (i == 0 || strcmp(names->items[i], names->items[i - 1]) != 0)
            text_printf(out, "%s%s", i ? between : "", names->items[i]);
}

static void release_names(Names *names) {
    while (names->count) mem_free(names->items[--names->count]);
}

bool shipped_names(const char *folder, Text *out, Error *e) {
    char path[MAX_PATH];
    Names names = {.count = 0};
    if (!find(folder, path))
        return error_input(e, "cannot find the folder configs/%s: set OUTPACE_CONFIGS to the configs folder",
                           folder);
    bool ok = add_names(&names, path, *folder ? ".json" : ".yaml", e);
    write_names(&names, "\n", out);
    if (names.count) text_puts(out, "\n");
    release_names(&names);
    return ok;
}

static void unknown(const char *folder, const char *what, const char *name, Error *e) {
    LOCAL_TEXT list = {0};
    if (shipped_names(folder, &list, e)) {
        for (size_t i = 0; i + 1 < list.length; i++)
            if (list.data[i] == '\n') list.data[i] = ' ';
        if (list.length) list.data[list.length - 1] = 0;
        error_input(e, "there is no %s '%s'; known are %s; or give the path of a file of your own", what,
                    name, text_get(&list));
    }
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

// --- configs ---------------------------------------------------------------------------------------------

static void suggest_config(const char *word, const char *name, Error *e) {
    char path[MAX_PATH];
    Names names = {.count = 0};
    LOCAL_MEMORY char *stem = mem_text(name, strcspn(name, "."));
    if (find("", path)) add_names(&names, path, ".yaml", NULL);
    const char *nearest = suggest(stem, names.items, (size_t)names.count, sizeof *names.items);
    if (nearest) error_input(e, "there is no config '%s'; did you mean 'configs/%s.yaml'?", word, nearest);
    release_names(&names);
}

char *shipped_config(const char *word, Error *e) {
    char path[MAX_PATH];
    bool whole = strncmp(word, "configs/", 8) == 0;
    const char *name = whole ? word + 8 : word;
    char *file = mem_printf("configs/%s%s", name, text_ends(name, ".yaml") ? "" : ".yaml");
    if (find(file + 8, path)) return file;
    if (whole || !strpbrk(word, "./")) suggest_config(word, name, e);
    mem_free(file);
    return NULL;
}

// --- models ----------------------------------------------------------------------------------------------

static void all_models(Names *names) {
    char path[MAX_PATH];
    for (int i = 0; i < PLACES; i++)
        if (place(&MODELS, i, "", path)) add_names(names, path, NULL, NULL);
}

void shipped_models(Text *out) {
    Names names = {.count = 0};
    all_models(&names);
    write_names(&names, "\n", out);
    if (names.count) text_puts(out, "\n");
    release_names(&names);
}

// People often give the name of a model on the Hub, "ORGANISATION/NAME".
static const char *name_on_hub(const char *name) {
    const char *slash = strchr(name, '/');
    bool is = slash && slash > name && slash[1] && !strchr(slash + 1, '/') && !strchr("./~", name[0]);
    return is && strncmp(name, "models/", 7) != 0 ? slash + 1 : NULL;
}

EMBED(embedded_sources_of_models, "models/sources.tsv")

// Whether models/fetch has a model of this name: the first column of its table.
static bool is_fetched(const char *name) {
    size_t n = strlen(name);
    for (const char *line = embedded_sources_of_models; (line = strchr(line, '\n'));) {
        line++;
        if (n && strncmp(line, name, n) == 0 && line[n] == '\t') return true;
    }
    return false;
}

// Members of the reference family that one experiment needs: 'make models/NAME' trains them.
static bool is_trained_on_demand(const char *name) {
    static const char *const all[] = {"reference-kangaroo-1",  "reference-kangaroo-3",
                                      "reference-kangaroo-4",  "reference-mlp-2",
                                      "reference-one-layer-2", "reference-with-head-2"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(name, all[i]) == 0) return true;
    return false;
}

static void no_model(const char *name, Error *e) {
    const char *inner = name_on_hub(name);
    Names names = {.count = 0};
    LOCAL_TEXT list = {0};
    all_models(&names);
    write_names(&names, ", ", &list);
    const char *nearest = suggest(name, names.items, (size_t)names.count, sizeof *names.items);
    if (inner)
        error_input(e,
                    "there is no model '%s' here, and nothing is downloaded: fetch it by 'hf download %s "
                    "--local-dir %s', then give '%s'",
                    name, name, inner, inner);
    else if (is_trained_on_demand(name))
        error_input(e, "the model '%s' isn't here yet: 'make models/%s', in the repository, trains it", name,
                    name);
    else if (is_fetched(name))
        error_input(e, "the model '%s' isn't here yet: 'outpace model fetch %s' downloads it", name, name);
    else if (nearest) error_input(e, "there is no model '%s'; did you mean '%s'?", name, nearest);
    else
        error_input(e,
                    "there is no model '%s', and nothing is downloaded: give the folder of a Hugging Face "
                    "model, a GGUF file, or one of %.700s; 'outpace model fetch' lists models to download",
                    name, list.length ? text_get(&list) : "$OUTPACE_MODELS");
    release_names(&names);
}

char *shipped_fetch(void) {
    char path[MAX_PATH];
    for (int i = 1; i <= 2; i++) // next to the program: no other folder's script is run
        if (place(&MODELS, i, "fetch", path)) return mem_text(path, strlen(path));
    return NULL;
}

char *shipped_member(const char *name, Error *e) {
    char path[MAX_PATH], *file = mem_printf("%s.gguf", name);
    bool is = false;
    for (int i = 0; i < PLACES && !is; i++)
        is = (place(&MODELS, i, name, path) && shipped_model_at(path)) || place(&MODELS, i, file, path);
    mem_free(file);
    if (is) return mem_text(path, strlen(path));
    no_model(name, e);
    return NULL;
}

char *shipped_model(const char *name, Error *e) {
    const char *inner = strncmp(name, "models/", 7) == 0 ? name + 7 : name;
    char *member = shipped_model_at(name) || strchr(inner, '/') ? NULL : shipped_member(inner, NULL);
    if (member) return member;
    struct stat s;
    LOCAL_MEMORY char *folder = file_directory(name);
    if (!file_exists(name)) no_model(name, e);
    else if (stat(name, &s) != 0 || !S_ISREG(s.st_mode) || gguf_named(name))
        return mem_text(name, strlen(name));
    else if (shipped_model_at(folder)) error_input(e, "'%s' is a file; give its folder, '%s'", name, folder);
    else
        error_input(e, "'%s' is a file, not a model: give the folder of a Hugging Face model, or a GGUF file",
                    name);
    return NULL;
}
