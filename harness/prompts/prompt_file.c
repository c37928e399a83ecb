#include "harness/prompts/prompt_file.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/random.h"

#include <string.h>

enum { MOST_BYTES = 64 << 20, RANDOM_LONGEST = 40 };

static const char *const OURS[] = {
    "What should I look at first when I visit a city that I do not know? Name three things and say why.",
    "def count_words(text):\n    \"\"\"Return a dictionary of how often each word stands in text.\"\"\"\n",
    "Question: A farmer has 17 sheep and buys 3 times as many. How many has he then? Answer:",
    ("Summarise in one sentence: The bridge was closed on Monday because of the flood. Engineers looked "
     "at its pillars on Tuesday and Wednesday, found no damage, and opened it again on Thursday morning."),
    "Write a short letter to a neighbour whose dog barks at night. Be friendly, and end with a suggestion.",
    "for (int i = 0; i < n; i++) {\n    total += values[i];\n}\nfor (int i = 0; i < n; i++) {\n    total",
    "Compute step by step: (12 + 8) * 3 - 14 / 2 =",
    ("Summarise: The meeting began at nine. The meeting ended at ten. The meeting was about the budget. The "
     "budget"),
};

static IdList *add_prompt(PromptList *list, Error *e) {
    void *rows = list->prompts;
    if (!mem_grow(&rows, &list->capacity, list->count + 1, sizeof *list->prompts)) {
        error_system(e, "out of memory for %zu prompts", list->count + 1);
        return NULL;
    }
    list->prompts = rows;
    list->prompts[list->count] = (IdList){0};
    return &list->prompts[list->count++];
}

static bool add_text(PromptList *list, const Tokenizer *t, const char *text, size_t n, Error *e) {
    IdList *ids = add_prompt(list, e);
    return ids && tokenizer_encode(t, text, n, true, ids, e);
}

// One line: JSON where it begins as an object, else the text itself.
static bool add_line(PromptList *list, const Tokenizer *t, const char *line, size_t n, const char *path,
                     int number, Error *e) {
    if (line[0] != '{') return add_text(list, t, line, n, e);
    json_t *row = json_from_bytes(line, n, path, e);
    const char *text = row ? field_text(row, "prompt", path, e) : NULL;
    bool ok = text ? add_text(list, t, text, strlen(text), e) : error_within(e, "line %d", number);
    json_decref(row);
    return ok;
}

static bool read_lines(const char *path, const Tokenizer *t, size_t most, PromptList *out, Error *e) {
    char *bytes;
    size_t size;
    bool ok = true;
    if (!file_read(path, MOST_BYTES, &bytes, &size, e)) return false;
    int number = 1;
    for (size_t at = 0, n; ok && at < size && out->count < most; at += n + 1, number++) {
        const char *end = memchr(bytes + at, '\n', size - at);
        n = end ? (size_t)(end - bytes) - at : size - at;
        if (n) ok = add_line(out, t, bytes + at, n, path, number, e);
    }
    mem_free(bytes);
    return ok &&
           (out->count || error_input(e, "'%s' has no prompt: give a line of text, or of JSON, each", path));
}

bool prompts_read(const char *path, const Tokenizer *tokenizer, size_t most, PromptList *out, Error *e) {
    if (path) return read_lines(path, tokenizer, most, out, e);
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS && out->count < most; i++)
        if (!add_text(out, tokenizer, OURS[i], strlen(OURS[i]), e)) return false;
    return true;
}

bool prompts_random(int vocab, size_t count, uint64_t seed, PromptList *out, Error *e) {
    Random r = {.seed = seed, .stream = STREAM_BENCH};
    for (size_t i = 0; i < count; i++) {
        IdList *ids = add_prompt(out, e);
        size_t n = 1 + random_below(&r, RANDOM_LONGEST);
        void *list = NULL;
        if (!ids || !mem_grow(&list, &ids->capacity, n, sizeof *ids->ids))
            return error_system(e, "out of memory for %zu prompts", count);
        ids->ids = list;
        for (; ids->count < n; ids->count++) ids->ids[ids->count] = (int)random_below(&r, (uint32_t)vocab);
    }
    return true;
}

void prompts_release(PromptList *list) {
    for (size_t i = 0; i < list->count; i++) ids_release(&list->prompts[i]);
    mem_free(list->prompts);
    *list = (PromptList){0};
}
