// The result of tuning: sums over its rounds, printed for people and as JSON.
#include "harness/tune/tune.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "harness/cli/terminal.h"
#include "harness/tune/tree.h"

#include <math.h>
#include <stdio.h>

static const char *const ENDS[] = {
    [TUNE_CERTAIN] = "certain",
    [TUNE_LAPS] = "the race has run all its laps",
    [TUNE_BUDGET] = "the budget is gone",
    [TUNE_SHARE] = "its share of the sweep's time is gone (--share)",
    [TUNE_SWEPT] = "every point was measured",
    [TUNE_INTERRUPTED] = "interrupted",
};

void tune_release(TuneResult *r) {
    for (int i = 0; r->seats && i <= r->points; i++) mem_free(r->seats[i].answers);
    mem_free(r->seats);
    *r = (TuneResult){.choice = -1};
}

bool tune_sum(const TuneSeat *s, int from, int to, TuneAnswer *out) {
    int found = 0;
    *out = (TuneAnswer){0};
    for (size_t i = 0; i < s->count; i++) {
        const TuneAnswer *a = &s->answers[i];
        if (a->round < from || a->round >= to) continue;
        out->tokens += a->tokens, out->steps += a->steps;
        out->rows += a->rows, out->seconds += a->seconds;
        out->diverged = out->diverged || a->diverged;
        found++;
    }
    return found > 0;
}

// The times of steps here and at another context.
typedef struct Elsewhere {
    double here[TUNING_MOST_CURVE], there[TUNING_MOST_CURVE];
    TuningCurve near, far;
} Elsewhere;

// An answer's time; not as measured, but elsewhere, unless that's NULL.
static double seconds_at(const TuneResult *r, const TuneAnswer *a, const Elsewhere *x) {
    if (!x || !(a->steps > 0)) return a->seconds;
    double rows = a->rows / a->steps,
           longer = tuning_curve_at(&x->far, rows) - tuning_curve_at(&x->near, rows);
    return a->seconds + a->steps * longer / r->batch; // a sequence's part
}

// The baseline answers in every round.
static double speedup_at(const TuneResult *r, const Elsewhere *x, int point, int from) {
    const TuneSeat *s = &r->seats[point], *base = &r->seats[r->points];
    double own = 0, whole = 0;
    for (size_t i = 0, k = 0; i < s->count; i++) {
        if (s->answers[i].round < from) continue;
        while (k < base->count && base->answers[k].round < s->answers[i].round) k++;
        if (k == base->count) break;
        own += seconds_at(r, &s->answers[i], x), whole += seconds_at(r, &base->answers[k], x);
    }
    return own > 0 ? whole / own : NAN;
}

double tune_speedup(const TuneResult *r, int point, int from) { return speedup_at(r, NULL, point, from); }

static int from_race(const TuneResult *r) { return r->race_rounds ? r->sample_rounds : 0; }

int tune_fastest_at(const TuneResult *r, const TuneSurface *there, double *speedup) {
    int best = -1;
    Elsewhere at;
    at.near = tune_curve(&r->surface, at.here);
    at.far = tune_curve(there, at.there);
    for (int i = 0; i < r->points; i++) {
        double x = r->seats[i].raced || !r->race_rounds ? speedup_at(r, &at, i, from_race(r)) : NAN;
        if (x > 0 && (best < 0 || x > *speedup)) best = i, *speedup = x;
    }
    return best;
}

static double took(const TuneResult *r) { return r->surface.took_s + r->sample_s + r->race_s; }

static void name(const TuneReport *p, int point, Text *out) {
    tune_method_text(&p->prepared->experiment, &p->prepared->sweep.points[point], out);
}

// --- for people ------------------------------------------------------------------------------------------

static void print_times(const TuneSurface *s) {
    for (int i = 0; i < s->count; i++)
        printf("%s%.0f%s %.3g", i ? ", " : "", s->rows[i], i ? "" : " row", 1e3 * s->seconds[i]);
    puts(" ms");
}

