// Is B faster than A?
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "harness/analysis/choice.h"
#include "harness/analysis/compare.h"
#include "harness/cli/table.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *db;
    double margin;
    bool absolute, acceptance;
    Records records;
    Choice choice;
} CompareOptions;

#define AT(name) offsetof(CompareOptions, name)
static const Arg OPTIONS[] = {
    STORE_OPTION(AT(db)),
    {"margin", ARG_REAL, AT(margin), 0, 0.5, "0.02", .help = "a difference that means nothing to you",
     .value = "X"},
    {"absolute", ARG_FLAG, AT(absolute), .help = "judge times, not speedups over the baselines"},
    {"acceptance", ARG_FLAG, AT(acceptance), .help = "do they accept other guesses? step by step"},
    RECORDS_OPTIONS(AT(records)),
    CHOICE_OPTIONS(AT, choice),
};

// --- rows ------------------------------------------------------------------------------------------------

static const Column COLUMNS[] = {
    {"verdict", .help = "same, faster, slower, unclear"},
    {.head = "B is"},
    {"ratio ratio_low ratio_high", "ratio", AS_MEASURED, .help = "B is so many times as fast"},
    {.head = "[95%]", .kind = AS_REACH},
    {"prompts", "prompts", AS_COUNT, .drop = 3, .help = "behind it"},
    {"samples disturbed", .help = "behind it; how many of these were disturbed"},
    {"of", .help = "speedup, time, or the baseline itself"},
    {"speedup_a speedup_b", "speedup", AS_CHANGE, .drop = 2, .help = "over the baseline, of both sides"},
    {"S_a S_b", "S", AS_CHANGE, .drop = 1, .help = "tokens a step"},
    {"point_a point_b dataset", .help = "labels"},
    {.head = "point", .least = 24},
    {"doubt_a doubt_b", .help = "why a side's times may be wrong"},
    {"lost_text", .help = "B's text is no longer its baseline's"},
    {.head = "disturbed"},
};
static const Column ALONE[] = {{"alone", .help = "points without a counterpart"}};
enum { RATIO_COLUMNS = 6 }; // of COLUMNS
static const TableForm POINTS = {"compare", TABLE_COLUMNS(COLUMNS), .within = "points",
                                 .about = "Pairs of points, and all together."},
                       ALL = {.columns = COLUMNS, .count = RATIO_COLUMNS, .within = "all"},
                       SIDES = {TABLE_COLUMNS(ALONE)};

// --- sentences -------------------------------------------------------------------------------------------

