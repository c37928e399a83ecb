#include "harness/table/claims.h"

#include "engine/base/memory.h"
#include "results/rows.h"
#include "simulate/statistics.h"

#include <math.h>
#include <string.h>

const char *const claim_verdicts[CLAIM_VERDICTS] = {"holds", "does not", "undecided", "not run"};

typedef struct Side {
    double *values; // (count)
    size_t count, capacity;
} Side;

typedef struct Comparison {
    char *name;
    Side a, b; // b: of rows of a and b alone
    double value, low, high;
} Comparison;

typedef struct Comparisons {
    Comparison *list; // (count)
    size_t count, capacity;
} Comparisons;

static void release(Comparisons *c) {
    for (size_t i = 0; i < c->count; i++) {
        mem_free(c->list[i].name);
        mem_free(c->list[i].a.values);
        mem_free(c->list[i].b.values);
    }
    mem_free(c->list);
}

// --- reading ---------------------------------------------------------------------------------------------

static Comparison *find(Comparisons *c, const char *name) {
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->list[i].name, name) == 0) return &c->list[i];
    mem_grow(&c->list, &c->capacity, c->count + 1, sizeof *c->list);
    char *copy = mem_text(name, strlen(name));
    if (!copy) return NULL;
    c->list[c->count] = (Comparison){.name = copy, .value = NAN, .low = NAN, .high = NAN};
    return &c->list[c->count++];
}

static bool add_value(Side *side, const Rows *r, int column) {
    double x = rows_real(r, column);
    if (!isfinite(x)) return true; // it was not measured
    mem_grow(&side->values, &side->capacity, side->count + 1, sizeof *side->values);
    side->values[side->count++] = x;
    return true;
}

static bool add_row(Comparisons *all, const Rows *r) {
    int columns = rows_columns(r);
    bool measured = false;
    for (int i = 1; i < columns; i++) measured = measured || isfinite(rows_real(r, i));
    if (!measured) return true;
    Comparison *c = find(all, rows_text(r, 0));
    if (columns == 4) {
        c->value = rows_real(r, 1), c->low = rows_real(r, 2), c->high = rows_real(r, 3);
        return true;
    }
    return (add_value(&c->a, r, 1) && (columns < 3 || add_value(&c->b, r, 2)));
}

// --- judging ---------------------------------------------------------------------------------------------

static double mean_of(const Side *s) {
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) sum += s->values[i];
    return sum / (double)s->count;
}

// The reach of a side's mean to either side; NAN where one value tells none.
static double reach_of(const Side *s, double level) {
    double low, high;
    if (s->count < 2) return NAN;
    mean_interval(s->values, s->count, level, &low, &high);
    return (high - low) / 2;
}

static void estimate(Comparison *c, int columns, double level) {
    if (columns == 4) return;
    double reach = reach_of(&c->a, level);
    c->value = mean_of(&c->a);
    if (columns == 3) {
        reach = hypot(reach, reach_of(&c->b, level));
        c->value -= mean_of(&c->b);
    }
    c->low = c->value - reach, c->high = c->value + reach;
}

static ClaimVerdict verdict_of(const Comparison *c) {
    return c->low > 0 ? CLAIM_HOLDS : c->high < 0 ? CLAIM_DOES_NOT : CLAIM_UNDECIDED;
}

// One that does not hold says that the claim does not, one that is undecided leaves it so.
static const Comparison *weakest(const Comparisons *all) {
    static const int RANK[] = {[CLAIM_DOES_NOT] = 0, [CLAIM_UNDECIDED] = 1, [CLAIM_HOLDS] = 2};
    const Comparison *out = NULL;
    for (size_t i = 0; i < all->count; i++) {
        const Comparison *c = &all->list[i];
        int rank = RANK[verdict_of(c)], least = out ? RANK[verdict_of(out)] : 3;
        if (rank < least || (rank == least && c->value < out->value)) out = c;
    }
    return out;
}

static void judge(Comparisons *all, int columns, ClaimJudgement *out) {
    size_t held = 0;
    for (size_t i = 0; i < all->count; i++) {
        estimate(&all->list[i], columns, 1 - 0.05 / (double)all->count);
        held += verdict_of(&all->list[i]) == CLAIM_HOLDS;
    }
    const Comparison *c = weakest(all);
    if (!c) return;
    out->verdict = verdict_of(c);
    text_printf(&out->why, "%s, margin %s", c->name, c->value >= 0 ? "+" : "");
    if (c->low == c->high) text_printf(&out->why, "%.3g, counted", c->value);
    else text_measured(&out->why, c->value, c->low, c->high);
    if (c->a.count) text_printf(&out->why, ", %zu prompts", c->a.count + c->b.count);
    if (all->count > 1) text_printf(&out->why, "; %zu of %zu comparisons hold", held, all->count);
}

bool claim_judge(Store *store, const CatalogueClaim *claim, ClaimJudgement *out, Error *e) {
    Comparisons all = {0};
    *out = (ClaimJudgement){.verdict = CLAIM_NOT_RUN};
    if (!claim->query) return true;
    Rows *r = rows_open(store, claim->query, e);
    bool ok = r != NULL;
    int columns = ok ? rows_columns(r) : 0;
    if (ok && (columns < 2 || columns > 4))
        ok = error_input(e, "the claim '%s': its query has %d columns", claim->claim, columns);
    while (ok && rows_next(r)) ok = add_row(&all, r);
    ok = rows_end(r, ok, e);
    if (ok) judge(&all, columns, out);
    release(&all);
    if (ok) return true;
    text_release(&out->why);
    return error_within(e, "claim '%s, %s'", claim->paper, claim->where);
}
