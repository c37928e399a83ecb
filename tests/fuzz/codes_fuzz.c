// A safetensors file whose matrices are codes, in each form that we read: whatever binds has finite values
// that are read inside the file. The first byte chooses the form, the rest is the file.
#include "engine/base/memory.h"
#include "engine/model/config.h"
#include "engine/model/model.h"
#include "engine/model/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

static const struct {
    bool unfused;
    int group; // of quantise.h
    Packing packing;
    const char *type;
} FORMS[] = {
    {true, 32, {.form = PACKED_NOT}, "llama"},
    {false, 0, {PACKED_AWQ, 4, 32, false, false}, "llama"},
    {false, 0, {PACKED_AWQ, 4, 0, false, false}, "phi3"},
    {false, 0, {PACKED_GPTQ, 4, 32, true, false}, "llama"},
    {false, 0, {PACKED_GPTQ, 4, 8, false, true}, "phi3"},
    {false, 0, {PACKED_GPTQ, 8, 32, true, false}, "llama"},
    {false, 0, {PACKED_TENSORS, 4, 32, false, false}, "llama"},
    {false, 0, {PACKED_TENSORS, 8, 16, false, false}, "llama"},
};
enum { FORM_COUNT = sizeof FORMS / sizeof *FORMS, WIDTH = 32 };

static void check_values(const Tensor *t) {
    if (t->codes.bits) {
        demand(t->dtype == DTYPE_BF16 && t->codes.scales && t->columns % t->codes.group == 0);
        demand(tensor_bad_scale(t) == (size_t)(t->rows * (t->columns / t->codes.group)));
    }
    for (int r = 0; r < t->rows; r++)
        for (int k = 0; k < t->columns; k++) {
            float x = tensor_value(t, (size_t)r, (size_t)k);
            if (t->codes.bits) demand(isfinite(x) && (x == 0 || fabsf(x) >= 0x1p-126f));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Safetensors s;
    Error e = {0};
    if (size < 1) return 0;
    int form = data[0] % FORM_COUNT;
    const char *type = FORMS[form].type;
    uint8_t *file = mem_new(size, 1); // the tensors begin as far from a cache line as in a file
    memcpy(file, data + 1, size - 1);
    if (safetensors_parse(file, size - 1, "fuzz", &s, &e)) {
        Model m = {.shape = {.layers = 1,
                             .width = WIDTH,
                             .heads = 1,
                             .kv_heads = 1,
                             .head_dim = WIDTH,
                             .mlp_width = WIDTH,
                             .vocab = 2,
                             .tied_head = true},
                   .unfused = FORMS[form].unfused,
                   .group = FORMS[form].group,
                   .packing = FORMS[form].packing};
        ModelWeights weights = {.dir = mem_text("dir", 3)};
        memcpy(m.architecture, type, strlen(type));
        Shard shard = {s, file, "shard"};
        weights_take_layers(&m, &weights);
        if (weights_bind(&m, &weights, &shard, 1, "dir", &e)) {
            model_check_finite(&m, &weights, &e);
            for (int i = 0; i < weights_count(&m); i++) {
                WeightSpec w = weights_at(&m, i);
                if (w.name[0]) check_values(weight_tensor(&m, w.layer, w.expert, w.which));
            }
        } else demand(e.kind == ERROR_INPUT && e.text[0]);
        model_close(&weights);
        safetensors_release(&s);
    }
    mem_free(file);
    return 0;
}
