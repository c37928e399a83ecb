#include "harness/config/fields.h"

#include "engine/base/error.h"
#include "engine/base/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *place_of(const Field *f, void *out) { return (char *)out + f->offset; }

static const char *name_at(const void *table, size_t i) { return ((const Field *)table)[i].name; }

static bool want_value(const Field *f, const YamlNode *n, Error *e) {
    if (n->kind != NODE_VALUE) return yaml_error(n, e, "'%s' must be one value", f->name);
    return *n->text || yaml_error(n, e, "'%s' is empty: give it a value or take the line away", f->name);
}

static bool read_number(const Field *f, const YamlNode *n, void *out, Error *e) {
    char *end;
    errno = 0;
    double x = strtod(n->text, &end);
    if (end == n->text || *end || errno || (f->type == FIELD_INT && x != floor(x)) ||
        !(x >= f->low && x <= f->high))
        return yaml_error(n, e, "'%s' is '%s', must be %s from %.10g to %.10g", f->name, n->text,
                          f->type == FIELD_INT ? "a whole number" : "a number", f->low, f->high);
    if (f->type == FIELD_INT) *(int *)place_of(f, out) = (int)x;
    else *(double *)place_of(f, out) = x;
    return true;
}

// strtoull alone would take "-5".
static bool read_seed(const Field *f, const YamlNode *n, void *out, Error *e) {
    char *end;
    errno = 0;
    unsigned long long x = strtoull(n->text, &end, 10);
    if (n->text[0] < '0' || n->text[0] > '9' || *end || errno || x > INT64_MAX)
        return yaml_error(n, e, "'%s' is '%s', must be a whole number from 0 to 2^63 - 1", f->name, n->text);
    *(uint64_t *)place_of(f, out) = x;
    return true;
}

static bool read_choice(const Field *f, const YamlNode *n, void *out, Error *e) {
    Text list = {0};
    for (int i = 0; f->choices[i]; i++) {
        if (strcmp(f->choices[i], n->text) == 0) {
            *(int *)place_of(f, out) = i;
            text_release(&list);
            return true;
        }
        text_printf(&list, "%s%s", i ? ", " : "", f->choices[i]);
    }
    yaml_error(n, e, "'%s' is '%s', must be one of %s", f->name, n->text, text_get(&list));
    text_release(&list);
    return false;
}

static bool read_texts(const Field *f, const YamlNode *n, void *out, Error *e) {
    FieldTexts *texts = place_of(f, out);
    texts->count = 0;
    if (n->kind == NODE_MAP) return yaml_error(n, e, "'%s' must be a list: [one, two]", f->name);
    for (const YamlNode *item = n->kind == NODE_LIST ? n->first : n; item; item = item->next) {
        if (!want_value(f, item, e)) return false;
        if (texts->count == FIELD_TEXTS_MAX)
            return yaml_error(item, e, "'%s' has more than %d items", f->name, FIELD_TEXTS_MAX);
        texts->items[texts->count++] = item->text;
        if (n->kind != NODE_LIST) break;
    }
    return true;
}

static bool read_each(const Field *f, const YamlNode *n, void *out, Error *e) {
    const FieldTable *table = f->table;
    int *count = (int *)(void *)((char *)out + f->count_offset);
    *count = 0;
    for (const YamlNode *item = n->kind == NODE_LIST ? n->first : n; item; item = item->next) {
        char *slot = (char *)place_of(f, out) + (size_t)*count * table->size;
        if (*count == (int)f->high)
            return yaml_error(item, e, "'%s' has more than %.0f items", f->name, f->high);
        if (table->defaults) memcpy(slot, table->defaults, table->size);
        else memset(slot, 0, table->size);
        if (!fields_read(table, item, slot, e)) return false;
        ++*count;
        if (n->kind != NODE_LIST) break;
    }
    return *count > 0 || yaml_error(n, e, "'%s' is empty: it needs at least %s", f->name, table->what);
}

static bool read_field(const Field *f, const YamlNode *n, void *out, Error *e) {
    switch (f->type) {
    case FIELD_TEXTS: return read_texts(f, n, out, e);
    case FIELD_NODE: *(const YamlNode **)place_of(f, out) = n; return true;
    case FIELD_MAP: return fields_read(f->table, n, place_of(f, out), e);
    case FIELD_EACH: return read_each(f, n, out, e);
    default: break;
    }
    if (!want_value(f, n, e)) return false;
    switch (f->type) {
    case FIELD_SEED: return read_seed(f, n, out, e);
    case FIELD_CHOICE: return read_choice(f, n, out, e);
    case FIELD_TEXT: *(const char **)place_of(f, out) = n->text; return true;
    default: return read_number(f, n, out, e);
    }
}

static const Field *find(const FieldTable *t, const YamlNode *n, Error *e) {
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->fields[i].name, n->key) == 0) return &t->fields[i];
    const char *nearest = suggest(n->key, t->fields, t->count, name_at);
    const YamlNode key = yaml_key(n);
    Text known = {0};
    for (size_t i = 0; i < t->count && !nearest; i++)
        text_printf(&known, "%s%s", i ? ", " : "", t->fields[i].name);
    if (nearest) yaml_error(&key, e, "%s has no key '%s'; did you mean '%s'?", t->what, n->key, nearest);
    else yaml_error(&key, e, "%s has no key '%s'; there are %s", t->what, n->key, text_get(&known));
    text_release(&known);
    return NULL;
}

static bool has_required(const FieldTable *t, const YamlNode *node, Error *e) {
    for (size_t i = 0; i < t->count; i++)
        if (t->fields[i].required && !yaml_find(node, t->fields[i].name))
            return yaml_error(node, e, "%s needs '%s': add a line '%s: ...'", t->what, t->fields[i].name,
                              t->fields[i].name);
    return true;
}

// A value alone, where the table says which key it is meant for.
static bool read_lone(const FieldTable *t, const YamlNode *node, void *out, Error *e) {
    for (size_t i = 0; i < t->count; i++)
        if (t->lone_key && strcmp(t->fields[i].name, t->lone_key) == 0)
            return read_field(&t->fields[i], node, out, e);
    return yaml_error(node, e, "%s must be a map: lines such as '%s: ...'", t->what, t->fields[0].name);
}

bool fields_read(const FieldTable *t, const YamlNode *node, void *out, Error *e) {
    *(const YamlNode **)out = node;
    if (node->kind == NODE_VALUE) return read_lone(t, node, out, e);
    if (node->kind == NODE_LIST)
        return yaml_error(node, e, "%s must be a map, not a list: lines such as '%s: ...'", t->what,
                          t->fields[0].name);
    for (const YamlNode *n = node->first; n; n = n->next) {
        const Field *f = find(t, n, e);
        if (!f || !read_field(f, n, out, e)) return false;
    }
    return has_required(t, node, e);
}
