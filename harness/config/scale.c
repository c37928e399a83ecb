// The section's nodes move to where they count, so that every later message names the line in the section.
#include "harness/config/scale.h"

#include <string.h>

static void add_child(YamlNode *map, YamlNode *child) {
    if (map->last) map->last->next = child;
    else map->first = child;
    map->last = child;
    child->next = NULL;
    map->count++;
}

static bool put(YamlNode *at, YamlNode *with, Error *e);

// What a key of `over` means in `at`: the child of a map (NULL: there is none yet), or an item of a list.
static bool find_place(YamlNode *at, const YamlNode *over, YamlNode **out, Error *e) {
    *out = at->kind == NODE_MAP ? yaml_find(at, over->key) : yaml_item(at, over->key, e);
    if (at->kind == NODE_MAP) return true;
    if (!*out) {
        const YamlNode key = yaml_key(over);
        return error_within(e, "%s:%d:%d", key.file, key.line, key.column);
    }
    if ((*out)->kind == NODE_VALUE && over->kind == NODE_MAP)
        return yaml_error(*out, e, "'%s' stands alone: write {name: %s}, or nothing can be changed in it",
                          (*out)->text, (*out)->text);
    return true;
}

static bool put_each(YamlNode *at, YamlNode *map, Error *e) {
    for (YamlNode *n = map->first, *next; n; n = next) {
        YamlNode *place;
        next = n->next;
        if (!find_place(at, n, &place, e)) return false;
        if (place && !put(place, n, e)) return false;
        if (!place) add_child(at, n);
    }
    return true;
}

static bool put(YamlNode *at, YamlNode *with, Error *e) {
    if (with->kind == NODE_MAP && at->kind != NODE_VALUE) return put_each(at, with, e);
    yaml_become(at, with);
    return true;
}

static bool apply(YamlNode *root, YamlNode *section, Error *e) {
    if (section->kind != NODE_MAP)
        return yaml_error(section, e, "'" SCALE_SECTION "' must be a map of sections: {generation: ...}");
    for (const char *const *key = (const char *const[]){SCALE_SECTION, "name", NULL}; *key; key++) {
        const YamlNode *n = yaml_find(section, *key);
        const YamlNode at = n ? yaml_key(n) : *section;
        if (n) return yaml_error(&at, e, "'" SCALE_SECTION "' has no '%s': take it away", *key);
    }
    if (!put_each(root, section, e)) return false;
    section->first = section->last = NULL;
    section->count = 0;
    return true;
}

bool scale_apply(YamlTree *t, const char *scale, Error *e) {
    YamlNode *section = yaml_find(t->root, SCALE_SECTION);
    if (!scale || strcmp(scale, "full") == 0) return true;
    if (strcmp(scale, SCALE_SECTION) != 0)
        return error_input(e, "--scale is '%s', must be " SCALE_SECTION " or full", scale);
    return section ? apply(t->root, section, e)
                   : yaml_error(t->root, e,
                                "this config has no section '" SCALE_SECTION "': it says nothing of that "
                                "scale");
}
