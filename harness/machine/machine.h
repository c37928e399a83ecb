// What machine this is and what would spoil a measurement on it: read from the system, never guessed.
//
// What the system does not tell stays empty or 0, and is printed as "unknown".
#pragma once
#include "engine/base/text.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Machine {
    char host[65], system[128], kernel[128]; // "Debian GNU/Linux 12 (bookworm)", "6.1.0-13-amd64"
    char cpu[128];                           // "AMD EPYC"
    char isa[256];                           // those of the features that matter here, space separated
    char governor[32];                       // of the first core
    int cores;                               // that this process may run on
    int cores_present;
    size_t l1d, l2, l3;       // bytes, of the first core
    size_t memory, available; // bytes
    double load;              // runnable processes, one-minute average
    int busy_others;          // processes beside this one that ran in the last moment
    bool virtual_machine;
    const char *refused; // kernels: see engine_kernels_refused
} Machine;

// Fills m from /proc, /sys and what the kernels say. Looks twice, a tenth of a second apart, to see who else
// is running.
void machine_read(Machine *m);

// What tells machines apart, so that the times of one are never taken for another's: processor, features,
// cores and memory. Not the host's name: a container gets a new one with every start.
void machine_name(const Machine *m, Text *out);

// The fields of /proc/cpuinfo's first processor: model name, features, hypervisor. For tests.
void machine_parse_cpuinfo(Machine *m, const char *text);

// One line a warning: governor, load, others running, kernels left out. Gives their number.
int machine_warnings(const Machine *m, Text *out);

json_t *machine_json(const Machine *m); // NULL: no memory

// The most memory that this process has held so far, in bytes; 0 where the system does not say.
size_t machine_peak_memory(void);

// Bytes of this process's memory that lie in huge pages now, mapped files among them; 0 where the system does
// not tell.
size_t machine_huge_pages(void);
