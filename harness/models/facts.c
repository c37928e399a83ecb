#include "harness/models/facts.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/model/identity.h"

#include <stdlib.h>
#include <string.h>

static bool identify(const void *self, char out[SHA256_TEXT], Error *e) {
    const EngineFacts *of = self;
    return model_identity(&of->engine->model, of->dir, out, e);
}

static void embedding(const void *self, EmbeddingKind kind, int token, float *row) {
    const Model *m = &((const EngineFacts *)self)->engine->model;
    const Tensor *t = kind == EMBEDDING_INPUT ? &m->embedding : &m->head;
    const unsigned char *from =
        (const unsigned char *)t->data + (size_t)token * (size_t)t->columns * dtype_size(t->dtype);
    for (int i = 0; i < t->columns; i++) row[i] = dtype_load(t->dtype, from, (size_t)i);
}

TargetFacts facts_of(const EngineFacts *of) {
    const Model *m = &of->engine->model;
    TargetFacts facts = {.self = of, .identify = identify};
    if (m->embedding.data && m->head.data) facts.embedding = embedding;
    if (of->engine->tokenizer) facts.prefix = tokenizer_prefix(of->engine->tokenizer, &facts.prefix_count);
    else if (m->bos >= 0) {
        facts.prefix = &m->bos;
        facts.prefix_count = 1;
    }
    return facts;
}

bool facts_cache(const char *option, char **out, Error *e) {
    const char *above = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool is_set = above && above[0] == '/'; // a relative one is to be ignored, its specification says
    *out = NULL;
    if (option) {
        if (!option[0]) return true;
        *out = mem_text(option, strlen(option));
    } else if (is_set) *out = file_path(above, "outpace");
    else if (home && file_exists(home)) *out = file_path(home, ".cache/outpace");
    else return true;
    return *out || error_system(e, "out of memory");
}
