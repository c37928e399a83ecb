// The report of a run: sections are rows of a table, each a query and the way its rows are written. A section
// without rows is left out. Figures go to `out` before the page that refers to them.
#include "plots/chart.h"

#include "engine/base/shipped.h"
#include "results/rows.h"

#include <ctype.h>
#include <string.h>

EMBED(plots_report_title, "plots/report/title.sql")
EMBED(plots_report_verdict, "plots/report/verdict.sql")
EMBED(plots_report_points, "plots/report/points.sql")
EMBED(plots_report_published, "plots/report/published.sql")
EMBED(plots_report_fits, "plots/report/fits.sql")
EMBED(plots_report_residuals, "plots/report/residuals.sql")
EMBED(plots_report_rivals, "plots/report/rivals.sql")
EMBED(plots_report_missing, "plots/report/missing.sql")
EMBED(plots_report_text, "plots/report/text.sql")
EMBED(plots_report_costs, "plots/report/costs.sql")
EMBED(plots_report_disturbed, "plots/report/disturbed.sql")
EMBED(plots_report_drifted, "plots/report/drifted.sql")
EMBED(plots_report_diverged, "plots/report/diverged.sql")
EMBED(plots_report_environment, "plots/report/environment.sql")
EMBED(plots_report_starts, "plots/report/starts.sql")
EMBED(plots_report_content, "plots/report/content.sql")
EMBED(plots_report_repeat, "plots/report/repeat.sql")
EMBED(plots_report_floor, "plots/report/floor.sql")
EMBED(plots_report_conditions, "plots/report/conditions.sql")

// Other commands ask these, too.
__asm__(".globl report_tasks, report_doubt, report_priced, report_summary\n");
EMBED(report_tasks, "plots/report/tasks.sql")
EMBED(report_doubt, "plots/report/doubt.sql")
EMBED(report_priced, "plots/report/priced.sql")
EMBED(report_summary, "plots/report/summary.sql")

typedef struct Report {
    Store *store;
    int64_t run, surface; // surface: the run whose surface the figures draw; 0: none
    const ReportOptions *o;
    const char *path;
    Output *out;
    Page page;
    Text undrawn; // names of figures without data
} Report;

// --- sections --------------------------------------------------------------------------------------------

// Writes one row of the section of this title; first: its first one.
typedef void (*PutRow)(const Page *p, const Rows *r, const char *title, bool first);

static void put_verdict(const Page *p, const Rows *r, const char *title, bool first) {
    (void)title;
    (void)first;
    page_verdict(p, rows_text(r, 0), rows_text(r, 1), rows_text(r, 2));
}

static void put_row(const Page *p, const Rows *r, const char *title, bool first) {
    if (first) page_columns(p, r, title);
    page_row(p, r);
}

static void put_facts(const Page *p, const Rows *r, const char *title, bool first) {
    (void)first;
    page_facts(p, r, title);
}

static void put_sentence(const Page *p, const Rows *r, const char *title, bool first) {
    (void)title;
    (void)first;
    page_sentence(p, rows_text(r, 0));
}

static void put_code(const Page *p, const Rows *r, const char *title, bool first) {
    (void)title;
    (void)first;
    page_sentence(p, rows_text(r, 0));
    page_code(p, rows_text(r, 1));
}

typedef struct Section {
    const char *title, *about; // about: NULL, or a sentence under the title
    const char *query;
    PutRow put;
} Section;

static const Section BEFORE[] = {
    {"In short", NULL, report_summary, put_sentence},
    {"Verdict", NULL, plots_report_verdict, put_verdict},
    {"Points",
     "S is tokens per step after prefill; speedup the ratio of summed decode times over the same prompts, "
     "the baseline's over the point's own; intervals hold 95 of 100 resamples of prompts, and of passes "
     "within prompts. With prefill: the speedup of decoding and prefill together; as Spec-Bench: the ratio "
     "of mean tokens/s of conversations; over own settings: over autoregressive decoding with this point's "
     "device, threads and layout, not over the fastest; S with prefill: prefill counts as a step, as in "
     "the authors' codes; rows: tokens run in a step. Disturbed samples are part of every number; * marks "
     "times in doubt: more than a tenth of the samples, or of the baseline's, were disturbed, or the "
     "speedup is above S.",
     plots_report_points, put_row},
    {"Priced",
     "Speedups here and as priced on the machine that the page begins with: each step's passes as "
     "'outpace simulate' has them, so acceptance and S are this run's, and nothing of the column "
     "'priced' was measured.",
     report_priced, put_row},
    {"Categories",
     "Of data of several tasks: S, the share of the longest drafted chains that was accepted, and the "
     "speedup, by category and, "
     "after a slash, by the parts of one; intervals hold 95 of 100 resamples of its prompts.",
     report_tasks, put_row},
    {"Published numbers",
     "The numbers of the papers that this run reproduces, next to its own, computed as the papers do. A "
     "difference is given if model, dataset, type and device are the paper's.",
     plots_report_published, put_row},
    {"Not measured", NULL, plots_report_missing, put_row},
    {"Quality of texts", NULL, plots_report_text, put_row},
};

