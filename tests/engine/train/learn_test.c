// A learned tokenizer: its merges are those of a slow and obvious count, its file opens, and encoded text
// comes back.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/text/tokenizer.h"
#include "engine/train/trainer.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static char *learn(const char *text, size_t n, int vocab) {
    Error e = {0};
    Learner *l = learner_open();
    learner_add(l, text, n);
    char *json = learner_finish(l, vocab, &e);
    if (!json) fail_msg("%s", e.text);
    learner_close(l);
    return json;
}

// Words of random letters, often the same ones; signs, digits, lines, runs of spaces.
static void random_text(Text *out, int words, Random *r) {
    static const char *const parts[] = {"the", "then", "other", "\n", "  ", "    ", "(",
                                        "))",  "é",    "12",    "x7", "-",  "aa",   "aaa"};
    for (int i = 0; i < words; i++) {
        text_puts(out, parts[random_below(r, sizeof parts / sizeof *parts)]);
        for (int n = test_between(r, 0, 3); n > 0; n--) text_add(out, &"abcd"[random_below(r, 4)], 1);
        if (random_below(r, 3)) text_puts(out, " ");
    }
}

// --- the slow count: words of pieces as texts ------------------------------------------------------------

enum { PIECE = 80, MOST = 20000 };

typedef struct Slow {
    char (*pieces)[PIECE]; // "" ends a word
    int count;
} Slow;

static int kind(char c) {
    if (c == ' ') return 0;
    if ((c >= 'a' && c <= 'z') || (unsigned char)c >= 0x80) return 1;
    return c == '\n' ? 2 : c >= '0' && c <= '9' ? 3 : 4;
}

static void slow_split(Slow *s, const char *text) {
    int before = 0;
    s->count = 0;
    snprintf(s->pieces[s->count++], PIECE, "\xe2\x96\x81");
    for (const char *c = text; *c;) {
        int n = (unsigned char)*c >= 0x80 ? 2 : 1, now = kind(*c);
        if (!(before == 0 ? now != 3 : before == now && now != 3)) s->pieces[s->count++][0] = 0;
        if (now == 0) snprintf(s->pieces[s->count++], PIECE, "\xe2\x96\x81");
        else snprintf(s->pieces[s->count++], PIECE, "%.*s", n, c);
        before = now;
        c += n;
    }
    s->pieces[s->count++][0] = 0;
}

static int slow_pair_count(const Slow *s, const char *left, const char *right) {
    int n = 0;
    for (int i = 0; i + 1 < s->count; i++)
        n += !strcmp(s->pieces[i], left) && !strcmp(s->pieces[i + 1], right);
    return n;
}

static int slow_highest(const Slow *s) {
    int highest = 0;
    for (int i = 0; i + 1 < s->count; i++) {
        if (!s->pieces[i][0] || !s->pieces[i + 1][0]) continue;
        int n = slow_pair_count(s, s->pieces[i], s->pieces[i + 1]);
        if (n > highest) highest = n;
    }
    return highest;
}

static void slow_merge(Slow *s, const char *left, const char *right) {
    int to = 0;
    for (int i = 0; i < s->count; i++, to++) {
        bool here = i + 1 < s->count && !strcmp(s->pieces[i], left) && !strcmp(s->pieces[i + 1], right);
        if (to != i) memcpy(s->pieces[to], s->pieces[i], PIECE);
        if (here) snprintf(s->pieces[to], PIECE, "%.39s%.39s", left, right), i++;
    }
    s->count = to;
}

