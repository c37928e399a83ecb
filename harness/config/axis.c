// Item i of a range is from + i * step or from * step^i, printed with ten digits, so that 0.1..0.9+0.1 gives
// the numbers that a user would have written.
#include "harness/config/axis.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Range {
    double from, to, step;
    bool multiplied;
} Range;

// A number of digits and at most one dot; strtod alone would take "2." of "2..14".
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

static bool starts_a_range(const char *text) {
    double x;
    return read_number(&text, &x) && strncmp(text, "..", 2) == 0;
}

static bool read_range(const char *text, Range *r) {
    *r = (Range){.step = 1};
    if (!read_number(&text, &r->from)) return false;
    text += 2; // the dots
    if (!read_number(&text, &r->to)) return false;
    if (*text == '+' || *text == '*') {
        r->multiplied = *text++ == '*';
        if (!read_number(&text, &r->step)) return false;
    }
    bool grows = r->multiplied ? r->from > 0 && r->step > 1 : r->step > 0;
    return *text == 0 && grows && r->from <= r->to;
}

// What rounding leaves of zero is zero: -0.3 + 3 * 0.1 is not 5.6e-17.
static double range_item(const Range *r, int i) {
    double x = r->multiplied ? r->from * pow(r->step, i) : r->from + i * r->step;
    return fabs(x) < 1e-9 * r->step && !r->multiplied ? 0 : x;
}

static bool add_value(YamlTree *t, YamlNode *list, const YamlNode *like, const char *text, Error *e) {
    if (list->count == AXIS_MAX)
        return yaml_error(like, e, "this axis has more than %d values: take larger steps", AXIS_MAX);
    return yaml_append(t, list, like, text, e);
}

// The last item may miss the end by what rounding does to its steps.
static bool add_range(YamlTree *t, YamlNode *list, const YamlNode *like, Error *e) {
    Range r;
    if (!read_range(like->text, &r))
        return yaml_error(like, e, "'%s' is no range: write 2..14, 2..14+2 or 1..64*2, the smaller first",
                          like->text);
    double slack = 1e-9 * (fabs(r.to) + r.step);
    for (int i = 0; range_item(&r, i) <= r.to + slack; i++) {
        char text[64];
        snprintf(text, sizeof text, "%.10g", range_item(&r, i));
        if (!add_value(t, list, like, text, e)) return false;
    }
    return true;
}

static bool add_item(YamlTree *t, YamlNode *list, const YamlNode *item, Error *e) {
    if (item->kind != NODE_VALUE)
        return yaml_error(item, e, "each item of an axis must be one value or a range such as 2..14+2");
    if (!*item->text) return yaml_error(item, e, "this value is empty: write one, or take it away");
    if (!item->quoted && starts_a_range(item->text)) return add_range(t, list, item, e);
    return add_value(t, list, item, item->text, e);
}

bool axis_expand(YamlTree *t, YamlNode *axis, Error *e) {
    YamlNode list = {.kind = NODE_LIST};
    if (axis->kind == NODE_MAP) return yaml_error(axis, e, "an axis must be a value, a list or a range");
    for (const YamlNode *item = axis->kind == NODE_LIST ? axis->first : axis; item; item = item->next) {
        if (!add_item(t, &list, item, e)) return false;
        if (axis->kind != NODE_LIST) break;
    }
    if (list.count == 0) return yaml_error(axis, e, "this axis has no values: write one, or take it away");
    axis->kind = NODE_LIST;
    axis->first = list.first;
    axis->last = list.last;
    axis->count = list.count;
    return true;
}
