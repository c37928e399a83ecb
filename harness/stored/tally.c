#include "harness/stored/tally.h"

#include "engine/base/memory.h"

#include <math.h>
#include <stdlib.h>

const char *const tally_names[TALLY_METRICS] = {
    "S",           "speedup",          "speedup_e2e",   "speedup_specbench", "tokens_per_s",
    "S_reference", "tokens_per_s_e2e", "speedup_over_S"};

// Tokens per second: of one pair, or of prompts summed over a pass. Spec-Bench divides within a pass, and
// takes the mean of passes.
typedef struct Rates {
    int pass; // its place in Pairs.of_pass
    double own, base;
} Rates;

typedef struct Pairs {
    const TallyPair *items;
    int count;
    bool sampled;
    Rates *of_pair; // (count): found once, as thousands of resamples ask for them
    Rates *of_pass; // (pass_count), of one resample
    int pass_count;
} Pairs;

static void add_pair(TallyPair *sum, const TallyPair *p, double weight) {
    sum->tokens += weight * p->tokens;
    sum->steps += weight * p->steps;
    sum->decode_s += weight * p->decode_s;
    sum->prefill_s += weight * p->prefill_s;
    sum->base_tokens += weight * p->base_tokens;
    sum->base_decode_s += weight * p->base_decode_s;
    sum->base_prefill_s += weight * p->base_prefill_s;
    sum->prefill_tokens += weight * p->prefill_tokens;
    sum->prefill_steps += weight * p->prefill_steps;
}

static double ratio(double a, double b) { return b > 0 ? a / b : NAN; }

static void add_rates(Rates *of_pass, const Rates *pair, double weight) {
    of_pass[pair->pass].own += weight * pair->own;
    of_pass[pair->pass].base += weight * pair->base;
}

// Passes that a resample drew nothing of have no ratio.
static double mean_of_passes(const Pairs *pairs) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < pairs->pass_count; i++)
        if (pairs->of_pass[i].base > 0) {
            sum += pairs->of_pass[i].own / pairs->of_pass[i].base;
            count++;
        }
    return ratio(sum, count);
}

static void metrics(const TallyPair *sum, bool sampled, double *out) {
    double tokens = sampled ? ratio(sum->tokens, sum->base_tokens) : 1;
    double both_s = sum->decode_s + sum->prefill_s, base_both_s = sum->base_decode_s + sum->base_prefill_s;
    out[TALLY_S] = ratio(sum->tokens, sum->steps);
    out[TALLY_SPEEDUP] = ratio(sum->base_decode_s, sum->decode_s) * tokens;
    out[TALLY_SPEEDUP_E2E] = ratio(base_both_s, both_s) * tokens;
    out[TALLY_RATE] = ratio(sum->tokens, sum->decode_s);
    out[TALLY_S_REFERENCE] = ratio(sum->tokens + sum->prefill_tokens, sum->steps + sum->prefill_steps);
    out[TALLY_RATE_E2E] = ratio(sum->tokens, both_s);
    out[TALLY_OVER_S] = ratio(out[TALLY_SPEEDUP], out[TALLY_S]);
}

// NAN is what the point does not have (a null backend takes no time that a clock sees), or what a resample
// does not (of answers without a step).
static bool statistic(void *context, const double *draws, double *out) {
    const Pairs *pairs = context;
    TallyPair sum = {0};
    for (int i = 0; i < pairs->pass_count; i++) pairs->of_pass[i] = (Rates){0};
    for (int i = 0; i < pairs->count; i++) {
        double weight = draws ? draws[i] : 1;
        add_pair(&sum, &pairs->items[i], weight);
        add_rates(pairs->of_pass, &pairs->of_pair[i], weight);
    }
    metrics(&sum, pairs->sampled, out);
    out[TALLY_SPECBENCH] = mean_of_passes(pairs);
    return true;
}

static int by_prompt(const void *a, const void *b) {
    const TallyPair *p = a, *q = b;
    if (p->prompt != q->prompt) return p->prompt < q->prompt ? -1 : 1;
    return (p->pass > q->pass) - (p->pass < q->pass);
}

