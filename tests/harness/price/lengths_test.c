// Files of published lengths: what is refused, and a price by hand.
#include "tests/support/check.h"

#include "harness/price/prediction.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static const char GOOD[] = "m:\n  on:\n    1: 1.5\n    4: 2.5\n    8: 2.6\n  off: {1: 2}\nn: {on: {2: 1}}\n";

static void every_length(void **state) {
    PublishedLengths l;
    Error e = {0};
    scratch_write(*state, "good.yaml", GOOD, sizeof GOOD - 1);
    if (!lengths_open(folder_path(*state, "good.yaml"), &l, &e)) fail_msg("%s", e.text);
    assert_int_equal(l.count, 5);
    assert_string_equal(l.items[1].model, "m");
    assert_string_equal(l.items[3].mode, "off");
    assert_int_equal(l.items[1].drafted, 4);
    assert_true(l.items[4].length == 1 && l.items[2].length == 2.6);
    lengths_release(&l);
}

static void refused(void **state) {
    static const struct {
        const char *text, *why;
    } ROWS[] = {
        {"", "there is nothing in it"},
        {"[1]", "must be a map of models"},
        {"m: {}\n", "has no lengths"},
        {"m: 1.5\n", "bad.yaml:1:4: must be a map of modes"},
        {"m: {on: 1.5}\n", "must be a map of drafted tokens"},
        {"m: {on: {x: 1.5}}\n", "'x' must be a number of drafted tokens"},
        {"m: {on: {0: 1}}\n", "'0' must be a number of drafted tokens"},
        {"m: {on: {65: 1}}\n", "from 1 to 64"},
        {"m: {on: {2: 3.1}}\n", "from 1 to 3"},
        {"m: {on: {2: 0.9}}\n", "from 1 to 3"},
        {"m: {on: {2: nan}}\n", "from 1 to 3"},
        {"m: {on: {2: [1]}}\n", "from 1 to 3"},
        {"m: {on: {2: 1.5, 2: 1.6}}\n", "twice"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        PublishedLengths l;
        Error e = {0};
        scratch_write(*state, "bad.yaml", ROWS[i].text, strlen(ROWS[i].text));
        if (lengths_open(folder_path(*state, "bad.yaml"), &l, &e) || !strstr(e.text, ROWS[i].why))
            fail_msg("%s: wanted '%s', got '%s'", ROWS[i].text, ROWS[i].why, e.text);
    }
}

static json_t *priced(const char *folder, const char *option, const char *value, const char *flag) {
    Child c;
    CHILD_OUTPACE(&c, folder, 0, "simulate", "good.yaml", "--on", "h100", "--shape", "llama2-7b", "--json",
                  option, value, flag);
    json_t *all = json_loads(text_get(&c.out), 0, NULL);
    assert_non_null(all);
    child_release(&c);
    return all;
}

static double number(const json_t *all, size_t row, const char *key) {
    return json_number_value(json_object_get(json_array_get(all, row), key));
}

// A step is priced as a run's is; a draft's passes come on top, and one that drafts all at once has one pass.
static void by_hand(void **state) {
    Hardware h;
    StepModel m;
    Error e = {0};
    scratch_write(*state, "good.yaml", GOOD, sizeof GOOD - 1);
    assert_true(machine_open("h100", &h, &e) && step_model_open("llama2-7b", &m, &e));
    json_t *all = priced(*state, "--context", "500", NULL), *batch = priced(*state, "--batch", "1,64", NULL),
           *chain = priced(*state, "--draft-shape", "1b", NULL),
           *block = priced(*state, "--draft-shape", "1b", "--block");
    double times[2];
    for (int i = 0; i < 2; i++) {
        RecordedPass pass = {
            .layers = m.layers, .rows = i ? 5 : 1, .context = 500, .count = 1, .sequences = 1};
        times[i] = recorded_price(&h, &m, &pass);
        pass.head = true;
        times[i] += recorded_price(&h, &m, &pass);
    }
    assert_int_equal(json_array_size(all), 5);
    assert_true(fabs(number(all, 1, "step_s") / times[1] - 1) < 1e-9);
    assert_true(fabs(number(all, 1, "speedup") / (2.5 * times[0] / times[1]) - 1) < 1e-9);
    assert_int_equal(json_array_size(batch), 10);
    assert_true(json_is_true(json_object_get(json_array_get(batch, 2), "best")));  // one sequence: 8 tokens
    assert_false(json_is_true(json_object_get(json_array_get(batch, 7), "best"))); // 64 sequences: fewer
    assert_false(json_is_true(json_object_get(json_array_get(batch, 4), "best"))); // no gain
    double drafts = number(chain, 2, "step_s") - number(batch, 2, "step_s"),
           once = number(block, 2, "step_s") - number(batch, 2, "step_s");
    assert_true(drafts > 7 * once && once > 0);
    json_decref(all);
    json_decref(batch);
    json_decref(chain);
    json_decref(block);
}

// Steps of more rows than the machine was fitted to are marked, others aren't.
static void outside_the_fit(void **state) {
    Child c;
    scratch_write(*state, "good.yaml", GOOD, sizeof GOOD - 1);
    CHILD_OUTPACE(&c, *state, 0, "simulate", "good.yaml", "--on", "h100-measured", "--shape", "llama2-7b",
                  "--batch", "1,64");
    const char *at = strstr(text_get(&c.out), "a step of 576 rows, fitted to 512\n"); // 8 tokens and the last
    if (!at || strstr(at + 1, "a step of")) fail_msg("%s", text_get(&c.out));
    child_release(&c);
}

static void of_runs_only(void **state) {
    Child c;
    scratch_write(*state, "good.yaml", GOOD, sizeof GOOD - 1);
    CHILD_OUTPACE(&c, *state, 2, "simulate", "good.yaml", "--on", "h100", "--shape", "llama2-7b", "--against",
                  "1");
    assert_non_null(strstr(text_get(&c.err), "'good.yaml' is a file of lengths"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 2, "simulate", "none.yaml", "--on", "h100", "--shape", "llama2-7b");
    assert_non_null(strstr(text_get(&c.err), "none.yaml"));
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length),    cmocka_unit_test(refused),      cmocka_unit_test(by_hand),
        cmocka_unit_test(outside_the_fit), cmocka_unit_test(of_runs_only),
    };
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
