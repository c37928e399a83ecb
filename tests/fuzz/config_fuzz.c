// A config.json: whatever is taken can be computed with. The same bytes as a generation_config.json.
#include "engine/base/text.h"
#include "engine/model/config.h"
#include "engine/model/model.h"
#include "engine/model/weights.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

static void check_ids(const Model *m) {
    demand(m->bos >= -1 && m->bos < m->shape.vocab && m->eos_count >= 0 && m->eos_count <= MODEL_MAX_EOS);
    for (int i = 0; i < m->eos_count; i++) demand(m->eos[i] >= 0 && m->eos[i] < m->shape.vocab);
}

static void check_rope(const Rope *r) {
    double turns[ROPE_MAX_PAIRS];
    demand(r->pairs >= 1 && r->pairs <= ROPE_MAX_PAIRS && isfinite(r->attention_factor));
    rope_frequencies(r, turns);
    for (int i = 0; i < r->pairs; i++) demand(isfinite(turns[i]) && turns[i] >= 0);
}

// The tensors of the last layer and of the whole model have positive sizes and names that fit.
static void check_weights(const Model *m) {
    int n = weights_count(m);
    for (int i = n < WEIGHTS ? 0 : n - WEIGHTS + 1; i < n; i++) {
        WeightSpec s = weights_at(m, i);
        if (!s.name[0]) continue;
        demand(s.rows > 0 && s.columns > 0 && strlen(s.name) < TENSOR_NAME - 1);
        demand(s.first_row >= 0 && s.first_row <= s.stored_rows - s.rows);
    }
    demand(shape_parameters(&m->shape) < SIZE_MAX / 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Model m = {.bos = -1};
    Error e = {0};
    Text text = {0};
    if (config_parse(&m, (const char *)data, size, "fuzz", &e)) {
        demand(shape_check(&m.shape, "fuzz", &e) && architecture_find(m.architecture));
        check_rope(&m.shape.rope);
        check_weights(&m);
        model_describe(&m, &(ModelWeights){.dir = NULL}, &text);
        text_release(&text);
    } else {
        demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz"));
        m = (Model){.shape.vocab = 100};
    }
    config_parse_generation(&m, (const char *)data, size, "fuzz", &e);
    check_ids(&m);
    return 0;
}
