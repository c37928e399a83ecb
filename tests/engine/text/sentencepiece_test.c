// Cases that sentencepiece's own models in the fixtures lack: equal scores, odd orders of fields, all pieces'
// types.
#include "tests/support/check.h"

#include "engine/text/tokenizer.h"

#include <string.h>

// A model built field by field; all lengths here are below 128.
static void add_field(Text *out, int number, const char *bytes, size_t n) {
    const char head[] = {(char)(number << 3 | 2), (char)n};
    text_add(out, head, 2);
    text_add(out, bytes, n);
}

static void add_piece(Text *model, const char *piece, float score, int type) {
    Text message = {0};
    const char type_field[] = {3 << 3, (char)type};
    char score_field[5] = {2 << 3 | 5};
    memcpy(score_field + 1, &score, 4);
    text_add(&message, type_field, 2);
    add_field(&message, 1, piece, strlen(piece));
    text_add(&message, score_field, 5);
    add_field(model, 1, text_get(&message), message.length);
    text_release(&message);
}

enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED };

// BPE without a dummy prefix, spaces kept.
static void add_settings(Text *model) {
    add_field(model, 2, "\x18\x02", 2);
    add_field(model, 3, "\x18\x00\x20\x00", 4);
}

// The pieces of a text with the model, each after a bar.
static void pieces_of(const Text *model, const char *text, Text *out) {
    Error e = {0};
    IdList ids = {0};
    Tokenizer *t = tokenizer_parse_model(text_get(model), model->length, "FILE", &e);
    if (!t) fail_msg("%s", e.text);
    assert_true(tokenizer_encode(t, text, strlen(text), false, &ids, &e));
    for (size_t i = 0; i < ids.count; i++) text_printf(out, "|%s", tokenizer_piece(t, ids.ids[i]));
    ids_release(&ids);
    tokenizer_close(t);
}

static void expect_pieces(const Text *model, const char *text, const char *want) {
    Text got = {0};
    pieces_of(model, text, &got);
    if (strcmp(text_get(&got), want) != 0) fail_msg("'%s': wanted %s, got %s", text, want, text_get(&got));
    text_release(&got);
}

// Of equal scores the leftmost merges first, whatever the order of the pieces.
static void equal_scores(void **state) {
    (void)state;
    Text model = {0};
    add_settings(&model);
    add_piece(&model, "<unk>", 0, UNKNOWN);
    add_piece(&model, "bc", -1, NORMAL);
    add_piece(&model, "ab", -1, NORMAL);
    add_piece(&model, "cd", -0.5f, NORMAL);
    for (const char *c = "abcd"; *c; c++) add_piece(&model, (char[]){*c, 0}, -10, NORMAL);
    expect_pieces(&model, "abc", "|ab|c");
    expect_pieces(&model, "bcbabcb", "|bc|b|ab|c|b");
    expect_pieces(&model, "abcd", "|ab|cd"); // the higher score first
    expect_pieces(&model, "bcd", "|b|cd");
    text_release(&model);
}

// User-defined pieces stand for themselves, longest first, and merge with nothing; control pieces too.
static void other_types(void **state) {
    (void)state;
    Text model = {0};
    add_piece(&model, "<unk>", 0, UNKNOWN);
    add_piece(&model, "<c>", 0, CONTROL);
    add_piece(&model, "ab", 0, USER_DEFINED);
    add_piece(&model, "abc", 0, USER_DEFINED);
    add_piece(&model, "xa", 5, NORMAL);
    add_piece(&model, "ca", 5, NORMAL);
    for (const char *c = "abcx"; *c; c++) add_piece(&model, (char[]){*c, 0}, -10, NORMAL);
    add_settings(&model);
    expect_pieces(&model, "xa", "|xa");
    expect_pieces(&model, "xab", "|x|ab");
    expect_pieces(&model, "abcab", "|abc|ab");
    expect_pieces(&model, "abca", "|abc|a");
    expect_pieces(&model, "a<c>ca", "|a|<c>|ca");
    expect_pieces(&model, "a\xc3\xa9\xe4\xb8\xadx", "|a|<unk>|x"); // a run of unknown characters is one
    text_release(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_scores), cmocka_unit_test(other_types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