// Each merge of the file is a commonest pair of what the merges before it have left.
static void merges_are_the_commonest(void **state) {
    (void)state;
    Random r = test_random(1);
    Slow slow = {mem_new(MOST, PIECE), 0};
    for (int round = 0; round < 3; round++) {
        Text text = {0};
        random_text(&text, 250, &r);
        char *json = learn(text.data, text.length, LEARN_MIN_VOCAB + 60);
        json_t *root = json_loads(json, 0, NULL),
               *list = json_object_get(json_object_get(root, "model"), "merges");
        slow_split(&slow, text.data);
        size_t merges = json_array_size(list);
        for (size_t i = 0; i < merges; i++) {
            char left[PIECE], right[PIECE];
            const char *merge = json_string_value(json_array_get(list, i)), *space = strchr(merge, ' ');
            snprintf(left, sizeof left, "%.*s", (int)(space - merge), merge);
            snprintf(right, sizeof right, "%s", space + 1);
            int here = slow_pair_count(&slow, left, right), most = slow_highest(&slow);
            if (here != most)
                fail_msg("merge %zu, '%s', stands %d times, another %d (seed %llu)", i, merge, here, most,
                         (unsigned long long)test_seed());
            slow_merge(&slow, left, right);
        }
        json_decref(root);
        assert_true(merges >= 55);
        mem_free(json);
        text_release(&text);
    }
    mem_free(slow.pieces);
}

// Any text, of characters that were learned or not, and bytes that are none.
static void texts_come_back(void **state) {
    (void)state;
    Random r = test_random(2);
    Text text = {0};
    Error e = {0};
    random_text(&text, 2000, &r);
    char *json = learn(text.data, text.length, 500);
    Tokenizer *t = tokenizer_parse(json, strlen(json), "learned", &e);
    if (!t) fail_msg("%s", e.text);
    assert_int_equal(tokenizer_size(t), 500);
    for (int round = 0; round < 200; round++) {
        static const char *const foreign[] = {"", "漢字", "\t", "😀", "ÄÖ", " \n ", "Q&A"};
        Text one = {0}, back = {0};
        IdList ids = {0};
        random_text(&one, test_between(&r, 1, 20), &r);
        text_puts(&one, foreign[random_below(&r, 7)]);
        assert_true(tokenizer_encode(t, one.data, one.length, true, &ids, &e));
        assert_int_equal(ids.ids[0], 1);
        assert_true(tokenizer_decode(t, ids.ids, ids.count, true, &back, &e));
        assert_string_equal(text_get(&back), text_get(&one));
        ids_release(&ids);
        text_release(&one);
        text_release(&back);
    }
    tokenizer_close(t);
    mem_free(json);
    text_release(&text);
}

// What was common is short.
static void common_words_are_one_piece(void **state) {
    (void)state;
    Text text = {0};
    Error e = {0};
    IdList ids = {0};
    for (int i = 0; i < 50; i++) text_puts(&text, "we return the value 2024 * 7\n");
    char *json = learn(text.data, text.length, LEARN_MIN_VOCAB + 15);
    Tokenizer *t = tokenizer_parse(json, strlen(json), "learned", &e);
    assert_true(tokenizer_encode(t, "return value 24", 15, false, &ids, &e));
    assert_string_equal(tokenizer_piece(t, ids.ids[0]), "\xe2\x96\x81return");
    assert_string_equal(tokenizer_piece(t, ids.ids[ids.count - 1]), "4"); // digits stand alone
    tokenizer_close(t);
    ids_release(&ids);
    mem_free(json);
    text_release(&text);
}

static void expect_error(const char *text, size_t n, int vocab, const char *want) {
    Error e = {0};
    Learner *l = learner_open();
    learner_add(l, text, n);
    assert_null(learner_finish(l, vocab, &e));
    assert_int_equal(e.kind, ERROR_INPUT);
    if (!strstr(e.text, want)) fail_msg("wanted '...%s...', got '%s'", want, e.text);
    learner_close(l);
}

static void refusals(void **state) {
    (void)state;
    expect_error("abc", 3, 100, "from 355");
    expect_error("abc abc", 7, 400, "too little text for 400 pieces: it gives");
    expect_error("", 0, 400, "too little text");
    expect_error("\xff\xfe\x80", 3, 400, "too little text");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_are_the_commonest), cmocka_unit_test(texts_come_back),
        cmocka_unit_test(common_words_are_one_piece), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
