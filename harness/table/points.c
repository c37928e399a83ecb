#include "harness/table/points.h"

#include "engine/base/shipped.h"
#include "engine/base/memory.h"
#include "results/rows.h"

#include <string.h>

EMBED(table_points_sql, "harness/table/points.sql")

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
    SUBTASKS,
    TEMPERATURE,
    PROMPTS,
    DOUBT,
    FIT,
    FIT_TEXT
};

static const char *keep(TablePoints *p, const char *text) {
    mem_grow(&p->texts, &p->text_capacity, p->text_count + 1, sizeof *p->texts);
    char *copy = mem_text(text, strlen(text));
    if (copy) p->texts[p->text_count++] = copy;
    return copy;
}

static bool add_seed(TablePoints *p, const Rows *r) {
    mem_grow(&p->seeds, &p->seed_capacity, p->seed_count + 1, sizeof *p->seeds);
    TableSeed s = {rows_int(r, POINT), rows_int(r, BASELINE), keep(p, rows_text(r, DOUBT))};
    p->seeds[p->seed_count++] = s;
    p->groups[p->group_count - 1].count++;
    return s.doubt;
}

static bool add_group(TablePoints *p, const Rows *r) {
    mem_grow(&p->groups, &p->group_capacity, p->group_count + 1, sizeof *p->groups);
    TableGroup g = {.model = keep(p, rows_text(r, MODEL)),
                    .stand_in = keep(p, rows_text(r, STAND_IN)),
                    .dtype = keep(p, rows_text(r, DTYPE)),
                    .device = keep(p, rows_text(r, DEVICE)),
                    .dataset = keep(p, rows_text(r, DATASET)),
                    .method = keep(p, rows_text(r, METHOD)),
                    .decoder = keep(p, rows_text(r, DECODER)),
                    .label = keep(p, rows_text(r, LABEL)),
                    .settings = keep(p, rows_text(r, SETTINGS)),
                    .subtasks = keep(p, rows_text(r, SUBTASKS)),
                    .fit = rows_int(r, FIT),
                    .fitted = keep(p, rows_text(r, FIT_TEXT)),
                    .temperature = rows_real(r, TEMPERATURE),
                    .number = (int)rows_int(r, NUMBER),
                    .prompts = (int)rows_int(r, PROMPTS),
                    .first = p->seed_count};
    p->groups[p->group_count++] = g;
    return true;
}

bool table_points_read(Store *store, int64_t run, TablePoints *out, Error *e) {
    bool ok = true;
    *out = (TablePoints){0};
    Rows *r = rows_open(store, table_points_sql, e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    while (ok && rows_next(r))
        ok = (rows_int(r, FIRST) != rows_int(r, NUMBER) || add_group(out, r)) && add_seed(out, r);
    if (rows_end(r, ok, e)) return true;
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
