// A copy of the file is cut into lines and fields in place; the reader of its column takes each field. The
// rows are then laid out as points x prompts, which finds duplicate and missing ones. A sample weighs these
// rows.
#include "simulate/points.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 16, MOST_ROWS = 1 << 16, MOST_GUESSES = 1 << 20 };

typedef struct {
    PointAt point;
    const char *prompt; // in the text; NULL where there is no such column
    PointRow row;
} Raw;

typedef struct {
    const char *place;
    int line;
    Raw *rows;
    size_t count, capacity;
    Error *e;
} PointReader;

static bool read_real(PointReader *r, const char *name, const char *text, double low, double high,
                      double *out) {
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    bool digit = text[0] == '.' || (text[0] >= '0' && text[0] <= '9');
    if (digit && *end == 0 && !errno && *out >= low && *out <= high) return true;
    return error_input(r->e, "%s:%d: %s is '%.40s', must be a number from %g to %g", r->place, r->line, name,
                       text, low, high);
}

static bool read_whole(PointReader *r, const char *name, const char *text, int low, int high, int *out) {
    double x;
    if (!read_real(r, name, text, low, high, &x)) return false;
    *out = (int)x;
    return x == *out ||
           error_input(r->e, "%s:%d: %s is '%.40s', must be a whole number", r->place, r->line, name, text);
}

static void histogram_release(Histogram *h) { mem_free(h->count); }

// "length:count,length:count", each length once.
static bool read_histogram(PointReader *r, const char *name, char *text, int most, Histogram *h) {
    double total = 0;
    h->most = most;
    h->count = mem_new((size_t)most + 1, sizeof *h->count);
    for (char *item = text, *next; item; item = next) {
        int at;
        double count;
        if ((next = strchr(item, ','))) *next++ = 0;
        char *colon = strchr(item, ':');
        if (!colon)
            return error_input(r->e, "%s:%d: %s has '%.40s', must be length:count,length:count", r->place,
                               r->line, name, item);
        *colon = 0;
        if (!read_whole(r, name, item, 0, most, &at) || !read_real(r, name, colon + 1, 0, 1e15, &count))
            return false;
        if (h->count[at] > 0) return error_input(r->e, "%s:%d: %s has %d twice", r->place, r->line, name, at);
        h->count[at] = count;
        total += count;
    }
    return total > 0 || error_input(r->e, "%s:%d: %s counts no step", r->place, r->line, name);
}

typedef struct {
    const char *name;
    enum { WHOLE, REAL, TEXT, HISTOGRAM } kind;
    size_t at; // of its field in Raw
    double low, high;
    unsigned bit; // 0: required
} Column;

#define AT(field) offsetof(Raw, field)
static const Column COLUMNS[] = {
    {"N", WHOLE, AT(point.N), 2, POINTS_MOST_N, 0},
    {"W", WHOLE, AT(point.W), 1, MOST_GUESSES, 0},
    {"G", WHOLE, AT(point.G), 1, MOST_GUESSES, 0},
    {"S", REAL, AT(row.S), 1, POINTS_MOST_N, 0},
    {"se", REAL, AT(row.se), 1e-12, POINTS_MOST_N, POINTS_SE},
    {"prompt", TEXT, AT(prompt), 0, 0, POINTS_PROMPT},
    {"steps", REAL, AT(row.steps), 1, 1e15, POINTS_STEPS},
    {"accepted", HISTOGRAM, AT(row.accepted), 0, POINTS_MOST_N - 1, POINTS_ACCEPTED},
    {"candidates", HISTOGRAM, AT(row.candidates), 0, POINTS_MOST_CANDIDATES, POINTS_CANDIDATES},
};
enum { COLUMN_COUNT = sizeof COLUMNS / sizeof *COLUMNS };

// Fills its field of the row from the text, which isn't empty.
static bool read_field(PointReader *r, const Column *c, char *text, Raw *out) {
    void *to = (char *)out + c->at;
    switch (c->kind) {
    case WHOLE: return read_whole(r, c->name, text, (int)c->low, (int)c->high, to);
    case REAL: return read_real(r, c->name, text, c->low, c->high, to);
    case TEXT: memcpy(to, &text, sizeof text); return true;
    case HISTOGRAM: return read_histogram(r, c->name, text, (int)c->high, to);
    }
    return false;
}

// --- lines -----------------------------------------------------------------------------------------------

// The columns in the order that the file has them.
typedef struct {
    const Column *at[MOST_COLUMNS];
    int count;
} Header;

