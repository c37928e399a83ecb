#include "tests/ptx/reader.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

// --- words

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
void cursor_word(Cursor *c, char out[NAME]) {
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
        if (c->at[0] == ':' && c->at[1] == ':') out[n++] = *c->at++, out[n++] = *c->at++;
    }
    if (n == 0 && *c->at) out[n++] = *c->at++;
    out[n] = 0;
}
bool cursor_take(Cursor *c, const char *wanted) {
    char word[NAME];
    Cursor copy = *c;
    cursor_word(&copy, word);
    if (strcmp(word, wanted)) return false;
    *c = copy;
    return true;
}

// --- registers, constants and names

void reader_refuse(Reader *r, const char *format, ...) {
    char text[512];
    va_list args;
    if (r->k->refused) return; // the first reason is the one to know
    int n = snprintf(text, sizeof text, "line %d: ", r->c.line);
    va_start(args, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    r->k->refused = strdup(text);
}

Operand reader_register(Reader *r, int bits) {
    Operand o = {.at = r->k->register_bytes, .id = (uint16_t)r->k->registers++, .bits = (uint8_t)bits};
    r->k->register_bytes += bits == 1 ? 4 : bits == 64 ? 256 : 128;
    r->k->register_bytes += bits == 1 ? 28 : 0; // keeps vectors aligned
    return o;
}

Operand reader_constant(Reader *r, uint64_t value, int bits) {
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
    r->constants = ptx_grown(r->constants, r->constant_count, sizeof *r->constants);
    r->constants[r->constant_count].value = value;
    r->constants[r->constant_count++].at = o;
    return o;
}

void reader_declare(Reader *r, const char *name, NameKind kind, uint32_t count, Operand first, uint32_t at) {
    r->names = ptx_grown(r->names, r->name_count, sizeof *r->names);
    Declared *d = &r->names[r->name_count++];
    *d = (Declared){.kind = kind, .count = count, .first = first, .at = at};
    snprintf(d->name, sizeof d->name, "%s", name);
}

// The innermost declaration of a name, or of the row of registers that it is one of.
const Declared *reader_find(const Reader *r, const char *name, uint32_t *index) {
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

Operand reader_named(Reader *r, const char *name) {
    uint32_t index;
    const Declared *d = reader_find(r, name, &index);
    if (!d || d->kind != NAME_REGISTER)
        return reader_refuse(r, "there is no register '%s'", name), (Operand){0};
    Operand o = d->first;
    uint32_t bytes = o.bits == 1 ? 32 : o.bits == 64 ? 256 : 128;
    o.at += index * bytes;
    o.id = (uint16_t)(o.id + index);
    return o;
}

Instruction *reader_emit(Reader *r, Execute *execute, Count count, int latency) {
    Kernel *k = r->k;
    k->code = ptx_grown(k->code, k->length, sizeof *k->code);
    Instruction *i = &k->code[k->length++];
    *i = (Instruction){.execute = execute, .count = (uint8_t)count, .latency = latency, .line = r->c.line};
    return i;
}

// A source that is read as `bits`: a register, a number, or the place of something. Registers may be wider
// than what is read of them.
Operand reader_source(Reader *r, const char *word, int bits) {
    uint32_t index;
    const Declared *d;
    const void *table;
    if (word[0] == '0' && (word[1] == 'f' || word[1] == 'F'))
        return reader_constant(r, strtoull(word + 2, NULL, 16), bits);
    if (word[0] == '0' && (word[1] == 'd' || word[1] == 'D'))
        return reader_constant(r, strtoull(word + 2, NULL, 16), bits);
    if (isdigit((unsigned char)word[0])) return reader_constant(r, strtoull(word, NULL, 0), bits);
    if (word[0] == '-') return reader_constant(r, (uint64_t)strtoll(word, NULL, 0), bits);
    if (strcmp(word, "arena") == 0) return reader_constant(r, r->k->shared_bytes, bits);
    if ((table = ptx_table(word))) return reader_constant(r, (uint64_t)(uintptr_t)table, bits);
    if ((d = reader_find(r, word, &index)) && d->kind != NAME_REGISTER)
        return reader_constant(r, d->at, bits);
    Operand o = reader_named(r, word);
    if (o.bits == 64 && bits < 64 && bits > 1) {
        Operand low = reader_register(r, 32);
        Instruction *i = reader_emit(r, narrow_to_word, COUNT_INTEGER, 0);
        i->d[0] = low, i->s[0] = o;
        i->results = i->sources = 1;
        return low;
    }
    if ((o.bits == 1) != (bits == 1) || (bits == 64 && o.bits != 64))
        reader_refuse(r, "'%s' has %d bits, wanted %d", word, o.bits, bits);
    return o;
}

Operand reader_address(Reader *r, const Argument *a, uint8_t space) {
    uint32_t index;
    if (!a->address) reader_refuse(r, "'%s' is not an address", a->word[0]);
    const Declared *d = reader_find(r, a->word[0], &index);
    if (d && d->kind == NAME_REGISTER) return reader_named(r, a->word[0]);
    return reader_source(r, a->word[0], space == SPACE_SHARED ? 32 : 64);
}

bool opcode_has(const char *opcode, const char *part) {
    size_t n = strlen(part);
    for (const char *p = opcode; (p = strstr(p, part)); p += n)
        if (p > opcode && p[-1] == '.' && (!p[n] || p[n] == '.')) return true;
    return false;
}

// --- arguments: "a", "{a, b}", "[a + 8]", "a|b", "(a)"

static void read_argument(Reader *r, Argument *a) {
    char word[NAME];
    a->words = 0, a->offset = 0, a->also[0] = 0;
    a->address = cursor_take(&r->c, "[");
    bool vector = !a->address && (cursor_take(&r->c, "{") || cursor_take(&r->c, "("));
    for (;;) {
        cursor_word(&r->c, word);
        if (a->words < MOST_WORDS - 1) snprintf(a->word[a->words++], NAME, "%s", word);
        if (!strcmp(word, "!")) { // a predicate that is read the other way round
            cursor_word(&r->c, a->word[a->words++]);
            break;
        }
        if (a->address && cursor_take(&r->c, "+")) {
            cursor_word(&r->c, word);
            a->offset = strtoll(word, NULL, 0);
        }
        if (cursor_take(&r->c, "|")) { // a second result
            cursor_word(&r->c, a->also);
            break;
        }
        if (!vector || !cursor_take(&r->c, ",")) break;
    }
    if (a->address && !cursor_take(&r->c, "]")) reader_refuse(r, "an address has no end");
    if (vector && !cursor_take(&r->c, "}")) cursor_take(&r->c, ")");
}

int reader_arguments(Reader *r, Argument a[MOST_ARGUMENTS]) {
    int n = 0;
    if (cursor_take(&r->c, ";")) return 0;
    do {
        if (n == MOST_ARGUMENTS) return reader_refuse(r, "too many arguments"), n;
        read_argument(r, &a[n++]);
    } while (cursor_take(&r->c, ","));
    if (!cursor_take(&r->c, ";")) reader_refuse(r, "an instruction has no end");
    return n;
}
