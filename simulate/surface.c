// The file is cut into lines and fields in place. The fit is gsl_multifit_nlinear over logarithms of the
// fitted numbers.
#include "simulate/surface.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "simulate/statistics.h"

#include <errno.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- the file --------------------------------------------------------------------------------------------

enum {
    MOST_BYTES = 16 << 20,
    MOST_FIELDS = 32,
    MOST_POINTS = 1 << 16,
    MOST_ROWS = 1 << 20,
    MOST_BATCH = 1 << 10
};

// Those from EXPERTS on may be missing.
typedef enum { TOKENS, CONTEXT, K, W, LAYOUT, SECONDS, EXPERTS, BATCH, COLUMN_COUNT } Column;
static const char *const COLUMNS[COLUMN_COUNT] = {"tokens", "context",  "k",       "w",
                                                  "layout", "median_s", "experts", "batch"};

typedef struct {
    const char *place;
    int line;
    int at[COLUMN_COUNT]; // which field a column is
    size_t capacity;
    Error *e;
} SurfaceReader;

// Cuts the line at its commas; gives the number of fields.
static int cut(char *line, char **fields) {
    int count = 0;
    while (line && count < MOST_FIELDS) fields[count++] = strsep(&line, ",");
    return count;
}

static bool read_header(SurfaceReader *r, char *line) {
    char *fields[MOST_FIELDS];
    int count = cut(line, fields);
    for (int c = 0; c < COLUMN_COUNT; c++) {
        r->at[c] = -1;
        for (int i = 0; i < count; i++)
            if (strcmp(fields[i], COLUMNS[c]) == 0) r->at[c] = i;
        if (r->at[c] < 0 && c < EXPERTS)
            return error_input(
                r->e,
                "%s:%d: there is no column '%s' among tokens, context, k, w, layout, median_s: "
                "'outpace bench --csv' prints them, docs/fit.md describes them",
                r->place, r->line, COLUMNS[c]);
    }
    return true;
}

static bool read_number(SurfaceReader *r, char **fields, Column c, double low, double high, double *out) {
    const char *text = fields[r->at[c]];
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    return (end != text && *end == 0 && !errno && *out >= low && *out <= high) ||
           error_input(r->e, "%s:%d: %s is '%.40s', must be a number from %g to %g", r->place, r->line,
                       COLUMNS[c], text, low, high);
}

static bool read_whole(SurfaceReader *r, char **fields, Column c, double low, double high, int *out) {
    double x;
    if (!read_number(r, fields, c, low, high, &x)) return false;
    *out = (int)x;
    return x == *out ||
           error_input(r->e, "%s:%d: %s is %g, must be a whole number", r->place, r->line, COLUMNS[c], x);
}

static bool read_point(SurfaceReader *r, char *line, SurfacePoint *out) {
    char *fields[MOST_FIELDS];
    int count = cut(line, fields), tokens, context, k, w, batch = 1;
    for (int c = 0; c < COLUMN_COUNT; c++)
        if (r->at[c] >= count)
            return error_input(r->e, "%s:%d: only %d fields, '%s' is missing", r->place, r->line, count,
                               COLUMNS[c]);
    if (!read_whole(r, fields, TOKENS, 1, MOST_ROWS, &tokens) ||
        !read_whole(r, fields, CONTEXT, 0, MOST_ROWS, &context) ||
        !read_whole(r, fields, K, 0, MOST_ROWS, &k) || !read_whole(r, fields, W, 0, MOST_ROWS, &w) ||
        (r->at[BATCH] >= 0 && !read_whole(r, fields, BATCH, 1, MOST_BATCH, &batch)) ||
        !read_number(r, fields, SECONDS, 1e-9, 1e6, &out->seconds))
        return false;
    const char *layout = fields[r->at[LAYOUT]];
    if (strcmp(layout, "chain") == 0) out->step = step_chain(tokens, context);
    else if (strcmp(layout, "tree") == 0 && k > 0) out->step = step_tree(k, w, context);
    else if (strcmp(layout, "batch") == 0 && k > 0) out->step = step_batch(k, w, context);
    else
        return error_input(r->e,
                           "%s:%d: layout is '%.40s' with k %d, must be chain, or tree or batch of k rows",
                           r->place, r->line, layout, k);
    // Rows of one tree may share nodes; the nodes that ran count.
    out->step.rows = out->step.read = tokens;
    out->step = step_shared(out->step, batch);
    return r->at[EXPERTS] < 0 || read_number(r, fields, EXPERTS, 0, MOST_ROWS, &out->step.experts);
}

