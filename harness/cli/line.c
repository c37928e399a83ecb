// Invariant: `there` is true only while the terminal's line holds our text, so that line_clear prints nothing
// twice.

#include "engine/base/clock.h"
#include "harness/cli/signals.h"
#include "harness/cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

static const double ON_A_TERMINAL_S = 0.2, ELSEWHERE_S = 60;

static double now(void) { return clock_now(clock_monotonic()); }

// Elsewhere the first line also comes after a minute: most commands are done by then.
void line_begin(Line *l, bool on) {
    *l = (Line){.on = on, .terminal = isatty(STDERR_FILENO)};
    if (!l->terminal) l->shown = now();
}

bool line_due(const Line *l) {
    return l->on && now() - l->shown >= (l->terminal ? ON_A_TERMINAL_S : ELSEWHERE_S);
}

// Columns of the terminal behind a descriptor; if unknown, $COLUMNS, or 80.
static int line_columns(int descriptor) {
    struct winsize size;
    if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const char *told = getenv("COLUMNS");
    long columns = told ? strtol(told, NULL, 10) : 0;
    return columns > 0 && columns < 10000 ? (int)columns : 80;
}

// Bytes that are not UTF-8 count as one column each.
size_t line_fit(const char *text, int columns) {
    size_t n = 0;
    while (text[n]) {
        utf8proc_int32_t c;
        utf8proc_ssize_t bytes = utf8proc_iterate((const utf8proc_uint8_t *)text + n, -1, &c);
        columns -= bytes > 0 ? utf8proc_charwidth(c) : 1;
        if (columns < 0) break;
        n += bytes > 0 ? (size_t)bytes : 1;
    }
    return n;
}

// A text as wide as the terminal would move some terminals' cursor to the next line.
void line_show(Line *l, const char *text) {
    if (!l->on) return;
    const char *shown = SHOWN(text);
    if (l->terminal)
        fprintf(stderr, "\r%.*s\033[K", (int)line_fit(shown, line_columns(STDERR_FILENO) - 1), shown);
    else fprintf(stderr, "%s\n", shown);
    l->there = l->terminal;
    l->shown = now();
}

void line_clear(Line *l) {
    if (l->there) fputs("\r\033[K", stderr);
    l->there = false;
}

void line_left(double seconds, Text *out) {
    if (seconds < 90) text_printf(out, "%.0f s left", seconds);
    else if (seconds < 5400) text_printf(out, "%.0f min left", seconds / 60);
    else text_printf(out, "%.1f h left", seconds / 3600);
}

void line_share(Line *l, const char *what, double share, Text *out) {
    double at = now();
    if (!l->what || strcmp(l->what, what) != 0) {
        l->what = what;
        l->began = at;
    }
    text_puts(out, what);
    if (share >= 0) text_printf(out, " %.0f%%", 100 * share);
    if (share > 0.02 && at - l->began > 2) {
        text_puts(out, ", ");
        line_left((at - l->began) * (1 - share) / share, out);
    }
}

static bool show(void *state, const char *what, double share) {
    Line *l = state;
    if (what && line_due(l)) {
        LOCAL_TEXT work = {0}, text = {0};
        line_share(l, what, share, &work);
        int room = l->terminal ? line_columns(STDERR_FILENO) - 3 - (int)work.length : (int)sizeof l->at;
        text_printf(&text, "%.*s%s%s", (int)line_fit(l->at, room), l->at, l->at[0] ? ": " : "",
                    text_get(&work));
        line_show(l, text_get(&text));
    }
    return !interrupt_seen();
}

Progress line_progress(Line *l) { return (Progress){show, l}; }
