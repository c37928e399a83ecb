#include "tests/support/check.h"

#include "harness/machine/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static const char CPUINFO[] = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Some CPU @ 2.10GHz\n"
                              "flags\t\t: fpu avx avx2x avx2 fma avx512f hypervisor amx_bf16\nbugs\t\t:\n\n"
                              "processor\t: 1\nmodel name\t: Another\nflags\t\t: amx_int8\n";

static void cpuinfo(void **state) {
    (void)state;
    Machine m = {0};
    machine_parse_cpuinfo(&m, CPUINFO);
    assert_string_equal(m.cpu, "Some CPU @ 2.10GHz");
    assert_string_equal(m.isa, "avx2 fma avx512f amx_bf16"); // whole words of the first processor only
    assert_true(m.virtual_machine);
    machine_parse_cpuinfo(&m, "flags: avx2x");
    assert_string_equal(m.cpu, "");
    assert_string_equal(m.isa, "");
    machine_parse_cpuinfo(&m, "");
    assert_false(m.virtual_machine);
    machine_parse_cpuinfo(&m, "Features\t: fp asimd i8mm bf16\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
    assert_string_equal(m.cpu, "Arm, implementer 0x41, part 0xd4f");
    assert_string_equal(m.isa, "asimd bf16");
}

static void this_machine(void **state) {
    (void)state;
    Machine m;
    machine_read(&m);
    assert_in_range(m.cores, 1, m.cores_present);
    assert_true(m.memory > m.available && m.available > 0);
    assert_true(strlen(m.kernel) > 0);
    json_t *j = machine_json(&m);
    assert_non_null(j);
    assert_int_equal(json_integer_value(json_object_get(j, "cores")), m.cores);
    json_decref(j);
}

static int warned(const Machine *m, Text *out) {
    int lines = 0;
    machine_warnings(m, out);
    for (const char *c = text_get(out); *c; c++) lines += *c == '\n';
    return lines;
}

static void warnings(void **state) {
    (void)state;
    Machine m = {.cores = 2, .cores_present = 2, .governor = "performance"};
    Text t = {0};
    assert_int_equal(warned(&m, &t), 0);
    assert_int_equal(t.length, 0);
    m = (Machine){.cores = 1,
                  .cores_present = 2,
                  .governor = "powersave",
                  .busy_others = 1,
                  .load = 3,
                  .virtual_machine = true};
    assert_int_equal(warned(&m, &t), 5);
    assert_non_null(strstr(text_get(&t), "powersave"));
    assert_non_null(strstr(text_get(&t), "1 other process used the processor just now: stop them, go before "
                                         "them by 'chrt -f 10' (as root), leave them a core by --threads 1"));
    text_clear(&t);
    m = (Machine){.cores = 2, .cores_present = 2, .refused = "kernels left out"};
    assert_int_equal(warned(&m, &t), 1);
    assert_string_equal(text_get(&t), "kernels left out\n");
    text_clear(&t);
    m = (Machine){.cores = 2, .cores_present = 2, .limits.cores = 2};
    assert_int_equal(warned(&m, &t), 0);
    m.limits.cores = 1.5;
    assert_int_equal(warned(&m, &t), 1);
    assert_non_null(strstr(text_get(&t), "the time of 1.5 cores"));
    text_release(&t);
}

// The same, mapping by mapping.
static size_t huge_by_mapping(void) {
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    size_t sum = 0, kilobytes;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "AnonHugePages: %zu", &kilobytes) == 1 ||
            sscanf(line, "FilePmdMapped: %zu", &kilobytes) == 1 ||
            sscanf(line, "ShmemPmdMapped: %zu", &kilobytes) == 1)
            sum += kilobytes << 10;
    if (f) fclose(f);
    return sum;
}

static void huge_pages(void **state) {
    (void)state;
    enum { SIZE = 32 << 20 };
    size_t before = machine_huge_pages();
    char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    madvise(p, SIZE, MADV_HUGEPAGE);
    memset(p, 1, SIZE);
    size_t with = machine_huge_pages();
    assert_int_equal(with, huge_by_mapping());
    assert_true(with >= before && with - before <= SIZE);
    munmap(p, SIZE);
    assert_int_equal(machine_huge_pages(), before);
    if (with == before) skip(); // none on this machine, or none free
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpuinfo),
        cmocka_unit_test(this_machine),
        cmocka_unit_test(warnings),
        cmocka_unit_test(huge_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
