// Files of a command. Invariants: a part is a file without a name (file.h) until output_finish, unless it's
// written at once; then it has only a descriptor. Every part has a path.
#include "engine/base/output.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct OutputPart {
    FilePart file;
    char *path;
    bool at_once; // rule 3
    FILE *stream; // on a descriptor of its own; NULL: none is open
};

static void output_check_parts(const Output *o) {
    assert(o->count <= o->capacity);
    for (size_t i = 0; i < o->count; i++)
        assert(o->parts[i].path && !(o->parts[i].at_once && o->parts[i].file.name));
}

// --- existing files --------------------------------------------------------------------------------------

static bool same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_standard_output(const struct stat *st) {
    struct stat out;
    return fstat(STDOUT_FILENO, &out) == 0 && same(st, &out);
}

bool output_is_stream(const char *path) {
    struct stat st;
    if (strcmp(path, "-") == 0) return true;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode) && (!S_ISREG(st.st_mode) || is_standard_output(&st));
}

// Whether the path is this file, or a directory with this file in it.
static bool names(const char *path, const struct stat *file) {
    struct stat st;
    if (stat(path, &st)) return false;
    if (same(&st, file)) return true;
    DIR *d = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    bool found = false;
    for (struct dirent *entry; d && !found && (entry = readdir(d));)
        found = fstatat(dirfd(d), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode) && same(&st, file);
    if (d) closedir(d);
    return found;
}

// Whether the input, as output_reads takes it, has this file.
static bool is_read(const char *input, const struct stat *file) {
    static const char *const ENDS[] = {"", "-wal", "-shm", "-journal"};
    bool found = false;
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS && !found; i++) {
        LOCAL_MEMORY char *path = mem_printf("%s%s", input, ENDS[i]);
        found = names(path, file);
    }
    LOCAL(globfree) glob_t all = {0};
    if (found || glob(input, GLOB_TILDE, NULL, &all)) return found;
    for (size_t i = 0; i < all.gl_pathc && !found; i++) found = names(all.gl_pathv[i], file);
    return found;
}

static bool contains(const char *bytes, size_t n, const char *text) {
    return memmem(bytes, n, text, strlen(text)) != NULL;
}

// Looks only at the two ends of the file.
static bool is_of_kind(const char *path, const OutputKind *kind) {
    enum { LOOK = 4096 };
    char head[LOOK], tail[LOOK];
    FILE *f = fopen(path, "re");
    if (!f) return false;
    size_t n = fread(head, 1, LOOK, f), start = kind->start ? strlen(kind->start) : 0;
    size_t m = fseek(f, -LOOK, SEEK_END) == 0 ? fread(tail, 1, LOOK, f) : 0;
    fclose(f);
    return n >= start && (!start || memcmp(head, kind->start, start) == 0) &&
           (!kind->holds || contains(head, n, kind->holds) || contains(tail, m, kind->holds));
}

static bool is_ours(const char *path, const OutputKind *kind) {
    if (is_of_kind(path, kind)) return true;
    if (!kind->beside) return false;
    LOCAL_MEMORY char *beside = mem_printf("%s%s", path, kind->beside);
    return is_of_kind(beside, &(OutputKind){.holds = kind->holds});
}

// --- permission to write ---------------------------------------------------------------------------------

static void add_path(OutputPaths *to, const char *path) {
    *LIST_ADD(to->items, to->count, to->capacity) = mem_text(path, strlen(path));
}

static void release_paths(OutputPaths *p) {
    for (size_t i = 0; i < p->count; i++) mem_free(p->items[i]);
    mem_free(p->items);
    *p = (OutputPaths){0};
}

void output_reads(Output *o, const char *path) {
    if (path) add_path(&o->reads, path);
}

Output output_more(const Output *o) {
    Output more = {.force = o->force};
    for (size_t i = 0; i < o->reads.count; i++) add_path(&more.reads, o->reads.items[i]);
    return more;
}

// Notes the directories on the way to `directory` that are missing.
static void note_missing(Output *o, const char *directory) {
    struct stat st;
    if (stat(directory, &st) == 0) return;
    LOCAL_MEMORY char *above = file_directory(directory);
    if (strcmp(above, directory) != 0) note_missing(o, above);
    add_path(&o->made, directory);
}

static bool check_there(const Output *o, const char *path, const struct stat *st, const OutputKind *kind,
                        Error *e) {
    if (S_ISDIR(st->st_mode)) return error_input(e, "cannot write '%s': it is a directory", path);
    for (size_t i = 0; i < o->reads.count; i++)
        if (is_read(o->reads.items[i], st))
            return error_input(e, "cannot write '%s': it is read by this command; give another path", path);
    return o->force || st->st_size == 0 || is_ours(path, kind) ||
           error_input(e,
                       "'%s' exists, and this command did not write it: give another path, or "
                       "--force to replace it",
                       path);
}

