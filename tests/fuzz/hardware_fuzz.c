// A machine's file: an accepted one prices any step, and is the same machine when it's written and read
// again.
#include "simulate/hardware.h"

#include "engine/base/memory.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

static void check_price(const Hardware *h, const StepPlan *step) {
    const StepModel m = {.layers = 2,
                         .width = 64,
                         .q_width = 64,
                         .kv_width = 32,
                         .mlp_width = 128,
                         .vocab = 500,
                         .weight_bytes = 2,
                         .cache_bytes = 2};
    double total = hardware_price(h, &m, step).total;
    demand(isfinite(total) && total >= 0);
}

static void check_written(const Hardware *h) {
    Hardware again;
    Error e = {0};
    char *text = hardware_write(h, "sheet", "reached");
    demand(text && hardware_parse(text, strlen(text), "again", &again, &e));
    demand(strcmp(again.name, h->name) == 0 && again.bytes_per_s == h->bytes_per_s &&
           again.processors == h->processors && again.least_rows == h->least_rows &&
           again.step_s == h->step_s && again.overlap == h->overlap && again.most_rows == h->most_rows &&
           again.head_width == h->head_width);
    mem_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Hardware h;
    Error e = {0};
    if (hardware_parse((const char *)data, size, "fuzz", &h, &e)) {
        const StepPlan one = step_chain(1, 100), tree = step_tree(10, 10, 1000),
                       batch = step_batch(10, 10, 9);
        demand(hardware_check(&h, &e));
        check_price(&h, &one);
        check_price(&h, &tree);
        check_price(&h, &batch);
        check_written(&h);
    } else demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz") && !strchr(e.text, '\n'));
    return 0;
}
