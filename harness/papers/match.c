// See match.h. A row matches groups of points by model, dataset and method; what keeps numbers from being
// compared is collected in `why`.
#include "harness/papers/match.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "engine/decode/method.h"
#include "harness/cli/table.h"
#include "harness/papers/ours.h"
#include "results/rows.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// --- models ----------------------------------------------------------------------------------------------

// Our names for published models and datasets, one a line: the published name (of Spec-Bench
// "spec-bench:TASK"), ours, and whether ours is the same or in its place. Of several the first is the best.
EMBED(names_tsv, "results/published/names.tsv")

// Behind `ours` in its line; NULL: there is none.
static const char *find_name(const char *published, const char *ours) {
    LOCAL_TEXT line = {0};
    text_printf(&line, "\n%s\t%s\t", published, ours);
    const char *at = strstr(names_tsv, text_get(&line));
    return at ? at + line.length : NULL;
}

enum { OTHER, LIKE, SAME };

static int model_score(const char *published, const char *ours) {
    const char *as = find_name(published, ours);
    if (strcasecmp(published, ours) == 0 || (as && strncmp(as, "same", 4) == 0)) return SAME;
    return as || (*published && strcasestr(ours, published)) ? LIKE : OTHER;
}

// Rows may be one model with different additions, such as drafts: a run's model then has the row's name, or
// the model's and the row's.
static int row_score(const PublishedRow *row, const char *ours) {
    int score = model_score(row->model, ours);
    size_t n = strlen(row->model);
    if (score == OTHER && strcasecmp(row->row, ours) == 0) return LIKE;
    return n && strncasecmp(row->model, ours, n) == 0 && strncmp(ours + n, ", ", 2) == 0 &&
                   strcasecmp(row->row, ours + n + 2) == 0
               ? SAME
               : score;
}

bool table_match_same_model(const PublishedRow *row, const char *ours) {
    return row_score(row, ours) == SAME;
}
bool table_match_like_model(const PublishedRow *row, const char *ours) {
    return model_score(row->model, ours) >= LIKE;
}

// The least score that a model of this run must have: the best there is. Nothing like it: the run's only
// model stands in, unless the paper has that very one elsewhere; of several none.
static int needed_score(const Published *item, const PublishedRow *row, const TablePoints *points) {
    int best = OTHER;
    bool several = false;
    for (size_t i = 0; i < points->group_count; i++) {
        int score = row_score(row, points->groups[i].model);
        if (score > best) best = score;
        if (strcmp(points->groups[i].model, points->groups[0].model) != 0) several = true;
    }
    if (best > OTHER || !*row->model) return best;
    for (size_t i = 0; i < item->row_count; i++)
        several = several || row_score(&item->rows[i], points->groups[0].model) >= LIKE;
    return several ? SAME + 1 : OTHER;
}

// --- datasets --------------------------------------------------------------------------------------------

enum { NO_DATASET = INT_MAX };

// "gsm8k:ouroboros" is gsm8k in the frame of a paper.
static bool same_dataset(const char *dataset, const char *ours) {
    size_t n = strcspn(ours, ":");
    return strlen(dataset) == n && strncmp(dataset, ours, n) == 0;
}

// 0: it is the one; above: how far down in the list; NO_DATASET: it is none.
static int dataset_rank(const char *dataset, const char *task, const char *ours) {
    char name[64];
    if (!*dataset || same_dataset(dataset, ours)) return 0;
    snprintf(name, sizeof name, "%s%s%s", dataset, *task ? ":" : "", task);
    const char *at = find_name(name, ours);
    return at ? (int)(at - names_tsv) : NO_DATASET;
}

// --- settings --------------------------------------------------------------------------------------------

static bool same_value(const char *a, const char *b) {
    char *a_end, *b_end;
    double x = strtod(a, &a_end), y = strtod(b, &b_end);
    return *a && *b && !*a_end && !*b_end ? x == y : strcmp(a, b) == 0;
}