static void put_all(const Comparison *c, Judgement j, Text *out) {
    const Ratio *r = &c->all;
    text_printf(out, "\n%s", compare_says(j));
    bool unclear = j == JUDGED_UNCLEAR;
    if (unclear && r->prompts < COMPARE_PROMPTS) text_puts(out, ": fewer than ten prompts");
    else if (unclear && !r->calm)
        text_printf(out, ": something disturbed %d of %d samples", r->disturbed, r->samples);
    else if (unclear && r->doubted) text_puts(out, ": a baseline was disturbed");
    text_printf(out, "; %s ", c->kind == COMPARED_SPEEDUP ? "B's speedups are" : "by absolute times B is");
    text_measured(out, r->value, r->interval.low, r->interval.high);
    text_printf(out, " times %s, over %d prompts\n", c->kind == COMPARED_SPEEDUP ? "A's" : "as fast as A",
                r->prompts);
    if (r->disturbed && r->calm)
        text_printf(out, "%d of %d samples are left out: something disturbed them, or their counterparts\n",
                    r->disturbed, r->samples);
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

static Judgement judge(const Comparison *c, const ComparePair *p, double margin) {
    return p->kind == COMPARED_MACHINE ? JUDGED_UNCLEAR
                                       : compare_judge(&p->ratio, margin, compare_judgements(c));
}

// --- acceptance ------------------------------------------------------------------------------------------

static const Column ACCEPTED[] = {
    {"steps", "steps", AS_COUNT, .help = "that begin at the same token of the same text on both sides"},
    {"equal", "equal", AS_SHARE, 1, .help = "share of them that accept as many tokens"},
    {"accepted_a accepted_b", "accepted", AS_CHANGE, .help = "tokens a step"},
    {"more more_low more_high", "B - A", AS_MEASURED, .help = "their difference"},
    {.head = "[95%]", .kind = AS_REACH},
    {"samples same", .help = "on both sides; how many of these have no step that differs"},
    {"parted unordered", .help = "samples whose texts part; that are histograms on a side: not compared"},
    {"point_a point_b dataset", .help = "labels"},
    {.head = "point", .least = 24},
};
static const Column PARTS[] = {
    {"point_a point_b dataset", .help = "labels"},
    {"what",
     .help =
         "token: steps that begin at a token of the output from `from` to `below`; least: those that accept "
         "at least `from` tokens"},
    {"from below", .help = "null: no end"},
    {.head = "of which"},
    {"steps", "steps", AS_COUNT, .help = "in the range; of `least`, all"},
    {"a b", "A -> B", AS_CHANGE, .help = "accepted tokens a step; of `least`, the share of steps"},
};
static const Column FIRST[] = {
    {"point_a point_b dataset", .help = "labels", .optional = true},
    {"prompt turn pass", .help = "numbers, from 0", .optional = true},
    {.head = "first step that differs"},
    {"token", "token", AS_COUNT, .help = "of the output, where the first step that differs begins",
     .optional = true},
    {"step_a step_b", .help = "the step's number on either side", .optional = true},
    {"a", "A accepts", AS_COUNT, .help = "tokens, by it", .optional = true},
    {"b", "B", AS_COUNT, .help = "likewise", .optional = true},
};
static const TableForm ACCEPTED_FORM = {"compare --acceptance", TABLE_COLUMNS(ACCEPTED), .within = "points",
                                        .about = "Steps of the same text, with `--acceptance`."},
                       PARTS_FORM = {TABLE_COLUMNS(PARTS), .within = "parts"},
                       FIRST_FORM = {TABLE_COLUMNS(FIRST), .within = "first"};
enum { FIRST_SHOWN = 10 }; // of a pair, for people

typedef struct AcceptanceTables {
    RecordTable points, parts, first;
    bool fewer; // some B accepts fewer, beyond its interval
} AcceptanceTables;

static void put_part(RecordTable *t, const ComparePair *p, const char *what, int from, int below,
                     int64_t steps, double a, double b) {
    char range[64];
    if (strcmp(what, "least") == 0) snprintf(range, sizeof range, "accept %d or more", from);
    else if (below) snprintf(range, sizeof range, "begin at token %d to %d", from, below - 1);
    else snprintf(range, sizeof range, "begin at token %d or later", from);
    TABLE_ROW(t, CELL(p->label_a), CELL(p->label_b), CELL(p->dataset), CELL(what), CELL(from),
              below ? CELL(below) : cell_text(NULL), CELL(range), CELL(steps), cell_change(a, b));
}

static void put_parts(RecordTable *t, const ComparePair *p, const Acceptance *x, bool titled) {
    if (titled) table_group(t, p->label_b);
    for (int i = 0; i < ACCEPTED_PLACES; i++) {
        const SharedSteps *s = &x->places[i];
        double n = (double)s->steps;
        if (s->steps)
            put_part(t, p, "token", acceptance_place(i),
                     i + 1 < ACCEPTED_PLACES ? acceptance_place(i + 1) : 0, s->steps, s->a / n, s->b / n);
    }
    for (int d = 0; d < ACCEPTED_MOST && (x->least[d][0] || x->least[d][1]); d++)
        put_part(t, p, "least", d + 1, 0, x->all.steps, (double)x->least[d][0] / (double)x->all.steps,
                 (double)x->least[d][1] / (double)x->all.steps);
}

static void put_first(RecordTable *t, const ComparePair *p, const Acceptance *x, bool all) {
    for (int i = 0; i < x->first_count && (all || i < FIRST_SHOWN); i++) {
        const FirstDifference *f = &x->first[i];
        LOCAL_TEXT where = {0};
        text_printf(&where, "%s, prompt %d", p->dataset, f->prompt);
        if (f->turn) text_printf(&where, ", turn %d", f->turn);
        if (f->pass) text_printf(&where, ", pass %d", f->pass);
        TABLE_ROW(t, CELL(p->label_a), CELL(p->label_b), CELL(p->dataset), CELL(f->prompt), CELL(f->turn),
                  CELL(f->pass), CELL(text_get(&where)), CELL(f->token), CELL(f->step_a), CELL(f->step_b),
                  CELL(f->accepted_a), CELL(f->accepted_b));
    }
    if (!all && x->first_count > FIRST_SHOWN) {
        LOCAL_TEXT more = {0};
        text_printf(&more, "and %d more (--json)", x->first_count - FIRST_SHOWN);
        table_line(t, 0, text_get(&more));
    }
}

static void put_acceptance(AcceptanceTables *t, const ComparePair *p, const Acceptance *x, bool several) {
    double n = (double)x->all.steps;
    LOCAL_TEXT point = {0};
    text_printf(&point, "%s, %s", p->label_b, p->dataset);
    if (strcmp(p->label_a, p->label_b) != 0) text_printf(&point, "; A: %s", p->label_a);
    text_printf(&point, "; no step differs in %d of %d samples", x->same, x->samples);
    if (x->parted) text_printf(&point, "; the text parts in %d", x->parted);
    if (x->unordered) text_printf(&point, "; %d have no order of steps", x->unordered);
    TABLE_ROW(&t->points, CELL(x->all.steps), cell_real((double)x->all.equal / n),
              cell_change(x->all.a / n, x->all.b / n),
              cell_measured(x->more, x->interval.low, x->interval.high), CELL(x->samples), CELL(x->same),
              CELL(x->parted), CELL(x->unordered), CELL(p->label_a), CELL(p->label_b), CELL(p->dataset),
              CELL(text_get(&point)));
    put_parts(&t->parts, p, x, several);
    put_first(&t->first, p, x, records_asked(t->first.as));
    t->fewer = t->fewer || x->interval.high < 0;
}

// Baselines guess nothing, and are left out.
static bool put_acceptances(AcceptanceTables *t, const CompareSide *a, const CompareSide *b,
                            const Comparison *c, Error *e) {
    for (int i = 0; i < c->count; i++) {
        LOCAL(acceptance_release) Acceptance x = {0};
        const ComparePair *p = &c->pairs[i];
        if (p->kind == COMPARED_MACHINE) continue;
        if (!acceptance_compare(a->store, p->a, b->store, p->b, &x, e)) return false;
        put_acceptance(t, p, &x, c->count > 1);
    }
    return true;
}

static bool print_acceptance(const CompareSide *a, const CompareSide *b, const Comparison *c,
                             const Records *as, bool *fewer, Error *e) {
    AcceptanceTables t = {.points = {.form = &ACCEPTED_FORM, .as = as},
                          .parts = {.form = &PARTS_FORM, .as = as},
                          .first = {.form = &FIRST_FORM, .as = as}};
    bool ok = put_acceptances(&t, a, b, c, e);
    *fewer = t.fewer;
    if (ok && records_asked(as))
        return records_print(json_pack("{s:o, s:o, s:o}", "points", table_list(&t.points), "parts",
                                       table_list(&t.parts), "first", table_list(&t.first)),
                             "points", as, e);
    ok = table_end(&t.points, ok, e);
    ok = table_end(&t.parts, ok, e);
    return table_end(&t.first, ok, e);
}

// --- all of it ------------------------------------------------------------------------------------------

static void put_pair(RecordTable *t, const Comparison *c, const ComparePair *p, double margin) {
    static const char *const OF[COMPARED_KINDS] = {"speedup", "time", "baseline"};
    const Ratio *r = &p->ratio;
    const char *verdict = compare_word(judge(c, p, margin));
    LOCAL_TEXT point = {0}, disturbed = {0};
    text_printf(&point, "%s, %s", p->label_b, p->dataset);
    if (strcmp(p->label_a, p->label_b) != 0) text_printf(&point, "; A: %s", p->label_a);
    if (p->lost_text) text_puts(&point, "; ITS TEXT IS NOT THE BASELINE'S ANY MORE");
    if (r->disturbed) text_printf(&disturbed, "%d/%d", r->disturbed, r->samples);
    if (r->doubted) text_printf(&disturbed, "%sabove S", disturbed.length ? ", " : "");
    TABLE_ROW(t, CELL(verdict), CELL(p->kind == COMPARED_MACHINE ? "(baseline)" : verdict),
              cell_measured(r->value, r->interval.low, r->interval.high), CELL(r->prompts), CELL(r->samples),
              CELL(r->disturbed), CELL(OF[p->kind]), cell_change(p->speedup_a, p->speedup_b),
              cell_change(p->S_a, p->S_b), CELL(p->label_a), CELL(p->label_b), CELL(p->dataset),
              CELL(text_get(&point)), CELL(p->doubt_a), CELL(p->doubt_b), CELL(p->lost_text),
              CELL(text_get(&disturbed)));
}

static bool print(const Comparison *c, double margin, const Records *as, Error *e) {
    RecordTable t = {.form = &POINTS, .as = as};
    Text text = {0};
    int judgements = compare_judgements(c);
    Judgement all = compare_judge(&c->all, margin, judgements);
    for (int i = 0; i < c->count; i++) put_pair(&t, c, &c->pairs[i], margin);
    if (records_asked(as)) {
        RecordTable together = {.form = &ALL, .as = as};
        const Ratio *r = &c->all;
        const char *verdict = compare_word(all);
        TABLE_ROW(&together, CELL(verdict), CELL(verdict),
                  cell_measured(r->value, r->interval.low, r->interval.high), CELL(r->prompts),
                  CELL(r->samples), CELL(r->disturbed));
        return records_print(json_pack("{s:o, s:o, s:i}", "points", table_list(&t), "all",
                                       table_object(&together), "alone", c->alone),
                             "points", as, e);
    }
    if (judgements) put_all(c, all, &text);
    put_machine(c, margin, &text);
    if (c->alone) text_printf(&text, "%d points are on one side only\n", c->alone);
    bool ok = table_end(&t, true, e);
    terminal_print(&text);
    return ok;
}

static bool run(void *options, CommandLine *line, Error *e) {
    CompareOptions *o = options;
    CompareSide a = {0}, b = {0};
    LOCAL(compare_release) Comparison c = {0};
    bool ok = compare_find(line->words.items[0], o->db, &a, e) &&
              compare_find(line->words.items[1], o->db, &b, e) &&
              choice_apply(&o->choice, a.store, a.run, e) && choice_apply(&o->choice, b.store, b.run, e) &&
              compare_sides(&a, &b, o->absolute, &c, e);
    bool worse = false;
    if (ok && o->acceptance) ok = print_acceptance(&a, &b, &c, &o->records, &worse, e);
    else if (ok) {
        int judgements = compare_judgements(&c);
        ok = print(&c, o->margin, &o->records, e);
        worse = judgements && compare_judge(&c.all, o->margin, judgements) == JUDGED_SLOWER;
        for (int i = 0; i < c.count; i++)
            worse = worse || judge(&c, &c.pairs[i], o->margin) == JUDGED_SLOWER || c.pairs[i].lost_text;
    }
    if (ok && worse) line->code = EXIT_FAILED;
    store_close(a.store);
    store_close(b.store);
    return ok;
}

const Command command_compare = {
    .name = "compare",
    .usage = "A B [OPTIONS]",
    .summary = "is B faster than A? runs, points, or stores; exit code 1 if it is slower",
    .arguments = {2, 2},
    COMMAND_OPTIONS(OPTIONS, CompareOptions),
    .run = run,
    .tables = TABLES(&POINTS, &ALL, &SIDES, &ACCEPTED_FORM, &PARTS_FORM, &FIRST_FORM)};
