// Every file in tests/fuzz/corpus/NAME through NAME_fuzz.c: the seeds that fuzzing starts from and the inputs
// that once broke something. A new fuzz entry is a row here and a folder there.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// As the Makefile names the entry of each file when they are linked together.
typedef int FuzzEntry(const uint8_t *data, size_t size);
FuzzEntry adapter_fuzz, codes_fuzz, config_fuzz, dataset_fuzz, datastore_fuzz, experiment_fuzz, gguf_fuzz,
    gzip_fuzz, hardware_fuzz, import_fuzz, parquet_fuzz, points_fuzz, safetensors_fuzz, surface_fuzz,
    token_table_fuzz, tokenizer_fuzz, tokens_fuzz, training_fuzz;

typedef struct {
    const char *name;
    FuzzEntry *run;
} Fuzzer;

static const Fuzzer FUZZERS[] = {
    {"adapter", adapter_fuzz},
    {"codes", codes_fuzz},
    {"config", config_fuzz},
    {"dataset", dataset_fuzz},
    {"datastore", datastore_fuzz},
    {"experiment", experiment_fuzz},
    {"gguf", gguf_fuzz},
    {"gzip", gzip_fuzz},
    {"hardware", hardware_fuzz},
    {"import", import_fuzz},
    {"parquet", parquet_fuzz},
    {"points", points_fuzz},
    {"safetensors", safetensors_fuzz},
    {"surface", surface_fuzz},
    {"token_table", token_table_fuzz},
    {"tokenizer", tokenizer_fuzz},
    {"tokens", tokens_fuzz},
    {"training", training_fuzz},
};
enum { FUZZER_COUNT = sizeof FUZZERS / sizeof *FUZZERS };

static const char CORPUS[] = "tests/fuzz/corpus";

static void run_file(const Fuzzer *f, const char *folder, const char *name) {
    char path[1024], *bytes;
    size_t n;
    Error e = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    print_message("%s\n", path); // the last one named is the one that broke
    if (!file_read(path, 1 << 24, &bytes, &n, &e)) fail_msg("%s", e.text);
    uint8_t *exact = mem_new(n, 1); // nothing after it: sanitizers see a read past the end
    assert_non_null(exact);
    memcpy(exact, bytes, n);
    f->run(exact, n);
    mem_free(exact);
    mem_free(bytes);
}

static void run_corpus(const Fuzzer *f) {
    char folder[512];
    int files = 0;
    snprintf(folder, sizeof folder, "%s/%s", CORPUS, f->name);
    DIR *d = opendir(folder);
    if (!d) fail_msg("%s_fuzz.c has no folder %s", f->name, folder);
    for (struct dirent *file; (file = readdir(d));) {
        if (file->d_name[0] == '.') continue;
        run_file(f, folder, file->d_name);
        files++;
    }
    closedir(d);
    if (files == 0) fail_msg("%s is empty", folder);
}

static void all_files(void **state) {
    (void)state;
    for (int i = 0; i < FUZZER_COUNT; i++) run_corpus(&FUZZERS[i]);
}

// Short inputs that are nothing at all.
static void noise(void **state) {
    (void)state;
    Random r = test_random(40);
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[64];
        size_t n = (size_t)test_between(&r, 0, sizeof bytes);
        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)test_between(&r, 0, test_between(&r, 0, 1) ? 255 : 8);
        for (int k = 0; k < FUZZER_COUNT; k++) FUZZERS[k].run(bytes, n);
    }
}

static void every_folder_has_a_row(void **state) {
    (void)state;
    DIR *d = opendir(CORPUS);
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));) {
        if (f->d_name[0] == '.' || strchr(f->d_name, '-')) continue;
        bool found = false;
        for (int i = 0; i < FUZZER_COUNT; i++) found |= strcmp(FUZZERS[i].name, f->d_name) == 0;
        if (!found) fail_msg("%s/%s has no row in corpus_test.c", CORPUS, f->d_name);
    }
    closedir(d);
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if (root && chdir(root)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_files),
        cmocka_unit_test(noise),
        cmocka_unit_test(every_folder_has_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
