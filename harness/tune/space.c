#include "harness/tune/space.h"

#include "engine/base/memory.h"
#include "simulate/scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- what points plan ------------------------------------------------------------------------------------

static const char *text_of(const PointName *n, const char *name) {
    for (int i = 0; i < n->param_count; i++)
        if (strcmp(n->params[i].section, "method") == 0 && strcmp(n->params[i].name, name) == 0)
            return n->params[i].value;
    return "0";
}

static int value_of(const PointName *n, const char *name) { return (int)strtol(text_of(n, name), NULL, 10); }

// The pool is filled by the window: few columns leave many n-grams untried (Lookahead's law has b = W = G).
static void plan_lookahead(const PointName *n, TuningPoint *out) {
    LookaheadStep step = {.W = value_of(n, "W"), .N = value_of(n, "N"), .G = value_of(n, "G")};
    out->N = step.N;
    out->b = step.W < step.G ? step.W : step.G;
    out->rows = scaling_rows(&step, 1, 0);
}

static void plan_ngrammys(const PointName *n, TuningPoint *out) {
    out->N = value_of(n, "w") + 1;
    out->b = value_of(n, "k");
    out->rows = 1 + value_of(n, "k") * value_of(n, "w");
}

static void plan_draft(const PointName *n, TuningPoint *out) {
    out->N = value_of(n, "gamma") + 1;
    out->b = 1;
    out->rows = out->N;
}

// A phrase after a draft that is right all along goes on by beta - 1 tokens.
static void plan_ouroboros(const PointName *n, TuningPoint *out) {
    int behind = value_of(n, "beta") - 1;
    out->N = value_of(n, "gamma") + behind + 1;
    out->b = 1;
    out->rows = 1 + value_of(n, "gamma") + value_of(n, "K") * behind;
}

static const TuneMethod METHODS[] = {
    {"lookahead",
     {{"W", "[1..6, 8, 10, 12, 15]"}, {"N", "2..7"}, {"G", "[1..6, 8, 10, 12, 15]"}},
     plan_lookahead},
    {"ngrammys", {{"k", "[1..6, 8, 10, 12, 16, 20, 25]"}, {"w", "[1..8, 10, 12, 14]"}}, plan_ngrammys},
    {"kangaroo", {{"gamma", "[1..8, 10, 12]"}, {"eta", "0..0.9+0.1"}}, plan_draft},
    {"ouroboros",
     {{"gamma", "[2, 3, 4, 6, 8, 10, 12, 16]"}, {"K", "[0, 1, 2, 4, 8, 15, 20]"}, {"beta", "[3, 5, 7]"}},
     plan_ouroboros},
    {"speculative", {{"gamma", "[1..12, 14, 16]"}}, plan_draft},
};
enum { METHOD_COUNT = sizeof METHODS / sizeof *METHODS };

const TuneMethod *tune_method_find(const char *name, Error *e) {
    Text known = {0};
    for (int i = 0; i < METHOD_COUNT; i++)
        if (strcmp(METHODS[i].name, name) == 0) return &METHODS[i];
    for (int i = 0; i < METHOD_COUNT; i++) text_printf(&known, "%s%s", i ? ", " : "", METHODS[i].name);
    error_input(
        e,
        "tune: there is no space for method '%s'; there are %s; of any other 'outpace run' sweeps a config",
        name, text_get(&known));
    text_release(&known);
    return NULL;
}

// --- places ----------------------------------------------------------------------------------------------

// A number grows by shares, a word is as far from the next as any.
static double coordinate(const YamlNode *axis, const char *text) {
    char *end;
    double x = strtod(text, &end);
    if (end != text && *end == 0) return log1p(x);
    int place = 0;
    for (const YamlNode *v = axis->first; v && strcmp(v->text, text) != 0; v = v->next) place++;
    return place;
}

static void place_points(TuneSpace *s, const double *values) {
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int i = 0; i < s->count; i++) low = fmin(low, values[i]), high = fmax(high, values[i]);
    if (high <= low) return;
    for (int i = 0; i < s->count; i++) s->points[i].place[s->axes] = (values[i] - low) / (high - low);
    s->axes++;
}

static bool name_points(const Plan *p, PointName *names) {
    for (int i = 0; i < p->sweep.count; i++)
        if (!point_name(&p->experiment, &p->sweep.points[i], &names[i])) return false;
    return true;
}

static bool place_all(const Plan *p, const PointName *names, TuneSpace *s) {
    const YamlNode *matrix = p->experiment.methods[0].matrix;
    double *values = mem_new((size_t)s->count, sizeof *values);
    for (const YamlNode *axis = matrix ? matrix->first : NULL; axis; axis = axis->next) {
        if (axis->count < 2) continue;
        if (s->axes == TUNING_MOST_AXES) break;
        for (int i = 0; i < s->count; i++) values[i] = coordinate(axis, text_of(&names[i], axis->key));
        place_points(s, values);
    }
    mem_free(values);
    s->places = mem_new((size_t)s->count * (size_t)(s->axes ? s->axes : 1), sizeof *s->places);
    for (int i = 0; i < s->count; i++)
        memcpy(s->places + i * s->axes, s->points[i].place, (size_t)s->axes * sizeof *s->places);
    return true;
}

bool tune_space_open(const Plan *p, const TuneMethod *method, TuneSpace *out) {
    *out = (TuneSpace){.count = p->sweep.count, .most_rows = 1};
    out->points = mem_new((size_t)out->count, sizeof *out->points);
    PointName *names = mem_new((size_t)out->count, sizeof *names);
    bool ok = (out->points && names);
    ok = ok && name_points(p, names);
    for (int i = 0; ok && i < out->count; i++) {
        method->plan(&names[i], &out->points[i]);
        if (out->points[i].N > out->longest) out->longest = out->points[i].N;
        out->most_rows = fmax(out->most_rows, out->points[i].rows);
    }
    ok = ok && place_all(p, names, out);
    for (int i = 0; names && i < out->count; i++) point_name_release(&names[i]);
    mem_free(names);
    return ok;
}

void tune_space_release(TuneSpace *s) {
    mem_free(s->points);
    mem_free(s->places);
    *s = (TuneSpace){0};
}

// --- a point's words -------------------------------------------------------------------------------------

bool tune_method_text(const Experiment *x, const Point *p, Text *out) {
    PointName name;
    const YamlNode *matrix = p->method >= 0 ? x->methods[p->method].matrix : NULL;
    if (!point_name(x, p, &name)) return false;
    text_puts(out, name.method);
    for (const YamlNode *axis = matrix ? matrix->first : NULL; axis; axis = axis->next)
        text_printf(out, "%s%s=%s", axis == matrix->first ? ":" : ",", axis->key, text_of(&name, axis->key));
    point_name_release(&name);
    return true;
}
