// Opening a plan. Order matters: checks that are cheap and likely to fail come first, and the order of an
// experiment's contents and of the words in `overrides` is part of hashes and stored runs.
//
// Invariants of an open plan, asserted by plan_check(): every point of the sweep is in the schedule under its
// number; every setup has a context.
#include "harness/run/plan.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "harness/cli/terminal.h"
#include "harness/run/slurm.h"
#include "results/store.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

// --- changes by the command line -------------------------------------------------------------------------

static bool add_set(Plan *p, char **slot, const char *path, const char *value, Error *e) {
    if (p->sets.count == WORDS_MAX) return error_input(e, "more than %d times --set", WORDS_MAX);
    *slot = mem_printf("%s=%s", path, value);
    p->sets.items[p->sets.count++] = *slot;
    return true;
}

static bool collect_sets(Plan *p, const SweepOptions *o, Error *e) {
    p->sets = o->sets;
    p->changes = (ExperimentChanges){.scale = o->scale, .model = o->model, .sets = &p->sets};
    if ((o->threads && !add_set(p, &p->threads, "hardware.threads", o->threads, e)) ||
        (o->device && !add_set(p, &p->device, "hardware.device", o->device, e)))
        return false;
    for (char *c = p->device; c && *c; c++)
        if (*c == ',') *c = '+'; // in a config's list of values a comma separates
    return true;
}

static bool add_words(json_t *words, const char *key, const char *value) {
    return !value || (!json_array_append_new(words, json_string(key)) &&
                      !json_array_append_new(words, json_string(value)));
}

// Which part, from 0, of how many.
static bool read_shard(const char *text, int *shard, int *shards, Error *e) {
    char rest;
    *shard = 0;
    *shards = 1;
    if (!text) return slurm_task(shard, shards, e);
    if (sscanf(text, "%d/%d%c", shard, shards, &rest) != 2 || *shards < 1 || *shards > SWEEP_MAX ||
        *shard < 1 || *shard > *shards)
        return error_input(e, "--shard '%s': it must be i/n with i from 1 to n, as 3/12", text);
    --*shard;
    return true;
}

static bool write_overrides(Plan *p, Error *e) {
    char part[32];
    snprintf(part, sizeof part, "%d/%d", p->shard + 1, p->shards);
    json_auto_t *words = json_array();
    bool ok = add_words(words, "--scale", p->changes.scale);
    for (int i = 0; ok && i < p->sets.count; i++) ok = add_words(words, "--set", p->sets.items[i]);
    ok = ok && add_words(words, "--model", p->changes.model) &&
         add_words(words, "--shard", p->shards > 1 ? part : NULL);
    p->overrides = ok ? json_text(words, JSON_COMPACT) : NULL;
    return p->overrides || error_input(e, "an override is not UTF-8");
}

// Reads the words of write_overrides.
static bool read_overrides(const char *text, SweepOptions *o, json_t **words, Error *e) {
    *words = json_from_bytes(text, strlen(text), "the run's overrides", e);
    if (!*words) return false;
    *o = (SweepOptions){.shard = "1/1"};
    for (size_t i = 0; i + 1 < json_array_size(*words); i += 2) {
        const char *key = json_string_value(json_array_get(*words, i));
        const char *value = json_string_value(json_array_get(*words, i + 1));
        if (!key || !value) return error_input(e, "the run's overrides are damaged");
        if (strcmp(key, "--scale") == 0) o->scale = value;
        else if (strcmp(key, "--model") == 0) o->model = value;
        else if (strcmp(key, "--shard") == 0) o->shard = value;
        else if (o->sets.count < WORDS_MAX) o->sets.items[o->sets.count++] = value;
    }
    return true;
}

// --- a plan -------------------------------------------------------------------------------------------

// Published weights and data take long to get: an error about them also names the scale that needs none.
static bool open_inputs(Plan *p, Error *e) {
    LOCAL_TEXT name = {0};
    Error own = {0};
    if (!e) e = &own;
    machine_name(&p->machine, &name);
    bool ok = inputs_open(&p->inputs, &p->experiment, &p->schedule, text_get(&name), p->cache, e);
    const Error why = ok ? own : *e;
    if (why.kind == ERROR_INPUT && yaml_find(p->experiment.tree.root, SCALE_SMOKE) && !p->changes.scale &&
        !p->changes.model)
        error_input(e, "%s; or run it at --scale smoke", why.text);
    return ok;
}

