// Rules are kept as text and read each time that they are expanded: documents are short, and this is the
// whole interpreter. An expansion that fails (a condition, a remainder, too deep) unwinds to grammar_write,
// which begins the document again with the next numbers of the same stream.
#include "tools/reference/grammar.h"

#include "engine/base/memory.h"
#include "tools/reference/lists.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 60, LENGTH_MOST = 6000, TRIES = 2000, VARIABLES = 96, WORDS = 8, INDENT = 4 };

typedef struct Alternative {
    char *text;
    uint32_t weight;
} Alternative;

typedef struct Rule {
    char *name;
    Alternative *alternatives; // (count)
    size_t count, capacity;
} Rule;

struct Grammar {
    Rule *rules; // (count), as in the file
    size_t count, capacity;
};

static bool add_rule(Grammar *g, const char *name, size_t n) {
    mem_grow(&g->rules, &g->capacity, g->count + 1, sizeof *g->rules);
    g->rules[g->count].name = mem_text(name, n);
    return g->rules[g->count++].name != NULL;
}

// An alternative of the last rule: "*3 text" has a weight of 3.
static bool add_alternative(Grammar *g, const Text *line) {
    Rule *rule = &g->rules[g->count - 1];
    const size_t indent = strspn(text_get(line), " ");
    const char *s = text_get(line) + (indent < INDENT ? indent : INDENT);
    Alternative a = {.weight = 1};
    if (*s == '*' && isdigit((unsigned char)s[1])) {
        char *end;
        a.weight = (uint32_t)strtoul(s + 1, &end, 10);
        s = *end == ' ' ? end + 1 : end;
    }
    mem_grow(&rule->alternatives, &rule->capacity, rule->count + 1, sizeof a);
    a.text = mem_text(s, strlen(s));
    rule->alternatives[rule->count++] = a;
    return a.text != NULL;
}

static bool parse_line(Grammar *g, const Text *line, const char *place, int number, Error *e) {
    const char *s = text_get(line);
    if (line->length == 0 || *s == '#') return true;
    if (*s == ' ') {
        if (g->count == 0)
            return error_input(e, "'%s' line %d: an alternative before any rule", place, number);
        return add_alternative(g, line);
    }
    if (s[line->length - 1] != ':')
        return error_input(e, "'%s' line %d: a rule's name ends in a colon", place, number);
    return add_rule(g, s, line->length - 1);
}

Grammar *grammar_parse(const char *bytes, size_t n, const char *place, Error *e) {
    Grammar *g = mem_new(1, sizeof *g);
    Text line = {0};
    bool ok = g != NULL;
    int number = 0;
    for (size_t at = 0; ok && at < n;) {
        const char *end = memchr(bytes + at, '\n', n - at);
        size_t length = end ? (size_t)(end - bytes) - at : n - at;
        const bool goes_on = length > 0 && bytes[at + length - 1] == '\\';
        size_t indent = line.length ? strspn(bytes + at, " ") : 0;
        number++;
        if (indent > length) indent = length;
        text_add(&line, bytes + at + indent, length - indent - goes_on);
        at += length + 1;
        if (goes_on) continue;
        ok = parse_line(g, &line, place, number, e);
        text_clear(&line);
    }
    text_release(&line);
    if (ok) return g;
    grammar_close(g);
    return NULL;
}

void grammar_close(Grammar *g) {
    if (!g) return;
    for (size_t i = 0; i < g->count; i++) {
        for (size_t k = 0; k < g->rules[i].count; k++) mem_free(g->rules[i].alternatives[k].text);
        mem_free(g->rules[i].alternatives);
        mem_free(g->rules[i].name);
    }
    mem_free(g->rules);
    mem_free(g);
}

// A document on its way.
typedef struct Variable {
    Text name, value;
} Variable;

typedef struct Writer {
    const Grammar *grammar;
    Random *random;
    Variable variables[VARIABLES]; // (count) in use
    int count, depth;
    size_t cut;
    uint64_t structure;
    Text *document;
    Error *error; // filled: the grammar itself is wrong
} Writer;

static bool wrong(Writer *w, const char *what, const char *name) {
    return error_input(w->error, "%s '%s' in the grammar", what, name);
}

static Variable *find(Writer *w, const char *name, size_t n) {
    for (int i = 0; i < w->count; i++)
        if (w->variables[i].name.length == n && memcmp(w->variables[i].name.data, name, n) == 0)
            return &w->variables[i];
    return NULL;
}