// How many of "key=value,..." are otherwise in `ran`.
static int differences(const char *wanted, const char *ran, Text *out) {
    int count = 0;
    for (const char *at = wanted; *at;) {
        size_t n = strcspn(at, ","), key = strcspn(at, "=");
        char name[64], want[ARG_TEXT_SIZE], got[ARG_TEXT_SIZE];
        if (key < n && key < sizeof name && n - key - 1 < sizeof want) {
            memcpy(name, at, key);
            name[key] = 0;
            memcpy(want, at + key + 1, n - key - 1);
            want[n - key - 1] = 0;
            bool other = table_setting(ran, name, got, sizeof got) && !same_value(want, got);
            if (other && out) text_printf(out, "%s%s=%s, not %s", out->length ? "; " : "", name, got, want);
            count += other;
        }
        at += n + (at[n] != 0);
    }
    return count;
}

// --- candidates ------------------------------------------------------------------------------------------

// Whether another row of the same model and dataset names another setting of the row's method.
static bool has_other_settings(const Published *item, const PublishedRow *row) {
    for (size_t i = 0; i < item->row_count; i++) {
        const PublishedRow *o = &item->rows[i];
        if (method_text_same_method(o->method, row->method) && strcmp(o->method, row->method) != 0 &&
            strcmp(o->model, row->model) == 0 && strcmp(o->dataset, row->dataset) == 0)
            return true;
    }
    return false;
}

typedef struct Candidate {
    const TableGroup *group;
    int dataset, method, settings; // how far it is, in this order
    double speed;
} Candidate;

static bool nearer(const Candidate *a, const Candidate *b) {
    if (!b->group) return true;
    if (a->dataset != b->dataset) return a->dataset < b->dataset;
    if (a->method != b->method) return a->method < b->method;
    if (a->speed != b->speed) return a->speed > b->speed;
    return a->settings < b->settings;
}

static bool add_part(const Published *item, const PublishedRow *row, const char *task, TableAsk *ask,
                     bool even, TableMatch *out, Error *e) {
    const TablePoints *points = ask->points;
    int needed = needed_score(item, row, points);
    bool open = method_text_open(row->method), several = has_other_settings(item, row);
    char temperature[32];
    bool given = table_setting(row->generation, "temperature", temperature, sizeof temperature);
    Candidate best = {0};
    for (size_t i = 0; i < points->group_count; i++) {
        const TableGroup *g = &points->groups[i];
        Candidate c = {.group = g, .speed = -1};
        c.dataset = dataset_rank(row->dataset, task, g->dataset);
        if (c.dataset == NO_DATASET || !method_text_same_method(row->method, g->decoder) ||
            (given && strtod(temperature, NULL) != g->temperature) || row_score(row, g->model) < needed)
            continue;
        c.method = method_text_differences(row->method, g->decoder, NULL);
        c.settings = differences(row->generation, g->settings, NULL);
        if (c.method && several) continue;
        if (open && !table_ask_speed(ask, g, c.dataset || !*task ? NULL : task, even, &c.speed, e))
            return false;
        if (nearer(&c, &best)) best = c;
    }
    if (!best.group) return true;
    out->groups[out->count] = best.group;
    out->subtasks[out->count++] = *task && same_dataset(row->dataset, best.group->dataset) ? task : NULL;
    return true;
}

// --- why not ---------------------------------------------------------------------------------------------

static void because(Text *why, const char *format, const char *a, const char *b) {
    text_puts(why, why->length ? "; " : "");
    text_printf(why, format, a, b);
}

// Every word of the published device is in what the machine calls its own: "A100 80GB".
static bool same_device(const char *published, const char *ours) {
    char word[64];
    for (const char *at = published; *at;) {
        size_t n = strcspn(at, " ");
        if (n >= sizeof word) return false;
        memcpy(word, at, n);
        word[n] = 0;
        if (!strcasestr(ours, word)) return false;
        at += n + (at[n] != 0);
    }
    return true;
}

