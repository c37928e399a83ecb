#include "harness/machine/gauges.h"

#include "engine/base/clock.h"

#include <math.h>
#include <string.h>

static const char *known(const char *text) { return text[0] ? text : NULL; }

void gauges_name(const char *device, Gauge *g, StoreEnvironment *on) {
    if (!engine_gauge(device, g, NULL)) return;
    on->gpu = known(g->name);
    on->gpu_uuid = known(g->uuid);
    on->driver = known(g->driver);
    on->cuda = known(g->runtime);
    on->gpu_memory = (int64_t)g->memory;
}

// "sm_90, cuBLASLt 13.1.0"
static const char *library_of(const char *kernels) {
    static const char NAME[] = "cuBLASLt ";
    const char *at = kernels ? strstr(kernels, NAME) : NULL;
    return at ? at + sizeof NAME - 1 : NULL;
}

void gauges_ceilings(const char *device, const Ceilings *c, double peak, const char *kernels,
                     StoreEnvironment *on) {
    Gauge g;
    if (engine_gauge(device, &g, NULL)) {
        on->cublas = library_of(kernels);
        on->gpu_bandwidth = c->bytes_per_s;
        on->gpu_peak = peak;
        return;
    }
    on->isa = c->isa;
    on->threads = c->threads;
    on->bandwidth = c->bytes_per_s;
    on->peak = peak;
}

static void set_text(json_t *o, const char *key, const char *text) {
    json_object_set_new(o, key, text[0] ? json_string(text) : json_null());
}

static void set_number(json_t *o, const char *key, double x) {
    json_object_set_new(o, key, isnan(x) ? json_null() : json_real(x));
}

json_t *gauges_json(const Gauge *g) {
    json_t *o = json_object();
    set_text(o, "name", g->name);
    set_text(o, "uuid", g->uuid);
    set_text(o, "driver", g->driver);
    set_text(o, "cuda", g->runtime);
    set_text(o, "throttle", g->throttle);
    json_object_set_new(o, "memory_bytes", json_integer((json_int_t)g->memory));
    set_number(o, "clock_mhz", g->clock_mhz);
    set_number(o, "most_clock_mhz", g->most_clock_mhz);
    set_number(o, "memory_clock_mhz", g->memory_clock_mhz);
    set_number(o, "power_w", g->power_w);
    set_number(o, "power_limit_w", g->power_limit_w);
    set_number(o, "temperature_c", g->temperature_c);
    return o;
}

bool gauges_reading(const char *device, const char *moment, Gauge *g, StoreReading *out) {
    if (!engine_gauge(device, g, NULL)) return false;
    *out = (StoreReading){.at = clock_wall(),
                          .moment = moment,
                          .device = device,
                          .throttle = known(g->throttle),
                          .clock_mhz = g->clock_mhz,
                          .memory_clock_mhz = g->memory_clock_mhz,
                          .power_w = g->power_w,
                          .temperature_c = g->temperature_c,
                          .load = NAN};
    return true;
}
