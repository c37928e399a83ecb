// Plans of models that aren't there yet: described, not made.
#include "tests/support/check.h"
#include "tests/support/child.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int set_up(void **state) {
    Child c;
    if (folder_setup(state)) return -1;
    folder_write(*state, "own.jsonl", "{\"turns\": [\"a text of this file, and more of it\"]}\n");
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
    return 0;
}

// Models that are to be made are described: nothing is written, and what their adapters cannot do is found.
static void nothing_is_written(void **state) {
    Child c;
    setenv("XDG_CACHE_HOME", folder_path(*state, "cache"), 1);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "small", "--set", "num_hidden_layers=2");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "model", "synth", "tiny", "deep", "--set", "num_hidden_layers=6");
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 0, "model", "adapter", "small", "low", "--exit-layer", "1");
    child_release(&c);
    folder_write(
        *state, "made.yaml",
        "name: made\nmodels: [{name: a, target: small, inflate: deep/config.json, adapter: low}, "
        "{synthesise: tiny}]\n"
        "datasets: [{name: own, path: own.jsonl, limit: 1}]\ngeneration: {max_tokens: 8}\n"
        "methods: [{name: kangaroo, matrix: {exit_layer: [1, 3]}}, {name: ngrammys, matrix: {strategy: "
        "bigram, table: whole}}]\n");
    folder_write(
        *state, "demand.yaml",
        "name: demand\nmodels: [{name: a, target: small}]\ndatasets: [{name: own, path: own.jsonl}]\n"
        "generation: {max_tokens: 8}\nmethods: [{name: ngrammys}]\n");
    CHILD_OUTPACE(&c, *state, 0, "plan", "demand.yaml", "--points");
    assert_null(strstr(text_get(&c.out), "\n  tables   "));
    child_release(&c);
    for (int k = 0; k < 2; k++) {
        CHILD_OUTPACE(&c, *state, 3, "plan", "made.yaml", k ? "--points" : "--check");
        assert_non_null(strstr(text_get(&c.out),
                               "exit_layer=1, model a: method 'kangaroo': 'exit_layer' is 1, the "
                               "adapter was made for layer 3"));
        assert_int_equal(access(folder_path(*state, "cache"), F_OK), -1);
        assert_true(!k || (strstr(text_get(&c.out), "\n  making   ") &&
                           strstr(text_get(&c.out), "\n  tables   0 s      1024 rows through the model")));
        child_release(&c);
    }
    CHILD_OUTPACE(&c, *state, 3, "run", "made.yaml", "--db", "made.db");
    if (!strstr(text_get(&c.out), "3 points measured, 3 skipped, 0 failed")) fail_msg("%s", text_get(&c.out));
    assert_int_equal(access(folder_path(*state, "cache/outpace/inflated"), F_OK), 0);
    child_release(&c);
    // Kept files aren't made again, and the cost of steps is known by now.
    CHILD_OUTPACE(&c, *state, 3, "plan", "made.yaml", "--db", "made.db");
    assert_non_null(strstr(text_get(&c.out), "\ntime       nothing is left\n"));
    child_release(&c);
    CHILD_OUTPACE(&c, *state, 3, "plan", "made.yaml", "--db", "made.db", "--set", "generation.max_tokens=9");
    assert_null(strstr(text_get(&c.out), "\n  making   "));
    assert_null(strstr(text_get(&c.out), "\n  tables   "));
    assert_non_null(strstr(text_get(&c.out), "\n  prefill  "));
    assert_non_null(strstr(text_get(&c.out), " ms; measured: 1 samples of its baseline in made.db\n"));
    child_release(&c);
    unsetenv("XDG_CACHE_HOME");
}

// A model of 1 TB is only described.
static void large_models_are_warned_of(void **state) {
    Child c;
    folder_write(
        *state, "large.json",
        "{\"model_type\": \"llama\", \"hidden_act\": \"silu\", \"torch_dtype\": \"bfloat16\","
        " \"bos_token_id\": 1, \"eos_token_id\": 2, \"rms_norm_eps\": 1e-05, \"rope_theta\": 10000.0,"
        " \"hidden_size\": 16384, \"intermediate_size\": 32768, \"num_hidden_layers\": 300,"
        " \"num_attention_heads\": 16, \"num_key_value_heads\": 1, \"head_dim\": 64, \"vocab_size\": 512,"
        " \"max_position_embeddings\": 2048}");
    folder_write(*state, "large.yaml",
                 "name: large\nmodels: [{name: huge, synthesise: large.json}, {target: tiny}]\n"
                 "datasets: [{name: own, path: own.jsonl, limit: 1}]\nmethods: [jacobi]\n");
    CHILD_OUTPACE(&c, *state, 0, "plan", "large.yaml", "--check");
    const char *said = text_get(&c.err), *warning = strstr(said, "warning: 'huge' has 98");
    if (!warning || !strstr(warning, "each step reads them from the disk, at 1 GB/s in 98") ||
        strstr(said, "'tiny'"))
        fail_msg("got '%s'", said);
    child_release(&c);
}

