#include "plots/plots.h"

#include "plots/draw.h"
#include "plots/gnuplot.h"
#include "plots/script.h"
#include "results/rows.h"

#include <string.h>

const char *const plot_format_names[PLOT_FORMATS + 1] = {"svg", "png", "pdf", "tex", "term", NULL};

static const char *program_of(const PlotOptions *o) { return o->gnuplot ? o->gnuplot : "gnuplot"; }

// --- files -----------------------------------------------------------------------------------------------

// Every file of a plot holds these words, at its start or its end. A picture that its script redrew alone
// does not: the script beside it does.
#define DRAWN_BY "drawn by 'outpace plot'"
static const OutputKind PLOT = {.holds = DRAWN_BY, .beside = ".gp"};

// How a picture that is whole ends, and the mark that it gets.
static const struct {
    const char *end, *mark;
} FORMATS[PLOT_FORMATS] = {
    [PLOT_SVG] = {"</svg>", "<!-- " DRAWN_BY " -->\n"},
    [PLOT_PNG] = {"IEND", NULL},
    [PLOT_PDF] = {"%%EOF", "% " DRAWN_BY "\n"},
    [PLOT_TEX] = {"\\endgroup", "% " DRAWN_BY "\n"},
    [PLOT_TERM] = {"\n", DRAWN_BY "\n"},
};

// A PNG's is a chunk of text before the last chunk, with its length and checksum.
static const char PNG_CHUNK[] = "\0\0\0\x20tEXtSoftware\0" DRAWN_BY "\x5b\xf2\xfd\x63";
enum { PNG_CHUNK_BYTES = sizeof PNG_CHUNK - 1, PNG_LAST_CHUNK = 12 };

static bool check_whole(const Text *picture, PlotFormat format, Error *e) {
    enum { LOOK = 32 };
    size_t n = picture->length < LOOK ? picture->length : LOOK;
    const char *end = FORMATS[format].end;
    if (n && memmem(picture->data + picture->length - n, n, end, strlen(end))) return true;
    return error_system(e, "gnuplot gave no whole %s of %zu bytes: is there room for temporary files?",
                        plot_format_names[format], picture->length);
}

static void add_mark(Text *picture, PlotFormat format) {
    char last[PNG_LAST_CHUNK];
    if (FORMATS[format].mark) {
        text_puts(picture, FORMATS[format].mark);
        return;
    }
    size_t at = picture->length - PNG_LAST_CHUNK;
    memcpy(last, picture->data + at, sizeof last);
    picture->length = at;
    text_add(picture, PNG_CHUNK, PNG_CHUNK_BYTES);
    text_add(picture, last, sizeof last);
}

static bool add_picture(Output *out, const char *path, Text *picture, PlotFormat format, Error *e) {
    if (!picture->failed && !check_whole(picture, format, e)) return false;
    if (!picture->failed) add_mark(picture, format);
    if (picture->failed) return error_system(e, "out of memory for a figure");
    return output_add(out, path, &PLOT, picture->data, picture->length, e);
}

// The files of a plot, all in one folder.
typedef struct Files {
    const char *path; // of the picture
    const char *name; // in its folder
    Text included;    // of the picture that a TeX file includes, without its end: "NAME-inc"
} Files;

static bool name_files(Files *f, const char *path, PlotFormat format, Error *e) {
    const char *slash = strrchr(path, '/');
    *f = (Files){.path = path, .name = slash ? slash + 1 : path};
    const char *dot = strrchr(f->name, '.');
    if (!*f->name) return error_input(e, "a plot cannot be written to '%s': it has no name", path);
    if (format == PLOT_TEX && output_is_stream(path))
        return error_input(e, "a plot for TeX is two files, and cannot go to '%s'", path);
    text_printf(&f->included, "%.*s-inc", (int)(dot && dot > f->name ? dot - f->name : (long)strlen(f->name)),
                f->name);
    return !f->included.failed || error_system(e, "out of memory for a figure");
}

// --- plots -----------------------------------------------------------------------------------------------

// gnuplot writes TeX as two files: text that includes a picture.
static bool draw_tex(const Files *f, const Figure *figure, const PlotData *d, const PlotOptions *o,
                     Output *out, Error *e) {
    Text script = {0}, tex = {0}, pdf = {0}, path = {0}, drawn[2] = {{0}, {0}};
    text_printf(&tex, "%s.tex", text_get(&f->included));
    text_printf(&pdf, "%s.pdf", text_get(&f->included));
    text_printf(&path, "%.*s%s", (int)(f->name - f->path), f->path, text_get(&pdf));
    plot_script(figure, d, o, NULL, text_get(&tex), &script);
    bool ok = !(script.failed || tex.failed || pdf.failed || path.failed) ||
              error_system(e, "out of memory for a figure");
    ok = ok && gnuplot_files(program_of(o), &script, (const char *const[]){text_get(&tex), text_get(&pdf)},
                             drawn, e);
    ok = ok && add_picture(out, text_get(&path), &drawn[1], PLOT_PDF, e) &&
         add_picture(out, f->path, &drawn[0], PLOT_TEX, e);
    Text *all[] = {&script, &tex, &pdf, &path, &drawn[0], &drawn[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) text_release(all[i]);
    return ok;
}

static bool draw(const Files *f, const Figure *figure, const PlotData *d, const PlotOptions *o, Output *out,
                 Error *e) {
    Text picture = {0};
    bool ok = o->format == PLOT_TEX ? draw_tex(f, figure, d, o, out, e)
                                    : plot_draw_text(figure, d, o, &picture, e) &&
                                          add_picture(out, f->path, &picture, o->format, e);
    text_release(&picture);
    return ok;
}

static bool add_beside(Output *out, const Files *f, const char *end, const Text *content, Error *e) {
    Text path = {0};
    text_printf(&path, "%s%s", f->path, end);
    bool ok = content->failed || path.failed
                  ? error_system(e, "out of memory for a figure")
                  : output_add(out, text_get(&path), &PLOT, text_get(content), content->length, e);
    text_release(&path);
    return ok;
}

// The numbers, and the script that draws them.
static bool add_sources(Output *out, const Files *f, const Figure *figure, const PlotData *d,
                        const PlotOptions *o, Error *e) {
    Text script = {0}, data = {0}, data_name = {0}, tex_name = {0};
    text_printf(&data_name, "%s.dat", f->name);
    text_printf(&tex_name, "%s.tex", text_get(&f->included));
    text_printf(&data, "%s# " DRAWN_BY "\n", text_get(&d->numbers));
    text_printf(&script, "# " DRAWN_BY "\n");
    plot_script(figure, d, o, text_get(&data_name), o->format == PLOT_TEX ? text_get(&tex_name) : f->name,
                &script);
    data.failed |= d->numbers.failed;
    script.failed |= data_name.failed || tex_name.failed;
    bool ok = add_beside(out, f, ".dat", &data, e) && add_beside(out, f, ".gp", &script, e);
    Text *all[] = {&script, &data, &data_name, &tex_name};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) text_release(all[i]);
    return ok;
}

bool plot_draw(const Figure *figure, const PlotData *d, const PlotOptions *o, const char *path, Output *out,
               Error *e) {
    Files f;
    bool ok = name_files(&f, path, o->format, e) && output_check(out, path, &PLOT, e) &&
              draw(&f, figure, d, o, out, e) &&
              (output_is_stream(path) || add_sources(out, &f, figure, d, o, e));
    text_release(&f.included);
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
                Output *out, Error *e) {
    PlotData d = {0};
    bool ok = read_data(store, f, run, o, &d, e) && plot_draw(f, &d, o, path, out, e);
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
