// The orders that prompts may stand in: a shuffle is Fisher and Yates' by a counter-based generator, so it is
// the same on any machine; turns are taken between groups, each in its own order.
//
//     BY_TASK, consecutive 2, groups a and b:   a0 a1 b0 b1 a2 a3 b2 b3 a4 b4 b5 ...
#include "datasets/prompts.h"

#include "engine/base/memory.h"
#include "engine/base/random.h"

#include <string.h>

enum { MOST_GROUPS = 4096 };

static void shuffle(Dataset *d, uint64_t seed) {
    Random r = {.seed = seed, .stream = STREAM_ORDER};
    for (size_t i = d->count; i > 1; i--) {
        size_t k = random_below(&r, (uint32_t)i);
        DatasetPrompt swap = d->prompts[i - 1];
        d->prompts[i - 1] = d->prompts[k];
        d->prompts[k] = swap;
    }
}

typedef struct Groups {
    const char *names[MOST_GROUPS];
    size_t next[MOST_GROUPS], end[MOST_GROUPS]; // where each one's rows begin and end in `rows`
    size_t count;
    size_t *of, *rows; // (prompts): group of a prompt; prompts, one group after the other
} Groups;

static bool find_groups(Groups *g, const Dataset *d, bool by_set, Error *e) {
    for (size_t i = 0; i < d->count; i++) {
        const char *name = by_set ? d->prompts[i].set : d->prompts[i].task;
        size_t k = 0;
        while (k < g->count && strcmp(g->names[k], name) != 0) k++;
        if (k == MOST_GROUPS)
            return error_input(e, "'%s' has more than %d tasks: they cannot take turns", d->name,
                               MOST_GROUPS);
        if (k == g->count) g->names[g->count++] = name;
        g->of[i] = k;
        g->end[k]++;
    }
    if (g->count == 1)
        return error_input(e, "all prompts of '%s' are of one %s: nothing can take turns by task", d->name,
                           by_set ? "part" : "task");
    for (size_t k = 1; k < g->count; k++) g->end[k] += g->end[k - 1];
    for (size_t k = 1; k < g->count; k++) g->next[k] = g->end[k - 1];
    size_t fill[MOST_GROUPS];
    memcpy(fill, g->next, sizeof fill);
    for (size_t i = 0; i < d->count; i++) g->rows[fill[g->of[i]]++] = i;
    return true;
}

static void take_turns(Groups *g, const Dataset *d, size_t consecutive, DatasetPrompt *out) {
    for (size_t n = 0; n < d->count;)
        for (size_t k = 0; k < g->count; k++)
            for (size_t c = 0; g->next[k] < g->end[k] && (c < consecutive || consecutive == 0); c++)
                out[n++] = d->prompts[g->rows[g->next[k]++]];
}

static bool by_task(Dataset *d, size_t consecutive, bool by_set, Error *e) {
    Groups *g = mem_alloc(1, sizeof *g);
    DatasetPrompt *out = mem_alloc(d->count, sizeof *out);
    bool ok = g && out && (g->of = mem_alloc(d->count, sizeof *g->of)) &&
              (g->rows = mem_alloc(d->count, sizeof *g->rows));
    if (!ok) error_system(e, "out of memory to order %zu prompts", d->count);
    ok = ok && find_groups(g, d, by_set, e);
    if (ok) {
        take_turns(g, d, consecutive, out);
        memcpy(d->prompts, out, d->count * sizeof *out);
    }
    if (g) {
        mem_free(g->of);
        mem_free(g->rows);
    }
    mem_free(g);
    mem_free(out);
    return ok;
}

bool prompts_order(Dataset *d, const DatasetRequest *request, bool by_set, Error *e) {
    if (request->order == ORDER_SHUFFLED || request->order == ORDER_FIRST_SHUFFLED) shuffle(d, request->seed);
    return request->order != ORDER_BY_TASK || d->count == 0 ||
           by_task(d, (size_t)request->consecutive, by_set, e);
}