static bool set(Writer *w, const char *name, size_t n, const Text *value) {
    Variable *v = find(w, name, n);
    if (!v) {
        if (w->count == VARIABLES) return wrong(w, "too many variables at", name);
        v = &w->variables[w->count++];
        text_clear(&v->name);
        text_add(&v->name, name, n);
    }
    text_clear(&v->value);
    text_add(&v->value, text_get(value), value->length);
    return true;
}

static bool expand(Writer *w, const char *s, size_t n, Text *out);

// Where what opens at s[0] closes; n if nowhere.
static size_t closing(const char *s, size_t n, char open, char close) {
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\') i++;
        else if (s[i] == open) depth++;
        else if (s[i] == close && --depth == 0) return i;
    }
    return n;
}

static size_t name_length(const char *s, size_t n) {
    size_t i = 0;
    while (i < n && (isalnum((unsigned char)s[i]) || s[i] == '_')) i++;
    return i;
}

// Arithmetic, by precedence: comparison, sum, product, factor. Numbers only, but for == and != of two names.
typedef struct Scan {
    const char *s, *end;
} Scan;

static bool comparison(Writer *w, Scan *c, long *value);

static void skip(Scan *c) {
    while (c->s < c->end && *c->s == ' ') c->s++;
}

static bool take(Scan *c, const char *what) {
    const size_t n = strlen(what);
    skip(c);
    if ((size_t)(c->end - c->s) < n || memcmp(c->s, what, n) != 0) return false;
    c->s += n;
    return true;
}

static bool factor(Writer *w, Scan *c, long *value) {
    skip(c);
    if (take(c, "(")) return comparison(w, c, value) && (take(c, ")") || wrong(w, "no ')' after", c->s));
    if (c->s < c->end && isdigit((unsigned char)*c->s)) {
        char *end;
        *value = strtol(c->s, &end, 10);
        c->s = end;
        return true;
    }
    const size_t n = name_length(c->s, (size_t)(c->end - c->s));
    const Variable *v = find(w, c->s, n);
    if (!v) return wrong(w, "no such variable:", c->s);
    c->s += n;
    *value = strtol(text_get(&v->value), NULL, 10);
    return true;
}

static bool product(Writer *w, Scan *c, long *value) {
    long b;
    if (!factor(w, c, value)) return false;
    while (true) {
        if (take(c, "*")) {
            if (!factor(w, c, &b)) return false;
            *value *= b;
        } else if (take(c, "/")) {
            if (!factor(w, c, &b) || b == 0 || *value % b != 0) return false;
            *value /= b;
        } else if (take(c, "%")) {
            if (!factor(w, c, &b) || b == 0) return false;
            *value %= b;
        } else return true;
    }
}

static bool sum(Writer *w, Scan *c, long *value) {
    long b;
    if (!product(w, c, value)) return false;
    while (true) {
        const bool plus = take(c, "+");
        if (!plus && !take(c, "-")) return true;
        if (!product(w, c, &b)) return false;
        *value += plus ? b : -b;
    }
}

// a == b of two names compares their texts, so that names and numbers are treated alike.
static bool compare_texts(Writer *w, Scan *c, long *value) {
    Scan t = *c;
    skip(&t);
    const size_t n = name_length(t.s, (size_t)(t.end - t.s));
    const Variable *a = find(w, t.s, n);
    t.s += n;
    const bool equal = take(&t, "=="), differ = !equal && take(&t, "!=");
    if (!a || (!equal && !differ)) return false;
    skip(&t);
    const size_t m = name_length(t.s, (size_t)(t.end - t.s));
    const Variable *b = find(w, t.s, m);
    const char *text = b ? text_get(&b->value) : t.s;
    const size_t length = b ? b->value.length : m;
    *value = (a->value.length == length && memcmp(text_get(&a->value), text, length) == 0) == equal;
    t.s += m;
    skip(&t);
    if (t.s < t.end && *t.s != '&' && *t.s != ')') return false; // a sum
    *c = t;
    return true;
}

static bool comparison(Writer *w, Scan *c, long *value) {
    static const char *const SIGNS[] = {"==", "!=", "under", "over"};
    long b;
    if (compare_texts(w, c, value)) return true;
    if (!sum(w, c, value)) return false;
    for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++) {
        if (!take(c, SIGNS[i])) continue;
        if (!sum(w, c, &b)) return false;
        const long a = *value;
        const bool holds[] = {a == b, a != b, a<b, a> b};
        *value = holds[i];
        return true;
    }
    return true;
}