static void sort(TallyPair *pairs, int count) {
    if (count) qsort(pairs, (size_t)count, sizeof *pairs, by_prompt);
}

int tally_sum_turns(TallyPair *pairs, int count) {
    int kept = 0;
    sort(pairs, count);
    for (int i = 0; i < count; i++)
        if (kept && by_prompt(&pairs[kept - 1], &pairs[i]) == 0) add_pair(&pairs[kept - 1], &pairs[i], 1);
        else pairs[kept++] = pairs[i];
    return kept;
}

// Where each prompt's passes begin, in `starts`, and where the last one's end; gives the number of prompts.
static int find_prompts(const TallyPair *pairs, int count, size_t *starts) {
    int prompts = 0;
    for (int i = 0; i < count; i++)
        if (i == 0 || pairs[i].prompt != pairs[i - 1].prompt) starts[prompts++] = (size_t)i;
    starts[prompts] = (size_t)count;
    return prompts;
}

static int by_number(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

// Fills `passes` by the passes that there are, and gives their number.
static int list_passes(const TallyPair *pairs, int count, int *passes) {
    int distinct = 0;
    for (int i = 0; i < count; i++) passes[i] = pairs[i].pass;
    if (count) qsort(passes, (size_t)count, sizeof *passes, by_number);
    for (int i = 0; i < count; i++)
        if (i == 0 || passes[i] != passes[i - 1]) passes[distinct++] = passes[i];
    return distinct;
}

static Rates rates_of(const TallyPair *p, const int *passes, int pass_count) {
    const int *at = bsearch(&p->pass, passes, (size_t)pass_count, sizeof *passes, by_number);
    double seconds = p->decode_s + p->prefill_s, base_seconds = p->base_decode_s + p->base_prefill_s;
    return (Rates){.pass = (int)(at - passes),
                   .own = seconds > 0 ? p->tokens / seconds : 0,
                   .base = base_seconds > 0 ? p->base_tokens / base_seconds : 0};
}

// starts, passes: (all->count + 1) to work in.
static bool tally_in(Pairs *all, size_t *starts, int *passes, Tally *out, Error *e) {
    all->pass_count = list_passes(all->items, all->count, passes);
    for (int i = 0; i < all->count; i++) all->of_pair[i] = rates_of(&all->items[i], passes, all->pass_count);
    out->prompts = find_prompts(all->items, all->count, starts);
    statistic(all, NULL, out->value);
    out->has_interval = out->has_interval && out->prompts > 1;
    NestedPlan plan = {starts, (size_t)out->prompts};
    Bootstrap b = {.draws = (size_t)all->count,
                   .draw = draw_nested,
                   .plan = &plan,
                   .statistic = statistic,
                   .context = all,
                   .outputs = TALLY_METRICS,
                   .resamples = TALLY_RESAMPLES,
                   .level = 0.95,
                   .seed = TALLY_SEED};
    if (!out->has_interval) return true;
    return bootstrap(&b, out->interval, out->resamples, e);
}

static bool tally_with(TallyPair *pairs, int count, bool sampled, bool intervals, Tally *out, Error *e) {
    *out = (Tally){.pairs = count, .has_interval = intervals};
    sort(pairs, count);
    size_t room = (size_t)count + 1, *starts = mem_new(room, sizeof *starts);
    int *passes = mem_new(room, sizeof *passes);
    Pairs all = {.items = pairs,
                 .count = count,
                 .sampled = sampled,
                 .of_pair = mem_new(room, sizeof(Rates)),
                 .of_pass = mem_new(room, sizeof(Rates))};
    bool ok = tally_in(&all, starts, passes, out, e);
    mem_free(all.of_pass);
    mem_free(all.of_pair);
    mem_free(passes);
    mem_free(starts);
    return ok;
}

bool tally(TallyPair *pairs, int count, bool sampled, Tally *out, Error *e) {
    return tally_with(pairs, count, sampled, true, out, e);
}

bool tally_plain(TallyPair *pairs, int count, bool sampled, Tally *out, Error *e) {
    return tally_with(pairs, count, sampled, false, out, e);
}
