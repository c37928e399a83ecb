// Parquet to rows. Each group of rows is decoded column by column (parquet_pages.c), and then put together
// row by row, by walking down the schema with a cursor in each column:
//
//     {"question": "...", "translation": {"de": ..., "en": ...}}
//
// Invariant: entry <= entries and value <= value_count in each column; every step is checked against both, so
// columns that contradict each other end in a message.
#include "datasets/parquet.h"

#include "datasets/format.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

enum { MOST_LEVELS = 24 }; // of nesting

typedef struct Node { // of the schema, at the index of its element
    int definition, repetition;
    size_t leaf, leaf_end; // the columns below it
    size_t next;           // the index after its subtree
} Node;

typedef struct Parquet {
    ParquetSource source;
    ParquetFooter footer;
    Node *nodes;            // (footer.elements.count)
    ParquetColumn *columns; // (column_count)
    size_t column_count;
    size_t row; // its number, from 1
} Parquet;

static const ParquetElement *element(const Parquet *p, size_t i) {
    return (const ParquetElement *)p->footer.elements.items + i;
}

static void parquet_check(const Parquet *p) {
    assert(p->source.left <= p->source.most && p->source.kept_count <= p->source.kept_capacity);
    for (size_t i = 0; i < p->column_count; i++) {
        const ParquetColumn *c = &p->columns[i];
        assert(c->entry <= c->entries && c->value <= c->value_count);
    }
}

// --- the schema ------------------------------------------------------------------------------------------

// Places the node at *i and those below it, of which there are as many as its `children` states.
static bool place(Parquet *p, size_t *i, int definition, int repetition, int depth) {
    if (*i == p->footer.elements.count || depth == MOST_LEVELS) return false;
    const ParquetElement *e = element(p, *i);
    Node *n = &p->nodes[(*i)++];
    if (depth)
        definition += e->repetition != PARQUET_REQUIRED, repetition += e->repetition == PARQUET_REPEATED;
    *n = (Node){.definition = definition, .repetition = repetition, .leaf = p->column_count};
    if (e->children <= 0) {
        if (e->type < 0 || depth == 0) return false;
        p->columns[p->column_count++] =
            (ParquetColumn){.type = e, .definition = definition, .repetition = repetition};
    }
    for (int64_t k = 0; k < e->children; k++)
        if (!place(p, i, definition, repetition, depth + 1)) return false;
    n->leaf_end = p->column_count;
    n->next = *i;
    return true;
}

static bool place_all(Parquet *p, Error *e) {
    size_t i = 0, count = p->footer.elements.count;
    p->nodes = mem_new(count, sizeof *p->nodes);
    p->columns = mem_new(count, sizeof *p->columns);
    return (place(p, &i, 0, 0, 0) && i == count) ||
           error_input(
               e, "'%s': the schema of the Parquet file isn't a tree of at most %d levels: " PARQUET_DAMAGED,
               p->source.file, MOST_LEVELS);
}

// --- rows ------------------------------------------------------------------------------------------------

static bool misplaced(const Parquet *p, const ParquetColumn *c, Error *e) {
    return error_input(e, "'%s', row %zu, column '%.*s': has too few or too many values: " PARQUET_DAMAGED,
                       p->source.file, p->row, PARQUET_NAME(c->type->name));
}

static json_t *leaf_value(const Parquet *p, ParquetColumn *c, Error *e) {
    const ParquetValue *v = &c->values[c->value++];
    switch (parquet_is_read(c) ? c->type->type : PARQUET_INT96) {
    case PARQUET_BOOLEAN: return json_boolean(v->number);
    case PARQUET_INT32:
        return json_integer(c->type->converted == PARQUET_UINT32 ? (uint32_t)v->number : v->number);
    case PARQUET_INT64: return json_integer(v->number);
    case PARQUET_FLOAT:
    case PARQUET_DOUBLE: return json_number(v->real);
    case PARQUET_INT96: return json_null();
    }
    bool has_nul = v->text.n && memchr(v->text.at, 0, v->text.n);
    json_t *text = has_nul ? NULL : json_stringn((const char *)v->text.at, v->text.n); // NULL: invalid UTF-8
    if (text || c->type->converted != PARQUET_UTF8)
        return text ? text : json_null(); // bytes, such as a picture
    error_input(
        e,
        "'%s', row %zu, column '%.*s': is not text in UTF-8 without NUL: correct it and write the file again",
        p->source.file, p->row, PARQUET_NAME(c->type->name));
    return NULL;
}

// The first column below a node, at an entry; NULL with e filled if it has none left.
static ParquetColumn *column_at(const Parquet *p, size_t i, Error *e) {
    ParquetColumn *c = &p->columns[p->nodes[i].leaf];
    if (c->entry < c->entries) return c;
    misplaced(p, c, e);
    return NULL;
}

// Steps over an entry without a value in each column below the node.
static bool skip_entries(const Parquet *p, size_t i, Error *e) {
    for (size_t k = p->nodes[i].leaf; k < p->nodes[i].leaf_end; k++) {
        ParquetColumn *c = &p->columns[k];
        if (c->entry == c->entries || c->definitions[c->entry] == c->definition) return misplaced(p, c, e);
        c->entry++;
    }
    return true;
}

static json_t *build(const Parquet *p, size_t i, Error *e);
static json_t *build_content(const Parquet *p, size_t i, Error *e);

// A list is a group that holds a repeated group "list", which holds the item. Older writers repeat the item.
static bool is_list(const Parquet *p, size_t i) {
    return element(p, i)->children == 1 && element(p, i + 1)->repetition == PARQUET_REPEATED;
}

