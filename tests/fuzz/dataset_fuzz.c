// A dataset's file in each order: accepted rows are whole, and the same twice; any two texts have scores.
#include "datasets/datasets.h"
#include "datasets/rouge.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

static void check_prompt(const DatasetPrompt *p) {
    demand(p->id[0] && p->set[0] && p->task && p->turn_count >= 1 && p->row >= 1);
    for (int i = 0; i < p->turn_count; i++) demand(p->turns[i][0]);
    for (int i = 0; i < p->reference_count; i++)
        demand(p->references[i].text[0] && p->references[i].turn >= 0 &&
               p->references[i].turn < p->turn_count);
}

static void check_score(const RougeScore *s) {
    demand(s->precision >= 0 && s->precision <= 1 && s->recall >= 0 && s->recall <= 1 && s->f >= 0 &&
           s->f <= 1);
}

static void check_rouge(const char *reference, const char *candidate) {
    Rouge r = rouge_score(reference, candidate);
    check_score(&r.one);
    check_score(&r.two);
    check_score(&r.longest);
}

static void load(const uint8_t *data, size_t size, const DatasetRequest *q) {
    Dataset d, again;
    Error e = {0};
    if (!dataset_parse(&d, (const char *)data, size, "fuzz", q, &e)) {
        demand(e.text[0] && !d.prompts && !d.name);
        return;
    }
    demand(d.count >= 1 && (!q->limit || d.count <= q->limit));
    for (size_t i = 0; i < d.count; i++) check_prompt(&d.prompts[i]);
    demand(dataset_parse(&again, (const char *)data, size, "fuzz", q, &e));
    demand(strcmp(d.sha256, again.sha256) == 0);
    check_rouge(d.prompts[0].turns[0], d.prompts[d.count - 1].turns[0]);
    dataset_release(&d);
    dataset_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const DatasetRequest requests[] = {
        {.name = "a"},
        {.name = "a", .format = "text", .order = ORDER_SHUFFLED, .seed = 3, .limit = 2},
        {.name = "a", .order = ORDER_BY_TASK, .consecutive = 2, .turns = 1},
        {.name = "a", .split = "test"},
        {.name = "a:bare"},
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) load(data, size, &requests[i]);
    return 0;
}
