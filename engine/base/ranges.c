// Reading lists of numbers. A number's text is cut out before strtod sees it: the "2." of "2..14" isn't one.
#include "engine/base/ranges.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Digits and at most one dot; strtod alone would read the "2." of "2..14".
static bool read_number(const char **at, double *out) {
    const char *p = *at + (**at == '-');
    if (!isdigit((unsigned char)*p)) return false;
    while (isdigit((unsigned char)*p)) p++;
    if (p[0] == '.' && isdigit((unsigned char)p[1]))
        for (p++; isdigit((unsigned char)*p);) p++;
    char text[64];
    size_t n = (size_t)(p - *at);
    if (n >= sizeof text) return false;
    memcpy(text, *at, n);
    text[n] = 0;
    *out = strtod(text, NULL);
    *at = p;
    return true;
}

bool range_starts(const char *text) {
    double x;
    return read_number(&text, &x) && strncmp(text, "..", 2) == 0;
}

bool range_read(const char **at, Range *r) {
    *r = (Range){.step = 1};
    if (!read_number(at, &r->from)) return false;
    r->to = r->from;
    if (strncmp(*at, "..", 2) != 0) return true;
    *at += 2;
    if (!read_number(at, &r->to)) return false;
    if (**at == '+' || **at == '*') {
        r->multiplied = *(*at)++ == '*';
        if (!read_number(at, &r->step)) return false;
    }
    bool grows = r->multiplied ? r->from > 0 && r->step > 1 : r->step > 0;
    return grows && r->from <= r->to;
}

// Rounding errors of the steps are forgiven: the last item may miss the end by a little, and
// -0.3 + 3 * 0.1 is 0, not 5.6e-17.
bool range_item(const Range *r, int i, double *out) {
    double x = r->multiplied ? r->from * pow(r->step, i) : r->from + i * r->step;
    if (!r->multiplied && fabs(x) < 1e-9 * r->step) x = 0;
    *out = x;
    return x <= r->to + 1e-9 * (fabs(r->to) + r->step);
}

static bool wrong_list(const char *what, const char *at, int low, int high, Error *e) {
    return error_input(e,
                       "%s has '%.20s', must be numbers from %d to %d: 1,2,4 or 1..16 or 2..14+2 or 1..64*2",
                       what, at, low, high);
}

bool int_list_parse(const char *text, const char *what, int low, int high, IntList *out, Error *e) {
    *out = (IntList){.count = 0};
    for (const char *at = text;; at++) {
        const char *from = at;
        Range r;
        double x;
        if (!range_read(&at, &r) || (*at && *at != ',')) return wrong_list(what, from, low, high, e);
        for (int i = 0; range_item(&r, i, &x); i++) {
            if (x < low || x > high || x != floor(x)) return wrong_list(what, from, low, high, e);
            if (out->count == INT_LIST_MAX)
                return error_input(e, "%s has more than %d numbers", what, INT_LIST_MAX);
            out->items[out->count++] = (int)x;
        }
        if (*at == 0) return true;
    }
}

int int_list_most(const IntList *l) {
    int most = 0;
    for (int i = 0; i < l->count; i++)
        if (l->items[i] > most) most = l->items[i];
    return most;
}

bool real_list_parse(const char *text, const char *what, double low, double high, RealList *out, Error *e) {
    *out = (RealList){.count = 0};
    for (const char *at = text;; at++) {
        double x;
        if (!read_number(&at, &x) || (*at && *at != ':') || !(x >= low && x <= high))
            return error_input(e, "%s is '%s', must be numbers from %g to %g with ':' between them", what,
                               text, low, high);
        if (out->count == REAL_LIST_MAX)
            return error_input(e, "%s has more than %d numbers", what, REAL_LIST_MAX);
        out->items[out->count++] = x;
        if (*at == 0) return true;
    }
}
