// The axes of each method, and the experiment that measures them: a generated config, so that
// points, runs and errors are those of any other config.
#include "harness/tune/space.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/decode/method.h"

#include <math.h>
#include <string.h>

// --- the spaces ------------------------------------------------------------------------------------------

#define EAGLE_AXES                                                                                     \
    {                                                                                                  \
        {"total", "[4, 8, 16, 24, 32, 48, 60]"}, {"depth", "[1..6, 8]"}, { "top", "[1, 2, 4, 6, 10]" } \
    }

// Methods that may keep their state from prompt to prompt don't: points answer in turn, in rounds.
static const TuneMethod METHODS[] = {
    {"lookahead", {{"W", "[1..6, 8, 10, 12, 15]"}, {"N", "2..7"}, {"G", "[1..6, 8, 10, 12, 15]"}}},
    {"ngrammys", {{"k", "[1..6, 8, 10, 12, 16, 20, 25]"}, {"w", "[1..8, 10, 12, 14]"}}},
    {"kangaroo", {{"gamma", "[1..8, 10, 12]"}, {"eta", "0..0.9+0.1"}}},
    {"early-exit", {{"exit_layer", "1..4"}, {"gamma", "[1..6, 8, 10]"}, {"eta", "[0, 0.3, 0.6]"}}},
    {"ouroboros",
     {{"gamma", "[2, 3, 4, 6, 8, 10, 12, 16]"}, {"K", "[0, 1, 2, 4, 8, 15, 20]"}, {"beta", "[3, 5, 7]"}}},
    {"speculative", {{"gamma", "[1..12, 14, 16]"}}},
    {"medusa", {{"nodes", "[3, 5, 8, 12, 16, 24, 32, 48, 63]"}, {"depth", "1..5"}, {"top", "[1, 3, 5, 10]"}}},
    {"eagle", EAGLE_AXES},
    {"eagle3", EAGLE_AXES},
    {"mtp", {{"gamma", "[1..6, 8]"}, {"top", "[1, 2, 4]"}, {"total", "[4, 8, 16, 32]"}}},
    {"dflash", {{"gamma", "[1..8, 10, 12, 15]"}}},
    {"jacobi", {{"m", "[1..8, 10, 12, 16, 20]"}}},
    {"prompt-lookup",
     {{"ngram_max", "1..5"}, {"draft", "[1..6, 8, 10, 12, 16]"}, {"match", "[oldest, newest]"}}},
    {"suffix",
     {{"draft", "[8, 16, 32, 64]"},
      {"factor", "[1, 2, 4, 8]"},
      {"offset", "[0, 1, 4]"},
      {"min_prob", "[0.01, 0.05, 0.1]"},
      {"tree", "[off, on]"}}},
    {"ngram-mod", {{"n", "[1..6, 8, 12]"}, {"draft", "[1..8, 10, 12, 16, 24]"}, {"warm", "[off]"}}},
    {"recycling",
     {{"tree", "[2.2.2, samd, eagle, 1x1, 1x1x1, 2x1x1, 2x2, 3x2x1, 3x2x2, 4x2x2x1, 6x2x2x1]"},
      {"rejected", "[on, off]"},
      {"warm", "[off]"}}},
    {"rest", {{"shortest", "[1, 2, 3, 5]"}, {"draft", "[2, 4, 6, 10, 16]"}, {"nodes", "[4, 8, 16, 32, 64]"}}},
};
enum { METHOD_COUNT = sizeof METHODS / sizeof *METHODS };

// Of methods with a fixed tree: a wide one, in place of the axes. All ranks are tried below the root.
#define WIDE_TREE \
    { "tree", "10x2x1x1x1x1" }

static const TuneMethod CALIBRATIONS[] = {
    {"speculative", {WIDE_TREE}},
    {"recycling", {WIDE_TREE}},
    {"medusa", {{"tree", "auto"}, {"nodes", "127"}, {"top", "10"}, {"depth", "16"}}},
    {"eagle", {WIDE_TREE}},
    {"eagle3", {WIDE_TREE}},
    {"mtp", {WIDE_TREE}},
};

static const TuneMethod *find_calibration(const char *name, Error *e) {
    for (size_t i = 0; i < sizeof CALIBRATIONS / sizeof *CALIBRATIONS; i++)
        if (strcmp(CALIBRATIONS[i].name, name) == 0) return &CALIBRATIONS[i];
    if (method_find(name, e)) error_input(e, "tune: --tree: '%s' has no fixed tree", name);
    return NULL;
}

static const struct {
    const char *name, *why;
} SPACELESS[] = {
    {"autoregressive", "it has no parameters"},
    {"mix", "its parts have theirs"},
    {"oracle", "its acceptance is set by hand"},
};

const TuneMethod *tune_method_find(const char *name, Error *e) {
    for (int i = 0; i < METHOD_COUNT; i++)
        if (strcmp(METHODS[i].name, name) == 0) return &METHODS[i];
    for (size_t i = 0; i < sizeof SPACELESS / sizeof *SPACELESS; i++)
        if (strcmp(SPACELESS[i].name, name) == 0) {
            error_input(e, "tune: there is no space for '%s': %s; 'outpace run' sweeps a config", name,
                        SPACELESS[i].why);
            return NULL;
        }
    if (method_find(name, e)) error_input(e, "tune: '%s' is missing from harness/tune/space.c", name);
    return NULL;
}

