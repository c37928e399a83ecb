// What the program tells of itself: help, lists, and the errors for mistakes.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "tests/support/cli.h"

#include <stdio.h>
#include <string.h>

// As wide as the source, at most; and nothing that nobody sees.
static void check_lines(const char *command, const char *text) {
    for (size_t n; *text; text += n + 1) {
        n = strcspn(text, "\n");
        if (n > 110 || (n > 0 && text[n - 1] == ' '))
            fail_msg("outpace %s: a line of %zu columns: '%.*s'", command, n, (int)n, text);
        assert_int_equal(text[n], '\n');
    }
}

// It teaches itself, and names commands as they are now: `all` lists them. Parts are lines "  store export".
static void check_help(Cli *cli, const char *command, const char *all) {
    char line[64], usage[64], name[64], row[80], part[80];
    snprintf(line, sizeof line, "%s --help", command);
    snprintf(usage, sizeof usage, "usage: outpace %s", command);
    Text out = {0};
    text_puts(&out, cli_out(cli, line));
    const char *behind = text_get(&out) + strlen(usage);
    if (strncmp(text_get(&out), usage, strlen(usage)) || (*behind != ' ' && *behind != '\n'))
        fail_msg("outpace %s: wanted '%s', got '%.80s'", line, usage, text_get(&out));
    check_lines(line, text_get(&out));
    assert_int_equal(cli->last.err.length, 0);
    for (const char *at = text_get(&out); (at = strstr(at, "outpace ")); at++) {
        if (at[-1] == '/' || sscanf(at + 8, "%63[a-z]", name) != 1) continue;
        snprintf(row, sizeof row, "\n  %s ", name);
        if (!strstr(all, row)) fail_msg("outpace %s: there is no 'outpace %s'", line, name);
    }
    snprintf(row, sizeof row, "\n  %s ", command);
    for (const char *at = text_get(&out); (at = strstr(at, row)); at++) {
        assert_int_equal(sscanf(at + strlen(row), "%63s", name), 1);
        snprintf(part, sizeof part, "%s %s", command, name);
        check_help(cli, part, all);
    }
    text_release(&out);
}

static void help(void **state) {
    Cli *cli = *state;
    const Child *c = cli_run(cli, 0, "--help");
    char *all = mem_text(text_get(&c->out), c->out.length), name[32];
    int count = 0;
    for (const char *at = strstr(all, "\n\nDecode, and compare methods:\n"); (at = strstr(at, "\n  "));
         at++) {
        assert_int_equal(sscanf(at, "%31s", name), 1);
        check_help(cli, name, all);
        count++;
    }
    assert_in_range(count, 4, 100);
    mem_free(all);
}

static void without_arguments(void **state) {
    Cli *cli = *state;
    assert_non_null(strstr(text_get(&cli_run(cli, 2, "")->out), "usage: outpace COMMAND"));
}

