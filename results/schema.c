// Whether a store's schema is this program's. A file from someone else may have a trigger that deletes rows,
// a table that lacks a column, or a view with numbers of its own: the text of the schema shows them all.
//
// A row of sqlite_schema has the statement that made it, as it was written. Tables and indexes are compared
// with the statements of schema.sql, views with those of views.sql.
#include "results/sql.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "results/rows.h"

#include <stdio.h>
#include <string.h>

enum { TYPE, NAME, STATEMENT }; // columns of the query `schema`

// The text without comments, which may be reworded, and with one blank for all whitespace; none before , and
// ), where ALTER TABLE and a person write differently.
static void put_bare(const char *sql, Text *out) {
    bool blank = false;
    for (size_t n; *sql; sql += n) {
        n = strspn(sql, " \t\r\n");
        if (sql[0] == '-' && sql[1] == '-') n = strcspn(sql, "\n");
        blank |= n > 0;
        if (n) continue;
        if (blank && !strchr(",)", *sql)) text_puts(out, " ");
        text_add(out, sql, n = 1);
        blank = false;
    }
}

// --- tables and indexes ----------------------------------------------------------------------------------

// "store 'a.db': its table 'x' ..."
static bool refuse(const Store *s, const char *type, const char *name, const char *why, Error *e) {
    return error_input(e, "store '%s': its %s '%.100s' %s", s->path, type, name, why);
}

static const char FOREIGN[] = "was not made by this program: drop it (sqlite3) if you trust the rest";
static const char ALTERED[] = "is not as this program makes it: take an untouched copy of the store";

// sql: bare. Adds its name to `found`.
static bool check_row(const Store *s, const char *schema, const Rows *r, const char *sql, Text *found,
                      Error *e) {
    const char *type = rows_text(r, TYPE), *name = rows_text(r, NAME);
    const char *word = strcmp(type, "table") == 0 ? "TABLE" : strcmp(type, "index") == 0 ? "INDEX" : NULL;
    LOCAL_MEMORY char *start = mem_printf("CREATE %s %s ", word ? word : "", name);
    const char *made = word ? strstr(schema, start) : NULL;
    size_t n = strlen(sql);
    bool ok = made && strncmp(made, sql, n) == 0 && made[n] == ';';
    if (ok) text_printf(found, "%s;", start);
    else refuse(s, type, name, made ? ALTERED : FOREIGN, e);
    return ok;
}

// SQLite's own: the index of a UNIQUE, which has no text, and the tables of ANALYZE.
static bool is_own(const Rows *r) {
    const char *type = rows_text(r, TYPE), *name = rows_text(r, NAME);
    if (strcmp(type, "index") == 0) return rows_type(r, STATEMENT) == VALUE_NULL;
    return strcmp(type, "table") == 0 && strncmp(name, "sqlite_stat", strlen("sqlite_stat")) == 0;
}

static bool check_rows(Store *s, const char *schema, Text *found, Error *e) {
    LOCAL_TEXT sql = {0};
    Rows *r = rows_named(s, NULL, "schema", 0, e);
    bool ok = true;
    while (ok && rows_next(r)) {
        if (strcmp(rows_text(r, TYPE), "view") == 0 || is_own(r)) continue;
        text_clear(&sql);
        put_bare(rows_text(r, STATEMENT), &sql);
        ok = check_row(s, schema, r, text_get(&sql), found, e);
    }
    return rows_end(r, ok, e);
}

static bool check_missing(const Store *s, const char *schema, const char *found, Error *e) {
    for (const char *at = schema; (at = strstr(at, "CREATE ")); at++) {
        char type[8], name[64], start[96];
        if (sscanf(at, "CREATE %7s %63s ", type, name) != 2) continue;
        snprintf(start, sizeof start, "CREATE %s %s ;", type, name);
        if (!strstr(found, start))
            return refuse(s, strcmp(type, "TABLE") == 0 ? "table" : "index", name,
                          "is missing: take an untouched copy of the store", e);
    }
    return true;
}

bool store_check_schema(Store *s, const char *schema, Error *e) {
    LOCAL_TEXT bare = {0}, found = {0};
    put_bare(schema, &bare);
    return check_rows(s, text_get(&bare), &found, e) &&
           check_missing(s, text_get(&bare), text_get(&found), e);
}

// --- views -----------------------------------------------------------------------------------------------

static const char CREATE_VIEW[] = "CREATE VIEW ";

bool store_check_views(Store *s, const char *views, bool current, bool *same, Error *e) {
    int left = 0;
    *same = true;
    for (const char *at = views; (at = strstr(at, CREATE_VIEW)); at++) left++;
    Rows *r = rows_named(s, NULL, "schema", 0, e);
    bool ok = true;
    while (ok && rows_next(r)) {
        if (strcmp(rows_text(r, TYPE), "view") != 0) continue;
        const char *sql = rows_text(r, STATEMENT), *at = strstr(views, sql);
        if (at && at[strlen(sql)] == ';') left--;
        else *same = false;
        LOCAL_MEMORY char *start = mem_printf("%s%s AS", CREATE_VIEW, rows_text(r, NAME));
        if (current && !strstr(views, start)) ok = refuse(s, "view", rows_text(r, NAME), FOREIGN, e);
    }
    *same &= left == 0;
    return rows_end(r, ok, e);
}