// --- points ----------------------------------------------------------------------------------------------

void tune_space_open(const Plan *p, TuneSpace *out) {
    *out = (TuneSpace){.count = p->sweep.count, .most_rows = 1};
    out->points = mem_new((size_t)out->count, sizeof *out->points);
    for (int i = 0; i < out->count; i++) {
        out->points[i] = (TuningPoint){p->inputs.work[i].longest, p->inputs.work[i].rows};
        if (out->points[i].N > out->longest) out->longest = out->points[i].N;
        out->most_rows = fmax(out->most_rows, out->points[i].rows);
    }
}

void tune_space_release(TuneSpace *s) {
    mem_free(s->points);
    *s = (TuneSpace){0};
}

// --- a point's words -------------------------------------------------------------------------------------

void tune_method_text(const Experiment *x, const Point *p, Text *out) {
    LOCAL(point_name_release) PointName name;
    const YamlNode *matrix = p->method >= 0 ? x->methods[p->method].matrix : NULL;
    point_name(x, p, &name);
    text_puts(out, name.method);
    for (const YamlNode *axis = matrix ? matrix->first : NULL; axis; axis = axis->next)
        for (int i = 0; i < name.param_count; i++)
            if (strcmp(name.params[i].section, "method") == 0 && strcmp(name.params[i].name, axis->key) == 0)
                text_printf(out, "%s%s=%s", axis == matrix->first ? ":" : ",", axis->key,
                            name.params[i].value);
}

// --- the experiment that tune runs

#define OWN_CONFIG "outpace tune" // the name of a config that isn't a file

// --- what changes the config: the axes -------------------------------------------------------------------

#define MATRIX "methods.0.matrix."

// Takes `set`, as `run --set` has it.
static bool add_set(Words *sets, char *set, Error *e) {
    if (sets->count == WORDS_MAX) {
        mem_free(set);
        return error_input(e, "tune: more than %d axes, fixed values and changes", WORDS_MAX);
    }
    sets->items[sets->count++] = set;
    return true;
}

static bool names(const char *pair, const char *name) {
    size_t n = strlen(name);
    return strncmp(pair, name, n) == 0 && pair[n] == '=';
}

// Whether the user sets the parameter: as an axis, or in the method's text.
static bool is_given(const TuneAsk *ask, const char *fixed, const char *name) {
    for (int i = 0; i < ask->axes.count; i++)
        if (names(ask->axes.items[i], name)) return true;
    for (const char *p = fixed; p && *p;) {
        if (names(p, name)) return true;
        p += strcspn(p, ",");
        p += *p == ',';
    }
    return false;
}

// The method's own axes, then the user's fixed values, axes and changes of the config.
static bool add_sets(const TuneAsk *ask, const TuneMethod *method, const char *fixed, Words *sets, Error *e) {
    for (const TuneAxis *a = method->axes; a < method->axes + TUNE_AXES && a->name; a++)
        if (!is_given(ask, fixed, a->name) &&
            !add_set(sets, mem_printf(MATRIX "%s=%s", a->name, a->values), e))
            return false;
    for (const char *p = fixed; p && *p;) {
        int n = (int)strcspn(p, ",");
        if (!memchr(p, '=', (size_t)n))
            return error_input(e, "tune: '%.*s' in --method must be NAME=VALUE, as %s:N=4", n, p,
                               method->name);
        if (!add_set(sets, mem_printf(MATRIX "%.*s", n, p), e)) return false;
        p += n + (p[n] == ',');
    }
    for (int i = 0; i < ask->axes.count; i++) { // "W=1,2,4..8" is a list as a config has it, "[1,2,4..8]"
        const char *axis = ask->axes.items[i], *equals = strchr(axis, '=');
        if (!equals || equals == axis || !equals[1])
            return error_input(e, "tune: --axis is '%s', must be NAME=VALUES, as W=1,2,4..8", axis);
        const char *list = equals[1] == '[' ? "%s%.*s=%s" : "%s%.*s=[%s]";
        if (!add_set(sets, mem_printf(list, MATRIX, (int)(equals - axis), axis, equals + 1), e)) return false;
    }
    for (int i = 0; i < ask->sets.count; i++)
        if (!add_set(sets, mem_printf("%s", ask->sets.items[i]), e)) return false;
    return true;
}

// --- the config ------------------------------------------------------------------------------------------

// NULL where a value is not UTF-8.
static json_t *hardware_json(const EngineOptions *o) {
    json_auto_t *map = json_object();
    LOCAL_TEXT value = {0};
    bool ok = true;
    for (int i = 0; i < MODEL_SETTINGS; i++) {
        text_clear(&value);
        arg_write(&MODEL_OPTIONS[i], o, &value);
        ok = ok && json_object_set_new(map, MODEL_OPTIONS[i].name, json_string(text_get(&value))) == 0;
    }
    return ok ? json_incref(map) : NULL;
}

