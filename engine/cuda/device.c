// The devices that CUDA sees, and the reports of the driver and NVIDIA's management library (NVML) on one.
// NVML is a table of functions, found at run time: it's opened, read and closed again for each reading, which
// happens before and after a measurement, never within one.
#include "engine/cuda/device.h"

#include "engine/cuda/cuda.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_MAJOR = 8 }; // bf16 on tensor cores, asynchronous copies

// A driver runs programs built for its own major version of CUDA or for an older one.
static bool driver_fails(int ordinal, int code, Error *e) {
    int driver, runtime;
    if (gpu_versions(&driver, &runtime) == 0 && driver / 1000 < runtime / 1000)
        return error_system(
            e,
            "cuda:%d: the NVIDIA driver here is for CUDA %d.%d, this build needs one for %d: update it "
            "(%s or later), or install cuda-compat-%d-%d (data-centre cards)%s; --device cpu runs on the CPU",
            ordinal, driver / 1000, driver % 1000 / 10, runtime / 1000, runtime < 13000 ? "525" : "580",
            runtime / 1000, runtime % 1000 / 10,
            driver >= 12000 ? ", or build with CUDA 12 (make NVCC=/path/to/nvcc)" : "");
    return error_system(e, "cuda:%d: the NVIDIA driver does not answer: %s", ordinal, gpu_error(code));
}

bool device_find(int ordinal, GpuFacts *out, Error *e) {
    int count, code = gpu_count(&count);
    if (code) return driver_fails(ordinal, code, e);
    if (count == 0)
        return error_system(
            e, "cuda:%d: this machine has no NVIDIA GPU, or no driver for it; --device cpu runs on the CPU",
            ordinal);
    if (ordinal >= count)
        return error_input(e, "cuda:%d: this machine has %d NVIDIA GPU%s, from cuda:0 on", ordinal, count,
                           count > 1 ? "s" : "");
    code = gpu_use(ordinal);
    if (!code) code = gpu_facts(ordinal, out);
    if (code) return error_system(e, "cuda:%d: cannot be used: %s", ordinal, gpu_error(code));
    return out->major >= LEAST_MAJOR || error_input(e,
                                                    "cuda:%d: '%s' is of compute capability %d.%d, at least "
                                                    "%d.0 is needed; --device cpu runs on the CPU",
                                                    ordinal, out->name, out->major, out->minor, LEAST_MAJOR);
}

CardCode device_code(const char *codes, int major, int minor) {
    static const char MACHINE[] = "sm_", PTX[] = "compute_";
    int card = major * 10 + minor;
    CardCode best = {.compiles = true};
    for (const char *p = codes; *p; p += strcspn(p, " "), p += strspn(p, " ")) {
        bool ptx = strncmp(p, PTX, sizeof PTX - 1) == 0;
        char *end;
        int version = (int)strtol(p + (ptx ? sizeof PTX : sizeof MACHINE) - 1, &end, 10);
        bool runs = *end == 'a' ? version == card : version <= card && (ptx || version / 10 == major);
        if (runs && (ptx ? best.compiles && version > best.version : best.compiles || version > best.version))
            best = (CardCode){version, ptx};
    }
    return best;
}

static void write_code(const GpuFacts *f, Gauge *out) {
    CardCode c = device_code(gpu_codes(), f->major, f->minor);
    out->compiles = c.version && c.compiles;
    if (!c.version) snprintf(out->code, sizeof out->code, "none for %d.%d", f->major, f->minor);
    else
        snprintf(out->code, sizeof out->code, "%s for %d.%d", c.compiles ? "PTX" : "machine code",
                 c.version / 10, c.version % 10);
}

int cuda_count(void) {
    int count;
    return gpu_count(&count) ? 0 : count;
}

bool cuda_absent(void) {
    int count;
    return gpu_count(&count) == 0 && count == 0;
}

bool cuda_usable(int ordinal, Error *e) {
    GpuFacts facts;
    return device_find(ordinal, &facts, e);
}

// The word is that of overflows.
bool device_compare_bits(Cuda *c, Error *e) {
    static const char WHAT[] = "its multiplications cannot be compared";
    if (c->compute == COMPUTE_F32 || !gpu_has_warpgroups()) return true;
    gpu_fill(c->overflow, 0, sizeof *c->overflow, c->stream);
    gpu_compare_bits(c->overflow, c->stream);
    if (!cuda_ok(c, gpu_launched(), WHAT, e) ||
        !cuda_ok(c, gpu_copy(c->host_overflow, c->overflow, sizeof *c->overflow, c->stream), WHAT, e) ||
        !cuda_ok(c, gpu_fill(c->overflow, 0xff, sizeof *c->overflow, c->stream), WHAT, e) ||
        !cuda_ok(c, gpu_stream_wait(c->stream), WHAT, e))
        return false;
    c->facts.wgmma_differs = *c->host_overflow != 0;
    return true;
}

// --- gauges

// The numbers are those of NVIDIA's nvml.h. Every call returns 0 or an error code.
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

// Idle and user-set clocks are not throttling.
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

static void read_gauges(const Nvml *n, Gauge *out) {
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
    static const char *const places[] = {"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"};
    const char *given = getenv("OUTPACE_NVML");
    Nvml n = {.library = given && *given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : NULL};
    for (size_t i = 0; !n.library && !given && i < sizeof places / sizeof *places; i++)
        n.library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    out->clock_mhz = out->memory_clock_mhz = out->most_clock_mhz = NAN;
    out->power_w = out->power_limit_w = out->temperature_c = NAN;
    if (n.library && find_functions(&n) && n.init() == 0) {
        if (n.driver(out->driver, sizeof out->driver)) out->driver[0] = 0;
        if (n.find(uuid, &n.device) == 0) read_gauges(&n, out);
        n.shutdown();
    }
    if (n.library) dlclose(n.library);
}

bool cuda_gauge(int ordinal, Gauge *out, Error *e) {
    GpuFacts f;
    *out = (Gauge){.throttle = ""};
    if (!device_find(ordinal, &f, e)) return false;
    snprintf(out->name, sizeof out->name, "%s", f.name);
    snprintf(out->uuid, sizeof out->uuid, "%s", f.uuid);
    snprintf(out->runtime, sizeof out->runtime, "%d.%d", f.runtime / 1000, f.runtime % 1000 / 10);
    out->memory = f.total_bytes;
    write_code(&f, out);
    nvml_read(f.uuid, out);
    return true;
}
