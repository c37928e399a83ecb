// A copy of the file is cut into lines and fields in place; each field goes through the reader of its column.
// The rows, as they come, are then laid out as points x prompts, which shows what is there twice or not at
// all.
#include "simulate/points.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/error.h"

#include <errno.h>
#include <math.h>
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
} Reader;

// Fills its field of the row from the text, which is not empty; false with the message set.
typedef bool (*Field)(Reader *r, char *text, Raw *out);

static bool read_real(Reader *r, const char *name, const char *text, double low, double high, double *out) {
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    bool digit = text[0] == '.' || (text[0] >= '0' && text[0] <= '9');
    if (digit && *end == 0 && !errno && *out >= low && *out <= high) return true;
    return error_input(r->e, "%s:%d: %s is '%.40s', must be a number from %g to %g", r->place, r->line, name,
                       text, low, high);
}

static bool read_whole(Reader *r, const char *name, const char *text, int low, int high, int *out) {
    double x;
    if (!read_real(r, name, text, low, high, &x)) return false;
    *out = (int)x;
    return x == *out ||
           error_input(r->e, "%s:%d: %s is '%.40s', must be a whole number", r->place, r->line, name, text);
}

static bool field_N(Reader *r, char *text, Raw *out) {
    return read_whole(r, "N", text, 2, POINTS_MOST_N, &out->point.N);
}
static bool field_W(Reader *r, char *text, Raw *out) {
    return read_whole(r, "W", text, 1, MOST_GUESSES, &out->point.W);
}
static bool field_G(Reader *r, char *text, Raw *out) {
    return read_whole(r, "G", text, 1, MOST_GUESSES, &out->point.G);
}
static bool field_S(Reader *r, char *text, Raw *out) {
    return read_real(r, "S", text, 1, POINTS_MOST_N, &out->row.S);
}
static bool field_se(Reader *r, char *text, Raw *out) {
    return read_real(r, "se", text, 1e-12, POINTS_MOST_N, &out->row.se);
}
static bool field_steps(Reader *r, char *text, Raw *out) {
    return read_real(r, "steps", text, 1, 1e15, &out->row.steps);
}
static bool field_prompt(Reader *r, char *text, Raw *out) {
    (void)r;
    out->prompt = text;
    return true;
}

static void histogram_release(Histogram *h) { mem_free(h->count); }

