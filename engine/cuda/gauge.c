#include "engine/cuda/cuda.h"

#include "engine/cuda/device.h"
#include "engine/cuda/nvml.h"

#include <stdio.h>

int cuda_count(void) {
    int count;
    return gpu_count(&count) ? 0 : count;
}

bool cuda_absent(void) {
    int count;
    return gpu_count(&count) == 0 && count == 0;
}

bool cuda_gauge(int ordinal, Gauge *out, Error *e) {
    GpuFacts f;
    *out = (Gauge){.throttle = ""};
    if (!device_find(ordinal, &f, e)) return false;
    snprintf(out->name, sizeof out->name, "%s", f.name);
    snprintf(out->uuid, sizeof out->uuid, "%s", f.uuid);
    snprintf(out->runtime, sizeof out->runtime, "%d.%d", f.runtime / 1000, f.runtime % 1000 / 10);
    out->memory = f.total_bytes;
    nvml_read(f.uuid, out);
    return true;
}
