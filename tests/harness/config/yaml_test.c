// A YAML file as a tree: random files against their writer, with values and places; the limits; refusals with
// place and fix; overrides.
#include "tests/support/check.h"

#include "engine/base/text.h"
#include "harness/config/yaml.h"

#include <stdio.h>
#include <string.h>

// --- random files ----------------------------------------------------------------------------------------

typedef struct Want {
    YamlKind kind;
    char key[16];
    const char *text;
    int line, column;
} Want;

enum { WANTS = 4000 };

// Writes a file and notes what must be found, parents before children.
typedef struct Writer {
    Random *random;
    Text out;
    int line, column;
    Want wants[WANTS];
    int count;
} Writer;

static void put(Writer *w, const char *s) {
    text_puts(&w->out, s);
    for (; *s; s++) {
        w->line += *s == '\n';
        if (*s == '\n') w->column = 1;
        else if ((*s & 0xc0) != 0x80) w->column++; // columns count characters, not bytes
    }
}

static void note(Writer *w, YamlKind kind, const char *key, const char *text) {
    Want *want = &w->wants[w->count++];
    assert_true(w->count < WANTS);
    *want = (Want){.kind = kind, .text = text, .line = w->line, .column = w->column};
    snprintf(want->key, sizeof want->key, "%s", key ? key : "");
}

static const char *const SCALARS[][2] = {
    {"plain", "plain"},     {"7", "7"},
    {"2..14+2", "2..14+2"}, {"'it''s'", "it's"},
    {"\"a\\tb\"", "a\tb"},  {"'W > 3'", "W > 3"},
    {"a b c", "a b c"},     {"models/x-1b", "models/x-1b"},
    {"\"\"", ""},           {"h\xc3\xa9", "h\xc3\xa9"},
};

static void write_value(Writer *w, const char *key) {
    int i = test_between(w->random, 0, sizeof SCALARS / sizeof *SCALARS - 1);
    note(w, NODE_VALUE, key, SCALARS[i][1]);
    put(w, SCALARS[i][0]);
}

static void write_flow(Writer *w, const char *key, int depth) {
    YamlKind kind = depth >= 4 ? NODE_VALUE : (YamlKind)test_between(w->random, 0, 2);
    if (kind == NODE_VALUE) {
        write_value(w, key);
        return;
    }
    note(w, kind, key, NULL);
    put(w, kind == NODE_MAP ? "{" : "[");
    for (int i = 0, n = test_between(w->random, 0, 3); i < n; i++) {
        char name[16] = "";
        if (i) put(w, ", ");
        if (kind == NODE_MAP) snprintf(name, sizeof name, "k%d", i);
        if (kind == NODE_MAP) put(w, name);
        if (kind == NODE_MAP) put(w, ": ");
        write_flow(w, name, depth + 1);
    }
    put(w, kind == NODE_MAP ? "}" : "]");
}

static void write_indent(Writer *w, int depth) {
    if (test_between(w->random, 0, 4) == 0) put(w, "  # a remark");
    if (w->out.length) put(w, "\n");
    if (test_between(w->random, 0, 4) == 0) put(w, "\n");
    for (int i = 0; i < depth; i++) put(w, "  ");
}

// Begins on a line of its own.
static void write_block(Writer *w, const char *key, int depth) {
    YamlKind kind = test_between(w->random, 0, 1) ? NODE_MAP : NODE_LIST;
    for (int i = 0, n = test_between(w->random, 1, 4); i < n; i++) {
        char name[16] = "";
        write_indent(w, depth);
        if (i == 0) note(w, kind, key, NULL); // it stands where its first item does
        if (kind == NODE_MAP) snprintf(name, sizeof name, "k%d", i);
        put(w, name);
        put(w, kind == NODE_MAP ? ":" : "-");
        if (depth < 4 && test_between(w->random, 0, 1)) write_block(w, name, depth + 1);
        else {
            put(w, " ");
            write_flow(w, name, 2);
        }
    }
}

// Compares in the order of writing; gives the next want.
static const Want *compare(const YamlNode *n, const Want *want, const char *text) {
    if (n->kind != want->kind || n->line != want->line || n->column != want->column ||
        strcmp(n->key ? n->key : "", want->key) != 0 || (want->text && strcmp(n->text, want->text) != 0))
        fail_msg("wanted kind %d, key '%s', text '%s' at %d:%d; got %d, '%s', '%s' at %d:%d in\n%s",
                 (int)want->kind, want->key, want->text ? want->text : "", want->line, want->column,
                 (int)n->kind, n->key ? n->key : "", n->text ? n->text : "", n->line, n->column, text);
    int children = 0;
    const YamlNode *last = NULL;
    want++;
    for (const YamlNode *child = n->first; child; child = child->next, children++) {
        want = compare(child, want, text);
        last = child;
    }
    assert_int_equal(n->count, children);
    assert_ptr_equal(n->last, last);
    return want;
}

