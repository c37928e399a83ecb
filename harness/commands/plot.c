// Draws a figure of a stored run into a file or the terminal, or all of them for a paper.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "harness/analysis/choice.h"
#include "harness/analysis/estimates.h"
#include "harness/price/priced.h"
#include "harness/analysis/stored.h"
#include "harness/cli/records.h"
#include "harness/papers/catalogue.h"
#include "harness/papers/computed.h"
#include "harness/papers/table.h"
#include "plots/plots.h"
#include "results/published.h"
#include "results/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *run, *format, *output, *db, *width;
    PlotOptions look;
    PredictionArguments of;
    Choice choice;
    const char *paper, *folder; // folder: --output of all figures
    bool title, footer, caption, force;
    Records records;
} PlotArguments;

#define AT(name) offsetof(PlotArguments, name)
static const Arg OPTIONS[] = {
    {"run", ARG_WORD, AT(run), .help = "a number or a name", .value = "RUN",
     .fallback = "the newest that fits"},
    {"format", ARG_WORD, AT(format), .help = "tex: for \\input, with a pdf", .value = "svg|png|pdf|term|tex",
     .fallback = "as FILE ends, or svg"},
    {"output", ARG_WORD, AT(output), .help = "where to; -: standard output, the picture alone; all: a folder",
     .value = "FILE|DIR", .fallback = "NAME.svg", .letter = 'o'},
    {"paper", ARG_WORD, AT(paper), .help = "all: the pictures, and figures.tex, which includes them",
     .value = "DIR"},
    ARG_FORCE(AT(force)),
    {"width", ARG_WORD, AT(width), .help = "on paper: column is 85 mm, text 175", .value = "column|text|MM",
     .fallback = "for the screen"},
    {"height", ARG_REAL, AT(look.height_mm), 20, 1000, .help = "of all panels together", .value = "MM",
     .fallback = "as needed"},
    {"size", ARG_REAL, AT(look.points), 4, 40, .help = "of letters, in points; on the screen in pixels",
     .value = "POINTS", .fallback = "8, on the screen 12"},
    {"font", ARG_WORD, AT(look.font), .help = "tex: always the page's", .value = "NAME",
     .fallback = "sans-serif"},
    {"title", ARG_FLAG, AT(title), .help = "with the figure's title"},
    {"footer", ARG_FLAG, AT(footer), .help = "with notes on run and machine"},
    {"caption", ARG_FLAG, AT(caption), .help = "print a caption, too: n, intervals, conditions"},
    {"panel", ARG_WORD, AT(look.panel), .help = "only panels with this in their titles", .value = "TEXT"},
    {"dark", ARG_FLAG, AT(look.dark), .help = "for a dark page"},
    CHOICE_OPTIONS(AT, choice),
    {"on", ARG_WORD, AT(of.on), .help = "predicted, scaling, slowdown, ..: price steps there",
     .value = "MACHINE"},
    {"shape", ARG_WORD, AT(of.shape), .help = "of the target there", .value = "SHAPE"},
    {"beside", ARG_WORD, AT(of.beside), .help = "experts: of a dense target to compare with",
     .value = "SHAPE"},
    {"draft-shape", ARG_WORD, AT(of.draft_shape), .help = "of the draft model there", .value = "SHAPE"},
    {"batch", ARG_WORD, AT(of.batch), .help = "of steps there: sequences that share each", .value = "LIST"},
    {"bits", ARG_WORD, AT(of.bits), .help = "of the target's weights there: 16, 8 or 4", .value = "LIST"},
    {"against", ARG_WORD, AT(of.against), .help = "predicted: the same points measured there", .value = "RUN",
     .fallback = "RUN itself"},
    {"against-db", ARG_WORD, AT(of.against_db), .help = "the store of that run", .value = "FILE",
     .fallback = "as --db"},
    {"devices", ARG_WORD, AT(of.devices), .help = "scaling: over so many", .value = "LIST"},
    {"link", ARG_WORD, AT(of.link), .help = "scaling: a link's speed and a message's latency",
     .value = "GB/S,US"},
    {"cut", ARG_REAL, AT(of.cut), 0, 10, .help = "scaling: of TP and PP with one token a step: fitted to",
     .value = "SPEEDUP"},
    STORE_OPTION(AT(db)),
    RECORDS_OPTIONS(AT(records)), // of the files written
};

