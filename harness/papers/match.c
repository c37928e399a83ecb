// See match.h. A row matches groups of points by model, dataset and method; what keeps numbers from being
// compared is collected in `why`.
#include "harness/papers/match.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "results/rows.h"
#include "engine/decode/method.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// --- models ----------------------------------------------------------------------------------------------

enum { NAME = 128, OTHER = 0, LIKE = 2, SAME = 3 };

// Letters and digits alone, in lower case: "LLaMA-2-7B-Chat" is llama2-7b-chat.
static void plain(const char *name, char out[NAME]) {
    size_t n = 0;
    for (; *name && n < NAME - 1; name++)
        if (isalnum((unsigned char)*name)) out[n++] = (char)tolower((unsigned char)*name);
    out[n] = 0;
}

// Papers turn words about: LLaMA-2-7B-Chat is LLaMA-2-Chat-7B. Each letter as often in both is near enough,
// for names that begin alike.
static bool same_letters(const char *a, const char *b) {
    int counts[256] = {0};
    for (; *a; a++) counts[(unsigned char)*a]++;
    for (; *b; b++) counts[(unsigned char)*b]--;
    for (int i = 0; i < 256; i++)
        if (counts[i]) return false;
    return true;
}

static int model_score(const char *published, const char *ours) {
    char a[NAME], b[NAME];
    plain(published, a);
    plain(ours, b);
    if (strcmp(a, b) == 0 || (*a && strncmp(a, b, 4) == 0 && same_letters(a, b))) return SAME;
    return *a && strlen(b) > 3 && (strstr(a, b) || strstr(b, a)) ? LIKE : OTHER;
}

// Rows may be one model with different additions, such as drafts: a run's model then has the row's name, or
// the model's and the row's.
static int row_score(const PublishedRow *row, const char *ours) {
    char a[NAME], b[NAME], both[2 * NAME];
    int score = model_score(row->model, ours);
    plain(row->row, a);
    plain(ours, b);
    if (score < LIKE && *a && strcmp(a, b) == 0) return LIKE;
    plain(row->model, both);
    memcpy(both + strlen(both), a, strlen(a) + 1);
    return *row->model && strcmp(both, b) == 0 ? SAME : score;
}

bool table_match_same_model(const PublishedRow *row, const char *ours) {
    return row_score(row, ours) == SAME;
}
bool table_match_like_model(const PublishedRow *row, const char *ours) {
    return model_score(row->model, ours) >= LIKE;
}

static bool meant_for_another(const Published *item, const char *ours) {
    for (size_t i = 0; i < item->row_count; i++)
        if (row_score(&item->rows[i], ours) >= LIKE) return true;
    return false;
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
    return several || meant_for_another(item, points->groups[0].model) ? SAME + 1 : OTHER;
}

// --- datasets --------------------------------------------------------------------------------------------

// Our datasets in place of a published one, the best first.
static const struct {
    const char *dataset, *task, *stand_in;
} STAND_INS[] = {
    {"mt-bench", "", "chat"},
    {"mt-bench", "", "reference-stories"},
    {"humaneval", "", "code"},
    {"humaneval", "", "reference-code"},
    {"mbpp", "", "mbpp-sanitized"},
    {"mbpp", "", "code"},
    {"mbpp", "", "reference-code"},
    {"classeval", "", "code"},
    {"classeval", "", "reference-code"},
    {"gsm8k", "", "mathematics"},
    {"gsm8k", "", "reference-mathematics"},
    {"cnndm", "", "cnndm-llma"},
    {"cnndm", "", "summarisation"},
    {"cnndm", "", "reference-stories"},
    {"xsum", "", "xsum-helm"},
    {"xsum", "", "summarisation"},
    {"xsum", "", "reference-stories"},
    {"wmt16", "", "translation"},
    {"spec-bench", "mt-bench", "chat"},
    {"spec-bench", "mt-bench", "reference-stories"},
    {"spec-bench", "translation", "translation"},
    {"spec-bench", "summarization", "summarisation"},
    {"spec-bench", "math_reasoning", "mathematics"},
    {"spec-bench", "math_reasoning", "reference-mathematics"},
};
enum { STAND_IN_COUNT = sizeof STAND_INS / sizeof *STAND_INS, NO_DATASET = STAND_IN_COUNT + 1 };

