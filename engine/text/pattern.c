// Regular expressions of tokenizers. A source is rewritten construct by construct, unknown ones are refused,
// and PCRE2 compiles the result with Oniguruma's defaults for Ruby's syntax: ^ and $ match at lines, a dot
// matches anything but a line feed.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/text/stage.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/text/utf8.h"

#include <assert.h>
#include <pcre2.h>
#include <string.h>

enum { MATCH_LIMIT = 20 * 1000 * 1000, DEPTH_LIMIT = 100 * 1000, SOURCE_MAX = 1 << 16 };

struct Pattern {
    pcre2_code *code;
    pcre2_match_context *limits;
    bool compiled; // by the JIT
    char *source;  // for error messages
};

// --- from Oniguruma's language to PCRE2's --------------------------------------------------------------

// Members of classes, because PCRE2 knows Alphabetic and White_Space only since 10.40. Alphabetic is \p{M}
// plus letters, letter numbers and circled letters.
#define CIRCLED "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
#define WORD    "\\p{L}\\p{Nl}\\p{M}\\p{Nd}\\p{Pc}" CIRCLED
#define SPACE \
    "\\x{9}-\\x{d} \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define NO_SPACE \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}!-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}" HIGH
#define HIGH \
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"

typedef struct {
    const char *at; // the rest of the source, NUL after it
    bool in_class;
    Text *out;
} Rewriter;

static bool is_letter_or_digit(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static void put_members(Rewriter *r, const char *members) {
    text_printf(r->out, r->in_class ? "%s" : "[%s]", members);
}

static bool rewrite_escape(Rewriter *r) {
    char c = r->at[1];
    if (c == 'u') { // \uHHHH
        if (strspn(r->at + 2, "0123456789abcdefABCDEF") < 4) return false;
        text_printf(r->out, "\\x{%.4s}", r->at + 2);
        r->at += 6;
        return true;
    }
    if (c == 's') put_members(r, SPACE);
    else if (c == 'S') put_members(r, NO_SPACE);
    else if (c == 'w') put_members(r, WORD);
    else if (c == 'W' && !r->in_class) text_puts(r->out, "[^" WORD "]");
    else if (c && (strchr("pPdDrntfxAzZ", c) || !is_letter_or_digit(c))) text_add(r->out, r->at, 2);
    else return false;
    r->at += 2;
    if (*r->at != '{' || !strchr("pPx", c)) return true;
    size_t name = strcspn(r->at, "}"); // a property's name, or a code
    if (r->at[name]) name++;
    text_add(r->out, r->at, name);
    r->at += name;
    return true;
}

// Whether PCRE2 would give the construct another meaning, or none.
static bool is_foreign(const Rewriter *r) {
    const char *s = r->at;
    if (r->in_class) return *s == '[' || (s[0] == '&' && s[1] == '&');
    return (s[0] == '(' && s[1] == '*') || (s[0] == '}' && s[1] == '+') ||
           (s[0] == '(' && s[1] == '?' && (!s[2] || !strchr(":=!<>i", s[2])));
}

static bool rewrite(Rewriter *r) {
    while (*r->at) {
        if (*r->at == '\\') {
            if (!rewrite_escape(r)) return false;
            continue;
        }
        if (is_foreign(r)) return false;
        bool opens = *r->at == '[' && !r->in_class;
        if (opens) r->in_class = true;
        else if (*r->at == ']') r->in_class = false;
        text_add(r->out, r->at++, 1);
        // A bracket right after the opening one is a character: []a] and [^]a].
        if (opens && *r->at == '^') text_add(r->out, r->at++, 1);
        if (opens && *r->at == ']') text_add(r->out, r->at++, 1);
    }
    return true;
}

// --- compiling -----------------------------------------------------------------------------------------

static bool compile(Pattern *p, const char *source, bool literal, const char *place, Error *e) {
    int code;
    PCRE2_SIZE offset;
    PCRE2_UCHAR why[120];
    uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE);
    p->code = pcre2_compile((PCRE2_SPTR)source, PCRE2_ZERO_TERMINATED, options, &code, &offset, NULL);
    if (!p->code) {
        pcre2_get_error_message(code, why, sizeof why);
        return error_input(e, "the pattern '%.200s' of '%s' cannot be compiled: %s", p->source, place,
                           (const char *)why);
    }
    p->limits = pcre2_match_context_create(NULL);
    if (!p->limits) mem_exhausted(1 << 10);
    pcre2_set_match_limit(p->limits, MATCH_LIMIT);
    pcre2_set_depth_limit(p->limits, DEPTH_LIMIT);
    p->compiled = pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE) == 0;
    return true;
}