bool output_check(Output *o, const char *path, const OutputKind *kind, Error *e) {
    struct stat st;
    if (output_is_stream(path)) return true;
    if (stat(path, &st) == 0 && !check_there(o, path, &st, kind, e)) return false;
    LOCAL_MEMORY char *directory = file_directory(path);
    note_missing(o, directory);
    bool ok = file_make_directory(directory, e);
    if (ok && access(directory, W_OK)) ok = error_system(e, "cannot write '%s': %s", path, strerror(errno));
    return ok;
}

bool output_check_directory(const Output *o, const char *path, Error *e) {
    struct stat st, read;
    if (stat(path, &st)) return true;
    for (size_t i = 0; i < o->reads.count; i++)
        if (stat(o->reads.items[i], &read) == 0 && same(&st, &read))
            return error_input(e, "cannot write '%s': it is read by this command; give another directory",
                               path);
    return true;
}

// --- content ---------------------------------------------------------------------------------------------

static void drop(OutputPart *p) {
    if (p->stream) fclose(p->stream);
    file_part_drop(&p->file);
    mem_free(p->path);
}

static bool open_stream(OutputPart *p, const char *path, Output *o, Error *e) {
    struct stat st;
    bool standard = strcmp(path, "-") == 0 || (stat(path, &st) == 0 && is_standard_output(&st));
    o->streamed |= standard;
    p->at_once = true;
    p->file.fd = standard ? dup(STDOUT_FILENO) : open(path, O_WRONLY | O_CLOEXEC);
    return p->file.fd >= 0 || error_input(e, "cannot write '%s': %s", path, strerror(errno));
}

// The new part, at the end of the list.
static OutputPart *begin(Output *o, const char *path, const OutputKind *kind, Error *e) {
    OutputPart p = {.file.fd = -1};
    if (!output_check(o, path, kind, e)) return NULL;
    mem_grow(&o->parts, &o->capacity, o->count + 1, sizeof *o->parts);
    p.path = mem_text(path, strlen(path));
    if (!(output_is_stream(path) ? open_stream(&p, path, o, e) : file_part_open(&p.file, path, e))) {
        drop(&p);
        return NULL;
    }
    o->parts[o->count++] = p;
    output_check_parts(o);
    return &o->parts[o->count - 1];
}

// A reader that left early isn't a failure.
static bool wrote(OutputPart *p, bool ok, Error *e) {
    int why = errno;
    if (!ok && p->at_once && file_reader_left(p->file.fd)) ok = true;
    if (p->at_once) file_part_drop(&p->file);
    return ok || error_system(e, "cannot write '%s': %s", p->path, strerror(why));
}

bool output_add(Output *o, const char *path, const OutputKind *kind, const void *data, size_t size,
                Error *e) {
    OutputPart *p = begin(o, path, kind, e);
    return p && wrote(p, file_part_write(&p->file, data, size), e);
}

FILE *output_open(Output *o, const char *path, const OutputKind *kind, Error *e) {
    OutputPart *p = begin(o, path, kind, e);
    if (!p) return NULL;
    int fd = dup(p->file.fd);
    p->stream = fd < 0 ? NULL : fdopen(fd, "w");
    if (p->stream) return p->stream;
    error_system(e, "cannot write '%s': %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return NULL;
}

// A failed stream doesn't remember its errno.
bool output_close(Output *o, bool ok, Error *e) {
    assert(o->count > 0 && o->parts[o->count - 1].stream);
    OutputPart *p = &o->parts[o->count - 1];
    bool failed = ferror(p->stream) != 0;
    failed |= fclose(p->stream) != 0;
    p->stream = NULL;
    if (!failed) return ok && wrote(p, true, e);
    return wrote(p, false, e) || error_system(e, "cannot write '%s': is the disk full?", p->path);
}

const char *output_path(const Output *o, size_t i) {
    for (size_t k = 0; k < o->count; k++)
        if (!o->parts[k].at_once && i-- == 0) return o->parts[k].path;
    return NULL;
}

bool output_finish(Output *o, Error *e) {
    bool ok = true;
    for (size_t i = 0; ok && i < o->count; i++)
        if (!o->parts[i].at_once) ok = file_part_finish(&o->parts[i].file, o->parts[i].path, e);
    output_check_parts(o);
    return ok;
}

void output_release(Output *o) {
    for (size_t i = 0; i < o->count; i++) drop(&o->parts[i]);
    mem_free(o->parts);
    for (size_t i = o->made.count; i-- > 0;) rmdir(o->made.items[i]); // those that are empty
    release_paths(&o->made);
    release_paths(&o->reads);
    *o = (Output){.force = o->force};
}