static void random_files(void **state) {
    (void)state;
    Random r = test_random(1);
    static Writer w;
    for (int round = 0; round < 2000; round++) {
        YamlTree t;
        Error e = {0};
        w = (Writer){.random = &r, .line = 1, .column = 1};
        write_block(&w, NULL, 0);
        put(&w, "\n");
        if (!yaml_parse(&t, text_get(&w.out), w.out.length, "f", &e))
            fail_msg("%s of\n%s", e.text, text_get(&w.out));
        assert_ptr_equal(compare(t.root, w.wants, text_get(&w.out)), w.wants + w.count);
        yaml_release(&t);
        text_release(&w.out);
    }
}

// --- refusals --------------------------------------------------------------------------------------------

static void refuse_bytes(const char *bytes, size_t n, const char *want) {
    YamlTree t;
    Error e = {0};
    if (yaml_parse(&t, bytes, n, "x.yaml", &e)) fail_msg("'%s' was taken", bytes);
    if (strcmp(e.text, want) != 0) fail_msg("'%.60s': wanted '%s', got '%s'", bytes, want, e.text);
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_null(t.root);
}

static void refusals(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "x.yaml:1:1: there is nothing in it"},
        {"# only\n", "x.yaml:1:1: there is nothing in it"},
        {"a: 1\nb: 2\n a: 3", "x.yaml:3:3: this is not YAML: mapping values are not allowed in this context"},
        {"a: 1\nb: 2\na: 3", "x.yaml:3:1: 'a' is given twice, first in line 1: take one away"},
        {"x: {a: 1, 'a': 2}", "x.yaml:1:11: 'a' is given twice, first in line 1: take one away"},
        {"a: &b 1\nc: *b", "x.yaml:1:4: '&b' is an anchor: write the value where it is used"},
        {"a: &b [1]", "x.yaml:1:4: '&b' is an anchor: write the value where it is used"},
        {"a: &b {c: 1}", "x.yaml:1:4: '&b' is an anchor: write the value where it is used"},
        {"a: *b", "x.yaml:1:4: '*b' is an alias: write the value itself"},
        {"a: !!str 5", "x.yaml:1:4: 'tag:yaml.org,2002:str' is a tag: remove it, and quote texts"},
        {"a: !x [5]", "x.yaml:1:4: '!x' is a tag: remove it, and quote texts"},
        {"a: 1\n---\nb: 2", "x.yaml:2:1: a second document begins here: keep one to a file"},
        {"a: 1\x01", "x.yaml:1:5: this is not YAML: control characters are not allowed"},
        {"? \n: 1", "x.yaml:1:2: a key must be one word, such as 'seed: 1'"},
        {"[a]: 1", "x.yaml:1:1: a key must be one word, such as 'seed: 1'"},
        {"{a: 1}: 1", "x.yaml:1:1: a key must be one word, such as 'seed: 1'"},
        {"a: \xc3\xa9\nb: \xc3\xa9\xff", "x.yaml:2:5: this is not YAML: invalid leading UTF-8 octet"},
        {": 1", "x.yaml:1:1: this is not YAML: did not find expected key"},
        {"a: \"x\\0y\"", "x.yaml:1:4: this text holds a NUL: take it out"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse_bytes(cases[i][0], strlen(cases[i][0]), cases[i][1]);
}

static char *repeat(const char *s, int n) {
    Text t = {0};
    for (int i = 0; i < n; i++) text_puts(&t, s);
    return t.data;
}