// A point over the rounds from `from` up to `to`; false: it answered none of them.
static bool print_point(const TuneReport *p, int point, int from, int to) {
    TuneAnswer sum;
    LOCAL_TEXT text = {0};
    name(p, point, &text);
    printf("           %-36s", SHOWN(text_get(&text)));
    if (!tune_sum(&p->result->seats[point], from, to, &sum)) return false;
    printf(" %7.3f %9.3f %9.3f", sum.tokens / sum.steps, 1e3 * sum.seconds / sum.steps,
           tune_speedup(p->result, point, from));
    return true;
}

static void print_head(const TuneReport *p) {
    const TuneResult *r = p->result;
    const Plan *in = p->prepared;
    printf(
        "space      %d points of %s on %s, %s; %d of them cannot run, or cannot win, whatever is accepted\n",
        r->points, in->experiment.methods[0].name, SHOWN(in->experiment.models[0].name),
        SHOWN(in->experiment.datasets[0].name), r->excluded);
    printf("surface    %.1f s, at context %d: ", r->surface.took_s, r->surface.context);
    print_times(&r->surface);
    if (r->surface.disturbed)
        printf(
            "warning    %d of these %d times were disturbed: what is expected of large steps may be wrong\n",
            r->surface.disturbed, r->surface.count);
    if (p->options->processor)
        puts("times      of the processor, not the wall's: no speed that anybody sees");
}

#define HEADS "\n           point                                      S   step ms   speedup\n"

static void print_sample(const TuneReport *p) {
    const TuneResult *r = p->result;
    int prompts = r->batch * r->sample_rounds;
    printf("sample     %.1f s, %d prompt%s", r->sample_s, prompts, prompts == 1 ? "" : "s");
    if (r->batch > 1) printf(" in batches of %d: a step's time is a sequence's part of it", r->batch);
    printf(HEADS);
    for (int i = 0; i < r->points; i++)
        if (r->seats[i].sampled && r->seats[i].count && print_point(p, i, 0, r->sample_rounds)) puts("");
}

static void print_race(const TuneReport *p) {
    const TuneResult *r = p->result;
    if (r->race_rounds == 0) return;
    printf("race       %.1f s, %d rounds" HEADS, r->race_s, r->race_rounds);
    for (int i = 0; i < r->points; i++) {
        if (!r->seats[i].raced) continue;
        if (!print_point(p, i, from_race(r), r->sample_rounds + r->race_rounds)) {
            puts("  not measured");
            continue;
        }
        if (r->seats[i].out) printf("  out after round %d", r->seats[i].out);
        puts(i == r->choice ? "  chosen" : "");
    }
}

static void print_doubts(const TuneReport *p) {
    const TuneResult *r = p->result;
    if (r->end == TUNE_CERTAIN)
        printf("           certain: no other racer is ahead by more than %.0f%%\n", 100 * p->options->margin);
    else printf("           %s%s\n", r->end == TUNE_SWEPT ? "" : "not certain: ", ENDS[r->end]);
    if (r->speedup.high > 0 && r->speedup.low < 1)
        printf("           autoregressive decoding may be as fast%s\n",
               r->speedup.high < 1 ? ", or faster" : "");
    if (p->doubt.length) printf("           in doubt: %s\n", SHOWN(text_get(&p->doubt)));
    if (r->failed) printf("           %d points failed\n", r->failed);
    if (r->diverged) printf("           %d points wrote another text than the baseline\n", r->diverged);
}

// The command that decodes by this method as the plan's points did.
static void tune_print_use(const Plan *p, const char *method) {
    const ModelSpec *model = &p->experiment.models[0];
    const ModelFiles *files = &p->inputs.models[0].files;
    LOCAL_TEXT options = {0};
    EngineOptions engine = p->sweep.points[0].settings.engine;
    engine.batch = 0; // generate writes one text
    args_write_options(MODEL_OPTIONS, MODEL_SETTINGS, &engine, &options);
    printf("use        outpace generate %s -f prompt.txt --method '%s'", SHOWN(files->target), SHOWN(method));
    if (model->draft) printf(" --draft %s", SHOWN(files->draft));
    for (int i = 0; i < ADAPTER_ROLES; i++)
        if (model->adapters[i]) printf(" --%s %s", adapter_role_name(i), SHOWN(files->adapters[i]));
    puts(text_get(&options));
}

