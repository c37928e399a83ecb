// Structs filled from a YAML map by one table of fields: the table is what the file may say. An unknown key
// names the nearest known one; every message has file, line, column and the mend.
//
// A struct that a table fills begins with `const YamlNode *at`, where it stands. Texts and nodes belong to
// the tree and live as long as it; nothing here needs a release. What is not given stays as it was.
#pragma once
#include "harness/config/yaml.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    FIELD_INT,    // int, low..high
    FIELD_REAL,   // double, low..high
    FIELD_SEED,   // uint64_t, below 2^63
    FIELD_CHOICE, // int: the number of the choice
    FIELD_TEXT,   // const char *, not empty
    FIELD_TEXTS,  // FieldTexts; one value alone is a list of one
    FIELD_NODE,   // YamlNode *: its reader is elsewhere
    FIELD_MAP,    // a struct, filled by `table`
    FIELD_EACH,   // an array of structs, one an item, filled by `table`; one item alone is a list of one
} FieldType;

enum { FIELD_TEXTS_MAX = 64 };

typedef struct FieldTexts {
    const char *items[FIELD_TEXTS_MAX];
    int count;
} FieldTexts;

typedef struct FieldTable FieldTable;

typedef struct Field {
    const char *name;
    FieldType type;
    size_t offset;
    double low, high; // INT, REAL: inclusive; EACH: how many items
    bool required;
    const char *const *choices; // CHOICE: names, ending in NULL
    const FieldTable *table;    // MAP, EACH
    size_t count_offset;        // EACH: of the int that counts the items
} Field;

struct FieldTable {
    const char *what; // in messages: "a model"
    const Field *fields;
    size_t count;
    size_t size;          // of the struct
    const char *lone_key; // an item that is one value stands for this key; NULL: it must be a map
    const void *defaults; // what an item begins with; NULL: zeros
};

// Reads `node` into the struct at `out`, which holds the defaults.
bool fields_read(const FieldTable *table, const YamlNode *node, void *out, Error *e);
