// Values out of a YAML tree: structs filled from maps by tables of args.h, and axes expanded. An unknown key
// is answered with the nearest known one; every message has file, line, column and the fix.
//
// A struct that a table fills begins with `const YamlNode *at`, the node it was read from. Texts and nodes
// belong to the tree and live as long as it does. A key that is absent leaves its value as it was.
#pragma once
#include "engine/base/args.h"
#include "harness/config/yaml.h"

typedef struct ArgTable {
    const char *what; // in messages: "a model"
    const Arg *rows;
    size_t count;
    size_t size;          // of the struct
    const char *lone_key; // an item that is a single value sets this key; NULL: it must be a map
    const void *defaults; // what an item starts with; NULL: zeros
} ArgTable;

// The members of a table, with others that it needs.
#define ARG_TABLE(what_, rows_, type, ...) \
    { .what = what_, .rows = rows_, .count = sizeof rows_ / sizeof *rows_, .size = sizeof(type), __VA_ARGS__ }

// Reads `node` into the struct at `out`, which holds the defaults.
bool values_read(const ArgTable *table, const YamlNode *node, void *out, Error *e);

// --- axes: one value, a list, ranges (args.h), or a list of both
//
//   5        [5, 10, 15]        2..14        2..14+2        1..64*2        [0, 2..14+2]
//
// A quoted value is never a range.

enum { AXIS_MAX = 4096 }; // values

// Turns `axis` into a flat list of values, each at the place where it, or its range, was written.
bool axis_expand(YamlTree *t, YamlNode *axis, Error *e);
