// Is B faster than A?
#include "harness/cli/command.h"

#include "harness/cli/records.h"
#include "harness/analysis/choice.h"
#include "harness/analysis/compare.h"
#include "harness/cli/terminal.h"
#include "results/store.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *db;
    double margin;
    bool absolute;
    Records records;
    Choice choice;
} CompareOptions;

#define AT(name) offsetof(CompareOptions, name)
static const Arg OPTIONS[] = {
    {"db", ARG_WORD, AT(db), .help = "the store", .value = "FILE", .fallback = STORE_DEFAULT},
    {"margin", ARG_REAL, AT(margin), 0, 0.5, "0.02", .help = "a difference that means nothing to you",
     .value = "X"},
    {"absolute", ARG_FLAG, AT(absolute), .help = "judge times, not speedups over the baselines"},
    RECORDS_OPTIONS(AT(records)),
    CHOICE_OPTIONS(AT, choice),
};
#undef AT

// --- rows ------------------------------------------------------------------------------------------------

static const GridColumn COLUMN[] = {
    {"B is", false, 0, 0},    {"ratio", true, 0, 0}, {"[95%]", false, 0, 0},  {"prompts", true, 0, 3},
    {"speedup", false, 0, 2}, {"S", false, 0, 1},    {"point", false, 24, 0}, {"disturbed", false, 0, 0},
};

// The value and its interval, each in a cell.
static void put_ratio(Grid *g, const Ratio *r) {
    char value[MEASURED_SIZE];
    Text both = {0};
    text_puts(&g->cell, measured_text(value, r->value, r->interval.low, r->interval.high)), grid_next(g);
    text_measured(&both, r->value, r->interval.low, r->interval.high);
    const char *interval = strchr(text_get(&both), ' ');
    text_puts(&g->cell, interval ? interval + 1 : ""), grid_next(g);
    text_release(&both);
    text_printf(&g->cell, "%d", r->prompts), grid_next(g);
}

// "1.95 -> 1.94", to three digits.
static void put_change(Grid *g, double a, double b) {
    char before[MEASURED_SIZE], after[MEASURED_SIZE];
    if (isfinite(a) && isfinite(b))
        text_printf(&g->cell, "%s -> %s", measured_text(before, a, NAN, NAN),
                    measured_text(after, b, NAN, NAN));
    grid_next(g);
}

static void put_pair(Grid *g, const ComparePair *p, Judgement j) {
    text_puts(&g->cell, p->kind == COMPARED_MACHINE ? "(baseline)" : compare_word(j)), grid_next(g);
    put_ratio(g, &p->ratio);
    put_change(g, p->speedup_a, p->speedup_b);
    put_change(g, p->S_a, p->S_b);
    text_printf(&g->cell, "%s, %s", p->label_b, p->dataset);
    if (strcmp(p->label_a, p->label_b) != 0) text_printf(&g->cell, "; A: %s", p->label_a);
    if (p->lost_text) text_puts(&g->cell, "; ITS TEXT IS NOT THE BASELINE'S ANY MORE");
    grid_next(g);
    if (p->ratio.disturbed) text_printf(&g->cell, "%d/%d", p->ratio.disturbed, p->ratio.samples);
    if (p->ratio.doubted) text_printf(&g->cell, "%sabove S", g->cell.length ? ", " : "");
    grid_next(g);
    grid_end(g);
}

// --- sentences -------------------------------------------------------------------------------------------

static const char *all_of(const Comparison *c) {
    return c->kind == COMPARED_SPEEDUP ? "B's speedups are" : "by absolute times B is";
}

// Why it is unclear; nothing where the interval is the reason.
static void put_why(const Ratio *r, Text *out) {
    if (r->prompts < COMPARE_PROMPTS) text_puts(out, ": fewer than ten prompts");
    else if (!r->calm) text_printf(out, ": something disturbed %d of %d samples", r->disturbed, r->samples);
    else if (r->doubted) text_puts(out, ": a baseline was disturbed");
}

