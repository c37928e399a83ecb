// models/fetch with a pip of our own, which makes wheels: a whole model is kept, parts that are there aren't downloaded
// again, and what is changed, cut, or not agreed to leaves no model.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Wheels are made beforehand: few-N has the member few/data/N.bin with the text "part N\n". pip fails for N in the file
// `fails`, and cuts those in `cuts`.
static const char PIP[] = "#!/bin/sh\n"
                          "for last; do :; done\n"
                          "while [ \"$1\" != -d ]; do shift; done\n"
                          "echo \"$last\" >>log\n"
                          "grep -qxF \"$last\" fails && exit 1\n"
                          "mkdir -p \"$2\" && cat \"${last%%=*}.whl\" >\"$2/x.whl\"\n"
                          "if grep -qxF \"$last\" cuts; then echo cut >\"$2/x.whl\"; fi\n";
// The tools that the script needs; python3 may be a script that needs others.
static const char TOOLS[] =
    "chmod +x fetch pip; mkdir bin; mv pip bin; python=$(python3 -c 'import sys, zipfile\n"
    "for n in \"12\":\n"
    "    with zipfile.ZipFile(\"few-%s.whl\" % n, \"w\") as z:\n"
    "        z.writestr(\"few/__init__.py\", \"\")\n"
    "        z.writestr(\"few/data/%s.bin\" % n, \"part %s\\n\" % n)\n"
    "print(sys.executable)') || exit 0\n"
    "for t in sh awk wc tr cut sed cat grep sha256sum mkdir rm mv dirname; do ln -s \"$(command -v $t)\" bin; done\n"
    "printf '#!/bin/sh\\nexec \"%s\" \"$@\"\\n' \"$python\" >bin/python3; chmod +x bin/python3\n";
static const char WHOLE[] = "part 1\npart 2\n";

// The script, its table, and pip in the folder bin, where other tools are, too.
static int set_up(void **state) {
    char *folder = mem_new(FOLDER_PATH_SIZE, 1), sha256[SHA256_TEXT], *script;
    size_t n;
    Text table = {0};
    Child c = {0};
    folder_make(folder);
    script = scratch_read("models", "fetch", &n);
    assert_true(sha256_bytes(WHOLE, sizeof WHOLE - 1, sha256, NULL));
    text_puts(&table, "name\tpackage\tversion\tparts\tmember\tbytes\tsha256\tlicence\tterms\tabout\n");
    for (int i = 0; i < 3; i++)
        text_printf(&table, "%s\tfew-#\t1.0\t2\t*/data/?.bin\t%zu\t%s\tCC0\t%s\ta test\n",
                    (const char *[]){"tiny", "changed", "signed"}[i], sizeof WHOLE - 1, i == 1 ? "0" : sha256,
                    i == 2 ? "https://there/terms" : "-");
    scratch_write(folder, "fetch", script, n);
    scratch_write(folder, "sources.tsv", text_get(&table), table.length);
    scratch_write(folder, "pip", PIP, sizeof PIP - 1);
    child_run(&c, folder, NULL, (const char *const[]){"sh", "-c", TOOLS, NULL});
    text_release(&table);
    child_release(&c);
    mem_free(script);
    *state = folder;
    return 0;
}

static int tear_down(void **state) {
    folder_remove(*state);
    mem_free(*state);
    return 0;
}

typedef struct {
    const char *name, *option; // fetch [OPTION] NAME
    const char *fails, *cuts;  // packages
    int code;
    const char *says;
    const char *log;  // what pip is asked for
    const char *file; // the model; NULL: there is none
} Case;

#define LAST "few-2==1.0\n"
#define ALL  "few-1==1.0\n" LAST

