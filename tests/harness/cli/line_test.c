// The line that long work shows: how it is cut, and, on a terminal of this test's own, that nothing of it is
// left behind, and that Ctrl-C ends a run there.
#include "harness/cli/terminal.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/stores.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS = 44 };

static void fits(void **state) {
    static const struct {
        const char *text;
        int columns;
        size_t bytes;
    } rows[] = {
        {"", 5, 0},
        {"abc", 5, 3},
        {"abcdef", 5, 5},
        {"abcdef", 0, 0},
        {"caf\u00e9s", 4, 5},            // two bytes, one column
        {"\u6f22\u5b57", 3, 3},          // two columns each
        {"e\u0301e\u0301e\u0301", 2, 6}, // accents of their own have none
        {"a\xff\xfe", 2, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(line_fit(rows[i].text, rows[i].columns), rows[i].bytes);
}

// Starts the program with a terminal of COLUMNS as all that it has; gives the other end.
static int start_on_terminal(const char *folder, const char *const *words, pid_t *pid) {
    struct winsize size = {.ws_row = 10, .ws_col = COLUMNS};
    const char *program = getenv("OUTPACE") ? getenv("OUTPACE") : "./outpace";
    char *path = realpath(program, NULL), *argv[16] = {path};
    int own = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(own >= 0 && path);
    assert_true(grantpt(own) == 0 && unlockpt(own) == 0 && ioctl(own, TIOCSWINSZ, &size) == 0);
    for (int i = 0; words[i]; i++) argv[i + 1] = (char *)words[i];
    *pid = fork();
    if (*pid == 0) {
        setsid();
        int its = open(ptsname(own), O_RDWR);
        if (its < 0 || ioctl(its, TIOCSCTTY, 0) || chdir(folder)) _exit(99);
        for (int i = 0; i < 3; i++) dup2(its, i);
        execv(path, argv);
        _exit(98);
    }
    free(path);
    return own;
}

// Until `what` has come, or the end where that is NULL.
static void read_until(int terminal, const char *what, Text *all) {
    char buffer[4096];
    for (ssize_t n; (n = read(terminal, buffer, sizeof buffer)) > 0;) {
        text_add(all, buffer, (size_t)n);
        if (what && strstr(text_get(all), what)) return;
    }
    if (what) fail_msg("'%s' did not come, but '%s'", what, text_get(all));
}

// Each time the line is written it begins where it began, and is shorter than the terminal is wide.
static void check_lines(const char *text) {
    int lines = 0;
    for (const char *at = text, *end; (end = strstr(at, "\033[K")); at = end + 3) {
        const char *begin = end;
        while (begin > at && begin[-1] != '\r') begin--;
        assert_true(begin == end || begin[-1] == '\r');
        if (end - begin >= COLUMNS || memchr(begin, '\n', (size_t)(end - begin)))
            fail_msg("a line of %d characters: '%.*s'", (int)(end - begin), (int)(end - begin), begin);
        lines += end > begin;
    }
    assert_true(lines > 2);
}

// Writes x.yaml, and the model and prompts that it names.
static void write_inputs(const char *folder, const char *methods) {
    static const char CONFIG[] = "name: long\nmodels: [{name: a-name-that-is-long, target: tiny}]\n"
                                 "datasets: [{name: own, path: own.txt}]\nmethods: [%s]\n"
                                 "generation: {max_tokens: 400, ignore_eos: on}\nhardware: {device: 'null'}\n"
                                 "measurement: {passes: 1000, reruns: 0}\n";
    Child c;
    FILE *f = fopen(folder_path(folder, "x.yaml"), "w"), *own = fopen(folder_path(folder, "own.txt"), "w");
    assert_true(f && own);
    fprintf(f, CONFIG, methods);
    fputs("one prompt\nanother\n", own);
    fclose(f);
    fclose(own);
    CHILD_OUTPACE(&c, folder, 0, "model", "synth", "tiny", "tiny");
    child_release(&c);
}

static void on_a_terminal(void **state) {
    const char *folder = *state;
    Text all = {0};
    pid_t pid;
    write_inputs(folder, "autoregressive, lookahead, jacobi");
    int terminal =
        start_on_terminal(folder, (const char *const[]){"run", "x.yaml", "--db", "x.db", NULL}, &pid);
    read_until(terminal, " left, points 1-3 of 3, a-name", &all); // of all; what is being done comes behind
    check_lines(text_get(&all));
    const char *line = strstr(text_get(&all), " left, points 1-3 of 3, a-name");
    int share, read = 0;
    while (line[-1] != '\r') line--;
    if (sscanf(line, "%d%%, %n", &share, &read) != 1 || read == 0) fail_msg("no per cent at first: %s", line);
    text_clear(&all);
    assert_int_equal(write(terminal, "\003", 1), 1);
    read_until(terminal, NULL, &all);
    assert_int_equal(child_wait(pid), 130);
    assert_non_null(strstr(text_get(&all), "stopping; once more to stop at once"));
    assert_non_null(strstr(text_get(&all), "interrupted: the same command goes on"));
    assert_int_equal(stores_ask(folder, "x.db", "SELECT result = 'interrupted' FROM attempt"), 1);
    close(terminal);
    text_release(&all);
}

// A part's points are counted from 1, like their number, whatever their numbers in the sweep.
static void a_part_counts_its_own(void **state) {
    static const char *const WORDS[] = {"run", "x.yaml", "--shard", "2/2", "--db", "x.db", NULL};
    Text all = {0};
    pid_t pid;
    write_inputs(*state, "{name: jacobi, matrix: {m: [1, 2, 3, 4]}}");
    int terminal = start_on_terminal(*state, WORDS, &pid);
    read_until(terminal, "points 1-2 of 2, a-name", &all);
    assert_int_equal(write(terminal, "\003", 1), 1);
    read_until(terminal, NULL, &all);
    assert_int_equal(child_wait(pid), 130);
    close(terminal);
    text_release(&all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits), cmocka_unit_test_setup_teardown(on_a_terminal, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_part_counts_its_own, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
