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

// For LaTeX in another page: the definitions that must come first. page_open writes them itself.
void page_tex_start(const Page *p);

typedef struct PageColumn {
    const char *name;
    bool number;     // right-aligned
    const char *tex; // the column of LaTeX's tabular
} PageColumn;

// A table: its heads, its cells from left to right, the ends of its rows, its end. The caption is for those
// who hear the page.
void page_table(const Page *p, const char *caption, const PageColumn *columns, int count);
void page_cell(const Page *p, int column, const char *text, bool number);
void page_end_row(const Page *p);
void page_end_table(const Page *p);

// The same of a query: its columns' names, a row. Numbers have three significant digits.
enum { PAGE_MOST_COLUMNS = 64 };
void page_columns(const Page *p, const Rows *r, const char *caption);
void page_row(const Page *p, const Rows *r);

// One row as a table of names and values, without unknown values.
void page_facts(const Page *p, const Rows *r, const char *caption);

// A figure: of an HTML page its data, which report/charts.js draws (data.h); otherwise a file next to the
// page.
void page_chart(const Page *p, const char *name, const char *title, const char *json);
void page_figure_file(const Page *p, const char *file, const char *title);

// JSON that the script of an HTML page finds in the element of this id.
void page_data(const Page *p, const char *name, const char *json);
