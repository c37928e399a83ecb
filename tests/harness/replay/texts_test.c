// Files of token ids: what is read of good ones, and one line with file and row for each kind of bad one.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "harness/replay/replay.h"
#include "tests/support/folder.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

static const ReplayTokens PUBLIC = {.prompt = "prompt_token_ids", .answer = "generated_token_ids"};

static const char GOOD[] =
    "{\"id\": \"a\", \"prompt_token_ids\": [5, 6], \"generated_token_ids\": [7, 8, 9],"
    " \"acc_x\": {\"acc_len\": [1, 2, 1]}}\n"
    "\n"
    "{\"id\": 4, \"prompt_token_ids\": [5], \"generated_token_ids\": [1, 2], \"acc_x\": {\"acc_len\": [1]}}\n"
    "{\"id\": \"c\", \"prompt_token_ids\": [5], \"generated_token_ids\": [], \"acc_x\": {\"acc_len\": []}}\n";

static const char *write_file(const char *folder, const char *name, const void *bytes, size_t n) {
    const char *path = folder_path(folder, name);
    if (!file_write(path, bytes, n, NULL)) fail_msg("cannot write %s", path);
    return path;
}

static size_t pack(const char *text, unsigned char *out, size_t room) {
    z_stream s = {.next_in = (unsigned char *)(size_t)text, .avail_in = (unsigned)strlen(text)};
    s.next_out = out, s.avail_out = (unsigned)room;
    assert_int_equal(deflateInit2(&s, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
    size_t n = room - s.avail_out;
    deflateEnd(&s);
    return n;
}

static void good(void **state) {
    unsigned char packed[4096];
    ReplayTokens from = PUBLIC;
    ReplayTexts t;
    Error e = {0};
    from.path = write_file(*state, "set.jsonl.gz", packed, pack(GOOD, packed, sizeof packed));
    if (!replay_tokens(&from, &t, &e)) fail_msg("%s", e.text);
    assert_string_equal(t.name, "set");
    assert_true(t.count == 2 && t.unanswered == 1 && t.unequal == 0 && t.tokens == 5);
    assert_true(t.vocab == 10 && t.longest == 5 && !t.model);
    assert_true(t.texts[0].prompt == 2 && t.texts[0].count == 5 && t.texts[0].ids[4] == 9);
    assert_string_equal(t.texts[0].name, "a");
    assert_string_equal(t.texts[1].name, "4");
    replay_texts_release(&t);
    from.list_count = 1, from.lists[0] = "acc_x", from.vocab = 50;
    if (!replay_tokens(&from, &t, &e)) fail_msg("%s", e.text);
    assert_true(t.count == 1 && t.unequal == 1 && t.vocab == 50 && t.texts[0].lists[0][1] == 2);
    replay_texts_release(&t);
}

static void other_names(void **state) {
    static const char TEXT[] = "[{\"in\": {\"ids\": [1]}, \"out\": [2], \"model\": \"m\"}]";
    ReplayTokens from = {.prompt = "in/ids", .answer = "out"};
    ReplayTexts t;
    Error e = {0};
    from.path = write_file(*state, "x.json", TEXT, strlen(TEXT));
    if (!replay_tokens(&from, &t, &e)) fail_msg("%s", e.text);
    assert_true(t.count == 1 && t.texts[0].ids[1] == 2);
    assert_string_equal(t.model, "m");
    replay_texts_release(&t);
}

#define ROW(prompt, answer, more) \
    "{\"prompt_token_ids\": " prompt ", \"generated_token_ids\": " answer more "}\n"

static void bad(void **state) {
    static const char *const ROWS[][2] = {
        {ROW("[1]", "[2]", "") ROW("[1]", "[1048576]", ""),
         "line 2: field 'generated_token_ids' has id 1048576 at entry 0, beyond any vocabulary"},
        {ROW("[1, -3]", "[2]", ""), "line 1: field 'prompt_token_ids' must hold token ids: entry 1"},
        {ROW("[1, 2.5]", "[2]", ""), "entry 1 isn't one"},
        {ROW("[]", "[2]", ""), "line 1: field 'prompt_token_ids' is empty"},
        {"{\"generated_token_ids\": [1]}\n", "'prompt_token_ids'"},
        {ROW("[1]", "\"text\"", ""), "'generated_token_ids' must be a list"},
        {ROW("[1]", "[2]", ", \"model\": \"a\"") ROW("[1]", "[2]", ", \"model\": \"b\""),
         "line 2: field 'model' is 'b', the first row's 'a'"},
        {ROW("[1]", "[2]", ", \"model\": \"a\"") ROW("[1]", "[2]", ""), "is 'missing', the first row's 'a'"},
        {ROW("[1]", "[]", ""), "has no row with an answer"},
        {"", "has no row with an answer"},
        {ROW("[1]", "[2]", "") "{\"prompt_tok", "line 2"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        ReplayTokens from = PUBLIC;
        ReplayTexts t;
        Error e = {0};
        from.path = write_file(*state, "bad.jsonl", ROWS[i][0], strlen(ROWS[i][0]));
        assert_false(replay_tokens(&from, &t, &e));
        if (!strstr(e.text, ROWS[i][1]) || !strstr(e.text, "bad.jsonl") || strchr(e.text, '\n'))
            fail_msg("row %zu: wanted '%s', got '%s'", i, ROWS[i][1], e.text);
        replay_texts_release(&t);
    }
}

static void bad_lists(void **state) {
    static const char *const ROWS[][2] = {
        {ROW("[1]", "[2]", ""), "field 'acc_x' must be a list, or an object with 'acc_len'"},
        {ROW("[1]", "[2]", ", \"acc_x\": [0]"), "must hold numbers from 1 to 255"},
        {ROW("[1]", "[2]", ", \"acc_x\": [256]"), "must hold numbers from 1 to 255"},
        {ROW("[1]", "[2]", ", \"acc_x\": [1, 1]"), "the lists of all 1 rows differ in length"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        ReplayTokens from = PUBLIC;
        ReplayTexts t;
        Error e = {0};
        from.list_count = 1, from.lists[0] = "acc_x";
        from.path = write_file(*state, "bad.jsonl", ROWS[i][0], strlen(ROWS[i][0]));
        assert_false(replay_tokens(&from, &t, &e));
        if (!strstr(e.text, ROWS[i][1])) fail_msg("wanted '%s', got '%s'", ROWS[i][1], e.text);
        replay_texts_release(&t);
    }
}

static void cut_gzip(void **state) {
    unsigned char packed[4096];
    size_t n = pack(GOOD, packed, sizeof packed);
    for (size_t cut = 3; cut < n; cut++) {
        ReplayTokens from = PUBLIC;
        ReplayTexts t;
        Error e = {0};
        from.path = write_file(*state, "cut.gz", packed, cut);
        assert_false(replay_tokens(&from, &t, &e));
        if (!strstr(e.text, "cut.gz")) fail_msg("cut at %zu: '%s'", cut, e.text);
        replay_texts_release(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(good, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(other_names, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(bad, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(bad_lists, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(cut_gzip, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
