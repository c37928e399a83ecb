// The four Unicode forms: a text normalized part by part is the text normalized as a whole.
#include "tests/support/check.h"

#include "engine/text/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static const char *const PARTS[] = {"a",
                                    "A",
                                    "<",
                                    " ",
                                    "e\xcc\x81",
                                    "\xcc\x81",
                                    "\xcc\xa3",
                                    "\xcc\xb8",
                                    "\xc3\xa9",
                                    "\xe1\x84\x80",
                                    "\xe1\x85\xa1",
                                    "\xe1\x86\xa8",
                                    "\xea\xb0\x80",
                                    "\xef\xac\x81",
                                    "\xc2\xbd",
                                    "\xe2\x84\xab",
                                    "\xe0\xa4\x95\xe0\xa4\xbc",
                                    "\xef\xb7\xba",
                                    "\xf0\x9f\x98\x80",
                                    "\xc7\x85",
                                    "\xe0\xbe\xb2\xe0\xbe\x80"};

static void random_text(Random *r, Text *out) {
    for (int n = test_between(r, 0, 25); n > 0; n--)
        text_puts(out, PARTS[test_between(r, 0, (int)(sizeof PARTS / sizeof *PARTS) - 1)]);
}

static void check(const char *type, utf8proc_option_t form, const Text *text) {
    Error e = {0};
    Steps steps = {.count = 0};
    Words words = {.at_start = true}, other = {0};
    json_t *part = json_pack("{s:s}", "type", type);
    utf8proc_uint8_t *want = NULL;
    if (!steps_read(&steps, &step_normalizers, part, "test", &e)) fail_msg("%s", e.text);
    words_add(&words, text_get(text), text->length);
    assert_true(steps_run(&steps, &words, &other, &e));
    utf8proc_map((const utf8proc_uint8_t *)text_get(text), (utf8proc_ssize_t)text->length, &want,
                 UTF8PROC_STABLE | form);
    if (strcmp(text_get(&words.text), (const char *)want) != 0)
        fail_msg("%s of '%s': wanted '%s', got '%s'", type, text_get(text), (const char *)want,
                 text_get(&words.text));
    free(want);
    json_decref(part);
    steps_release(&steps);
    words_release(&words);
    words_release(&other);
}

static void forms(void **state) {
    (void)state;
    Random r = test_random(7);
    for (int i = 0; i < 3000; i++) {
        Text text = {0};
        random_text(&r, &text);
        check("NFC", UTF8PROC_COMPOSE, &text);
        check("NFD", UTF8PROC_DECOMPOSE, &text);
        check("NFKC", UTF8PROC_COMPOSE | UTF8PROC_COMPAT, &text);
        check("NFKD", UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &text);
        text_release(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
