// The report of a run: sections are rows of a table, each a query and the way its rows are written. A section
// without rows is left out. Figures go to `out` before the page that refers to them.
#include "engine/base/memory.h"
#include "plots/plots.h"

#include "engine/base/json.h"
#include "engine/base/shipped.h"
#include "results/rows.h"

#include <ctype.h>
#include <string.h>

__asm__(".globl report_sql\n");
EMBED(report_sql, "plots/report/report.sql")
__asm__(".globl tokens_sql\n");
EMBED(tokens_sql, "plots/report/tokens.sql")
EMBED(plots_report_floor, "plots/report/floor.sql")

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

typedef enum { PUT_TABLE, PUT_FACTS, PUT_SENTENCE, PUT_VERDICT, PUT_CODE } Put;

typedef struct Section {
    const char *title, *about; // about: NULL, or a sentence under the title
    const char *query;         // of report.sql
    Put put;                   // how each row is written
} Section;

static const Section BEFORE[] = {
    {"In short", NULL, "summary", PUT_SENTENCE},
    {"Verdict", NULL, "verdict", PUT_VERDICT},
    {"Points",
     "S is tokens per step after prefill; speedup the ratio of summed decode times over the same prompts, "
     "the baseline's over the point's own; intervals hold 95 of 100 resamples of prompts, and of passes "
     "within prompts. With prefill: the speedup of decoding and prefill together; as Spec-Bench: the ratio "
     "of mean tokens/s of conversations; over own settings: over autoregressive decoding with this point's "
     "device, threads and layout, not over the fastest; S with prefill: prefill counts as a step, as in "
     "the authors' codes; rows: tokens run in a step. Disturbed samples are part of every number; * marks "
     "times in doubt: more than a tenth of the samples, or of the baseline's, were disturbed, or the "
     "speedup is above S.",
     "points", PUT_TABLE},
    {"Beside another run", NULL, "against", PUT_SENTENCE},
    {"Each pair of points",
     "The same points in this run, A, and in the other, B. The ratio is B's speedup over A's, prompt by "
     "prompt, and its interval holds 95 of 100 resamples of prompts, and of passes within prompts; no "
     "difference: all of it is within 2% of 1. A wider interval, fewer than ten undisturbed prompts and "
     "disturbed baselines leave it open.",
     "pairs", PUT_TABLE},
    {"Priced",
     "Speedups here and as priced on the machine that the page begins with: each step's passes as "
     "'outpace simulate' has them, so acceptance and S are this run's, and nothing of the column "
     "'priced' was measured.",
     "priced", PUT_TABLE},
    {"Categories",
     "Of data of several tasks: S, the share of the longest drafted chains that was accepted, and the "
     "speedup, by category and, "
     "after a slash, by the parts of one; intervals hold 95 of 100 resamples of its prompts.",
     "tasks", PUT_TABLE},
    {"Published numbers",
     "The numbers of the papers that this run reproduces, next to its own, computed as the papers do. A "
     "difference is given if model, dataset, type and device are the paper's.",
     "published", PUT_TABLE},
    {"Not measured", NULL, "missing", PUT_TABLE},
    {"Quality of texts", NULL, "text", PUT_TABLE},
};

static const Section AFTER[] = {
    {"Fitted laws",
     "S = 1 + (1/f) sum over i of (1 - (1 - alpha^i)^b): alpha is the chance that a guessed token is right, "
     "and one step in f has a good guess (Lookahead, Eq. 4 to 7). Intervals hold 95 of 100 resamples.",
     "fits", PUT_TABLE},
    {"Residuals of the fitted laws", NULL, "residuals", PUT_TABLE},
    {"The laws beside rivals", "The root mean square error of S at points that were left out of the fit.",
     "rivals", PUT_TABLE},
    {"Costs that come once",
     "Making or loading tables, datastores and drafts for a method, if it took a millisecond or more, and "
     "the memory that it holds. Not part of any speedup.",
     "costs", PUT_TABLE},
    {"Texts that differ",
     "Where a text first differs from the baseline's, the two tokens there, and the distance of the two "
     "highest logits.",
     "diverged", PUT_TABLE},
    {"Disturbed samples", "They are part of every number above.", "disturbed", PUT_TABLE},
    {"Where the machine changed", "Slowdowns there may be wrong by that much.", "drifted", PUT_TABLE},
    {"Machine", NULL, "environment", PUT_FACTS},
    {"Starts", NULL, "starts", PUT_TABLE},
    {"Models and data", NULL, "content", PUT_TABLE},
    {"To repeat it", NULL, "repeat", PUT_CODE},
};