static const Section AFTER[] = {
    {"Fitted laws",
     "S = 1 + (1/f) sum over i of (1 - (1 - alpha^i)^b): alpha is the chance that a guessed token is right, "
     "and one step in f has a good guess (Lookahead, Eq. 4 to 7). Intervals hold 95 of 100 resamples.",
     plots_report_fits, put_row},
    {"Residuals of the fitted laws", NULL, plots_report_residuals, put_row},
    {"The laws beside rivals", "The root mean square error of S at points that were left out of the fit.",
     plots_report_rivals, put_row},
    {"Costs that come once",
     "Making or loading tables, datastores and drafts for a method, if it took a millisecond or more, and "
     "the memory that it holds. Not part of any speedup.",
     plots_report_costs, put_row},
    {"Texts that differ",
     "Where a text first differs from the baseline's, the two tokens there, and the distance of the two "
     "highest logits.",
     plots_report_diverged, put_row},
    {"Disturbed samples", "They are part of every number above.", plots_report_disturbed, put_row},
    {"Where the machine changed", "Slowdowns there may be wrong by that much.", plots_report_drifted,
     put_row},
    {"Machine", NULL, plots_report_environment, put_facts},
    {"Starts", NULL, plots_report_starts, put_row},
    {"Models and data", NULL, plots_report_content, put_row},
    {"To repeat it", NULL, plots_report_repeat, put_code},
};

static bool put_section(Report *p, const Section *s, Error *e) {
    bool first = true;
    Rows *r = rows_ask(p->store, s->query, p->run, e);
    if (rows_parameters(r) > 1) rows_bind_text(r, 2, p->o->computed);
    for (; rows_next(r); first = false) {
        if (first) page_heading(&p->page, s->title);
        if (first && s->about) page_about(&p->page, s->about);
        s->put(&p->page, r, s->title, first);
    }
    if (!first && s->put == put_row) page_end_table(&p->page);
    return rows_end(r, true, e);
}

static bool put_sections(Report *p, const Section *sections, size_t count, Error *e) {
    for (size_t i = 0; i < count; i++)
        if (!put_section(p, &sections[i], e)) return false;
    return true;
}

// --- figures ---------------------------------------------------------------------------------------------

static bool put_beside(Report *p, const Figure *f, const PlotData *d, Error *e) {
    const char *slash = strrchr(p->path, '/'), *name = slash ? slash + 1 : p->path, *dot = strrchr(name, '.');
    int stem = (int)(dot && dot > name ? dot - p->path : (long)strlen(p->path));
    PlotOptions o = {.format = p->o->format == PAGE_TEX ? PLOT_PDF : PLOT_SVG, .gnuplot = p->o->gnuplot};
    Text path = {0};
    text_printf(&path, "%.*s-figures/%s.%s", stem, p->path, f->name, plot_format_names[o.format]);
    bool ok = plot_draw(f, d, &o, text_get(&path), p->out, e);
    if (ok) page_figure_file(&p->page, text_get(&path) + (name - p->path), f->summary);
    text_release(&path);
    return ok;
}

static bool put_figure(Report *p, const Figure *f, Error *e) {
    PlotData d = {0};
    Text json = {0};
    int64_t run = f->kind == RUN_SURFACE ? p->surface : p->run;
    bool ok = !run || plot_data(p->store, f, run, p->o->computed, NULL, &d, e);
    if (ok && p->o->notes) plot_left_out(f, &d, p->o->notes);
    if (ok && d.count && p->page.format == PAGE_HTML) {
        chart_put(f, &d, &json);
        page_chart(&p->page, f->name, f->summary, text_get(&json));
    } else if (ok && d.count) ok = put_beside(p, f, &d, e);
    else if (ok) text_printf(&p->undrawn, "%s%s", p->undrawn.length ? ", " : "", f->name);
    text_release(&json);
    plot_data_release(&d);
    return ok;
}

