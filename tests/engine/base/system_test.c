// Limits of containers, in folders that look like those of the kernel; and that the real ones are read.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include "engine/base/system.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Writes root/path, with the folders on the way.
static void put(const char *root, const char *path, const char *text) {
    char at[512];
    for (const char *p = path; (p = strchr(p, '/')); p++) {
        snprintf(at, sizeof at, "%s/%.*s", root, (int)(p - path), path);
        mkdir(at, 0755);
    }
    scratch_write(root, path, text, strlen(text));
}

static void expect(const char *root, double cores, size_t memory, size_t room) {
    Limits l;
    limits_read(root, &l);
    if (l.cores != cores || l.memory != memory || l.room != room)
        fail_msg("cores, memory, room: wanted %g, %zu, %zu, got %g, %zu, %zu", cores, memory, room, l.cores,
                 l.memory, l.room);
}

static void version_2(void **state) {
    const char *root = *state;
    expect(root, INFINITY, SIZE_MAX, SIZE_MAX); // not even a /proc
    put(root, "proc/self/cgroup", "0::/a/b c/d\n");
    expect(root, INFINITY, SIZE_MAX, SIZE_MAX);
    put(root, "sys/fs/cgroup/a/b c/d/cpu.max", "max 100000\n");
    put(root, "sys/fs/cgroup/a/b c/d/memory.max", "max\n");
    put(root, "sys/fs/cgroup/a/b c/d/memory.current", "100\n");
    expect(root, INFINITY, SIZE_MAX, SIZE_MAX);
    put(root, "sys/fs/cgroup/a/cpu.max", "150000 100000\n"); // of a group above
    put(root, "sys/fs/cgroup/a/memory.max", "5000\n");
    put(root, "sys/fs/cgroup/a/memory.current", "3000\n");
    put(root, "sys/fs/cgroup/a/memory.stat", "anon 900\nfile 1900\ninactive_file 700\nactive_file 300\n");
    expect(root, 1.5, 5000, 3000);
    put(root, "sys/fs/cgroup/a/b c/cpu.max", "200000 100000\n"); // the smallest counts, for each
    put(root, "sys/fs/cgroup/a/b c/memory.max", "4000\n");
    put(root, "sys/fs/cgroup/a/b c/memory.current", "500\n");
    expect(root, 1.5, 4000, 3000);
    put(root, "sys/fs/cgroup/a/b c/memory.current", "9000\n"); // above its limit for a moment
    expect(root, 1.5, 4000, 0);
    put(root, "sys/fs/cgroup/cpu.max", "30000 100000\n"); // a container sees its own group as the root
    expect(root, 0.3, 4000, 0);
}

static void version_1(void **state) {
    const char *root = *state;
    put(root, "proc/self/cgroup",
        "4:memory:/elsewhere/x\n3:cpuset:/y\n2:cpu,cpuacct:/a\n1:name=systemd:/a\nnonsense\n");
    put(root, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
    put(root, "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    put(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); // none
    expect(root, INFINITY, 9223372036854771712u, 9223372036854771712u);
    put(root, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n");
    put(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n"); // the group itself isn't there
    put(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "6000\n");
    put(root, "sys/fs/cgroup/memory/memory.stat", "inactive_file 9\ntotal_inactive_file 1000\n");
    expect(root, 0.5, 7000, 2000);
    put(root, "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "0\n"); // no division by it
    expect(root, INFINITY, 7000, 2000);
}

static void numbers(void **state) {
    (void)state;
    static const char TEXT[] = "MemTotalX: 3\nMemTotal:      24 kB\nMemFree:\nMemAvailable: x\n9";
    assert_int_equal(system_number(TEXT, "MemTotal:", 1), 24);
    assert_int_equal(system_number(TEXT, "MemFree:", 1), 1);
    assert_int_equal(system_number(TEXT, "MemAvailable:", 1), 1);
    assert_int_equal(system_number(TEXT, "Swap:", 1), 1);
    assert_int_equal(system_number("max", "", 1), 1);
    assert_int_equal(system_number("17", "", 1), 17);
}

static void this_machine(void **state) {
    (void)state;
    char text[8];
    system_text("/proc/self/no-such-file", text, sizeof text);
    assert_string_equal(text, "");
    system_text("/proc/meminfo", text, sizeof text);
    assert_int_equal(strlen(text), sizeof text - 1);
    assert_true(system_memory() > 0);
    assert_true(system_processors(3) >= 1 && system_processors(3) <= 3 && system_processors(0) == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(version_2, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(version_1, folder_setup, folder_teardown), cmocka_unit_test(numbers),
        cmocka_unit_test(this_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
