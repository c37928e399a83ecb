// The losses of a run. Invariant: points are in strictly ascending order of steps.
#include "harness/train/curve.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char curve_heads[] = "step\tloss\theld_out\n";

static void curve_check(const Curve *c) {
    assert(c->count <= c->capacity);
    assert(c->count < 2 || c->points[c->count - 2].step < c->points[c->count - 1].step); // the newest
}

void curve_add(Curve *c, int step, double loss, double held_out) {
    assert(!c->count || step >= c->points[c->count - 1].step);
    if (!c->count || c->points[c->count - 1].step != step) {
        *LIST_ADD(c->points, c->count, c->capacity) = (CurvePoint){step, NAN, NAN};
    }
    CurvePoint *p = &c->points[c->count - 1];
    if (!isnan(loss)) p->loss = loss;
    if (!isnan(held_out)) p->held_out = held_out;
    curve_check(c);
}

void curve_release(Curve *c) {
    mem_free(c->points);
    *c = (Curve){0};
}

// --- the table -------------------------------------------------------------------------------------------

static void put_number(Text *out, double x) {
    if (!isnan(x)) text_printf(out, "%.17g", x);
}

void curve_write(const Curve *c, Text *out) {
    text_puts(out, curve_heads);
    for (size_t i = 0; i < c->count; i++) {
        text_printf(out, "%d\t", c->points[i].step);
        put_number(out, c->points[i].loss);
        text_puts(out, "\t");
        put_number(out, c->points[i].held_out);
        text_puts(out, "\n");
    }
}

// The number at *at, and advances past it; NAN if there is none.
static double take_number(const char **at) {
    char *end;
    double x = strtod(*at, &end);
    bool there = end != *at;
    *at = end;
    return there ? x : NAN;
}

// Skips lines that aren't points.
void curve_read(Curve *c, const char *text, size_t n, int last_step) {
    for (const char *line = text, *end; (end = memchr(line, '\n', (size_t)(text + n - line)));
         line = end + 1) {
        char own[120];
        size_t length = (size_t)(end - line);
        if (length >= sizeof own) continue;
        memcpy(own, line, length);
        own[length] = 0;
        const char *loss = strchr(own, '\t'), *held_out = loss ? strchr(loss + 1, '\t') : NULL, *at = own;
        double step = take_number(&at), last = c->count ? c->points[c->count - 1].step : 0;
        if (!held_out || at != loss || !(step >= last + 1 && step <= last_step)) continue;
        own[held_out - own] = 0; // strtod must not skip an empty loss and read held_out for it
        loss++;
        held_out++;
        double first = take_number(&loss);
        curve_add(c, (int)step, first, take_number(&held_out));
    }
}

// --- letters ---------------------------------------------------------------------------------------------

enum { COLUMNS = 64, LINES = 12 };

typedef struct Column {
    double loss, held_out; // means; NAN: no point
} Column;

// The mean of a column's points, NAN if it has none.
static double mean_of(const Curve *c, int column, bool held_out) {
    double sum = 0, first = c->points[0].step, span = c->points[c->count - 1].step - first;
    int count = 0;
    for (size_t i = 0; i < c->count; i++) {
        double x = held_out ? c->points[i].held_out : c->points[i].loss;
        if ((int)((c->points[i].step - first) * (COLUMNS - 1) / span) != column || !isfinite(x)) continue;
        sum += x;
        count++;
    }
    return count ? sum / count : NAN;
}

void curve_draw(const Curve *c, Text *out) {
    Column columns[COLUMNS];
    double low = INFINITY, high = -INFINITY;
    if (c->count < 2) return;
    assert(c->points[0].step < c->points[c->count - 1].step);
    for (int i = 0; i < COLUMNS; i++) {
        columns[i] = (Column){mean_of(c, i, false), mean_of(c, i, true)};
        low = fmin(low, fmin(columns[i].loss, columns[i].held_out));
        high = fmax(high, fmax(columns[i].loss, columns[i].held_out));
    }
    if (!isfinite(low)) return;
    double unit = high > low ? (high - low) / (LINES - 1) : 1;
    for (int line = LINES - 1; line >= 0; line--) {
        double middle = low + line * unit;
        text_printf(out, "%8.3f |", middle);
        int used = COLUMNS;
        char letters[COLUMNS];
        for (int i = 0; i < COLUMNS; i++) {
            const Column *x = &columns[i];
            double from = middle - unit / 2, to = middle + unit / 2;
            letters[i] = x->held_out >= from && x->held_out < to ? 'o'
                         : x->loss >= from && x->loss < to       ? '*'
                                                                 : ' ';
        }
        while (used && letters[used - 1] == ' ') used--;
        text_printf(out, "%.*s\n", used, letters);
    }
    text_printf(out, "%8s +%-*d%d\n", "", COLUMNS - 6, c->points[0].step, c->points[c->count - 1].step);
    text_puts(out, "          * loss of the batches, o held out; by step\n");
}
