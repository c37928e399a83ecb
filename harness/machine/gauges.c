#include "harness/machine/gauges.h"

#include "engine/base/clock.h"

#include <math.h>

static const char *known(const char *text) { return text[0] ? text : NULL; }

void gauges_name(const char *device, Gauge *g, StoreEnvironment *on) {
    if (!engine_gauge(device, g, NULL)) return;
    on->gpu = known(g->name);
    on->gpu_uuid = known(g->uuid);
    on->driver = known(g->driver);
    on->cuda = known(g->runtime);
    on->gpu_memory = (int64_t)g->memory;
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
