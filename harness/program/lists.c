#include "harness/program/lists.h"

#include <errno.h>
#include <stdlib.h>

typedef struct {
    const char *what, *at;
    int low, high;
    Error *e;
} Reader;

static bool wrong(const Reader *r) {
    return error_input(r->e,
                       "%s has '%.20s', must be numbers from %d to %d: 1,2,4 or 1..16 or 2..14+2 or 1..64*2",
                       r->what, r->at, r->low, r->high);
}

static bool read_number(Reader *r, int *out) {
    char *end;
    errno = 0;
    long n = strtol(r->at, &end, 10);
    if (end == r->at || errno || n < r->low || n > r->high) return wrong(r);
    *out = (int)n;
    r->at = end;
    return true;
}

typedef struct {
    int from, to, step;
    bool multiplied;
} Range;

// One number or range after a comma.
static bool read_item(Reader *r, Range *x) {
    *x = (Range){.step = 1};
    if (!read_number(r, &x->from)) return false;
    x->to = x->from;
    if (r->at[0] == '.' && r->at[1] == '.') {
        r->at += 2;
        if (!read_number(r, &x->to) || x->to < x->from) return wrong(r);
        if (*r->at == '+' || *r->at == '*') {
            x->multiplied = *r->at++ == '*';
            if (!read_number(r, &x->step) || x->step < 1 + x->multiplied || (x->multiplied && x->from < 1))
                return wrong(r);
        }
    }
    return *r->at == 0 || *r->at == ',' || wrong(r);
}

bool int_list_parse(const char *text, const char *what, int low, int high, IntList *out, Error *e) {
    Reader r = {what, text, low, high, e};
    *out = (IntList){.count = 0};
    for (;;) {
        Range x;
        if (!read_item(&r, &x)) return false;
        for (long n = x.from; n <= x.to; n = x.multiplied ? n * x.step : n + x.step) {
            if (out->count == INT_LIST_MAX)
                return error_input(e, "%s has more than %d numbers", what, INT_LIST_MAX);
            out->items[out->count++] = (int)n;
        }
        if (*r.at == 0) return true;
        r.at++;
    }
}