// "gsm8k:ouroboros" is gsm8k in the frame of a paper.
static bool same_dataset(const char *dataset, const char *ours) {
    size_t n = strcspn(ours, ":");
    return strlen(dataset) == n && strncmp(dataset, ours, n) == 0;
}

// 0: it is the one; above: how far down in the list; NO_DATASET: it is none.
static int dataset_rank(const char *dataset, const char *task, const char *ours) {
    if (!*dataset || same_dataset(dataset, ours)) return 0;
    for (int i = 0; i < STAND_IN_COUNT; i++)
        if (strcmp(STAND_INS[i].dataset, dataset) == 0 && strcmp(STAND_INS[i].stand_in, ours) == 0 &&
            (!*STAND_INS[i].task || strcmp(STAND_INS[i].task, task) == 0))
            return i + 1;
    return NO_DATASET;
}

// --- settings --------------------------------------------------------------------------------------------

static bool same_value(const char *a, const char *b) {
    char *a_end, *b_end;
    double x = strtod(a, &a_end), y = strtod(b, &b_end);
    return *a && *b && !*a_end && !*b_end ? x == y : strcmp(a, b) == 0;
}

// How many of "key=value,..." the group has otherwise.
static int setting_differences(const char *settings, const TableGroup *g, Text *out) {
    int count = 0;
    for (const char *at = settings; *at;) {
        size_t n = strcspn(at, ","), key = strcspn(at, "=");
        char name[64], want[64], got[64];
        if (key < n && key < sizeof name && n - key - 1 < sizeof want) {
            memcpy(name, at, key);
            name[key] = 0;
            memcpy(want, at + key + 1, n - key - 1);
            want[n - key - 1] = 0;
            bool other = table_setting(g->settings, name, got, sizeof got) && !same_value(want, got);
            if (other && out) text_printf(out, "%s%s=%s, not %s", out->length ? "; " : "", name, got, want);
            count += other;
        }
        at += n + (at[n] != 0);
    }
    return count;
}