static const Column *find_column(PointReader *r, const char *name) {
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (strcmp(COLUMNS[i].name, name) == 0) return &COLUMNS[i];
    const char *nearest = suggest(name, COLUMNS, COLUMN_COUNT, sizeof *COLUMNS);
    if (nearest)
        error_input(r->e, "%s:%d: there is no column '%.40s'; did you mean '%s'?", r->place, r->line, name,
                    nearest);
    else
        error_input(r->e,
                    "%s:%d: there is no column '%.40s'; there are N, W, G, S, se, prompt, steps, "
                    "accepted, candidates, with a tab between two",
                    r->place, r->line, name);
    return NULL;
}

static bool read_header(PointReader *r, char *line, Header *header, unsigned *columns) {
    unsigned seen = 0;
    for (char *name; (name = strsep(&line, "\t"));) {
        const Column *c = find_column(r, name);
        if (!c) return false;
        unsigned bit = 1u << (c - COLUMNS);
        if (seen & bit)
            return error_input(r->e, "%s:%d: column '%s' is there twice", r->place, r->line, name);
        seen |= bit;
        *columns |= c->bit;
        header->at[header->count++] = c;
    }
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (!COLUMNS[i].bit && !(seen & 1u << i))
            return error_input(r->e, "%s:%d: there is no column '%s'; N, W, G and S must be there", r->place,
                               r->line, COLUMNS[i].name);
    return !(*columns & POINTS_PROMPT) || *columns & POINTS_STEPS ||
           error_input(r->e, "%s:%d: with a column 'prompt' there must be one 'steps', to weigh prompts by",
                       r->place, r->line);
}

static bool check_row(PointReader *r, const Raw *raw) {
    const PointRow *row = &raw->row;
    if (row->S > raw->point.N)
        return error_input(r->e, "%s:%d: S is %g, but a step of N = %d emits %d tokens at most", r->place,
                           r->line, row->S, raw->point.N, raw->point.N);
    for (int i = raw->point.N; i <= row->accepted.most; i++)
        if (row->accepted.count[i] > 0)
            return error_input(r->e, "%s:%d: a step accepted %d tokens, with N = %d it can accept %d",
                               r->place, r->line, i, raw->point.N, raw->point.N - 1);
    return true;
}

static bool read_row(PointReader *r, char *line, const Header *header) {
    if (r->count == MOST_ROWS)
        return error_input(r->e, "%s:%d: more than %d rows", r->place, r->line, MOST_ROWS);
    Raw *raw = LIST_ADD(r->rows, r->count, r->capacity);
    raw->row.line = r->line;
    raw->row.steps = 1;
    for (int i = 0; i < header->count; i++) {
        char *text = strsep(&line, "\t");
        if (!text || !*text)
            return error_input(r->e, "%s:%d: column '%s' is empty", r->place, r->line, header->at[i]->name);
        if (!read_field(r, header->at[i], text, raw)) return false;
    }
    return line ? error_input(r->e, "%s:%d: more than the %d fields of the header", r->place, r->line,
                              header->count)
                : check_row(r, raw);
}

static bool read_lines(PointReader *r, char *text, unsigned *columns) {
    Header header = {.count = 0};
    for (char *line; (line = strsep(&text, "\n"));) {
        size_t n = strlen(line);
        if (n && line[n - 1] == '\r') line[n - 1] = 0; // either system's end of a line
        r->line++;
        if (*line == '#' || *line == 0) continue;
        bool ok = header.count ? read_row(r, line, &header) : read_header(r, line, &header, columns);
        if (!ok) return false;
    }
    return r->count || error_input(r->e, "%s: no points in it", r->place);
}

// --- points x prompts ------------------------------------------------------------------------------------

static int find_point(const Points *p, const PointAt *wanted) {
    int i = 0;
    while (i < p->count &&
           (p->points[i].N != wanted->N || p->points[i].W != wanted->W || p->points[i].G != wanted->G))
        i++;
    return i;
}

static int find_prompt(const Points *p, const char *name) {
    int i = 0;
    while (name && i < p->prompts && strcmp(p->names[i], name) != 0) i++;
    return i;
}

// Lists points and prompts, in the order of their first rows.
static void collect(Points *p, const PointReader *r) {
    p->points = mem_new(r->count, sizeof *p->points);
    p->names = mem_new(r->count, sizeof *p->names);
    for (size_t i = 0; i < r->count; i++) {
        const Raw *raw = &r->rows[i];
        if (find_point(p, &raw->point) == p->count) p->points[p->count++] = raw->point;
        if (!raw->prompt) p->prompts = 1;
        else if (find_prompt(p, raw->prompt) == p->prompts)
            p->names[p->prompts++] = mem_text(raw->prompt, strlen(raw->prompt));
    }
}

