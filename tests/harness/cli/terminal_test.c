// Grids and lines fitted to a width: nothing is wider, nothing is lost that is not named.
#include "tests/support/check.h"

#include "harness/cli/terminal.h"

#include <stdlib.h>
#include <string.h>

static const GridColumn COLUMNS[] = {
    {"point", true, 0, 0}, {"method", false, 12, 0}, {"S", true, 0, 0},      {"e2e", true, 0, 1},
    {"CTAR1", true, 0, 2}, {"note", false, 9, 0},    {"never", false, 0, 0},
};

static void put(Grid *g, const char *const cells[6]) {
    for (int i = 0; i < 6; i++) text_puts(&g->cell, cells[i]), grid_next(g);
    grid_end(g);
}

static void make(Grid *g) {
    *g = (Grid){.columns = COLUMNS, .count = sizeof COLUMNS / sizeof *COLUMNS};
    text_puts(&g->cell, "a set"), grid_rest(g);
    grid_heads(g);
    put(g, (const char *const[]){"1", "autoregressive", "1.00", "1.00", "0.00", "baseline"});
    put(g, (const char *const[]){"12", "lookahead W=5 N=3 G=5", "1.36", "0.71", "0.25",
                                 "yes; 1 of 6 disturbed"});
    text_puts(&g->cell, "13"), grid_next(g);
    text_puts(&g->cell, "caf\xc3\xa9 \x1b[31m"), grid_next(g);
    text_puts(&g->cell, "skipped: no draft"), grid_rest(g);
}

static void expect(int width, const char *want) {
    Grid g;
    Text got = {0};
    make(&g);
    grid_print(&g, width, &got);
    assert_string_equal(text_get(&got), want);
    grid_release(&g);
    text_release(&got);
}

// At full width every column with a text is aligned.
static void full(void **state) {
    (void)state;
    expect(0, "a set\n"
              "point  method                    S   e2e  CTAR1  note\n"
              "    1  autoregressive         1.00  1.00   0.00  baseline\n"
              "   12  lookahead W=5 N=3 G=5  1.36  0.71   0.25  yes; 1 of 6 disturbed\n"
              "   13  caf\xc3\xa9 ?[31m             skipped: no draft\n");
}

// The least columns go first and are named; texts are folded at blanks.
static void narrow(void **state) {
    (void)state;
    expect(56, "a set\n"
               "point  method                  S   e2e  CTAR1  note\n"
               "    1  autoregressive       1.00  1.00   0.00  baseline\n"
               "   12  lookahead W=5 N=3    1.36  0.71   0.25  yes; 1 of\n"
               "       G=5                                     6\n"
               "                                               disturbed\n"
               "   13  caf\xc3\xa9 ?[31m           skipped: no draft\n");
}

static void narrower(void **state) {
    (void)state;
    expect(40, "a set\n"
               "point  method               S  note\n"
               "    1  autoregressive    1.00  baseline\n"
               "   12  lookahead W=5     1.36  yes; 1 of\n"
               "       N=3 G=5                 6\n"
               "                               disturbed\n"
               "   13  caf\xc3\xa9 ?[31m\n"
               "       skipped: no draft\n"
               "left out of this width: e2e, CTAR1; a\n"
               "pipe gets all columns: '... | less -S'\n");
}

static void every_width(void **state) {
    (void)state;
    for (int width = 40; width < 100; width++) {
        Grid g;
        Text got = {0};
        make(&g);
        grid_print(&g, width, &got);
        for (const char *line = text_get(&got); *line; line += strcspn(line, "\n") + 1)
            if ((int)strcspn(line, "\n") > width + 1) // an accent is a byte more
                fail_msg("width %d: %s", width, text_get(&got));
        bool left_out = strstr(text_get(&got), "left out of this width");
        if (!left_out && !(strstr(text_get(&got), "e2e") && strstr(text_get(&got), "CTAR1")))
            fail_msg("width %d: %s", width, text_get(&got));
        grid_release(&g);
        text_release(&got);
    }
}

static void folded(void **state) {
    (void)state;
    Text got = {0};
    terminal_fold("  --draft N  guesses of a step, at most as many as it has rows\nshort\n"
                  "a sentence without columns that is longer than forty letters\n",
                  40, &got);
    assert_string_equal(text_get(&got), "  --draft N  guesses of a step, at most\n"
                                        "             as many as it has rows\n"
                                        "short\n"
                                        "a sentence without columns that is\n"
                                        "longer than forty letters\n");
    text_release(&got);
}

static void coloured(void **state) {
    static const char TEXT[] = "yes; 2 disturbed\nNO, 1 of 2 differ, undisturbed NOTE differs\n";
    static const char WANT[] = "yes; 2 \033[2mdisturbed\033[0m\n\033[31mNO\033[0m, 1 of 2 "
                               "\033[31mdiffer\033[0m, undisturbed NOTE \033[31mdiffers\033[0m\n";
    const char *const NO_COLOUR[] = {"", "1"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        Text got = {0};
        setenv("NO_COLOR", NO_COLOUR[i], 1);
        terminal_coloured(TEXT, &got);
        const char *want = i ? TEXT : WANT;
        if (strcmp(text_get(&got), want) != 0)
            fail_msg("NO_COLOR='%s': wanted '%s', got '%s'", NO_COLOUR[i], want, text_get(&got));
        text_release(&got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full),        cmocka_unit_test(narrow), cmocka_unit_test(narrower),
        cmocka_unit_test(every_width), cmocka_unit_test(folded), cmocka_unit_test(coloured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