static void check(const char *folder, const Case *of) {
    Child c = {0};
    char name[64], tools[FOLDER_PATH_SIZE + 16];
    size_t n;
    snprintf(tools, sizeof tools, "PATH=%s", folder_path(folder, "bin"));
    snprintf(name, sizeof name, "%s.gguf", of->name);
    scratch_write(folder, "log", "", 0);
    scratch_write(folder, "fails", of->fails ? of->fails : "", of->fails ? strlen(of->fails) : 0);
    scratch_write(folder, "cuts", of->cuts ? of->cuts : "", of->cuts ? strlen(of->cuts) : 0);
    child_run(&c, folder, NULL,
              (const char *const[]){"env", tools, "./fetch", of->option ? of->option : of->name,
                                    of->option ? of->name : NULL, NULL});
    char *log = scratch_read(folder, "log", &n);
    bool is = file_exists(folder_path(folder, name));
    char *file = is ? scratch_read(folder, name, &n) : NULL;
    bool said = strstr(text_get(&c.out), of->says) || strstr(text_get(&c.err), of->says);
    if (c.code != of->code || !said || strcmp(log, of->log) != 0 || is != (of->file != NULL) ||
        (is && strcmp(file, of->file) != 0))
        fail_msg("fetch %s: wanted %d, '%s', asked of pip '%s', file '%s'; got %d, '%s%s', '%s', '%s'",
                 of->name, of->code, of->says, of->log, of->file ? of->file : "none", c.code,
                 text_get(&c.out), text_get(&c.err), log, is ? file : "none");
    mem_free(log);
    mem_free(file);
    child_release(&c);
}

static void models(void **state) {
    static const Case CASES[] = {
        {"tiny", NULL, LAST, NULL, 1, "'few-2==1.0' could not be downloaded whole", ALL, NULL},
        {"tiny", NULL, NULL, LAST, 1, "'few-2==1.0' could not be downloaded whole", LAST, NULL},
        {"tiny", NULL, NULL, NULL, 0, "wrote", LAST, WHOLE},
        {"tiny", NULL, NULL, NULL, 0, "is there already", "", WHOLE},
        {"changed", NULL, NULL, NULL, 1, "it was changed or cut, so it isn't kept", ALL, NULL},
        {"signed", NULL, NULL, NULL, 1, "has terms, https://there/terms: read them, and give --accept", "",
         NULL},
        {"signed", "--accept", NULL, NULL, 0, "licence: CC0, https://there/terms", ALL, WHOLE},
        {"tin", NULL, NULL, NULL, 1, "there is no model 'tin' to fetch", "", NULL},
        {"tin.", NULL, NULL, NULL, 1, "there is no model 'tin.' to fetch", "", NULL},
        {"An/other", NULL, NULL, NULL, 0, "hf download An/other --local-dir other\n", "", NULL},
    };
    if (access(folder_path(*state, "bin/python3"), X_OK)) skip();
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) check(*state, &CASES[i]);
    assert_false(file_exists(folder_path(*state, "tiny.parts")) ||
                 file_exists(folder_path(*state, "changed.parts")));
    unlink(folder_path(*state, "bin/pip"));
    unlink(folder_path(*state, "tiny.gguf"));
    check(*state,
          &(Case){"tiny", NULL, NULL, NULL, 1, "pip, which downloads the packages, is missing", "", NULL});
}

static void by_the_program(void **state) {
    (void)state;
    Child c = {0};
    const char *program = getenv("OUTPACE");
    if (program && strcmp(program, "./outpace") != 0) skip(); // models/fetch isn't next to it
    CHILD_OUTPACE(&c, NULL, 0, "model", "fetch", "An/other");
    assert_string_equal(text_get(&c.out), "hf download An/other --local-dir other\n");
    child_release(&c);
    CHILD_OUTPACE(&c, NULL, 2, "model", "fetch");
    assert_non_null(strstr(text_get(&c.out), "smollm2-135m"));
    child_release(&c);
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if ((root && chdir(root)) || unsetenv("OUTPACE_MODELS")) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(models, set_up, tear_down),
                                       cmocka_unit_test(by_the_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
