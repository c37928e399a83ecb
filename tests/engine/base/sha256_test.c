// The vectors of FIPS 180 and of bytes in a file.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void known_vectors(void **state) {
    (void)state;
    static char million[1000000];
    memset(million, 'a', sizeof million);
    const struct {
        const char *bytes;
        size_t n;
        const char *want;
    } rows[] = {
        {"", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {million, sizeof million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[SHA256_TEXT];
        assert_true(sha256_bytes(rows[i].bytes, rows[i].n, got, NULL));
        assert_string_equal(got, rows[i].want);
    }
}

static void files(void **state) {
    static const size_t sizes[] = {0, 1, 4096, 262144, 262145, 700001};
    static char bytes[700001];
    Random r = test_random(1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char want[SHA256_TEXT], got[SHA256_TEXT];
        for (size_t j = 0; j < sizes[i]; j++) bytes[j] = (char)random_bits(&r);
        scratch_write(*state, "file", bytes, sizes[i]);
        assert_true(sha256_bytes(bytes, sizes[i], want, NULL));
        assert_true(sha256_file(folder_path(*state, "file"), got, NULL));
        assert_string_equal(got, want);
    }
    char out[SHA256_TEXT];
    Error e = {0};
    assert_false(sha256_file(folder_path(*state, "none"), out, &e));
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_non_null(strstr(e.text, "/none'"));
}

// Bytes that this process has mapped.
static rlim_t address_space(void) {
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

// A program with little address space left still has its files' hashes.
static void little_memory(void **state) {
    const char *path = folder_path(*state, "file");
    struct rlimit limit;
    char want[SHA256_TEXT], got[SHA256_TEXT];
    Error e = {0};
    scratch_write(*state, "file", "x", 1);
    assert_int_equal(truncate(path, 64 << 20), 0);
    assert_true(sha256_file(path, want, &e));
    pid_t child = fork();
    if (child == 0) {
        if (getrlimit(RLIMIT_AS, &limit)) _exit(2);
        limit.rlim_cur = address_space() + (32 << 20);
        if (setrlimit(RLIMIT_AS, &limit)) _exit(2);
        if (!sha256_file(path, got, &e)) fprintf(stderr, "%s\n", e.text);
        _exit(e.kind == ERROR_NONE && strcmp(got, want) == 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_vectors),
        cmocka_unit_test_setup_teardown(files, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(little_memory, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
