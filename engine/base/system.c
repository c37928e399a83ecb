// Groups are looked for where every distribution mounts them: below /sys/fs/cgroup, with version 1 in a
// folder for each controller. A container often sees its own group as the root, whatever /proc/self/cgroup
// calls it: so folders on the way that don't exist are passed over, and the root counts, too.
#include "engine/base/system.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_FILE = 8192, PATH_SIZE = 1024 };

void system_text(const char *path, char *out, size_t size) {
    out[0] = 0;
    FILE *f = fopen(path, "re");
    if (!f) return;
    size_t n = fread(out, 1, size - 1, f);
    fclose(f);
    while (n && isspace((unsigned char)out[n - 1])) n--;
    out[n] = 0;
}

size_t system_number(const char *text, const char *key, size_t none) {
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *after = line + n;
        if (strncmp(line, key, n) != 0 || (n && !isblank((unsigned char)*after))) continue;
        after += strspn(after, " \t");
        return isdigit((unsigned char)*after) ? (size_t)strtoull(after, NULL, 10) : none;
    }
    return none;
}

static void text_in(const char *folder, const char *name, char *out, size_t size) {
    char path[PATH_SIZE + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    system_text(path, out, size);
}

static size_t number_in(const char *folder, const char *name) {
    char text[64];
    text_in(folder, name, text, sizeof text);
    return system_number(text, "", SIZE_MAX); // "max" is none
}

// Microseconds of processor time in each period of so many.
static void limit_cores(Limits *l, double quota, double period) {
    if (quota > 0 && period > 0) l->cores = fmin(l->cores, quota / period);
}

// Pages of files are dropped before a process is killed.
static void limit_memory(Limits *l, const char *folder, const char *most, const char *used,
                         const char *kind) {
    char text[SMALL_FILE], key[64];
    size_t limit = number_in(folder, most), taken = number_in(folder, used), files = 0;
    if (limit == SIZE_MAX) return;
    text_in(folder, "memory.stat", text, sizeof text);
    for (int active = 0; active < 2; active++) {
        snprintf(key, sizeof key, "%s%s_file", kind, active ? "active" : "inactive");
        files += system_number(text, key, 0);
    }
    taken = taken == SIZE_MAX ? 0 : taken > files ? taken - files : 0;
    size_t room = limit > taken ? limit - taken : 0;
    if (limit < l->memory) l->memory = limit;
    if (room < l->room) l->room = room;
}

// A group of either version has only its own version's files.
static void limit_by(Limits *l, const char *folder) {
    char text[64];
    double quota, period;
    text_in(folder, "cpu.max", text, sizeof text);
    if (sscanf(text, "%lf %lf", &quota, &period) == 2) limit_cores(l, quota, period);
    text_in(folder, "cpu.cfs_quota_us", text, sizeof text);
    if (sscanf(text, "%lf", &quota) == 1) {
        size_t length = number_in(folder, "cpu.cfs_period_us");
        limit_cores(l, quota, length == SIZE_MAX ? 0 : (double)length);
    }
    limit_memory(l, folder, "memory.max", "memory.current", "");
    limit_memory(l, folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_");
}

// The group below `mount`, and all above it.
static void climb(Limits *l, const char *root, const char *mount, const char *group) {
    char folder[PATH_SIZE];
    int length = snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s%s", root, mount, group);
    size_t top = strlen(root) + strlen("/sys/fs/cgroup") + strlen(mount);
    if (length < 0 || (size_t)length >= sizeof folder) folder[top < sizeof folder ? top : 0] = 0;
    for (char *end = folder + strlen(folder);;) {
        while (end > folder + top && end[-1] == '/') *--end = 0;
        limit_by(l, folder);
        if (end <= folder + top) return;
        while (end > folder + top && *end != '/') end--;
        *end = 0;
    }
}

// Whether a list like "cpu,cpuacct", of n bytes, has the name.
static bool lists(const char *list, size_t n, const char *name) {
    for (size_t at = 0; at < n;) {
        size_t length = strcspn(list + at, ",:");
        if (length == strlen(name) && strncmp(list + at, name, length) == 0) return true;
        at += length + 1;
    }
    return false;
}

// A line of /proc/self/cgroup is "number:controllers:group", without controllers for version 2.
void limits_read(const char *root, Limits *out) {
    char path[PATH_SIZE], text[SMALL_FILE], *rest = text;
    *out = (Limits){.cores = INFINITY, .memory = SIZE_MAX, .room = SIZE_MAX};
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    system_text(path, text, sizeof text);
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        size_t n = (size_t)(group++ - ++controllers);
        if (n == 0) {
            climb(out, root, "", group);
            climb(out, root, "/unified", group);
        }
        if (lists(controllers, n, "cpu")) climb(out, root, "/cpu", group);
        if (lists(controllers, n, "memory")) climb(out, root, "/memory", group);
    }
}

int system_processors(int present) {
    Limits l;
    limits_read("", &l);
    if (l.cores < present) present = (int)l.cores;
    return present < 1 ? 1 : present;
}

size_t system_memory(void) {
    char text[SMALL_FILE];
    Limits l;
    limits_read("", &l);
    system_text("/proc/meminfo", text, sizeof text);
    size_t free_kb = system_number(text, "MemAvailable:", 0);
    return free_kb << 10 < l.room ? free_kb << 10 : l.room;
}
