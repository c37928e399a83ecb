// Opened, asked and closed again each time: it is asked before and after a measurement, never within.
#include "engine/cuda/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// As in NVIDIA's nvml.h. Every call gives 0, or why not.
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, TEMPERATURE_OF_GPU = 0 };
typedef struct Nvml {
    void *library, *device;
    int (*init)(void);
    int (*shutdown)(void);
    int (*find)(const char *uuid, void **device);
    int (*clock)(void *device, int which, unsigned *mhz);
    int (*most_clock)(void *device, int which, unsigned *mhz);
    int (*power)(void *device, unsigned *milliwatts);
    int (*power_limit)(void *device, unsigned *milliwatts);
    int (*temperature)(void *device, int where, unsigned *celsius);
    int (*slowed)(void *device, unsigned long long *reasons);
    int (*driver)(char *text, unsigned size);
} Nvml;

static void *open_library(void) {
    static const char *const places[] = {"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"};
    const char *given = getenv("OUTPACE_NVML");
    void *library = given && *given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !library && !given && i < sizeof places / sizeof *places; i++)
        library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool find_functions(Nvml *n) {
    const struct {
        const char *name;
        void *function; // where its address goes
    } list[] = {
        {"nvmlInit_v2", &n->init},
        {"nvmlShutdown", &n->shutdown},
        {"nvmlDeviceGetHandleByUUID", &n->find},
        {"nvmlDeviceGetClockInfo", &n->clock},
        {"nvmlDeviceGetMaxClockInfo", &n->most_clock},
        {"nvmlDeviceGetPowerUsage", &n->power},
        {"nvmlDeviceGetEnforcedPowerLimit", &n->power_limit},
        {"nvmlDeviceGetTemperature", &n->temperature},
        {"nvmlDeviceGetCurrentClocksThrottleReasons", &n->slowed},
        {"nvmlSystemGetDriverVersion", &n->driver},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        void *symbol = dlsym(n->library, list[i].name);
        if (!symbol) return false;
        memcpy(list[i].function, &symbol, sizeof symbol);
    }
    return true;
}

// Being idle and clocks that somebody has set are no slowing down.
static void write_reasons(unsigned long long bits, char *out, size_t size) {
    static const struct {
        unsigned long long bit;
        const char *name;
    } reasons[] = {
        {0x004, "power cap"},       {0x008, "hardware slowdown"},    {0x020, "heat (software)"},
        {0x040, "heat (hardware)"}, {0x080, "external power brake"}, {0x100, "display clock setting"},
    };
    size_t n = (size_t)snprintf(out, size, "none");
    bool first = true;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (!(bits & reasons[i].bit) || n >= size) continue;
        n = first ? 0 : n;
        n += (size_t)snprintf(out + n, size - n, "%s%s", first ? "" : ", ", reasons[i].name);
        first = false;
    }
}

static void ask(const Nvml *n, Gauge *out) {
    unsigned value;
    unsigned long long reasons;
    if (n->clock(n->device, CLOCK_SM, &value) == 0) out->clock_mhz = value;
    if (n->clock(n->device, CLOCK_MEMORY, &value) == 0) out->memory_clock_mhz = value;
    if (n->most_clock(n->device, CLOCK_SM, &value) == 0) out->most_clock_mhz = value;
    if (n->power(n->device, &value) == 0) out->power_w = value * 1e-3;
    if (n->power_limit(n->device, &value) == 0) out->power_limit_w = value * 1e-3;
    if (n->temperature(n->device, TEMPERATURE_OF_GPU, &value) == 0) out->temperature_c = value;
    if (n->slowed(n->device, &reasons) == 0) write_reasons(reasons, out->throttle, sizeof out->throttle);
}

void nvml_read(const char *uuid, Gauge *out) {
    Nvml n = {.library = open_library()};
    out->clock_mhz = out->memory_clock_mhz = out->most_clock_mhz = NAN;
    out->power_w = out->power_limit_w = out->temperature_c = NAN;
    if (n.library && find_functions(&n) && n.init() == 0) {
        if (n.driver(out->driver, sizeof out->driver)) out->driver[0] = 0;
        if (n.find(uuid, &n.device) == 0) ask(&n, out);
        n.shutdown();
    }
    if (n.library) dlclose(n.library);
}
