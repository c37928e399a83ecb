// A GGUF file: what is taken lies inside the file, and model and tokenizer made of it read nothing else.
#include "engine/base/gguf.h"
#include "engine/base/memory.h"
#include "engine/model/config.h"
#include "engine/model/weights.h"
#include "engine/text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

static void check_values(const Gguf *g, const uint8_t *data, size_t size) {
    for (size_t i = 0; i < g->value_count; i++) {
        const GgufValue *v = &g->values[i];
        demand(v->at >= data && v->at <= v->end && v->end <= data + size && v->type < GGUF_TYPES);
        demand(gguf_find(g, v->key) == v);
        if (v->count) gguf_number(v, v->count - 1);
        json_decref(gguf_json(v));
        GgufTexts texts = gguf_texts(v);
        const char *text;
        size_t n, count = 0;
        while (gguf_next(&texts, &text, &n)) {
            demand((const uint8_t *)text >= v->at && (const uint8_t *)text + n <= v->end);
            count++;
        }
        demand(count == 0 || count == v->count);
    }
}

static void check_tensors(const Gguf *g, size_t size) {
    for (size_t i = 0; i < g->tensor_count; i++) {
        const GgufTensor *t = &g->tensors[i];
        size_t bytes = (size_t)t->dims[0] / (size_t)t->format->numbers * (size_t)t->format->bytes;
        for (int k = 1; k < t->rank; k++) demand(!__builtin_mul_overflow(bytes, (size_t)t->dims[k], &bytes));
        demand(t->begin >= g->header && t->end <= size && t->end - t->begin == bytes);
        demand(gguf_tensor(g, t->name) == t);
    }
}

static void open_model(const Gguf *g, const uint8_t *data) {
    Model m = {.architecture = ""};
    ModelWeights weights = {.dir = mem_text("dir", 3)};
    Error e = {0};
    if (config_read_gguf(&m, g, data, &e)) {
        Shard shard = {safetensors_of_gguf(g), data, "fuzz.gguf"};
        weights_take_layers(&m, &weights);
        if (weights_bind(&m, &weights, &shard, 1, "dir", &e))
            model_check_finite(&m, &weights, &e); // reads every weight
        safetensors_release(&shard.header);
    }
    demand(m.layers || e.text[0]);
    model_close(&weights);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Gguf g;
    Error e = {0};
    if (!gguf_parse(data, size, "fuzz", &g, &e)) {
        demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz") && !g.values && !g.tensors);
        return 0;
    }
    check_values(&g, data, size);
    check_tensors(&g, size);
    open_model(&g, data);
    Tokenizer *t = tokenizer_parse_gguf(&g, &(Error){0});
    tokenizer_close(t);
    gguf_release(&g);
    return 0;
}
