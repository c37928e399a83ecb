// Every key is a row: its type, where its value goes, its limits. What has no fallback must be there.
#include "harness/train_config.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

static const size_t MOST_BYTES = 1 << 20;

typedef enum { KEY_INT, KEY_REAL, KEY_SEED, KEY_TEXT, KEY_LIST } KeyType;

typedef struct Key {
    const char *name;
    KeyType type;
    size_t offset;
    double low, high;
    bool required;
} Key;

#define AT(field) offsetof(TrainFile, field)
static const Key KEYS[] = {
    {"out",              KEY_TEXT, AT(out),                           0,    0,       true },
    {"tokenizer",        KEY_TEXT, AT(tokenizer),                     0,    0,       true },
    {"eos",              KEY_TEXT, AT(eos),                           0,    0,       false},
    {"files",            KEY_LIST, AT(files),                         0,    0,       true },
    {"separator",        KEY_TEXT, AT(separator),                     0,    0,       false},
    {"held_out",         KEY_REAL, AT(config.held_out),               0,    0.9,     false},
    {"held_out_rows",    KEY_INT,  AT(config.held_out_rows),          1,    1 << 30, false},
    {"held_out_every",   KEY_INT,  AT(held_out_every),                1,    1 << 30, false},
    {"checkpoint_every", KEY_INT,  AT(checkpoint_every),              1,    1 << 30, false},
    {"layers",           KEY_INT,  AT(config.shape.layers),           1,    1000,    true },
    {"width",            KEY_INT,  AT(config.shape.width),            1,    1 << 17, true },
    {"heads",            KEY_INT,  AT(config.shape.heads),            1,    1 << 10, true },
    {"key_heads",        KEY_INT,  AT(config.shape.kv_heads),         1,    1 << 10, true },
    {"head_size",        KEY_INT,  AT(head_size),                     2,    512,     false},
    {"mlp",              KEY_INT,  AT(config.shape.mlp_width),        1,    1 << 19, true },
    {"context",          KEY_INT,  AT(config.shape.context),          2,    1 << 20, true },
    {"rope_theta",       KEY_REAL, AT(config.shape.rope.theta),       1,    1e9,     false},
    {"norm_epsilon",     KEY_REAL, AT(norm_epsilon),                  1e-9, 0.1,     false},
    {"steps",            KEY_INT,  AT(config.optimizer.steps),        0,    1 << 30, true },
    {"warmup",           KEY_INT,  AT(config.optimizer.warmup),       0,    1 << 30, false},
    {"rate",             KEY_REAL, AT(config.optimizer.rate),         0,    10,      true },
    {"last_rate",        KEY_REAL, AT(config.optimizer.last_rate),    0,    10,      false},
    {"beta1",            KEY_REAL, AT(config.optimizer.beta1),        0,    0.99999, false},
    {"beta2",            KEY_REAL, AT(config.optimizer.beta2),        0,    0.99999, false},
    {"epsilon",          KEY_REAL, AT(config.optimizer.epsilon),      0,    1,       false},
    {"weight_decay",     KEY_REAL, AT(config.optimizer.weight_decay), 0,    10,      false},
    {"clip",             KEY_REAL, AT(config.optimizer.clip),         0,    1e9,     false},
    {"batch",            KEY_INT,  AT(config.batch),                  1,    1 << 24, true },
    {"pass",             KEY_INT,  AT(config.pass),                   1,    1 << 20, false},
    {"seed",             KEY_SEED, AT(config.seed),                   0,    0,       false},
    {"threads",          KEY_INT,  AT(config.threads),                0,    1024,    false},
    {"isa",              KEY_TEXT, AT(isa),                           0,    0,       false},
};
#undef AT
enum { KEY_COUNT = sizeof KEYS / sizeof *KEYS };

typedef struct Reading {
    TrainFile *f;
    yaml_document_t document;
    bool seen[KEY_COUNT];
    const char *place;
    Error *e;
} Reading;