static bool put_figures(Report *p, Error *e) {
    page_heading(&p->page, "Figures");
    for (int i = 0; i < figure_count; i++) {
        Figure f = figures[i];
        // Where a reader can point at a cell, the figure over rows and context gives more of it.
        if (p->page.format == PAGE_HTML && strcmp(f.name, "contexts") == 0) {
            f.summary = "Slowdown over rows and context, and the least that the machine allows";
            f.query = plots_report_floor;
        }
        if (!put_figure(p, &f, e)) return false;
    }
    if (p->undrawn.length) {
        text_puts(&p->undrawn, ": this run has nothing to draw ('outpace plot NAME' names what to run).");
        page_sentence(&p->page, text_get(&p->undrawn));
    }
    return true;
}

// --- all of it -------------------------------------------------------------------------------------------

static bool find_surface(Report *p, Error *e) {
    static const char SQL[] = "SELECT max(attempt.run_id) FROM attempt JOIN surface ON attempt_id = "
                              "attempt.id JOIN model ON model.id = model_id"
                              " WHERE attempt.run_id = ?1 OR model.hash IN (SELECT m.hash FROM point JOIN "
                              "model m ON m.id = point.model_id WHERE run_id = ?1)";
    return rows_one_int(p->store, SQL, p->run, &p->surface, e);
}

// For the page's script: the points that its filters and tips name.
static bool put_points(Report *p, Error *e) {
    Rows *r = rows_ask(p->store, plots_report_conditions, p->run, e);
    if (rows_next(r)) page_data(&p->page, "points", rows_text(r, 0));
    return rows_end(r, true, e);
}

// The state of the machine is told once, before all numbers.
static bool put_doubt(Report *p, Error *e) {
    Rows *r = rows_ask(p->store, report_doubt, p->run, e);
    Text text = {0};
    if (rows_next(r)) {
        const char *says = rows_text(r, 0);
        text_printf(&text, "%c%s.", toupper((unsigned char)*says), says + 1);
        page_sentence(&p->page, text_get(&text));
    }
    text_release(&text);
    return rows_end(r, true, e);
}

static bool put_page(Report *p, Error *e) {
    Rows *r = rows_ask(p->store, plots_report_title, p->run, e);
    bool found = rows_next(r);
    if (found) page_open(&p->page, rows_text(r, 0), rows_text(r, 1));
    if (!rows_end(r, true, e)) return false;
    if (!found) return error_input(e, "'%s' has no run %lld", store_path(p->store), (long long)p->run);
    if (!put_doubt(p, e) || !find_surface(p, e) ||
        !put_sections(p, BEFORE, sizeof BEFORE / sizeof *BEFORE, e) || !put_figures(p, e) ||
        !put_sections(p, AFTER, sizeof AFTER / sizeof *AFTER, e))
        return false;
    if (p->page.format == PAGE_HTML && !put_points(p, e)) return false;
    page_close(&p->page);
    return true;
}

#define WRITTEN_BY "written by 'outpace report'"
static const OutputKind REPORT = {.holds = WRITTEN_BY};

bool report_write(Store *store, int64_t run, const ReportOptions *o, const char *path, Output *out,
                  Error *e) {
    Text text = {0}, contents = {0};
    Report p = {.store = store,
                .run = run,
                .o = o,
                .path = path,
                .out = out,
                .page = {o->format, &text, o->format == PAGE_HTML ? &contents : NULL}};
    if (o->format != PAGE_HTML && output_is_stream(path))
        return error_input(e, "a report in this format has figures next to it, and cannot go to '%s'", path);
    bool ok = output_check(out, path, &REPORT, e) && put_page(&p, e);
    text_puts(&text, o->format == PAGE_TEX ? "% " WRITTEN_BY "\n" : "<!-- " WRITTEN_BY " -->\n");
    ok = ok && output_add(out, path, &REPORT, text_get(&text), text.length, e);
    text_release(&p.undrawn);
    text_release(&contents);
    text_release(&text);
    return ok;
}
