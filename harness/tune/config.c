#include "harness/tune/config.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"

#include <string.h>

#define OWN_CONFIG "outpace tune" // the name of what no file holds

// --- what changes the config: the axes -------------------------------------------------------------------

static bool add_set(json_t *words, const char *prefix, const char *text, Error *e) {
    Text set = {0};
    text_printf(&set, "%s%s", prefix, text);
    bool ok = !json_array_append_new(words, json_string("--set")) &&
              !json_array_append_new(words, json_string(text_get(&set)));
    text_release(&set);
    return ok || error_input(e, "tune: '%s' is not UTF-8, or there is no memory", text);
}

static const char MATRIX[] = "methods.0.matrix.";

static bool names(const char *pair, const char *name) {
    size_t n = strlen(name);
    return strncmp(pair, name, n) == 0 && pair[n] == '=';
}

// "W=1,2,4..8" is a list as a config has it, "[1,2,4..8]".
static bool add_axis(json_t *words, const char *axis, Error *e) {
    const char *equals = strchr(axis, '=');
    Text pair = {0};
    if (!equals || equals == axis || !equals[1])
        return error_input(e, "tune: --axis is '%s', must be NAME=VALUES, as W=1,2,4..8", axis);
    if (equals[1] == '[') return add_set(words, MATRIX, axis, e);
    text_printf(&pair, "%.*s=[%s]", (int)(equals - axis), axis, equals + 1);
    bool ok = add_set(words, MATRIX, text_get(&pair), e);
    text_release(&pair);
    return ok;
}

// Whether the user says what the parameter is: as an axis, or in the method's text.
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

// The method's own axes, then what the user fixes, then the user's axes.
static bool add_axes(const TuneAsk *ask, const TuneMethod *method, const char *fixed, json_t *words,
                     Error *e) {
    for (int i = 0; i < TUNE_AXES && method->axes[i].name; i++) {
        Text axis = {0};
        text_printf(&axis, "%s=%s", method->axes[i].name, method->axes[i].values);
        bool ok = is_given(ask, fixed, method->axes[i].name) || add_set(words, MATRIX, text_get(&axis), e);
        text_release(&axis);
        if (!ok) return false;
    }
    for (const char *p = fixed; p && *p;) {
        size_t n = strcspn(p, ",");
        char *pair = mem_text(p, n);
        bool ok = pair;
        if (ok && !strchr(pair, '='))
            ok = error_input(e, "tune: '%s' in --method must be NAME=VALUE, as %s:N=4", pair, method->name);
        ok = ok && add_set(words, MATRIX, pair, e);
        mem_free(pair);
        if (!ok) return false;
        p += n + (p[n] == ',');
    }
    for (int i = 0; i < ask->axes.count; i++)
        if (!add_axis(words, ask->axes.items[i], e)) return false;
    for (int i = 0; i < ask->sets.count; i++)
        if (!add_set(words, "", ask->sets.items[i], e)) return false;
    return true;
}

// --- the config ------------------------------------------------------------------------------------------

// JSON is YAML, and jansson knows how to quote.
static json_t *config_json(const TuneAsk *ask, const TuneMethod *method) {
    json_t *model =
        json_pack("{s:s, s:s*, s:s*, s:s*, s:s*}", "target", ask->target, "draft", ask->draft, "adapter",
                  ask->adapter, "inflate", ask->inflate, "inflate_draft", ask->inflate_draft);
    json_t *dataset = json_pack("{s:s, s:s*, s:s*, s:s*, s:s*, s:i, s:s, s:I}", "name",
                                ask->path ? ask->path : ask->dataset, "path", ask->path, "format",
                                ask->format, "split", ask->split, "template", ask->template, "limit",
                                ask->limit, "order", "shuffled", "seed", (json_int_t)ask->seed);
    json_t *hardware = json_pack("{s:s, s:s, s:s*, s:s*, s:i}", "device", ask->device ? ask->device : "cpu",
                                 "compute", ask->compute ? ask->compute : "weights", "math", ask->math,
                                 "weights", ask->weights, "threads", ask->threads);
    const char *about = ask->processor ? "points that outpace tune measured of a space, in processor time"
                                       : "points that outpace tune measured of a space";
    return json_pack("{s:s, s:s, s:[o], s:[o], s:o, s:{s:i, s:b}, s:[{s:s, s:{}}]}", "name", "tune", "about",
                     about, "models", model, "datasets", dataset, "hardware", hardware, "generation",
                     "max_tokens", ask->max_tokens, "ignore_eos", ask->ignore_eos, "methods", "name",
                     method->name, "matrix");
}

// It takes part in no sweep: a run of the same space must not find what tune left out, and go on with it.
static bool set_apart(Inputs *in, Error *e) {
    Text own = {0};
    text_printf(&own, "tune\n%s", in->hash);
    bool ok = sha256_bytes(own.data, own.length, in->hash, e);
    text_release(&own);
    return ok;
}

// A place in a config that nobody wrote says nothing.
static void drop_place(Error *e) {
    static const char own[] = OWN_CONFIG ":";
    if (!e || strncmp(e->text, own, sizeof own - 1) != 0) return;
    const char *what = e->text + sizeof own - 1;
    what += strspn(what, "0123456789: ");
    memmove(e->text, what, strlen(what) + 1);
}

static bool prepare(const TuneAsk *ask, const TuneMethod *method, const char *fixed, Plan *out, Error *e) {
    json_t *config = config_json(ask, method), *words = json_array();
    bool ok = words && add_axes(ask, method, fixed, words, e);
    char *text = ok ? json_text(config, 0) : NULL, *overrides = ok ? json_text(words, 0) : NULL;
    if (ok && (!text || !overrides))
        ok = error_input(e, "tune: a name or path is not UTF-8, or there is no memory");
    ok = ok && plan_reopen(out, text, OWN_CONFIG, overrides, NULL, e);
    if (!ok) drop_place(e);
    mem_free(text);
    mem_free(overrides);
    json_decref(config);
    json_decref(words);
    return ok;
}

// Times are compared over the same texts, by prompts that do not depend on those before them.
static bool check(const Plan *p, Error *e) {
    const char *refusal;
    if (p->schedule.group_count != 1) return error_input(e, "tune: settings vary; give each one value");
    if (p->sweep.points[0].settings.temperature > 0)
        return error_input(e, "tune: outputs must be greedy; take the temperature away");
    if (p->schedule.groups[0].warm)
        return error_input(e, "tune: a method that keeps phrases from prompt to prompt is measured by whole "
                              "passes, not in rounds; take warm=on away");
    if ((refusal = inputs_refusal(&p->inputs, 0))) return error_input(e, "tune: %s", refusal);
    return p->inputs.datasets[0].count > 1 ||
           error_input(e, "tune: a race needs two prompts at least, the dataset has one");
}

bool tune_prepare(const TuneAsk *ask, const TuneMethod **method, Plan *out, Error *e) {
    const char *colon = strchr(ask->method, ':');
    char *name = mem_text(ask->method, colon ? (size_t)(colon - ask->method) : strlen(ask->method));
    *out = (Plan){0};
    *method = tune_method_find(name, e);
    mem_free(name);
    if (!*method || !prepare(ask, *method, colon ? colon + 1 : NULL, out, e)) return false;
    bool ok = check(out, e) && inputs_make(&out->inputs, (Progress){0}, e) && set_apart(&out->inputs, e);
    if (!ok) plan_release(out);
    return ok;
}
