#include "plots/plots.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "plots/draw.h"
#include "plots/gnuplot.h"
#include "plots/script.h"
#include "results/rows.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const plot_format_names[PLOT_FORMATS + 1] = {"svg", "png", "pdf", "tex", "term", NULL};

static const char *program_of(const PlotOptions *o) { return o->gnuplot ? o->gnuplot : "gnuplot"; }

// --- files -----------------------------------------------------------------------------------------------

// A plot's files: all in one folder, of one stem.
typedef struct Files {
    char *folder;
    Text data, script, output; // names in it
} Files;

static bool name_files(Files *f, const char *path, Error *e) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    int stem = (int)(dot && dot > name ? dot - name : (long)strlen(name));
    bool taken = dot && (strcmp(dot, ".gp") == 0 || strcmp(dot, ".dat") == 0);
    *f = (Files){0};
    if (!*name || taken)
        return error_input(e, "a plot cannot be written to '%s': its .dat and .gp stand beside it", path);
    f->folder = slash ? mem_text(path, slash > path ? (size_t)(slash - path) : 1) : mem_text(".", 1);
    text_printf(&f->data, "%.*s.dat", stem, name);
    text_printf(&f->script, "%.*s.gp", stem, name);
    text_puts(&f->output, name);
    if (!f->folder || f->data.failed || f->script.failed || f->output.failed)
        return error_system(e, "out of memory for a figure");
    return true;
}

static void files_release(Files *f) {
    mem_free(f->folder);
    text_release(&f->data);
    text_release(&f->script);
    text_release(&f->output);
}

static bool write_one(const Files *f, const Text *name, const Text *content, Error *e) {
    if (content->failed) return error_system(e, "out of memory for a figure");
    char *path = file_path(f->folder, text_get(name));
    bool ok = path ? file_write(path, text_get(content), content->length, e)
                   : error_system(e, "out of memory for a figure");
    mem_free(path);
    return ok;
}

// Half a plot is none. What is no file, a device say, stays.
static void remove_one(const Files *f, const Text *name) {
    struct stat st;
    char *path = file_path(f->folder, text_get(name));
    if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode)) unlink(path);
    mem_free(path);
}

// --- plots -----------------------------------------------------------------------------------------------

static bool draw(const Files *f, const Figure *figure, const PlotData *d, const PlotOptions *o, Error *e) {
    Text script = {0};
    plot_script(figure, d, o, text_get(&f->data), text_get(&f->output), &script);
    bool ok = file_make_directory(f->folder, e) && write_one(f, &f->data, &d->numbers, e) &&
              write_one(f, &f->script, &script, e);
    text_release(&script);
    if (ok && !gnuplot_run(program_of(o), f->folder, text_get(&f->script), e)) {
        remove_one(f, &f->output);
        ok = false;
    }
    return ok;
}

bool plot_draw(const Figure *f, const PlotData *d, const PlotOptions *o, const char *path, Error *e) {
    Files files;
    bool ok = name_files(&files, path, e) && draw(&files, f, d, o, e);
    files_release(&files);
    return ok;
}

bool plot_draw_text(const Figure *f, const PlotData *d, const PlotOptions *o, Text *out, Error *e) {
    Text script = {0}, drawn = {0};
    plot_script(f, d, o, NULL, NULL, &script);
    bool ok = script.failed ? error_system(e, "out of memory for a figure")
                            : gnuplot_text(program_of(o), &script, &drawn, e);
    size_t from = drawn.length && drawn.data[0] == '\f'; // a terminal's first page needs no feed
    if (ok) text_add(out, text_get(&drawn) + from, drawn.length - from);
    text_release(&script);
    text_release(&drawn);
    if (ok && out->failed) ok = error_system(e, "out of memory for a figure");
    return ok;
}

// --- from the store --------------------------------------------------------------------------------------

static bool read_data(Store *store, const Figure *f, int64_t run, const PlotOptions *o, PlotData *d,
                      Error *e) {
    if (!plot_data(store, f, run, o->computed, o->of, d, e)) return false;
    if (o->left_out) plot_left_out(f, d, o->left_out);
    return d->count || error_input(e, "run %lld of '%s' has nothing to draw for %s: %s", (long long)run,
                                   store_path(store), f->name, f->needs);
}

bool plot_write(Store *store, const Figure *f, int64_t run, const PlotOptions *o, const char *path,
                Error *e) {
    PlotData d = {0};
    bool ok = read_data(store, f, run, o, &d, e) && plot_draw(f, &d, o, path, e);
    plot_data_release(&d);
    return ok;
}

bool plot_text(Store *store, const Figure *f, int64_t run, const PlotOptions *o, Text *out, Error *e) {
    PlotData d = {0};
    bool ok = read_data(store, f, run, o, &d, e) && plot_draw_text(f, &d, o, out, e);
    plot_data_release(&d);
    return ok;
}

bool plot_newest(Store *store, const Figure *f, int64_t *run, Error *e) {
    static const char SWEEP[] = "SELECT max(id) FROM run WHERE kind = 'sweep'";
    static const char SURFACE[] = "SELECT max(id) FROM run WHERE kind = 'surface'";
    return rows_one_int(store, f->kind == RUN_SURFACE ? SURFACE : SWEEP, 0, run, e);
}
