// A page of headings, sentences, tables and figures, written as HTML (one file that needs nothing else),
// Markdown or LaTeX. Every text that goes in is of foreign origin: it comes out as that text.
#pragma once
#include "engine/base/text.h"
#include "results/rows.h"

typedef enum { PAGE_HTML, PAGE_MD, PAGE_TEX, PAGE_FORMATS } PageFormat;
extern const char *const page_format_names[PAGE_FORMATS + 1]; // "html", ...; NULL for the last

typedef struct Page {
    PageFormat format;
    Text *out;
    Text *contents; // of an HTML page: its headings, which stand after the title; NULL: no contents
} Page;

void page_open(const Page *p, const char *title);
void page_close(const Page *p);
void page_text(const Page *p, const char *text); // on a line: escaped as the format wants it
void page_heading(const Page *p, const char *text);
void page_sentence(const Page *p, const char *text);
void page_code(const Page *p, const char *text); // as it is, line by line

// What it is about, and what it says; kind: a class of page.css, "finding", "open" or "bad".
void page_verdict(const Page *p, const char *about, const char *says, const char *kind);

// LaTeX that stands in another's page: what it needs, ahead of all else; and a table, up to its columns'
// kinds, in type that lets so many columns stand beside each other. page_open and page_columns say both
// themselves.
void page_tex_start(const Page *p);
void page_tex_table(const Page *p, int columns);

// A table's columns, as a query names them; its rows; its end. Numbers have three digits after the point.
void page_columns(const Page *p, const Rows *r);
void page_row(const Page *p, const Rows *r);
void page_end_table(const Page *p);

// One row as a table of names and values; values that are unknown are left out.
void page_facts(const Page *p, const Rows *r);

// HTML: an SVG, in the page's colours; else a file beside the page.
void page_figure(const Page *p, const char *name, const char *title, const char *svg);
void page_figure_file(const Page *p, const char *file, const char *title);
