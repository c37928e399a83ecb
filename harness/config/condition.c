// Read and answered in one pass of recursive descent, both sides of every `and` and `or`, so that mistakes
// show at the first combination of parameters:
//
//   any = all { "or" all }      all = not { "and" not }      not = "not" not | "(" any ")" | comparison
#include "harness/config/sweep.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32, WORD_BYTES = 256 };

typedef enum { TOKEN_END, TOKEN_WORD, TOKEN_QUOTED, TOKEN_NUMBER, TOKEN_SIGN } TokenKind;

typedef struct Token {
    TokenKind kind;
    char text[WORD_BYTES]; // a sign, too
    double number;
} Token;

typedef struct ConditionReader {
    const char *at; // after the token
    Token token;    // the next one to be used
    const Scope *scope;
    int depth;
    Error *e;
} ConditionReader;

const char *const condition_on_off[] = {"on", "off", NULL};

// --- tokens ----------------------------------------------------------------------------------------------

static bool is_word(char c) { return isalnum((unsigned char)c) || (c && strchr("_-./:", c)); }

static bool set_token(ConditionReader *r, TokenKind kind, const char *text, size_t n) {
    if (n >= WORD_BYTES) return error_input(r->e, "a word has more than %d characters", WORD_BYTES - 1);
    r->token.kind = kind;
    memcpy(r->token.text, text, n);
    r->token.text[n] = 0;
    return true;
}

// A number; a word if it is followed by more than a number ("7b").
static bool next_word(ConditionReader *r) {
    size_t n = *r->at == '-';
    char *end;
    while (is_word(r->at[n])) n++;
    if (!set_token(r, TOKEN_WORD, r->at, n)) return false;
    r->at += n;
    r->token.number = strtod(r->token.text, &end);
    bool digits = isdigit((unsigned char)r->token.text[r->token.text[0] == '-']);
    if (digits && *end == 0) r->token.kind = TOKEN_NUMBER;
    return true;
}

static bool next(ConditionReader *r) {
    while (isspace((unsigned char)*r->at)) r->at++;
    if (*r->at == 0) return set_token(r, TOKEN_END, "", 0);
    if (*r->at == '\'' || *r->at == '"') {
        const char *text = r->at + 1, *end = strchr(text, *r->at);
        if (!end) return error_input(r->e, "the quote before '%.40s' has no end", text);
        r->at = end + 1;
        return set_token(r, TOKEN_QUOTED, text, (size_t)(end - text));
    }
    if (is_word(*r->at)) return next_word(r);
    static const char *const SIGNS[] = {"==", "!=", "<=", ">=", "<", ">", "(", ")"};
    size_t n = 0;
    for (size_t i = 0; !n && i < sizeof SIGNS / sizeof *SIGNS; i++)
        if (strncmp(r->at, SIGNS[i], strlen(SIGNS[i])) == 0) n = strlen(SIGNS[i]);
    if (n == 0)
        return error_input(r->e, "'%.20s' is no part of a condition: write ==, !=, <, <=, > or >=", r->at);
    bool ok = set_token(r, TOKEN_SIGN, r->at, n);
    r->at += n;
    return ok;
}

static bool is(const ConditionReader *r, const char *text) {
    return (r->token.kind == TOKEN_WORD || r->token.kind == TOKEN_SIGN) && strcmp(r->token.text, text) == 0;
}

// --- comparisons -----------------------------------------------------------------------------------------

typedef struct Operand {
    const Variable *variable; // NULL: a number or a word of its own
    Token token;
} Operand;

static bool read_operand(ConditionReader *r, Operand *out) {
    if (r->token.kind == TOKEN_END || r->token.kind == TOKEN_SIGN)
        return error_input(r->e, "a parameter or a value is missing before '%s%.20s'", r->token.text, r->at);
    *out = (Operand){.token = r->token};
    for (size_t i = 0; i < r->scope->count && r->token.kind == TOKEN_WORD && !out->variable; i++)
        if (strcmp(r->scope->variables[i].name, r->token.text) == 0) out->variable = &r->scope->variables[i];
    return next(r);
}

static bool is_number(const Operand *o) {
    return o->variable ? !o->variable->text : o->token.kind == TOKEN_NUMBER;
}

static double number_of(const Operand *o) { return o->variable ? o->variable->number : o->token.number; }

// The value of a literal word for a parameter: true and false are on and off to a switch.
static const char *word_of(const Operand *o, const Variable *other) {
    if (o->variable) return o->variable->text;
    bool is_switch = other && other->choices == condition_on_off;
    if (is_switch && strcmp(o->token.text, "true") == 0) return "on";
    if (is_switch && strcmp(o->token.text, "false") == 0) return "off";
    return o->token.text;
}