// "length:count,length:count", each length once.
static bool read_histogram(Reader *r, const char *name, char *text, int most, Histogram *h) {
    double total = 0;
    h->most = most;
    if (!(h->count = mem_alloc((size_t)most + 1, sizeof *h->count)))
        return error_system(r->e, "%s: out of memory", r->place);
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

static bool field_accepted(Reader *r, char *text, Raw *out) {
    return read_histogram(r, "accepted", text, POINTS_MOST_N - 1, &out->row.accepted);
}
static bool field_candidates(Reader *r, char *text, Raw *out) {
    return read_histogram(r, "candidates", text, POINTS_MOST_CANDIDATES, &out->row.candidates);
}

typedef struct {
    const char *name;
    Field read;
    unsigned bit; // 0: required
} Column;

static const Column COLUMNS[] = {
    {"N", field_N, 0},
    {"W", field_W, 0},
    {"G", field_G, 0},
    {"S", field_S, 0},
    {"se", field_se, POINTS_SE},
    {"prompt", field_prompt, POINTS_PROMPT},
    {"steps", field_steps, POINTS_STEPS},
    {"accepted", field_accepted, POINTS_ACCEPTED},
    {"candidates", field_candidates, POINTS_CANDIDATES},
};
enum { COLUMN_COUNT = sizeof COLUMNS / sizeof *COLUMNS };

static const char *column_name(const void *table, size_t i) { return ((const Column *)table)[i].name; }

// --- lines -----------------------------------------------------------------------------------------------

// The columns in the order that the file has them.
typedef struct {
    const Column *at[MOST_COLUMNS];
    int count;
} Header;

// Cuts the first field off; NULL after the last.
static char *next_field(char **rest) {
    char *field = *rest, *tab = field ? strchr(field, '\t') : NULL;
    if (tab) *tab = 0;
    *rest = tab ? tab + 1 : NULL;
    return field;
}

static const Column *find_column(Reader *r, const char *name) {
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (strcmp(COLUMNS[i].name, name) == 0) return &COLUMNS[i];
    const char *nearest = suggest(name, COLUMNS, COLUMN_COUNT, column_name);
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

static bool read_header(Reader *r, char *line, Header *header, unsigned *columns) {
    unsigned seen = 0;
    for (char *name; (name = next_field(&line));) {
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

static bool check_row(Reader *r, const Raw *raw) {
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

static bool read_row(Reader *r, char *line, const Header *header) {
    if (r->count == MOST_ROWS)
        return error_input(r->e, "%s:%d: more than %d rows", r->place, r->line, MOST_ROWS);
    if (!mem_grow((void **)&r->rows, &r->capacity, r->count + 1, sizeof *r->rows))
        return error_system(r->e, "%s: out of memory", r->place);
    Raw *raw = &r->rows[r->count++];
    raw->row.line = r->line;
    raw->row.steps = 1;
    for (int i = 0; i < header->count; i++) {
        char *text = next_field(&line);
        if (!text || !*text)
            return error_input(r->e, "%s:%d: column '%s' is empty", r->place, r->line, header->at[i]->name);
        if (!header->at[i]->read(r, text, raw)) return false;
    }
    return line ? error_input(r->e, "%s:%d: more than the %d fields of the header", r->place, r->line,
                              header->count)
                : check_row(r, raw);
}

// Cuts the first line off, its end too, as either system writes it.
static char *next_line(char **rest) {
    char *line = *rest, *end = strchr(line, '\n');
    *rest = end ? end + 1 : NULL;
    if (!end) end = line + strlen(line);
    else *end = 0;
    if (end > line && end[-1] == '\r') end[-1] = 0;
    return line;
}

static bool read_lines(Reader *r, char *text, unsigned *columns) {
    Header header = {.count = 0};
    for (char *rest = text; rest;) {
        char *line = next_line(&rest);
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

// Which points and prompts there are, in the order of their first rows.
static bool collect(Points *p, const Reader *r) {
    p->points = mem_alloc(r->count, sizeof *p->points);
    p->names = mem_alloc(r->count, sizeof *p->names);
    if (!p->points || !p->names) return false;
    for (size_t i = 0; i < r->count; i++) {
        const Raw *raw = &r->rows[i];
        if (find_point(p, &raw->point) == p->count) p->points[p->count++] = raw->point;
        if (!raw->prompt) p->prompts = 1;
        else if (find_prompt(p, raw->prompt) == p->prompts) {
            if (!(p->names[p->prompts] = mem_text(raw->prompt, strlen(raw->prompt)))) return false;
            p->prompts++;
        }
    }
    return true;
}

static bool fill_matrix(Points *p, Reader *r) {
    size_t size;
    if (!size_mul((size_t)p->count, (size_t)p->prompts, &size) || size > MOST_ROWS ||
        !(p->rows = mem_alloc(size, sizeof *p->rows)))
        return error_system(r->e, "%s: no memory for %d points x %d prompts", r->place, p->count, p->prompts);
    for (size_t i = 0; i < r->count; i++) {
        Raw *raw = &r->rows[i];
        int point = find_point(p, &raw->point), prompt = find_prompt(p, raw->prompt);
        PointRow *row = &p->rows[point * p->prompts + prompt];
        if (row->line)
            return error_input(r->e, "%s:%d: N %d, W %d, G %d stands in line %d already", r->place,
                               raw->row.line, raw->point.N, raw->point.W, raw->point.G, row->line);
        *row = raw->row;
        raw->row = (PointRow){0}; // the histograms have moved
    }
    return true;
}

static bool check_complete(const Points *p, const Reader *r) {
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
    Reader r = {.place = place, .e = e};
    *out = (Points){0};
    if (n && memchr(bytes, 0, n)) return error_input(e, "%s: has a zero byte; not a text file", place);
    char *text = mem_text(bytes, n);
    bool ok = text ? read_lines(&r, text, &out->columns) : error_system(e, "%s: out of memory", place);
    if (ok && !collect(out, &r)) ok = error_system(e, "%s: out of memory", place);
    ok = ok && fill_matrix(out, &r) && check_complete(out, &r);
    for (size_t i = 0; i < r.count; i++) {
        histogram_release(&r.rows[i].row.accepted);
        histogram_release(&r.rows[i].row.candidates);
    }
    mem_free(r.rows);
    mem_free(text);
    return ok;
}

bool points_open(const char *path, Points *out, Error *e) {
    char *data;
    size_t size;
    *out = (Points){0};
    if (!file_read(path, POINTS_MOST_BYTES, &data, &size, e)) return false;
    bool ok = points_parse(data, size, path, out, e);
    mem_free(data);
    return ok;
}

void points_release(Points *p) {
    for (int i = 0; p->rows && i < p->count * p->prompts; i++) {
        histogram_release(&p->rows[i].accepted);
        histogram_release(&p->rows[i].candidates);
    }
    for (int i = 0; p->names && i < p->prompts; i++) mem_free(p->names[i]);
    mem_free(p->rows);
    mem_free(p->names);
    mem_free(p->points);
    *p = (Points){0};
}