static bool same_temperature(const PublishedRow *row, const TableGroup *g) {
    const char *at = strstr(row->generation, "temperature=");
    return !at || strtod(at + strlen("temperature="), NULL) == g->temperature;
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

static bool find_part(const Published *item, const PublishedRow *row, const char *task,
                      const TablePoints *points, const TableJudge *judge, const TableGroup **out, Error *e) {
    int needed = needed_score(item, row, points);
    bool open = method_text_open(row->method), several = has_other_settings(item, row);
    Candidate best = {0};
    for (size_t i = 0; i < points->group_count; i++) {
        const TableGroup *g = &points->groups[i];
        Candidate c = {.group = g, .speed = -1};
        c.dataset = dataset_rank(row->dataset, task, g->dataset);
        if (c.dataset == NO_DATASET || !method_text_same_method(row->method, g->decoder) ||
            !same_temperature(row, g) || row_score(row, g->model) < needed)
            continue;
        c.method = method_text_differences(row->method, g->decoder, NULL);
        c.settings = setting_differences(row->generation, g, NULL);
        if (c.method && several) continue;
        if (open && !judge->speed(judge->state, g, c.dataset || !*task ? NULL : task, &c.speed, e))
            return false;
        if (nearer(&c, &best)) best = c;
    }
    *out = best.group;
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
    setting_differences(row->generation, g, why);
    snprintf(count, sizeof count, "%zu", g->count);
    if (g->temperature > 0 && g->count < 5) because(why, "%s seeds of 5 at least%s", count, "");
}

// --- all of it -------------------------------------------------------------------------------------------

static const char *const SUBTASKS[] = {"mt-bench", "translation",    "summarization",
                                       "qa",       "math_reasoning", "rag"};

static bool add_part(const Published *item, const PublishedRow *row, const char *task,
                     const TablePoints *points, const TableJudge *judge, TableMatch *out, Error *e) {
    const TableGroup *g = NULL;
    if (!find_part(item, row, task, points, judge, &g, e)) return false;
    if (!g) return true;
    out->groups[out->count] = g;
    out->subtasks[out->count++] = *task && same_dataset(row->dataset, g->dataset) ? task : NULL;
    return true;
}

bool table_match(const Published *item, const PublishedRow *row, const TablePoints *points,
                 const TableJudge *judge, TableMatch *out, Error *e) {
    bool ok = true;
    *out = (TableMatch){0};
    if (!*row->method || !points->group_count) return true;
    if (strcmp(row->task, "mean") != 0) ok = add_part(item, row, row->task, points, judge, out, e);
    else
        for (size_t i = 0; ok && i < sizeof SUBTASKS / sizeof *SUBTASKS; i++)
            ok = add_part(item, row, SUBTASKS[i], points, judge, out, e);
    if (ok && out->count) compare(row, out, &out->why);
    if (!ok) table_match_release(out);
    return ok;
}

void table_match_release(TableMatch *m) {
    text_release(&m->why);
    *m = (TableMatch){0};
}

// --- methods as published rows write them

// A method's parameters out of its text, presets as they are; `open`: those that are '*', and texts (a file's
// name, a tree) that are not mentioned.
typedef struct Parsed {
    const MethodInfo *info;
    void *values;
    bool open[ARGS_MAX];
} Parsed;

static bool set_open(Parsed *p, const char *pair, size_t n) {
    for (size_t i = 0; i < p->info->param_count; i++) {
        size_t key = strlen(p->info->params[i].name);
        if (n != key + 2 || strncmp(pair, p->info->params[i].name, key) != 0 || pair[key] != '=') continue;
        p->open[i] = true;
        return true;
    }
    return false;
}

// Takes the '*' out of "k=*,q=1", and leaves the rest for param_parse.
static bool take_open(Parsed *p, const char *params, Text *rest) {
    for (const char *at = params; *at;) {
        size_t n = args_span(at, ',');
        if (n > 2 && at[n - 1] == '*' && at[n - 2] == '=') {
            if (!set_open(p, at, n)) return false;
        } else {
            text_puts(rest, rest->length ? "," : "");
            text_add(rest, at, n);
        }
        at += n + (at[n] != 0);
    }
    return true;
}

static void parsed_release(Parsed *p) { mem_free(p->values); }

// Whether ":key=value,..." has the key.
static bool names(const char *params, const char *key) {
    size_t n = strlen(key);
    for (const char *at = params; at && *at; at += strcspn(at + 1, ",") + 1)
        if (strncmp(at + 1, key, n) == 0 && at[n + 1] == '=') return true;
    return false;
}

static bool parse(Parsed *p, const char *text, Error *e) {
    const char *colon = strchr(text, ':');
    char name[64];
    size_t n = strcspn(text, ":");
    Text rest = {0};
    *p = (Parsed){.info = NULL};
    if (n >= sizeof name) return false;
    memcpy(name, text, n);
    name[n] = 0;
    p->info = method_find(name, e);
    if (!p->info) return false;
    p->values = mem_new(1, p->info->param_size ? p->info->param_size : 1);
    args_defaults(p->info->params, p->info->param_count, p->values);
    for (size_t i = 0; i < p->info->param_count; i++)
        p->open[i] = p->info->params[i].type == ARG_TEXT && !names(colon, p->info->params[i].name);
    bool ok = (!colon || take_open(p, colon + 1, &rest) ||
               error_input(e, "'%s' leaves open what there is not", text)) &&
              args_parse(p->info->params, p->info->param_count, p->values, text_get(&rest), e);
    text_release(&rest);
    if (!ok) parsed_release(p);
    return ok;
}

bool method_text_check(const char *text, Error *e) {
    Parsed p;
    if (!parse(&p, text, e)) return false;
    parsed_release(&p);
    return true;
}

bool method_text_open(const char *text) { return strstr(text, "=*") != NULL; }

bool method_text_same_method(const char *text, const char *ran) {
    size_t n = strcspn(text, ":");
    return n == strcspn(ran, ":") && strncmp(text, ran, n) == 0;
}

// A value as a person would write it: 0.6, where args_write prints all digits of the nearest double.
static void write_value(const Arg *p, const void *values, Text *out) {
    Text pair = {0};
    args_write(p, 1, values, &pair);
    const char *equals = strchr(text_get(&pair), '=');
    const void *at = (const char *)values + p->at;
    const double *real = at;
    if (p->type == ARG_REAL) text_printf(out, "%.6g", *real);
    else text_puts(out, equals ? equals + 1 : "");
    text_release(&pair);
}

static bool differs(const Parsed *want, const Parsed *ran, size_t i, Text *out) {
    const Arg *p = &want->info->params[i];
    Text a = {0}, b = {0};
    write_value(p, want->values, &a);
    write_value(p, ran->values, &b);
    bool other = strcmp(text_get(&a), text_get(&b)) != 0;
    if (other && out)
        text_printf(out, "%s%s=%s, not %s", out->length ? "; " : "", p->name, text_get(&b), text_get(&a));
    text_release(&a);
    text_release(&b);
    return other;
}

static void resolve(Parsed *p) {
    if (p->info->resolve) p->info->resolve(p->values);
}

// Open parameters are as they ran: others may follow from them.
static void close_open(Parsed *want, const Parsed *ran) {
    for (size_t i = 0; i < want->info->param_count; i++) {
        const Arg *p = &want->info->params[i];
        Text value = {0};
        if (!want->open[i]) continue;
        write_value(p, ran->values, &value);
        args_set(p, 1, want->values, p->name, text_get(&value), NULL);
        text_release(&value);
    }
}

int method_text_differences(const char *text, const char *ran, Text *out) {
    Parsed want, got;
    int count = 0;
    if (!parse(&want, text, NULL)) return 0;
    if (parse(&got, ran, NULL)) {
        bool same = want.info == got.info;
        resolve(&got);
        if (same) close_open(&want, &got);
        resolve(&want);
        for (size_t i = 0; i < want.info->param_count && same; i++)
            count += !want.open[i] && differs(&want, &got, i, out);
        parsed_release(&got);
    }
    parsed_release(&want);
    return count;
}

// --- points

EMBED(table_points_sql, "harness/papers/match.sql")

// Its columns, in order.
enum {
    FIRST,
    NUMBER,
    POINT,
    BASELINE,
    MODEL,
    STAND_IN,
    DTYPE,
    DEVICE,
    DATASET,
    METHOD,
    DECODER,
    LABEL,
    SETTINGS,
    SUBTASK_NAMES,
    TEMPERATURE,
    PROMPTS,
    DOUBT,
    FIT,
    FIT_TEXT
};

static const char *keep_text(TablePoints *p, const char *text) {
    mem_grow(&p->texts, &p->text_capacity, p->text_count + 1, sizeof *p->texts);
    return p->texts[p->text_count++] = mem_text(text, strlen(text));
}

static void add_group(TablePoints *p, const Rows *r) {
    mem_grow(&p->groups, &p->group_capacity, p->group_count + 1, sizeof *p->groups);
    TableGroup g = {.model = keep_text(p, rows_text(r, MODEL)),
                    .stand_in = keep_text(p, rows_text(r, STAND_IN)),
                    .dtype = keep_text(p, rows_text(r, DTYPE)),
                    .device = keep_text(p, rows_text(r, DEVICE)),
                    .dataset = keep_text(p, rows_text(r, DATASET)),
                    .method = keep_text(p, rows_text(r, METHOD)),
                    .decoder = keep_text(p, rows_text(r, DECODER)),
                    .label = keep_text(p, rows_text(r, LABEL)),
                    .settings = keep_text(p, rows_text(r, SETTINGS)),
                    .subtasks = keep_text(p, rows_text(r, SUBTASK_NAMES)),
                    .fit = rows_int(r, FIT),
                    .fitted = keep_text(p, rows_text(r, FIT_TEXT)),
                    .temperature = rows_real(r, TEMPERATURE),
                    .number = (int)rows_int(r, NUMBER),
                    .prompts = (int)rows_int(r, PROMPTS),
                    .first = p->seed_count};
    p->groups[p->group_count++] = g;
}

bool table_points_read(Store *store, int64_t run, TablePoints *out, Error *e) {
    *out = (TablePoints){0};
    Rows *r = rows_ask(store, table_points_sql, run, e);
    while (rows_next(r)) {
        if (rows_int(r, FIRST) == rows_int(r, NUMBER)) add_group(out, r);
        out->groups[out->group_count - 1].count++;
        mem_grow(&out->seeds, &out->seed_capacity, out->seed_count + 1, sizeof *out->seeds);
        out->seeds[out->seed_count++] =
            (TableSeed){rows_int(r, POINT), rows_int(r, BASELINE), keep_text(out, rows_text(r, DOUBT))};
    }
    if (rows_end(r, true, e)) return true;
    table_points_release(out);
    return false;
}

void table_points_release(TablePoints *p) {
    for (size_t i = 0; i < p->text_count; i++) mem_free(p->texts[i]);
    mem_free(p->texts);
    mem_free(p->groups);
    mem_free(p->seeds);
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
