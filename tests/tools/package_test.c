// tools/package: a program linked with the stubs of an old C library needs no newer one, and does the same as
// another.
#include "tests/support/check.h"

#include "tests/support/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Calls that changed since: the start and its constructors, stat, threads, mathematics, variables that are
// shared.
static const char PROGRAM[] =
    "#include <errno.h>\n#include <math.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    "#include <sys/stat.h>\n#include <unistd.h>\n"
    "static int made;\n"
    "__attribute__((constructor)) static void make(int argc, char **argv) { made = argc + (argv[1][0] - "
    "'0'); }\n"
    "static void *add(void *p) { *(double *)p += 1; return p; }\n"
    "int main(int argc, char **argv) {\n"
    "    struct stat s;\n    pthread_t t;\n    double x = exp(atof(argv[1])) + hypot(3, 4);\n"
    "    pthread_create(&t, NULL, add, &x);\n    pthread_join(t, NULL);\n"
    "    int gone = stat(\"/none/such\", &s) == -1 && errno == ENOENT;\n"
    "    int here = stat(\"/\", &s) == 0 && S_ISDIR(s.st_mode) && fstat(1, &s) == 0;\n"
    "    char **was = environ;\n    setenv(\"ADDED\", \"1\", 1);\n"
    "    fprintf(stdout, \"%d %d %d %d %.3f %ld %d\\n\", made, gone, here, was == environ, x,\n"
    "            strtol(\"0x1f\", NULL, 16), argc);\n"
    "    return 0;\n}\n";

// Runs a shell command in the folder; $0 in it is tools/package.
static int run_in(const char *folder, Child *c, const char *command) {
    char path[FOLDER_PATH_SIZE];
    const char *root = getenv("OUTPACE_ROOT");
    char *here = realpath(root ? root : ".", NULL);
    assert_non_null(here);
    snprintf(path, sizeof path, "%s/tools/package", here);
    free(here);
    child_run(c, folder, PROGRAM, (const char *const[]){"sh", "-c", command, path, NULL});
    return c->code;
}

// By the compiler CC; RUN starts what it made, and the C library that it links has symbols of the version
// TOO_OLD and newer.
static void check_machine(const char *variables) {
    static const char BUILD[] =
        "cat >p.c && $CC -D_GNU_SOURCE p.c -o new -lm -lpthread && $0/stubs stubs 2.28 $CC &&"
        " $CC -D_GNU_SOURCE p.c $0/compat.c -o old -Lstubs -Wl,--wrap=__libc_start_main -Wl,--no-as-needed"
        " -lm -lpthread && $0/check old 2.28 && $RUN ./new 2 >new.txt && $RUN ./old 2 >old.txt &&"
        " cmp new.txt old.txt && cat old.txt && ! $0/check new $TOO_OLD";
    char folder[FOLDER_PATH_SIZE], command[sizeof BUILD + 200];
    Child c;
    folder_make(folder);
    snprintf(command, sizeof command, "%s; %s", variables, BUILD);
    if (run_in(folder, &c, command) || !strstr(text_get(&c.out), "\n4 1 1 ") ||
        !strstr(text_get(&c.out), " is allowed"))
        fail_msg("%s: %s%s", variables, text_get(&c.out), text_get(&c.err));
    child_release(&c);
    folder_remove(folder);
}

static void needs_only_the_old_library(void **state) {
    (void)state;
    check_machine("CC=gcc RUN= TOO_OLD=2.2.5");
}

// The same for an Arm, where Debian's cross compiler and its C library are installed.
static void as_on_an_arm(void **state) {
    Child c;
    (void)state;
    int missing = run_in(NULL, &c, "command -v aarch64-linux-gnu-gcc qemu-aarch64-static");
    child_release(&c);
    if (missing) skip();
    check_machine(
        "CC=aarch64-linux-gnu-gcc RUN='qemu-aarch64-static -L /usr/aarch64-linux-gnu' TOO_OLD=2.17");
}

// What was there stays, and what others put there later; nothing else is left.
static void removes_what_it_installed(void **state) {
    static const char SCRIPT[] =
        "set -e; here=$PWD; cd $0/../..; mkdir -p $here/p/share/man; printf '#!/bin/sh\\necho page\\n' "
        ">$here/program;"
        " chmod +x $here/program; touch $here/p/share/man/theirs; find $here/p | sort >$here/before;"
        " for i in 1 2; do tools/package/install $here/p $here/program; done;"
        " [ $($here/p/bin/outpace) = page ]; [ -f $here/p/share/outpace/models/reference/config.json ];"
        " [ -f $here/p/share/outpace/configs/demo.yaml ]; touch $here/p/share/outpace/mine;"
        " tools/package/install --remove $here/p; rm $here/p/share/outpace/mine; rmdir $here/p/share/outpace;"
        " find $here/p | sort | cmp - $here/before; ! tools/package/install --remove $here/p";
    char folder[FOLDER_PATH_SIZE];
    Child c;
    (void)state;
    folder_make(folder);
    if (run_in(folder, &c, SCRIPT) || !strstr(text_get(&c.err), "uninstall: nothing is installed in '"))
        fail_msg("install: code %d: %s%s", c.code, text_get(&c.out), text_get(&c.err));
    child_release(&c);
    folder_remove(folder);
}

// The module of the wheel: its version, and the program's words as an exception.
static void called_from_python(void **state) {
    static const char SCRIPT[] =
        "set -e; mkdir -p m/outpace m/outpace-9.9.dist-info bin; cp $0/outpace.py m/outpace/__init__.py;"
        " printf 'Name: outpace\\nVersion: 9.9\\n' >m/outpace-9.9.dist-info/METADATA; ln -s $PROGRAM "
        "bin/outpace;"
        " cat >call.py <<END\n"
        "import outpace\n"
        "outpace.program = lambda: 'bin/outpace'\n"
        "print(outpace.__version__)\n"
        "for call in (lambda: outpace.run('none.yaml'), lambda: outpace.sql('none.db', 'SELECT 1')):\n"
        "    try:\n        call()\n    except outpace.Error as e:\n        print(e.code, e)\n"
        "END\n"
        "PYTHONPATH=m python3 call.py 2>shown; cat shown";
    static const char WANT[] = "9.9\n2 cannot open 'none.yaml': No such file or directory\n"
                               "2 store 'none.db': there is none; 'outpace run CONFIG' makes it\n"
                               "outpace: cannot open 'none.yaml': No such file or directory\n";
    char folder[FOLDER_PATH_SIZE], command[sizeof SCRIPT + FOLDER_PATH_SIZE];
    const char *program = getenv("OUTPACE");
    char *here = realpath(program ? program : "./outpace", NULL);
    Child c;
    (void)state;
    assert_non_null(here);
    int missing = run_in(NULL, &c, "command -v python3");
    child_release(&c);
    if (missing) skip();
    folder_make(folder);
    snprintf(command, sizeof command, "PROGRAM=%s; %s", here, SCRIPT);
    if (run_in(folder, &c, command) || strcmp(text_get(&c.out), WANT) != 0)
        fail_msg("wanted '%s', got '%s%s'", WANT, text_get(&c.out), text_get(&c.err));
    child_release(&c);
    folder_remove(folder);
    free(here);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_only_the_old_library), cmocka_unit_test(as_on_an_arm),
        cmocka_unit_test(removes_what_it_installed), cmocka_unit_test(called_from_python)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
