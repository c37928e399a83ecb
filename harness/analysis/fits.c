// Prints what the estimators of simulate/ found, for people and as JSON.
#include "harness/analysis/stored.h"

#include "engine/base/json.h"
#include "harness/cli/terminal.h"

#include <math.h>
#include <stdio.h>

static const char *bonus_name(bool dropped) { return dropped ? "dropped" : "kept"; }

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
        json_array_append_new(list, json_pack("{s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:b}", "N", p->at.N, "W",
                                              p->at.W, "G", p->at.G, "S", p->S, "predicted", p->predicted,
                                              "low", p->low, "high", p->high, "fitted", p->fitted));
    }
    return list;
}

static json_t *fit_json(const FitOptions *o, const Fit *fit) {
    json_t *root =
        json_pack("{s:s, s:s, s:o, s:i, s:i, s:o, s:o, s:s, s:o, s:o}", "law",
                  o->law == FIT_PAPER ? "paper" : "corrected", "bonus", bonus_name(o->bonus_dropped),
                  "filling", filling_json(o->output), "fitted", fit->fitted, "points", fit->count, "alpha",
                  value_json(&fit->best->alpha), "f", value_json(&fit->best->f), "estimator",
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

bool fit_report_json(const char *title, const FitOptions *o, const Fit *fit, Text *out) {
    json_t *root = fit_json(o, fit);
    if (title) json_object_set_new(root, "of", json_string(title));
    return json_append(root, 0, out);
}

// --- for people ------------------------------------------------------------------------------------------

static void print_head(const FitOptions *o, const Fit *fit) {
    char filling[64] = "no filling";
    const char *guesses =
        fit->candidates ? "each step's own candidates" : "b = G, for no step's own candidates are known";
    if (o->output > 0) snprintf(filling, sizeof filling, "filling in outputs of %g tokens", o->output);
    printf("law        %s; bonus %s, %s\n", o->law == FIT_PAPER ? "Eq. 5 and 7 with b = W = G" : guesses,
           bonus_name(o->bonus_dropped), filling);
    printf("points     %d fitted, %d predicted", fit->fitted, fit->count - fit->fitted);
    if (fit->prompts) printf("; %d prompts", fit->prompts);
    puts("");
}

static void print_value(const char *name, const FitValue *v, bool interval) {
    LOCAL_TEXT text = {0};
    text_measured(&text, v->value, interval ? v->low : NAN, interval ? v->high : NAN);
    printf("  %s %s", name, text_get(&text));
}

static void print_estimate(const char *name, const FitEstimate *x) {
    const char *warnings[FIT_MOST_WARNINGS];
    static const char *const METHODS[] = {"prompts drawn again", "S moved by its errors",
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
           x->interval ? METHODS[x->drawn] : "");
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

void fit_report(const char *title, const FitOptions *o, const Fit *fit) {
    if (title) printf("%s\n", SHOWN(title));
    print_head(o, fit);
    print_estimate("least squares", &fit->least_squares);
    print_estimate("likelihood", &fit->likelihood);
    if (fit->chi_square_given)
        printf("chi-square     %.3g with %d degrees of freedom, chance %.3g\n", fit->chi_square, fit->freedom,
               fit->chance);
    print_others(fit);
    print_leave_out(fit);
    puts("\n  N    W    G        S  predicted    error");
    for (int i = 0; i < fit->count; i++) {
        const FitPrediction *p = &fit->predictions[i];
        printf("%3d %4d %4d %8.4f %10.4f %+8.4f%s\n", p->at.N, p->at.W, p->at.G, p->S, p->predicted,
               p->predicted - p->S, p->fitted ? "" : "  not fitted");
    }
}