static void print_choice(const TuneReport *p) {
    const TuneResult *r = p->result;
    LOCAL_TEXT text = {0};
    name(p, r->choice, &text);
    printf("choice     %s: ", SHOWN(text_get(&text)));
    if (r->speedup.high > 0)
        printf("speedup %.3f [%.3f, %.3f]\n", tune_speedup(r, r->choice, from_race(r)), r->speedup.low,
               r->speedup.high);
    else if (p->options->exhaustive) printf("speedup %.3f\n", tune_speedup(r, r->choice, 0));
    else printf("speedup %.3f in the sample; it was not raced\n", tune_speedup(r, r->choice, 0));
    print_doubts(p);
    printf("took       %.1f s; every point over every prompt once would take about %.0f s, as predicted\n",
           took(r), r->sweep_s);
    printf("stored     run %lld in %s\n", (long long)p->run, SHOWN(p->store));
    tune_print_use(p->prepared, text_get(&text));
}

void tune_report(const TuneReport *p) {
    bool measured = p->result->sample_rounds > 0;
    print_head(p);
    if (measured) print_sample(p);
    if (measured && !p->options->exhaustive) print_race(p);
    if (measured) print_choice(p);
    else printf("nothing was measured of it: %s\n", ENDS[p->result->end]);
}

// --- JSON ------------------------------------------------------------------------------------------------

static json_t *point_json(const TuneReport *p, int i) {
    const TuneResult *r = p->result;
    const TuneSeat *s = &r->seats[i];
    TuneAnswer sum;
    LOCAL_TEXT text = {0};
    name(p, i, &text);
    json_t *o =
        json_pack("{s:s, s:b, s:b}", "method", text_get(&text), "sampled", s->sampled, "raced", s->raced);
    if (o && tune_sum(s, 0, r->sample_rounds + r->race_rounds, &sum)) {
        json_object_set_new(o, "S", json_number(sum.tokens / sum.steps));
        json_object_set_new(o, "step_s", json_number(sum.seconds / sum.steps));
        json_object_set_new(o, "speedup", json_number(tune_speedup(r, i, 0)));
    }
    if (o && s->raced) json_object_set_new(o, "raced_speedup", json_number(tune_speedup(r, i, from_race(r))));
    if (o && s->out) json_object_set_new(o, "out_behind_round", json_integer(s->out));
    return o;
}

json_t *tune_report_json(const TuneReport *p) {
    const TuneResult *r = p->result;
    json_t *points = json_array(), *surface = json_array();
    LOCAL_TEXT choice = {0};
    bool ok = true;
    if (r->choice >= 0) name(p, r->choice, &choice);
    for (int i = 0; i < r->surface.count; i++)
        json_array_append_new(surface, json_pack("[f, f]", r->surface.rows[i], r->surface.seconds[i]));
    for (int i = 0; ok && i < r->points && r->sample_rounds > 0; i++)
        ok = json_array_append_new(points, point_json(p, i)) == 0;
    double speedup = r->choice < 0 ? NAN : tune_speedup(r, r->choice, from_race(r));
    bool known = r->speedup.high > 0;
    json_auto_t *root = json_pack(
        "{s:s*, s:i, s:o, s:o, s:o, s:s*, s:s, s:i, s:i, s:i, s:o, s:o, s:I, s:o, s:i, s:O}", "choice",
        choice.length ? text_get(&choice) : NULL, "batch", r->batch, "speedup", json_number(speedup),
        "speedup_low", json_number(known ? r->speedup.low : NAN), "speedup_high",
        json_number(known ? r->speedup.high : NAN), "doubt", p->doubt.length ? text_get(&p->doubt) : NULL,
        "end", ENDS[r->end], "excluded", r->excluded, "sample_rounds", r->sample_rounds, "race_rounds",
        r->race_rounds, "seconds", json_number(took(r)), "sweep_seconds", json_number(r->sweep_s), "run",
        (json_int_t)p->run, "surface", surface, "surface_disturbed", r->surface.disturbed, "points", points);
    json_decref(points);
    return ok ? json_incref(root) : NULL;
}

