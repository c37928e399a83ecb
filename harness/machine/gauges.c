#include "harness/machine/gauges.h"

#include "engine/base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *known(const char *text) { return text[0] ? text : NULL; }

static void add_name(char *all, size_t size, const char *name) {
    size_t n = strlen(all);
    snprintf(all + n, size - n, "%s%s", n ? " + " : "", name);
}

void gauges_name(const char *device, GaugeNames *g, StoreEnvironment *on) {
    Gauge card;
    *g = (GaugeNames){.names = ""};
    if (!engine_gauge(device, 0, &g->first, NULL)) return;
    for (int i = 0; engine_gauge(device, i, &card, NULL); i++) {
        add_name(g->names, sizeof g->names, card.name);
        add_name(g->uuids, sizeof g->uuids, card.uuid);
        on->gpu_memory = (i ? on->gpu_memory : 0) + (int64_t)card.memory;
    }
    on->gpu = known(g->names);
    on->gpu_uuid = known(g->uuids);
    on->driver = known(g->first.driver);
    on->cuda = known(g->first.runtime);
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
    if (engine_gauge(device, 0, &g, NULL)) {
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

// The i-th of a list.
static void name_card(const char *gpus, int i, char *out, size_t size) {
    while (i-- && *gpus) gpus += strcspn(gpus, ",") + (strchr(gpus, ',') != NULL);
    snprintf(out, size, "%.*s", (int)strcspn(gpus, ","), gpus);
}

bool gauges_reading(const char *gpus, int card, const char *moment, GaugeReading *g, StoreReading *out) {
    if (!engine_gauge(gpus, card, &g->gauge, NULL)) return false;
    name_card(gpus, card, g->device, sizeof g->device);
    *out = (StoreReading){.at = clock_wall(),
                          .moment = moment,
                          .device = g->device,
                          .throttle = known(g->gauge.throttle),
                          .clock_mhz = g->gauge.clock_mhz,
                          .memory_clock_mhz = g->gauge.memory_clock_mhz,
                          .power_w = g->gauge.power_w,
                          .temperature_c = g->gauge.temperature_c,
                          .load = NAN};
    return true;
}
