// outpace verify, run as a user would.
#include "tests/support/check.h"

#include "tests/support/child.h"
#include "tests/support/scratch.h"
#include "tests/support/spoil.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 24 };

static int set_up(void **state) {
    Child c;
    if (folder_setup(state)) return -1;
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    return 0;
}

static void expect(const Child *c, const char *want) {
    if (!strstr(text_get(&c->out), want)) fail_msg("wanted '%s' in:\n%s", want, text_get(&c->out));
}

static void all_methods(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "verify", "tiny", "-n", "2", "--max-tokens", "24", "--cache", "");
    expect(&c, "ok    autoregressive: greedy, 2 prompts, 48 tokens identical, S 1.000\n");
    expect(&c, "ok    lookahead: greedy, 2 prompts, 48 tokens identical");
    expect(&c, "-     speculative: left out, ");
    expect(&c, " 0 failed, ");
    child_release(&c);
}

static void chosen_ones_with_sampling(void **state) {
    Child c;
    FILE *file = fopen(folder_path(*state, "prompts"), "w");
    assert_non_null(file);
    fputs("one line of text\n\n{\"prompt\": \"and one of JSON\"}\n", file);
    fclose(file);
    CHILD_OUTPACE(&c, *state, 0, "verify", "tiny", "--device", "null", "--sampling", "--prompts", "prompts",
                  "--method", "prompt-lookup:draft=4,allow_short=on", "--method", "jacobi");
    expect(&c, "ok    prompt-lookup:draft=4,allow_short=on: greedy, 2 prompts");
    expect(&c, "ok    jacobi: sampling, 2 prompts, ");
    expect(&c, "4 checks, 0 failed, 0 methods left out\n");
    child_release(&c);
}

// All, but one of them with settings of its own, which is then tried only so.
static void all_and_one(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "verify", "tiny", "--device", "null", "-n", "1", "--max-tokens", "8",
                  "--cache", "", "-m", "all", "-m", "prompt-lookup:draft=4");
    expect(&c, "ok    autoregressive: greedy, 1 prompts");
    expect(&c, "ok    prompt-lookup:draft=4: greedy, 1 prompts");
    if (strstr(text_get(&c.out), "prompt-lookup: ")) fail_msg("twice:\n%s", text_get(&c.out));
    child_release(&c);
}

// The numbers of the printed line.
static void as_json(void **state) {
    static const char WANTED[] =
        "[{\"method\":\"autoregressive\",\"check\":\"greedy\",\"result\":\"ok\",\"prompts\":2,"
        "\"differ\":0,\"per_1000\":0.0,\"tokens\":16,\"S\":1.0,\"rows\":1.0}]\n";
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "verify", "tiny", "--device", "null", "-n", "2", "--max-tokens", "8", "-m",
                  "autoregressive", "--json");
    if (strcmp(text_get(&c.out), WANTED) != 0) fail_msg("wanted '%s', got '%s'", WANTED, text_get(&c.out));
    child_release(&c);
}

// Blocks where a method drafts chains; the oracle is greedy only.
static void blocks_and_an_oracle(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "verify", "tiny", "--device", "null", "--draft", "tiny", "--sampling",
                  "--verification", "block", "-m", "speculative:gamma=3", "-m", "jacobi", "-m",
                  "oracle:accept=1,draft=3", "-n", "2", "--max-tokens", "24");
    expect(&c, "ok    speculative:gamma=3: sampling by blocks, 2 prompts, ");
    expect(&c, "ok    jacobi: sampling, 2 prompts, ");
    expect(&c, "ok    oracle:accept=1,draft=3: greedy, 2 prompts, 48 tokens identical, S 4.000\n");
    expect(&c, "5 checks, 0 failed, 0 methods left out\n");
    child_release(&c);
}

// A model whose logits are not numbers is no model, whoever asks, and whatever its part is.
static void logits_that_are_not_finite(void **state) {
    static const char *const rows[][8] = {
        {"verify", "nan", "-n", "1"},
        {"verify", "nan", "-n", "1", "--sampling", "-m", "autoregressive"},
        {"verify", "tiny", "-n", "1", "--draft", "nan"},
        {"generate", "nan", "hi"},
        {"generate", "tiny", "hi", "-t", "1", "--draft=nan", "--method=speculative"},
        {"bench", "--store", "nan", "--k=1", "--w=0", "--context=20", "--rows=0"},
    };
    char tiny[FOLDER_PATH_SIZE];
    snprintf(tiny, sizeof tiny, "%s", folder_path(*state, "tiny"));
    scratch_copy(tiny, folder_path(*state, "nan"));
    spoil_weight(folder_path(*state, "nan"), "model.norm.weight", "0");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Child c;
        const char *words[9] = {NULL};
        memcpy(words, rows[i], sizeof rows[i]);
        child_outpace(&c, *state, 2, words);
        if (!strstr(text_get(&c.err), "outpace: model 'nan': the logits after position "))
            fail_msg("row %zu: got '%s'", i, text_get(&c.err));
        child_release(&c);
    }
}

// A dataset's conversations in a template; an output that ends early makes a smaller certificate.
static void datasets_and_templates(void **state) {
    Child c;
    CHILD_OUTPACE(&c, *state, 0, "verify", "tiny", "--device", "null", "-m", "jacobi", "-n", "3",
                  "--max-tokens", "8", "--dataset", "chat", "--dataset", "code", "--template", "vicuna");
    expect(&c, "ok    jacobi: greedy, 6 prompts, 48 tokens identical");
    expect(&c, "prompts are in the template vicuna\n");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "verify", "tiny", "-m", "jacobi", "-n", "1", "--max-tokens", "2000",
                  "--json");
    expect(&c, "\"most_tokens\":2000");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "verify", "tiny", "-m", "jacobi", "-n", "1", "--max-tokens", "2000");
    expect(&c, "1 of 1 outputs ended early: ");
    expect(&c, " of 2000 tokens were certified\n");
    child_release(&c);
}

static void mistakes(void **state) {
    static const struct {
        const char *option, *value, *want;
    } rows[] = {
        {"--method", "jacoby", "did you mean 'jacobi'"},
        {"--method", "speculative", "draft"},
        {"--prompts", "nothing", "cannot open 'nothing'"},
        {"--count", "0", "--count is '0'"},
        {"--weights", "packed", "--weights is 'packed'"},
        {"--template", "model", "have no chat template"},
        {"--dataset", "nothing", "there is no dataset 'nothing'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Child c;
        CHILD_OUTPACE(&c, *state, 2, "verify", "tiny", rows[i].option, rows[i].value);
        if (!strstr(text_get(&c.err), rows[i].want))
            fail_msg("wanted '%s', got '%s'", rows[i].want, text_get(&c.err));
        child_release(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_methods),
                                       cmocka_unit_test(all_and_one),
                                       cmocka_unit_test(as_json),
                                       cmocka_unit_test(chosen_ones_with_sampling),
                                       cmocka_unit_test(blocks_and_an_oracle),
                                       cmocka_unit_test(logits_that_are_not_finite),
                                       cmocka_unit_test(datasets_and_templates),
                                       cmocka_unit_test(mistakes)};
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
