#include "tests/support/check.h"

#include "engine/base/memory.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// AddressSanitizer gives up on huge sizes unless told that NULL will do.
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

__extension__ typedef unsigned __int128 Wide;

static void checked_sizes(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int i = 0; i < 200000; i++) {
        size_t a = random_bits(&r) >> test_between(&r, 0, 63), b = random_bits(&r) >> test_between(&r, 0, 63);
        size_t out = 12345;
        Wide product = (Wide)a * b, sum = (Wide)a + b;
        assert_int_equal(size_mul(a, b, &out), product <= SIZE_MAX);
        assert_int_equal(out, product <= SIZE_MAX ? (size_t)product : 12345);
        out = 12345;
        assert_int_equal(size_add(a, b, &out), sum <= SIZE_MAX);
        assert_int_equal(out, sum <= SIZE_MAX ? (size_t)sum : 12345);
    }
    size_t same = 3;
    assert_true(size_mul(same, 5, &same)); // *out may be one of the factors
    assert_int_equal(same, 15);
}

static void too_large(void **state) {
    (void)state;
    for (size_t below = 0; below < 300; below++)
        assert_null(mem_try(SIZE_MAX - below, 1)); // the padding wraps
    assert_null(mem_try(SIZE_MAX / 2, 1));
    assert_null(mem_try(SIZE_MAX / 2, 3)); // the product wraps
    assert_null(mem_try((size_t)1 << 32, (size_t)1 << 32));
}

// What cannot be had ends the program: one line, code 1.
static void check_end(void (*ask)(void), const char *line) {
    int ends[2], code;
    char text[200] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        ask();
        _exit(0);
    }
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 1);
    assert_string_equal(text, line);
}

static void ask_much(void) { mem_new((size_t)1 << 60, 2); }
static void ask_more(void) { mem_new(SIZE_MAX / 2, 3); }
static void copy_much(void) { mem_text("x", SIZE_MAX); } // the NUL behind it wraps
static void grow_much(void) {
    char *p = NULL;
    size_t capacity = 0;
    mem_grow(&p, &capacity, SIZE_MAX, 1);
}

static void exhausted(void **state) {
    (void)state;
    check_end(ask_much, "outpace: out of memory: 2.31e+12 MB wanted\n");
    check_end(ask_more, "outpace: out of memory\n");
    check_end(copy_much, "outpace: out of memory\n");
    check_end(grow_much, "outpace: out of memory\n");
}

static bool all_zero(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i]) return false;
    return true;
}

// Aligned, zero, apart from each other, and writable to the last byte.
static void blocks(void **state) {
    (void)state;
    enum { KEPT = 64, MOST = 5000 };
    Random r = test_random(2);
    struct {
        unsigned char *p, mark;
        size_t n;
    } kept[KEPT] = {0};
    size_t before = mem_in_use();
    for (int round = 0; round < 20000; round++) {
        int i = test_between(&r, 0, KEPT - 1);
        for (size_t j = 0; j < kept[i].n; j++) assert_int_equal(kept[i].p[j], kept[i].mark);
        mem_free(kept[i].p);
        size_t count = random_below(&r, MOST >> test_between(&r, 0, 12)), size = random_below(&r, 4);
        unsigned char *p = mem_try(count, size), mark = (unsigned char)test_between(&r, 1, 255);
        assert_non_null(p); // also for nothing
        assert_int_equal((size_t)p % 64, 0);
        assert_true(all_zero(p, count * size));
        memset(p, mark, count * size);
        kept[i].p = p, kept[i].mark = mark, kept[i].n = count * size;
        size_t least = 0;
        for (int j = 0; j < KEPT; j++) least += kept[j].n;
        assert_in_range(mem_in_use() - before, least, least + KEPT * 128);
    }
    for (int i = 0; i < KEPT; i++) mem_free(kept[i].p);
    mem_free(NULL);
    assert_int_equal(mem_in_use(), before);
}

static void growth(void **state) {
    (void)state;
    Random r = test_random(3);
    for (int round = 0; round < 300; round++) {
        char *p = NULL;
        size_t capacity = 0, size = (size_t)test_between(&r, 1, 9), need = 0;
        for (int step = 0; step < 12; step++) {
            size_t before = capacity;
            char *was = p;
            need = random_below(&r, 1u << test_between(&r, 0, 12));
            mem_grow(&p, &capacity, need, size);
            assert_true(capacity >= need);
            if (need <= before) assert_true(p == was && capacity == before);
            else assert_true(capacity >= 2 * before);
            for (size_t i = 0; i < before * size; i++) assert_int_equal(((unsigned char *)p)[i], i % 251 + 1);
            assert_true(capacity == 0 ||
                        all_zero((unsigned char *)p + before * size, (capacity - before) * size));
            for (size_t i = 0; i < capacity * size; i++)
                ((unsigned char *)p)[i] = (unsigned char)(i % 251 + 1);
        }
        mem_free(p);
    }
}

static void texts(void **state) {
    (void)state;
    char *copy = mem_text("a\0b", 3), *empty = mem_text(NULL, 0);
    assert_memory_equal(copy, "a\0b", 4);
    assert_string_equal(empty, "");
    mem_free(copy);
    mem_free(empty);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checked_sizes), cmocka_unit_test(too_large), cmocka_unit_test(exhausted),
        cmocka_unit_test(blocks),        cmocka_unit_test(growth),    cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