static bool fill_matrix(Points *p, PointReader *r) {
    size_t size;
    if (!size_mul((size_t)p->count, (size_t)p->prompts, &size) || size > MOST_ROWS)
        return error_input(
            r->e, "%s: %d points x %d prompts are more than %d rows; every prompt must be at every point",
            r->place, p->count, p->prompts, MOST_ROWS);
    p->rows = mem_new(size, sizeof *p->rows);
    for (size_t i = 0; i < r->count; i++) {
        Raw *raw = &r->rows[i];
        int point = find_point(p, &raw->point), prompt = find_prompt(p, raw->prompt);
        PointRow *row = &p->rows[point * p->prompts + prompt];
        if (row->line)
            return error_input(r->e, "%s:%d: N %d, W %d, G %d is in line %d already", r->place, raw->row.line,
                               raw->point.N, raw->point.W, raw->point.G, row->line);
        *row = raw->row;
        raw->row = (PointRow){0}; // the histograms have moved
    }
    return true;
}

static bool check_complete(const Points *p, const PointReader *r) {
    for (int i = 0; i < p->count * p->prompts; i++) {
        const PointAt *point = &p->points[i / p->prompts];
        if (!p->rows[i].line)
            return error_input(r->e,
                               "%s: prompt '%.40s' has no row at N %d, W %d, G %d; every prompt must be "
                               "at every point, as they are drawn together",
                               r->place, p->names[i % p->prompts], point->N, point->W, point->G);
    }
    return true;
}

bool points_parse(const char *bytes, size_t n, const char *place, Points *out, Error *e) {
    PointReader r = {.place = place, .e = e};
    *out = (Points){0};
    if (n && memchr(bytes, 0, n)) return error_input(e, "%s: has a zero byte; not a text file", place);
    LOCAL_MEMORY char *text = mem_text(bytes, n);
    bool ok = read_lines(&r, text, &out->columns);
    if (ok) collect(out, &r);
    ok = ok && fill_matrix(out, &r) && check_complete(out, &r);
    for (size_t i = 0; i < r.count; i++) {
        histogram_release(&r.rows[i].row.accepted);
        histogram_release(&r.rows[i].row.candidates);
    }
    mem_free(r.rows);
    return ok;
}

bool points_open(const char *path, Points *out, Error *e) {
    LOCAL_MEMORY char *data = NULL;
    size_t size;
    *out = (Points){0};
    if (!file_read(path, POINTS_MOST_BYTES, &data, &size, e)) return false;
    return points_parse(data, size, path, out, e);
}

void points_release(Points *p) {
    for (int i = 0; p->rows && i < p->count * p->prompts; i++) {
        histogram_release(&p->rows[i].accepted);
        histogram_release(&p->rows[i].candidates);
    }
    for (int i = 0; p->names && i < p->prompts; i++) mem_free(p->names[i]);
    MEM_FREE(p->rows, p->names, p->points);
    *p = (Points){0};
}

// --- the sample -----------------------------------------------------------------------------------------

static void open_point(const Points *points, int at, const FitOptions *o, SamplePoint *p) {
    PointAt point = points->points[at];
    *p = (SamplePoint){.at = point};
    p->law = (Law){.f = 1, .gamma = point.N - 1, .b = point.G, .output = o->output};
    p->fitted = o->law == FIT_CORRECTED || point.W == point.G;
    if (o->bonus_dropped) p->law.terms |= LAW_BONUS_DROPPED;
    if (o->output > 0) {
        p->law.terms |= LAW_FILLING;
        p->law.filling = point.N - 2;
    }
    if (points->columns & POINTS_ACCEPTED) p->accepted = mem_new((size_t)point.N, sizeof *p->accepted);
    if (o->law == FIT_PAPER || !(points->columns & POINTS_CANDIDATES)) return;
    p->law.terms |= LAW_CANDIDATES;
    p->law.share_count = POINTS_MOST_CANDIDATES + 1;
    p->law.share = p->share = mem_new(POINTS_MOST_CANDIDATES + 1, sizeof *p->share);
}

// The most tokens that a step after filling can emit.
static double sample_most(const SamplePoint *p) {
    return p->law.terms & LAW_BONUS_DROPPED ? p->law.gamma : p->law.gamma + 1;
}

