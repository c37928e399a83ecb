// Added tokens against a slow search: every token at every place.
#include "tests/support/check.h"

#include "engine/text/vocab.h"

#include <stdio.h>
#include <string.h>

enum { TOKENS_MAX = 12 };

static const char *const PARTS[] = {
    "<", "s", ">", "a", " ", "\xc2\xa0", "\xc3\xa9", "\n", "-", "\xe2\x80\x8d", "_"};

static size_t random_text(Random *r, int most, char *out) {
    size_t n = 0;
    for (int count = test_between(r, 0, most); count > 0; count--) {
        const char *part = PARTS[test_between(r, 0, (int)(sizeof PARTS / sizeof *PARTS) - 1)];
        memcpy(out + n, part, strlen(part));
        n += strlen(part);
    }
    out[n] = 0;
    return n;
}

static int random_tokens(Random *r, AddedToken *out, char (*texts)[64]) {
    int count = test_between(r, 0, TOKENS_MAX);
    for (int i = 0; i < count; i++) {
        size_t n = random_text(r, 4, texts[i]);
        out[i] = (AddedToken){.text = texts[i],
                              .length = n,
                              .id = i,
                              .left = test_between(r, 0, 3) == 0,
                              .right = test_between(r, 0, 3) == 0,
                              .single_word = test_between(r, 0, 3) == 0,
                              .normalized = test_between(r, 0, 3) == 0};
    }
    return count;
}

// The first of the longest tokens that stand at i.
static const AddedToken *slow_at(const AddedToken *tokens, int count, const char *text, size_t i) {
    const AddedToken *best = NULL;
    for (int k = 0; k < count; k++) {
        const AddedToken *t = &tokens[k];
        if (t->normalized || !t->length || strncmp(text + i, t->text, t->length) != 0) continue;
        if (!best || t->length > best->length) best = t;
    }
    return best;
}

static bool is_word_part(const char *s, size_t n) {
    static const char *const words[] = {"s", "a", "\xc3\xa9", "\xe2\x80\x8d", "_"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) <= n && memcmp(s, words[i], strlen(words[i])) == 0) return true;
    return false;
}

static bool word_before(const char *text, size_t i) {
    size_t length = 1;
    while (length < i && ((unsigned char)text[i - length] & 0xC0) == 0x80) length++;
    return i > 0 && is_word_part(text + i - length, length);
}

static size_t space_length(const char *s) {
    return *s == ' ' || *s == '\n' ? 1 : strncmp(s, "\xc2\xa0", 2) == 0 ? 2 : 0;
}

static AddedMatch slow_next(const AddedToken *tokens, int count, const char *text, size_t n, size_t at) {
    for (size_t i = at; i < n; i++) {
        const AddedToken *t = slow_at(tokens, count, text, i);
        if (!t) continue;
        size_t end = i + t->length;
        if (t->single_word && (word_before(text, i) || (end < n && is_word_part(text + end, n - end)))) {
            i = end - 1;
            continue;
        }
        AddedMatch m = {t, i, end};
        while (t->left && m.from > at) {
            if (space_length(text + m.from - 1) == 1) m.from--;
            else if (m.from - at >= 2 && space_length(text + m.from - 2) == 2) m.from -= 2;
            else break;
        }
        while (t->right && m.to < n && space_length(text + m.to)) m.to += space_length(text + m.to);
        return m;
    }
    return (AddedMatch){NULL, n, n};
}

static void like_the_slow_search(void **state) {
    (void)state;
    Random r = test_random(5);
    for (int i = 0; i < 3000; i++) {
        AddedToken tokens[TOKENS_MAX];
        char texts[TOKENS_MAX][64], text[256];
        int count = random_tokens(&r, tokens, texts);
        size_t n = random_text(&r, 30, text), at = 0;
        AddedSet set;
        assert_true(added_init(&set, tokens, count, false, NULL));
        for (AddedMatch m = {.from = 0}; at < n; at = m.to) {
            AddedMatch want = slow_next(tokens, count, text, n, at);
            m = added_next(&set, text, n, at);
            if (m.token != want.token || m.from != want.from || m.to != want.to)
                fail_msg("'%s' from %zu: wanted '%s' at [%zu, %zu), got '%s' at [%zu, %zu)", text, at,
                         want.token ? want.token->text : "", want.from, want.to, m.token ? m.token->text : "",
                         m.from, m.to);
        }
        added_release(&set);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(like_the_slow_search)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
