#include "harness/run/prepare.h"

#include "engine/base/shipped.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "harness/config/point_name.h"
#include "harness/program/terminal.h"

#include <stdio.h>
#include <string.h>

static bool out_of_memory(Error *e) { return error_system(e, "out of memory for an experiment"); }

static bool copy(const char *text, char **out, Error *e) {
    *out = mem_text(text, strlen(text));
    return *out || out_of_memory(e);
}

// --- what the command line changes -----------------------------------------------------------------------

static bool add_set(Prepared *p, char **slot, const char *path, const char *value, Error *e) {
    Text text = {0};
    if (p->sets.count == WORDS_MAX) return error_input(e, "more than %d times --set", WORDS_MAX);
    text_printf(&text, "%s=%s", path, value);
    bool ok = !text.failed && copy(text_get(&text), slot, e);
    text_release(&text);
    if (ok) p->sets.items[p->sets.count++] = *slot;
    return ok || out_of_memory(e);
}

static bool collect(Prepared *p, const SweepOptions *o, Error *e) {
    char number[16];
    snprintf(number, sizeof number, "%d", o->threads);
    p->sets = o->sets;
    p->changes = (ExperimentChanges){.scale = o->scale, .model = o->model, .sets = &p->sets};
    if ((o->threads >= 0 && !add_set(p, &p->threads, "hardware.threads", number, e)) ||
        (o->device && !add_set(p, &p->device, "hardware.device", o->device, e)))
        return false;
    for (char *c = p->device; c && *c; c++)
        if (*c == ',') *c = '+'; // a config's values have no commas
    return true;
}

static bool add_words(json_t *words, const char *key, const char *value) {
    return !value || (!json_array_append_new(words, json_string(key)) &&
                      !json_array_append_new(words, json_string(value)));
}

static bool write_overrides(Prepared *p, Error *e) {
    json_t *words = json_array();
    bool ok = words && add_words(words, "--scale", p->changes.scale);
    for (int i = 0; ok && i < p->sets.count; i++) ok = add_words(words, "--set", p->sets.items[i]);
    ok = ok && add_words(words, "--model", p->changes.model);
    p->overrides = ok ? json_text(words, JSON_COMPACT) : NULL;
    json_decref(words);
    return p->overrides || error_input(e, "an override is not UTF-8, or there is no memory");
}

// The words that write_overrides wrote.
static bool read_overrides(const char *text, SweepOptions *o, json_t **words, Error *e) {
    *words = json_from_bytes(text, strlen(text), "the run's overrides", e);
    if (!*words) return false;
    *o = (SweepOptions){.threads = -1};
    for (size_t i = 0; i + 1 < json_array_size(*words); i += 2) {
        const char *key = json_string_value(json_array_get(*words, i));
        const char *value = json_string_value(json_array_get(*words, i + 1));
        if (!key || !value) return error_input(e, "the run's overrides are damaged");
        if (strcmp(key, "--scale") == 0) o->scale = value;
        else if (strcmp(key, "--model") == 0) o->model = value;
        else if (o->sets.count < WORDS_MAX) o->sets.items[o->sets.count++] = value;
    }
    return true;
}

// --- all of it -------------------------------------------------------------------------------------------

static bool open_inputs(Prepared *p, Error *e) {
    Text name = {0};
    machine_name(&p->machine, &name);
    bool ok = name.failed ? out_of_memory(e)
                          : inputs_open(&p->inputs, &p->experiment, &p->schedule, p->sweep.hash,
                                        text_get(&name), p->cache, e);
    text_release(&name);
    return ok;
}

// Published weights and data stand in a beginner's way: the config itself may need none of them.
static bool or_smaller(const Prepared *p, Error *e) {
    Error why = e ? *e : (Error){0};
    if (why.kind != ERROR_INPUT || !p->experiment.smoke || p->changes.scale || p->changes.model) return false;
    return error_input(e, "%s; or run it at --scale smoke", why.text);
}

static bool open_all(Prepared *p, size_t n, const SweepOptions *o, Error *e) {
    machine_read(&p->machine);
    return collect(p, o, e) && write_overrides(p, e) &&
           experiment_parse(&p->experiment, p->config, n, p->file, &p->changes, e) &&
           sweep_expand(&p->experiment, &p->sweep, e) &&
           schedule_make(&p->experiment, &p->sweep, &p->schedule, e) &&
           (open_inputs(p, e) || or_smaller(p, e));
}

// A config of ours by the name that it has in a clone, from wherever it is run.
static bool read_config(Prepared *p, const char *file, size_t *n, Error *e) {
    static const char ours[] = "configs/";
    bool elsewhere = !file_exists(file) && strncmp(file, ours, sizeof ours - 1) == 0;
    char *path = elsewhere ? shipped_path(file + sizeof ours - 1) : NULL;
    bool ok = file_read(path ? path : file, YAML_BYTES, &p->config, n, e) && copy(file, &p->file, e);
    mem_free(path);
    return ok;
}

bool prepare_file(Prepared *out, const char *file, const SweepOptions *o, Error *e) {
    size_t n;
    *out = (Prepared){.cache = o->cache};
    if (read_config(out, file, &n, e) && open_all(out, n, o, e)) return true;
    prepare_release(out);
    return false;
}

bool prepare_text(Prepared *out, const char *config, const char *file, const char *overrides,
                  const char *cache, Error *e) {
    SweepOptions o;
    json_t *words = NULL;
    *out = (Prepared){.cache = cache};
    bool ok = read_overrides(overrides, &o, &words, e) && copy(config, &out->config, e) &&
              copy(file, &out->file, e) && open_all(out, strlen(config), &o, e);
    // Texts of the words were copied into the tree, but for the sets themselves, which nobody reads again.
    json_decref(words);
    out->sets.count = 0;
    out->changes = (ExperimentChanges){0};
    if (!ok) prepare_release(out);
    return ok;
}

bool prepare_refusals(const Prepared *p, Text *out, Error *e) {
    for (int i = 0; i < p->sweep.count; i++) {
        const char *why = inputs_refusal(&p->inputs, i);
        const Point *point = &p->sweep.points[i];
        PointName name;
        if (!why) continue;
        if (!point_name(&p->experiment, point, &name)) return false;
        text_printf(out, "point %d, %s, model %s: %s\n", i + 1, SHOWN(text_get(&name.label)),
                    SHOWN(p->experiment.models[point->model].name), SHOWN(why));
        point_name_release(&name);
    }
    return !out->failed || out_of_memory(e);
}

void prepare_warn(const Prepared *p) {
    for (int i = 0; i < p->experiment.dataset_count; i++) {
        if (p->inputs.left_out[i]) fprintf(stderr, "left out: %s\n", SHOWN(p->inputs.left_out[i]));
        if (p->inputs.datasets[i].changed)
            fprintf(stderr,
                    "warning: the dataset '%s' is not as published, and so are its results; 'datasets/fetch' "
                    "gets it "
                    "again\n",
                    SHOWN(p->experiment.datasets[i].name));
    }
}

void prepare_release(Prepared *p) {
    inputs_release(&p->inputs);
    schedule_release(&p->schedule);
    sweep_release(&p->sweep);
    experiment_release(&p->experiment);
    mem_free(p->config);
    mem_free(p->file);
    mem_free(p->overrides);
    mem_free(p->threads);
    mem_free(p->device);
    *p = (Prepared){0};
}