// JSON is YAML, and jansson knows how to quote.
static json_t *config_json(const TuneAsk *ask, const TuneMethod *method) {
    json_t *model = json_pack("{s:s, s:s*, s:s*, s:s*}", "target", ask->target, "draft", ask->draft,
                              "inflate", ask->inflate, "inflate_draft", ask->inflate_draft);
    for (int i = 0; i < ADAPTER_ROLES; i++)
        if (ask->adapters[i]) json_object_set_new(model, adapter_role_name(i), json_string(ask->adapters[i]));
    json_t *dataset = json_pack("{s:s, s:s*, s:s*, s:s*, s:s*, s:i, s:s, s:I}", "name",
                                ask->path ? ask->path : ask->dataset, "path", ask->path, "format",
                                ask->format, "split", ask->split, "template", ask->template, "limit",
                                ask->limit, "order", "shuffled", "seed", (json_int_t)ask->seed);
    const char *about = ask->processor ? "points that outpace tune measured of a space, in processor time"
                                       : "points that outpace tune measured of a space";
    return json_pack("{s:s, s:s, s:[o], s:[o], s:o, s:{s:i, s:b}, s:[{s:s, s:{}}]}", "name", "tune", "about",
                     about, "models", model, "datasets", dataset, "hardware", hardware_json(&ask->engine),
                     "generation", "max_tokens", ask->max_tokens, "ignore_eos", ask->ignore_eos, "methods",
                     "name", method->name, "matrix");
}

static bool prepare(const TuneAsk *ask, const TuneMethod *method, const char *fixed, Plan *out, Error *e) {
    SweepOptions o = {.shard = "1/1"};
    json_auto_t *config = config_json(ask, method);
    LOCAL_MEMORY char *text = json_text(config, 0);
    bool ok = add_sets(ask, method, fixed, &o.sets, e);
    if (ok && !text) ok = error_input(e, "tune: a name or path is not UTF-8");
    ok = ok && plan_parse(out, text, OWN_CONFIG, &o, e);
    static const char own[] = OWN_CONFIG ":";
    if (!ok && e && strncmp(e->text, own, sizeof own - 1) == 0) { // file:line is of a generated config
        const char *what = e->text + sizeof own - 1;
        what += strspn(what, "0123456789: ");
        memmove(e->text, what, strlen(what) + 1);
    }
    for (int i = 0; i < o.sets.count; i++) mem_free((char *)o.sets.items[i]);
    return ok;
}

static bool check_tree(const Plan *p, Error *e) {
    const char *refusal = inputs_refusal(&p->inputs, 0);
    if (options_batch(&p->sweep.points[0].settings.engine) > 1)
        return error_input(e, "tune: --tree finds the tree of one sequence; leave out --batch");
    if (p->sweep.count != 1) return error_input(e, "tune: --tree: parameters vary; give each one value");
    return !refusal || error_input(e, "tune: %s", refusal);
}

// Times are compared over the same texts, by prompts that do not depend on those before them.
static bool check_race(const Plan *p, Error *e) {
    const char *refusal;
    int batch = options_batch(&p->sweep.points[0].settings.engine);
    bool warm = false;
    for (int i = 0; i < p->sweep.count; i++) warm = warm || p->sweep.points[i].warm;
    if (p->schedule.group_count != 1) return error_input(e, "tune: settings vary; give each one value");
    if (p->sweep.points[0].settings.temperature > 0)
        return error_input(e, "tune: outputs must be greedy; take the temperature away");
    if (warm)
        return error_input(e, "tune: a method that keeps phrases from prompt to prompt is measured by whole "
                              "passes, not in rounds; take warm=on away");
    if ((refusal = inputs_refusal(&p->inputs, 0))) return error_input(e, "tune: %s", refusal);
    size_t prompts = p->inputs.datasets[0].count;
    return prompts >= 2 * (size_t)batch ||
           (batch > 1 ? error_input(e, "tune: a race needs two batches, %d prompts; the dataset has %zu",
                                    2 * batch, prompts)
                      : error_input(e, "tune: a race needs two prompts at least, the dataset has one"));
}

bool tune_prepare(const TuneAsk *ask, Plan *out, Error *e) {
    const char *colon = strchr(ask->method, ':');
    LOCAL_MEMORY char *name =
        mem_text(ask->method, colon ? (size_t)(colon - ask->method) : strlen(ask->method));
    *out = (Plan){0};
    const TuneMethod *method = ask->tree ? find_calibration(name, e) : tune_method_find(name, e);
    if (!method || !prepare(ask, method, colon ? colon + 1 : NULL, out, e)) return false;
    bool ok =
        (ask->tree ? check_tree(out, e) : check_race(out, e)) && inputs_make(&out->inputs, (Progress){0}, e);
    if (ok) { // a run of the same space must not find what tune left out, and resume it
        LOCAL_TEXT own = {0};
        text_printf(&own, "tune\n%s", out->inputs.hash);
        ok = sha256_bytes(own.data, own.length, out->inputs.hash, e);
    }
    if (!ok) plan_release(out);
    return ok;
}
