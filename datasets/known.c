// The table of sources (datasets/sources.tsv) and the small sets, all embedded in the program. The table is
// parsed at each look-up: it has a few dozen lines.
#include "datasets/datasets.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"

#include <stdio.h>
#include <string.h>

#define PARQUET           ".parquet"
#define OWN(symbol, path) EMBED(embedded_##symbol, path)

#define FILES(X)                                                           \
    X(sources, "datasets/sources.tsv")                                     \
    X(chat, "datasets/small/chat.jsonl")                                   \
    X(code, "datasets/small/code.jsonl")                                   \
    X(mathematics, "datasets/small/mathematics.jsonl")                     \
    X(summarisation, "datasets/small/summarisation.jsonl")                 \
    X(reference_code, "datasets/small/reference-code.jsonl")               \
    X(reference_mathematics, "datasets/small/reference-mathematics.jsonl") \
    X(reference_stories, "datasets/small/reference-stories.jsonl")         \
    X(translation, "datasets/small/translation.jsonl")

#define ROW(symbol, path) {path, embedded_##symbol, embedded_##symbol##_end},

FILES(OWN)

typedef struct Embedded {
    const char *path;       // in the repository
    const char *data, *end; // a NUL is at `end`
} Embedded;

enum { MOST_KNOWN = 64, NAME = 64 };

// NULL if the file isn't embedded.
static const Embedded *find_embedded(const char *path, size_t n) {
    static const Embedded files[] = {FILES(ROW)};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strlen(files[i].path) == n && memcmp(files[i].path, path, n) == 0) return &files[i];
    return NULL;
}

// The next field of a line: it ends at a tab or with the line.
static KnownText next_field(const char **at, const char *end) {
    KnownText t = {*at, 0};
    while (t.at + t.n < end && t.at[t.n] != '\t' && t.at[t.n] != '\n') t.n++;
    *at = t.at + t.n + (t.at + t.n < end && t.at[t.n] == '\t');
    return t;
}

bool known_at(size_t i, KnownFile *out) {
    const char *at = embedded_sources, *end = at + strlen(at); // a NUL ends it
    for (i++; i > 0 && at < end; i--) {                        // the first line names the columns
        const char *line = memchr(at, '\n', (size_t)(end - at));
        at = line ? line + 1 : end;
    }
    if (at == end) return false;
    KnownText *const fields[] = {&out->name,  &out->split,  &out->format,  &out->file, &out->rows,
                                 &out->bytes, &out->sha256, &out->licence, &out->url,  &out->about};
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) *fields[k] = next_field(&at, end);
    const Embedded *own = find_embedded(out->file.at, out->file.n);
    out->content = own ? own->data : NULL;
    out->content_size = own ? (size_t)(own->end - own->data) : 0;
    return true;
}

bool known_is(KnownText text, const char *s, size_t n) {
    size_t bare = strcspn(s, ":");
    if (bare > n) bare = n;
    return text.n == bare && memcmp(text.at, s, bare) == 0;
}

static bool unknown(const char *name, Error *e) {
    char names[MOST_KNOWN][NAME];
    const char *all[MOST_KNOWN];
    size_t count = 0;
    for (KnownFile file; count < MOST_KNOWN && known_at(count, &file); count++) {
        snprintf(names[count], NAME, "%.*s", (int)file.name.n, file.name.at);
        all[count] = names[count];
    }
    const char *nearest = suggest(name, all, count, sizeof *all);
    if (nearest) return error_input(e, "there is no dataset '%s'; did you mean '%s'?", name, nearest);
    return error_input(
        e, "there is no dataset '%s'; 'outpace datasets' lists them, and a file is one with a '/'", name);
}

bool known_find(const char *name, const char *split, KnownFile *out, Error *e) {
    bool seen = false;
    for (size_t i = 0; known_at(i, out); i++) {
        if (!known_is(out->name, name, strlen(name))) continue;
        if (!split || known_is(out->split, "-", 1) || known_is(out->split, split, strlen(split))) return true;
        seen = true;
    }
    return seen ? error_input(e, "the dataset '%s' has no split '%s'; 'outpace datasets' lists them", name,
                              split)
                : unknown(name, e);
}

// The path of the file's name, cut to n bytes, with `end` after it; NULL if there's no such file.
static char *path_in(const KnownFile *file, const char *folder, size_t n, const char *end) {
    char *name = mem_printf("%.*s%s", (int)n, file->file.at, end), *path = file_path(folder, name);
    mem_free(name);
    if (file_exists(path)) return path;
    mem_free(path);
    return NULL;
}

static bool is_packed(const KnownFile *file) {
    return file->file.n > 3 && memcmp(file->file.at + file->file.n - 3, ".gz", 3) == 0;
}

char *known_path(const KnownFile *file, const char *folder) {
    static const char *const HUB[] = {PARQUET, "-00000-of-00001" PARQUET};
    char *path = path_in(file, folder, file->file.n, "");
    if (!path && is_packed(file)) path = path_in(file, folder, file->file.n - strlen(".gz"), "");
    size_t n = file->file.n, stem = n; // without ".jsonl" or the like
    while (n && file->file.at[n - 1] != '/')
        if (file->file.at[--n] == '.') stem = n;
    for (size_t i = 0; !path && i < sizeof HUB / sizeof *HUB; i++) path = path_in(file, folder, stem, HUB[i]);
    return path;
}

bool known_changed(const KnownFile *file, const char *path, bool *changed, Error *e) {
    char sha256[SHA256_TEXT];
    bool other = (is_packed(file) && !text_ends(path, ".gz")) || text_ends(path, PARQUET);
    *changed = false;
    if (file->sha256.n + 1 != SHA256_TEXT || other) return true;
    if (!sha256_file(path, sha256, e)) return false;
    *changed = memcmp(sha256, file->sha256.at, file->sha256.n) != 0;
    return true;
}
