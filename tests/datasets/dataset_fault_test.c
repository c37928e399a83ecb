// Every allocation of loading and of ROUGE fails once.
#include "tests/support/check.h"

#include "datasets/datasets.h"
#include "datasets/rouge.h"
#include "engine/base/file.h"
#include "tests/support/fault.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <string.h>

static const char ROWS[] =
    "{\"prompt\": \"a\", \"id\": 1, \"task\": \"t\", \"reference\": [\"r\", \"s\"]}\n"
    "{\"turns\": [\"b\", \"c\"], \"task\": \"u\"}\n{\"prompt\": \"d\", \"task\": \"t\"}\n";
// {"question": "q", "answer": "a"} and a line's end, by gzip -nc.
static const unsigned char PACKED[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xab, 0x56, 0x2a, 0x2c, 0x4d, 0x2d, 0x2e,
    0xc9, 0xcc, 0xcf, 0x53, 0xb2, 0x52, 0x50, 0x2a, 0x54, 0xd2, 0x51, 0x50, 0x4a, 0xcc, 0x2b, 0x2e, 0x4f,
    0x2d, 0x02, 0x71, 0x13, 0x95, 0x6a, 0xb9, 0x00, 0x8f, 0x69, 0xbf, 0xfa, 0x21, 0x00, 0x00, 0x00};

static bool load_file(void *state, Error *e) {
    Dataset d;
    DatasetRequest q = {
        .name = "own", .path = folder_path(state, "rows.jsonl"), .order = ORDER_BY_TASK, .turns = 1};
    if (!dataset_open(&d, &q, e)) return false;
    assert_int_equal(d.count, 3);
    assert_string_equal(d.prompts[1].turns[0], "d");
    dataset_release(&d);
    return true;
}

static bool load_packed(void *state, Error *e) {
    (void)state;
    Dataset d;
    if (!dataset_parse(&d, (const char *)PACKED, sizeof PACKED, "packed", &(DatasetRequest){.name = "own:qa"},
                       e))
        return false;
    assert_string_equal(d.prompts[0].turns[0], "Question: q\nAnswer:");
    dataset_release(&d);
    return true;
}

static bool load_text(void *state, Error *e) {
    (void)state;
    Dataset d;
    if (!dataset_parse(&d, "one\ntwo\n", 8, "own.txt", &(DatasetRequest){.name = "own"}, e)) return false;
    dataset_release(&d);
    return true;
}

static bool load_parts(void *state, Error *e) {
    static const char *const parts[] = {"gsm8k", "gsm8k:qa"};
    Dataset d;
    DatasetRequest q = {
        .name = "mix", .parts = parts, .part_count = 2, .folder = state, .order = ORDER_SHUFFLED};
    if (!dataset_open(&d, &q, e)) return false;
    assert_int_equal(d.count, 2);
    dataset_release(&d);
    return true;
}

static bool score(void *state, Error *e) {
    (void)state;
    (void)e;
    return rouge_score("The dogs barked at night.", "A dog barks by night").one.f > 0;
}

static void allocations(void **state) {
    assert_true(fault_each(FAULT_ALLOCATION, load_file, NULL, *state) > 10);
    assert_true(fault_each(FAULT_ALLOCATION, load_packed, NULL, *state) > 10);
    assert_true(fault_each(FAULT_ALLOCATION, load_text, NULL, *state) > 5);
    assert_true(fault_each(FAULT_ALLOCATION, load_parts, NULL, *state) > 10);
    assert_true(fault_each(FAULT_ALLOCATION, score, NULL, *state) >= 5);
}

static int set_up(void **state) {
    static const char QUESTION[] = "{\"question\": \"q\", \"answer\": \"a\"}\n";
    if (folder_setup(state)) return -1;
    scratch_write(*state, "rows.jsonl", ROWS, sizeof ROWS - 1);
    if (!file_make_directory(folder_path(*state, "gsm8k"), NULL)) return -1;
    scratch_write(*state, "gsm8k/test.jsonl", QUESTION, sizeof QUESTION - 1);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(allocations, set_up, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
