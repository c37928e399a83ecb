// Completions: bash runs them; the words that all shells ask for and the manual page have every command
// and option, and the other scripts pass their own checkers, where those are installed.
#include "tests/support/check.h"

#include "tests/support/cli.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What bash offers for the last of these words.
static void completes(Cli *cli, const char *words, const char *want) {
    char script[1024];
    Child c;
    snprintf(script, sizeof script,
             "source <(\"$0\" completions bash); outpace() { \"$0\" \"$@\"; }; COMP_WORDS=(%s); "
             "COMP_LINE=$(IFS=' '; sed 's/ \\([:=]\\) */\\1/g' <<<\"${COMP_WORDS[*]}\"); "
             "COMP_POINT=${#COMP_LINE}; "
             "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _outpace; echo \"${COMPREPLY[*]}\"",
             words);
    child_run(&c, cli->folder, NULL, (const char *const[]){"bash", "-c", script, cli->program, NULL});
    const char *got = text_get(&c.out);
    size_t n = strlen(want);
    if (strncmp(got, want, n) != 0 || got[n] != '\n') fail_msg("%s: wanted %s, got %s", words, want, got);
    child_release(&c);
}

static void bash_completes(void **state) {
    Cli *cli = *state;
    completes(cli, "outpace ru", "run");
    completes(cli, "outpace run --sca", "--scale");
    completes(cli, "outpace run --scale ''", "small smoke full");
    completes(cli, "outpace run ./", ""); // files
    completes(cli, "outpace run --db ''", "");
    completes(cli, "outpace store ex", "export");
    completes(cli, "outpace store export --fo", "--format --force");
    completes(cli, "outpace generate m -m promp", "prompt-lookup");
    completes(cli, "outpace generate m --thr", "--threads");
    completes(cli, "outpace bench m --sto", "--store");
}

// Names that the program is asked for. bash cuts words at ':' and '='.
static void bash_completes_names(void **state) {
    static const char *const rows[][2] = {
        {"outpace plot sp", "speedup"},
        {"outpace plot --dataset reference-m", "reference-mathematics"},
        {"outpace tune m --dataset mt", "mt-bench"},
        {"outpace datasets reference-s", "reference-stories"},
        {"outpace datasets ind", "index"},
        {"outpace table lookahead-table-3", "lookahead-table-3"},
        {"outpace model sy", "synth"},
        {"outpace model synth mixt", "mixtral-8x7b"},
        {"outpace model info reference-med", "reference-medusa"},
        {"outpace generate reference-med", "reference-medusa"},
        {"outpace generate m --draft reference-med", "reference-medusa"},
        {"outpace generate m --template llama-3", "llama-3"},
        {"outpace simulate --on h100-", "h100-measured"},
        {"outpace run dem", "demo"},
        {"outpace run mine-", "mine-too"},
        {"outpace show mine-", "mine-too"},
        {"outpace compare mine-", "mine-too"},
        {"outpace store export mine-", "mine-too"},
        {"outpace methods jac", "jacobi"},
        {"outpace generate m -m lookahead : mo", "mode="},
        {"outpace generate m -m lookahead : W = 3,mo", "3,mode="},
        {"outpace generate m -m lookahead : mode = pa", "paper"},
        {"outpace generate m text", ""},
    };
    Cli *cli = *state;
    folder_write(cli->folder, "a.jsonl", "{\"prompt\": \"one\"}\n");
    folder_write(cli->folder, "a.yaml",
                 "name: mine-too\nmodels: [{name: t, target: tiny}]\ndatasets: [{name: a, path: a.jsonl}]\n"
                 "hardware: {device: 'null'}\ngeneration: {max_tokens: 2}\nmethods: [jacobi]\n");
    cli_run(cli, 0, "run a.yaml");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) completes(cli, rows[i][0], rows[i][1]);
}

// Every option of every command that --help lists.
static void others_have_all(void **state) {
    Cli *cli = *state;
    Text help = {0}, page = {0};
    text_puts(&help, strstr(cli_out(cli, "--help"), "\n\nDecode, and compare methods:\n"));
    text_puts(&page, cli_out(cli, "completions man"));
    for (const char *command = text_get(&help); (command = strstr(command, "\n  ")); command++) {
        char line[128], name[64], option[64], want[160], escaped[128];
        Text words = {0};
        assert_int_equal(sscanf(command, " %63s", name), 1);
        snprintf(line, sizeof line, "completions words -- %s --", name);
        text_puts(&words, cli_out(cli, line));
        snprintf(line, sizeof line, "%s --help", name);
        const char *options = strstr(cli_out(cli, line), "\nOptions:\n");
        for (const char *at = options;
             at && (at = strstr(at, "--")) && sscanf(at, "--%63[a-z0-9-]", option) == 1;
             at += strcspn(at, "\n")) {
            size_t n = 0; // in roff each '-' is escaped
            for (const char *c = option; *c; c++) {
                if (*c == '-') escaped[n++] = '\\';
                escaped[n++] = *c;
            }
            escaped[n] = 0;
            snprintf(want, sizeof want, "--%s\t", option);
            if (!strstr(text_get(&words), want)) fail_msg("%s: the words lack '%s'", name, want);
            snprintf(want, sizeof want, "\\-\\-%s", escaped);
            if (!strstr(text_get(&page), want)) fail_msg("%s: the page lacks '%s'", name, want);
        }
        text_release(&words);
    }
    text_release(&help);
    text_release(&page);
    cli_expect_error(
        cli, 2, "completions csh",
        "outpace: there are no completions for 'csh': take bash, zsh or fish, or man for the manual page\n");
}

static void checkers(void **state) {
    static const char *const CHECKS[] = {
        "! command -v zsh || zsh -n <($0 completions zsh)",
        "! command -v fish || $0 completions fish | fish -n",
        "! command -v groff || ! $0 completions man | groff -man -w mac -z 2>&1 | grep ."};
    Cli *cli = *state;
    for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; i++) {
        Child c;
        child_run(&c, cli->folder, NULL, (const char *const[]){"bash", "-c", CHECKS[i], cli->program, NULL});
        if (c.code) fail_msg("%s: %s%s", CHECKS[i], text_get(&c.out), text_get(&c.err));
        child_release(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bash_completes),
        cmocka_unit_test(bash_completes_names),
        cmocka_unit_test(others_have_all),
        cmocka_unit_test(checkers),
    };
    return cmocka_run_group_tests(tests, cli_set_up, cli_tear_down);
}
