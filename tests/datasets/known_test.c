// The table of sources and the small sets that are in the program.
#include "tests/support/check.h"

#include "datasets/datasets.h"
#include "datasets/format.h"
#include "engine/base/memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void copy(KnownText t, char out[256]) { snprintf(out, 256, "%.*s", (int)t.n, t.at); }

// Each row of the table: its format is known, and what can be fetched has a size, a sum and a licence.
static void sources(void **state) {
    (void)state;
    KnownFile f;
    size_t n = 0;
    for (; known_at(n, &f); n++) {
        char name[256], format[256], url[256], licence[256];
        const Frame *frame;
        copy(f.name, name);
        copy(f.format, format);
        copy(f.url, url);
        copy(f.licence, licence);
        bool tokens = strcmp(format, "tokens") == 0; // of `replay --tokens`: no dataset
        if (!tokens && !format_find(format, &frame, NULL)) fail_msg("%s: no format '%s'", name, format);
        if (!licence[0] || f.about.n == 0) fail_msg("%s: has no licence or no description", name);
        if (strcmp(url, "-") == 0) continue;
        if (strncmp(url, "https://", 8) != 0) fail_msg("%s: '%s' is no https address", name, url);
        if (f.sha256.n != 64 || strtol(f.bytes.at, NULL, 10) <= 0) fail_msg("%s: no size or sum", name);
    }
    assert_int_equal(n, 39);
    const Frame *frame;
    assert_ptr_equal(format_find("spec-bench", &frame, NULL), format_find("mt-bench", &frame, NULL));
}

// 40 prompts or more each, as many as the table says, no two the same.
static void small_sets(void **state) {
    (void)state;
    static const char *const names[] = {"chat",           "code",
                                        "mathematics",    "summarisation",
                                        "translation",    "reference-mathematics",
                                        "reference-code", "reference-stories"};
    for (int i = 0; i < 8; i++) {
        Dataset d;
        Error e = {0};
        KnownFile f;
        if (!dataset_open(&d, &(DatasetRequest){.name = names[i]}, &e)) fail_msg("%s", e.text);
        assert_true(known_find(names[i], NULL, &f, NULL));
        assert_true(d.count >= 40);
        assert_int_equal(d.count, strtol(f.rows.at, NULL, 10));
        for (size_t a = 0; a < d.count; a++) {
            if (i > 0) assert_int_equal(d.prompts[a].reference_count, 1);
            for (size_t b = 0; b < a; b++)
                assert_string_not_equal(d.prompts[a].turns[0], d.prompts[b].turns[0]);
        }
        dataset_release(&d);
    }
}

// A word problem's reference ends in its number, and a summary is shorter than its text.
static void references(void **state) {
    (void)state;
    Dataset d;
    assert_true(dataset_open(&d, &(DatasetRequest){.name = "mathematics"}, NULL));
    for (size_t i = 0; i < d.count; i++) {
        const char *mark = strstr(d.prompts[i].references[0].text, "\n#### ");
        char *end;
        if (!mark || (strtod(mark + 6, &end), *end)) fail_msg("%s: no number at the end", d.prompts[i].id);
    }
    dataset_release(&d);
    assert_true(dataset_open(&d, &(DatasetRequest){.name = "summarisation"}, NULL));
    for (size_t i = 0; i < d.count; i++)
        assert_true(strlen(d.prompts[i].references[0].text) * 3 < strlen(d.prompts[i].turns[0]));
    dataset_release(&d);
}

// n rows of each part, then the order; sets take turns.
static void parts(void **state) {
    (void)state;
    static const char *const names[] = {"code", "mathematics"};
    static const char *const want[] = {"code-01",        "code-02", "mathematics-01",
                                       "mathematics-02", "code-03", "mathematics-03"};
    Dataset d;
    Error e = {0};
    DatasetRequest q = {
        .name = "mix", .parts = names, .part_count = 2, .limit = 3, .order = ORDER_BY_TASK, .consecutive = 2};
    if (!dataset_open(&d, &q, &e)) fail_msg("%s", e.text);
    assert_int_equal(d.count, 6);
    for (size_t i = 0; i < 6; i++) assert_string_equal(d.prompts[i].id, want[i]);
    assert_string_equal(d.prompts[2].set, "mathematics");
    assert_string_equal(d.name, "mix");
    dataset_release(&d);
    static const char *const twice[] = {"code", "code"}, *const wrong[] = {"code", "cods"};
    q.parts = twice;
    assert_false(dataset_open(&d, &q, &e));
    assert_non_null(strstr(e.text, "same id 'code-01'"));
    q.parts = wrong;
    assert_false(dataset_open(&d, &q, &e));
    assert_non_null(strstr(e.text, "did you mean 'code'"));
    assert_null(d.prompts);
}

static void names(void **state) {
    (void)state;
    KnownFile f;
    Error e = {0};
    assert_true(known_find("gsm8k", NULL, &f, &e));
    assert_true(known_is(f.split, "test", 4));
    assert_true(known_find("gsm8k:qa", "train", &f, &e));
    assert_true(known_is(f.split, "train", 5));
    assert_false(known_find("gsm8k", "dev", &f, &e));
    assert_non_null(strstr(e.text, "has no split 'dev'"));
    assert_false(known_find("gsm8", NULL, &f, &e));
    assert_false(known_find("", NULL, &f, &e));
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if (root && chdir(root)) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(sources), cmocka_unit_test(small_sets),
                                       cmocka_unit_test(references), cmocka_unit_test(parts),
                                       cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
