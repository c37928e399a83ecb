// See catalogue.h. The tables are embedded; a copy is cut at tabs and line ends, and each row becomes
// pointers into it. Their form is tested, so a wrong row is an assertion.
#include "harness/papers/catalogue.h"

#include "engine/base/error.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "results/rows.h"
#include "simulate/statistics.h"

#include <assert.h>
#include <math.h>
#include <string.h>

EMBED(items_tsv, "configs/catalogue.tsv")
EMBED(claims_tsv, "configs/claims.tsv")

// Rows are arrays of cells.
enum {
    ITEM_CELLS = sizeof(CatalogueItem) / sizeof(char *),
    CLAIM_CELLS = sizeof(CatalogueClaim) / sizeof(char *)
};

// Cuts the lines below the first, which names the columns, into cells. Gives the number of lines.
static int read_rows(char *line, const char **cells, int columns, int most) {
    int count = 0;
    line += strcspn(line, "\n") + 1;
    for (char *next; *line; line = next, count++) {
        next = line + strcspn(line, "\n");
        assert(*next && count < most);
        *next++ = 0;
        for (int i = 0; i < columns; i++) {
            const char *cell = strsep(&line, "\t");
            assert(cell);
            *cells++ = strcmp(cell, "-") == 0 ? NULL : cell;
        }
        assert(!line);
    }
    (void)most;
    return count;
}

void catalogue_open(Catalogue *c) {
    size_t items = strlen(items_tsv) + 1, claims = strlen(claims_tsv) + 1;
    *c = (Catalogue){.text = mem_new(items + claims, 1)};
    memcpy(c->text, items_tsv, items);
    memcpy(c->text + items, claims_tsv, claims);
    c->item_count = read_rows(c->text, (const char **)c->items, ITEM_CELLS, CATALOGUE_ITEMS);
    c->claim_count = read_rows(c->text + items, (const char **)c->claims, CLAIM_CELLS, CATALOGUE_CLAIMS);
}

void catalogue_release(Catalogue *c) {
    mem_free(c->text);
    *c = (Catalogue){0};
}

const CatalogueItem *catalogue_find(const Catalogue *c, const char *name, Error *e) {
    for (int i = 0; i < c->item_count; i++)
        if (strcmp(c->items[i].name, name) == 0) return &c->items[i];
    const char *nearest = suggest(name, c->items, (size_t)c->item_count, sizeof *c->items);
    if (nearest) error_input(e, "no table or figure is called '%s'; did you mean '%s'?", name, nearest);
    else error_input(e, "no table or figure is called '%s'; 'outpace table' names them", name);
    return NULL;
}

bool catalogue_none(const char *name, const char *db, Error *e) {
    Catalogue c;
    catalogue_open(&c);
    const CatalogueItem *known = catalogue_find(&c, name, NULL);
    if (!known) error_input(e, "'%s' has nothing for %s: name a run of the same methods by --run", db, name);
    else if (known->smoke)
        error_input(e, "'%s' has nothing for %s: run '%s --db %s'", db, name, known->smoke, db);
    else
        error_input(e, "'%s' has nothing for %s: run 'outpace run configs/%s.yaml --scale smoke --db %s'", db,
                    name, known->experiment, db);
    catalogue_release(&c);
    return false;
}

// --- claims

const char *const claim_verdicts[CLAIM_VERDICTS] = {"holds", "does not", "undecided", "not run"};

typedef struct Side {
    double *values; // (count)
    size_t count, capacity;
} Side;

// The form of a query's rows: (name, margin) of a prompt; (name, a, b), a margin of means over other prompts;
// (name, hits, trials, bound) of a prompt, a share above a bound; (name, margin, low, high), an interval.
typedef enum Form { FORM_PAIRED = 2, FORM_SIDES = 3, FORM_INTERVAL = 4, FORM_SHARE } Form;

typedef struct Comparison {
    char *name;
    Side a, b; // FORM_SHARE: hits and trials
    double bound;
    double value, low, high;
} Comparison;

typedef struct Comparisons {
    Comparison *list; // (count)
    size_t count, capacity;
} Comparisons;

// --- reading ---------------------------------------------------------------------------------------------

static void add_value(Side *side, const Rows *r, int column) {
    double x = rows_real(r, column);
    if (!isfinite(x)) return; // it was not measured
    mem_grow(&side->values, &side->capacity, side->count + 1, sizeof *side->values);
    side->values[side->count++] = x;
}