static void limits(void **state) {
    (void)state;
    static const struct {
        const char *before, *again;
        int most;
        const char *want;
    } cases[] = {
        {"", "[", YAML_DEEPEST, "x.yaml:1:17: maps and lists are nested more than 16 deep"},
        {"", "- 1\n", YAML_NODES - 1, "x.yaml:10000:3: there are more than 10000 values: take some away"},
        {"a: 1\n#", "#", YAML_BYTES - 6,
         "x.yaml:1:1: it has more than 262144 bytes: no config needs so many"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Text file = {0};
        for (int over = 0; over <= 1; over++) {
            YamlTree t;
            Error e = {0};
            char *body = repeat(cases[i].again, cases[i].most + over),
                 *end = repeat("]", cases[i].most + over);
            text_clear(&file);
            text_puts(&file, cases[i].before);
            text_puts(&file, body);
            if (*cases[i].again == '[') text_puts(&file, end);
            if (over) refuse_bytes(file.data, file.length, cases[i].want);
            else if (!yaml_parse(&t, file.data, file.length, "x.yaml", &e)) fail_msg("%s", e.text);
            else yaml_release(&t);
            text_release(&(Text){.data = body});
            text_release(&(Text){.data = end});
        }
        text_release(&file);
    }
}

static void noise(void **state) {
    (void)state;
    Random r = test_random(2);
    static const char parts[] = "[]{}:,-&*!?|>'\"#%@ \n\n\tab1~=";
    for (int round = 0; round < 20000; round++) {
        char bytes[80];
        int n = test_between(&r, 0, sizeof bytes - 1);
        for (int i = 0; i < n; i++)
            bytes[i] = test_between(&r, 0, 15) ? parts[test_between(&r, 0, sizeof parts - 2)]
                                               : (char)test_between(&r, 0, 255);
        YamlTree t;
        Error e = {0};
        if (yaml_parse(&t, bytes, (size_t)n, "noise", &e)) assert_non_null(t.root);
        else if (e.kind != ERROR_INPUT || strncmp(e.text, "noise:", 6) != 0)
            fail_msg("'%.*s': got '%s'", n, bytes, e.text);
        yaml_release(&t);
    }
}

// --- overrides -------------------------------------------------------------------------------------------

static const char BASE[] = "seed: 1\nlist: [x, {name: y, v: 2}, {name: z}, {name: z}]\nmap:\n  a: {b: 3}\n";

static const YamlNode *at_path(const YamlNode *n, const char *keys) {
    char copy[64], *save = NULL;
    snprintf(copy, sizeof copy, "%s", keys);
    for (char *word = strtok_r(copy, ".", &save); word && n; word = strtok_r(NULL, ".", &save))
        if (n->kind == NODE_MAP) n = yaml_find(n, word);
        else
            for (n = n->first; n && *word != '0'; --*word) n = n->next;
    return n;
}

static void overrides(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"seed", "7", "seed"},         {"new", "7", "new"},
        {"map.a.b", "7", "map.a.b"},   {"map.q.r", "7", "map.q.r"},
        {"list.0", "7", "list.0"},     {"list.1.v", "7", "list.1.v"},
        {"list.y.v", "7", "list.1.v"}, {"list.x", "7", "list.0"},
        {"list.3.v", "7", "list.3.v"}, {"map", "{u: [0, 7]}", "map.u.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        YamlTree t;
        Error e = {0};
        assert_true(yaml_parse(&t, BASE, strlen(BASE), "x.yaml", &e));
        if (!yaml_set(&t, "--set ", cases[i][0], cases[i][1], &e)) fail_msg("%s: %s", cases[i][0], e.text);
        const YamlNode *n = at_path(t.root, cases[i][2]);
        if (!n || strcmp(n->text, "7") != 0) fail_msg("--set %s=%s set nothing", cases[i][0], cases[i][1]);
        assert_memory_equal(n->file, "--set ", 6);
        if (strcmp(cases[i][0], "seed") != 0) assert_string_equal(at_path(t.root, "seed")->text, "1");
        yaml_release(&t);
    }
}

static void wrong_overrides(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"seed", "", "--set seed:1:1: there is nothing in it"},
        {"seed", "[1", "--set seed:2:1: this is not YAML: did not find expected ',' or ']'"},
        {"seed.a", "1", "--set seed.a:1:1: 'a' cannot be a key of '1', which is a single value"},
        {"list.q", "1", "x.yaml:2:7: this list has no 'q': name one of its 4 items, or its number from 0"},
        {"list.4", "1", "x.yaml:2:7: this list has no '4': name one of its 4 items, or its number from 0"},
        {"list.z.v", "1", "x.yaml:2:39: two items of this list are 'z': choose one by its number, from 0"},
        {"", "1", "--set :1:1: a path is words with a dot between them, such as generation.seed"},
        {"map..b", "1", "--set map..b:1:1: a path is words with a dot between them, such as generation.seed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        YamlTree t;
        Error e = {0};
        assert_true(yaml_parse(&t, BASE, strlen(BASE), "x.yaml", &e));
        if (yaml_set(&t, "--set ", cases[i][0], cases[i][1], &e)) fail_msg("--set %s was taken", cases[i][0]);
        if (strcmp(e.text, cases[i][2]) != 0)
            fail_msg("--set %s=%s: wanted '%s', got '%s'", cases[i][0], cases[i][1], cases[i][2], e.text);
        yaml_release(&t);
    }
}

static void many_overrides(void **state) {
    (void)state;
    YamlTree t;
    Error e = {0};
    assert_true(yaml_parse(&t, BASE, strlen(BASE), "x.yaml", &e));
    int taken = 0;
    while (taken < 1000 && yaml_set(&t, "--set ", "seed", "2", &e)) taken++;
    assert_int_equal(taken, 63);
    assert_string_equal(e.text, "--set may be given 63 times at most");
    yaml_release(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_files),   cmocka_unit_test(refusals),  cmocka_unit_test(limits),
        cmocka_unit_test(noise),          cmocka_unit_test(overrides), cmocka_unit_test(wrong_overrides),
        cmocka_unit_test(many_overrides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