static void put_all(const Comparison *c, Judgement j, Text *out) {
    static const char *const WORDS[] = {[JUDGED_SAME] = "no difference",
                                        [JUDGED_FASTER] = "B is faster",
                                        [JUDGED_SLOWER] = "B is slower",
                                        [JUDGED_UNCLEAR] = "no clear difference"};
    text_printf(out, "\n%s", WORDS[j]);
    if (j == JUDGED_UNCLEAR) put_why(&c->all, out);
    text_printf(out, "; %s ", all_of(c));
    text_measured(out, c->all.value, c->all.interval.low, c->all.interval.high);
    text_printf(out, " times %s, over %d prompts\n", c->kind == COMPARED_SPEEDUP ? "A's" : "as fast as A",
                c->all.prompts);
    if (c->all.disturbed && c->all.calm)
        text_printf(out, "%d of %d samples are left out: something disturbed them, or their counterparts\n",
                    c->all.disturbed, c->all.samples);
}

// Of the baselines: not of B's speed as long as the program is the same.
static void put_machine(const Comparison *c, double margin, Text *out) {
    const Ratio *m = &c->machine;
    const Interval *i = &m->interval;
    if (m->samples == 0 || !isfinite(m->value)) return;
    text_puts(out, c->other_machine ? "B ran on another machine"
                   : i->high < 1 - margin || i->low > 1 + margin
                       ? c->other_program ? "the machine changed, or the program did" : "the machine changed"
                   : i->low >= 1 - margin && i->high <= 1 + margin ? "the machine did not change"
                                                                   : "no clear change of the machine");
    text_puts(out, "; a token of the baselines took ");
    text_measured(out, 1 / m->value, 1 / m->interval.high, 1 / m->interval.low);
    text_puts(out, " times as long in B\n");
    if (c->other_program && c->kind == COMPARED_SPEEDUP)
        text_puts(
            out,
            "A and B ran different programs: only runs side by side can tell a faster program from a faster "
            "machine; --absolute judges the times all the same\n");
}

// How many judgements are to be right together.
static int judgements_of(const Comparison *c) {
    int count = 0;
    for (int i = 0; i < c->count; i++) count += c->pairs[i].kind != COMPARED_MACHINE;
    return count > 1 ? count + 1 : count; // and of all together
}

static Judgement judge(const Comparison *c, const ComparePair *p, double margin) {
    return p->kind == COMPARED_MACHINE ? JUDGED_UNCLEAR : compare_judge(&p->ratio, margin, judgements_of(c));
}

// Whether any is slower, or lost its text.
static bool is_worse(const Comparison *c, double margin) {
    int judgements = judgements_of(c);
    bool worse = judgements && compare_judge(&c->all, margin, judgements) == JUDGED_SLOWER;
    for (int i = 0; i < c->count; i++)
        worse = worse || judge(c, &c->pairs[i], margin) == JUDGED_SLOWER || c->pairs[i].lost_text;
    return worse;
}

// --- records ---------------------------------------------------------------------------------------------

static json_t *ratio_json(const Ratio *r, const char *verdict) {
    return json_pack("{s:s, s:o, s:o, s:o, s:i, s:i, s:i}", "verdict", verdict, "ratio",
                     json_number(r->value), "ratio_low", json_number(r->interval.low), "ratio_high",
                     json_number(r->interval.high), "prompts", r->prompts, "samples", r->samples, "disturbed",
                     r->disturbed);
}

