// A YAML file as a checked tree in which every node knows its place, so that every later message can name it.
//
// Taken: one document of maps, lists and plain or quoted values. Refused, with file, line and column:
// aliases, anchors and tags, a key given twice, values with a NUL, more than YAML_DEEPEST levels, more than
// YAML_NODES nodes or YAML_BYTES bytes. Readers decide what a value means (number, word, range).
//
// The tree owns every node and every text; they live until yaml_release.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>

enum { YAML_BYTES = 256 << 10, YAML_NODES = 10000, YAML_DEEPEST = 16 };

typedef enum { NODE_VALUE, NODE_LIST, NODE_MAP } YamlKind;

typedef struct YamlNode YamlNode;
struct YamlNode {
    YamlKind kind;
    bool quoted;              // VALUE: '7' or "7": a text, whatever it looks like
    const char *key;          // in a map; NULL elsewhere
    const char *text;         // VALUE
    const char *file;         // of this node: the path, or what overrode it ("--set a.b")
    int line, column;         // from 1
    int key_line, key_column; // of the key, in a map
    YamlNode *first, *last;   // LIST, MAP: children, as written
    YamlNode *next;           // in its parent
    int count;                // of children
    struct YamlNode *older;   // in the tree's ownership, nothing else
    char *own_key, *own_text; // what key and text point to; for release
};

typedef struct YamlTree {
    YamlNode *root; // never NULL after yaml_parse
    YamlNode *newest;
    int nodes;
    char *files[64]; // names that nodes point to: the file's, then one an override
    int file_count;
} YamlTree;

// Parses exactly n bytes. False with e filled, and an empty tree. yaml_open reads the file first.
bool yaml_parse(YamlTree *t, const char *bytes, size_t n, const char *file, Error *e);
bool yaml_open(YamlTree *t, const char *path, Error *e);
void yaml_release(YamlTree *t); // takes an empty one

// The child of a map by its key, or NULL.
YamlNode *yaml_find(const YamlNode *map, const char *key);

// The item of a list that a word means: its number from 0, or the name of exactly one. NULL with e filled.
YamlNode *yaml_item(const YamlNode *list, const char *word, Error *e);

// `at` becomes what `value` is, but keeps its key and stays where it hangs.
void yaml_become(YamlNode *at, const YamlNode *value);

// Puts the YAML `text` at a path such as "generation.seed" or "methods.lookahead.matrix.W": keys of maps, and
// in lists a number from 0 or an item's `name`. Maps on the way are made where they are missing. At most 60
// times a tree. `option`: prefix of the path in messages ("--set ").
bool yaml_set(YamlTree *t, const char *option, const char *path, const char *text, Error *e);

// Puts a node behind the last child.
void yaml_add(YamlNode *parent, YamlNode *child);

// A new value at the place of `like`, after the list's last; false if the tree is full.
bool yaml_append(YamlTree *t, YamlNode *list, const YamlNode *like, const char *text, Error *e);

// The place of a node's key: for messages about the key, not about its value.
YamlNode yaml_key(const YamlNode *n);

// error_input with "file:line:column: " in front. Returns false.
bool yaml_error(const YamlNode *at, Error *e, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool yaml_within(const YamlNode *at, Error *e); // as error_within, of the same place
