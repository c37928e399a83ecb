// libyaml's events, one by one, become nodes under a stack of open maps and lists. No event is waited for
// that would go deeper or wider than the limits, so a hostile file costs no more than a large one.
#include "harness/config/yaml.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

bool yaml_error(const YamlNode *at, Error *e, const char *format, ...) {
    char text[sizeof e->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_input(e, "%s:%d:%d: %s", at->file, at->line, at->column, text);
}

bool yaml_within(const YamlNode *at, Error *e) {
    return error_within(e, "%s:%d:%d", at->file, at->line, at->column);
}

YamlNode yaml_key(const YamlNode *n) {
    return (YamlNode){.file = n->file, .line = n->key_line, .column = n->key_column};
}

YamlNode *yaml_find(const YamlNode *map, const char *key) {
    for (YamlNode *n = map->first; n && map->kind == NODE_MAP; n = n->next)
        if (strcmp(n->key, key) == 0) return n;
    return NULL;
}

// --- nodes -----------------------------------------------------------------------------------------------

// A copy of `place` with nothing in it and nothing of its own, owned by the tree.
static YamlNode *new_node(YamlTree *t, YamlKind kind, const YamlNode *place, Error *e) {
    if (t->nodes == YAML_NODES) {
        yaml_error(place, e, "there are more than %d values: take some away", YAML_NODES);
        return NULL;
    }
    YamlNode *n = mem_new(1, sizeof *n);
    *n = (YamlNode){.kind = kind, .file = place->file, .line = place->line, .column = place->column};
    n->older = t->newest;
    t->newest = n;
    t->nodes++;
    return n;
}

static void set_text(char **own, const char **shown, const char *text, size_t n) {
    *own = mem_text(text, n);
    *shown = *own;
}

void yaml_add(YamlNode *parent, YamlNode *child) {
    if (parent->last) parent->last->next = child;
    else parent->first = child;
    parent->last = child;
    child->next = NULL;
    parent->count++;
}

static YamlNode *new_value(YamlTree *t, const YamlNode *place, const char *text, size_t n, Error *e) {
    YamlNode *value = new_node(t, NODE_VALUE, place, e);
    if (value) set_text(&value->own_text, &value->text, text, n);
    return value;
}

bool yaml_append(YamlTree *t, YamlNode *list, const YamlNode *like, const char *text, Error *e) {
    YamlNode *value = new_value(t, like, text, strlen(text), e);
    if (value) yaml_add(list, value);
    return value != NULL;
}

void yaml_release(YamlTree *t) {
    for (YamlNode *n = t->newest, *older; n; n = older) {
        older = n->older;
        MEM_FREE(n->own_key, n->own_text, n);
    }
    for (int i = 0; i < t->file_count; i++) mem_free(t->files[i]);
    *t = (YamlTree){0};
}

// --- events ----------------------------------------------------------------------------------------------

typedef struct YamlReading {
    YamlTree *t;
    yaml_parser_t parser;
    const char *file;
    const char *bytes; // (size)
    size_t size;
    YamlNode *open[YAML_DEEPEST]; // maps and lists that have not ended
    int depth;
    YamlNode *key; // read, its value still to come
    YamlNode *root;
    Error *e;
} YamlReading;

static YamlNode place_at(const YamlReading *r, yaml_mark_t mark) {
    return (YamlNode){.file = r->file, .line = (int)mark.line + 1, .column = (int)mark.column + 1};
}

// The place of a byte. libyaml's reader runs ahead of its marks and reports only the offset of a wrong
// character.
static YamlNode place_of_byte(const YamlReading *r, size_t offset) {
    YamlNode at = {.file = r->file, .line = 1, .column = 1};
    for (size_t i = 0; i < offset && i < r->size; i++) {
        bool ends_line = r->bytes[i] == '\n', continues = (r->bytes[i] & 0xc0) == 0x80;
        at.line += ends_line;
        at.column = ends_line ? 1 : at.column + !continues;
    }
    return at;
}

// Keys come as values, too: the first, third, ... in a map.
static bool take_key(YamlReading *r, YamlNode *key) {
    const YamlNode *map = r->open[r->depth - 1];
    if (key->kind != NODE_VALUE || !*key->text)
        return yaml_error(key, r->e, "a key must be one word, such as 'seed: 1'");
    const YamlNode *twin = yaml_find(map, key->text);
    if (twin)
        return yaml_error(key, r->e, "'%s' is given twice, first in line %d: take one away", key->text,
                          twin->line);
    r->key = key;
    return true;
}

static bool take_child(YamlReading *r, YamlNode *n) {
    YamlNode *parent = r->depth ? r->open[r->depth - 1] : NULL;
    if (parent && parent->kind == NODE_MAP && !r->key) return take_key(r, n);
    if (r->key) { // the value takes over its key's text
        n->key = n->own_key = r->key->own_text;
        r->key->own_text = NULL;
        n->key_line = r->key->line;
        n->key_column = r->key->column;
        r->key = NULL;
    }
    if (parent) yaml_add(parent, n);
    else r->root = n;
    return true;
}

static bool take_container(YamlReading *r, YamlKind kind, const YamlNode *place) {
    if (r->depth == YAML_DEEPEST)
        return yaml_error(place, r->e, "maps and lists are nested more than %d deep", YAML_DEEPEST);
    YamlNode *n = new_node(r->t, kind, place, r->e);
    if (!n || !take_child(r, n)) return false;
    r->open[r->depth++] = n;
    return true;
}

static bool take_value(YamlReading *r, const yaml_event_t *event, const YamlNode *place) {
    const char *text = (const char *)event->data.scalar.value;
    size_t n = event->data.scalar.length;
    if (memchr(text, 0, n)) return yaml_error(place, r->e, "this text holds a NUL: take it out");
    YamlNode *value = new_value(r->t, place, text, n, r->e);
    if (!value) return false;
    value->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return take_child(r, value);
}

static bool is_plain(const yaml_char_t *anchor, const yaml_char_t *tag, const YamlNode *place, Error *e) {
    if (anchor) return yaml_error(place, e, "'&%s' is an anchor: write the value where it is used", anchor);
    if (tag) return yaml_error(place, e, "'%s' is a tag: remove it, and quote texts", tag);
    return true;
}

static bool take(YamlReading *r, const yaml_event_t *event) {
    YamlNode place = place_at(r, event->start_mark);
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return !r->root || yaml_error(&place, r->e, "a second document begins here: keep one to a file");
    case YAML_ALIAS_EVENT:
        return yaml_error(&place, r->e, "'*%s' is an alias: write the value itself",
                          event->data.alias.anchor);
    case YAML_SCALAR_EVENT:
        return is_plain(event->data.scalar.anchor, event->data.scalar.tag, &place, r->e) &&
               take_value(r, event, &place);
    case YAML_SEQUENCE_START_EVENT:
        return is_plain(event->data.sequence_start.anchor, event->data.sequence_start.tag, &place, r->e) &&
               take_container(r, NODE_LIST, &place);
    case YAML_MAPPING_START_EVENT:
        return is_plain(event->data.mapping_start.anchor, event->data.mapping_start.tag, &place, r->e) &&
               take_container(r, NODE_MAP, &place);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: r->depth--; return true;
    default: return true;
    }
}

