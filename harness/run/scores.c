#include "harness/run/scores.h"

#include "datasets/rouge.h"

enum { MOST_REFERENCES = 64 };

static int references_of(const DatasetPrompt *p, int turn, const char *out[MOST_REFERENCES]) {
    int n = 0;
    for (int i = 0; i < p->reference_count && n < MOST_REFERENCES; i++)
        if (p->references[i].turn == turn) out[n++] = p->references[i].text;
    return n;
}

bool scores_add(Ledger *l, const LedgerEntry *entry, int turn, const char *text, Error *e) {
    const DatasetPrompt *p = &l->inputs->datasets[entry->dataset].prompts[entry->prompt];
    const char *references[MOST_REFERENCES];
    int count = references_of(p, turn, references);
    if (count == 0) return true;
    Rouge r = rouge_best(references, count, text);
    int64_t prompt = l->prompts[entry->dataset][(size_t)entry->prompt * CONVERSATION_TURNS + (size_t)turn];
    int64_t point = l->points[entry->point];
    return store_score(l->store, point, entry->pass, prompt, "rouge1", r.one.f, e) &&
           store_score(l->store, point, entry->pass, prompt, "rouge2", r.two.f, e) &&
           store_score(l->store, point, entry->pass, prompt, "rougeL", r.longest.f, e);
}