static const char *name_at(const void *table, size_t i) { return ((const Key *)table)[i].name; }

static int line_of(const yaml_node_t *n) { return (int)n->start_mark.line + 1; }

static const char *text_of(const yaml_node_t *n) { return (const char *)n->data.scalar.value; }

static bool set_number(const Reading *r, const Key *k, const yaml_node_t *v) {
    char *field = (char *)r->f + k->offset, *end;
    errno = 0;
    double x = strtod(text_of(v), &end);
    if (end == text_of(v) || *end || errno || (k->type == KEY_INT && x != floor(x)) ||
        !(x >= k->low && x <= k->high))
        return error_input(r->e, "'%s' line %d: %s is '%.40s', must be %s from %.10g to %.10g", r->place,
                           line_of(v), k->name, text_of(v),
                           k->type == KEY_INT ? "a whole number" : "a number", k->low, k->high);
    if (k->type == KEY_INT) *(int *)(void *)field = (int)x;
    else *(double *)(void *)field = x;
    return true;
}

static bool set_seed(const Reading *r, const Key *k, const yaml_node_t *v) {
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text_of(v), &end, 0);
    if (*text_of(v) < '0' || *text_of(v) > '9' || *end || errno || n > INT64_MAX)
        return error_input(r->e, "'%s' line %d: %s is '%.40s', must be a whole number from 0 to 2^63 - 1",
                           r->place, line_of(v), k->name, text_of(v));
    *(uint64_t *)(void *)((char *)r->f + k->offset) = n;
    return true;
}

static bool set_text(const Reading *r, char **field, const yaml_node_t *v) {
    mem_free(*field);
    *field = mem_text(text_of(v), v->data.scalar.length);
    return *field != NULL || error_system(r->e, "out of memory reading '%s'", r->place);
}

static bool set_scalar(const Reading *r, const Key *k, const yaml_node_t *v) {
    if (v->type != YAML_SCALAR_NODE)
        return error_input(r->e, "'%s' line %d: %s must be one value", r->place, line_of(v), k->name);
    if (k->type == KEY_SEED) return set_seed(r, k, v);
    if (k->type != KEY_TEXT) return set_number(r, k, v);
    if (!v->data.scalar.length)
        return error_input(r->e, "'%s' line %d: %s is empty", r->place, line_of(v), k->name);
    return set_text(r, (char **)(void *)((char *)r->f + k->offset), v);
}

static bool add_file(Reading *r, const yaml_node_t *v) {
    TrainFile *f = r->f;
    if (v->type != YAML_SCALAR_NODE || !v->data.scalar.length)
        return error_input(r->e, "'%s' line %d: each of files must be a path or a pattern", r->place,
                           line_of(v));
    if (f->file_count == TRAIN_FILES_MAX)
        return error_input(r->e, "'%s' line %d: at most %d files; a pattern such as 'text/*.txt' names many",
                           r->place, line_of(v), TRAIN_FILES_MAX);
    return set_text(r, &f->files[f->file_count++], v);
}

static bool set_list(Reading *r, const yaml_node_t *v) {
    if (v->type != YAML_SEQUENCE_NODE) return add_file(r, v);
    for (yaml_node_item_t *i = v->data.sequence.items.start; i < v->data.sequence.items.top; i++)
        if (!add_file(r, yaml_document_get_node(&r->document, *i))) return false;
    return true;
}

