// The environment of a run, as the store keeps it: this build and its libraries, this machine, its GPUs.
#pragma once
#include "harness/machine/machine.h"
#include "harness/machine/gauges.h"
#include "results/record.h"

typedef struct Environment {
    StoreEnvironment on; // its texts point into the machine and into what follows
    GaugeNames gpus;
    char *libraries;
} Environment;

// `out` may not move while its texts are used. device: the GPUs that it is about; none if NULL, or
// if the device says nothing of itself.
bool environment_open(Environment *out, const Machine *m, const char *device, Error *e);
void environment_release(Environment *v);
