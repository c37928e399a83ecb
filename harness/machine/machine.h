// The machine: its hardware, its load, its GPUs' gauges, as read from the system and never guessed; and the
// environment of a run, as the store keeps it.
//
// A field that the system does not report is empty or 0, and is printed as "unknown".
#pragma once
#include "engine/base/system.h"
#include "engine/engine.h"
#include "results/record.h"

#include <jansson.h>

typedef struct Machine {
    char host[65], system[128], kernel[128]; // "Debian GNU/Linux 12 (bookworm)", "6.1.0-13-amd64"
    char cpu[128];                           // "AMD EPYC"
    char isa[256];                           // its features that choose kernels, space separated
    char governor[32];                       // of the first core
    int cores;                               // that this process may run on
    int cores_present;
    size_t l1d, l2, l3;       // bytes, of the first core
    size_t memory, available; // bytes; what this process may still take
    Limits limits;            // of its container
    double load;              // runnable processes, one-minute average
    int busy_others;          // other processes that ran in the last moment
    bool virtual_machine;
    int processes;       // that share steps; 0: one
    const char *refused; // kernels: see engine_kernels_refused
} Machine;

// Fills m from /proc, /sys and the kernels. Samples processes twice, a tenth of a second apart, to see which
// others are running.
void machine_read(Machine *m);

// Appends the name that tells machines apart, so that the times of one are never taken for another's:
// processor, features, cores and memory. Not the host's name: a container gets a new one with every start.
void machine_name(const Machine *m, Text *out);

// The fields of /proc/cpuinfo's first processor: model name, features, hypervisor. For tests.
void machine_parse_cpuinfo(Machine *m, const char *text);

// Appends one line per warning (governor, load, other processes, refused kernels).
void machine_warnings(const Machine *m, Text *out);

json_t *machine_json(const Machine *m);

// Bytes of this process: its peak resident memory; its memory in huge pages now, mapped files included. 0 if
// the system does not report them.
size_t machine_peak_memory(void);
size_t machine_huge_pages(void);

// --- GPUs

// Sets the ceilings of the measured device, and the kernels that they were measured with. A GPU's have
// columns of their own, apart from the processor's. peak: the rate for products of the model's type; kernels:
// the open backend's name for its kernels, NULL if none is open. The texts of `on` point into `c` and
// `kernels`.
void gauges_ceilings(const char *device, const Ceilings *c, double peak, const char *kernels,
                     StoreEnvironment *on);

json_t *gauges_json(const Gauge *g); // null for each field that the GPU does not report

typedef struct GaugeReading {
    Gauge gauge;
    char device[24];
} GaugeReading;

// Reads card number `card` of these GPUs (engine_list_gpus); false if there are fewer. The texts of `out`
// point into `g` and `moment`.
bool gauges_reading(const char *gpus, int card, const char *moment, GaugeReading *g, StoreReading *out);

// --- the environment of a run

typedef struct Environment {
    StoreEnvironment on;          // its texts point into the machine and into the fields below
    Gauge gpu;                    // the first
    char gpus[1024], uuids[1024]; // of all cards of a device, "one + other" if there are several
    char *libraries;              // a JSON object
} Environment;

// This build, its libraries, the machine, and the GPUs of `device` (NULL: none). `out` may not move while its
// texts are used.
void environment_open(Environment *out, const Machine *m, const char *device);
void environment_release(Environment *v);
