// Prices and published pairs of S and speedup: the pairs read, and the errors of their prices.
#include "tests/support/check.h"

#include "tests/support/prices.h"
#include "tests/support/scratch.h"
#include "engine/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const PricePair *pair(const Prices *p, const char *item, const char *row, const char *model,
                             const char *machine) {
    for (size_t i = 0; i < p->count; i++) {
        const PricePair *x = &p->list[i];
        if (!strcmp(x->item, item) && !strcmp(x->row, row) && !strcmp(x->model, model) &&
            !strcmp(x->machine, machine))
            return x;
    }
    fail_msg("no pair %s, %s, %s, %s", item, row, model, machine);
    return NULL;
}

static void reads_what_is_published(void **state) {
    (void)state;
    Prices p;
    Error e = {0};
    if (!prices_open(&p, &e)) fail_msg("%s", e.text);
    assert_int_equal(p.count, 47);
    const PricePair *x = pair(&p, "lookahead-table-3", "(8)", "LLaMA-2-7B-Chat", "a100-80gb");
    assert_true(x->S == 1.96 && x->speedup == 1.78 && x->draft == 0);
    x = pair(&p, "spec-bench", "Medusa", "Vicuna-7B-v1.3", "rtx3090");
    assert_true(x->S == 2.32 && x->speedup == 1.44 && x->draft > 0 && x->passes == 1);
    for (size_t i = 0; i < p.count; i++) {
        x = &p.list[i];
        assert_true(x->one > 0 && x->verify > x->one && x->step == x->verify + x->draft);
        assert_true(x->S > 1 && x->speedup > 1 && x->speedup < x->S);
    }
    prices_close(&p);
}

// By hand: the loss of Lookahead's row (8) is the mean of rows (7) and (9), and nothing of its own.
static void loss_is_of_others(void **state) {
    (void)state;
    Prices p;
    Error e = {0};
    if (!prices_open(&p, &e)) fail_msg("%s", e.text);
    const PricePair *a = pair(&p, "lookahead-table-3", "(7)", "LLaMA-2-7B-Chat", "a100-80gb"), *b = a + 1,
                    *c = a + 2;
    assert_string_equal(b->row, "(8)");
    assert_string_equal(c->row, "(9)");
    double of_a = a->one * a->S / a->speedup / a->step, of_c = c->one * c->S / c->speedup / c->step;
    assert_true(fabs(b->with_loss / (b->step * sqrt(of_a * of_c)) - 1) < 1e-12);
    const PricePair *alone = pair(&p, "kangaroo-table-1", "Medusa", "Vicuna-13B", "v100-32gb");
    assert_true(isnan(price_error_with_loss(alone))); // six tasks of one row, model and machine: no others
    // Of a draft's share: the eleven other rows of the table, of both models.
    const PricePair *k = pair(&p, "kangaroo-table-1", "Kangaroo", "Vicuna-7B", "v100-32gb");
    double sum = 0;
    for (size_t i = 0; i < p.count; i++) {
        const PricePair *x = &p.list[i];
        if (!strcmp(x->row, "Kangaroo") && x != k) sum += (x->one * x->S / x->speedup - x->step) / x->draft;
    }
    assert_true(fabs(k->with_loss / (k->step + k->draft * sum / 11) - 1) < 1e-12);
    // Of a layer's time on the host: 13B's rows that tell it, and Mistral's, whose layers are as many, make
    // one token of Phi-3 take as long as its step.
    const PricePair *phi = pair(&p, "ngrammys-table-1", "(10,10)", "Phi-3-mini", "a100-40gb");
    assert_true(phi->layers == 32 && phi->with_loss == phi->one);
    const PricePair *large = pair(&p, "ngrammys-table-1", "(10,10)", "Vicuna-13B", "a100-40gb");
    assert_true(large->with_loss == large->step); // the card takes longer
    prices_close(&p);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The numbers of results/prices.md.
static void errors_are_as_told(void **state) {
    (void)state;
    Prices p;
    Error e = {0};
    if (!prices_open(&p, &e)) fail_msg("%s", e.text);
    double errors[64];
    size_t n = 0;
    for (size_t i = 0; i < p.count; i++)
        if (!isnan(price_error_with_loss(&p.list[i]))) errors[n++] = fabs(price_error_with_loss(&p.list[i]));
    qsort(errors, n, sizeof *errors, by_size);
    assert_int_equal(n, 37);
    if (errors[n / 2] > 0.02 || errors[n - 1] > 0.125)
        fail_msg("median %g, worst %g", errors[n / 2], errors[n - 1]);
    // Another machine from this one: programs that check a fixed number of rows, within 4%.
    static const char *const ROWS[] = {"Medusa", "PLD", "Lookahead"};
    for (int i = 0; i < 3; i++) {
        const PricePair *x = pair(&p, "spec-bench", ROWS[i], "Vicuna-7B-v1.3", "rtx3090");
        if (!(fabs(price_error_with_loss(x)) < 0.04)) fail_msg("%s: %g", ROWS[i], price_error_with_loss(x));
    }
    prices_close(&p);
}

// results/prices.md ends with the table. OUTPACE_GOLDEN=write: writes it anew.
static void the_page_is_current(void **state) {
    (void)state;
    Prices p;
    Error e = {0};
    if (!prices_open(&p, &e)) fail_msg("%s", e.text);
    const char *root = getenv("OUTPACE_ROOT"), *golden = getenv("OUTPACE_GOLDEN");
    char folder[512];
    snprintf(folder, sizeof folder, "%s/results", root ? root : ".");
    size_t size;
    char *page = scratch_read(folder, "prices.md", &size), *table = strstr(page, "| item |");
    assert_non_null(table);
    Text text = {0};
    prices_print(&p, &text);
    if (golden && strcmp(golden, "write") == 0) {
        Text whole = {0};
        text_printf(&whole, "%.*s%s", (int)(table - page), page, text_get(&text));
        scratch_write(folder, "prices.md", text_get(&whole), whole.length);
        text_release(&whole);
    } else assert_string_equal(table, text_get(&text));
    mem_free(page);
    text_release(&text);
    prices_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_is_published), cmocka_unit_test(loss_is_of_others),
        cmocka_unit_test(errors_are_as_told), cmocka_unit_test(the_page_is_current)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
