// PTX text to kernels. Read as nvcc 12 and 13 write it, not as the manual allows it: what is not known
// refuses its kernel by name, with the line, when it is launched.
//
//      file     = directives, .global tables, .func and .entry bodies
//      body     = { declaration | label | instruction | "{" body "}" }
//      call     : the function's body is read again in place of it, its parameters bound to the caller's
//      slots
#include "tests/ptx/reader.h"

#include <ctype.h>
#include <stdio.h>

// --- what is loaded: kernels and constant tables, for as long as the program runs

typedef struct Table {
    char name[NAME];
    void *data;
} Table;
static struct {
    Kernel **kernels;
    size_t count;
    Table *tables;
    size_t table_count;
} loaded;

void *ptx_grown(void *array, size_t count, size_t size) {
    if (count & (count - 1)) return array; // room up to the next power of two
    array = realloc(array, (count ? 2 * count : 1) * size);
    if (!array) machine_fault("no memory");
    return array;
}

const Kernel *ptx_kernel(const char *name, int target) {
    for (size_t i = 0; i < loaded.count; i++)
        if (loaded.kernels[i]->target == target && strcmp(loaded.kernels[i]->name, name) == 0)
            return loaded.kernels[i];
    return NULL;
}

const void *ptx_table(const char *name) {
    for (size_t i = 0; i < loaded.table_count; i++)
        if (strcmp(loaded.tables[i].name, name) == 0) return loaded.tables[i].data;
    return NULL;
}

// --- declarations

static void read_registers(Reader *r) {
    char type[NAME], name[NAME], word[NAME];
    cursor_word(&r->c, type);
    int bits = !strcmp(type, ".pred") ? 1 : type_bits(type);
    do {
        cursor_word(&r->c, name);
        uint32_t count = 0;
        if (cursor_take(&r->c, "<")) {
            cursor_word(&r->c, word);
            count = (uint32_t)strtoul(word, NULL, 10);
            cursor_take(&r->c, ">");
        }
        Operand first = reader_register(r, bits);
        for (uint32_t i = 1; i < count; i++) reader_register(r, bits);
        reader_declare(r, name, NAME_REGISTER, count, first, 0);
    } while (cursor_take(&r->c, ","));
    cursor_take(&r->c, ";");
}

// ".align 8 .b8 name[40]" or ".b64 name": its name, bytes and alignment. A directive's word is read already.
static void read_space(Cursor *c, char name[NAME], uint32_t *bytes, uint32_t *align) {
    char word[NAME];
    uint32_t element = 0;
    *align = 0;
    for (;;) {
        cursor_word(c, word);
        if (!strcmp(word, ".align")) {
            cursor_word(c, word);
            *align = (uint32_t)strtoul(word, NULL, 10);
        } else if (word[0] == '.' && isdigit((unsigned char)word[2])) element = (uint32_t)atoi(word + 2) / 8;
        else if (word[0] != '.') break; // .ptr and the like say nothing here
    }
    strcpy(name, word);
    *bytes = element;
    if (*align < element) *align = element;
    if (cursor_take(c, "[")) {
        cursor_word(c, word);
        *bytes = element * (uint32_t)strtoul(word, NULL, 10);
        cursor_take(c, "]");
    }
}

static uint32_t take_local(Reader *r, uint32_t bytes, uint32_t align) {
    if (align < 8) align = 8;
    uint32_t at = (r->k->local_bytes + align - 1) / align * align;
    r->k->local_bytes = at + bytes;
    return at;
}

static void read_declaration(Reader *r, const char *what) {
    char name[NAME];
    uint32_t bytes, align;
    if (!strcmp(what, ".reg")) {
        read_registers(r);
        return;
    }
    if (!strcmp(what, ".shared")) { // in front of what a launch asks for
        read_space(&r->c, name, &bytes, &align);
        uint32_t at = (r->k->shared_bytes + align - 1) / align * align;
        r->k->shared_bytes = (at + bytes + 127) / 128 * 128;
        reader_declare(r, name, NAME_LOCAL, 0, (Operand){0}, at);
    } else if (!strcmp(what, ".local") || !strcmp(what, ".param")) {
        read_space(&r->c, name, &bytes, &align);
        reader_declare(r, name, what[1] == 'l' ? NAME_LOCAL : NAME_SLOT, 0, (Operand){0},
                       take_local(r, bytes, align));
    } else if (strcmp(what, ".pragma") && strcmp(what, ".loc")) {
        reader_refuse(r, "'%s' is not known", what);
        return;
    }
    r->c.at += strcspn(r->c.at, ";\n");
    cursor_take(&r->c, ";");
}