static bool check_point(const SamplePoint *p, const FitOptions *o, Error *e) {
    double most = sample_most(p);
    if (o->output > 0 && o->output < p->law.filling)
        return error_input(e, "fit: outputs of %g tokens are over before the %d filling steps of N = %d",
                           o->output, p->law.filling, p->at.N);
    if (p->tokens <= most + 1e-9) return true;
    return error_input(e, "fit: N %d, W %d, G %d: S is %g, but a step emits %g tokens at most%s%s", p->at.N,
                       p->at.W, p->at.G, p->S, most, o->bonus_dropped ? " where the bonus is dropped" : "",
                       o->output > 0 ? ", and filling steps one" : "");
}

bool sample_open(const Points *points, const FitOptions *o, Sample *out, Error *e) {
    *out = (Sample){.points = mem_new((size_t)points->count, sizeof *out->points), .count = points->count};
    for (int i = 0; i < points->count; i++) {
        open_point(points, i, o, &out->points[i]);
        out->fitted += out->points[i].fitted;
    }
    sample_weigh(out, points, NULL);
    for (int i = 0; i < out->count; i++)
        if (!check_point(&out->points[i], o, e)) return false;
    return true;
}

void sample_release(Sample *s) {
    for (int i = 0; i < s->count; i++) { MEM_FREE(s->points[i].share, s->points[i].accepted); }
    mem_free(s->points);
    *s = (Sample){0};
}

// tokens = law_without_filling(S), so the error of S grows by d tokens / d S on its way.
void sample_move(SamplePoint *p, double S) {
    const Law *law = &p->law;
    double slope = 1;
    p->S = p->tokens = S;
    if (law->terms & LAW_FILLING && law->filling > 0) {
        p->tokens = law_without_filling(S, law->filling, law->output);
        slope = p->tokens * p->tokens * law->output / ((law->output - law->filling) * S * S);
    }
    double error = slope * (p->se > 0 ? p->se : 1);
    p->weight = 1 / (error * error);
}

static void sum_hits(SamplePoint *p) {
    p->hits = 0;
    for (int i = 1; p->accepted && i <= p->law.gamma; i++) p->hits += p->accepted[i];
}

void sample_count(SamplePoint *p, const double *accepted) {
    assert(p->accepted);
    memcpy(p->accepted, accepted, (size_t)p->at.N * sizeof *accepted);
    sum_hits(p);
}

static void add_histogram(double *sum, int most, const Histogram *h, double weight) {
    for (int i = 0; i <= most && i <= h->most; i++) sum[i] += weight * h->count[i];
}

static void weigh_point(SamplePoint *p, const PointRow *rows, int prompts, const double *weights) {
    double steps = 0, tokens = 0, total = 0;
    if (p->accepted) memset(p->accepted, 0, (size_t)p->at.N * sizeof *p->accepted);
    if (p->share) memset(p->share, 0, (POINTS_MOST_CANDIDATES + 1) * sizeof *p->share);
    for (int i = 0; i < prompts; i++) {
        double weight = weights ? weights[i] : 1;
        if (weight == 0) continue;
        steps += weight * rows[i].steps;
        tokens += weight * rows[i].steps * rows[i].S;
        if (p->accepted) add_histogram(p->accepted, p->law.gamma, &rows[i].accepted, weight);
        if (p->share) add_histogram(p->share, POINTS_MOST_CANDIDATES, &rows[i].candidates, weight);
    }
    sum_hits(p);
    for (int c = 0; p->share && c <= POINTS_MOST_CANDIDATES; c++) total += p->share[c];
    // Laws sum over the counts up to the last that a step had, which is far below the most there can be.
    for (int c = 0; p->share && c <= POINTS_MOST_CANDIDATES; c++)
        if ((p->share[c] /= total) > 0) p->law.share_count = c + 1;
    p->se = prompts == 1 ? rows[0].se : 0; // several prompts have their spread instead
    sample_move(p, tokens / steps);
}

void sample_weigh(Sample *s, const Points *points, const double *weights) {
    for (int i = 0; i < s->count; i++)
        weigh_point(&s->points[i], &points->rows[i * points->prompts], points->prompts, weights);
}

double sample_gain(const SamplePoint *p, double alpha) {
    Law law = p->law;
    law.alpha = alpha;
    return law_good_tokens(&law) - 1;
}

double sample_predict(const SamplePoint *p, double alpha, double phi) {
    Law law = p->law;
    law.alpha = alpha, law.f = 1 / phi;
    return law_compression(&law);
}