static bool wraps_item(const Parquet *p, size_t repeated) {
    const ParquetElement *r = element(p, repeated);
    return r->children == 1 && !(r->name.n == 5 && memcmp(r->name.at, "array", 5) == 0);
}

static json_t *build_items(const Parquet *p, size_t repeated, Error *e) {
    ParquetColumn *c = column_at(p, repeated, e);
    json_t *list = c ? json_array() : NULL, *item;
    const Node *n = &p->nodes[repeated];
    if (c && c->definitions[c->entry] < n->definition) { // empty
        if (!skip_entries(p, repeated, e)) json_decref(list), list = NULL;
        return list;
    }
    bool more = c;
    while (more) {
        item = wraps_item(p, repeated) ? build(p, repeated + 1, e) : build_content(p, repeated, e);
        if (!item) return json_decref(list), NULL;
        json_array_append_new(list, item);
        more = c->entry < c->entries && c->repetitions[c->entry] == n->repetition;
    }
    return list;
}

static json_t *build_object(const Parquet *p, size_t i, Error *e) {
    json_t *object = json_object(), *value;
    for (size_t child = i + 1; child < p->nodes[i].next; child = p->nodes[child].next) {
        ParquetBytes name = element(p, child)->name;
        if (!(value = build(p, child, e))) return json_decref(object), NULL;
        LOCAL_MEMORY char *key = mem_text((const char *)name.at, name.n);
        if (json_object_set_new(object, key, value) != 0) { // not UTF-8
            error_input(e, "'%s': a column's name is not UTF-8: rename it", p->source.file);
            return json_decref(object), NULL;
        }
    }
    return object;
}

static json_t *build_content(const Parquet *p, size_t i, Error *e) {
    if (element(p, i)->children > 0) return is_list(p, i) ? build_items(p, i + 1, e) : build_object(p, i, e);
    ParquetColumn *c = column_at(p, i, e);
    if (!c) return NULL;
    if (c->definitions[c->entry] != c->definition || c->value == c->value_count)
        return misplaced(p, c, e), NULL;
    c->entry++;
    return leaf_value(p, c, e);
}

// The value at a node; NULL with e filled.
static json_t *build(const Parquet *p, size_t i, Error *e) {
    int64_t repetition = element(p, i)->repetition;
    if (repetition == PARQUET_REPEATED) return build_items(p, i, e);
    ParquetColumn *c = column_at(p, i, e);
    if (!c) return NULL;
    if (repetition == PARQUET_REQUIRED || c->definitions[c->entry] >= p->nodes[i].definition)
        return build_content(p, i, e);
    return skip_entries(p, i, e) ? json_null() : NULL;
}

static bool build_row(Parquet *p, TakeRow *take_row, void *state, Error *e) {
    Row row = {.file = p->source.file, .unit = "row", .number = ++p->row};
    for (size_t i = 0; i < p->column_count; i++) {
        const ParquetColumn *c = &p->columns[i];
        if (c->entry == c->entries || c->repetitions[c->entry] != 0) return misplaced(p, c, e);
    }
    json_auto_t *json = build_object(p, 0, e);
    row.json = json;
    return json && take_row(state, &row, e);
}

// Empties the columns and frees the pages that hold the group's texts.
static void end_group(Parquet *p) {
    parquet_check(p);
    for (size_t i = 0; i < p->column_count; i++) {
        ParquetColumn *c = &p->columns[i];
        c->entries = c->value_count = c->dictionary_count = c->entry = c->value = 0;
        c->dictionary = NULL;
    }
    parquet_forget(&p->source);
}

static bool read_group(Parquet *p, const ParquetGroup *g, TakeRow *take_row, void *state, Error *e) {
    if (g->chunks.count != p->column_count)
        return error_input(e, "'%s': a group of rows has %zu columns, the schema %zu: " PARQUET_DAMAGED,
                           p->source.file, g->chunks.count, p->column_count);
    for (size_t i = 0; i < p->column_count; i++)
        if (!parquet_chunk(&p->source, &p->columns[i], (const ParquetChunk *)g->chunks.items + i, e))
            return false;
    for (int64_t i = 0; i < g->rows; i++)
        if (!build_row(p, take_row, state, e)) return false;
    for (size_t i = 0; i < p->column_count; i++)
        if (p->columns[i].entry < p->columns[i].entries) return misplaced(p, &p->columns[i], e);
    return true;
}

static void release(Parquet *p) {
    end_group(p);
    for (size_t i = 0; i < p->column_count; i++)
        MEM_FREE(p->columns[i].definitions, p->columns[i].repetitions, p->columns[i].values);
    MEM_FREE(p->columns, p->nodes, p->source.kept);
    parquet_footer_release(&p->footer);
}

bool parquet_is(const char *bytes, size_t n) { return n >= 4 && memcmp(bytes, "PAR1", 4) == 0; }

bool parquet_each(const char *bytes, size_t n, const char *file, size_t most, TakeRow *take_row, void *state,
                  Error *e) {
    const uint8_t *at = (const uint8_t *)bytes;
    LOCAL(release)
    Parquet p = {.source = {.bytes = at, .size = n, .file = file, .left = most, .most = most}};
    if (!parquet_footer(&p.footer, at, n, file, e) || !place_all(&p, e)) return false;
    const ParquetGroup *groups = p.footer.groups.items;
    for (size_t i = 0; i < p.footer.groups.count; i++) {
        if (!read_group(&p, &groups[i], take_row, state, e)) return false;
        end_group(&p);
    }
    return true;
}