static bool compute(Writer *w, const char *s, size_t n, long *value) {
    Scan c = {s, s + n};
    if (!comparison(w, &c, value)) return false;
    while (take(&c, "&")) {
        long b;
        if (!comparison(w, &c, &b)) return false;
        *value = *value && b;
    }
    if (take(&c, "..")) {
        long high;
        if (!comparison(w, &c, &high) || high < *value) return false;
        *value += (long)random_below(w->random, (uint32_t)(high - *value + 1));
    }
    skip(&c);
    return c.s == c.end || wrong(w, "cannot read", c.s);
}

static void number_in_words(long n, Text *out) {
    static const char *const SMALL[] = {"zero",    "one",     "two",       "three",    "four",
                                        "five",    "six",     "seven",     "eight",    "nine",
                                        "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                        "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
    static const char *const TENS[] = {"",      "",      "twenty",  "thirty", "forty",
                                       "fifty", "sixty", "seventy", "eighty", "ninety"};
    if (n < 0 || n > 99) text_printf(out, "%ld", n);
    else if (n < 20) text_puts(out, SMALL[n]);
    else text_printf(out, n % 10 ? "%s-%s" : "%s", TENS[n / 10], SMALL[n % 10]);
}

// Field `index` of a value "a~b~c"; the last one where there are fewer.
static void put_field(const Text *value, int index, Text *out) {
    const char *s = text_get(value), *end;
    while ((end = strchr(s, '~')) && index-- > 0) s = end + 1;
    text_add(out, s, end ? (size_t)(end - s) : strlen(s));
}

static char gender(const Text *value) {
    const char *slash = strchr(text_get(value), '~');
    return slash ? slash[1] : 'n';
}

static bool put_pronoun(const Text *value, const char *which, size_t n, Text *out) {
    static const char *const WORDS_OF[][4] = {{"they", "she", "he", "it"},
                                              {"them", "her", "him", "it"},
                                              {"their", "her", "his", "its"},
                                              {"theirs", "hers", "his", "its"},
                                              {"themself", "herself", "himself", "itself"}};
    const char g = gender(value);
    for (size_t i = 0; i < sizeof WORDS_OF / sizeof *WORDS_OF; i++) {
        if (strlen(WORDS_OF[i][0]) != n || memcmp(WORDS_OF[i][0], which, n) != 0) continue;
        text_puts(out, WORDS_OF[i][g == 'f' ? 1 : g == 'm' ? 2 : 3]);
        return true;
    }
    return false;
}

// {name}, {name.2}, {name.a}, {name.they}, {name#n}; false where s is no such thing.
static bool put_variable(Writer *w, const char *s, size_t n, Text *out) {
    const size_t length = name_length(s, n);
    const Variable *v = find(w, s, length);
    if (!v || (length < n && s[length] != '.' && s[length] != '#')) return false;
    const char *rest = s + length + 1;
    const size_t left = n - length - (length < n);
    if (length == n) put_field(&v->value, 0, out);
    else if (s[length] == '#') {
        const Variable *count = find(w, rest, left);
        if (!count) return wrong(w, "no such variable:", rest);
        put_field(&v->value, strcmp(text_get(&count->value), "1") != 0, out);
    } else if (left == 1 && isdigit((unsigned char)*rest)) put_field(&v->value, *rest - '0', out);
    else if (left == 1 && *rest == 'a') {
        text_puts(out, strchr("aeiou", *text_get(&v->value)) ? "an " : "a ");
        put_field(&v->value, 0, out);
    } else return put_pronoun(&v->value, rest, left, out) || wrong(w, "no such field:", s);
    return true;
}

static bool put_value(Writer *w, const char *s, size_t n, Text *out) {
    static const char IN_WORDS[] = " words";
    const size_t tail = sizeof IN_WORDS - 1;
    const bool money = n && *s == '$', words = n > tail && memcmp(s + n - tail, IN_WORDS, tail) == 0;
    long value;
    if (put_variable(w, s, n, out)) return true;
    if (w->error->kind || !compute(w, s + money, n - money - (words ? tail : 0), &value)) return false;
    if (words) number_in_words(value, out);
    else if (!money) text_printf(out, "%ld", value);
    else if (value % 100) text_printf(out, "$%ld.%02ld", value / 100, value % 100);
    else text_printf(out, "$%ld", value / 100);
    return true;
}

// <name = sum>, <name : text>, <name ! text>, <name @ function>, <? condition>, <cut>
static bool assign_number(Writer *w, const char *name, size_t length, const char *s, size_t n) {
    LOCAL_TEXT value = {0};
    long number;
    if (!expand(w, s, n, &value) || !compute(w, text_get(&value), value.length, &number)) return false;
    text_clear(&value);
    text_printf(&value, "%ld", number);
    return set(w, name, length, &value);
}

static bool is_taken(const Writer *w, const Text *value) {
    for (int i = 0; i < w->count; i++)
        if (strcmp(text_get(&w->variables[i].value), text_get(value)) == 0) return true;
    return false;
}

static bool assign_text(Writer *w, const char *name, size_t length, const char *s, size_t n, bool new) {
    LOCAL_TEXT value = {0};
    for (int i = 0; i < 40; i++) {
        text_clear(&value);
        if (!expand(w, s, n, &value)) return false;
        if (!new || !is_taken(w, &value)) return set(w, name, length, &value);
    }
    return false;
}

static bool assign_list(Writer *w, const char *name, size_t length, const char *s, size_t n) {
    LOCAL_TEXT text = {0}, value = {0};
    const char *words[WORDS];
    int count = 0;
    if (!expand(w, s, n, &text)) return false;
    for (char *c = text.data; c && *c && count < WORDS;) {
        c += strspn(c, " ");
        const size_t end = strcspn(c, " ");
        const Variable *v = find(w, c, end);
        words[count++] = v ? text_get(&v->value) : c;
        c += end;
        if (*c) *c++ = 0;
    }
    return count && lists_apply(words, count, w->random, &value) && set(w, name, length, &value);
}

static bool run(Writer *w, const char *s, size_t n, Text *out) {
    long value;
    if (n == 3 && memcmp(s, "cut", 3) == 0) {
        if (out == w->document) w->cut = out->length;
        return true;
    }
    if (n && *s == '?') return compute(w, s + 1, n - 1, &value) && value;
    const size_t length = name_length(s, n);
    size_t at = length;
    while (at < n && s[at] == ' ') at++;
    const char kind = at < n ? s[at] : 0;
    at += at < n;
    at += at < n && s[at] == ' ';
    if (kind == '=') return assign_number(w, s, length, s + at, n - at);
    if (kind == ':' || kind == '!') return assign_text(w, s, length, s + at, n - at, kind == '!');
    if (kind == '@') return assign_list(w, s, length, s + at, n - at);
    return wrong(w, "cannot read", s);
}

// Whether an alternative that begins with a condition can be chosen.
static bool is_open(Writer *w, const char *s, size_t n) {
    long value = 1;
    while (n > 2 && s[0] == '<' && s[1] == '?') {
        const size_t end = closing(s, n, '<', '>');
        if (!compute(w, s + 2, end - 2, &value) || !value) return false;
        s += end + 1;
        n -= end + 1;
    }
    return true;
}

static uint64_t mixed(uint64_t hash, const char *name, size_t choice) {
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    hash = (hash ^ choice) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

static const Rule *find_rule(const Grammar *g, const char *name) {
    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->rules[i].name, name) == 0) return &g->rules[i];
    return NULL;
}