static bool read_lines(SurfaceReader *r, char *text, Surface *out) {
    bool header = false;
    for (char *line; (line = strsep(&text, "\n"));) {
        size_t length = strlen(line);
        if (length && line[length - 1] == '\r') line[length - 1] = 0;
        r->line++;
        if (!*line) continue;
        if (!header) {
            if (!(header = read_header(r, line))) return false;
            continue;
        }
        if (out->count == MOST_POINTS)
            return error_input(r->e, "%s: more than %d points", r->place, MOST_POINTS);
        mem_grow(&out->points, &r->capacity, (size_t)out->count + 1, sizeof *out->points);
        if (!read_point(r, line, &out->points[out->count])) return false;
        out->count++;
    }
    return out->count || error_input(r->e, "%s: no points in it", r->place);
}

bool surface_parse(const char *bytes, size_t n, const char *place, Surface *out, Error *e) {
    SurfaceReader r = {.place = place, .e = e};
    *out = (Surface){0};
    if (n && memchr(bytes, 0, n)) return error_input(e, "%s: has a zero byte; not a text file", place);
    LOCAL_MEMORY char *text = mem_text(bytes, n);
    return read_lines(&r, text, out);
}

bool surface_open(const char *path, Surface *out, Error *e) {
    LOCAL_MEMORY char *data = NULL;
    size_t size;
    *out = (Surface){0};
    if (!file_read(path, MOST_BYTES, &data, &size, e)) return false;
    return surface_parse(data, size, path, out, e);
}

void surface_release(Surface *s) {
    mem_free(s->points);
    *s = (Surface){0};
}

// Knuth's selection: each point is taken with the chance that keeps the number exact.
void surface_hold_out(Surface *s, double share, uint64_t seed) {
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_set_error_handler(before);
    int wanted = (int)fmin(fmax(round(share * s->count), 1), s->count - 1);
    if (random) gsl_rng_set(random, (unsigned long)seed);
    for (int i = 0; i < s->count; i++) {
        double u = random ? gsl_rng_uniform(random) : 0;
        s->points[i].held_out = u * (s->count - i) < wanted;
        wanted -= s->points[i].held_out;
    }
    if (random) gsl_rng_free(random);
}

// --- the fit ---------------------------------------------------------------------------------------------

// The fitted numbers, as offsets into Hardware. `low` is the origin of the logarithm: overlap is at least 1.
// No machine computes more than its data sheet says, nor reads its cache faster than its weights.
static const struct {
    size_t offset;
    double low, start, high; // start: the search begins there, and is held near it
} FREE[] = {
    {offsetof(Hardware, read_share), 0, 0.8, INFINITY}, {offsetof(Hardware, compute_share), 0, 0.6, 1},
    {offsetof(Hardware, cache_share), 0, 0.8, 1},       {offsetof(Hardware, attention_share), 0, 0.1, 1},
    {offsetof(Hardware, row_passes), 0, 10, INFINITY},  {offsetof(Hardware, overlap), 1, 2, INFINITY},
    {offsetof(Hardware, step_s), 0, 1e-4, INFINITY},
};
enum { FREE_COUNT = sizeof FREE / sizeof *FREE, MOST_ITERATIONS = 200 };

// Standard deviations: of a measured time, and of a fitted number about its start, as logarithms. Steps of
// more rows than a tile are held more loosely: kernels change there, and methods seldom run them.
static const double TIME_ERROR = 0.05, LONG_ERROR = 0.1, PRIOR_ERROR = 2;

typedef struct {
    const Surface *surface;
    const Hardware *start;
    const StepModel *model;
} Problem;

static Hardware machine_of(const Problem *p, const gsl_vector *x) {
    Hardware h = *p->start;
    for (size_t i = 0; i < FREE_COUNT; i++) {
        double moved = fmin(fmax(gsl_vector_get(x, i), -15), 15);
        double value = fmin(FREE[i].low + FREE[i].start * exp(moved), FREE[i].high);
        memcpy((char *)&h + FREE[i].offset, &value, sizeof value);
    }
    return h;
}

static int residuals(const gsl_vector *x, void *context, gsl_vector *out) {
    const Problem *p = context;
    Hardware h = machine_of(p, x);
    size_t row = 0;
    for (int i = 0; i < p->surface->count; i++) {
        const SurfacePoint *point = &p->surface->points[i];
        if (point->held_out) continue;
        double priced = hardware_price(&h, p->model, &point->step).total;
        double error = point->step.rows > h.tile_rows ? LONG_ERROR : TIME_ERROR;
        gsl_vector_set(out, row++, log(priced / point->seconds) / error);
    }
    for (size_t i = 0; i < FREE_COUNT; i++) gsl_vector_set(out, row++, gsl_vector_get(x, i) / PRIOR_ERROR);
    return GSL_SUCCESS;
}