static void put_row(const Page *p, const Section *s, const Rows *r, bool first) {
    if (first) page_heading(p, s->title);
    if (first && s->about) page_about(p, s->about);
    if (first && s->put == PUT_TABLE) page_columns(p, r, s->title);
    switch (s->put) {
    case PUT_TABLE: page_row(p, r); break;
    case PUT_FACTS: page_facts(p, r, s->title); break;
    case PUT_VERDICT: page_verdict(p, rows_text(r, 0), rows_text(r, 1), rows_text(r, 2)); break;
    case PUT_SENTENCE:
    case PUT_CODE: page_sentence(p, rows_text(r, 0)); break;
    }
    if (s->put == PUT_CODE) page_code(p, rows_text(r, 1));
}

static bool put_sections(Report *p, const Section *sections, size_t count, Error *e) {
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        const Section *s = &sections[i];
        bool first = true;
        Rows *r = rows_named(p->store, report_sql, s->query, p->run, e);
        if (rows_parameters(r) > 1) rows_bind_text(r, 2, p->o->computed);
        for (; rows_next(r); first = false) put_row(&p->page, s, r, first);
        if (!first && s->put == PUT_TABLE) page_end_table(&p->page);
        ok = rows_end(r, true, e);
    }
    return ok;
}

// --- figures ---------------------------------------------------------------------------------------------

static bool put_beside(Report *p, const Figure *f, const PlotData *d, Error *e) {
    const char *slash = strrchr(p->path, '/'), *name = slash ? slash + 1 : p->path, *dot = strrchr(name, '.');
    int stem = (int)(dot && dot > name ? dot - p->path : (long)strlen(p->path));
    PlotOptions o = {.format = p->o->format == PAGE_TEX ? PLOT_PDF : PLOT_SVG, .gnuplot = p->o->gnuplot};
    LOCAL_TEXT path = {0};
    text_printf(&path, "%.*s-figures/%s.%s", stem, p->path, f->name, plot_format_names[o.format]);
    bool ok = plot_draw(f, d, &o, text_get(&path), p->out, e);
    if (ok) page_figure_file(&p->page, text_get(&path) + (name - p->path), f->summary);
    return ok;
}