static bool find_look(PlotArguments *a, Error *e) {
    static const double LEAST = 30, MOST = 1000; // of a picture, in millimetres, unless its width has a name
    PlotOptions *o = &a->look;
    const char *name = records_format(a->format, a->output, "svg");
    int format = text_among(name, plot_format_names, PLOT_FORMATS);
    char *end = NULL;
    if (format < 0) return error_input(e, "a plot cannot be '%s', but svg, png, pdf, term or tex", name);
    if (a->width)
        o->width_mm = strcmp(a->width, "column") == 0 ? PLOT_COLUMN_MM
                      : strcmp(a->width, "text") == 0 ? PLOT_TEXT_MM
                                                      : strtod(a->width, &end);
    if (a->width && (!(o->width_mm >= LEAST && o->width_mm <= MOST) || (end && *end)))
        return error_input(e, "--width '%s' must be column, text or from %g to %g mm", a->width, LEAST, MOST);
    o->format = (PlotFormat)format;
    // In a terminal nothing else would name the figure.
    o->no_title = !a->title && o->format != PLOT_TERM;
    o->no_footer = !a->footer && o->format != PLOT_TERM;
    return true;
}

// A paper's figure is of the newest run whose config names it.
static bool find_run(Store *store, const Figure *f, const char *name, const char *which, int64_t *run,
                     Error *e) {
    if (which) return stored_run(store, which, run, e);
    if (strcmp(name, f->name) != 0) {
        if (!table_run_find(store, name, f->kind == RUN_SURFACE ? "surface" : "sweep", run, e)) return false;
        return *run || catalogue_none(name, store_path(store), e);
    }
    if (!plot_newest(store, f, run, e)) return false;
    return *run || error_input(e, "'%s' has no run for %s: %s", store_path(store), f->name, f->needs);
}

// Values that its query needs in addition to the store. A machine is priced only where one is named.
static bool compute(Store **store, const Figure *f, int64_t run, const PlotArguments *a, Text *out,
                    Error *e) {
    PredictionArguments of = a->of;
    ComputedWanted wanted = {.fits = f->computed & COMPUTED_FITS,
                             .alone = true,
                             .tables = f->computed & COMPUTED_TABLES,
                             .surface = f->computed & COMPUTED_SURFACE ? run : 0,
                             .on = of.on};
    char itself[24];
    bool priced = of.on && f->computed & COMPUTED_PREDICTION;
    if (priced && !of.shape) return error_input(e, "plot: --on goes with --shape: of which model?");
    snprintf(itself, sizeof itself, "%lld", (long long)run);
    if (!of.against && !of.batch && !of.bits) of.against = itself;
    if (priced) wanted.prediction = &of;
    if (wanted.tables && !estimates_ensure(store, run, ESTIMATES_OF_POINTS, e)) return false;
    if (!choice_apply(&a->choice, *store, run, e)) return false;
    return !f->computed || computed_json(*store, run, &wanted, out, e);
}

// The model that a paper's figure is of, where it is of one: a run may hold several. Empty: of none, or of
// many.
static void find_model(const char *name, Text *out) {
    const PublishedItem *item = published_find(name);
    LOCAL(published_release) Published p = {0};
    if (!item) return;
    published_open(&p, item);
    for (size_t i = 1; i < p.row_count; i++)
        if (strcmp(p.rows[i].model, p.rows[0].model) != 0) p.row_count = 0;
    if (p.row_count) text_puts(out, p.rows[0].model);
}

// run 0: of several.
static bool print_records(const PlotArguments *a, const char *figure, const char *path, int64_t run,
                          PlotFormat format, const Output *out, Error *e) {
    json_t *record = json_pack("{s:s, s:o, s:o, s:s, s:o}", "figure", figure, "output", json_from_text(path),
                               "run", run ? json_integer(run) : json_null(), "format",
                               plot_format_names[format], "files", records_files(out));
    return records_print(record, NULL, &a->records, e);
}

// The picture, then the files next to it.
static void tell_files(const Output *out, const char *path) {
    const char *slash = strrchr(path, '/'), *with = ", with ", *beside;
    printf("%s", SHOWN(path));
    for (size_t i = 0; (beside = output_path(out, i)); i++) {
        if (strcmp(beside, path) == 0) continue;
        printf("%s%s", with, SHOWN(slash ? beside + (slash - path) + 1 : beside));
        with = ", ";
    }
    puts(" beside it");
}