// --- the best tree
// --------------------------------------------------------------------------------------------

static double per_step(const TreeCounts *c, double sum) { return c->steps > 0 ? sum / c->steps : NAN; }

static double seconds_of(const TreeCounts *c) {
    return per_step(c, c->propose_s + c->forward_s + c->verify_s + c->observe_s);
}

static void print_curve(const char *what, const TuneSurface *s) {
    if (!s->count) return;
    printf("%-10s at context %d: ", what, s->context);
    print_times(s);
}

void tree_report(const TreeAsk *ask, const TreeResult *r) {
    const TreeCounts *c = &r->calibrated;
    const TreeChoice *best = &r->choice;
    double alone = r->cost.target.seconds[0], speedup = best->tokens * alone / best->seconds;
    printf("calibrated %.0f prompt%s, %.0f steps of %d guesses in %d levels: %.3f tokens a step\n",
           c->prompts, c->prompts > 1 ? "s" : "", c->steps, r->guesses, r->levels, per_step(c, c->tokens));
    printf("accepted   by rank");
    for (int rank = 0; rank < RANK_TREE_RANKS; rank++) printf(" %.3f", r->chance[rank]);
    printf("; by level");
    for (int i = 0; i < r->levels && c->tried[i][0] > 0; i++) printf(" %.3f", tree_level_chance(c, i));
    puts("");
    print_curve("target", &r->target);
    print_curve("draft", &r->draft);
    printf("tree       %d guesses in %d levels: %.3f tokens a step in %.3g ms expected; one token takes %.3g "
           "ms, so %.3f times as fast\n",
           best->tree.count, rank_tree_levels(&best->tree), best->tokens, 1e3 * best->seconds, 1e3 * alone,
           speedup);
    if (speedup <= 1) puts("           autoregressive decoding is faster than the best tree");
    if (r->checked.steps > 0)
        printf("checked    %.0f other prompt%s: %.3f tokens a step in %.3g ms\n", r->checked.prompts,
               r->checked.prompts > 1 ? "s" : "", per_step(&r->checked, r->checked.tokens),
               1e3 * seconds_of(&r->checked));
    else puts("checked    by no prompt: give two at least");
    printf("wrote      %s\n", SHOWN(ask->path));
    tune_print_use(ask->plan, text_get(&r->method));
}

static json_t *counts_json(const TreeCounts *c) {
    if (!(c->steps > 0)) return json_null();
    return json_pack("{s:f, s:f, s:f, s:f}", "prompts", c->prompts, "steps", c->steps, "tokens_per_step",
                     per_step(c, c->tokens), "step_s", seconds_of(c));
}

json_t *tree_report_json(const TreeAsk *ask, const TreeResult *r) {
    const TreeChoice *best = &r->choice;
    json_t *chances = json_array();
    for (int rank = 0; rank < RANK_TREE_RANKS; rank++)
        json_array_append_new(chances, json_real(r->chance[rank]));
    return json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:o, s:o, s:o}", "method", text_get(&r->method),
                     "file", ask->path, "guesses", best->tree.count, "levels", rank_tree_levels(&best->tree),
                     "tokens_per_step", best->tokens, "step_s", best->seconds, "one_token_s",
                     r->cost.target.seconds[0], "chance", chances, "calibrated", counts_json(&r->calibrated),
                     "checked", counts_json(&r->checked));
}
