// The papers' numbers: every file reads, and names only measures that the program computes.
#include "tests/support/check.h"

#include "engine/base/text.h"
#include "harness/papers/match.h"
#include "harness/papers/ours.h"
#include "results/published.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_row(const char *name, const Published *p, const PublishedRow *r) {
    Error e = {0};
    Text all = {0};
    char *end;
    if (*r->method && strncmp(r->method, "other:", 6) != 0 && !method_text_expand(r->method, "", &all, &e))
        fail_msg("%s, row %s: %s", name, r->row, e.text);
    text_release(&all);
    if (!quantity_known(published_metric(p, r->metric)->measure))
        fail_msg("%s: no measure for %s", name, r->metric);
    strtod(r->value, &end);
    if (*end && strcmp(r->value, "NA") != 0 && !strpbrk(r->value, "-><"))
        fail_msg("%s: value '%s'", name, r->value);
    if (strcmp(r->value, "NA") == 0 && !*r->note) fail_msg("%s, row %s: NA without a reason", name, r->row);
}

static void all_of_them(void **state) {
    (void)state;
    assert_int_equal(published_count, 35); // the 34 of the papers, and Spec-Bench's leaderboard
    for (int i = 0; i < published_count; i++) {
        Published p;
        published_open(&p, &published_items[i]);
        assert_true(p.row_count > 0 && p.metric_count > 0);
        for (size_t k = 0; k < p.row_count; k++) check_row(published_items[i].name, &p, &p.rows[k]);
        published_release(&p);
    }
    assert_null(published_find("lookahead-table-1"));
}

// A row's printed average is that of its cells; those that aren't legible leave it room for 1 to 2.
static bool average_holds(const Published *p, const PublishedRow *mean) {
    double sum = 0, want = strtod(mean->value, NULL);
    int known = 0, unknown = 0;
    for (size_t k = 0; k < p->row_count; k++) {
        const PublishedRow *r = &p->rows[k];
        if (r == mean || !*r->task || strcmp(r->row, mean->row) != 0 || strcmp(r->model, mean->model) != 0 ||
            strcmp(r->dataset, mean->dataset) != 0 || strcmp(r->metric, mean->metric) != 0)
            continue;
        bool legible = strcmp(r->value, "NA") != 0;
        known += legible;
        unknown += !legible;
        sum += legible ? strtod(r->value, NULL) : 0;
    }
    if (known == 0) return false;
    double rest = want * (known + unknown) - sum, digits = 0.01 * (known + unknown);
    if (rest < unknown - digits || rest > 2 * unknown + digits)
        fail_msg("%s, %s, %s: the average %s leaves %g for %d cells", p->title, mean->row, mean->model,
                 mean->value, rest, unknown);
    return true;
}

static void averages(void **state) {
    (void)state;
    int held = 0;
    for (int i = 0; i < published_count; i++) {
        Published p;
        published_open(&p, &published_items[i]);
        for (size_t k = 0; k < p.row_count; k++)
            if (strcmp(p.rows[k].task, "mean") == 0 && strcmp(p.rows[k].value, "NA") != 0)
                held += average_holds(&p, &p.rows[k]);
        published_release(&p);
    }
    assert_in_range(held, 6, 1000); // Kangaroo's Table 1
}

// Numbers that can be looked up in the papers.
static void some_of_them(void **state) {
    (void)state;
    Published p;
    published_open(&p, published_find("lookahead-table-3"));
    const PublishedRow *last = &p.rows[p.row_count - 1];
    assert_string_equal(last->row, "(9)");
    assert_string_equal(last->method, "lookahead:mode=reference,W=15,N=5,G=15,prompt_pool=on");
    assert_string_equal(last->value, "2.05");
    assert_string_equal(published_metric(&p, "S")->measure, "S_reference");
    published_release(&p);
    assert_null(p.rows);
}

// Whether a row has that model, or that dataset ("spec-bench:TASK").
static bool is_published(const char *name) {
    bool found = false;
    for (int i = 0; i < published_count && !found; i++) {
        Published p;
        published_open(&p, &published_items[i]);
        for (size_t k = 0; k < p.row_count && !found; k++) {
            const PublishedRow *r = &p.rows[k];
            size_t n = strlen(r->dataset);
            found = strcmp(name, r->model) == 0 ||
                    (strncmp(name, r->dataset, n) == 0 &&
                     (!name[n] || (name[n] == ':' && strcmp(name + n + 1, r->task) == 0)));
        }
        published_release(&p);
    }
    return found;
}

// Our names are of models and datasets that the papers have.
static void names(void **state) {
    (void)state;
    const char *root = getenv("OUTPACE_ROOT");
    char published[80], ours[80], as[80], end, path[512], line[256];
    snprintf(path, sizeof path, "%s/results/published/names.tsv", root ? root : ".");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_string_equal(fgets(line, sizeof line, file), "published\tours\tas\n");
    int count = 0;
    for (; fgets(line, sizeof line, file); count++) {
        if (sscanf(line, "%79[^\t]\t%79[^\t]\t%79[^\n]%c", published, ours, as, &end) != 4 || end != '\n' ||
            (strcmp(as, "same") != 0 && strcmp(as, "like") != 0))
            fail_msg("wanted 'published, ours, same or like', got '%s'", line);
        if (!is_published(published)) fail_msg("no paper has '%s'", published);
    }
    assert_true(count > 30);
    fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_of_them), cmocka_unit_test(averages),
                                       cmocka_unit_test(some_of_them), cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
