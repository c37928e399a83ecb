// A CSV of steps: an accepted one can be priced.
#include "simulate/surface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Hardware h = {.name = "fuzz", .bytes_per_s = 1e9, .operations_per_s = 1e10, .memory_bytes = 1e9};
    StepModel m = {.layers = 2, .width = 64, .q_width = 64, .kv_width = 32, .mlp_width = 128, .vocab = 500};
    Surface s;
    Error e = {0};
    hardware_floor(&h);
    h.processors = h.tile_rows = h.tile_columns = h.least_rows = 4;
    m.weight_bytes = m.cache_bytes = 2;
    if (surface_parse((const char *)data, size, "fuzz", &s, &e))
        for (int i = 0; i < s.count; i++) {
            double priced = hardware_price(&h, &m, &s.points[i].step).total;
            demand(isfinite(priced) && priced > 0 && s.points[i].seconds > 0);
        }
    else demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz"));
    surface_release(&s);
    return 0;
}