// Parts take about as long as each other, by rows and drafts; on a machine that can't run the points they are
// the same parts.
static void parts_by_work(void **state) {
    static const struct {
        const char *device, *long_one;
    } CASES[] = {{"null", "{name: lookahead, matrix: {W: 15, N: 5, G: 15}}"},
                 {"null", "{name: speculative, matrix: {gamma: 8}}"},
                 {"cuda:7", "{name: speculative, matrix: {gamma: 8}}"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (int part = 1; part <= 2; part++) {
            char config[512], shard[8];
            int lookups = 0;
            Child c;
            snprintf(config, sizeof config,
                     "name: parts\nmodels: [{target: tiny, draft: tiny}]\ndatasets: [{name: own, path: "
                     "own.jsonl}]\nhardware: {device: '%s'}\ngeneration: {max_tokens: 64}\n"
                     "methods: [%s, {name: prompt-lookup, matrix: {draft: [1, 2, 3, 4, 5]}}]\n",
                     CASES[i].device, CASES[i].long_one);
            folder_write(*state, "parts.yaml", config);
            snprintf(shard, sizeof shard, "%d/2", part);
            CHILD_OUTPACE(&c, *state, *CASES[i].device == 'c' ? 3 : 0, "plan", "parts.yaml", "--points",
                          "--shard", shard);
            for (const char *at = text_get(&c.out); (at = strstr(at, "    prompt-lookup draft=")); at++)
                lookups++;
            if (lookups != (part == 1 ? 0 : 5))
                fail_msg("case %zu, part %d: %d points of prompt-lookup in %s", i, part, lookups,
                         text_get(&c.out));
            child_release(&c);
        }
}

// A dataset that takes the model's template gets the one of its files, and the run is another one with it.
static void own_template(void **state) {
    static const char CHATML[] =
        "{\"chat_template\": \"{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
        "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|im_start|>assistant\\n' }}{% endif %}\"}";
    static const char *const DONE[] = {"1 of 1 rounds done", "0 of 1 rounds done"};
    Child c;
    folder_write(*state, "own.yaml",
                 "name: own\nmodels: [{name: t, target: tiny}]\n"
                 "datasets: [{name: own, path: own.jsonl, template: model}]\ngeneration: {max_tokens: 4}\n"
                 "methods: [autoregressive]\n");
    CHILD_OUTPACE(&c, *state, 0, "run", "own.yaml", "--db", "own.db");
    assert_null(strstr(text_get(&c.err), "template"));
    child_release(&c);
    for (int own = 0; own < 2; own++) {
        if (own) folder_write(*state, "tiny/tokenizer_config.json", CHATML);
        CHILD_OUTPACE(&c, *state, 0, "plan", "own.yaml", "--db", "own.db");
        const char *want = own ? "dataset    own, template chatml: 1 prompt," : "dataset    own: 1 prompt,";
        if (!strstr(text_get(&c.out), want) || !strstr(text_get(&c.out), DONE[own]) ||
            own != (strstr(text_get(&c.err), "prompts of 'own' are in the template 'chatml'") != NULL))
            fail_msg("wanted '%s' and '%s', got '%s%s'", want, DONE[own], text_get(&c.out), text_get(&c.err));
        child_release(&c);
    }
    // Questions and turns take it unless the dataset says otherwise; a text to continue doesn't.
    folder_write(*state, "asks.jsonl", "{\"question\": \"a\", \"answer\": \"b\"}\n");
    folder_write(
        *state, "asks.yaml",
        "name: asks\nmodels: [{name: t, target: tiny}]\ndatasets:\n  - {name: asks, path: asks.jsonl}\n"
        "  - {name: qa, path: asks.jsonl, format: \"gsm8k:qa\"}\n"
        "  - {name: plain, path: asks.jsonl, template: none}\n  - {name: own, path: own.jsonl}\n"
        "generation: {max_tokens: 4}\nmethods: [autoregressive]\n");
    CHILD_OUTPACE(&c, *state, 0, "plan", "asks.yaml");
    static const char *const WANTED[] = {"asks, template chatml: 1 prompt,", "qa: 1 prompt,",
                                         "plain, template none: 1 prompt,",
                                         "own, template chatml: 1 prompt,"};
    for (size_t i = 0; i < sizeof WANTED / sizeof *WANTED; i++)
        if (!strstr(text_get(&c.out), WANTED[i]))
            fail_msg("wanted '%s', got '%s'", WANTED[i], text_get(&c.out));
    child_release(&c);
    unlink(folder_path(*state, "tiny/tokenizer_config.json"));
    CHILD_OUTPACE(&c, *state, 2, "plan", "own.yaml", "--set", "hardware.weights=exact");
    assert_non_null(strstr(text_get(&c.err), "weights: exact is for generate, verify, quality and bench"));
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_written),
                                       cmocka_unit_test(large_models_are_warned_of),
                                       cmocka_unit_test(own_template), cmocka_unit_test(parts_by_work)};
    return cmocka_run_group_tests(tests, set_up, folder_teardown);
}
