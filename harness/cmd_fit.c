// Fits (alpha, f) of Lookahead's law to measured points and prints what they say, and how far to trust it; or
// a machine to measured steps.
#include "harness/command.h"

#include "harness/fit_surface.h"
#include "simulate/fit.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *points, *law, *bonus, *filling;
    const char *surface, *model, *on;
    int resamples;
    uint64_t seed;
    bool json;
} FitArguments;

#define AT(name) offsetof(FitArguments, name)
static const Option OPTIONS[] = {
    {"points",    'p', OPTION_TEXT, AT(points),    0,   0,      "FILE.tsv",        "points of S to fit",                          NULL  },
    {"law",       0,   OPTION_TEXT, AT(law),       0,   0,      "paper|corrected", "b = W = G, or each step's own candidates",
     "paper"                                                                                                                            },
    {"bonus",     0,   OPTION_TEXT, AT(bonus),     0,   0,      "kept|dropped",    "what a full match emits: N or N - 1",         "kept"},
    {"filling",   0,   OPTION_TEXT, AT(filling),   0,   0,      "none|N",
     "tokens of an output, whose first N - 2 steps emit one each",                                                                "none"},
    {"surface",   0,   OPTION_TEXT, AT(surface),   0,   0,      "FILE.csv",
     "steps measured by bench --csv: fit a machine to them",                                                                      NULL  },
    {"model",     0,   OPTION_TEXT, AT(model),     0,   0,      "DIR",             "with --surface: the model that was measured", NULL  },
    {"on",        0,   OPTION_TEXT, AT(on),        0,   0,      "MACHINE.json",    "with --surface: the machine's data sheet",    NULL  },
    {"resamples", 0,   OPTION_INT,  AT(resamples), 100, 100000, "N",               "of the bootstrap behind the intervals",
     "1000"                                                                                                                             },
    {"seed",      0,   OPTION_SEED, AT(seed),      0,   0,      "N",               "of the bootstrap, and what is held out",      "0"   },
    {"json",      0,   OPTION_FLAG, AT(json),      0,   0,      NULL,              "print one JSON object",                       NULL  },
};
#undef AT

// --- what is asked ---------------------------------------------------------------------------------------

static bool read_choice(const char *option, const char *text, const char *no, const char *yes, bool *out,
                        Error *e) {
    *out = strcmp(text, yes) == 0;
    return *out || strcmp(text, no) == 0 ||
           error_input(e, "fit: --%s is '%s', must be %s or %s", option, text, no, yes);
}

static bool read_filling(const char *text, double *output, Error *e) {
    char *end;
    if (strcmp(text, "none") == 0) return true;
    *output = strtod(text, &end);
    return (end != text && *end == 0 && *output >= 1 && *output <= 1e9) ||
           error_input(e, "fit: --filling is '%s', must be none or the tokens of an output, 1 to 1e9", text);
}

static bool read_options(const FitArguments *a, FitOptions *o, Error *e) {
    bool corrected;
    *o = (FitOptions){.resamples = a->resamples, .level = 0.95, .seed = a->seed};
    if (!read_choice("law", a->law, "paper", "corrected", &corrected, e) ||
        !read_choice("bonus", a->bonus, "kept", "dropped", &o->bonus_dropped, e))
        return false;
    o->law = corrected ? FIT_CORRECTED : FIT_PAPER;
    return read_filling(a->filling, &o->output, e);
}

// Where points come from; runs of the store will be a second way.
static bool load_points(const FitArguments *a, const Positionals *rest, Points *out, Error *e) {
    *out = (Points){0};
    if (rest->count > 0)
        return error_input(
            e, "fit: '%s' is not an option, and stored runs cannot be read yet; give --points FILE.tsv",
            rest->items[0]);
    if (!a->points) return error_input(e, "fit: give --points FILE.tsv");
    return points_open(a->points, out, e);
}

// --- JSON ------------------------------------------------------------------------------------------------

static json_t *value_json(const FitValue *v) {
    return json_pack("{s:f, s:f, s:f, s:f}", "value", v->value, "se", v->se, "low", v->low, "high", v->high);
}

static const char *const DRAWN[] = {"prompts", "errors", "residuals", "steps"};

static json_t *estimate_json(const FitEstimate *x) {
    const char *warnings[FIT_MOST_WARNINGS];
    if (!x->given)
        return x->refused.kind == ERROR_NONE ? json_null() : json_pack("{s:s}", "refused", x->refused.text);
    json_t *list = json_array();
    for (int i = 0, n = fit_warnings(x, warnings); i < n; i++)
        json_array_append_new(list, json_string(warnings[i]));
    return json_pack("{s:o, s:o, s:f, s:f, s:f, s:s, s:o}", "alpha", value_json(&x->alpha), "f",
                     value_json(&x->f), "condition", x->condition, "correlation", x->correlation, "rms",
                     x->rms, "interval", x->interval ? DRAWN[x->drawn] : "none", "warnings", list);
}

