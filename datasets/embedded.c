#include "datasets/embedded.h"

#include "engine/base/shipped.h"

#include <string.h>

#define OWN(symbol, path) EMBED(embedded_##symbol, path)

#define FILES(X)                                                           \
    X(sources, "datasets/sources.tsv")                                     \
    X(chat, "datasets/small/chat.jsonl")                                   \
    X(code, "datasets/small/code.jsonl")                                   \
    X(mathematics, "datasets/small/mathematics.jsonl")                     \
    X(summarisation, "datasets/small/summarisation.jsonl")                 \
    X(reference_code, "datasets/small/reference-code.jsonl")               \
    X(reference_mathematics, "datasets/small/reference-mathematics.jsonl") \
    X(reference_stories, "datasets/small/reference-stories.jsonl")         \
    X(translation, "datasets/small/translation.jsonl")

#define ROW(symbol, path) {path, embedded_##symbol, embedded_##symbol##_end},

FILES(OWN)

const Embedded *embedded_find(const char *file, size_t n) {
    static const Embedded files[] = {FILES(ROW)};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strlen(files[i].file) == n && memcmp(files[i].file, file, n) == 0) return &files[i];
    return NULL;
}