// Prompts that were measured: of the subtasks of a dataset, or of all datasets used in their place.
static int prompts_of(const TableMatch *m) {
    int sum = 0;
    for (int i = 0; i < m->count; i++) {
        char n[16] = "0";
        if (!m->subtasks[i]) sum += m->groups[i]->prompts;
        else if (table_setting(m->groups[i]->subtasks, m->subtasks[i], n, sizeof n))
            sum += (int)strtol(n, NULL, 10);
    }
    return sum;
}

static void compare(const PublishedRow *row, const TableMatch *m, Text *why) {
    const TableGroup *g = m->groups[0];
    char count[32];
    if (*g->stand_in) because(why, "stand-in (%s)%s", g->stand_in, "");
    else if (!*row->model) because(why, "%s%s", "the paper names no model", "");
    else if (!table_match_same_model(row, g->model)) because(why, "model %s, not %s", g->model, row->model);
    if (!*row->dataset) because(why, "%s%s", "the paper names no one dataset", "");
    else if (!same_dataset(row->dataset, g->dataset))
        because(why, "dataset %s, not %s", g->dataset, row->dataset);
    snprintf(count, sizeof count, "%d", prompts_of(m));
    if (*row->prompts && strcmp(row->prompts, count) != 0)
        because(why, "%s prompts, not %s", count, row->prompts);
    if (!*row->dtype) because(why, "%s%s", "the paper names no dtype", "");
    else if (strcasecmp(row->dtype, g->dtype) != 0)
        because(why, "%s, not %s", *g->dtype ? g->dtype : "dtype not told", row->dtype);
    if (!*row->device) because(why, "%s%s", "the paper names no device", "");
    else if (!same_device(row->device, g->device))
        because(why, "%s, not %s", *g->device ? g->device : "device not told", row->device);
    method_text_differences(row->method, g->decoder, why);
    differences(row->generation, g->settings, why);
    snprintf(count, sizeof count, "%zu", g->count);
    if (g->temperature > 0 && g->count < 5) because(why, "%s seeds of 5 at least%s", count, "");
}

// --- all of it -------------------------------------------------------------------------------------------

static const char *const SUBTASKS[] = {"mt-bench", "translation",    "summarization",
                                       "qa",       "math_reasoning", "rag"};

bool table_match(const Published *item, const PublishedRow *row, TableAsk *ask, bool even, TableMatch *out,
                 Error *e) {
    bool ok = true;
    *out = (TableMatch){0};
    if (!*row->method || !ask->points->group_count) return true;
    if (strcmp(row->task, "mean") != 0) ok = add_part(item, row, row->task, ask, even, out, e);
    else
        for (size_t i = 0; ok && i < sizeof SUBTASKS / sizeof *SUBTASKS; i++)
            ok = add_part(item, row, SUBTASKS[i], ask, even, out, e);
    if (ok && out->count) compare(row, out, &out->why);
    if (!ok) table_match_release(out);
    return ok;
}

void table_match_release(TableMatch *m) {
    text_release(&m->why);
    *m = (TableMatch){0};
}

// --- methods as published rows write them

bool method_text_expand(const char *text, const char *ran, Text *out, Error *e) {
    size_t n = strcspn(text, ":");
    const char *params = text + n + (text[n] != 0);
    char name[64], value[ARG_TEXT_SIZE];
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    const MethodInfo *m = method_find(name, e);
    if (!m) return false;
    LOCAL_MEMORY void *values = mem_new(1, m->param_size ? m->param_size : 1);
    LOCAL_TEXT given = {0};
    for (const char *at = params; *at; at += n + (at[n] != 0)) {
        size_t key = strcspn(at, "=");
        n = args_span(at, ',');
        snprintf(name, sizeof name, "%.*s", (int)key, at);
        bool open = n == key + 2 && at[key + 1] == '*' && arg_find(m->params, m->param_count, name);
        const char *comma = given.length ? "," : "";
        if (!open) text_printf(&given, "%s%.*s", comma, (int)n, at);
        else if (table_setting(ran, name, value, sizeof value))
            text_printf(&given, "%s%s=%s", comma, name, value);
    }
    args_defaults(m->params, m->param_count, values);
    bool ok = args_parse(m->params, m->param_count, values, text_get(&given), e);
    if (ok && m->resolve) m->resolve(values);
    for (const Arg *p = m->params; ok && p < m->params + m->param_count; p++) {
        if (p->type == ARG_TEXT && !table_setting(params, p->name, value, sizeof value)) continue;
        text_printf(out, "%s%s=", out->length ? "," : "", p->name);
        arg_write(p, values, out);
    }
    return ok;
}