static bool solve(Problem *p, size_t rows, Hardware *out) {
    gsl_multifit_nlinear_parameters settings = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_fdf system = {.f = residuals, .n = rows, .p = FREE_COUNT, .params = p};
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    gsl_vector *x = gsl_vector_calloc(FREE_COUNT);
    gsl_multifit_nlinear_workspace *w =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &settings, rows, FREE_COUNT);
    int info;
    if (!x || !w) mem_exhausted(SIZE_MAX);
    bool ok = gsl_multifit_nlinear_init(x, &system, w) == GSL_SUCCESS;
    if (ok) {
        gsl_multifit_nlinear_driver(MOST_ITERATIONS, 1e-8, 1e-8, 0, NULL, NULL, &info, w);
        *out = machine_of(p, w->x);
    }
    gsl_multifit_nlinear_free(w);
    gsl_vector_free(x);
    gsl_set_error_handler(before);
    return ok;
}

static double error_at(const SurfacePoint *p, const Hardware *h, const StepModel *m) {
    return fabs(hardware_price(h, m, &p->step).total / p->seconds - 1);
}

// Appends the errors of those that are held out, or of those that are not.
static int add_errors(const Surface *s, const Hardware *h, const StepModel *m, bool held_out, double *errors,
                      int count) {
    for (int i = 0; i < s->count; i++)
        if (s->points[i].held_out == held_out) errors[count++] = error_at(&s->points[i], h, m);
    return count;
}

static SurfaceError sum_up(double *errors, int count) {
    SurfaceError out = {.points = count};
    for (int i = 0; i < count; i++) out.worst = fmax(out.worst, errors[i]);
    if (count) out.median = median(errors, (size_t)count);
    return out;
}

static SurfaceError error_of(const Surface *s, const Hardware *h, const StepModel *m, bool held_out) {
    LOCAL_MEMORY double *errors = mem_new((size_t)s->count, sizeof *errors);
    return sum_up(errors, add_errors(s, h, m, held_out, errors, 0));
}

SurfaceError surface_error(const Surface *s, const Hardware *machine, const StepModel *model, int low,
                           int high) {
    LOCAL_MEMORY double *errors = mem_new((size_t)s->count, sizeof *errors);
    int count = 0;
    for (int i = 0; i < s->count; i++)
        if (s->points[i].step.rows >= low && s->points[i].step.rows <= high)
            errors[count++] = error_at(&s->points[i], machine, model);
    return sum_up(errors, count);
}

bool surface_fit(const Surface *s, const Hardware *start, const StepModel *model, SurfaceFit *out, Error *e) {
    Problem p = {s, start, model};
    size_t fitted = 0;
    for (int i = 0; i < s->count; i++) fitted += !s->points[i].held_out;
    if (fitted < 2) return error_input(e, "surface: %zu points to fit, two at least", fitted);
    if (!hardware_check(start, e)) return false;
    if (!solve(&p, fitted + FREE_COUNT, &out->machine))
        return error_system(e, "surface: the solver refused the fit");
    out->machine.most_rows = 0;
    for (int i = 0; i < s->count; i++)
        if (!s->points[i].held_out && s->points[i].step.rows > out->machine.most_rows)
            out->machine.most_rows = s->points[i].step.rows;
    out->fitted = error_of(s, &out->machine, model, false);
    out->held_out = error_of(s, &out->machine, model, true);
    return true;
}

// --- contexts never measured -----------------------------------------------------------------------------

// Whether no point before this one has its context.
static bool is_first(const Surface *s, int i) {
    for (int k = 0; k < i; k++)
        if (s->points[k].step.context == s->points[i].step.context) return false;
    return true;
}

// Holds out the points of this context; returns the number of the others.
static int hold_out_context(Surface *s, int context) {
    int left = 0;
    for (int i = 0; i < s->count; i++) {
        s->points[i].held_out = s->points[i].step.context == context;
        left += !s->points[i].held_out;
    }
    return left;
}

bool surface_leave_context(const Surface *s, const Hardware *start, const StepModel *model, SurfaceError *out,
                           Error *e) {
    size_t count = (size_t)s->count;
    LOCAL_MEMORY double *errors = mem_new(count, sizeof *errors);
    LOCAL(surface_release) Surface cut = {mem_new(count, sizeof *cut.points), s->count};
    int n = 0;
    memcpy(cut.points, s->points, count * sizeof *cut.points);
    for (int i = 0; i < s->count; i++) {
        SurfaceFit fit;
        if (!is_first(s, i) || hold_out_context(&cut, s->points[i].step.context) < 2) continue;
        if (!surface_fit(&cut, start, model, &fit, e)) return false;
        n = add_errors(&cut, &fit.machine, model, true, errors, n);
    }
    *out = sum_up(errors, n);
    return true;
}