// After a "{", to its "}".
void reader_body(Reader *r) {
    char word[NAME];
    size_t names = r->name_count;
    const uint32_t outside = r->block;
    r->outside = ptx_grown(r->outside, r->blocks, sizeof *r->outside);
    r->outside[r->blocks] = outside;
    r->block = r->blocks++;
    while (!r->k->refused) {
        cursor_word(&r->c, word);
        if (!strcmp(word, "}") || !*word) break;
        if (!strcmp(word, ";")) continue;
        if (!strcmp(word, "{")) {
            reader_body(r);
            continue;
        }
        if (word[0] == '.') {
            read_declaration(r, word);
            continue;
        }
        if (cursor_take(&r->c, ":")) {
            reader_label(r, word);
            continue;
        }
        Operand guard = {0};
        bool guarded = !strcmp(word, "@"), negated = false;
        if (guarded) {
            negated = cursor_take(&r->c, "!");
            cursor_word(&r->c, word);
            guard = reader_named(r, word);
            cursor_word(&r->c, word);
        }
        size_t from = r->k->length;
        reader_instruction(r, word);
        for (size_t i = from; guarded && i < r->k->length; i++) {
            Instruction *o = &r->k->code[i];
            if (o->execute == narrow_to_word && i + 1 < r->k->length)
                continue; // harmless where it is not wanted
            o->guarded = true, o->guard = guard, o->negated = negated;
        }
    }
    r->name_count = names;
    r->block = outside;
}

// A label's name is its block's own.
static const Label *label_of(const Reader *r, const Jump *j) {
    for (uint32_t block = j->block;; block = r->outside[block]) {
        for (size_t i = 0; i < r->label_count; i++)
            if (r->labels[i].block == block && !strcmp(r->labels[i].name, j->name)) return &r->labels[i];
        if (!block) return NULL;
    }
}
static void resolve(Reader *r) {
    for (size_t i = 0; i < r->jump_count; i++) {
        const Label *l = label_of(r, &r->jumps[i]);
        if (!l) {
            reader_refuse(r, "there is no label '%s'", r->jumps[i].name);
            return;
        }
        r->k->code[r->jumps[i].from].target = l->at;
    }
}

static void read_params(Reader *r) {
    Kernel *k = r->k;
    char name[NAME];
    uint32_t bytes, align;
    if (cursor_take(&r->c, ")")) return;
    do {
        cursor_take(&r->c, ".param");
        read_space(&r->c, name, &bytes, &align);
        uint32_t at = (k->param_bytes + align - 1) / align * align;
        k->param_at = ptx_grown(k->param_at, (size_t)k->params, sizeof *k->param_at);
        k->param_size = ptx_grown(k->param_size, (size_t)k->params, sizeof *k->param_size);
        k->param_at[k->params] = at;
        k->param_size[k->params++] = bytes;
        k->param_bytes = at + bytes;
        reader_declare(r, name, NAME_PARAM, 0, (Operand){0}, at);
    } while (cursor_take(&r->c, ","));
    cursor_take(&r->c, ")");
}

static void skip_body(Cursor *c) {
    char word[NAME];
    for (int depth = 1; depth;) {
        cursor_word(c, word);
        depth += !strcmp(word, "{") - !strcmp(word, "}");
        if (!*word) return;
    }
}