// The left side alone isn't a parameter.
static bool unknown(const ConditionReader *r, const Token *t) {
    const char *word = t->text;
    if (t->kind != TOKEN_WORD) return error_input(r->e, "'%s' is compared with no parameter", word);
    const char *nearest = suggest(word, r->scope->variables, r->scope->count, sizeof(Variable));
    if (nearest) return error_input(r->e, "there is no parameter '%s'; did you mean '%s'?", word, nearest);
    return error_input(r->e, "there is no parameter '%s'", word);
}

static bool can_be(const Variable *v, const char *word) {
    for (int i = 0; v->choices && v->choices[i]; i++)
        if (strcmp(v->choices[i], word) == 0) return true;
    return !v->choices;
}

static bool compare_words(const ConditionReader *r, const Operand *a, const char *sign, const Operand *b,
                          bool *holds) {
    const char *left = word_of(a, b->variable), *right = word_of(b, a->variable);
    bool equal = strcmp(sign, "==") == 0;
    if (!equal && strcmp(sign, "!=") != 0)
        return error_input(r->e,
                           "'%s' and '%s' are words, which have no order: write == or !=", a->token.text,
                           b->token.text);
    if (a->variable && !b->variable && !can_be(a->variable, right))
        return error_input(r->e, "'%s' is never '%s'", a->token.text, right);
    if (b->variable && !a->variable && !can_be(b->variable, left))
        return error_input(r->e, "'%s' is never '%s'", b->token.text, left);
    *holds = (strcmp(left, right) == 0) == equal;
    return true;
}

static bool compare_numbers(double a, const char *sign, double b) {
    bool or_equal = sign[1] == '=';
    switch (*sign) {
    case '<': return or_equal ? a <= b : a < b;
    case '>': return or_equal ? a >= b : a > b;
    case '!': return a != b;
    default: return a == b;
    }
}

static bool is_comparison(const Token *t) {
    return t->kind == TOKEN_SIGN && *t->text != '(' && *t->text != ')';
}

static bool compare(ConditionReader *r, bool *holds) {
    Operand a, b;
    if (!read_operand(r, &a)) return false;
    if (!a.variable && a.token.kind == TOKEN_WORD && !is_comparison(&r->token)) return unknown(r, &a.token);
    if (!is_comparison(&r->token))
        return error_input(r->e, "'%s' must be followed by ==, !=, <, <=, > or >=", a.token.text);
    Token sign = r->token;
    if (!next(r) || !read_operand(r, &b)) return false;
    if (!a.variable && !b.variable) return unknown(r, &a.token);
    if (is_number(&a) && is_number(&b)) {
        *holds = compare_numbers(number_of(&a), sign.text, number_of(&b));
        return true;
    }
    if (is_number(&a) || is_number(&b))
        return error_input(r->e, "'%s' and '%s' cannot be compared: one is a number, one a word",
                           a.token.text, b.token.text);
    return compare_words(r, &a, sign.text, &b, holds);
}

// --- and, or, not ----------------------------------------------------------------------------------------

static bool read_any(ConditionReader *r, bool *holds);

static bool read_not(ConditionReader *r, bool *holds);

static bool read_inner(ConditionReader *r, bool *holds) {
    if (is(r, "not")) {
        if (!next(r) || !read_not(r, holds)) return false;
        *holds = !*holds;
        return true;
    }
    if (!is(r, "(")) return compare(r, holds);
    if (!next(r) || !read_any(r, holds)) return false;
    return is(r, ")") ? next(r)
                      : error_input(r->e, "a ')' is missing before '%s%.20s'", r->token.text, r->at);
}

static bool read_not(ConditionReader *r, bool *holds) {
    if (r->depth == DEEPEST) return error_input(r->e, "the condition is nested more than %d deep", DEEPEST);
    r->depth++;
    bool ok = read_inner(r, holds);
    r->depth--;
    return ok;
}

static bool read_all(ConditionReader *r, bool *holds) {
    bool more;
    if (!read_not(r, holds)) return false;
    while (is(r, "and")) {
        if (!next(r) || !read_not(r, &more)) return false;
        *holds = *holds && more;
    }
    return true;
}

static bool read_any(ConditionReader *r, bool *holds) {
    bool more;
    if (!read_all(r, holds)) return false;
    while (is(r, "or")) {
        if (!next(r) || !read_all(r, &more)) return false;
        *holds = *holds || more;
    }
    return true;
}

bool condition_holds(const char *text, const Scope *scope, bool *holds, Error *e) {
    ConditionReader r = {.at = text, .scope = scope, .e = e};
    *holds = false;
    if (strlen(text) > CONDITION_BYTES)
        return error_input(e, "the condition has more than %d characters", CONDITION_BYTES);
    if (!next(&r) || !read_any(&r, holds)) return false;
    return r.token.kind == TOKEN_END || error_input(e,
                                                    "a condition may only be followed by 'and' or "
                                                    "'or', there is '%s'",
                                                    r.token.text);
}
