// PTX text to kernels. Read as nvcc 12 and 13 write it, not as the manual allows it: what is not known
// refuses its kernel by name, with the line, when it is launched.
//
//      file     = directives, .global tables, .func and .entry bodies
//      body     = { declaration | label | instruction | "{" body "}" }
//      call     : the function's body is read again in place of it, its parameters bound to the caller's
//      slots
#include "tests/ptx/memory.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 128, MOST_ARGUMENTS = 16 };

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

static void *grown(void *array, size_t count, size_t size) {
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

// --- words

typedef struct Cursor {
    const char *at;
    int line;
} Cursor;

static bool is_word(int c) { return isalnum(c) || c == '_' || c == '$' || c == '%' || c == '.'; }

static void skip_blank(Cursor *c) {
    for (;;) {
        if (*c->at == '\n') c->line++;
        if (isspace((unsigned char)*c->at)) c->at++;
        else if (c->at[0] == '/' && c->at[1] == '/') c->at += strcspn(c->at, "\n");
        else return;
    }
}

// The next word, number or sign; empty at the end.
static void next_word(Cursor *c, char out[NAME]) {
    size_t n = 0;
    skip_blank(c);
    if (*c->at == '"') { // of a .pragma
        c->at += 1 + strcspn(c->at + 1, "\"");
        if (*c->at) c->at++;
        strcpy(out, "\"\"");
        return;
    }
    bool number = *c->at == '-' && isdigit((unsigned char)c->at[1]);
    while (*c->at && (number || is_word((unsigned char)*c->at)) && n < NAME - 3) {
        number = false;
        out[n++] = *c->at++;
        if (c->at[0] == ':' && c->at[1] == ':') out[n++] = *c->at++, out[n++] = *c->at++; // shared::cluster
    }
    if (n == 0 && *c->at) out[n++] = *c->at++;
    out[n] = 0;
}
static bool take_word(Cursor *c, const char *wanted) {
    char word[NAME];
    Cursor copy = *c;
    next_word(&copy, word);
    if (strcmp(word, wanted)) return false;
    *c = copy;
    return true;
}

// --- one kernel while it is read

// A declared name: registers (count of them, as %r0, %r1, ..), a parameter of the kernel, a slot of a call,
// or local memory.
typedef enum { NAME_REGISTER, NAME_PARAM, NAME_SLOT, NAME_LOCAL } NameKind;
typedef struct Declared {
    char name[NAME];
    NameKind kind;
    uint32_t count; // 0: the name itself
    Operand first;
    uint32_t at; // of parameters, slots and local memory
} Declared;

typedef struct Label {
    char name[NAME];
    uint32_t at;
} Label;
typedef struct Jump {
    char name[NAME];
    size_t from;
} Jump;
typedef struct Function { // its text, for the calls
    char name[NAME];
    Cursor results, parameters, body;
} Function;

typedef struct Reader {
    Cursor c;
    Kernel *k;
    Declared *names;
    size_t name_count;
    Label *labels;
    size_t label_count;
    Jump *jumps;
    size_t jump_count;
    size_t constant_bytes;
    struct {
        uint64_t value;
        Operand at;
    } * constants;
    size_t constant_count;
    Function *functions;
    size_t function_count;
    int inlined;      // calls so far, which makes labels differ
    char scope[NAME]; // of labels: empty, or of the call that is read
    bool in_function; // `ret` is a branch to the end of it
} Reader;

__attribute__((format(printf, 2, 3))) static void refuse(Reader *r, const char *format, ...) {
    char text[512];
    va_list args;
    if (r->k->refused) return; // the first reason is the one to know
    int n = snprintf(text, sizeof text, "line %d: ", r->c.line);
    va_start(args, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    r->k->refused = strdup(text);
}

static Operand new_register(Reader *r, int bits) {
    Operand o = {.at = r->k->register_bytes, .id = (uint16_t)r->k->registers++, .bits = (uint8_t)bits};
    r->k->register_bytes += bits == 1 ? 4 : bits == 64 ? 256 : 128;
    r->k->register_bytes += bits == 1 ? 28 : 0; // keeps vectors aligned
    return o;
}

static Operand constant(Reader *r, uint64_t value, int bits) {
    for (size_t i = 0; i < r->constant_count; i++)
        if (r->constants[i].value == value && r->constants[i].at.bits == bits) return r->constants[i].at;
    size_t bytes = bits == 1 ? 32 : bits == 64 ? 256 : 128;
    Operand o = {.at = (uint32_t)r->constant_bytes, .constant = 1, .bits = (uint8_t)bits};
    unsigned char *to = realloc(r->k->constants, r->constant_bytes + bytes);
    if (!to) machine_fault("no memory");
    r->k->constants = to;
    to += r->constant_bytes;
    for (int l = 0; l < LANES; l++) {
        if (bits == 64) ((uint64_t *)(void *)to)[l] = value;
        else if (bits != 1) ((uint32_t *)(void *)to)[l] = (uint32_t)value;
    }
    if (bits == 1) *(uint32_t *)(void *)to = value ? ALL : 0;
    r->constant_bytes += bytes;
    r->constants = grown(r->constants, r->constant_count, sizeof *r->constants);
    r->constants[r->constant_count].value = value;
    r->constants[r->constant_count++].at = o;
    return o;
}

static void declare(Reader *r, const char *name, NameKind kind, uint32_t count, Operand first, uint32_t at) {
    r->names = grown(r->names, r->name_count, sizeof *r->names);
    Declared *d = &r->names[r->name_count++];
    *d = (Declared){.kind = kind, .count = count, .first = first, .at = at};
    snprintf(d->name, sizeof d->name, "%s", name);
}

// The innermost declaration of a name, or of the row of registers that it is one of.
static const Declared *find(const Reader *r, const char *name, uint32_t *index) {
    size_t n = strlen(name), letters = n;
    while (letters && isdigit((unsigned char)name[letters - 1])) letters--;
    unsigned long number = letters < n ? strtoul(name + letters, NULL, 10) : 0;
    for (size_t i = r->name_count; i-- > 0;) {
        const Declared *d = &r->names[i];
        if (!d->count && strcmp(d->name, name) == 0) return *index = 0, d;
        if (d->count && letters < n && strncmp(d->name, name, letters) == 0 && !d->name[letters] &&
            number < d->count)
            return *index = (uint32_t)number, d;
    }
    return NULL;
}

static Operand register_named(Reader *r, const char *name) {
    uint32_t index;
    const Declared *d = find(r, name, &index);
    if (!d || d->kind != NAME_REGISTER) return refuse(r, "there is no register '%s'", name), (Operand){0};
    Operand o = d->first;
    uint32_t bytes = o.bits == 1 ? 32 : o.bits == 64 ? 256 : 128;
    o.at += index * bytes;
    o.id = (uint16_t)(o.id + index);
    return o;
}

static const void *table_named(const char *name) {
    for (size_t i = 0; i < loaded.table_count; i++)
        if (strcmp(loaded.tables[i].name, name) == 0) return loaded.tables[i].data;
    return NULL;
}

static Instruction *emit(Reader *r, Execute *execute, Count count, int latency) {
    Kernel *k = r->k;
    k->code = grown(k->code, k->length, sizeof *k->code);
    Instruction *i = &k->code[k->length++];
    *i = (Instruction){.execute = execute, .count = (uint8_t)count, .latency = latency, .line = r->c.line};
    return i;
}

static int bits_of(char letter) { return letter == 'p' ? 1 : letter == 'h' ? 16 : letter == 'w' ? 32 : 64; }

// A source that is read as `bits`: a register, a number, or the place of something. Registers may be wider
// than what is read of them.
static Operand source(Reader *r, const char *word, int bits) {
    uint32_t index;
    const Declared *d;
    const void *table;
    if (word[0] == '0' && (word[1] == 'f' || word[1] == 'F'))
        return constant(r, strtoull(word + 2, NULL, 16), bits);
    if (word[0] == '0' && (word[1] == 'd' || word[1] == 'D'))
        return constant(r, strtoull(word + 2, NULL, 16), bits);
    if (isdigit((unsigned char)word[0])) return constant(r, strtoull(word, NULL, 0), bits);
    if (word[0] == '-') return constant(r, (uint64_t)strtoll(word, NULL, 0), bits);
    if (strcmp(word, "arena") == 0) return constant(r, 0, bits);
    if ((table = table_named(word))) return constant(r, (uint64_t)(uintptr_t)table, bits);
    if ((d = find(r, word, &index)) && d->kind != NAME_REGISTER) return constant(r, d->at, bits);
    Operand o = register_named(r, word);
    if (o.bits == 64 && bits < 64 && bits > 1) {
        Operand low = new_register(r, 32);
        Instruction *i = emit(r, narrow_to_word, COUNT_INTEGER, 0);
        i->d[0] = low, i->s[0] = o;
        i->results = i->sources = 1;
        return low;
    }
    if ((o.bits == 1) != (bits == 1) || (bits == 64 && o.bits != 64))
        refuse(r, "'%s' has %d bits, wanted %d", word, o.bits, bits);
    return o;
}

// --- arguments: "a", "{a, b}", "[a + 8]", "a|b", "(a)"

typedef struct Argument {
    char word[8][NAME]; // of a vector: its elements
    int words;
    bool address;
    int64_t offset;
} Argument;

static void read_argument(Reader *r, Argument *a) {
    char word[NAME];
    a->words = 0, a->offset = 0;
    a->address = take_word(&r->c, "[");
    bool vector = !a->address && (take_word(&r->c, "{") || take_word(&r->c, "("));
    for (;;) {
        next_word(&r->c, word);
        if (a->words < 8) snprintf(a->word[a->words++], NAME, "%s", word);
        if (!strcmp(word, "!")) { // a predicate that is read the other way round
            next_word(&r->c, a->word[a->words++]);
            break;
        }
        if (a->address && take_word(&r->c, "+")) {
            next_word(&r->c, word);
            a->offset = strtoll(word, NULL, 0);
        }
        if (take_word(&r->c, "|")) { // a second result that nobody reads
            next_word(&r->c, word);
            break;
        }
        if (!vector || !take_word(&r->c, ",")) break;
    }
    if (a->address && !take_word(&r->c, "]")) refuse(r, "an address has no end");
    if (vector && !take_word(&r->c, "}")) take_word(&r->c, ")");
}

static int read_arguments(Reader *r, Argument a[MOST_ARGUMENTS]) {
    int n = 0;
    if (take_word(&r->c, ";")) return 0;
    do {
        if (n == MOST_ARGUMENTS) return refuse(r, "too many arguments"), n;
        read_argument(r, &a[n++]);
    } while (take_word(&r->c, ","));
    if (!take_word(&r->c, ";")) refuse(r, "an instruction has no end");
    return n;
}

// --- instructions

static bool has(const char *opcode, const char *part) { // ".part" as a whole word of the opcode
    size_t n = strlen(part);
    for (const char *p = opcode; (p = strstr(p, part)); p += n)
        if (p > opcode && p[-1] == '.' && (!p[n] || p[n] == '.')) return true;
    return false;
}
static bool begins(const char *opcode, const char *with) { return strncmp(opcode, with, strlen(with)) == 0; }
static int type_bits(const char *opcode) { return atoi(strrchr(opcode, '.') + 2); }

static uint8_t space_of(const char *opcode) {
    return has(opcode, "global")            ? SPACE_GLOBAL
           : has(opcode, "shared")          ? SPACE_SHARED
           : has(opcode, "shared::cluster") ? SPACE_CLUSTER
           : has(opcode, "local")           ? SPACE_LOCAL
           : has(opcode, "param")           ? SPACE_PARAM
                                            : SPACE_GENERIC;
}
static uint8_t access_of(const char *opcode) {
    if (has(opcode, "nc")) return ACCESS_CONSTANT;
    return has(opcode, "volatile") || has(opcode, "cg") || has(opcode, "cv") || has(opcode, "relaxed") ||
                   has(opcode, "acquire")
               ? ACCESS_STRONG
               : ACCESS_WEAK;
}
static uint8_t count_of(uint8_t space) {
    static const uint8_t counts[] = {COUNT_GLOBAL, COUNT_SHARED, COUNT_SHARED,
                                     COUNT_LOCAL,  COUNT_PARAM,  COUNT_GENERIC};
    return counts[space];
}

static Operand address_of(Reader *r, const Argument *a, uint8_t space) {
    uint32_t index;
    if (!a->address) refuse(r, "'%s' is not an address", a->word[0]);
    const Declared *d = find(r, a->word[0], &index);
    if (d && d->kind == NAME_REGISTER) return register_named(r, a->word[0]);
    return source(r, a->word[0], space == SPACE_SHARED || space == SPACE_CLUSTER ? 32 : 64);
}

static void read_memory(Reader *r, const char *opcode, const Argument *a, bool load) {
    const Argument *at = &a[load ? 1 : 0], *values = &a[load ? 0 : 1];
    uint32_t index;
    const Declared *d = find(r, at->word[0], &index);
    uint8_t space = space_of(opcode);
    bool slot = space == SPACE_PARAM && d && d->kind == NAME_SLOT; // of a call: local memory
    if (slot) space = SPACE_LOCAL;
    if (space == SPACE_CLUSTER && !load) refuse(r, "'%s' is not known", opcode);
    int bits = type_bits(opcode);
    Operand address = address_of(r, at, space), value[4];
    if (values->words > 4) {
        refuse(r, "a vector of %d", values->words);
        return;
    }
    for (int i = 0; i < values->words; i++)
        value[i] =
            load ? register_named(r, values->word[i]) : source(r, values->word[i], bits < 32 ? 16 : bits);
    Instruction *o = emit(r,
                          !load                  ? run_store
                          : space == SPACE_PARAM ? run_load_param
                                                 : run_load,
                          count_of(space), load ? -1 : 1);
    o->space = space, o->access = access_of(opcode);
    o->bytes = (uint8_t)(bits / 8), o->width = (uint8_t)values->words;
    o->offset = at->offset;
    o->s[o->sources++] = address;
    for (int i = 0; i < values->words; i++) {
        if (load) o->d[o->results++] = value[i];
        else o->s[o->sources++] = value[i];
    }
    o->negated = has(opcode, "s8") || has(opcode, "s16") || has(opcode, "s32"); // extends the sign
    if (!load) o->negated = false;
}

static void read_atomic(Reader *r, const char *opcode, const Argument *a, int count) {
    uint8_t space = space_of(opcode);
    int bits = type_bits(opcode);
    bool silent = begins(opcode, "red."); // nobody asks for the old value
    Operand result = silent ? new_register(r, bits) : register_named(r, a++->word[0]);
    Operand address = address_of(r, &a[0], space), value[2];
    count -= !silent;
    for (int i = 1; i < count && i < 3; i++) value[i - 1] = source(r, a[i].word[0], bits);
    Instruction *o = emit(r, run_atomic, COUNT_ATOMIC, -1);
    o->space = space, o->bytes = (uint8_t)(bits / 8), o->width = 1, o->offset = a[0].offset;
    o->atom = has(opcode, "add")    ? ATOM_ADD
              : has(opcode, "min")  ? ATOM_MIN
              : has(opcode, "max")  ? ATOM_MAX
              : has(opcode, "exch") ? ATOM_EXCH
                                    : ATOM_CAS;
    if (has(opcode, "s32") || has(opcode, "f32")) refuse(r, "'%s' is not known", opcode);
    o->d[0] = result, o->results = 1;
    o->s[0] = address, o->sources = 1;
    for (int i = 1; i < count && i < 3; i++) o->s[o->sources++] = value[i - 1];
}

static void read_copy(Reader *r, const char *opcode, const Argument *a, int count) {
    if (has(opcode, "commit_group")) {
        emit(r, run_copy_commit, COUNT_COPY, 1);
        return;
    }
    if (has(opcode, "wait_group")) {
        emit(r, run_copy_wait, COUNT_COPY, 1)->more = strtoll(a[0].word[0], NULL, 0);
        return;
    }
    if (!begins(opcode, "cp.async.cg.shared.global") || strcmp(a[2].word[0], "16")) {
        refuse(r, "'%s' is not known", opcode);
        return;
    }
    Operand to = address_of(r, &a[0], SPACE_SHARED), from = address_of(r, &a[1], SPACE_GLOBAL);
    Operand size = count > 3 ? source(r, a[3].word[0], 32) : constant(r, 16, 32);
    Instruction *o = emit(r, run_copy, COUNT_COPY, 1);
    o->s[0] = to, o->s[1] = from, o->s[2] = size;
    o->sources = 3, o->offset = a[0].offset, o->more = a[1].offset;
}

static void read_collective(Reader *r, const char *opcode, const Argument *a) {
    Operand operands[MOST_OPERANDS], members = constant(r, ALL, 32);
    int n = 0;
    if (begins(opcode, "shfl.sync")) {
        for (int i = 1; i < 4; i++) operands[n++] = source(r, a[i].word[0], 32);
        members = source(r, a[4].word[0], 32);
        Instruction *o = emit(r, run_shuffle, COUNT_SHUFFLE, SHUFFLE_CYCLES);
        o->more = has(opcode, "bfly") ? 0 : has(opcode, "idx") ? 1 : has(opcode, "down") ? 2 : 3;
        o->d[o->results++] = register_named(r, a[0].word[0]);
    } else if (begins(opcode, "vote.sync.ballot")) {
        const char *p = a[1].word[0];
        bool not = *p == '!';
        operands[n++] = register_named(r, not ? a[1].word[1] : p);
        members = source(r, a[2].word[0], 32);
        Instruction *o = emit(r, run_ballot, COUNT_SHUFFLE, VOTE_CYCLES);
        o->more = not ;
        o->d[o->results++] = register_named(r, a[0].word[0]);
    } else if (begins(opcode, "ldmatrix.sync.aligned.m8n8.x4")) {
        operands[n++] = address_of(r, &a[1], SPACE_SHARED);
        Instruction *o = emit(r, run_matrices, COUNT_MATRIX, MATRIX_CYCLES);
        o->more = has(opcode, "trans"), o->offset = a[1].offset;
        for (int i = 0; i < 4; i++) o->d[o->results++] = register_named(r, a[0].word[i]);
    } else if (begins(opcode, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") ||
               begins(opcode, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")) {
        for (int i = 1; i < 4; i++)
            for (int j = 0; j < a[i].words && n < MOST_OPERANDS; j++)
                operands[n++] = register_named(r, a[i].word[j]);
        Instruction *o = emit(r, run_mma, COUNT_MMA, MMA_CYCLES);
        o->more = has(opcode, "f16");
        for (int i = 0; i < 4; i++) o->d[o->results++] = register_named(r, a[0].word[i]);
    } else {
        refuse(r, "'%s' is not known", opcode);
        return;
    }
    Instruction *o = &r->k->code[r->k->length - 1];
    memcpy(o->s, operands, (size_t)n * sizeof *operands);
    o->sources = (uint8_t)n, o->members = members, o->flow = FLOW_COLLECTIVE;
}

static void read_move(Reader *r, const char *opcode, const Argument *a) {
    bool pack = a[1].words > 1, wide = type_bits(opcode) == 64;
    Operand in[2] = {0}, out[2] = {0};
    for (int i = 0; i < a[1].words && i < 2; i++)
        in[i] = source(r, a[1].word[i], pack ? (wide ? 32 : 16) : wide ? 64 : 32);
    for (int i = 0; i < a[0].words && i < 2; i++) out[i] = register_named(r, a[0].word[i]);
    Instruction *o = emit(r,
                          pack   ? (wide ? pack_words : pack_halves)
                          : wide ? unpack_words
                                 : unpack_halves,
                          COUNT_MOVE, QUICK_CYCLES);
    for (int i = 0; i < a[1].words && i < 2; i++) o->s[o->sources++] = in[i];
    for (int i = 0; i < a[0].words && i < 2; i++) o->d[o->results++] = out[i];
    if (a[0].words > 2 || a[1].words > 2)
        refuse(r, "a vector of %d", a[0].words > 2 ? a[0].words : a[1].words);
}

static void read_form(Reader *r, const char *opcode, const Argument *a, int count) {
    const Arithmetic *f = form_find(opcode);
    if (!f) {
        refuse(r, "'%s' is not known", opcode);
        return;
    }
    if (count != (int)strlen(f->operands)) {
        refuse(r, "'%s' has %d operands", opcode, count);
        return;
    }
    Operand in[MOST_OPERANDS], result = register_named(r, a[0].word[0]);
    for (int i = 1; i < count; i++) in[i - 1] = source(r, a[i].word[0], bits_of(f->operands[i]));
    if ((result.bits == 64) != (f->operands[0] == 'd') || (result.bits == 1) != (f->operands[0] == 'p'))
        refuse(r, "the result of '%s' has %d bits", opcode, result.bits);
    Instruction *o = emit(r, f->execute, f->count, f->latency);
    o->pass = begins(opcode, "selp")        ? PASS_CHOSEN
              : !strcmp(opcode, "and.pred") ? PASS_AND
              : !strcmp(opcode, "or.pred")  ? PASS_OR
                                            : PASS_ANY;
    o->d[0] = result, o->results = 1;
    memcpy(o->s, in, (size_t)(count - 1) * sizeof *in);
    o->sources = (uint8_t)(count - 1);
}

static void branch_to(Reader *r, const char *label) {
    r->jumps = grown(r->jumps, r->jump_count, sizeof *r->jumps);
    Jump *j = &r->jumps[r->jump_count++];
    j->from = r->k->length;
    snprintf(j->name, NAME, "%.40s%.80s", r->scope, label);
    emit(r, run_nothing, COUNT_BRANCH, 0)->flow = FLOW_BRANCH;
}

static void read_body(Reader *r);

static void put_label(Reader *r, const char *name) {
    r->labels = grown(r->labels, r->label_count, sizeof *r->labels);
    Label *l = &r->labels[r->label_count++];
    snprintf(l->name, NAME, "%.40s%.80s", r->scope, name);
    l->at = (uint32_t)r->k->length;
}

// Binds the names of a parameter list, in order, to slots of the caller.
static void bind(Reader *r, Cursor list, const Argument *given) {
    Cursor kept = r->c;
    char word[NAME], last[NAME] = "";
    int n = 0;
    r->c = list;
    for (int depth = 0;;) {
        next_word(&r->c, word);
        if (!strcmp(word, "[")) depth++;
        if (!strcmp(word, "]")) depth--;
        bool ends = !strcmp(word, ")"), between = !depth && !strcmp(word, ",");
        if ((ends || between) && *last) {
            uint32_t index;
            const Declared *d = n < given->words ? find(r, given->word[n++], &index) : NULL;
            if (!d || d->kind != NAME_SLOT) refuse(r, "a call's argument is not a slot");
            else declare(r, last, NAME_SLOT, 0, (Operand){0}, d->at);
        }
        if (ends || !*word) break;
        if (!depth && (word[0] == '_' || isalpha((unsigned char)word[0]))) strcpy(last, word);
    }
    r->c = kept;
}

// call (results), name, (parameters): the function's text once more.
static void read_call(Reader *r, const Argument *a, int count) {
    const Function *f = NULL;
    Argument none = {0};
    for (size_t i = 0; i < r->function_count && count >= 2; i++)
        if (!strcmp(r->functions[i].name, a[1].word[0])) f = &r->functions[i];
    if (!f || r->in_function) {
        refuse(r, "a call of '%s'", count >= 2 ? a[1].word[0] : "?");
        return;
    }
    Cursor after = r->c;
    size_t names = r->name_count;
    bind(r, f->results, &a[0]);
    bind(r, f->parameters, count > 2 ? &a[2] : &none);
    snprintf(r->scope, NAME, "call %d ", ++r->inlined);
    r->in_function = true;
    r->c = f->body;
    read_body(r);
    put_label(r, "end");
    r->scope[0] = 0, r->in_function = false;
    r->name_count = names;
    r->c = after;
}

static void read_instruction(Reader *r, const char *opcode) {
    Argument a[MOST_ARGUMENTS];
    int n = read_arguments(r, a);
    if (r->k->refused) return;
    if (!strcmp(opcode, "bra") || !strcmp(opcode, "bra.uni")) branch_to(r, a[0].word[0]);
    else if (!strcmp(opcode, "ret") || !strcmp(opcode, "exit")) {
        if (r->in_function) branch_to(r, "end");
        else emit(r, run_nothing, COUNT_BRANCH, 0)->flow = FLOW_EXIT;
    } else if (!strcmp(opcode, "bar.sync") || !strcmp(opcode, "barrier.sync"))
        emit(r, run_nothing, COUNT_BARRIER, 0)->flow = FLOW_BARRIER;
    else if (!strcmp(opcode, "bar.warp.sync")) {
        Operand members = source(r, a[0].word[0], 32);
        Instruction *o = emit(r, run_nothing, COUNT_BARRIER, WARP_SYNC_CYCLES);
        o->flow = FLOW_WARP_SYNC, o->members = members;
    } else if (begins(opcode, "membar.gl") || begins(opcode, "membar.sys") ||
               begins(opcode, "fence.acq_rel.gpu") || begins(opcode, "fence.sc.gpu"))
        emit(r, run_fence, COUNT_FENCE, FENCE_CYCLES);
    else if (!strcmp(opcode, "barrier.cluster.arrive.release.aligned"))
        emit(r, run_cluster_arrive, COUNT_BARRIER, 0)->flow = FLOW_CLUSTER;
    else if (!strcmp(opcode, "barrier.cluster.wait.acquire.aligned"))
        emit(r, run_cluster_wait, COUNT_BARRIER, 0)->flow = FLOW_CLUSTER;
    else if (!strcmp(opcode, "mapa.shared::cluster.u32")) {
        Operand from = source(r, a[1].word[0], 32), rank = source(r, a[2].word[0], 32);
        Operand out = register_named(r, a[0].word[0]);
        Instruction *o = emit(r, run_map, COUNT_MOVE, MAP_CYCLES);
        o->s[0] = from, o->s[1] = rank, o->sources = 2, o->d[o->results++] = out;
    } else if (!strcmp(opcode, "griddepcontrol.wait")) emit(r, run_launch_wait, COUNT_OTHER, 0);
    else if (!strcmp(opcode, "griddepcontrol.launch_dependents")) emit(r, run_nothing, COUNT_OTHER, 0);
    else if (begins(opcode, "ld.")) read_memory(r, opcode, a, true);
    else if (begins(opcode, "st.")) read_memory(r, opcode, a, false);
    else if (begins(opcode, "atom.") || begins(opcode, "red.")) read_atomic(r, opcode, a, n);
    else if (begins(opcode, "cp.async")) read_copy(r, opcode, a, n);
    else if (begins(opcode, "call")) read_call(r, a, n);
    else if (begins(opcode, "mov.") && (a[0].words > 1 || a[1].words > 1)) read_move(r, opcode, a);
    else if (!strcmp(opcode, "cvta.shared.u64") || !strcmp(opcode, "cvta.to.shared.u64")) {
        Operand in = source(r, a[1].word[0], 64), out = register_named(r, a[0].word[0]);
        Instruction *o = emit(r, has(opcode, "to") ? run_generic_to_shared : run_shared_to_generic,
                              COUNT_MOVE, QUICK_CYCLES);
        o->s[o->sources++] = in, o->d[o->results++] = out;
    } else if (begins(opcode, "shfl") || begins(opcode, "vote") || begins(opcode, "ldmatrix") ||
               begins(opcode, "mma"))
        read_collective(r, opcode, a);
    else read_form(r, opcode, a, n);
}

// --- declarations

static void read_registers(Reader *r) {
    char type[NAME], name[NAME], word[NAME];
    next_word(&r->c, type);
    int bits = !strcmp(type, ".pred") ? 1 : type_bits(type);
    do {
        next_word(&r->c, name);
        uint32_t count = 0;
        if (take_word(&r->c, "<")) {
            next_word(&r->c, word);
            count = (uint32_t)strtoul(word, NULL, 10);
            take_word(&r->c, ">");
        }
        Operand first = new_register(r, bits);
        for (uint32_t i = 1; i < count; i++) new_register(r, bits);
        declare(r, name, NAME_REGISTER, count, first, 0);
    } while (take_word(&r->c, ","));
    take_word(&r->c, ";");
}

// ".align 8 .b8 name[40]" or ".b64 name": its name, bytes and alignment. A directive's word is read already.
static void read_space(Cursor *c, char name[NAME], uint32_t *bytes, uint32_t *align) {
    char word[NAME];
    uint32_t element = 0;
    *align = 0;
    for (;;) {
        next_word(c, word);
        if (!strcmp(word, ".align")) {
            next_word(c, word);
            *align = (uint32_t)strtoul(word, NULL, 10);
        } else if (word[0] == '.' && isdigit((unsigned char)word[2])) element = (uint32_t)atoi(word + 2) / 8;
        else if (word[0] != '.') break; // .ptr and the like say nothing here
    }
    strcpy(name, word);
    *bytes = element;
    if (*align < element) *align = element;
    if (take_word(c, "[")) {
        next_word(c, word);
        *bytes = element * (uint32_t)strtoul(word, NULL, 10);
        take_word(c, "]");
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
    if (!strcmp(what, ".local") || !strcmp(what, ".param")) {
        read_space(&r->c, name, &bytes, &align);
        declare(r, name, what[1] == 'l' ? NAME_LOCAL : NAME_SLOT, 0, (Operand){0},
                take_local(r, bytes, align));
    } else if (strcmp(what, ".pragma") && strcmp(what, ".loc")) {
        refuse(r, "'%s' is not known", what);
        return;
    }
    r->c.at += strcspn(r->c.at, ";\n");
    take_word(&r->c, ";");
}

// After a "{", to its "}".
static void read_body(Reader *r) {
    char word[NAME];
    size_t names = r->name_count;
    while (!r->k->refused) {
        next_word(&r->c, word);
        if (!strcmp(word, "}") || !*word) break;
        if (!strcmp(word, ";")) continue;
        if (!strcmp(word, "{")) {
            read_body(r);
            continue;
        }
        if (word[0] == '.') {
            read_declaration(r, word);
            continue;
        }
        if (take_word(&r->c, ":")) {
            put_label(r, word);
            continue;
        }
        Operand guard = {0};
        bool guarded = !strcmp(word, "@"), negated = false;
        if (guarded) {
            negated = take_word(&r->c, "!");
            next_word(&r->c, word);
            guard = register_named(r, word);
            next_word(&r->c, word);
        }
        size_t from = r->k->length;
        read_instruction(r, word);
        for (size_t i = from; guarded && i < r->k->length; i++) {
            Instruction *o = &r->k->code[i];
            if (o->execute == narrow_to_word && i + 1 < r->k->length)
                continue; // harmless where it is not wanted
            o->guarded = true, o->guard = guard, o->negated = negated;
        }
    }
    r->name_count = names;
}

static void resolve(Reader *r) {
    for (size_t i = 0; i < r->jump_count; i++) {
        size_t l = 0;
        while (l < r->label_count && strcmp(r->labels[l].name, r->jumps[i].name)) l++;
        if (l == r->label_count) {
            refuse(r, "there is no label '%s'", r->jumps[i].name);
            return;
        }
        r->k->code[r->jumps[i].from].target = r->labels[l].at;
    }
}

static void read_params(Reader *r) {
    Kernel *k = r->k;
    char name[NAME];
    uint32_t bytes, align;
    if (take_word(&r->c, ")")) return;
    do {
        take_word(&r->c, ".param");
        read_space(&r->c, name, &bytes, &align);
        uint32_t at = (k->param_bytes + align - 1) / align * align;
        k->param_at = grown(k->param_at, (size_t)k->params, sizeof *k->param_at);
        k->param_size = grown(k->param_size, (size_t)k->params, sizeof *k->param_size);
        k->param_at[k->params] = at;
        k->param_size[k->params++] = bytes;
        k->param_bytes = at + bytes;
        declare(r, name, NAME_PARAM, 0, (Operand){0}, at);
    } while (take_word(&r->c, ","));
    take_word(&r->c, ")");
}

static void skip_body(Cursor *c) {
    char word[NAME];
    for (int depth = 1; depth;) {
        next_word(c, word);
        depth += !strcmp(word, "{") - !strcmp(word, "}");
        if (!*word) return;
    }
}

static void read_entry(Reader *file, const char *path, int target) {
    static const char *const special[] = {"%tid.x",   "%tid.y",    "%tid.z",    "%ctaid.x",  "%ctaid.y",
                                          "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%ntid.x"};
    char word[NAME];
    Reader r = {.c = file->c, .functions = file->functions, .function_count = file->function_count};
    Kernel *k = r.k = calloc(1, sizeof *k);
    if (!k) machine_fault("no memory");
    next_word(&r.c, word);
    k->name = strdup(word), k->file = strdup(path), k->target = (uint8_t)target;
    for (int i = 0; i < 10; i++) {
        k->special[i] = new_register(&r, 32);
        declare(&r, special[i], NAME_REGISTER, 0, k->special[i], 0);
    }
    if (take_word(&r.c, "(")) read_params(&r);
    for (;;) {
        next_word(&r.c, word);
        if (!strcmp(word, "{") || !*word) break;
        if (!strcmp(word, ".maxntid")) {
            next_word(&r.c, word);
            k->most_threads = atoi(word);
        }
    }
    Cursor body = r.c;
    read_body(&r);
    if (!k->refused) resolve(&r);
    if (k->refused) r.c = body, skip_body(&r.c);
    emit(&r, run_nothing, COUNT_BRANCH, 0)->flow = FLOW_EXIT; // a body may end without `ret`
    loaded.kernels = grown(loaded.kernels, loaded.count, sizeof *loaded.kernels);
    loaded.kernels[loaded.count++] = k;
    free(r.names), free(r.labels), free(r.jumps), free(r.constants);
    file->c = r.c;
}

static void read_function(Reader *r) {
    char word[NAME];
    Function f = {0};
    next_word(&r->c, word);
    if (!strcmp(word, "(")) {
        f.results = r->c;
        while (*word && strcmp(word, ")")) next_word(&r->c, word);
        next_word(&r->c, word);
    }
    snprintf(f.name, sizeof f.name, "%s", word);
    if (take_word(&r->c, "(")) {
        f.parameters = r->c;
        while (*word && strcmp(word, ")")) next_word(&r->c, word);
    }
    do next_word(&r->c, word);
    while (*word && strcmp(word, ";") && strcmp(word, "{"));
    if (strcmp(word, "{")) return; // declared only
    f.body = r->c;
    skip_body(&r->c);
    r->functions = grown(r->functions, r->function_count, sizeof f);
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
    if (take_word(&r->c, "=") && take_word(&r->c, "{")) do {
            next_word(&r->c, word);
            if (n < bytes) to[n++] = (unsigned char)strtol(word, NULL, 0);
        } while (take_word(&r->c, ","));
    memory_written_by_host(data, bytes);
    loaded.tables = grown(loaded.tables, loaded.table_count, sizeof *loaded.tables);
    Table *t = &loaded.tables[loaded.table_count++];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->data = data;
}

// Twice: functions first, which may stand behind their calls.
static void read_file(Reader *r, const char *path, bool entries) {
    char word[NAME];
    int target = 0;
    for (next_word(&r->c, word); *word; next_word(&r->c, word)) {
        if (!strcmp(word, ".target")) {
            next_word(&r->c, word);
            target = atoi(word + 3);
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
    Reader r = {
        .c = {text, 1},
          .k = &none
    };
    read_file(&r, path, false);
    r.c = (Cursor){text, 1};
    read_file(&r, path, true);
    free(r.functions);
    free(text);
}