static void read_entry(Reader *file, const char *path, int target) {
    static const char *const special[SPECIALS] = {
        "%tid.x",    "%tid.y",    "%tid.z",  "%ctaid.x",         "%ctaid.y",          "%ctaid.z", "%nctaid.x",
        "%nctaid.y", "%nctaid.z", "%ntid.x", "%cluster_ctarank", "%cluster_nctarank", "%smid"};
    char word[NAME];
    Reader r = {.c = file->c, .functions = file->functions, .function_count = file->function_count};
    Kernel *k = r.k = calloc(1, sizeof *k);
    if (!k) machine_fault("no memory");
    cursor_word(&r.c, word);
    k->name = strdup(word), k->file = strdup(path), k->target = (uint8_t)target;
    for (int i = 0; i < SPECIALS; i++) {
        k->special[i] = reader_register(&r, 32);
        reader_declare(&r, special[i], NAME_REGISTER, 0, k->special[i], 0);
    }
    if (cursor_take(&r.c, "(")) read_params(&r);
    for (;;) {
        cursor_word(&r.c, word);
        if (!strcmp(word, "{") || !*word) break;
        if (!strcmp(word, ".maxntid")) {
            cursor_word(&r.c, word);
            k->most_threads = atoi(word);
        }
        if (!strcmp(word, ".reqnctapercluster")) {
            cursor_word(&r.c, word);
            k->cluster = atoi(word);
            while (cursor_take(&r.c, ",")) { // of one row of blocks
                cursor_word(&r.c, word);
                if (atoi(word) != 1) reader_refuse(&r, "a cluster of more than a row");
            }
        }
    }
    Cursor body = r.c;
    reader_body(&r);
    if (!k->refused) resolve(&r);
    if (k->refused) r.c = body, skip_body(&r.c);
    reader_emit(&r, run_nothing, COUNT_BRANCH, 0)->flow = FLOW_EXIT; // a body may end without `ret`
    loaded.kernels = ptx_grown(loaded.kernels, loaded.count, sizeof *loaded.kernels);
    loaded.kernels[loaded.count++] = k;
    free(r.names), free(r.labels), free(r.jumps), free(r.constants), free(r.outside);
    file->c = r.c;
}

static void read_function(Reader *r) {
    char word[NAME];
    Function f = {0};
    cursor_word(&r->c, word);
    if (!strcmp(word, "(")) {
        f.results = r->c;
        while (*word && strcmp(word, ")")) cursor_word(&r->c, word);
        cursor_word(&r->c, word);
    }
    snprintf(f.name, sizeof f.name, "%s", word);
    if (cursor_take(&r->c, "(")) {
        f.parameters = r->c;
        while (*word && strcmp(word, ")")) cursor_word(&r->c, word);
    }
    do cursor_word(&r->c, word);
    while (*word && strcmp(word, ";") && strcmp(word, "{"));
    if (strcmp(word, "{")) return; // declared only
    f.body = r->c;
    skip_body(&r->c);
    r->functions = ptx_grown(r->functions, r->function_count, sizeof f);
    r->functions[r->function_count++] = f;
}

// .global .align 8 .b8 name[144] = {8, 93, ..};
static void read_table(Reader *r) {
    char name[NAME], word[NAME];
    uint32_t bytes, align, n = 0;
    read_space(&r->c, name, &bytes, &align);
    void *data;
    memory_take(&data, bytes, TABLE_OWNER);
    unsigned char *to = memory_reach(data, bytes, true, "a table");
    if (cursor_take(&r->c, "=") && cursor_take(&r->c, "{")) do {
            cursor_word(&r->c, word);
            if (n < bytes) to[n++] = (unsigned char)strtol(word, NULL, 0);
        } while (cursor_take(&r->c, ","));
    memory_written_by_host(data, bytes);
    loaded.tables = ptx_grown(loaded.tables, loaded.table_count, sizeof *loaded.tables);
    Table *t = &loaded.tables[loaded.table_count++];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->data = data;
}

// Twice: functions first, which may stand behind their calls.
static void read_file(Reader *r, const char *path, bool entries) {
    char word[NAME];
    int target = 0;
    for (cursor_word(&r->c, word); *word; cursor_word(&r->c, word)) {
        if (!strcmp(word, ".target")) {
            cursor_word(&r->c, word);
            target = atoi(word + 3) + (word[strlen(word) - 1] == 'a'); // a set of its own
        } else if (!strcmp(word, ".global")) {
            if (entries) read_table(r);
            else r->c.at += strcspn(r->c.at, ";");
        } else if (!strcmp(word, ".func")) {
            if (!entries) read_function(r);
        } else if (!strcmp(word, ".entry") && entries) read_entry(r, path, target);
        else if (!strcmp(word, "{")) skip_body(&r->c);
    }
}

void ptx_load(const char *path) {
    FILE *f = fopen(path, "re");
    if (!f) machine_fault("cannot open '%s': build it with make", path);
    fseek(f, 0, SEEK_END);
    size_t size = (size_t)ftell(f);
    rewind(f);
    char *text = malloc(size + 1);
    if (!text || fread(text, 1, size, f) != size) machine_fault("cannot read '%s'", path);
    fclose(f);
    text[size] = 0;
    Kernel none = {0};
    Reader r = {.c = {text, 1}, .k = &none};
    read_file(&r, path, false);
    r.c = (Cursor){text, 1};
    read_file(&r, path, true);
    free(r.functions);
    free(text);
}
