// Rows of token ids: accepted ones are within their vocabulary, and their lists as long as their answers;
// others leave one line with the file.
#include "harness/replay/replay.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

static void check(const ReplayTexts *t) {
    demand(t->count > 0 && t->vocab > 0);
    for (size_t i = 0; i < t->count; i++) {
        const ReplayText *x = &t->texts[i];
        demand(x->prompt > 0 && x->count > x->prompt && x->count <= t->longest);
        for (int k = 0; k < x->count; k++) demand(x->ids[k] >= 0 && x->ids[k] < t->vocab);
        for (int k = 0; k < t->list_count; k++)
            for (int p = 0; p < x->count - x->prompt; p++) demand(x->lists[k][p] >= 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ReplayTokens from = {.path = "fuzz", .prompt = "p", .answer = "a/b", .lists = {"l"}};
    ReplayTexts t;
    Error e = {0};
    if (size == 0) return 0;
    from.list_count = data[0] & 1;
    from.vocab = data[0] & 2 ? 9 : 0;
    if (replay_tokens_parse(&from, (const char *)data + 1, size - 1, &t, &e)) check(&t);
    else demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz") && !strchr(e.text, '\n'));
    replay_texts_release(&t);
    return 0;
}
