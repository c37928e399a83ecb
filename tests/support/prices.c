// Prices of the pairs that papers publish (results/prices.tsv), against their own speedup / S. A pair, and
// those of its row, model and card, never correct its own price.
#include "tests/support/prices.h"

#include "engine/base/shipped.h"
#include "engine/base/memory.h"
#include "harness/price/priced.h"
#include "results/published.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

EMBED(prices_tsv, "results/prices.tsv")

enum { FIELDS = 13 };
typedef enum Field {
    FAMILY,
    ITEM,
    ROW,
    MODEL,
    DEVICE,
    MACHINE,
    SHAPE,
    STEP,
    CONTEXT,
    PASSES,
    DRAFT,
    LOSS,
    TAKEN
} Field;

// --- a price ---------------------------------------------------------------------------------------------

// "chain N", "batch K W", either with " plain" behind it; N may be S.
static StepPlan plan_of(const char *step, int context, double S) {
    char *end;
    if (strncmp(step, "batch ", 6) == 0) {
        int k = (int)strtol(step + 6, &end, 10);
        return step_batch(k, (int)strtol(end, NULL, 10), context);
    }
    assert(strncmp(step, "chain ", 6) == 0);
    return step_chain(step[6] == 'S' ? (int)ceil(S) : (int)strtol(step + 6, NULL, 10), context);
}

// Of a draft "PARAMETERS:LAYERS" a pass, or "PARAMETERS-LESS:LAYERS" where the step leaves out what LESS
// parameters do. They are read, each at two bytes.
static double draft_seconds(const Hardware *h, const char *draft, double passes) {
    if (strcmp(draft, "-") == 0) return 0;
    char *end;
    double each = strtod(draft, &end), less = *end == '-' ? strtod(end + 1, &end) : 0;
    double layers = *end == ':' ? strtod(end + 1, NULL) : 0;
    return 2 * (passes * each - less) / (h->bytes_per_s * h->read_share) +
           passes * layers * h->launches * h->launch_s;
}

static bool price(const char *const *f, PricePair *p, Error *e) {
    Hardware h;
    StepModel m;
    if (!machine_open(f[MACHINE], &h, e) || !step_model_open(f[SHAPE], &m, e)) return false;
    int context = (int)strtol(f[CONTEXT], NULL, 10);
    m.plain = strstr(f[STEP], " plain") != NULL;
    StepPlan one = step_chain(1, context), many = plan_of(f[STEP], context, p->S);
    p->passes = f[PASSES][0] == 'S' ? p->S : strtod(f[PASSES], NULL);
    p->one = hardware_price(&h, &m, &one).total;
    p->verify = hardware_price(&h, &m, &many).total;
    p->draft = draft_seconds(&h, f[DRAFT], p->passes);
    p->step = p->verify + p->draft;
    p->layers = m.layers;
    p->loss = strcmp(f[LOSS], "pass") == 0    ? LOSS_PASS
              : strcmp(f[LOSS], "layer") == 0 ? LOSS_LAYER
              : strcmp(f[LOSS], "draft") == 0 ? LOSS_DRAFT
                                              : LOSS_STEP;
    return true;
}

// --- pairs -----------------------------------------------------------------------------------------------

static bool is_any(const char *pattern, const char *text) {
    return strcmp(pattern, "*") == 0 || strcmp(pattern, text) == 0;
}

static bool is_S(const Published *p, const char *metric) {
    const PublishedMetric *m = published_metric(p, metric);
    return m && (strcmp(m->measure, "S") == 0 || strcmp(m->measure, "S_reference") == 0);
}

static bool number(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end > text && !*end;
}

static bool same_place(const PublishedRow *a, const PublishedRow *b) {
    return strcmp(a->row, b->row) == 0 && strcmp(a->model, b->model) == 0 &&
           strcmp(a->dataset, b->dataset) == 0 && strcmp(a->task, b->task) == 0 &&
           strcmp(a->device, b->device) == 0;
}

// For a row of S, the speedup printed at the same place.
static const PublishedRow *speedup_beside(const Published *p, const PublishedRow *row, double *speedup) {
    for (size_t i = 0; i < p->row_count; i++)
        if (strcmp(p->rows[i].metric, "speedup") == 0 && same_place(&p->rows[i], row) &&
            number(p->rows[i].value, speedup))
            return &p->rows[i];
    return NULL;
}

static bool add_pairs(Prices *out, const Published *p, const char *const *f, Error *e) {
    for (size_t i = 0; i < p->row_count; i++) {
        const PublishedRow *r = &p->rows[i];
        double S, speedup;
        if (strcmp(r->row, f[ROW]) != 0 || !is_any(f[MODEL], r->model) || !is_any(f[DEVICE], r->device) ||
            !is_S(p, r->metric) || !number(r->value, &S) || !speedup_beside(p, r, &speedup))
            continue;
        mem_grow(&out->list, &out->capacity, out->count + 1, sizeof *out->list);
        PricePair *pair = &out->list[out->count++];
        *pair = (PricePair){.family = f[FAMILY],
                            .item = f[ITEM],
                            .row = r->row,
                            .model = r->model,
                            .task = *r->task ? r->task : r->dataset,
                            .machine = f[MACHINE],
                            .taken = f[TAKEN],
                            .S = S,
                            .speedup = speedup};
        if (!price(f, pair, e)) return false;
    }
    return true;
}

// --- losses ----------------------------------------------------------------------------------------------

