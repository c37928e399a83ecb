// Ids and texts of every family against Hugging Face tokenizers and sentencepiece: tests/oracle/tokenizers.py
// made the fixtures.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/text/tokenizer.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static const char FIXTURES[] = "tests/fixtures/tokenizers";

typedef struct {
    char dir[512];
    bool is_model;
    Tokenizer *t;
    json_t *strings, *golden;
    int wrong;
} Family;

static json_t *read_json(const char *dir, const char *name) {
    Error e = {0};
    char *path = file_path(dir, name);
    json_t *v = json_from_file(path, 16 << 20, &e);
    if (!v) fail_msg("%s", e.text);
    mem_free(path);
    return v;
}

static bool open_family(Family *f, const char *name) {
    Error e = {0};
    snprintf(f->dir, sizeof f->dir, "%s/%s", FIXTURES, name);
    char *golden = file_path(f->dir, "golden.json"), *model = file_path(f->dir, "tokenizer.model");
    bool there = name[0] != '.' && file_exists(golden);
    f->is_model = file_exists(model);
    mem_free(golden);
    mem_free(model);
    if (!there) return false;
    f->t = tokenizer_open(f->dir, &e);
    if (!f->t) fail_msg("%s", e.text);
    f->strings = read_json(FIXTURES, "strings.json");
    f->golden = read_json(f->dir, "golden.json");
    return true;
}

static void close_family(Family *f) {
    tokenizer_close(f->t);
    json_decref(f->strings);
    json_decref(f->golden);
}

// sentencepiece does not look for control pieces in a text, we do: they are written otherwise here, as in the
// oracle.
static void text_of(const Family *f, size_t i, Text *out) {
    static const char *const pairs[][2] = {{"<s>", "<S>"}, {"</s>", "</S>"}, {"<unk>", "<UNK>"}};
    text_puts(out, json_string_value(json_array_get(f->strings, i)));
    if (!f->is_model) return;
    for (size_t k = 0; k < 3; k++)
        for (char *hit = out->data; (hit = strstr(hit, pairs[k][0]));)
            memcpy(hit, pairs[k][1], strlen(pairs[k][1]));
}

static void print_ids(const char *what, const IdList *ids) {
    printf("  %s:", what);
    for (size_t i = 0; i < ids->count; i++) printf(" %d", ids->ids[i]);
    puts("");
}

static void complain(Family *f, const char *what, const char *text) {
    if (f->wrong++ == 0) printf("%s\n", f->dir);
    printf("  %s of '%s'\n", what, text);
}

static void check_ids(Family *f, const char *text, size_t n, const IdList *want) {
    Error e = {0};
    IdList got = {0};
    if (!tokenizer_encode(f->t, text, n, true, &got, &e)) fail_msg("%s", e.text);
    if (got.count != want->count ||
        (got.count && memcmp(got.ids, want->ids, got.count * sizeof *got.ids) != 0)) {
        complain(f, "ids", text);
        print_ids("wanted", want);
        print_ids("got   ", &got);
    }
    ids_release(&got);
}

static void check_text(Family *f, const char *text, const IdList *ids, const char *want, bool skip) {
    Error e = {0};
    Text got = {0};
    if (!tokenizer_decode(f->t, ids->ids, ids->count, skip, &got, &e)) fail_msg("%s", e.text);
    if (strcmp(text_get(&got), want) != 0) {
        complain(f, skip ? "text" : "text with special tokens", text);
        printf("  wanted: '%s'\n  got   : '%s'\n", want, text_get(&got));
    }
    text_release(&got);
}

static const char *decoded(const Family *f, const char *key, size_t i, const char *otherwise) {
    char number[24];
    snprintf(number, sizeof number, "%zu", i);
    const char *s = json_string_value(json_object_get(json_object_get(f->golden, key), number));
    return s ? s : otherwise;
}

static void check_string(Family *f, size_t i) {
    const json_t *list = json_array_get(json_object_get(f->golden, "ids"), i);
    IdList ids = {0};
    Text text = {0};
    text_of(f, i, &text);
    for (size_t k = 0; k < json_array_size(list); k++)
        ids_add(&ids, (int)json_integer_value(json_array_get(list, k)));
    check_ids(f, text_get(&text), text.length, &ids);
    check_text(f, text_get(&text), &ids, decoded(f, "text", i, text_get(&text)), true);
    if (!f->is_model) check_text(f, text_get(&text), &ids, decoded(f, "all", i, text_get(&text)), false);
    ids_release(&ids);
    text_release(&text);
}

// --- the same tokenizers in GGUF files, by tests/oracle/gguf_files.py

// Such a file doesn't say how an added token takes the spaces beside it, or that it must be a word of its
// own.
static bool needs_flags(const char *text) {
    static const char *const tokens[] = {"keep", "<left>", "<right>", "<both>", "norm"};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        if (strstr(text, tokens[i])) return true;
    return false;
}

static void gguf_families(void **state) {
    (void)state;
    int count = 0, wrong = 0;
    DIR *d = opendir(FIXTURES);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d));) {
        Family f = {.wrong = 0};
        Error e = {0};
        size_t checked = 0;
        char path[512];
        snprintf(path, sizeof path, "tests/fixtures/gguf/tokenizer-%s.gguf", entry->d_name);
        if (!file_exists(path) || !open_family(&f, entry->d_name)) continue;
        tokenizer_close(f.t);
        f.t = tokenizer_open(path, &e);
        if (!f.t) fail_msg("%s", e.text);
        for (size_t i = 0; i < json_array_size(f.strings); i++) {
            if (!f.is_model && needs_flags(json_string_value(json_array_get(f.strings, i)))) continue;
            check_string(&f, i);
            checked++;
        }
        print_message("%s: %zu texts\n", path, checked);
        assert_true(checked >= 380);
        if (f.wrong) printf("%s: %d wrong\n", path, f.wrong);
        wrong += f.wrong;
        count++;
        close_family(&f);
    }
    closedir(d);
    assert_true(count >= 12);
    assert_int_equal(wrong, 0);
}

static void families(void **state) {
    (void)state;
    int count = 0, wrong = 0;
    DIR *d = opendir(FIXTURES);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d));) {
        Family f = {.wrong = 0};
        if (!open_family(&f, entry->d_name)) continue;
        assert_true(json_array_size(f.strings) >= 500);
        assert_int_equal(json_array_size(json_object_get(f.golden, "ids")), json_array_size(f.strings));
        for (size_t i = 0; i < json_array_size(f.strings); i++) check_string(&f, i);
        if (f.wrong) printf("%s: %d wrong\n", f.dir, f.wrong);
        wrong += f.wrong;
        count++;
        close_family(&f);
    }
    closedir(d);
    assert_true(count >= 22);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(families), cmocka_unit_test(gguf_families)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
