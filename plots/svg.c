// One pass over tags and the text between them. Text is left alone: gnuplot has escaped every '<' of it.
#include "plots/svg.h"

#include <string.h>

static bool starts(const char *at, const char *word) { return strncmp(at, word, strlen(word)) == 0; }

// Copies a tag, up to after its '>'.
static const char *put_tag(const char *at, const char *prefix, Text *out) {
    static const char *const BEFORE_ID[] = {" id='", " id=\"", "href='#", "href=\"#", "url(#"};
    while (*at && *at != '>') {
        size_t skip = 1;
        bool id = false;
        for (size_t i = 0; i < sizeof BEFORE_ID / sizeof *BEFORE_ID && !id; i++)
            if ((id = starts(at, BEFORE_ID[i]))) skip = strlen(BEFORE_ID[i]);
        text_add(out, at, skip);
        if (id) text_puts(out, prefix);
        at += skip;
    }
    if (*at) text_add(out, at++, 1);
    return at;
}

void svg_inline(const char *svg, const char *prefix, Text *out) {
    const char *at = strstr(svg, "<svg");
    while (at && *at) {
        const char *end;
        if (starts(at, "<title>") && (end = strstr(at, "</title>"))) at = end + strlen("</title>");
        else if (*at == '<') at = put_tag(at, prefix, out);
        else text_add(out, at++, 1);
    }
}