static bool expand_rule(Writer *w, const char *name, Text *out) {
    const Rule *rule = find_rule(w->grammar, name);
    uint32_t total = 0, at;
    if (!rule) return wrong(w, "no such rule:", name);
    for (size_t i = 0; i < rule->count; i++) {
        const Alternative *a = &rule->alternatives[i];
        total += is_open(w, a->text, strlen(a->text)) ? a->weight : 0;
        if (w->error->kind) return false;
    }
    if (!total) return false;
    at = random_below(w->random, total);
    for (size_t i = 0; i < rule->count; i++) {
        const Alternative *a = &rule->alternatives[i];
        if (!is_open(w, a->text, strlen(a->text))) continue;
        if (at >= a->weight) {
            at -= a->weight;
            continue;
        }
        if (isupper((unsigned char)*name)) w->structure = mixed(w->structure, name, i);
        return expand(w, a->text, strlen(a->text), out);
    }
    return false;
}

// What is between brackets: one of several texts, or a rule.
static bool expand_choice(Writer *w, const char *s, size_t n, Text *out) {
    size_t starts[64], count = 1;
    int depth = 0;
    starts[0] = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\') i++;
        else if (s[i] == '[' || s[i] == '{' || s[i] == '<') depth++;
        else if (s[i] == ']' || s[i] == '}' || s[i] == '>') depth--;
        else if (s[i] == '|' && depth == 0 && count < 63) starts[count++] = i + 1;
    }
    if (count > 1) {
        starts[count] = n + 1;
        const size_t k = random_below(w->random, (uint32_t)count);
        return expand(w, s + starts[k], starts[k + 1] - starts[k] - 1, out);
    }
    LOCAL_TEXT name = {0};
    return expand(w, s, n, &name) && expand_rule(w, text_get(&name), out);
}

