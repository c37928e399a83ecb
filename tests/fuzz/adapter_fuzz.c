// The config.json of an adapter: an accepted one fits its target, and every one of its weights has a size.
#include "engine/model/adapter.h"

#include "engine/base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

static void check_weights(const Adapter *a, const Model *target, int part) {
    WeightSpec specs[WEIGHTS];
    bool block = a->kind.variant == ADAPTER_DFLASH;
    const Shape *s = &a->models[block ? 0 : part].shape;
    demand(s->layers == (block ? a->kind.layers : 1));
    demand(s->heads % s->kv_heads == 0 && s->width == target->shape.width);
    adapter_weights(a->kind.variant, s, part, specs);
    for (int i = 0; i < WEIGHTS; i++)
        demand(!specs[i].name[0] || (specs[i].rows > 0 && specs[i].columns > 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const Model target = {
        .shape = {.layers = 8,
                  .width = 8,
                  .heads = 4,
                  .kv_heads = 2,
                  .head_dim = 2,
                  .mlp_width = 6,
                  .vocab = 10,
                  .real_vocab = 10,
                  .context = 16,
                  .norm_epsilon = 1e-5f},
    };
    char folder[] = "/tmp/outpace-fuzz-XXXXXX", path[sizeof folder + 16];
    Adapter a;
    Error e = {0};
    if (size == 0 || data[0] != '{') return 0; // no object, whose refusal needs no file
    demand(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *f = fopen(path, "w");
    demand(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
    if (adapter_open_config(&a, &target, folder, &e)) {
        demand(adapter_check(&a.kind, &target, "fuzz", &e));
        for (int i = 0; i < adapter_parts(&a.kind); i++) check_weights(&a, &target, i);
    } else demand(e.kind == ERROR_INPUT && strstr(e.text, path) && !strchr(e.text, '\n'));
    adapter_close(&a);
    unlink(path);
    rmdir(folder);
    return 0;
}