static bool put_figure(Report *p, const Figure *f, Error *e) {
    LOCAL(plot_data_release) PlotData d = {0};
    LOCAL_TEXT json = {0};
    int64_t run = f->kind == RUN_SURFACE ? p->surface : p->run;
    bool ok = !run || plot_data(p->store, f, run, p->o->computed, NULL, &d, e);
    if (ok && p->o->notes) plot_left_out(f, &d, p->o->notes);
    if (ok && d.count && p->page.format == PAGE_HTML) {
        chart_put(f, &d, &json);
        page_chart(&p->page, f->name, f->summary, text_get(&json));
    } else if (ok && d.count) ok = put_beside(p, f, &d, e);
    else if (ok) text_printf(&p->undrawn, "%s%s", p->undrawn.length ? ", " : "", f->name);
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

// --- texts ----------------------------------------------------------------------------------------------

// A value of a query; `pieces` and `rejected` are JSON already.
static json_t *value_of(const Rows *r, int column) {
    const char *name = rows_name(r, column);
    bool json = strcmp(name, "pieces") == 0 || strcmp(name, "rejected") == 0;
    switch (rows_type(r, column)) {
    case VALUE_INT: return json_integer(rows_int(r, column));
    case VALUE_REAL: return json_number(rows_real(r, column));
    case VALUE_TEXT:
        return json ? json_loads(rows_text(r, column), 0, NULL) : json_from_text(rows_text(r, column));
    default: return json_null();
    }
}

// The rows of a query; `columns` gets their names.
static json_t *rows_list(Rows *r, json_t *columns, bool *ok, Error *e) {
    json_t *rows = json_array();
    while (rows_next(r)) {
        json_t *row = json_array();
        for (int i = 0; i < rows_columns(r); i++) json_array_append_new(row, value_of(r, i));
        for (int i = (int)json_array_size(columns); i < rows_columns(r); i++)
            json_array_append_new(columns, json_string(rows_name(r, i)));
        json_array_append_new(rows, row);
    }
    *ok = rows_end(r, *ok, e);
    return rows;
}

static bool add_texts(Report *p, int64_t run, int most_bytes, json_t *columns, json_t *texts, Error *e) {
    bool ok = true;
    Rows *r = rows_named(p->store, tokens_sql, "texts", run, e);
    rows_bind_text(r, 2, NULL);
    rows_bind_int(r, 3, most_bytes);
    while (ok && rows_next(r)) {
        json_t *text = json_object();
        for (int i = 0; i < rows_columns(r); i++) json_object_set_new(text, rows_name(r, i), value_of(r, i));
        Rows *steps = rows_named(p->store, tokens_sql, "steps", rows_int(r, 0), e);
        json_object_set_new(text, "steps", rows_list(steps, columns, &ok, e));
        json_object_del(text, "sample_id");
        json_array_append_new(texts, text);
    }
    return rows_end(r, ok, e);
}

// Texts token by token, as report/tokens.js shows them:
//
//   {"columns": ["step", "emitted", ...], "texts": [{"label": "lookahead W=5", "prompt": "code-01", ...,
//    "pieces": ["a", " crow", ...], "steps": [[1, 3, ...], ...]}]}
static bool put_tokens(Report *p, Error *e) {
    enum { MOST_BYTES = 1200000 }; // of them all, so that the page stays below 2 MB
    const int64_t runs[] = {p->run, p->o->against};
    int count = p->o->against && p->o->against != p->run ? 2 : 1;
    json_t *columns = json_array(), *texts = json_array(), *all;
    LOCAL_TEXT json = {0};
    bool ok = true;
    for (int i = 0; ok && i < count; i++) ok = add_texts(p, runs[i], MOST_BYTES / count, columns, texts, e);
    bool any = json_array_size(texts) > 0;
    all = json_pack("{s:o, s:o}", "columns", columns, "texts", texts);
    if (ok && any && json_append(json_incref(all), JSON_COMPACT | JSON_REAL_PRECISION(4), &json)) {
        page_heading(&p->page, "Token by token");
        page_sentence(&p->page,
                      "Two methods on the same prompt, of each method its best setting: a guessed token has "
                      "the colour of its source, the target's own have none, and every other step is "
                      "underlined. A token shows its step under the pointer and by the arrow keys.");
        page_data(&p->page, "tokens", text_get(&json));
    }
    json_decref(all);
    return ok;
}

// The steps and prompts of points, which report/inside.js opens:
// {"steps": {"columns": [...], "rows": [...]}, "prompts": ...}
static bool put_inside(Report *p, Error *e) {
    static const char *const PARTS[] = {"steps", "prompts"};
    json_auto_t *all = json_object();
    LOCAL_TEXT json = {0};
    bool ok = true, any = false;
    for (int i = 0; ok && i < 2; i++) {
        json_t *columns = json_array(), *rows;
        Rows *r = rows_named(p->store, report_sql, i ? "inside_prompts" : "inside_steps", p->run, e);
        rows = rows_list(r, columns, &ok, e);
        any = any || json_array_size(rows) > 0;
        json_object_set_new(all, PARTS[i], json_pack("{s:o, s:o}", "columns", columns, "rows", rows));
    }
    if (ok && any && json_append(json_incref(all), JSON_COMPACT | JSON_REAL_PRECISION(4), &json)) {
        page_heading(&p->page, "Steps and prompts");
        page_sentence(&p->page,
                      "A mark of a figure, or a row of the points, opens here by a click or by Enter: its "
                      "steps, its prompts, and then their tokens. The address keeps what is open.");
        page_data(&p->page, "inside", text_get(&json));
    }
    return ok;
}

// --- all of it -------------------------------------------------------------------------------------------

// The state of the machine is told once, before all numbers.
static bool put_doubt(Report *p, Error *e) {
    Rows *r = rows_named(p->store, report_sql, "doubt", p->run, e);
    LOCAL_TEXT text = {0};
    if (rows_next(r)) {
        const char *says = rows_text(r, 0);
        text_printf(&text, "%c%s.", toupper((unsigned char)*says), says + 1);
        page_sentence(&p->page, text_get(&text));
    }
    return rows_end(r, true, e);
}

static bool put_page(Report *p, Error *e) {
    Rows *r = rows_named(p->store, report_sql, "title", p->run, e);
    bool found = rows_next(r);
    if (found) page_open(&p->page, rows_text(r, 0), rows_text(r, 1));
    if (!rows_end(r, true, e)) return false;
    if (!found) return error_input(e, "'%s' has no run %lld", store_path(p->store), (long long)p->run);
    if (!put_doubt(p, e) || !rows_named_int(p->store, report_sql, "surface", p->run, &p->surface, e) ||
        !put_sections(p, BEFORE, sizeof BEFORE / sizeof *BEFORE, e) ||
        (p->page.format == PAGE_HTML && (!put_inside(p, e) || !put_tokens(p, e))) || !put_figures(p, e) ||
        !put_sections(p, AFTER, sizeof AFTER / sizeof *AFTER, e))
        return false;
    // For the page's script: the points that its filters and tips name.
    r = rows_named(p->store, report_sql, "conditions", p->run, e);
    if (p->page.format == PAGE_HTML && rows_next(r)) page_data(&p->page, "points", rows_text(r, 0));
    page_close(&p->page);
    return rows_end(r, true, e);
}

#define WRITTEN_BY "written by 'outpace report'"
static const OutputKind REPORT = {.holds = WRITTEN_BY};

bool report_write(Store *store, int64_t run, const ReportOptions *o, const char *path, Output *out,
                  Error *e) {
    LOCAL_TEXT text = {0}, contents = {0};
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
    return ok;
}
