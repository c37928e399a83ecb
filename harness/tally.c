#include "harness/tally.h"

#include "engine/base/memory.h"

#include <math.h>
#include <stdlib.h>

const char *const tally_names[TALLY_METRICS] = {"S", "speedup", "speedup_e2e", "speedup_specbench",
                                                "tokens_per_s"};

typedef struct Pairs {
    const TallyPair *items;
    int count;
    bool sampled;
} Pairs;

typedef struct Sums {
    double pairs, tokens, steps, decode, prefill, base_tokens, base_decode, base_prefill;
    double rates, base_rates; // summed over pairs
} Sums;

static void add_pair(Sums *s, const TallyPair *p, double weight) {
    s->pairs += weight;
    s->tokens += weight * p->tokens;
    s->steps += weight * p->steps;
    s->decode += weight * p->decode_s;
    s->prefill += weight * p->prefill_s;
    s->base_tokens += weight * p->base_tokens;
    s->base_decode += weight * p->base_decode_s;
    s->base_prefill += weight * p->base_prefill_s;
    double seconds = p->decode_s + p->prefill_s, base_seconds = p->base_decode_s + p->base_prefill_s;
    s->rates += seconds > 0 ? weight * (p->tokens + p->prefill_tokens) / seconds : 0;
    s->base_rates += base_seconds > 0 ? weight * (p->base_tokens + p->base_prefill_tokens) / base_seconds : 0;
}

static double ratio(double a, double b) { return b > 0 ? a / b : NAN; }

static void metrics(const Sums *s, bool sampled, double *out) {
    double tokens = sampled ? ratio(s->tokens, s->base_tokens) : 1;
    out[TALLY_S] = ratio(s->tokens, s->steps);
    out[TALLY_SPEEDUP] = ratio(s->base_decode, s->decode) * tokens;
    out[TALLY_SPEEDUP_E2E] = ratio(s->base_decode + s->base_prefill, s->decode + s->prefill) * tokens;
    out[TALLY_SPECBENCH] = ratio(s->rates, s->base_rates);
    out[TALLY_RATE] = ratio(s->tokens, s->decode);
}

// A metric that the point does not have (a null backend takes no time that a clock sees) is 0 throughout.
static bool statistic(void *context, const double *draws, double *out) {
    const Pairs *pairs = context;
    Sums sums = {0};
    for (int i = 0; i < pairs->count; i++) add_pair(&sums, &pairs->items[i], draws ? draws[i] : 1);
    metrics(&sums, pairs->sampled, out);
    for (int i = 0; draws && i < TALLY_METRICS; i++)
        if (isnan(out[i])) out[i] = 0;
    return true;
}

static int by_prompt(const void *a, const void *b) {
    const TallyPair *p = a, *q = b;
    if (p->prompt != q->prompt) return p->prompt < q->prompt ? -1 : 1;
    return (p->pass > q->pass) - (p->pass < q->pass);
}

// Passes of each prompt, in `sizes`; gives the number of prompts.
static int count_prompts(const TallyPair *pairs, int count, size_t *sizes) {
    int prompts = 0;
    for (int i = 0; i < count; i++) {
        if (i == 0 || pairs[i].prompt != pairs[i - 1].prompt) sizes[prompts++] = 0;
        sizes[prompts - 1]++;
    }
    return prompts;
}

bool tally(TallyPair *pairs, int count, bool sampled, Tally *out, Error *e) {
    *out = (Tally){.pairs = count};
    size_t *sizes = mem_alloc((size_t)count, sizeof *sizes);
    if (!sizes) return error_system(e, "out of memory for %d samples", count);
    if (count) qsort(pairs, (size_t)count, sizeof *pairs, by_prompt);
    out->prompts = count_prompts(pairs, count, sizes);
    Pairs all = {pairs, count, sampled};
    NestedPlan plan = {sizes, (size_t)out->prompts};
    Bootstrap b = {.draws = (size_t)count,
                   .draw = draw_nested,
                   .plan = &plan,
                   .statistic = statistic,
                   .context = &all,
                   .outputs = TALLY_METRICS,
                   .resamples = TALLY_RESAMPLES,
                   .level = 0.95,
                   .seed = TALLY_SEED};
    statistic(&all, NULL, out->value);
    out->has_interval = out->prompts > 1;
    bool ok = !out->has_interval || bootstrap(&b, out->interval, NULL, e);
    mem_free(sizes);
    return ok;
}
