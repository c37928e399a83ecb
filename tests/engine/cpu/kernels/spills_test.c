// Loops of products on AVX2 take all sixteen registers: the object code must not keep one of them on the stack
// there, or move values around (block.h). Skipped if gcc didn't compile the kernels at -O3, or objdump is
// missing.
#include "tests/support/check.h"

#include "tests/support/child.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 4096, OUTPUTS = 3 };

// The lines of one function: addresses and instructions.
typedef struct Code {
    const char *name, *text[LINES];
    unsigned long at[LINES];
    int lines;
} Code;

static int count(const Code *c, int first, int last, const char *what) {
    int n = 0;
    for (int i = first; i <= last; i++) n += strstr(c->text[i], what) != NULL;
    return n;
}

// Two halves of a step; the inputs of each row are loaded once, and weights, or a mask for them.
static void check_loop(const Code *c, int first, int last, int rows) {
    int sums = count(c, first, last, "vfmadd"), moves = count(c, first, last, "vmov");
    int stack = count(c, first, last, "(%rsp") + count(c, first, last, "(%rbp");
    if (sums == 2 * OUTPUTS * rows && moves <= 2 * (rows + OUTPUTS) && stack == 0) return;
    for (int i = first; i <= last; i++) print_message("    %s\n", c->text[i]);
    fail_msg("%s: a loop has %d sums, %d moves of vectors and %d uses of the stack; wanted %d, at most %d, 0",
             c->name, sums, moves, stack, 2 * OUTPUTS * rows, 2 * (rows + OUTPUTS));
}

// Each half of the lanes has a loop.
static void check_function(const Code *c, int rows) {
    int loops = 0;
    for (int last = 0; last < c->lines; last++) {
        char jump[16];
        unsigned long to;
        int first = last;
        if (sscanf(c->text[last], "j%15s %lx", jump, &to) != 2 || to > c->at[last] || !strcmp(jump, "mp"))
            continue;
        while (first > 0 && c->at[first] > to) first--;
        if (count(c, first, last, "vfmadd") == 0) continue;
        check_loop(c, first, last, rows);
        loops++;
    }
    if (loops != 2) fail_msg("%s: %d loops, wanted 2", c->name, loops);
}

// Takes objdump's text apart.
static int check_functions(char *text) {
    static Code c;
    int functions = 0, rows = 0;
    for (char *line = strtok(text, "\n"), form[8], end; line; line = strtok(NULL, "\n")) {
        char *name = strstr(line, " <strip_"), *instruction = strchr(line, '\t');
        if (*line != ' ') { // the head of a function
            if (rows) check_function(&c, rows);
            rows = 0;
            if (name && sscanf(name, " <strip_%7[A-Z0-9]_%d%c", form, &rows, &end) == 3 && end != '>')
                rows = 0;
            if (rows < 3) rows = 0;
            functions += rows > 0;
            c.lines = 0;
            c.name = name;
        } else if (rows && instruction && c.lines < LINES) {
            c.at[c.lines] = strtoul(line, NULL, 16);
            c.text[c.lines++] = instruction + 1;
        }
    }
    if (rows) check_function(&c, rows);
    return functions;
}

static void products_keep_registers(void **state) {
    (void)state;
    char here[512] = "", settings[64] = "";
    Text path = {0};
    assert_true(readlink("/proc/self/exe", here, sizeof here - 1) > 0);
    assert_non_null(strstr(here, "/tests/engine/"));
    *strstr(here, "/tests/engine/") = 0;
    text_printf(&path, "%s/settings", here);
    FILE *f = fopen(text_get(&path), "r");
    bool optimised = f && fgets(settings, sizeof settings, f) && strcmp(settings, "gcc -O3 \n") == 0;
    if (f) fclose(f);
    text_clear(&path);
    text_printf(&path, "%s/engine/cpu/kernels/ops_avx2.o", here);
    const char *const words[] = {"objdump", "-d", "--no-show-raw-insn", text_get(&path), NULL};
    bool skipped = !optimised || access(words[3], R_OK) || access("/usr/bin/objdump", X_OK);
    Child c;
    if (skipped) text_release(&path);
    if (skipped) skip();
    child_run(&c, NULL, NULL, words);
    text_release(&path);
    assert_int_equal(c.code, 0);
    assert_int_equal(check_functions(c.out.data), 6); // of 3 and 4 rows, in f32, f16 and bf16
    child_release(&c);
}

int main(void) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(products_keep_registers)};
    return cmocka_run_group_tests_name("spills", tests, NULL, NULL);
}