static bool set_pair(Reading *r, const yaml_node_t *name, const yaml_node_t *value) {
    if (name->type != YAML_SCALAR_NODE)
        return error_input(r->e, "'%s' line %d: a key must be a word", r->place, line_of(name));
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (strcmp(KEYS[i].name, text_of(name))) continue;
        if (r->seen[i])
            return error_input(r->e, "'%s' line %d: %s is given twice", r->place, line_of(name),
                               text_of(name));
        r->seen[i] = true;
        return KEYS[i].type == KEY_LIST ? set_list(r, value) : set_scalar(r, &KEYS[i], value);
    }
    const char *nearest = suggest(text_of(name), KEYS, KEY_COUNT, name_at);
    return error_input(r->e, "'%s' line %d: there is no key '%.60s'%s%s%s", r->place, line_of(name),
                       text_of(name), nearest ? "; did you mean '" : "", nearest ? nearest : "",
                       nearest ? "'?" : "");
}

static bool read_root(Reading *r) {
    const yaml_node_t *root = yaml_document_get_root_node(&r->document);
    if (!root || root->type != YAML_MAPPING_NODE)
        return error_input(r->e, "'%s' must be a mapping: lines such as 'steps: 1000'", r->place);
    for (yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top; p++)
        if (!set_pair(r, yaml_document_get_node(&r->document, p->key),
                      yaml_document_get_node(&r->document, p->value)))
            return false;
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (KEYS[i].required && !r->seen[i])
            return error_input(r->e, "'%s' does not say %s: add a line '%s: ...'", r->place, KEYS[i].name,
                               KEYS[i].name);
    return true;
}

static bool read_document(Reading *r, yaml_parser_t *parser) {
    if (!yaml_parser_load(parser, &r->document))
        return error_input(r->e, "'%s' line %d: %s", r->place, (int)parser->problem_mark.line + 1,
                           parser->problem ? parser->problem : "not YAML");
    bool ok = read_root(r);
    yaml_document_delete(&r->document);
    return ok;
}

// The largest multiple of the context that divides the batch and has at most PASS_ROWS rows.
static int choose_pass(const TrainConfig *c) {
    enum { PASS_ROWS = 1024 };
    int pass = c->shape.context;
    for (int n = pass; n <= PASS_ROWS && n <= c->batch; n += c->shape.context)
        if (c->batch % n == 0) pass = n;
    return pass;
}

static void set_rest(TrainFile *f) {
    Shape *s = &f->config.shape;
    s->head_dim = f->head_size ? f->head_size : s->width / s->heads;
    s->rope.pairs = s->head_dim / 2;
    s->norm_epsilon = (float)f->norm_epsilon;
    s->tied_head = true;
    if (!f->config.pass) f->config.pass = choose_pass(&f->config);
    f->config.isa = f->isa;
}

bool train_file_parse(TrainFile *f, const char *bytes, size_t n, const char *place, Error *e) {
    Reading r = {.f = f, .place = place, .e = e};
    yaml_parser_t parser;
    *f = (TrainFile){.checkpoint_every = 200, .held_out_every = 200, .norm_epsilon = 1e-5};
    f->config = (TrainConfig){.held_out_rows = 1 << 16, .shape.rope.theta = 10000};
    f->config.optimizer =
        (OptimizerOptions){.beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.1, .clip = 1};
    f->eos = mem_text("</s>", 4);
    if (!f->eos || !yaml_parser_initialize(&parser)) {
        train_file_release(f);
        return error_system(e, "out of memory reading '%s'", place);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, n);
    bool ok = read_document(&r, &parser);
    yaml_parser_delete(&parser);
    if (ok) set_rest(f);
    else train_file_release(f);
    return ok;
}

bool train_file_open(TrainFile *f, const char *path, Error *e) {
    char *bytes;
    size_t n;
    *f = (TrainFile){0};
    if (!file_read(path, MOST_BYTES, &bytes, &n, e)) return false;
    bool ok = train_file_parse(f, bytes, n, path, e);
    mem_free(bytes);
    return ok;
}

void train_file_release(TrainFile *f) {
    char *texts[] = {f->out, f->tokenizer, f->eos, f->separator, f->isa};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) mem_free(texts[i]);
    for (int i = 0; i < f->file_count; i++) mem_free(f->files[i]);
    *f = (TrainFile){0};
}