static json_t *pair_json(const Comparison *c, const ComparePair *p, double margin) {
    static const char *const OF[COMPARED_KINDS] = {"speedup", "time", "baseline"};
    json_t *o = ratio_json(&p->ratio, compare_word(judge(c, p, margin)));
    json_t *more = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "of", OF[p->kind],
                             "speedup_a", json_number(p->speedup_a), "speedup_b", json_number(p->speedup_b),
                             "S_a", json_number(p->S_a), "S_b", json_number(p->S_b), "point_a",
                             json_from_text(p->label_a), "point_b", json_from_text(p->label_b), "dataset",
                             json_from_text(p->dataset), "doubt_a", json_from_text(p->doubt_a), "doubt_b",
                             json_from_text(p->doubt_b), "lost_text", p->lost_text);
    json_object_update(o, more);
    json_decref(more);
    return o;
}

static bool print_records(const Comparison *c, double margin, const Records *as, Error *e) {
    json_t *list = json_array();
    for (int i = 0; i < c->count; i++) json_array_append_new(list, pair_json(c, &c->pairs[i], margin));
    json_t *root =
        json_pack("{s:o, s:o, s:i}", "points", list, "all",
                  ratio_json(&c->all, compare_word(compare_judge(&c->all, margin, judgements_of(c)))),
                  "alone", c->alone);
    return records_print(root, "points", as, e);
}

static bool print(const Comparison *c, double margin, Error *e) {
    Grid g = {.columns = COLUMN, .count = sizeof COLUMN / sizeof *COLUMN};
    Text text = {0};
    int judgements = judgements_of(c);
    grid_heads(&g);
    for (int i = 0; i < c->count; i++) put_pair(&g, &c->pairs[i], judge(c, &c->pairs[i], margin));
    bool ok = grid_show(&g, e);
    grid_release(&g);
    if (judgements) put_all(c, compare_judge(&c->all, margin, judgements), &text);
    put_machine(c, margin, &text);
    if (c->alone) text_printf(&text, "%d points are on one side only\n", c->alone);
    terminal_print(&text);
    return ok;
}

static bool run(int argc, char **argv, int *code, Error *e) {
    CompareOptions o = {.db = STORE_DEFAULT, .margin = 0.02};
    Words rest;
    bool stop;
    if (!command_parse(&command_compare, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    CompareSide a = {0}, b = {0};
    Comparison c = {0};
    bool ok = compare_find(rest.items[0], o.db, &a, e) && compare_find(rest.items[1], o.db, &b, e) &&
              choice_apply(&o.choice, a.store, a.run, e) && choice_apply(&o.choice, b.store, b.run, e) &&
              compare_sides(&a, &b, o.absolute, &c, e);
    ok = ok &&
         (records_asked(&o.records) ? print_records(&c, o.margin, &o.records, e) : print(&c, o.margin, e));
    if (ok && is_worse(&c, o.margin)) *code = EXIT_FAILED;
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
        "is taken; FILE:12/3 is a point in another store. Points are paired by their content (model,\n"
        "prompts, method, settings; not the paths of files), two single points by their prompts alone.\n"
        "\n"
        "Compares the speedup over the baseline that was measured with each sample, prompt by\n"
        "prompt: a ratio above 1 is B faster, with an interval of 2000 resamples of prompts and of passes\n"
        "within them. A slower or busier machine slows the baselines as well: their own change is printed\n"
        "separately. Disturbed samples are left out on both sides: 12/48 is how many of how many; above S:\n"
        "a speedup that only a disturbed baseline gives.\n"
        "\n"
        "An interval within the margin around 1 is the same; one beyond it, after it is widened to judge\n"
        "all points at once, is faster or slower. Everything else is unclear, and so is a comparison of\n"
        "fewer than ten undisturbed prompts, or with a speedup above S (its baseline was disturbed).\n"
        "\n"
        "Exit code 1 if any point or all together are slower, or if a text is not its baseline's any more.\n"
        "A baseline has no baseline of its own. To guard its speed, use --absolute, which judges the time\n"
        "of a token, on a machine that runs nothing else. Points without a baseline are always judged so.\n"
        "\n"
        "  outpace compare 11 12\n"
        "  outpace compare 12/1 12/3 --margin 0.01\n"
        "  outpace compare before.db after.db --absolute --method autoregressive\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};