static bool expand(Writer *w, const char *s, size_t n, Text *out) {
    bool ok = ++w->depth < DEPTH_MOST;
    for (size_t i = 0; ok && i < n; i++) {
        const char c = s[i];
        if (c == '\\' && i + 1 < n) {
            i++;
            text_add(out, s[i] == 'n' ? "\n" : &s[i], 1);
        } else if (c == '[' || c == '{' || c == '<') {
            const size_t end = closing(s + i, n - i, c, c == '[' ? ']' : c == '{' ? '}' : '>');
            if (end == n - i) ok = wrong(w, "nothing closes", s + i);
            else {
                const char *inside = s + i + 1;
                const bool capital = *inside == '^' && c != '<';
                const size_t before = out->length;
                const size_t length = end - 1 - capital;
                inside += capital;
                ok = c == '['   ? expand_choice(w, inside, length, out)
                     : c == '{' ? put_value(w, inside, length, out)
                                : run(w, inside, length, out);
                if (ok && capital && out->length > before)
                    out->data[before] = (char)toupper((unsigned char)out->data[before]);
                i += end;
            }
        } else text_add(out, &s[i], 1);
        ok = ok && out->length < LENGTH_MOST;
    }
    w->depth--;
    return ok;
}

// The length of the phrase of "a|b|c" at s; 0 if none of them is there as whole words. Its first letter may
// be a capital.
static size_t phrase_at(const char *phrases, const char *s) {
    for (const char *p = phrases; *p;) {
        const size_t n = strcspn(p, "|");
        if (tolower((unsigned char)*s) == *p && strncmp(p + 1, s + 1, n - 1) == 0 &&
            !isalpha((unsigned char)s[n]))
            return n;
        p += n + (p[n] == '|');
    }
    return 0;
}

static void put_alike(const char *phrases, bool capital, Random *r, Text *out) {
    uint32_t count = 1;
    for (const char *p = phrases; *p; p++) count += *p == '|';
    for (count = random_below(r, count); count; count--) phrases = strchr(phrases, '|') + 1;
    const size_t before = out->length;
    text_add(out, phrases, strcspn(phrases, "|"));
    if (capital) out->data[before] = (char)toupper((unsigned char)out->data[before]);
}

// Puts, for every phrase that the rule `alike` lists with others, one of them.
static void vary(const Grammar *g, Random *r, Document *d) {
    const Rule *alike = find_rule(g, "alike");
    Text varied = {0};
    size_t cut = 0;
    if (!alike) return;
    for (size_t at = 0; at < d->text.length;) {
        const char *s = d->text.data + at;
        size_t n = 0;
        if (at >= d->cut && !cut) cut = varied.length;
        for (size_t i = 0; i < alike->count && !n && isalpha((unsigned char)*s); i++) {
            n = phrase_at(alike->alternatives[i].text, s);
            if (n) put_alike(alike->alternatives[i].text, isupper((unsigned char)*s), r, &varied);
        }
        if (n == 0) // the rest of a word
            do text_add(&varied, s + n, 1);
            while (isalpha((unsigned char)s[n]) && isalpha((unsigned char)s[++n]));
        at += n ? n : 1;
    }
    text_release(&d->text);
    d->text = varied;
    if (d->cut) d->cut = cut;
}

bool grammar_write(const Grammar *g, const char *start, Random *r, Document *out, Error *e) {
    Error error = {0};
    Writer w = {.grammar = g, .random = r, .document = &out->text, .error = &error};
    bool ok = false;
    for (int i = 0; i < TRIES && !ok && !error.kind; i++) {
        text_clear(&out->text);
        w.count = w.depth = 0;
        w.cut = 0;
        w.structure = 0xcbf29ce484222325u;
        ok = expand_rule(&w, start, &out->text);
    }
    out->cut = w.cut;
    out->structure = w.structure;
    for (int i = 0; i < VARIABLES; i++) {
        text_release(&w.variables[i].name);
        text_release(&w.variables[i].value);
    }
    if (ok) vary(g, r, out);
    if (ok) return true;
    if (error.kind) *e = error;
    else error_input(e, "no document of '%s' satisfies its conditions", start);
    return false;
}

void document_release(Document *d) { text_release(&d->text); }
