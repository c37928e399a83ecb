// Names are matched here, in one pass over the points; what matched is handed to the store as ids
// (results/rows.h). Points of other runs are chosen alike, since a figure may draw several runs.
#include "harness/analysis/choice.h"

#include "engine/base/memory.h"
#include "engine/base/error.h"
#include "engine/base/shipped.h"
#include "engine/base/text.h"
#include "results/rows.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

EMBED(choice_sql, "harness/analysis/choice.sql")

enum { KINDS = 4 };
static const char *const KIND[KINDS] = {"model", "dataset", "method", "label"};

static const Words *list_of(const Choice *c, int kind) {
    const Words *const LISTS[KINDS] = {&c->model, &c->dataset, &c->method, &c->label};
    return LISTS[kind];
}

bool choice_made(const Choice *c) {
    int names = 0;
    for (int kind = 0; kind < KINDS; kind++) names += list_of(c, kind)->count;
    return names > 0;
}

// --- names -----------------------------------------------------------------------------------------------

// One wanted name; text is not ended where a comma follows.
typedef struct Wanted {
    const char *text;
    int length, kind;
    bool met; // by a point of the run
} Wanted;

enum { MOST_WANTED = 512, NAME_SIZE = 512 };

typedef struct Known {
    char **names; // (count) of the run, each once
    size_t count, capacity;
} Known;

typedef struct Ids {
    int64_t *ids; // (count)
    size_t count, capacity;
} Ids;

typedef struct Choosing {
    Wanted wanted[MOST_WANTED];
    int count;
    int64_t run;
    Known known[KINDS];
    Ids points, models; // that are chosen
    bool any;           // of them are the run's
} Choosing;

// Labels may hold commas themselves: a text that is a name as a whole is one.
static bool is_name(Store *store, int kind, const char *text, bool *out, Error *e) {
    Rows *r = rows_named(store, choice_sql, KIND[kind], 0, e);
    rows_bind_text(r, 1, text);
    *out = rows_next(r) && rows_int(r, 0);
    return rows_end(r, true, e);
}

static bool add_text(Choosing *c, Store *store, int kind, const char *text, Error *e) {
    bool whole;
    if (!is_name(store, kind, text, &whole, e)) return false;
    for (const char *at = text;; at++) { // past a comma
        size_t n = whole ? strlen(at) : strcspn(at, ",");
        if (c->count == MOST_WANTED) return error_input(e, "more than %d names are chosen", MOST_WANTED);
        if (n == 0 || n >= NAME_SIZE)
            return error_input(e, "--%s is '%s', must be names with commas between them", KIND[kind], text);
        c->wanted[c->count++] = (Wanted){.text = at, .length = (int)n, .kind = kind};
        at += n;
        if (!*at) return true;
    }
}

// --- rows ------------------------------------------------------------------------------------------------

enum { RUN, MODEL, POINT, NAMES }; // columns of "rows"

static void add_id(Ids *l, int64_t id) { *LIST_ADD(l->ids, l->count, l->capacity) = id; }

static void add_known(Known *k, const char *name) {
    for (size_t i = 0; i < k->count; i++)
        if (strcmp(k->names[i], name) == 0) return;
    *LIST_ADD(k->names, k->count, k->capacity) = mem_text(name, strlen(name));
}

// Whether a row is of a wanted name of each kind that has any.
static bool is_chosen(Choosing *c, const Rows *r) {
    bool wants[KINDS] = {false}, has[KINDS] = {false}, all = true;
    for (int i = 0; i < c->count; i++) {
        Wanted *w = &c->wanted[i];
        bool met = false;
        if (rows_type(r, NAMES + w->kind) != VALUE_NULL) {
            const char *name = rows_text(r, NAMES + w->kind);
            char pattern[NAME_SIZE];
            snprintf(pattern, sizeof pattern, "%.*s", w->length, w->text);
            met = strcmp(pattern, name) == 0 || fnmatch(pattern, name, 0) == 0;
        }
        wants[w->kind] = true;
        has[w->kind] = has[w->kind] || met;
        w->met = w->met || (met && rows_int(r, RUN) == c->run);
    }
    for (int kind = 0; kind < KINDS; kind++) all = all && (has[kind] || !wants[kind]);
    return all;
}

static void take(Choosing *c, const Rows *r) {
    bool own = rows_int(r, RUN) == c->run;
    for (int kind = 0; own && kind < KINDS; kind++)
        if (rows_type(r, NAMES + kind) != VALUE_NULL) add_known(&c->known[kind], rows_text(r, NAMES + kind));
    if (!is_chosen(c, r)) return;
    c->any = c->any || own;
    add_id(&c->models, rows_int(r, MODEL));
    if (rows_type(r, POINT) != VALUE_NULL) add_id(&c->points, rows_int(r, POINT));
}

// --- names that aren't there

static bool unknown(const Choosing *c, const Wanted *w, Error *e) {
    enum { MOST = 12 };
    const Known *k = &c->known[w->kind];
    char name[NAME_SIZE];
    LOCAL_TEXT list = {0};
    snprintf(name, sizeof name, "%.*s", w->length, w->text);
    const char *near = suggest(name, k->names, k->count, sizeof *k->names);
    for (size_t i = 0; i < k->count && i < MOST; i++)
        text_printf(&list, "%s'%s'", i ? ", " : "", k->names[i]);
    if (k->count > MOST) text_printf(&list, " and %zu more", k->count - MOST);
    if (!k->count)
        error_input(e, "run %lld has no %ss: it measured steps of given shapes", (long long)c->run,
                    KIND[w->kind]);
    else if (near)
        error_input(e, "run %lld has no %s '%s'; did you mean '%s'? It has %s", (long long)c->run,
                    KIND[w->kind], name, near, text_get(&list));
    else
        error_input(e, "run %lld has no %s '%s'; it has %s", (long long)c->run, KIND[w->kind], name,
                    text_get(&list));
    return false;
}

static void release(Choosing *c) {
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < c->known[kind].count; i++) mem_free(c->known[kind].names[i]);
        mem_free(c->known[kind].names);
    }
    MEM_FREE(c->points.ids, c->models.ids, c);
}

bool choice_apply(const Choice *choice, Store *store, int64_t run, Error *e) {
    if (!choice_made(choice)) return true;
    Choosing *c = mem_new(1, sizeof *c);
    bool ok = true;
    c->run = run;
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; ok && i < list_of(choice, kind)->count; i++)
            ok = add_text(c, store, kind, list_of(choice, kind)->items[i], e);
    Rows *r = ok ? rows_named(store, choice_sql, "rows", 0, e) : NULL;
    while (r && rows_next(r)) take(c, r);
    ok = rows_end(r, ok, e);
    for (int i = 0; ok && i < c->count; i++) ok = c->wanted[i].met || unknown(c, &c->wanted[i], e);
    if (ok && !c->any)
        ok = error_input(e, "run %lld has each name that was chosen, but no point with all of them",
                         (long long)run);
    ok = ok && rows_narrow(store, c->points.ids, c->points.count, c->models.ids, c->models.count, e);
    release(c);
    return ok;
}