static void name_inputs(Output *out, const PlotArguments *a) {
    output_reads(out, a->db);
    output_reads(out, a->of.against_db);
    priced_reads(out, a->of.on, a->of.shape);
    priced_reads(out, NULL, a->of.beside);
    priced_reads(out, NULL, a->of.draft_shape);
}

static bool write_plot(Store *store, const Figure *f, const char *name, int64_t run, const PlotOptions *o,
                       const PlotArguments *a, Error *e) {
    char own[64];
    LOCAL(output_release) Output out = {.force = a->force};
    snprintf(own, sizeof own, "%s.%s", name, o->format == PLOT_TERM ? "txt" : plot_format_names[o->format]);
    const char *path = a->output ? a->output : own;
    name_inputs(&out, a);
    bool ok = plot_write(store, f, run, o, path, &out, e) && output_finish(&out, e);
    if (ok && records_asked(&a->records)) ok = print_records(a, f->name, path, run, o->format, &out, e);
    else if (ok && output_path(&out, 0)) tell_files(&out, path);
    return ok;
}

// The figure and its source.
typedef struct Source {
    Store *store;
    int64_t run;
    Figure figure;
    PricedSurface priced; // its title is the figure's
    Text computed, model;
} Source;

// A run's steps, if a machine is named, have their times there.
static Figure as_asked(const Figure *f, const PlotArguments *a) {
    Figure own = *f;
    if (a->of.on && f->computed & COMPUTED_PREDICTION) own.how = "priced";
    return own;
}

// Steps of a machine that is named, in place of a run's.
static bool open_priced(const PlotArguments *a, Source *s, Error *e) {
    if (!a->of.shape) return error_input(e, "plot: --on goes with --shape: of which model?");
    if (choice_made(&a->choice))
        return error_input(e, "plot: %s with --on draws no run: leave out what chooses a part of one",
                           s->figure.name);
    const PricedAsk ask = {a->of.on, a->of.shape, a->of.batch, a->of.bits};
    bool ok = priced_surface(&s->figure, &ask, &s->priced, &s->computed, e);
    s->store = s->priced.store;
    s->run = s->priced.run;
    s->figure.summary = s->priced.title;
    s->figure.how = "priced";
    return ok;
}

// --- all figures -----------------------------------------------------------------------------------------

// LaTeX includes pdf, png and its own; a gnuplot without cairo draws no pdf.
static bool find_format_of_all(const PlotArguments *a, PlotOptions *o, Error *e) {
    if (a->look.panel || a->caption || (a->paper && a->folder))
        return error_input(e,
                           "plot all: leave out --panel, --caption, and --output or --paper: all figures go "
                           "to that folder, those of a paper with captions");
    if (a->folder)
        return o->format != PLOT_TERM || error_input(e, "plot all: --output holds svg, png, pdf or tex");
    bool can = false;
    if (!a->format && !plot_can(PLOT_PDF, NULL, &can, e)) return false;
    if (!a->format) o->format = can ? PLOT_PDF : PLOT_PNG;
    if (o->format == PLOT_PDF || o->format == PLOT_PNG || o->format == PLOT_TEX) return true;
    return error_input(e, "plot all: LaTeX cannot include '%s', but pdf, png or tex; --output DIR holds any",
                       a->format);
}

static bool add_to_paper(const PlotArguments *a, const Figure *f, Paper *p, Error *e) {
    LOCAL_TEXT computed = {0};
    Error chosen = {0}; // a surface need not have the names chosen of a sweep
    int64_t run = 0;
    LOCAL_STORE *store = store_open(a->db, STORE_READ, NULL, e);
    int64_t surface = f->kind == RUN_SURFACE;
    bool ok = store && (a->run ? stored_run(store, a->run, &run, e) &&
                                     rows_one_int(store, "SELECT kind = 'surface' FROM run WHERE id = ?1",
                                                  run, &surface, e)
                               : plot_newest(store, f, &run, e));
    if (ok && run && surface == (f->kind == RUN_SURFACE)) {
        const Figure own = as_asked(f, a);
        ok = compute(&store, f, run, a, &computed, &chosen);
        if (ok) ok = paper_add(p, store, &own, run, computed.length ? text_get(&computed) : NULL, e);
        else if (!(ok = f->kind == RUN_SURFACE && chosen.kind == ERROR_INPUT)) *e = chosen;
    }
    return ok;
}