static bool open_pattern(Pattern *p, const char *source, bool literal, const char *place, Error *e) {
    LOCAL_TEXT text = {0};
    Rewriter r = {source, false, &text};
    if (strlen(source) > SOURCE_MAX || !utf8_valid(source, strlen(source)))
        return error_input(e, "a pattern of '%s' is not UTF-8 or longer than %d bytes", place, SOURCE_MAX);
    p->source = mem_text(source, strlen(source));
    bool ok = literal || rewrite(&r) ||
              error_input(e, "the pattern '%.200s' of '%s' is not supported at '%.20s'", source, place, r.at);
    return ok && compile(p, literal ? source : text_get(&text), literal, place, e);
}

Pattern *pattern_open(const char *source, bool literal, const char *place, Error *e) {
    Pattern *p = mem_new(1, sizeof *p);
    if (open_pattern(p, source, literal, place, e)) return p;
    pattern_close(p);
    return NULL;
}

void pattern_close(Pattern *p) {
    if (!p) return;
    pcre2_code_free(p->code);
    pcre2_match_context_free(p->limits);
    MEM_FREE(p->source, p);
}

// --- searching -----------------------------------------------------------------------------------------

void search_open(Search *s, const Pattern *p) {
    *s = (Search){.pattern = p, .match = pcre2_match_data_create(1, NULL)};
    if (!s->match) mem_exhausted(1 << 10);
}

void search_close(Search *s) { pcre2_match_data_free(s->match); }

void search_begin(Search *s, const char *text, size_t n) {
    s->text = text;
    s->length = n;
    s->at = 0;
    s->last_end = n + 1;
}

// One match at or after s->at. The JIT's stack is small and fixed: if it is too small, the interpreter, whose
// memory grows, starts again.
static int match(const Search *s) {
    const Pattern *p = s->pattern;
    int n = p->compiled ? pcre2_jit_match(p->code, (PCRE2_SPTR)s->text, s->length, s->at, PCRE2_NO_UTF_CHECK,
                                          s->match, p->limits)
                        : PCRE2_ERROR_JIT_STACKLIMIT;
    if (n != PCRE2_ERROR_JIT_STACKLIMIT) return n;
    return pcre2_match(p->code, (PCRE2_SPTR)s->text, s->length, s->at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       s->match, p->limits);
}

bool search_next(Search *s, bool *found, size_t *from, size_t *to, Error *e) {
    *found = false;
    while (s->at <= s->length) {
        int n = match(s);
        if (n == PCRE2_ERROR_NOMATCH) return true;
        if (n < 0)
            return error_input(e, "the pattern '%.200s' of the tokenizer takes too long on this text",
                               s->pattern->source);
        const PCRE2_SIZE *range = pcre2_get_ovector_pointer(s->match);
        *from = range[0];
        *to = range[1];
        assert(s->at <= *from && *from <= *to && *to <= s->length);
        *found = *from < *to || *to != s->last_end;
        s->at = *to;
        if (*found) {
            s->last_end = *to;
            return true;
        }
        int length = utf8_length(s->text + s->at, s->length - s->at);
        s->at += length ? (size_t)length : 1;
    }
    return true;
}
