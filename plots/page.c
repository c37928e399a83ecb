// Pages in three formats. Every text goes through page_text, which escapes it letter by letter, so none of it
// can be markup; page_code and put_typed keep line ends and blanks as well.
#include "plots/page.h"

#include "engine/base/shipped.h"
#include "plots/plots.h"
#include "plots/letters.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

EMBED(plots_report_css, "plots/report/page.css")
EMBED(plots_report_page, "plots/report/page.js")
EMBED(plots_report_draw, "plots/report/draw.js")
EMBED(plots_report_charts, "plots/report/charts.js")
EMBED(plots_report_tokens, "plots/report/tokens.js")
EMBED(plots_report_inside, "plots/report/inside.js")

const char *const page_format_names[PAGE_FORMATS + 1] = {"html", "md", "tex", NULL};

// --- texts -----------------------------------------------------------------------------------------------

static const char *html_escape(char c) {
    switch (c) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

// pdfLaTeX stops at letters that its fonts don't have, so they are written with their numbers
// (page_tex_start).
static bool put_far(const Page *p, const char *letter) {
    enum { LATIN = 0x180 };
    uint32_t c = letters_code(letter);
    if (c < LATIN) return false;
    text_printf(p->out, "\\letter{%s}{%04X}", letter, (unsigned)c);
    return true;
}

void page_text(const Page *p, const char *text) {
    char letter[LETTER_SIZE];
    while (letters_next(&text, letter)) {
        if (p->format == PAGE_TEX && put_far(p, letter)) continue;
        const char *escaped = p->format == PAGE_TEX ? letters_tex(*letter) : html_escape(*letter);
        if (p->format == PAGE_MD && (*letter == '"' || *letter == '\'')) escaped = NULL;
        // Markdown may contain HTML, so both HTML and Markdown's own marks are escaped.
        if (p->format == PAGE_MD && strchr("\\`*_{}[]()#+!|~$", *letter)) text_puts(p->out, "\\");
        if (p->format == PAGE_TEX && *letter == '-' && *text == '-')
            escaped = "-{}"; // two hyphens would become a dash
        text_puts(p->out, escaped ? escaped : letter);
    }
}

static void put_between(const Page *p, const char *before, const char *text, const char *after) {
    text_puts(p->out, before);
    page_text(p, text);
    text_puts(p->out, after);
}

// --- the page --------------------------------------------------------------------------------------------

#define CONTENTS_HERE "<!-- contents -->" // no title can contain it: its '<' is escaped

// The policy keeps the page from loading anything.
static void open_html(const Page *p, const char *title, const char *made) {
    text_puts(p->out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n");
    put_between(p, "<title>", title, "</title>\n<style>\n");
    text_puts(p->out, plots_report_css);
    put_between(p,
                "</style>\n</head>\n<body>\n<a class=skip href=\"#main\">skip to the results</a>\n"
                "<header><h1>",
                title, "</h1>");
    put_between(p, "<p>", made,
                "</p></header>\n" CONTENTS_HERE
                "\n<main id=main>\n<noscript><p>This page draws its figures by a "
                "script, which this browser doesn't run. &#39;outpace plot NAME&#39; draws them into "
                "files.</p></noscript>\n");
}

void page_open(const Page *p, const char *title, const char *made) {
    assert(p->out && p->format < PAGE_FORMATS && (p->contents != NULL) == (p->format == PAGE_HTML));
    switch (p->format) {
    case PAGE_HTML: open_html(p, title, made); return;
    case PAGE_MD: put_between(p, "# ", title, "\n\n"), page_sentence(p, made); return;
    default:
        text_puts(p->out,
                  "\\documentclass[a4paper]{article}\n"
                  "\\ifdefined\\Umathchar\\usepackage{fontspec}\n" // LuaLaTeX, XeLaTeX
                  "\\else\\usepackage[utf8]{inputenc}\\usepackage[T1]{fontenc}\n"
                  "\\IfFileExists{lmodern.sty}{\\usepackage{lmodern}}{}\\fi\n"
                  "\\usepackage[margin=15mm,landscape]{geometry}\n\\usepackage{graphicx,longtable}\n");
        page_tex_start(p);
        put_between(p, "\\begin{document}\n\\section*{", title, "}\n"), page_sentence(p, made);
    }
}

void page_tex_start(const Page *p) {
    text_puts(p->out, "\\providecommand\\letter[2]{\\ifdefined\\Umathchar #1\\else[U+#2]\\fi}\n");
}

// Inserts the contents, which are complete only at the end of the page.
static void put_contents(const Page *p) {
    Text all = {0};
    const char *here = strstr(text_get(p->out), CONTENTS_HERE);
    if (!here || !p->contents || !p->contents->length) return;
    text_add(&all, text_get(p->out), (size_t)(here - text_get(p->out)));
    text_printf(
        &all,
        "<nav aria-label=contents><details open><summary>Contents</summary><ul>\n%s</ul></details></nav>",
        text_get(p->contents));
    text_puts(&all, here + strlen(CONTENTS_HERE));
    text_release(p->out);
    *p->out = all;
}

void page_close(const Page *p) {
    if (p->format == PAGE_TEX) text_puts(p->out, "\\end{document}\n");
    if (p->format != PAGE_HTML) return;
    LOCAL_TEXT look = {0};
    chart_put_look(&look);
    text_puts(p->out, p->contents->length ? "</section>\n</main>\n" : "</main>\n");
    page_data(p, "look", text_get(&look));
    put_contents(p);
    text_puts(p->out, "<script>\n");
    text_puts(p->out, plots_report_page);
    text_puts(p->out, plots_report_draw);
    text_puts(p->out, plots_report_charts);
    text_puts(p->out, plots_report_tokens);
    text_puts(p->out, plots_report_inside);
    text_puts(p->out, "</script>\n</body>\n</html>\n");
}

typedef struct Frame {
    const char *before, *after;
} Frame;

static void put_framed(const Page *p, const Frame frames[PAGE_FORMATS], const char *text) {
    put_between(p, frames[p->format].before, text, frames[p->format].after);
}

// Writes a line of the contents. Headings and names are the program's own.
static void put_link(const Page *p, const char *attributes, const char *id, const char *title) {
    text_printf(p->contents, "<li%s><a href=\"#%s\">", attributes, id);
    page_text(&(Page){PAGE_HTML, p->contents, NULL}, title);
    text_puts(p->contents, "</a>\n");
}

static void open_section(const Page *p, const char *title) {
    char id[64] = "";
    for (size_t i = 0; title[i] && i + 1 < sizeof id; i++) id[i] = title[i] == ' ' ? '-' : title[i];
    if (p->contents->length) text_puts(p->out, "</section>\n");
    put_link(p, "", id, title);
    text_printf(p->out, "<section id=\"%s\" aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">", id, id, id);
    page_text(p, title);
    text_puts(p->out, "</h2>\n");
}

void page_heading(const Page *p, const char *text) {
    static const Frame FRAMES[PAGE_FORMATS] = {
        {"<h2>", "</h2>\n"}, {"\n## ", "\n\n"}, {"\n\\subsection*{", "}\n"}};
    if (p->contents) open_section(p, text);
    else put_framed(p, FRAMES, text);
}

// A long explanation is folded on a page that can unfold it.
void page_about(const Page *p, const char *text) {
    enum { LONG_ABOUT = 160 };
    if (p->format != PAGE_HTML || strlen(text) < LONG_ABOUT) page_sentence(p, text);
    else
        put_between(p, "<details class=about><summary>How to read this table</summary><p>", text,
                    "</p></details>\n");
}

void page_sentence(const Page *p, const char *text) {
    static const Frame FRAMES[PAGE_FORMATS] = {{"<p>", "</p>\n"}, {"", "\n\n"}, {"", "\n\n"}};
    put_framed(p, FRAMES, text);
}

void page_verdict(const Page *p, const char *about, const char *sentence, const char *kind) {
    const char *badge = strcmp(kind, "finding") == 0 ? "finding"
                        : strcmp(kind, "bad") == 0   ? "not lossless"
                                                     : "no finding";
    if (p->format == PAGE_HTML) {
        text_printf(p->out, "<div class=\"verdict %s\">", kind);
        put_between(p, "<h3>", about, "</h3> ");
        text_printf(p->out, "<span class=badge>%s</span> ", badge);
        put_between(p, "<p>", sentence, "</p></div>\n");
    } else {
        put_between(p, p->format == PAGE_MD ? "- **" : "\\textbf{", about,
                    p->format == PAGE_MD ? ":** " : "}: ");
        put_between(p, "", sentence, p->format == PAGE_MD ? "\n" : "\n\n");
    }
}

// Writes a line in typewriter type that can be copied from the page: LaTeX would join hyphens, bend quotes
// and drop blanks. An empty line needs a box to exist.
static void put_typed(const Page *p, const char *line) {
    static const char *const TYPED[][2] = {
        {"-", "{-}"}, {"'", "\\textquotesingle{}"}, {"\"", "\\textquotedbl{}"}, {"`", "\\textasciigrave{}"}};
    enum { KINDS = sizeof TYPED / sizeof *TYPED };
    char letter[LETTER_SIZE], before = ' ';
    if (!*line) text_puts(p->out, "\\mbox{}");
    for (; letters_next(&line, letter); before = *letter) {
        int kind = 0;
        while (kind < KINDS && *letter != *TYPED[kind][0]) kind++;
        if (kind < KINDS) text_puts(p->out, TYPED[kind][1]);
        else if (*letter == ' ' && before == ' ') text_puts(p->out, "~");
        else page_text(p, letter);
    }
}

// Other control characters become '?'. In Markdown, lines after four spaces need no escapes.
void page_code(const Page *p, const char *text) {
    LOCAL_TEXT line = {0};
    text_puts(p->out, p->format == PAGE_HTML  ? "<pre tabindex=0>"
                      : p->format == PAGE_TEX ? "\\begin{flushleft}\\ttfamily\\frenchspacing\n"
                                              : "\n");
    while (*text) {
        size_t n = strcspn(text, "\n");
        char letter[LETTER_SIZE];
        text_clear(&line);
        text_add(&line, text, n);
        const char *at = text_get(&line);
        text_puts(p->out, p->format == PAGE_MD ? "    " : "");
        if (p->format == PAGE_MD)
            while (letters_next(&at, letter)) text_puts(p->out, letter);
        else if (p->format == PAGE_TEX) put_typed(p, at);
        else page_text(p, at);
        text_puts(p->out, p->format == PAGE_TEX ? "\\\\\n" : "\n");
        text += n + (text[n] != 0);
    }
    text_puts(p->out, p->format == PAGE_HTML  ? "</pre>\n"
                      : p->format == PAGE_TEX ? "\\end{flushleft}\n"
                                              : "\n");
}

enum { LONG = 40 }; // letters of a text that the page may break into lines

// --- tables ----------------------------------------------------------------------------------------------

static const char *value_text(const Rows *r, int column, char own[MEASURED_SIZE]) {
    double value = rows_real(r, column);
    switch (rows_type(r, column)) {
    case VALUE_NULL: return "-";
    case VALUE_REAL:
        if (fabs(value) < 1e9 && (value == 0 || fabs(value) >= 1e-3))
            return measured_text(own, value, NAN, NAN);
        snprintf(own, MEASURED_SIZE, "%.3g", value);
        return own;
    default: return rows_text(r, column);
    }
}

static bool is_number(const Rows *r, int column) {
    return rows_type(r, column) == VALUE_INT || rows_type(r, column) == VALUE_REAL;
}

// A reader can scroll the table with the keys, and hears its name first.
static void open_table(const Page *p, const char *kind, const char *caption) {
    put_between(p, "<div class=scroll role=region tabindex=0 aria-label=\"", caption, "\">");
    text_printf(p->out, "<table%s>\n", kind);
    put_between(p, "<caption>", caption, "</caption>\n");
}

static void put_in_row(const Page *p, int column, const char *tag, const char *text) {
    put_between(p,
                p->format == PAGE_HTML ? tag
                : p->format == PAGE_MD ? "| "
                : column               ? " & "
                                       : "",
                text, p->format == PAGE_MD ? " " : "");
}

void page_table(const Page *p, const char *caption, const PageColumn *columns, int count) {
    if (p->format == PAGE_HTML) {
        open_table(p, " class=rows", caption);
        text_puts(p->out, "<thead><tr>");
    }
    if (p->format == PAGE_TEX) {
        text_puts(p->out, count > 12  ? "{\\tiny\\setlength{\\tabcolsep}{2pt}\n"
                          : count > 8 ? "{\\scriptsize\\setlength{\\tabcolsep}{3pt}\n"
                                      : "{\\footnotesize\n");
        text_puts(p->out, "\\begin{longtable}{");
        for (int i = 0; i < count; i++) text_puts(p->out, columns[i].tex);
        text_puts(p->out, "}\n");
    }
    for (int i = 0; i < count; i++) put_in_row(p, i, "<th scope=col>", columns[i].name);
    if (p->format == PAGE_HTML) text_puts(p->out, "</thead>\n<tbody>\n");
    if (p->format == PAGE_TEX) text_puts(p->out, " \\\\ \\hline\n");
    if (p->format != PAGE_MD) return;
    text_puts(p->out, "|\n");
    for (int i = 0; i < count; i++) text_puts(p->out, columns[i].number ? "|---:" : "|---");
    text_puts(p->out, "|\n");
}

void page_cell(const Page *p, int column, const char *text, bool number) {
    if (p->format == PAGE_HTML && column == 0) text_puts(p->out, "<tr>");
    put_in_row(p, column, number ? "<td class=n>" : strlen(text) > LONG ? "<td class=long>" : "<td>", text);
}

void page_end_row(const Page *p) {
    text_puts(p->out, p->format == PAGE_HTML ? "\n" : p->format == PAGE_MD ? "|\n" : " \\\\\n");
}

void page_columns(const Page *p, const Rows *r, const char *caption) {
    PageColumn columns[PAGE_MOST_COLUMNS];
    int count = rows_columns(r);
    assert(count <= PAGE_MOST_COLUMNS);
    for (int i = 0; i < count; i++) columns[i] = (PageColumn){rows_name(r, i), is_number(r, i), "l"};
    page_table(p, caption, columns, count);
}

void page_row(const Page *p, const Rows *r) {
    char own[MEASURED_SIZE];
    for (int i = 0; i < rows_columns(r); i++) page_cell(p, i, value_text(r, i, own), is_number(r, i));
    page_end_row(p);
}

void page_end_table(const Page *p) {
    static const char *const ENDS[PAGE_FORMATS] = {"</table></div>\n", "\n", "\\end{longtable}}\n"};
    text_puts(p->out, ENDS[p->format]);
}

void page_facts(const Page *p, const Rows *r, const char *caption) {
    char own[MEASURED_SIZE];
    if (p->format == PAGE_HTML) open_table(p, "", caption);
    if (p->format == PAGE_MD) text_puts(p->out, "| | |\n|---|---|\n");
    if (p->format == PAGE_TEX) text_puts(p->out, "{\\footnotesize\n\\begin{longtable}{lp{20cm}}\n");
    for (int i = 0; i < rows_columns(r); i++) {
        if (rows_type(r, i) == VALUE_NULL) continue;
        put_between(p,
                    p->format == PAGE_HTML ? "<tr><th scope=row>"
                    : p->format == PAGE_MD ? "| "
                                           : "",
                    rows_name(r, i),
                    p->format == PAGE_HTML ? "<td class=long>"
                    : p->format == PAGE_MD ? " | "
                                           : " & ");
        put_between(p, "", value_text(r, i, own),
                    p->format == PAGE_HTML ? "\n"
                    : p->format == PAGE_MD ? " |\n"
                                           : " \\\\\n");
    }
    page_end_table(p);
}

// --- figures ---------------------------------------------------------------------------------------------

// Data of the page's script. In JSON a '<' is always part of a string, and never opens a tag here.
static void put_data(const Page *p, const char *json) {
    text_puts(p->out, "<script type=\"application/json\">");
    for (; *json; json++)
        if (*json == '<') text_puts(p->out, "\\u003c");
        else text_add(p->out, json, 1);
    text_puts(p->out, "</script>\n");
}

void page_chart(const Page *p, const char *name, const char *title, const char *json) {
    assert(p->format == PAGE_HTML && p->contents);
    put_link(p, " class=figure", name, title);
    text_printf(p->out, "<figure id=\"%s\" class=chart>\n", name);
    put_between(p, "<figcaption>", title, "</figcaption>\n");
    put_data(p, json);
    text_puts(p->out, "</figure>\n");
}

void page_data(const Page *p, const char *name, const char *json) {
    assert(p->format == PAGE_HTML);
    text_printf(p->out, "<div id=\"%s\" hidden>", name);
    put_data(p, json);
    text_puts(p->out, "</div>\n");
}

void page_figure_file(const Page *p, const char *file, const char *title) {
    assert(p->format != PAGE_HTML);
    if (p->format == PAGE_MD) {
        put_between(p, "![", title, "](");
        text_printf(p->out, "<%s>)\n\n", file);
    } else
        text_printf(
            p->out,
            "\n\\includegraphics[width=0.9\\linewidth,height=0.9\\textheight,keepaspectratio]{%s}\n\n", file);
}
