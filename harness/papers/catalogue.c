// See catalogue.h. The tables are embedded; a copy is cut at tabs and line ends, and each row becomes
// pointers into it. Their form is tested, so a wrong row is an assertion.
#include "harness/papers/catalogue.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "results/rows.h"
#include "simulate/statistics.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <string.h>

EMBED(items_tsv, "configs/catalogue.tsv")
EMBED(claims_tsv, "configs/claims.tsv")
EMBED(one_pass_sql, "harness/papers/catalogue.sql")

// Rows are arrays of cells.
enum {
    ITEM_CELLS = sizeof(CatalogueItem) / sizeof(char *),
    CLAIM_CELLS = sizeof(CatalogueClaim) / sizeof(char *)
};

// Cuts the lines below the first, which names the columns, into cells. Gives the number of lines.
static int read_rows(char *line, const char **cells, int columns, UNUSED int most) {
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
    LOCAL(catalogue_release) Catalogue c;
    catalogue_open(&c);
    const CatalogueItem *known = catalogue_find(&c, name, NULL);
    if (!known)
        return error_input(e, "'%s' has nothing for %s: name a run of the same methods by --run", db, name);
    if (known->smoke)
        return error_input(e, "'%s' has nothing for %s: run '%s --db %s'", db, name, known->smoke, db);
    return error_input(e, "'%s' has nothing for %s: run 'outpace run configs/%s.yaml --scale smoke --db %s'",
                       db, name, known->experiment, db);
}

// --- claims

const char *const claim_verdicts[CLAIM_VERDICTS] = {"holds", "does not", "undecided", "not run"};

typedef struct Side {
    double *values; // (count)
    size_t count, capacity;
} Side;

// Claims about time are asked pass by pass: machines drift between passes by more than prompts tell.
enum { PASSES_MOST = 16 };

// The form of a query's rows: (name, margin) of a prompt; (name, a, b), a margin of means over other prompts;
// (name, hits, trials, bound) of a prompt, a share above a bound; (name, margin, low, high), an interval.
typedef enum Form { FORM_PAIRED = 2, FORM_SIDES = 3, FORM_INTERVAL = 4, FORM_SHARE } Form;

typedef struct Comparison {
    char *name;
    Side a[PASSES_MOST], b[PASSES_MOST]; // FORM_SHARE: hits and trials
    int passes;                          // 1 if it isn't of time
    bool timed;
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
    *LIST_ADD(side->values, side->count, side->capacity) = x;
}

static void add_row(Comparisons *all, const Rows *r, Form form, bool timed, int pass) {
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
    // Of a query about time, all but those called S or accepted.
    c->timed = timed && strncmp(name, "S ", 2) != 0 && strncmp(name, "S, ", 3) != 0 &&
               strncmp(name, "accepted", 8) != 0;
    if (pass > 0 && !c->timed) return; // as in the first
    if (c->passes < pass + 1) c->passes = pass + 1;
    add_value(&c->a[pass], r, 1);
    if (form != FORM_PAIRED) add_value(&c->b[pass], r, 2);
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
    const Side *a = c->a, *b = c->b;
    double trials = mean_of(b) * (double)b->count, share = mean_of(a) / mean_of(b);
    double low = share, high = share;
    if (share <= 0) high = 1 - pow((1 - level) / 2, 1 / trials);
    else if (share >= 1) low = pow((1 - level) / 2, 1 / trials);
    else {
        Side of = {.values = mem_new(a->count, sizeof(double)), .count = a->count};
        for (size_t i = 0; i < of.count; i++)
            of.values[i] = (a->values[i] - share * b->values[i]) / mean_of(b);
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
    // Of the passes' own reaches the root of the mean square: more passes of a prompt are no more prompts.
    double values[PASSES_MOST], squares = 0;
    Side passes = {.values = values};
    for (int p = 0; p < c->passes; p++) {
        double reach = reach_of(&c->a[p], level);
        if (!c->a[p].count || (form == FORM_SIDES && !c->b[p].count)) continue;
        if (form == FORM_SIDES) reach = hypot(reach, reach_of(&c->b[p], level));
        squares += reach * reach;
        values[passes.count++] = mean_of(&c->a[p]) - (form == FORM_SIDES ? mean_of(&c->b[p]) : 0);
    }
    double reach = sqrt(squares / (double)passes.count);
    if (c->timed) reach = hypot(reach, reach_of(&passes, level)); // of one pass: unknown
    c->value = mean_of(&passes);
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
    size_t prompts = c->a[0].count + (form == FORM_SIDES ? c->b[0].count : 0);
    if (prompts) text_printf(&out->why, ", %zu prompts", prompts);
    if (c->timed) text_printf(&out->why, ", %d pass%s", c->passes, c->passes > 1 ? "es" : ": drift unknown");
    if (all->count > 1) text_printf(&out->why, "; %zu of %zu comparisons hold", held, all->count);
}

// The query of all passes, or of ?1 alone.
static Rows *ask(Store *store, const char *query, bool timed, Error *e) {
    LOCAL_TEXT sql = {0};
    if (!timed) return rows_open(store, query, e);
    bool tables = strncmp(query, "WITH", 4) == 0; // of its own
    text_printf(&sql, "%s%s%s", one_pass_sql, tables ? "," : "", query + (tables ? 4 : 0));
    return rows_open(store, text_get(&sql), e);
}

// Whether it reads a prompt's speedup or rate; a strategy is neither.
static bool is_timed(const char *query) {
    const char *rate = query;
    while ((rate = strstr(rate, "rate")) && rate > query && isalpha((unsigned char)rate[-1])) rate++;
    return strstr(query, "newest_prompt") && (rate || strstr(query, "speedup"));
}

bool claim_judge(Store *store, const CatalogueClaim *claim, ClaimJudgement *out, Error *e) {
    Comparisons all = {0};
    *out = (ClaimJudgement){.verdict = CLAIM_NOT_RUN};
    if (!claim->query) return true;
    bool timed = is_timed(claim->query), ok = true, some = true;
    Form form = FORM_PAIRED;
    for (int pass = 0; ok && some && pass < (timed ? PASSES_MOST : 1); pass++) {
        Rows *r = ask(store, claim->query, timed, e);
        int columns = r ? rows_columns(r) : 0;
        ok = r && ((columns >= 2 && columns <= 4) ||
                   error_input(e, "the claim '%s': its query has %d columns", claim->claim, columns));
        if (ok) form = columns == 4 && strcmp(rows_name(r, 1), "hits") == 0 ? FORM_SHARE : (Form)columns;
        if (ok && timed) rows_bind_int(r, 1, pass);
        for (some = false; ok && rows_next(r); some = true) add_row(&all, r, form, timed, pass);
        ok = rows_end(r, ok, e);
    }
    if (ok) judge(&all, form, out);
    for (Comparison *c = all.list; c < all.list + all.count; c++) {
        mem_free(c->name);
        for (int i = 0; i < PASSES_MOST; i++) MEM_FREE(c->a[i].values, c->b[i].values);
    }
    mem_free(all.list);
    if (ok) return true;
    text_release(&out->why);
    return error_within(e, "claim '%s, %s'", claim->paper, claim->where);
}