static void plan_check(const Plan *p) {
    assert(p->config && p->file && p->overrides);
    assert(p->sweep.count == p->schedule.sweep_count && p->sweep.count <= p->schedule.point_count);
    for (int i = 0; i < p->schedule.setup_count; i++) assert(p->inputs.positions[i] >= 1);
}

// --- parts ------------------------------------------------------------------------------------------------

// Parts are cut by what every machine knows, since each task cuts for itself: the target's parameters, the
// tokens that a point may run, and the rows and drafts of its steps. A further row takes a quarter of the
// first one on two cores (0.15 of 0.59 ms), and 1/400 on a card below its ridge (results/gpu/README.md).
static double cost_of(const Plan *p, const Group *g, int point, const PointWork *w) {
    const Point *at = &p->schedule.points[point];
    double further = strncmp(at->settings.engine.device, "cuda", 4) == 0 ? 0.0025 : 0.25,
           step = 1 + w->drafts + (w->rows - 1 + w->draft_rows) * further;
    double answers = (double)p->inputs.datasets[at->dataset].count * at->settings.max_tokens,
           prompts = p->inputs.prefill[g - p->schedule.groups] / 16; // many rows a step
    const Shape *target = &p->inputs.models[at->model].model.shape;
    return 1 + (answers * step + prompts) * (double)shape_parameters(target);
}

void plan_shards(Plan *p, int shards, int *shard_of) {
    LOCAL_MEMORY double *cost = mem_new((size_t)p->sweep.count, sizeof *cost);
    LOCAL_MEMORY PointWork *work = mem_new((size_t)p->schedule.point_count, sizeof *work);
    inputs_work(&p->inputs, work);
    for (const Group *g = p->schedule.groups; g < p->schedule.groups + p->schedule.group_count; g++)
        for (int i = g->first; i < g->first + g->count; i++) {
            int point = p->schedule.members[i];
            if (point < p->sweep.count) cost[point] = cost_of(p, g, point, &work[point]);
        }
    schedule_shards(&p->schedule, cost, shards, shard_of);
}

// A part has a store of its own, unless the user names one.
static bool keep_shard(Plan *p, const SweepOptions *o, Error *e) {
    int n = (int)strlen(STORE_DEFAULT) - (int)strlen(".db");
    if (p->shards == 1) return true;
    if (o->db && strcmp(o->db, STORE_DEFAULT) == 0)
        p->db = mem_printf("%.*s.%d-%d.db", n, STORE_DEFAULT, p->shard + 1, p->shards);
    LOCAL_MEMORY int *shard_of = mem_new((size_t)p->sweep.count, sizeof *shard_of);
    plan_shards(p, p->shards, shard_of);
    inputs_release(&p->inputs);
    schedule_release(&p->schedule);
    sweep_cut(&p->sweep, shard_of, p->shard, p->shards);
    if (!p->sweep.count)
        return error_input(e, "part %d/%d has no points: there are only %d", p->shard + 1, p->shards,
                           p->sweep.total);
    return schedule_make(&p->experiment, &p->sweep, &p->schedule, e) && open_inputs(p, e);
}

static bool open_all(Plan *p, size_t n, const SweepOptions *o, Error *e) {
    machine_read(&p->machine);
    if (o->team) p->machine.processes = o->team->count;
    bool ok =
        read_shard(o->shard, &p->shard, &p->shards, e) && collect_sets(p, o, e) && write_overrides(p, e) &&
        experiment_parse(&p->experiment, p->config, n, p->file, &p->changes, e) &&
        sweep_expand(&p->experiment, &p->sweep, e) &&
        schedule_make(&p->experiment, &p->sweep, &p->schedule, e) && open_inputs(p, e) && keep_shard(p, o, e);
    p->inputs.team = o->team;
    if (ok) plan_check(p);
    return ok;
}