static json_t *filling_json(double output) { return output > 0 ? json_real(output) : json_null(); }

static const char *bonus_name(bool dropped) { return dropped ? "dropped" : "kept"; }

static json_t *others_json(const Fit *fit) {
    json_t *list = json_array();
    for (int i = 0; i < fit->other_count; i++) {
        const FitOther *x = &fit->others[i];
        json_t *other = json_pack("{s:s, s:o}", "bonus", bonus_name(x->bonus_dropped), "filling",
                                  filling_json(x->output));
        if (other && x->given)
            json_object_update_new(other,
                                   json_pack("{s:f, s:f, s:f}", "alpha", x->alpha, "f", x->f, "rms", x->rms));
        json_array_append_new(list, other);
    }
    return list;
}

static json_t *leave_out_json(const LeaveOut *x) {
    json_t *list = json_object();
    for (int i = 0; i < RIVAL_COUNT; i++)
        if (x->points[i])
            json_object_set_new(list, RIVAL_NAMES[i],
                                json_pack("{s:f, s:i}", "rms", x->rms[i], "points", x->points[i]));
    return list;
}

static json_t *predictions_json(const Fit *fit) {
    json_t *list = json_array();
    for (int i = 0; i < fit->count; i++) {
        const FitPrediction *p = &fit->predictions[i];
        json_array_append_new(list,
                              json_pack("{s:i, s:i, s:i, s:f, s:f, s:b}", "N", p->at.N, "W", p->at.W, "G",
                                        p->at.G, "S", p->S, "predicted", p->predicted, "fitted", p->fitted));
    }
    return list;
}

static json_t *fit_json(const FitArguments *a, const FitOptions *o, const Fit *fit) {
    json_t *root = json_pack(
        "{s:s, s:s, s:o, s:i, s:i, s:o, s:o, s:s, s:o, s:o}", "law", a->law, "bonus",
        bonus_name(o->bonus_dropped), "filling", filling_json(o->output), "fitted", fit->fitted, "points",
        fit->count, "alpha", value_json(&fit->best->alpha), "f", value_json(&fit->best->f), "estimator",
        fit->best == &fit->likelihood ? "likelihood" : "least_squares", "least_squares",
        estimate_json(&fit->least_squares), "likelihood", estimate_json(&fit->likelihood));
    if (!root) return NULL;
    if (fit->chi_square_given)
        json_object_set_new(root, "chi_square",
                            json_pack("{s:f, s:i, s:f}", "value", fit->chi_square, "freedom", fit->freedom,
                                      "chance", fit->chance));
    json_object_set_new(root, "otherwise", others_json(fit));
    json_object_set_new(root, "leave_one_W_out", leave_out_json(&fit->by_W));
    json_object_set_new(root, "leave_one_N_out", leave_out_json(&fit->by_N));
    json_object_set_new(root, "predictions", predictions_json(fit));
    return root;
}

static bool print_json(const FitArguments *a, const FitOptions *o, const Fit *fit, Error *e) {
    json_t *root = fit_json(a, o, fit);
    char *line = root ? json_dumps(root, 0) : NULL;
    if (line) puts(line);
    free(line); // jansson's own
    json_decref(root);
    return line || error_system(e, "fit: cannot make the JSON object: out of memory");
}

// --- for people ------------------------------------------------------------------------------------------

static void print_head(const FitArguments *a, const FitOptions *o, const Fit *fit) {
    char filling[64] = "no filling";
    if (o->output > 0) snprintf(filling, sizeof filling, "filling in outputs of %g tokens", o->output);
    printf("law        %s; bonus %s, %s\n",
           o->law == FIT_PAPER ? "Eq. 5 and 7 with b = W = G" : "each step's own candidates", a->bonus,
           filling);
    printf("points     %d fitted, %d predicted", fit->fitted, fit->count - fit->fitted);
    if (fit->prompts) printf("; %d prompts", fit->prompts);
    puts("");
}

static void print_value(const char *name, const FitValue *v, bool interval) {
    printf("  %s %.4g", name, v->value);
    if (interval) printf(" (%.4g to %.4g)", v->low, v->high);
}

