// A safetensors file: whatever is taken tiles its data exactly, and a model bound to it reads nothing else.
#include "engine/base/memory.h"
#include "engine/model/config.h"
#include "engine/model/model.h"
#include "engine/model/weights.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PREFIX = 8, DATA = 96 };

static void demand(bool holds) {
    if (!holds) abort();
}

// The bytes of its shape; a dtype has its bits in its name.
static size_t shape_bytes(const StoredTensor *t) {
    const char *bits = strpbrk(t->dtype, "0123456789");
    size_t bytes = bits ? strtoul(bits, NULL, 10) / 8 : 1; // BOOL
    for (int i = 0; i < t->rank; i++) {
        demand(t->dims[i] >= 0 && !__builtin_mul_overflow(bytes, (size_t)t->dims[i], &bytes));
    }
    return bytes;
}

// Sorted by name, inside the file, and together as large as the data.
static void check_tensors(const Safetensors *s, size_t size) {
    size_t bytes = 0, start = size;
    for (size_t i = 0; i < s->count; i++) {
        const StoredTensor *t = &s->tensors[i];
        demand(t->begin <= t->end && t->end <= size && t->begin >= PREFIX);
        demand(t->rank >= 0 && t->rank <= TENSOR_MAX_RANK && strlen(t->name) < TENSOR_NAME);
        demand(t->end - t->begin == shape_bytes(t));
        demand(i == 0 || strcmp(t[-1].name, t->name) < 0);
        demand(safetensors_find(s, t->name) == t);
        bytes += t->end - t->begin;
        if (t->begin < start) start = t->begin;
    }
    demand(bytes == size - start);
}

// A model so small that an input may well hold all of it: 2 wide, one layer, one head, head and embedding
// tied.
static void bind(const Safetensors *s, const uint8_t *data, const char *type) {
    LayerWeights layer = {.w[W_Q].data = NULL};
    Model m = {.shape = {.layers = 1,
                         .width = 2,
                         .heads = 1,
                         .kv_heads = 1,
                         .head_dim = 2,
                         .mlp_width = 1,
                         .vocab = 2,
                         .tied_head = true},
               .layers = &layer};
    ModelWeights weights = {.dir = mem_text("dir", 3)};
    memcpy(m.architecture, type, strlen(type));
    m.shape.qk_norm = architecture_find(type)->shape.qk_norm;
    const Shard shard = {*s, data, "shard"};
    Error e = {0};
    if (weights_bind(&m, &weights, &shard, 1, "dir", &e))
        model_check_finite(&m, &weights, &e); // reads every weight
    else demand(e.kind != ERROR_NONE && e.text[0]);
    model_close(&weights);
}

static void parse(const uint8_t *data, size_t size) {
    Safetensors s;
    Error e = {0};
    if (!safetensors_parse(data, size, "fuzz", &s, &e)) {
        demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz") && !s.tensors);
        return;
    }
    check_tensors(&s, size);
    bind(&s, data, "llama");
    bind(&s, data, "phi3");
    bind(&s, data, "qwen3");
    safetensors_release(&s);
}

// Once as a file; and once as a header whose length is told right, so that lengths need not be guessed.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    parse(data, size);
    uint8_t *file = mem_new(PREFIX + size + DATA, 1);
    demand(file != NULL);
    for (int i = 0; i < PREFIX; i++) file[i] = (uint8_t)(size >> 8 * i);
    if (size) memcpy(file + PREFIX, data, size);
    parse(file, PREFIX + size);
    parse(file, PREFIX + size + DATA);
    mem_free(file);
    return 0;
}
