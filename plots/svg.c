// One pass over tags and the text between them. Text is left alone: gnuplot has escaped every '<' of it. What
// draws nothing goes: empty groups, line ends between tags, attributes that say what is so anyway.
#include "plots/svg.h"

#include <stdio.h>
#include <string.h>

static bool starts(const char *at, const char *word) { return strncmp(at, word, strlen(word)) == 0; }

// "rgb( 26,  26,  26)" is shorter by its digits. Those of style.gp that a dark page has others for are names.
static size_t put_colour(const char *at, Text *out) {
    static const struct {
        unsigned colour;
        const char *name;
    } NAMES[] = {
        {0x1a1a1a, "var(--ink)"},
        {0xdddddd, "var(--grid)"},
    };
    unsigned r, g, b;
    int n = 0;
    if (sscanf(at, "rgb( %3u , %3u , %3u )%n", &r, &g, &b, &n) != 3 || !n) return 0;
    unsigned colour = r << 16 | g << 8 | b;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (NAMES[i].colour == colour) {
            text_puts(out, NAMES[i].name);
            return (size_t)n;
        }
    text_printf(out, "#%06x", colour);
    return (size_t)n;
}

// Attributes that are not needed: 0 where at `at` is none.
static size_t needless(const char *at) {
    static const char *const WORDS[] = {" stroke-linecap=\"butt\"",
                                        " stroke-linejoin=\"miter\"",
                                        " class=\"gridline\"",
                                        " font-family=\"sans-serif\"",
                                        " xmlns=\"http://www.w3.org/2000/svg\"",
                                        " xmlns:xlink=\"http://www.w3.org/1999/xlink\""};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (starts(at, WORDS[i])) return strlen(WORDS[i]);
    return 0;
}

// Copies a tag, up to after its '>'.
static const char *put_tag(const char *at, const char *prefix, Text *out) {
    static const char *const BEFORE_ID[] = {" id='", " id=\"", "href='#", "href=\"#", "url(#"};
    static const char PAPER[] = "fill=\"#ffffff\"";
    while (*at && *at != '>') {
        size_t skip = needless(at);
        bool id = false;
        if (!skip && *at == 'r') skip = put_colour(at, out);
        if (!skip && starts(at, PAPER)) {
            text_puts(out, "fill=\"var(--paper)\"");
            skip = strlen(PAPER);
        }
        if (skip) {
            at += skip;
            continue;
        }
        skip = 1;
        for (size_t i = 0; i < sizeof BEFORE_ID / sizeof *BEFORE_ID && !id; i++)
            if ((id = starts(at, BEFORE_ID[i]))) skip = strlen(BEFORE_ID[i]);
        if (*at == '\n') text_puts(out, " ");
        else text_add(out, at, skip);
        if (id) text_puts(out, prefix);
        at += skip;
    }
    if (*at) text_add(out, at++, 1);
    return at;
}

// Past a group that holds nothing; NULL where at `at` is none.
static const char *empty_group(const char *at) {
    const char *end = starts(at, "<g ") ? strchr(at, '>') : NULL;
    if (!end) return NULL;
    end += 1 + strspn(end + 1, " \t\n");
    return starts(end, "</g>") ? end + strlen("</g>") : NULL;
}

void svg_inline(const char *svg, const char *prefix, Text *out) {
    const char *at = strstr(svg, "<svg"), *end;
    while (at && *at) {
        if (starts(at, "<title>") && (end = strstr(at, "</title>"))) at = end + strlen("</title>");
        else if ((end = empty_group(at))) at = end;
        else if (*at == '<') at = put_tag(at, prefix, out);
        else if (*at == '\n' || *at == '\t') at++;
        else text_add(out, at++, 1);
    }
}