static bool write_all(const PlotArguments *a, Error *e) {
    PlotOptions o = a->look;
    LOCAL_TEXT notes = {0};
    LOCAL(output_release) Output out = {.force = a->force};
    LOCAL(paper_release)
    Paper p = {.o = &o, .folder = a->paper ? a->paper : a->folder, .no_page = !a->paper, .out = &out};
    o.notes = &notes;
    name_inputs(&out, a);
    bool ok = find_format_of_all(a, &o, e);
    for (int i = 0; ok && i < figure_count; i++) ok = add_to_paper(a, &figures[i], &p, e);
    if (ok && !p.count) ok = error_input(e, "'%s' has nothing to draw: outpace run CONFIG", a->db);
    ok = ok && paper_finish(&p, e) && output_finish(&out, e);
    if (ok) fputs(text_get(&notes), stderr);
    if (ok && records_asked(&a->records)) ok = print_records(a, "all", p.folder, 0, o.format, &out, e);
    else if (ok)
        printf("%s%s: %d figures as %s, with their data and scripts\n", SHOWN(p.folder),
               p.no_page ? "" : "/figures.tex", p.count, plot_format_names[o.format]);
    return ok;
}

static bool run(void *options, CommandLine *line, Error *e) {
    PlotArguments *a = options;
    PlotOptions *o = &a->look;
    const char *name = line->words.items[0];
    for (int i = 0; !name && i < figure_count; i++) {
        printf("%-12s %s\n", figures[i].name, figures[i].summary);
        if (figures[i].papers) printf("%-12s   %s\n", "", figures[i].papers);
    }
    if (!name) return true;
    if (a->caption && a->output && output_is_stream(a->output))
        return error_input(e, "plot: --caption is printed, so the picture cannot go to '%s'", a->output);
    bool all = strcmp(name, "all") == 0;
    if (all) a->folder = a->output, a->output = NULL;
    if (all != (a->paper || a->folder))
        return error_input(e, "plot: 'all' goes with --paper DIR or --output DIR");
    if (!find_look(a, e)) return false;
    if (all) return write_all(a, e);
    const Figure *f = figure_find(name);
    const char *near = f ? NULL : suggest(name, figures, (size_t)figure_count, sizeof *figures);
    if (near) return error_input(e, "there is no figure '%s'; did you mean '%s'?", name, near);
    if (!f) return error_input(e, "there is no figure '%s'; 'outpace plot' lists them", name);
    bool print = o->format == PLOT_TERM && !a->output;
    LOCAL_TEXT notes = {0}, caption = {0};
    Source s = {.figure = as_asked(f, a)};
    o->notes = &notes;
    if (a->caption) o->caption = &caption;
    bool priced = a->of.on && f->priced && !a->run;
    if (!priced) find_model(name, &s.model);
    bool ok = priced ? open_priced(a, &s, e)
                     : (s.store = store_open(a->db, STORE_READ, NULL, e)) &&
                           find_run(s.store, &s.figure, name, a->run, &s.run, e) &&
                           compute(&s.store, &s.figure, s.run, a, &s.computed, e);
    if (s.computed.length) o->computed = text_get(&s.computed);
    if (s.model.length) o->of = text_get(&s.model);
    if (ok && print) {
        int width = terminal_width();
        LOCAL_TEXT text = {0};
        o->colour = width && !getenv("NO_COLOR");
        if (width) o->columns = width - 1, o->lines = terminal_height();
        ok = plot_text(s.store, &s.figure, s.run, o, &text, e);
        if (ok) fputs(text_get(&text), stdout);
    } else ok = ok && write_plot(s.store, &s.figure, name, s.run, o, a, e);
    if (ok) fputs(text_get(&notes), stderr);
    if (ok && a->caption) { // for a page of LaTeX, as LaTeX
        LOCAL_TEXT tex = {0};
        page_text(&(Page){.format = PAGE_TEX, .out = &tex}, text_get(&caption));
        printf("\n%s\n", o->format == PLOT_TEX ? text_get(&tex) : text_get(&caption));
    }
    text_release(&s.computed);
    text_release(&s.model);
    store_close(s.store);
    return ok;
}

const Command command_plot = {.name = "plot",
                              .usage = "[FIGURE|all] [OPTIONS]",
                              .summary = "draw a figure of a stored run, to a file or in the terminal",
                              .arguments = {0, 1},
                              COMMAND_OPTIONS(OPTIONS, PlotArguments),
                              .run = run};