static void add_row(Comparisons *all, const Rows *r, Form form) {
    int columns = rows_columns(r);
    bool measured = false;
    for (int i = 1; i < columns; i++) measured = measured || isfinite(rows_real(r, i));
    if (!measured) return;
    const char *name = rows_text(r, 0);
    size_t at = 0;
    while (at < all->count && strcmp(all->list[at].name, name) != 0) at++;
    mem_grow(&all->list, &all->capacity, at + 1, sizeof *all->list);
    Comparison *c = &all->list[at];
    if (at == all->count) {
        *c = (Comparison){.name = mem_text(name, strlen(name)), .value = NAN, .low = NAN, .high = NAN};
        all->count++;
    }
    if (form == FORM_INTERVAL) {
        c->value = rows_real(r, 1);
        c->low = rows_real(r, 2);
        c->high = rows_real(r, 3);
        return;
    }
    add_value(&c->a, r, 1);
    if (form != FORM_PAIRED) add_value(&c->b, r, 2);
    if (form == FORM_SHARE) c->bound = rows_real(r, 3);
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

// The share of all trials. A prompt's trials go together, so the interval is of a ratio over prompts
// (Cochran); where all or none hit, it's that of as many trials of their own (Clopper and Pearson).
static void estimate_share(Comparison *c, double level) {
    double trials = mean_of(&c->b) * (double)c->b.count, share = mean_of(&c->a) / mean_of(&c->b);
    double low = share, high = share;
    if (share <= 0) high = 1 - pow((1 - level) / 2, 1 / trials);
    else if (share >= 1) low = pow((1 - level) / 2, 1 / trials);
    else {
        Side of = {.values = mem_new(c->a.count, sizeof(double)), .count = c->a.count};
        for (size_t i = 0; i < of.count; i++)
            of.values[i] = (c->a.values[i] - share * c->b.values[i]) / mean_of(&c->b);
        double reach = reach_of(&of, level);
        low = share - reach, high = share + reach;
        mem_free(of.values);
    }
    c->value = share - c->bound, c->low = low - c->bound, c->high = high - c->bound;
}

static void estimate(Comparison *c, Form form, double level) {
    if (form == FORM_INTERVAL) return;
    if (form == FORM_SHARE) {
        estimate_share(c, level);
        return;
    }
    double reach = reach_of(&c->a, level);
    c->value = mean_of(&c->a);
    if (form == FORM_SIDES) {
        reach = hypot(reach, reach_of(&c->b, level));
        c->value -= mean_of(&c->b);
    }
    c->low = c->value - reach, c->high = c->value + reach;
}

static ClaimVerdict verdict_of(const Comparison *c) {
    return c->low > 0 ? CLAIM_HOLDS : c->high < 0 ? CLAIM_DOES_NOT : CLAIM_UNDECIDED;
}

// A comparison that doesn't hold refutes the claim; an undecided one leaves it undecided.
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

// A claim holds if all its comparisons do, each at 95%. It fails if any one does, so those that speak against
// it share the 5% (Bonferroni).
static void judge(Comparisons *all, Form form, ClaimJudgement *out) {
    size_t held = 0;
    for (size_t i = 0; i < all->count; i++) {
        Comparison *c = &all->list[i];
        estimate(c, form, 0.95);
        if (!(c->value > 0)) estimate(c, form, 1 - 0.05 / (double)all->count);
        held += verdict_of(c) == CLAIM_HOLDS;
    }
    const Comparison *c = weakest(all);
    if (!c) return;
    out->verdict = verdict_of(c);
    text_printf(&out->why, "%s, margin %s", c->name, c->value >= 0 ? "+" : "");
    out->counted = c->low == c->high;
    if (out->counted) text_printf(&out->why, "%.3g, counted", c->value);
    else text_measured(&out->why, c->value, c->low, c->high);
    size_t prompts = c->a.count + (form == FORM_SIDES ? c->b.count : 0);
    if (prompts) text_printf(&out->why, ", %zu prompts", prompts);
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
    Form form = columns == FORM_INTERVAL && strcmp(rows_name(r, 1), "hits") == 0 ? FORM_SHARE : (Form)columns;
    while (ok && rows_next(r)) add_row(&all, r, form);
    ok = rows_end(r, ok, e);
    if (ok) judge(&all, form, out);
    for (Comparison *c = all.list; c < all.list + all.count; c++) {
        mem_free(c->name);
        mem_free(c->a.values);
        mem_free(c->b.values);
    }
    mem_free(all.list);
    if (ok) return true;
    text_release(&out->why);
    return error_within(e, "claim '%s, %s'", claim->paper, claim->where);
}