bool method_text_open(const char *text) { return strstr(text, "=*") != NULL; }

bool method_text_same_method(const char *text, const char *ran) {
    size_t n = strcspn(text, ":");
    return n == strcspn(ran, ":") && strncmp(text, ran, n) == 0;
}

int method_text_differences(const char *text, const char *ran, Text *out) {
    LOCAL_TEXT want = {0}, got = {0};
    int count = 0;
    if (method_text_same_method(text, ran) && method_text_expand(ran, "", &got, NULL) &&
        method_text_expand(text, text_get(&got), &want, NULL))
        count = differences(text_get(&want), text_get(&got), out);
    return count;
}

// --- points

EMBED(table_points_sql, "harness/papers/match.sql")

const char *table_keep(TableTexts *t, const char *text) {
    return *LIST_ADD(t->list, t->count, t->capacity) = mem_text(text, strlen(text));
}

static const char *keep(TableTexts *t, const Rows *r, const char *column) {
    return table_keep(t, rows_text(r, query_column(r, column)));
}

static int64_t number(const Rows *r, const char *column) { return rows_int(r, query_column(r, column)); }

static void add_group(TablePoints *p, TableTexts *texts, const Rows *r) {
    *LIST_ADD(p->groups, p->group_count, p->group_capacity) =
        (TableGroup){.model = keep(texts, r, "model"),
                     .stand_in = keep(texts, r, "stand_in"),
                     .dtype = keep(texts, r, "dtype"),
                     .device = keep(texts, r, "device"),
                     .dataset = keep(texts, r, "dataset"),
                     .method = keep(texts, r, "method"),
                     .decoder = keep(texts, r, "decoder"),
                     .label = keep(texts, r, "label"),
                     .settings = keep(texts, r, "settings"),
                     .subtasks = keep(texts, r, "subtasks"),
                     .fit = number(r, "fit"),
                     .fitted = keep(texts, r, "fitted"),
                     .temperature = rows_real(r, query_column(r, "temperature")),
                     .number = (int)number(r, "number"),
                     .prompts = (int)number(r, "prompts"),
                     .first = p->seed_count};
}

bool table_points_read(Store *store, int64_t run, TableTexts *texts, TablePoints *out, Error *e) {
    *out = (TablePoints){0};
    Rows *r = rows_ask(store, table_points_sql, run, e);
    while (rows_next(r)) {
        if (number(r, "first") == number(r, "number")) add_group(out, texts, r);
        out->groups[out->group_count - 1].count++;
        *LIST_ADD(out->seeds, out->seed_count, out->seed_capacity) =
            (TableSeed){number(r, "id"), number(r, "baseline_id"), keep(texts, r, "doubt")};
    }
    if (rows_end(r, true, e)) return true;
    table_points_release(out);
    return false;
}

void table_points_release(TablePoints *p) {
    MEM_FREE(p->groups, p->seeds);
    *p = (TablePoints){0};
}

bool table_setting(const char *settings, const char *key, char *out, size_t size) {
    size_t length = strlen(key);
    for (const char *at = settings; *at;) {
        size_t n = strcspn(at, ",");
        if (n > length && at[length] == '=' && strncmp(at, key, length) == 0) {
            size_t m = n - length - 1 < size ? n - length - 1 : size - 1;
            memcpy(out, at + length + 1, m);
            out[m] = 0;
            return true;
        }
        at += n + (at[n] != 0);
    }
    return false;
}
