#include "harness/table/run.h"

#include "engine/base/memory.h"
#include "harness/config/yaml.h"
#include "results/rows.h"

#include <string.h>

// A config is read as a tree only: what names it must be found in configs of older programs, too.
static bool lists(const YamlNode *root, const char *key, const char *name) {
    const YamlNode *list = root->kind == NODE_MAP ? yaml_find(root, key) : NULL;
    if (list && list->kind == NODE_VALUE) return strcmp(list->text, name) == 0;
    for (const YamlNode *n = list ? list->first : NULL; n; n = n->next)
        if (n->kind == NODE_VALUE && strcmp(n->text, name) == 0) return true;
    return false;
}

static bool names_it(const char *config, const char *name) {
    YamlTree tree = {0};
    if (!yaml_parse(&tree, config, strlen(config), "config", NULL)) return false;
    bool found = lists(tree.root, "tables", name) || lists(tree.root, "plots", name);
    yaml_release(&tree);
    return found;
}

// Of the runs of this kind the newest that is called so, or whose config names it.
static bool find_named(Store *store, const char *name, const char *kind, int64_t *run, Error *e) {
    static const char SQL[] = "SELECT id, name, config FROM run WHERE kind = ?1 AND (EXISTS (SELECT 1 FROM "
                              "point JOIN sample ON point_id ="
                              " point.id WHERE run_id = run.id) OR EXISTS (SELECT 1 FROM attempt JOIN "
                              "surface ON attempt_id = attempt.id"
                              " WHERE run_id = run.id)) ORDER BY id DESC";
    Rows *r = rows_open(store, SQL, e);
    if (!r) return false;
    *run = 0;
    rows_bind_text(r, 1, strcmp(kind, "sweep") == 0 ? kind : "surface");
    while (!*run && rows_next(r))
        if (strcmp(rows_text(r, 1), name) == 0 || names_it(rows_text(r, 2), name)) *run = rows_int(r, 0);
    return rows_end(r, true, e);
}

bool table_run_names(Store *store, int64_t run, const char *item, bool *names, Error *e) {
    Rows *r = rows_open(store, "SELECT name, coalesce(config, '') FROM run WHERE id = ?1", e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    *names = rows_next(r) && (strcmp(rows_text(r, 0), item) == 0 || names_it(rows_text(r, 1), item));
    return rows_end(r, true, e);
}

bool table_run_find(Store *store, const char *name, const char *kind, int64_t *run, Error *e) {
    static const char ANY[] = "SELECT max(run_id) FROM attempt JOIN surface ON attempt_id = attempt.id";
    if (!find_named(store, name, kind, run, e)) return false;
    return *run || strcmp(kind, "surface") != 0 || rows_one_int(store, ANY, 0, run, e);
}

// --- what it chose ---------------------------------------------------------------------------------------

static bool add_chosen(Table *t, const char *text) {
    mem_grow(&t->chosen, &t->chosen_capacity, t->chosen_count + 1, sizeof *t->chosen);
    t->chosen[t->chosen_count++] = table_keep(t, text);
    return true;
}

static bool add_list(Table *t, const char *config) {
    YamlTree tree = {0};
    bool ok = true;
    if (!yaml_parse(&tree, config, strlen(config), "config", NULL)) return true;
    const YamlNode *list = tree.root->kind == NODE_MAP ? yaml_find(tree.root, "chosen") : NULL;
    if (list && list->kind == NODE_VALUE) ok = add_chosen(t, list->text);
    for (const YamlNode *n = list ? list->first : NULL; ok && n; n = n->next)
        ok = n->kind != NODE_VALUE || add_chosen(t, n->text);
    yaml_release(&tree);
    return ok;
}

static bool add_left_out(Store *store, int64_t run, Table *t, Error *e) {
    bool ok = true;
    Rows *r = rows_open(
        store,
        "SELECT 'left out: ' || name FROM content WHERE run_id = ?1 AND kind = 'left out' ORDER BY name", e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    while (ok && rows_next(r)) ok = add_chosen(t, rows_text(r, 0));
    return rows_end(r, ok, e);
}

bool table_run_chosen(Store *store, int64_t run, Table *t, Error *e) {
    bool ok = true;
    Rows *r = rows_open(store, "SELECT config FROM run WHERE id = ?1 AND config IS NOT NULL", e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    if (rows_next(r)) ok = add_list(t, rows_text(r, 0));
    return rows_end(r, ok, e) && add_left_out(store, run, t, e);
}
