// Where two records of the same prompts step alike, and where not: samples are walked side by side, and steps
// that begin at the same token are held against each other.
#include "harness/analysis/compare.h"

#include "engine/base/memory.h"
#include "results/rows.h"

#include <math.h>
#include <string.h>

extern const char compare_sql[];

// --- a sample --------------------------------------------------------------------------------------------

typedef struct StepSeen {
    int number, token, accepted, emitted; // token: of the output, where it begins
} StepSeen;

typedef struct SampleSeen {
    int prompt, turn, pass;
    int64_t id;
    int tokens, id_count; // ids may begin with a token of the prefill
    int *ids;             // (id_count); none: the text isn't known
    bool sorted;
    StepSeen *steps; // (step_count)
    size_t step_count, step_capacity;
} SampleSeen;

typedef struct SampleList {
    SampleSeen *items; // (count)
    size_t count, capacity;
} SampleList;

static void release_samples(SampleList *l) {
    for (size_t i = 0; i < l->count; i++) { MEM_FREE(l->items[i].ids, l->items[i].steps); }
    mem_free(l->items);
}

static bool read_steps(Store *s, SampleSeen *x, Error *e) {
    Rows *r = rows_named(s, compare_sql, "steps", x->id, e);
    int token = 0;
    while (rows_next(r)) {
        StepSeen *step = LIST_ADD(x->steps, x->step_count, x->step_capacity);
        *step = (StepSeen){(int)rows_int(r, 0), token, (int)rows_int(r, 1), (int)rows_int(r, 2)};
        token += step->emitted;
    }
    return rows_end(r, true, e);
}

static bool read_samples(Store *s, int64_t point, SampleList *out, Error *e) {
    Rows *r = rows_named(s, compare_sql, "sequence", point, e);
    while (rows_next(r)) {
        size_t bytes = 0;
        const void *ids = rows_blob(r, 5, &bytes);
        SampleSeen *x = LIST_ADD(out->items, out->count, out->capacity);
        *x = (SampleSeen){.prompt = (int)rows_int(r, 0),
                          .turn = (int)rows_int(r, 1),
                          .pass = (int)rows_int(r, 2),
                          .id = rows_int(r, 3),
                          .tokens = (int)rows_int(r, 4),
                          .id_count = (int)(bytes / sizeof(int)),
                          .sorted = rows_int(r, 6) != 0};
        x->ids = mem_new((size_t)x->id_count, sizeof *x->ids);
        if (x->id_count) memcpy(x->ids, ids, (size_t)x->id_count * sizeof *x->ids);
    }
    bool ok = rows_end(r, true, e);
    for (size_t i = 0; ok && i < out->count; i++) ok = read_steps(s, &out->items[i], e);
    return ok;
}

// --- two samples -----------------------------------------------------------------------------------------

// How many tokens after the prefill are the same on both sides; all that both have where a text isn't known.
static int common_tokens(const SampleSeen *a, const SampleSeen *b, bool *parted) {
    int most = a->tokens < b->tokens ? a->tokens : b->tokens, n = 0;
    int from_a = a->id_count - a->tokens, from_b = b->id_count - b->tokens;
    *parted = false;
    if (from_a < 0 || from_b < 0 || !a->id_count || !b->id_count) return most;
    while (n < most && a->ids[from_a + n] == b->ids[from_b + n]) n++;
    *parted = n < most;
    return n;
}

int acceptance_place(int place) { return place ? 8 << place : 0; }

static void add_step(SharedSteps *to, const StepSeen *a, const StepSeen *b) {
    to->steps++;
    to->equal += a->accepted == b->accepted;
    to->a += a->accepted;
    to->b += b->accepted;
}

typedef struct PromptSum {
    int prompt;
    double more, steps;
} PromptSum;

static void compare_samples(const SampleSeen *a, const SampleSeen *b, Acceptance *out, PromptSum *sum) {
    bool parted, same = true;
    int common = common_tokens(a, b, &parted);
    out->samples++;
    out->parted += parted;
    if (a->sorted || b->sorted) {
        out->unordered++;
        return;
    }
    for (size_t i = 0, k = 0; i < a->step_count && k < b->step_count;) {
        const StepSeen *x = &a->steps[i], *y = &b->steps[k];
        // Guesses are judged by the text, and cut where it ends: both must have the same text as far as
        // either accepts.
        bool whole = x->token + (x->accepted > y->accepted ? x->accepted : y->accepted) < common;
        if (x->token == y->token && whole) {
            int place = 0;
            while (place + 1 < ACCEPTED_PLACES && x->token >= acceptance_place(place + 1)) place++;
            add_step(&out->all, x, y);
            add_step(&out->places[place], x, y);
            for (int d = 0; d < ACCEPTED_MOST; d++) {
                out->least[d][0] += x->accepted > d;
                out->least[d][1] += y->accepted > d;
            }
            sum->more += y->accepted - x->accepted;
            sum->steps++;
            if (same && x->accepted != y->accepted)
                out->first[out->first_count++] = (FirstDifference){
                    a->prompt, a->turn, a->pass, x->token, x->number, y->number, x->accepted, y->accepted};
            same = same && x->accepted == y->accepted;
        }
        size_t next = i + (x->token <= y->token);
        k += y->token <= x->token;
        i = next;
    }
    out->same += same;
}

// --- all of them -----------------------------------------------------------------------------------------

static bool sum_up(const PromptSum *sums, size_t count, Acceptance *out, Error *e) {
    LOCAL_MEMORY double *more = mem_new(count + 1, sizeof *more), *steps = mem_new(count + 1, sizeof *steps);
    size_t prompts = 0;
    for (size_t i = 0; i < count; i++) {
        if (sums[i].steps <= 0) continue;
        more[prompts] = sums[i].more;
        steps[prompts++] = sums[i].steps;
    }
    out->more = out->all.steps ? (out->all.b - out->all.a) / (double)out->all.steps : NAN;
    out->interval = (Interval){NAN, NAN, NAN};
    return prompts < 2 || bootstrap_ratio(more, steps, prompts, 2000, 0.95, 1, &out->interval, e);
}

static bool compare_lists(const SampleList *a, const SampleList *b, Acceptance *out, Error *e) {
    LOCAL_MEMORY PromptSum *sums = mem_new(a->count + 1, sizeof *sums);
    size_t count = 0;
    out->first = mem_new(a->count + 1, sizeof *out->first);
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        const SampleSeen *x = &a->items[i], *y = &b->items[k];
        int by = x->prompt != y->prompt ? x->prompt - y->prompt
                 : x->turn != y->turn   ? x->turn - y->turn
                                        : x->pass - y->pass;
        if (by == 0) {
            if (!count || sums[count - 1].prompt != x->prompt)
                sums[count++] = (PromptSum){.prompt = x->prompt};
            compare_samples(x, y, out, &sums[count - 1]);
        }
        i += by <= 0;
        k += by >= 0;
    }
    return sum_up(sums, count, out, e);
}

bool acceptance_compare(Store *a, int64_t point_a, Store *b, int64_t point_b, Acceptance *out, Error *e) {
    LOCAL(release_samples) SampleList x = {0}, y = {0};
    *out = (Acceptance){0};
    bool ok =
        read_samples(a, point_a, &x, e) && read_samples(b, point_b, &y, e) && compare_lists(&x, &y, out, e);
    if (!ok) acceptance_release(out);
    return ok;
}

void acceptance_release(Acceptance *x) {
    mem_free(x->first);
    *x = (Acceptance){0};
}