static void print_estimate(const char *name, const FitEstimate *x) {
    const char *warnings[FIT_MOST_WARNINGS];
    static const char *const SAID[] = {"prompts drawn again", "S moved by its errors",
                                       "S moved by the residuals", "steps drawn again"};
    if (!x->given) {
        if (x->refused.kind != ERROR_NONE) printf("%-14s none: %s\n", name, x->refused.text);
        return;
    }
    printf("%-14s", name);
    print_value("alpha", &x->alpha, x->interval);
    print_value("f", &x->f, x->interval);
    printf("  rms %.3g\n%-14s  condition %.3g, correlation of ln alpha and ln f %.3f%s%s\n", x->rms, "",
           x->condition, x->correlation, x->interval ? "; 95% intervals: " : "",
           x->interval ? SAID[x->drawn] : "");
    for (int i = 0, n = fit_warnings(x, warnings); i < n; i++)
        printf("%-14s  warning: %s\n", "", warnings[i]);
}

static void print_others(const Fit *fit) {
    for (int i = 0; i < fit->other_count; i++) {
        const FitOther *x = &fit->others[i];
        printf("otherwise      bonus %s", bonus_name(x->bonus_dropped));
        if (x->output > 0) printf(", filling in outputs of %g tokens", x->output);
        if (x->given) printf(":  alpha %.4g  f %.4g  rms %.3g\n", x->alpha, x->f, x->rms);
        else puts(": cannot be");
    }
}

static void print_leave_out(const Fit *fit) {
    puts("\nrms of S at points left out      one W   one N");
    for (int i = 0; i < RIVAL_COUNT; i++) {
        char by_W[16] = "-", by_N[16] = "-";
        if (fit->by_W.points[i]) snprintf(by_W, sizeof by_W, "%.4f", fit->by_W.rms[i]);
        if (fit->by_N.points[i]) snprintf(by_N, sizeof by_N, "%.4f", fit->by_N.rms[i]);
        printf("  %-26s %9s %7s\n", RIVAL_NAMES[i], by_W, by_N);
    }
}

static void print_predictions(const Fit *fit) {
    puts("\n  N    W    G        S  predicted    error");
    for (int i = 0; i < fit->count; i++) {
        const FitPrediction *p = &fit->predictions[i];
        printf("%3d %4d %4d %8.4f %10.4f %+8.4f%s\n", p->at.N, p->at.W, p->at.G, p->S, p->predicted,
               p->predicted - p->S, p->fitted ? "" : "  not fitted");
    }
}

static void print_fit(const FitArguments *a, const FitOptions *o, const Fit *fit) {
    print_head(a, o, fit);
    print_estimate("least squares", &fit->least_squares);
    print_estimate("likelihood", &fit->likelihood);
    if (fit->chi_square_given)
        printf("chi-square     %.3g with %d degrees of freedom, chance %.3g\n", fit->chi_square, fit->freedom,
               fit->chance);
    print_others(fit);
    print_leave_out(fit);
    print_predictions(fit);
}

static bool run(int argc, char **argv, int *code, Error *e) {
    FitArguments a = {.law = "paper", .bonus = "kept", .filling = "none", .resamples = 1000};
    Positionals rest;
    FitOptions o;
    Points points;
    Fit fit = {0};
    bool stop;
    (void)code;
    if (!command_parse(&command_fit, argc, argv, &a, &rest, &stop, e)) return false;
    if (stop) return true;
    if (a.surface && a.points) return error_input(e, "fit: give --points or --surface, not both");
    if (a.surface) return fit_surface(&(SurfaceArguments){a.surface, a.model, a.on, a.seed, a.json}, e);
    if (!read_options(&a, &o, e)) return false;
    bool ok = load_points(&a, &rest, &points, e) && fit_run(&points, &o, &fit, e);
    if (ok && a.json) ok = print_json(&a, &o, &fit, e);
    else if (ok) print_fit(&a, &o, &fit);
    fit_release(&fit);
    points_release(&points);
    return ok;
}

const Command command_fit = {
    .name = "fit",
    .usage = "--points FILE.tsv | --surface FILE.csv [OPTIONS]",
    .summary = "fit the law of step compression, or a machine, to measured points",
    .lesson =
        "Fits alpha, the chance that a guessed token is right, and f, one step in f having a good guess at\n"
        "all, to measured step compression S (Lookahead, Eq. 5 and 7). The file has a header line and tabs:\n"
        "columns N, W, G, S, and where known se; or a row a prompt, with prompt and steps; accepted, as\n"
        "length:count,length:count, adds the maximum likelihood; candidates, the same way, gives the\n"
        "corrected law each step's own number of guesses. How outputs were counted must be said (--bonus,\n"
        "--filling): another way may fit as well, and gives another alpha and f.\n"
        "\n"
        "  outpace fit --points published.tsv\n"
        "  outpace fit --points mine.tsv --law corrected --bonus dropped --filling 256 --json\n"
        "\n"
        "With --surface it fits a machine to the times of steps instead; a third of them is held out, to be\n"
        "priced unseen:\n"
        "  outpace bench MODEL --csv > surface.csv\n"
        "  outpace fit --surface surface.csv --model MODEL --on configs/hardware/cpu-8core-avx2.json\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};
