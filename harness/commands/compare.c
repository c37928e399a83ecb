// Is B faster than A?
#include "harness/program/command.h"

#include "harness/stored/choice.h"
#include "harness/stored/compare.h"
#include "harness/run/prepare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *db;
    double margin;
    Choice choice;
} CompareOptions;

#define AT(name) offsetof(CompareOptions, name)
static const Option OPTIONS[] = {
    {"db",     0, OPTION_TEXT, AT(db),     0, 0,   "FILE", "the store",                              STORE_DEFAULT},
    {"margin", 0, OPTION_REAL, AT(margin), 0, 0.5, "X",    "a difference that means nothing to you", "0.02"       },
    CHOICE_OPTIONS(AT, choice),
};
#undef AT

// Of the column of points: the longest label's.
static int label_width(const Comparison *c) {
    size_t width = 36;
    for (int i = 0; i < c->count; i++)
        if (strlen(c->pairs[i].label_b) > width) width = strlen(c->pairs[i].label_b);
    return (int)width;
}

static void print_row(int width, const char *label, const char *dataset, const Tally *t, double S_a,
                      Judgement j) {
    printf("%-12s %-16s %-*s %4d", compare_word(j), dataset, width, label, t->prompts);
    const Interval *ratio = &t->interval[TALLY_SPEEDUP], *S = &t->interval[TALLY_S],
                   none = {.low = NAN, .high = NAN};
    char before[MEASURED_SIZE], after[MEASURED_SIZE];
    Text text = {0};
    if (!t->has_interval) ratio = S = &none;
    text_measured(&text, t->value[TALLY_SPEEDUP], ratio->low, ratio->high);
    printf(" %-24s", text.length ? text_get(&text) : "-");
    text_release(&text);
    if (S_a > 0)
        printf("  S %s -> %s", measured_text(before, S_a, S->low, S->high),
               measured_text(after, t->value[TALLY_S], S->low, S->high));
}

// True if any is slower, or lost its text.
static bool print(const Comparison *c, double margin) {
    bool worse = false;
    int width = label_width(c);
    printf("%-12s %-16s %-*s %4s %s\n", "B is", "dataset", width, "point", "prompts", "ratio [95%]");
    for (int i = 0; i < c->count; i++) {
        const ComparePair *p = &c->pairs[i];
        Judgement j = compare_judge(&p->tally, margin);
        print_row(width, p->label_b, p->dataset, &p->tally, p->S_a, j);
        if (strcmp(p->label_a, p->label_b) != 0) printf("  against %s", p->label_a);
        if (p->lost_text) printf("  ITS TEXT IS NOT THE BASELINE'S ANY MORE");
        printf("\n");
        worse = worse || j == JUDGED_SLOWER || p->lost_text;
    }
    Judgement all = compare_judge(&c->all, margin);
    if (c->count > 1) {
        print_row(width, "all together", "", &c->all, 0, all);
        printf("\n");
    }
    if (c->alone) printf("%d points stand on one side only\n", c->alone);
    return worse || all == JUDGED_SLOWER;
}

static bool run(int argc, char **argv, int *code, Error *e) {
    CompareOptions o = {.db = STORE_DEFAULT, .margin = 0.02};
    Positionals rest;
    bool stop;
    if (!command_parse(&command_compare, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    CompareSide a = {0}, b = {0};
    Comparison c = {0};
    bool ok = compare_find(rest.items[0], o.db, &a, e) && compare_find(rest.items[1], o.db, &b, e) &&
              choice_apply(&o.choice, a.store, a.run, e) && choice_apply(&o.choice, b.store, b.run, e) &&
              compare_sides(&a, &b, &c, e);
    if (ok && print(&c, o.margin)) *code = EXIT_FAILED;
    compare_release(&c);
    store_close(a.store);
    store_close(b.store);
    return ok;
}

const Command command_compare = {
    .name = "compare",
    .usage = "A B [OPTIONS]",
    .summary = "is B faster than A? runs, points, or stores; exit code 1 if it is slower",
    .arguments = {2, 2},
    .lesson =
        "A and B are runs (a number or a name), points of runs (12/3), or stores, of which the newest run\n"
        "is taken; FILE:12/3 is a point in another store. Points are paired by their content, two single\n"
        "points always, and their prompts one by one: the ratio is A's time per token over B's, so above\n"
        "1 B is faster, with an interval of 2000 resamples of prompts and of passes within them.\n"
        "\n"
        "All of the interval within the margin around 1: same. All of it beyond: faster, or slower. Else\n"
        "it cannot be told: measure more prompts. Exit code 1 if any point or all together are slower, or\n"
        "if a text is not its baseline's any more.\n"
        "\n"
        "  outpace compare 11 12\n"
        "  outpace compare 12/1 12/3 --margin 0.01\n"
        "  outpace compare before.db after.db\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run
};