static bool take_all(YamlReading *r) {
    yaml_event_t event = {.type = YAML_NO_EVENT};
    bool ok = true, ended = false;
    while (ok && !ended) {
        if (!yaml_parser_parse(&r->parser, &event)) {
            const yaml_parser_t *p = &r->parser;
            if (p->error == YAML_MEMORY_ERROR) mem_exhausted(r->size);
            YamlNode at = p->error == YAML_READER_ERROR ? place_of_byte(r, p->problem_offset)
                                                        : place_at(r, p->problem_mark);
            return yaml_error(&at, r->e, "this is not YAML: %s", p->problem ? p->problem : "unknown reason");
        }
        ok = take(r, &event);
        ended = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    return ok && (r->root || error_input(r->e, "%s:1:1: there is nothing in it", r->file));
}

// The node that the bytes are; it belongs to t, but nothing there points to it yet.
static YamlNode *read_node(YamlTree *t, const char *bytes, size_t n, const char *file, Error *e) {
    YamlReading r = {.t = t, .file = file, .bytes = bytes, .size = n, .e = e};
    if (n > YAML_BYTES) {
        error_input(e, "%s:1:1: it has more than %d bytes: no config needs so many", file, YAML_BYTES);
        return NULL;
    }
    if (!yaml_parser_initialize(&r.parser)) mem_exhausted(n);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)bytes, n);
    bool ok = take_all(&r);
    yaml_parser_delete(&r.parser);
    return ok ? r.root : NULL;
}

// A name that lives as long as the tree.
static const char *keep_file(YamlTree *t, const char *prefix, const char *name, Error *e) {
    enum { MOST = sizeof t->files / sizeof *t->files };
    char whole[512];
    if (t->file_count == MOST) {
        error_input(e, "--set may be given %d times at most", MOST - 1);
        return NULL;
    }
    int n = snprintf(whole, sizeof whole, "%s%s", prefix, name);
    char *kept = mem_text(whole, n < (int)sizeof whole ? (size_t)n : sizeof whole - 1);
    t->files[t->file_count++] = kept;
    return kept;
}