static bool same_group(const PricePair *a, const PricePair *b) {
    if (a->loss == LOSS_DRAFT) return a == b;
    return strcmp(a->row, b->row) == 0 && strcmp(a->model, b->model) == 0 &&
           strcmp(a->machine, b->machine) == 0;
}

// A step as published takes S / speedup times one token. NAN: the pair doesn't tell.
static double lost(const PricePair *p) {
    double seconds = p->one * p->S / p->speedup, least = p->step * p->speedup / p->S;
    switch (p->loss) {
    case LOSS_STEP: return log(seconds / p->step);
    case LOSS_DRAFT: return (seconds - p->step) / p->draft;
    case LOSS_PASS: return (seconds - p->step) / p->passes;
    default: return least > p->one ? least / p->layers : NAN; // else the device took longer for one token
    }
}

static double with_loss(const PricePair *p, double loss) {
    switch (p->loss) {
    case LOSS_STEP: return p->step * exp(loss);
    case LOSS_DRAFT: return p->step + p->draft * loss;
    case LOSS_PASS: return p->step + p->passes * loss;
    default: return p->one * fmax(p->step, p->layers * loss) / fmax(p->one, p->layers * loss);
    }
}

static double with_loss_of_others(const Prices *p, const PricePair *own) {
    double sum = 0;
    int count = 0;
    for (size_t i = 0; i < p->count; i++) {
        const PricePair *other = &p->list[i];
        if (strcmp(other->family, own->family) != 0 || same_group(other, own) || isnan(lost(other))) continue;
        sum += lost(other);
        count++;
    }
    return count ? with_loss(own, sum / count) : NAN;
}

static double error_of(const PricePair *p, double step) { return p->one / step / (p->speedup / p->S) - 1; }
double price_error(const PricePair *p) { return error_of(p, p->step); }
double price_error_with_loss(const PricePair *p) { return error_of(p, p->with_loss); }

// --- all of it -------------------------------------------------------------------------------------------

static bool take_line(Prices *out, char *line, Error *e) {
    const char *f[FIELDS];
    int count = 0;
    for (char *save, *at = strtok_r(line, "\t", &save); at && count < FIELDS;
         at = strtok_r(NULL, "\t", &save))
        f[count++] = at;
    assert(count == FIELDS && published_find(f[ITEM]));
    mem_grow(&out->published, &out->published_capacity, out->published_count + 1, sizeof *out->published);
    Published *p = &out->published[out->published_count++];
    size_t before = out->count;
    published_open(p, published_find(f[ITEM]));
    if (!add_pairs(out, p, f, e)) return false;
    assert(out->count > before); // the row is there
    (void)before;
    return true;
}

bool prices_open(Prices *out, Error *e) {
    *out = (Prices){.text = mem_text(prices_tsv, strlen(prices_tsv))};
    bool ok = out->text;
    char *line = ok ? strchr(out->text, '\n') + 1 : NULL; // the first names the columns
    while (ok && *line) {
        char *end = strchr(line, '\n');
        *end = 0;
        ok = take_line(out, line, e);
        line = end + 1;
    }
    for (size_t i = 0; ok && i < out->count; i++)
        out->list[i].with_loss = with_loss_of_others(out, &out->list[i]);
    if (!ok) prices_close(out);
    return ok;
}

void prices_close(Prices *p) {
    for (size_t i = 0; i < p->published_count; i++) published_release(&p->published[i]);
    mem_free(p->published);
    mem_free(p->list);
    mem_free(p->text);
    *p = (Prices){0};
}

// --- as a table ------------------------------------------------------------------------------------------

static int by_size(const void *a, const void *b) {
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return (x > y) - (x < y);
}

static void put_errors(const Prices *p, double (*of)(const PricePair *), const char *name, Text *out) {
    double *errors = mem_new(p->count + 1, sizeof *errors);
    size_t n = 0;
    for (size_t i = 0; errors && i < p->count; i++)
        if (!isnan(of(&p->list[i]))) errors[n++] = of(&p->list[i]);
    if (n) {
        qsort(errors, n, sizeof *errors, by_size);
        text_printf(out, "%s: median error %.1f%%, worst %.1f%%, of %zu pairs\n", name,
                    100 * fabs(errors[n / 2]), 100 * fabs(errors[n - 1]), n);
    }
    mem_free(errors);
}

static void put_percent(double x, Text *out) {
    if (!isnan(x)) text_printf(out, "%+.1f%%", 100 * x);
    text_puts(out, " | ");
}

void prices_print(const Prices *p, Text *out) {
    text_puts(out,
              "| item | row | model | task | machine | S | speedup | speedup / S | price alone | error | "
              "with the others' loss | taken |\n"
              "| --- | --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n");
    for (size_t k = 0; k < p->count; k++) {
        const PricePair *a = &p->list[k];
        text_printf(out, "| %s | %s | %s | %s | %s | %.2f | %.2f | %.3f | %.3f | ", a->item, a->row, a->model,
                    a->task, a->machine, a->S, a->speedup, a->speedup / a->S, a->one / a->step);
        put_percent(price_error(a), out);
        put_percent(price_error_with_loss(a), out);
        text_printf(out, "%s |\n", a->taken);
    }
    text_puts(out, "\n");
    put_errors(p, price_error, "The price alone, of data sheets", out);
    put_errors(p, price_error_with_loss, "With the mean loss of the family's other rows, models and machines",
               out);
}