static void mistakes(void **state) {
    Cli *cli = *state;
    setenv("OUTPACE_MODELS", cli->folder, 1);
    static const char *const rows[][2] = {
        {"genrate", "outpace: there is no command 'genrate'; did you mean 'generate'?\n"},
        {"--verison", "outpace: there is no option '--verison'; did you mean '--version'?\n"},
        {"help genrate", "outpace: there is no command 'genrate'; did you mean 'generate'?\n"},
        {"zebra", "outpace: there is no command 'zebra'; 'outpace --help' lists them\n"},
        {"generate tiny x --max-token 3",
         "outpace: generate: there is no option --max-token; did you mean --max-tokens?\n"},
        {"generate tiny x --draft-device cpu", "outpace: --draft-device is 'cpu', but there is no --draft\n"},
        {"generate tiny x -n 1e9",
         "outpace: generate: --max-tokens is '1e9', must be a whole number from 0 to 16777216\n"},
        {"generate tiny x --method jacobi,m=3",
         "outpace: there is no method 'jacobi,m=3'; a method is NAME:k=v,...\n"},
        {"generate tiny x --method jacoby", "outpace: there is no method 'jacoby'; did you mean 'jacobi'?\n"},
        {"generate tiny x y", "outpace: generate: 'y' is one argument too many; put the prompt in quotes\n"},
        {"generate tiny x -f y", "outpace: generate: give one prompt only: a text, -f FILE or --ids\n"},
        {"generate tiny x --stop=", "outpace: generate: --stop may not be empty\n"},
        {"generate tiny x --layout row",
         "outpace: generate: --layout is 'row', must be one of tree, batch, copied\n"},
        {"generate tiny --ids 1,600",
         "outpace: token 1 of the prompt is 600, outside the vocabulary of 512\n"},
        {"generate tiny x --device gpu",
         "outpace: there is no device 'gpu': cpu, cuda[:n][,cuda:m..], auto and null are known\n"},
        {"generate tini x", "outpace: there is no model 'tini'; did you mean 'tiny'?\n"},
        {"generate tiny x --draft=tini",
         "outpace: --draft: there is no model 'tini'; did you mean 'tiny'?\n"},
        {"generate acme/tiny-1b x", "outpace: there is no model 'acme/tiny-1b' here, and nothing is "
                                    "downloaded: fetch it by 'hf download "
                                    "acme/tiny-1b --local-dir tiny-1b', then give 'tiny-1b'\n"},
        {"generate tiny 'far too long' -c 3",
         "outpace: the prompt has 8 tokens, the context holds 3; shorten it or raise --context\n"},
        {"model tiny",
         "outpace: model: usage: outpace model info|synth|adapter|inflate|quantise|shapes|fetch ...\n"},
        {"model info", "outpace: model info: usage: outpace model info MODEL [OPTIONS]\n"},
        {"methods jacoby", "outpace: there is no method 'jacoby'; did you mean 'jacobi'?\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) cli_expect_error(cli, 2, rows[i][0], rows[i][1]);
    unsetenv("OUTPACE_MODELS");
}

// Every command takes a model by its name, as configs do.
static void models_by_name(void **state) {
    Cli *cli = *state;
    static const char *const lines[] = {
        "generate known hi -n 2 -m speculative --draft=known",
        "generate known hi -n 2 -m kangaroo --adapter models/known-adapter",
        "verify models/known -n 1 --max-tokens 2 -m jacobi",
        "tokenizer encode known hi",
        "tokenizer decode known 3",
        "model info known",
        "model quantise known coded",
        "quality coded --against known --path a.txt --greedy 0",
        "bench known --tokens 1 --context 8 --samples 1 --seconds 0 --device null",
        "datasets index a.txt --model known -o a.store",
        "replay --path a.jsonl --model known --resamples 100",
        "plan a.yaml --check",
        "plan a.yaml --check --model target=known,draft=models/known",
    };
    folder_write(cli->folder, "a.txt", "hello there\n");
    folder_write(cli->folder, "a.jsonl", "{\"prompt\": \"one\", \"reference\": \"two\"}\n");
    folder_write(cli->folder, "a.yaml",
                 "name: a\nmodels: [{name: k, target: known, draft: known}]\n"
                 "datasets: [{name: a, path: a.jsonl}]\nmethods: [speculative]\n");
    cli_run(cli, 0, "model synth tiny family/known");
    cli_run(cli, 0, "model adapter family/known family/known-adapter --exit-layer 1");
    setenv("OUTPACE_MODELS", "family", 1);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) cli_run(cli, 0, lines[i]);
    unsetenv("OUTPACE_MODELS");
}

// As git and cargo have it.
static void help_of_a_command(void **state) {
    Cli *cli = *state;
    static const char *const rows[] = {"help run", "--help run", "-h run", "help store export"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[64];
        snprintf(want, sizeof want, "usage: outpace %s ", strchr(rows[i], ' ') + 1);
        const char *out = cli_out(cli, rows[i]);
        if (strncmp(out, want, strlen(want)) != 0)
            fail_msg("outpace %s: wanted '%s', got '%.80s'", rows[i], want, out);
    }
}

static void expect_within(Cli *cli, const char *line, const char *want) {
    if (!strstr(cli_out(cli, line), want))
        fail_msg("outpace %s: wanted '%s', got '%s'", line, want, text_get(&cli->last.out));
}

static void lists(void **state) {
    Cli *cli = *state;
    static const char *const names[] = {"autoregressive", "jacobi", "prompt-lookup"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char line[64];
        expect_within(cli, "methods", names[i]);
        snprintf(line, sizeof line, "methods %s", names[i]);
        expect_within(cli, line, names[i]);
    }
    expect_within(cli, "model shapes", "\ntiny\n");
    expect_within(cli, "model info tiny", "layers          3 of width 64");
    expect_within(cli, "--version", "outpace ");
    expect_within(cli, "--version", "with jansson ");
    expect_within(cli, "--version", "under the GPL, version 3 or later");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help),     cmocka_unit_test(help_of_a_command), cmocka_unit_test(without_arguments),
        cmocka_unit_test(mistakes), cmocka_unit_test(models_by_name),    cmocka_unit_test(lists),
    };
    return cmocka_run_group_tests(tests, cli_set_up, cli_tear_down);
}
