// Phrases found in a datastore, against a search of the whole text; and broken files.
#include "tests/support/check.h"
#include "tests/support/folder.h"

#include "engine/base/memory.h"
#include "engine/decode/structures/datastore.h"

#include <limits.h>
#include <string.h>

enum { MOST = 300, HEADER = 24 };

static int random_text(int *tokens, int vocab, Random *r) {
    int n = test_between(r, 1, MOST);
    for (int i = 0; i < n; i++)
        tokens[i] = test_between(r, 0, 9) ? test_between(r, 0, vocab - 1) : DATASTORE_BREAK;
    return n;
}

static int slow_count(const int *tokens, int n, const int *phrase, int length) {
    int count = 0;
    for (int i = 0; i + length <= n; i++)
        count += memcmp(tokens + i, phrase, (size_t)length * sizeof *tokens) == 0;
    return count;
}

static void check_phrase(const Datastore *d, const int *tokens, int n, const int *phrase, int length) {
    int first, want = slow_count(tokens, n, phrase, length), got = datastore_find(d, phrase, length, &first);
    if (got != want) fail_msg("a phrase of %d tokens stands at %d places, want %d", length, got, want);
    for (int i = 0; i < got; i++)
        assert_memory_equal(tokens + d->places[first + i], phrase, (size_t)length * sizeof *tokens);
    for (int i = 1; i < got; i++) assert_true(d->places[first + i] != d->places[first + i - 1]);
}

static void phrases_are_found(void **state) {
    Random r = test_random(170);
    const char *path = folder_path(*state, "store");
    int tokens[MOST], found = 0;
    for (int round = 0; round < 60; round++) {
        Datastore d;
        Error e = {0};
        int vocab = test_between(&r, 1, 5), n = random_text(tokens, vocab, &r);
        if (!datastore_write(path, tokens, n, vocab, &e) || !datastore_open(&d, path, &e))
            fail_msg("%s", e.text);
        assert_true(d.count == n && d.vocab == vocab);
        assert_memory_equal(d.tokens, tokens, (size_t)n * sizeof *tokens);
        for (int i = 0; i < 200; i++) {
            int phrase[8], length = test_between(&r, 1, 8), at = test_between(&r, 0, n - 1), first;
            for (int k = 0; k < length; k++)
                phrase[k] = at + k < n && tokens[at + k] >= 0 ? tokens[at + k] : test_between(&r, 0, vocab);
            check_phrase(&d, tokens, n, phrase, length);
            found += datastore_find(&d, phrase, length, &first) > 0;
        }
        datastore_close(&d);
    }
    assert_true(found > 5000);
}

static bool parses(const unsigned char *bytes, size_t n, Error *e) {
    Datastore d;
    unsigned char *exact = mem_new(n, 1); // nothing after it: sanitizers see a read past the end
    memcpy(exact, bytes, n);
    bool ok = datastore_parse(exact, n, "store", &d, e);
    int first, phrase[] = {1, 2};
    if (ok) datastore_find(&d, phrase, 2, &first); // whatever was taken can be read
    mem_free(exact);
    return ok;
}

static void broken_bytes_are_refused(void **state) {
    Random r = test_random(171);
    const char *path = folder_path(*state, "store");
    int tokens[MOST], n = random_text(tokens, 6, &r);
    FileView view;
    assert_true(datastore_write(path, tokens, n, 6, NULL) && file_map(path, &view, NULL));
    unsigned char *bytes = mem_new(view.size + 8, 1);
    memcpy(bytes, view.data, view.size);
    for (size_t i = 0; i < view.size; i++) {
        Error e = {0};
        assert_false(parses(bytes, i, &e)); // cut
        assert_int_equal(e.kind, ERROR_INPUT);
        assert_non_null(strstr(e.text, "'store'"));
        unsigned char was = bytes[i];
        bytes[i] = (unsigned char)test_between(&r, 0, 255);
        parses(bytes, view.size, &e); // refused, or harmless
        bytes[i] = was;
    }
    assert_false(parses(bytes, view.size + 8, NULL)); // too long
    static const struct {
        size_t at;
        int32_t value;
    } lies[] = {{0, 0},  {8, 0},       {8, -1},     {8, INT_MAX},         {16, 0},
                {20, 1}, {HEADER, -2}, {HEADER, 6}, {HEADER + 4, INT_MAX}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        memcpy(bytes, view.data, view.size);
        memcpy(bytes + lies[i].at, &lies[i].value, 4);
        if (parses(bytes, view.size, NULL)) fail_msg("%d at byte %zu was taken", lies[i].value, lies[i].at);
    }
    int32_t far = n, before = -1;
    for (int i = 0; i < 2; i++) { // places
        memcpy(bytes, view.data, view.size);
        memcpy(bytes + view.size - 4, i ? &before : &far, 4);
        assert_false(parses(bytes, view.size, NULL));
    }
    mem_free(bytes);
    file_unmap(&view);
}

static void nothing_is_no_datastore(void **state) {
    Error e = {0};
    assert_false(datastore_write(folder_path(*state, "store"), NULL, 0, 5, &e));
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_int_equal(folder_count(*state), 0);
}

int main(void) {
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {IN_FOLDER(phrases_are_found), IN_FOLDER(broken_bytes_are_refused),
                                       IN_FOLDER(nothing_is_no_datastore)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
