// Time grows with the length of a text, also of one that is a single character over and over: twice the text
// takes less than three times as long. Processor time, the least of three, so that other programs do not
// matter.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/text/tokenizer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SIZE = 64 << 10 };

static double encode_seconds(const Tokenizer *t, const char *text, size_t n) {
    double least = 1e9;
    for (int i = 0; i < 3; i++) {
        Error e = {0};
        IdList ids = {0};
        clock_t start = clock();
        if (!tokenizer_encode(t, text, n, true, &ids, &e)) fail_msg("%s", e.text);
        double took = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (took < least) least = took;
        ids_release(&ids);
    }
    return least;
}

static void check(const char *family, const Tokenizer *t, const char *part) {
    size_t length = strlen(part), count = SIZE / length;
    char *text = mem_new(2 * count, length);
    for (size_t i = 0; i < 2 * count; i++) memcpy(text + i * length, part, length);
    double once = encode_seconds(t, text, count * length),
           twice = encode_seconds(t, text, 2 * count * length);
    // The clock steps are too coarse for less.
    if (twice > 3 * once + 0.05)
        fail_msg("%s: '%s' %zu times takes %.3f s, twice as often %.3f s", family, part, count, once, twice);
    if (twice > 2) fail_msg("%s: %zu bytes of '%s' take %.3f s", family, 2 * count * length, part, twice);
    mem_free(text);
}

static void grows_with_length(void **state) {
    (void)state;
    static const char *const families[] = {"llama2", "mistral", "deepseek_coder",
                                           "llama3", "qwen2",   "sp_llama"};
    static const char *const parts[] = {
        "a", " ", "\n", "\xf0\x9f\x98\x80", "\xcc\x81", "<", "the cat sat\n  on "};
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        Error e = {0};
        char *dir = file_path("tests/fixtures/tokenizers", families[f]);
        Tokenizer *t = tokenizer_open(dir, &e);
        if (!t) fail_msg("%s", e.text);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) check(families[f], t, parts[i]);
        tokenizer_close(t);
        mem_free(dir);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(grows_with_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