// The tree owns every node, within the limits; a parent counts its children, and only maps' have keys.
static void yaml_check(const YamlTree *t) {
    UNUSED int nodes = 0;
    assert(t->root && t->nodes <= YAML_NODES);
    for (const YamlNode *n = t->newest; n; n = n->older, nodes++) {
        UNUSED int children = 0;
        UNUSED const YamlNode *last = NULL;
        for (const YamlNode *c = n->first; c; last = c, c = c->next, children++)
            assert((n->kind == NODE_MAP) == (c->key != NULL));
        assert(children == n->count && last == n->last);
        assert((n->kind == NODE_VALUE) == (n->text != NULL) && (n->kind != NODE_VALUE || !n->first));
    }
    assert(nodes == t->nodes);
}

bool yaml_parse(YamlTree *t, const char *bytes, size_t n, const char *file, Error *e) {
    *t = (YamlTree){0};
    const char *kept = keep_file(t, "", file, e);
    t->root = kept ? read_node(t, bytes, n, kept, e) : NULL;
    if (t->root) yaml_check(t);
    else yaml_release(t);
    return t->root != NULL;
}

bool yaml_open(YamlTree *t, const char *path, Error *e) {
    LOCAL_MEMORY char *bytes = NULL;
    size_t n;
    *t = (YamlTree){0};
    if (!file_read(path, YAML_BYTES, &bytes, &n, e)) return false;
    return yaml_parse(t, bytes, n, path, e);
}

// --- overrides -------------------------------------------------------------------------------------------

YamlNode *yaml_item(const YamlNode *list, const char *word, Error *e) {
    char *end;
    long wanted = strtol(word, &end, 10), index = 0;
    YamlNode *found = NULL;
    bool by_number = *word >= '0' && *word <= '9' && !*end;
    for (YamlNode *n = list->first; n; n = n->next, index++) {
        const YamlNode *name = n->kind == NODE_MAP ? yaml_find(n, "name") : n;
        bool is_named = name && name->kind == NODE_VALUE && strcmp(name->text, word) == 0;
        if (by_number ? index != wanted : !is_named) continue;
        if (found) {
            yaml_error(n, e, "two items of this list are '%s': choose one by its number, from 0", word);
            return NULL;
        }
        found = n;
    }
    if (!found)
        yaml_error(list, e, "this list has no '%s': name one of its %d items, or its number from 0", word,
                   list->count);
    return found;
}

// A map's child of that key, made (an empty map) where it is missing.
static YamlNode *find_or_make(YamlTree *t, YamlNode *map, const char *key, const YamlNode *place, Error *e) {
    YamlNode *found = yaml_find(map, key);
    if (found) return found;
    YamlNode *made = new_node(t, NODE_MAP, place, e);
    if (!made) return NULL;
    set_text(&made->own_key, &made->key, key, strlen(key));
    made->key_line = place->line;
    made->key_column = place->column;
    yaml_add(map, made);
    return made;
}

// The node that the path leads to.
static YamlNode *walk(YamlTree *t, const char *path, const YamlNode *place, Error *e) {
    YamlNode *at = t->root;
    for (int depth = 0; at; depth++) {
        char word[128];
        size_t n = strcspn(path, ".");
        if (n >= sizeof word || depth == YAML_DEEPEST) {
            yaml_error(place, e, "this path leads to no key");
            return NULL;
        }
        memcpy(word, path, n);
        word[n] = 0;
        if (*word == 0 || at->kind == NODE_VALUE) {
            if (*word == 0)
                yaml_error(place, e, "a path is words with a dot between them, such as generation.seed");
            else
                yaml_error(place, e, "'%s' cannot be a key of '%s', which is a single value", word, at->text);
            return NULL;
        }
        at = at->kind == NODE_LIST ? yaml_item(at, word, e) : find_or_make(t, at, word, place, e);
        if (path[n] == 0) break;
        path += n + 1;
    }
    return at;
}

void yaml_become(YamlNode *at, const YamlNode *value) {
    at->kind = value->kind;
    at->quoted = value->quoted;
    at->text = value->text;
    at->file = value->file;
    at->line = value->line;
    at->column = value->column;
    at->first = value->first;
    at->last = value->last;
    at->count = value->count;
}

bool yaml_set(YamlTree *t, const char *option, const char *path, const char *text, Error *e) {
    YamlNode place = {.file = keep_file(t, option, path, e), .line = 1, .column = 1};
    if (!place.file) return false;
    YamlNode *value = read_node(t, text, strlen(text), place.file, e);
    YamlNode *at = value ? walk(t, path, &place, e) : NULL;
    if (!at) return false;
    yaml_become(at, value);
    at->key_line = at->key_column = 1;
    return true;
}
