// Pictures for a paper in one folder, and a page of LaTeX that includes them: a source of figure environments
// to copy, which compiles as it is. It needs graphicx alone.
#include "engine/base/memory.h"
#include "plots/plots.h"

#include <stdio.h>
#include <string.h>

#define DRAWN_BY "drawn by 'outpace plot'"
static const OutputKind PAGE = {.holds = DRAWN_BY};

enum { MOST_IN_COLUMN = 2 }; // panels; more need the text's width

static bool put_figure(Paper *p, Store *store, const Figure *f, int64_t run, const char *computed,
                       const PlotData *d, double width, Error *e) {
    LOCAL_TEXT caption = {0};
    Page page = {.format = PAGE_TEX, .out = &p->figures};
    const char *star = width > PLOT_COLUMN_MM ? "*" : "";
    bool ok = plot_caption(store, f, run, computed, d, &caption, e);
    text_printf(&p->figures, "\\begin{figure%s}\n\\centering\n", star);
    if (p->o->format == PLOT_TEX) text_printf(&p->figures, "\\input{%s}\n", f->name);
    else text_printf(&p->figures, "\\includegraphics[width=%.4gmm]{%s}\n", width, f->name);
    text_puts(&p->figures, "\\caption{");
    page_text(&page, text_get(&caption));
    text_printf(&p->figures, "}\n\\label{fig:%s}\n\\end{figure%s}\n\\clearpage\n\n", f->name, star);
    return ok;
}

bool paper_add(Paper *p, Store *store, const Figure *f, int64_t run, const char *computed, Error *e) {
    LOCAL(plot_data_release) PlotData d = {0};
    LOCAL_TEXT path = {0};
    bool ok = plot_data(store, f, run, computed, NULL, &d, e);
    if (ok && d.count) {
        PlotOptions o = *p->o;
        bool few = (int)d.panels.count - d.left_out <= MOST_IN_COLUMN;
        if (!p->no_page && o.width_mm <= 0) o.width_mm = few ? PLOT_COLUMN_MM : PLOT_TEXT_MM;
        text_printf(&path, "%s/%s.%s", p->folder, f->name, plot_format_names[o.format]);
        if (o.notes) plot_left_out(f, &d, o.notes);
        ok = plot_draw(f, &d, &o, text_get(&path), p->out, e) &&
             (p->no_page || put_figure(p, store, f, run, computed, &d, o.width_mm, e));
        p->count++;
    }
    return ok;
}

bool paper_finish(Paper *p, Error *e) {
    LOCAL_TEXT all = {0}, path = {0};
    if (p->no_page) return true;
    text_puts(&all, "% " DRAWN_BY "\n");
    text_printf(&all,
                "%% A page with columns of %g mm and a text of %g mm. Copy its figures into yours.\n"
                "\\documentclass[a4paper,twocolumn]{article}\n\\usepackage{graphicx}\n"
                "\\ifdefined\\Umathchar\\else\\IfFileExists{lmodern.sty}{\\usepackage[T1]{fontenc}"
                "\\usepackage{lmodern}}{}\\fi\n"
                "\\setlength{\\textwidth}{%gmm}\n\\setlength{\\columnsep}{%gmm}\n"
                "\\setlength{\\oddsidemargin}{%gmm}\n\\setlength{\\topmargin}{-10mm}\n"
                "\\setlength{\\textheight}{240mm}\n",
                PLOT_COLUMN_MM, PLOT_TEXT_MM, PLOT_TEXT_MM, PLOT_TEXT_MM - 2 * PLOT_COLUMN_MM,
                (210 - PLOT_TEXT_MM) / 2 - 25.4);
    page_tex_start(&(Page){.format = PAGE_TEX, .out = &all});
    text_printf(&all, "\\begin{document}\n\n%s\\end{document}\n", text_get(&p->figures));
    text_printf(&path, "%s/figures.tex", p->folder);
    return output_add(p->out, text_get(&path), &PAGE, text_get(&all), all.length, e);
}

void paper_release(Paper *p) { text_release(&p->figures); }
