// A paper's published numbers: every accepted cell is a text, or the wrong line is named.
#include "results/published.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

static void check_row(const Published *p, const PublishedRow *r) {
    demand(r->row && r->model && r->dataset && r->task && r->prompts && r->method && r->generation &&
           r->dtype && r->device && r->metric && r->value && r->spread && r->note);
    demand(*r->value && published_metric(p, r->metric));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Published p;
    Error e = {0};
    if (published_parse(&p, "fuzz", (const char *)data, size, &e)) {
        demand(p.title && p.source && p.kind);
        for (size_t i = 0; i < p.row_count; i++) check_row(&p, &p.rows[i]);
        for (int i = 0; i < p.metric_count; i++) demand(p.metrics[i].name && p.metrics[i].measure);
    } else demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz") && !p.rows && !p.bytes);
    published_release(&p);
    return 0;
}
