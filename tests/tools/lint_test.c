// tools/lint on a small tree of its own: quiet on a clean one, and it names each planted fault.
#include "tests/support/check.h"

#include "tests/support/child.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    char path[FOLDER_PATH_SIZE];
} Tree;

static void write_file(const Tree *t, const char *name, const char *text) {
    char path[FOLDER_PATH_SIZE + 64];
    snprintf(path, sizeof path, "%s/%s", t->path, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

// Runs a shell command in the tree; $0 in it is the repository.
static int run_in(const Tree *t, Child *c, const char *command) {
    const char *root = getenv("OUTPACE_ROOT");
    char *here = realpath(root ? root : ".", NULL);
    assert_non_null(here);
    const char *argv[] = {"sh", "-c", command, here, NULL};
    child_run(c, t->path, NULL, argv);
    free(here);
    return c->code;
}

// The repository's own tools over two rooms: base, and core above it.
static void plant(Tree *t) {
    Child c;
    folder_make(t->path);
    assert_int_equal(
        run_in(t, &c, "cp -r $0/tools $0/.clang-format . && mkdir -p engine/base engine/core tests"), 0);
    child_release(&c);
    write_file(t, "Makefile", "\n");
    write_file(t, "engine/base/low.h", "#pragma once\nint low(int x);\n");
    write_file(t, "engine/base/low.c",
               "// The lowest source.\n#include \"engine/base/low.h\"\n\nint low(int x) { return x; }\n");
    write_file(t, "engine/core/high.h", "#pragma once\n#include \"engine/base/low.h\"\n");
}

// Builds the tree and lints it; the output must contain each of `wanted`.
static void expect(const char *name, const char *text, const char *const *wanted) {
    Tree t;
    Child c;
    plant(&t);
    if (name) write_file(&t, name, text);
    assert_int_equal(run_in(&t, &c,
                            "for f in $(find engine -name '*.c'); do mkdir -p build/${f%/*}; "
                            "gcc -D_GNU_SOURCE -w -I. -c $f -o build/${f%.c}.o; done"),
                     0);
    child_release(&c);
    int code = run_in(&t, &c, "tools/lint engine tests");
    text_add(&c.out, text_get(&c.err), c.err.length);
    for (int i = 0; wanted[i]; i++)
        if (!strstr(text_get(&c.out), wanted[i]))
            fail_msg("%s: wanted '%s', lint said '%s'", name ? name : "nothing planted", wanted[i],
                     text_get(&c.out));
    if (code != (name ? 1 : 0)) fail_msg("%s: lint ended with %d", name ? name : "nothing planted", code);
    child_release(&c);
    folder_remove(t.path);
}

// A machine without the tools skips.
static bool tools_are_here(void) {
    Child c;
    const char *argv[] = {"sh", "-c", "command -v clang-format && command -v clang && command -v cppcheck",
                          NULL};
    child_run(&c, NULL, NULL, argv);
    child_release(&c);
    return c.code == 0;
}

static void clean(void **state) {
    (void)state;
    if (!tools_are_here()) skip();
    expect(NULL, NULL, (const char *const[]){"lint: clean", NULL});
}

static void an_upward_include(void **state) {
    (void)state;
    if (!tools_are_here()) skip();
    expect(
        "engine/base/low.c", "#include \"engine/core/high.h\"\n\nint low(int x) { return x; }\n",
        (const char *const[]){"engine/base/low.c:1: engine/base may not include engine/core/high.h", NULL});
}

static void a_header_that_needs_another(void **state) {
    (void)state;
    if (!tools_are_here()) skip();
    expect("engine/core/lazy.h", "#pragma once\nsize_t lazy(void);\n",
           (const char *const[]){"engine/core/lazy.h does not compile alone (gcc)",
                                 "engine/core/lazy.h does not compile alone (clang)", NULL});
}

static void careless_code(void **state) {
    (void)state;
    if (!tools_are_here()) skip();
    expect("engine/base/careless.c",
           "#include <stdio.h>\n"
           "#include <stdlib.h>\n"
           "#include <string.h>\n"
           "\n"
           "int at_file_scope = 1;\n"
           "static const char *names[] = {\"a\", \"b\"}; // the pointers may be changed\n"
           "static const char *const fine[] = {\"a\", \"b\"};\n"
           "\n"
           "const char *next(int i) {\n"
           "    static int calls;\n"
           "    return calls++ ? names[i] : fine[i];\n"
           "}\n"
           "\n"
           "void copy(char *to, const char *from) {\n"
           "    strcpy(to, from);\n"
           "  sprintf(to, \"%d\", 1);\n"
           "    free(to);\n"
           "    int never[2];\n"
           "    never[2] = 0;\n"
           "}\n",
           (const char *const[]){
               "engine/base/careless.c:15: not formatted", "careless.o: at_file_scope", "careless.o: names",
               "careless.o: calls", "engine/base/careless.c:15:    strcpy(to, from);",
               "engine/base/careless.c:16:  sprintf(to", "lint: banned calls",
               "engine/base/careless.c:17:    free(to);", "careless.c:19", "lint: cppcheck", NULL});
}

// The limits of tools/measure: each names the files that break it.
static void broken_limits(void **state) {
    (void)state;
    if (!tools_are_here()) skip();
    char wide[200];
    snprintf(wide, sizeof wide, "int wide; %0120d\n", 0);
    memcpy(wide + 10, "//", 2);
    expect("engine/base/silent.c", "int silent;\n",
           (const char *const[]){"sources without an opening comment (of 2): 1, and 0 is the limit",
                                 "    engine/base/silent.c\n", NULL});
    expect("engine/base/wide.h", wide,
           (const char *const[]){"lines beyond 110 columns: 1, and 0 is the limit",
                                 "    engine/base/wide.h:1\n", NULL});
    expect("engine/base/telling.h", "#pragma once\n// What is said stands here.\nint telling(void);\n",
           (const char *const[]){"headless \"what is ...\"",
                                 "1 engine/base/telling.h: ... what is said stands",
                                 "measure: say, says, said", "measure: stand, stands", NULL});
    expect("CONTRIBUTING.md", "Start at `engine/base/gone.c`.\n",
           (const char *const[]){"    CONTRIBUTING.md: engine/base/gone.c\n", NULL});
}

static void a_large_tree(void **state) {
    (void)state;
    Tree t;
    Child c;
    plant(&t);
    int code =
        run_in(&t, &c, "git init -q . && truncate -s 50M weights && git add -N . && tools/measure --check");
    if (code != 1 || !strstr(text_get(&c.out), "measure: MiB of tracked files: 50.") ||
        !strstr(text_get(&c.out), "\n    52428800 weights\n"))
        fail_msg("a file of 50 MiB: code %d\n%s%s", code, text_get(&c.out), text_get(&c.err));
    child_release(&c);
    folder_remove(t.path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean),
        cmocka_unit_test(an_upward_include),
        cmocka_unit_test(a_header_that_needs_another),
        cmocka_unit_test(careless_code),
        cmocka_unit_test(broken_limits),
        cmocka_unit_test(a_large_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
