// See values.h. Nothing is written to the struct for a key whose value is refused.
#include "harness/config/values.h"

#include "engine/base/ranges.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

// --- structs

static bool read_value(const Arg *a, const YamlNode *n, void *value, Error *e) {
    char shown[80];
    Error why = {0};
    snprintf(shown, sizeof shown, "'%s'", a->name);
    if (n->kind != NODE_VALUE) return yaml_error(n, e, "'%s' must be one value", a->name);
    if (!*n->text) return yaml_error(n, e, "'%s' is empty: give it a value or take the line away", a->name);
    return arg_set(a, shown, value, n->text, &why) || yaml_error(n, e, "%s", why.text);
}

static bool read_words(const Arg *a, const YamlNode *n, Words *words, Error *e) {
    words->count = 0;
    if (n->kind == NODE_MAP) return yaml_error(n, e, "'%s' must be a list: [one, two]", a->name);
    for (const YamlNode *item = n->kind == NODE_LIST ? n->first : n; item; item = item->next) {
        if (words->count == WORDS_MAX)
            return yaml_error(item, e, "'%s' has more than %d items", a->name, WORDS_MAX);
        if (!read_value(a, item, words, e)) return false;
        if (n->kind != NODE_LIST) break;
    }
    return true;
}

static bool read_each(const Arg *a, const YamlNode *n, void *items, int *count, Error *e) {
    const ArgTable *table = a->table;
    *count = 0;
    for (const YamlNode *item = n->kind == NODE_LIST ? n->first : n; item; item = item->next) {
        char *slot = (char *)items + (size_t)*count * table->size;
        if (*count == (int)a->high)
            return yaml_error(item, e, "'%s' has more than %.0f items", a->name, a->high);
        if (table->defaults) memcpy(slot, table->defaults, table->size);
        else memset(slot, 0, table->size);
        if (!values_read(table, item, slot, e)) return false;
        ++*count;
        if (n->kind != NODE_LIST) break;
    }
    return *count > 0 || yaml_error(n, e, "'%s' is empty: it needs at least %s", a->name, table->what);
}

static bool read_row(const Arg *a, const YamlNode *n, void *out, Error *e) {
    void *value = (char *)out + a->at;
    switch (a->type) {
    case ARG_WORDS: return read_words(a, n, value, e);
    case ARG_NODE: *(const YamlNode **)value = n; return true;
    case ARG_MAP: return values_read(a->table, n, value, e);
    case ARG_EACH: return read_each(a, n, value, (int *)(void *)((char *)out + a->count_at), e);
    default: return read_value(a, n, value, e);
    }
}

static const Arg *find(const ArgTable *t, const YamlNode *n, Error *e) {
    const Arg *row = arg_find(t->rows, t->count, n->key);
    if (row) return row;
    const char *nearest = suggest(n->key, t->rows, t->count, sizeof *t->rows);
    const YamlNode key = yaml_key(n);
    LOCAL_TEXT known = {0};
    for (size_t i = 0; i < t->count && !nearest; i++)
        text_printf(&known, "%s%s", i ? ", " : "", t->rows[i].name);
    if (nearest) yaml_error(&key, e, "%s has no key '%s'; did you mean '%s'?", t->what, n->key, nearest);
    else yaml_error(&key, e, "%s has no key '%s'; there are %s", t->what, n->key, text_get(&known));
    return NULL;
}

bool values_read(const ArgTable *t, const YamlNode *node, void *out, Error *e) {
    assert(t->count > 0);
    *(const YamlNode **)out = node;
    if (node->kind == NODE_VALUE && t->lone_key) // a single value in place of a map
        return read_row(arg_find(t->rows, t->count, t->lone_key), node, out, e);
    if (node->kind != NODE_MAP)
        return yaml_error(node, e, "%s must be a map%s: lines such as '%s: ...'", t->what,
                          node->kind == NODE_LIST ? ", not a list" : "", t->rows[0].name);
    for (const YamlNode *n = node->first; n; n = n->next) {
        const Arg *a = find(t, n, e);
        if (!a || !read_row(a, n, out, e)) return false;
    }
    for (size_t i = 0; i < t->count; i++)
        if (t->rows[i].required && !yaml_find(node, t->rows[i].name))
            return yaml_error(node, e, "%s needs '%s': add a line '%s: ...'", t->what, t->rows[i].name,
                              t->rows[i].name);
    return true;
}

// --- axes

static bool add_value(YamlTree *t, YamlNode *list, const YamlNode *like, const char *text, Error *e) {
    if (list->count == AXIS_MAX)
        return yaml_error(like, e, "this axis has more than %d values: take larger steps", AXIS_MAX);
    return yaml_append(t, list, like, text, e);
}

// Items are printed with ten digits, so that 0.1..0.9+0.1 gives the numbers that a user would have written.
static bool add_range(YamlTree *t, YamlNode *list, const YamlNode *like, Error *e) {
    const char *at = like->text;
    Range r;
    double x;
    if (!range_read(&at, &r) || *at)
        return yaml_error(like, e,
                          "'%s' is not a range: write 2..14, 2..14+2 or 1..64*2, the smaller number first",
                          like->text);
    for (int i = 0; range_item(&r, i, &x); i++) {
        char text[64];
        snprintf(text, sizeof text, "%.10g", x);
        if (!add_value(t, list, like, text, e)) return false;
    }
    return true;
}

bool axis_expand(YamlTree *t, YamlNode *axis, Error *e) {
    YamlNode list = {.kind = NODE_LIST};
    if (axis->kind == NODE_MAP) return yaml_error(axis, e, "an axis must be a value, a list or a range");
    for (const YamlNode *item = axis->kind == NODE_LIST ? axis->first : axis; item; item = item->next) {
        if (item->kind != NODE_VALUE)
            return yaml_error(item, e, "each item of an axis must be one value or a range such as 2..14+2");
        if (!*item->text) return yaml_error(item, e, "this value is empty: write one, or take it away");
        bool range = !item->quoted && range_starts(item->text);
        if (!(range ? add_range(t, &list, item, e) : add_value(t, &list, item, item->text, e))) return false;
        if (axis->kind != NODE_LIST) break;
    }
    if (list.count == 0) return yaml_error(axis, e, "this axis has no values: write one, or take it away");
    axis->kind = NODE_LIST;
    axis->first = list.first;
    axis->last = list.last;
    axis->count = list.count;
    return true;
}
