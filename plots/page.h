// A page of headings, sentences, tables and figures, written as HTML (one self-contained file), Markdown or
// LaTeX. Every text may be of foreign origin: it appears on the page as that text, whatever is in it.
#pragma once
#include "engine/base/text.h"
#include "results/rows.h"

typedef enum { PAGE_HTML, PAGE_MD, PAGE_TEX, PAGE_FORMATS } PageFormat;
extern const char *const page_format_names[PAGE_FORMATS + 1]; // "html", ...; NULL for the last

typedef struct Page {
    PageFormat format;
    Text *out;
    Text *contents; // of a whole HTML page: links to its headings and figures; NULL: a part of another page
} Page;

void page_open(const Page *p, const char *title, const char *made); // made: a line under the title
void page_close(const Page *p);
void page_text(const Page *p, const char *text); // within a line, escaped for the format
void page_heading(const Page *p, const char *text);
void page_sentence(const Page *p, const char *text);
void page_about(const Page *p, const char *text); // a sentence on how to read a table
void page_code(const Page *p, const char *text);  // verbatim, line by line

// A subject and a sentence on it; kind: a class of page.css, "finding", "open" or "bad".
void page_verdict(const Page *p, const char *about, const char *sentence, const char *kind);

// For LaTeX in another page: the definitions that must come first; and the start of a table up to its
// columns' kinds, in a type size for that many columns. page_open and page_columns write both themselves.
void page_tex_start(const Page *p);
void page_tex_table(const Page *p, int columns);

// A table: its columns by the query's names, its rows, its end. Numbers have three significant digits. The
// caption is for those who hear the page.
void page_columns(const Page *p, const Rows *r, const char *caption);
void page_row(const Page *p, const Rows *r);
void page_end_table(const Page *p);

// One row as a table of names and values, without unknown values.
void page_facts(const Page *p, const Rows *r, const char *caption);

// A figure: of an HTML page its data, which report/charts.js draws (chart.h); otherwise a file next to the
// page.
void page_chart(const Page *p, const char *name, const char *title, const char *json);
void page_figure_file(const Page *p, const char *file, const char *title);

// JSON that the script of an HTML page finds in the element of this id.
void page_data(const Page *p, const char *name, const char *json);