bool plan_open(Plan *out, const char *file, const SweepOptions *o, Error *e) {
    size_t n;
    Error why = {0};
    *out = (Plan){.cache = o->cache};
    char *ours = file_exists(file) ? NULL : shipped_config(file, &why),
         *path = ours ? shipped_path(strchr(ours, '/') + 1) : NULL;
    bool ok = !why.kind && file_read(path ? path : file, YAML_BYTES, &out->config, &n, e);
    if (why.kind && e) *e = why;
    out->file = ours ? ours : mem_text(file, strlen(file));
    mem_free(path);
    if (ok && open_all(out, n, o, e)) return true;
    plan_release(out);
    return false;
}

bool plan_parse(Plan *out, const char *config, const char *file, const SweepOptions *o, Error *e) {
    size_t n = strlen(config);
    *out = (Plan){.cache = o->cache, .config = mem_text(config, n), .file = mem_text(file, strlen(file))};
    bool ok = open_all(out, n, o, e);
    // The tree has copies of the words; nothing reads the sets again.
    out->sets.count = 0;
    out->changes = (ExperimentChanges){0};
    if (!ok) plan_release(out);
    return ok;
}

bool plan_reopen(Plan *out, const char *config, const char *file, const char *overrides,
                 const SweepOptions *given, Error *e) {
    SweepOptions o;
    json_auto_t *words = NULL;
    *out = (Plan){0};
    bool ok = read_overrides(overrides, &o, &words, e);
    o.team = given->team;
    o.cache = given->cache;
    return ok && plan_parse(out, config, file, &o, e);
}

bool plan_measurement(const char *config, const char *file, const char *overrides, Measurement *out,
                      int *points, Error *e) {
    SweepOptions o;
    LOCAL(experiment_release) Experiment x = {0};
    LOCAL(sweep_release) Sweep all = {0};
    json_auto_t *words = NULL;
    if (!read_overrides(overrides, &o, &words, e)) return false;
    ExperimentChanges changes = {.scale = o.scale, .model = o.model, .sets = &o.sets};
    if (!experiment_parse(&x, config, strlen(config), file, &changes, e)) return false;
    *out = x.measurement;
    out->at = NULL;
    bool ok = sweep_expand(&x, &all, e);
    *points = ok ? all.count : 0;
    return ok;
}

void plan_refusals(const Plan *p, Text *out) {
    for (int i = 0; i < p->sweep.count; i++) {
        const char *why = inputs_refusal(&p->inputs, i);
        const Point *point = &p->sweep.points[i];
        LOCAL(point_name_release) PointName name = {0};
        if (!why) continue;
        point_name(&p->experiment, point, &name);
        text_printf(out, "point %d, %s, model %s: %s\n", point->number + 1, SHOWN(text_get(&name.label)),
                    SHOWN(p->experiment.models[point->model].name), SHOWN(why));
    }
}

void plan_warn(const Plan *p) {
    for (int i = 0; i < p->experiment.dataset_count; i++) {
        if (p->inputs.left_out[i]) fprintf(stderr, "left out: %s\n", SHOWN(p->inputs.left_out[i]));
        if (p->inputs.datasets[i].changed)
            fprintf(stderr,
                    "warning: the dataset '%s' is not as published, and so are its results; 'datasets/fetch' "
                    "gets it again\n",
                    SHOWN(p->experiment.datasets[i].name));
        for (int m = 0; m < p->experiment.model_count; m++) {
            const Template *own = inputs_own_template(&p->inputs, m, i);
            if (own)
                fprintf(stderr, "note: prompts of '%s' are in the template '%s', that of the files of '%s'\n",
                        SHOWN(p->experiment.datasets[i].name), own->name,
                        SHOWN(p->experiment.models[m].name));
        }
    }
}

void plan_warn_memory(const Plan *p) {
    for (int i = 0; i < p->schedule.setup_count; i++)
        memory_warn(&p->inputs.memory[i], p->experiment.models[p->schedule.setups[i].model].name);
}

void plan_release(Plan *p) {
    inputs_release(&p->inputs);
    schedule_release(&p->schedule);
    sweep_release(&p->sweep);
    experiment_release(&p->experiment);
    MEM_FREE(p->config, p->file, p->overrides, p->db, p->threads, p->device);
    *p = (Plan){0};
}
