#include "engine/cpu/cores.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

// The lowest processor that shares a core with this one; itself where the system does not say.
static int first_sibling(int cpu) {
    char path[96];
    int first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "re");
    if (!f) return cpu;
    if (fscanf(f, "%d", &first) != 1) first = cpu;
    fclose(f);
    return first;
}

// Where any thread of this process may run: the calling one may stay on one processor, kept there by a pool.
static void find_allowed(cpu_set_t *allowed) {
    if (sched_getaffinity(0, sizeof *allowed, allowed) != 0) CPU_ZERO(allowed);
    DIR *threads = opendir("/proc/self/task");
    if (!threads) return;
    for (struct dirent *d; (d = readdir(threads));) {
        cpu_set_t one;
        int id = (int)strtol(d->d_name, NULL, 10);
        if (id > 0 && sched_getaffinity(id, sizeof one, &one) == 0) CPU_OR(allowed, allowed, &one);
    }
    closedir(threads);
}

void cores_find(Cores *c) {
    cpu_set_t allowed;
    bool seen[CORES_MAX] = {false}, second[CORES_MAX] = {false};
    *c = (Cores){.count = 0};
    find_allowed(&allowed);
    for (int i = 0; i < CORES_MAX; i++) {
        if (!CPU_ISSET((size_t)i, &allowed)) continue;
        int core = first_sibling(i);
        second[i] = core >= 0 && core < CORES_MAX && seen[core];
        if (core >= 0 && core < CORES_MAX) seen[core] = true;
        if (!second[i]) c->number[c->count++] = i;
    }
    c->physical = c->count;
    for (int i = 0; i < CORES_MAX; i++)
        if (second[i]) c->number[c->count++] = i;
    if (c->count == 0) *c = (Cores){.count = 1, .physical = 1};
}

bool cores_pin(int number) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)number, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}
