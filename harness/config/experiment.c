// The tables describe what a file may hold. What they can't express (which keys go together, that names
// differ, that a parameter is its method's) is checked after them, so that a config that was read can be run.
#include "harness/config/experiment.h"

#include "engine/base/memory.h"
#include "engine/text/template.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))
#define ROW(s, field, kind, ...) \
    { .name = #field, .type = kind, .at = offsetof(s, field), __VA_ARGS__ }
#define TEXT(s, field, about)              ROW(s, field, ARG_WORD, .help = about)
#define NEEDED(s, field, about)            ROW(s, field, ARG_WORD, .help = about, .required = true)
#define TEXTS(s, field, about)             ROW(s, field, ARG_WORDS, .help = about)
#define SEED(s, field, about)              ROW(s, field, ARG_SEED, .help = about)
#define INT(s, field, least, most, about)  ROW(s, field, ARG_INT, .help = about, .low = least, .high = most)
#define REAL(s, field, least, most, about) ROW(s, field, ARG_REAL, .help = about, .low = least, .high = most)
#define CHOICE(s, field, names, about)     ROW(s, field, ARG_CHOICE, .help = about, .choices = names)
#define EACH(s, field, counter, most, rows, about)                                         \
    ROW(s, field, ARG_EACH, .help = about, .high = most, .required = true, .table = &rows, \
        .count_at = offsetof(s, counter))
#define NODE(s, key, field, about) \
    { .name = key, .type = ARG_NODE, .at = offsetof(s, field), .help = about }

#define ADAPTER(key, role, about)                                                                     \
    {                                                                                                 \
        .name = key, .type = ARG_WORD, .at = offsetof(ModelSpec, adapters) + (role) * sizeof(char *), \
        .help = about                                                                                 \
    }

static const Arg MODEL_FIELDS[] = {
    TEXT(ModelSpec, name, "in tables; by default the path"),
    TEXT(ModelSpec, target,
         "a Hugging Face directory, a GGUF file or the name of a reference model; or give "
         "reference or synthesise"),
    TEXT(ModelSpec, reference, "a member of the reference family (models/)"),
    TEXT(ModelSpec, synthesise, "a shape (configs/shapes), with random weights"),
    TEXT(ModelSpec, inflate, "a shape to which target or reference is inflated"),
    INT(ModelSpec, inflate_first, 0, 1000,
        "layers of the small model that stay the first of the inflated one; the others are spread"),
    TEXT(ModelSpec, draft, "the directory of the draft model"),
    TEXT(ModelSpec, draft_device, "by default the target's, of several cards the last"),
    TEXT(ModelSpec, inflate_draft,
         "a shape for the draft of an inflated model, at most a fifth of it; none: as it is"),
    ADAPTER("adapter", ADAPTER_ANY, "Kangaroo's adapter, or the only one of the others: a directory"),
    ADAPTER("heads", ADAPTER_FOR_MEDUSA, "Medusa's heads: a directory"),
    ADAPTER("eagle", ADAPTER_FOR_EAGLE, "the draft network of EAGLE-1 and 2: a directory"),
    ADAPTER("eagle3", ADAPTER_FOR_EAGLE3, "that of EAGLE-3"),
    ADAPTER("mtp", ADAPTER_FOR_MTP, "an MTP layer: a directory; by default the target's own, if it has one"),
    ADAPTER("dflash", ADAPTER_FOR_DFLASH, "the draft of DFlash or DSpark"),
    TEXT(ModelSpec, template,
         "chat template, for datasets that take the model's; by default that of the model's files"),
    SEED(ModelSpec, seed, "of random weights"),
};
static const ArgTable MODEL = ARG_TABLE("a model", MODEL_FIELDS, ModelSpec, .lone_key = "target");

static const char *const ORDERS[] = {"written", "shuffled", "by-task", "first-shuffled", NULL};
static const char *const TOO_LONG[] = {"stop", "skip", NULL};
static const Arg DATASET_FIELDS[] = {
    NEEDED(DatasetSpec, name, "'outpace datasets' lists those that are known"),
    TEXT(DatasetSpec, path, "a file of your own, under that name"),
    TEXT(DatasetSpec, format, "of path; by default by its ending ('outpace datasets --formats')"),
    TEXT(DatasetSpec, split, "rows of this split only"),
    TEXT(DatasetSpec, template,
         "chat template; model: each model's own; none: texts as written; by default the model's, if it "
         "has one, for prompts that ask"),
    TEXTS(DatasetSpec, parts, "names of datasets to concatenate, limit rows of each"),
    INT(DatasetSpec, limit, 0, 1 << 24, "rows; 0: all"),
    INT(DatasetSpec, turns, 1, 64, "of a conversation, at most"),
    CHOICE(DatasetSpec, order, ORDERS, "of the prompts"),
    CHOICE(DatasetSpec, too_long, TOO_LONG,
           "a prompt that a model's context doesn't hold stops the sweep, or is left out of all"),
    INT(DatasetSpec, consecutive, 1, 1 << 24, "by-task: rows of a part before the next part's"),
    SEED(DatasetSpec, seed, "of shuffled"),
};
static const DatasetSpec DATASET_DEFAULTS = {.turns = 1, .consecutive = 1};
static const ArgTable DATASET =
    ARG_TABLE("a dataset", DATASET_FIELDS, DatasetSpec, .lone_key = "name", .defaults = &DATASET_DEFAULTS);

static const Arg METHOD_FIELDS[] = {
    NEEDED(MethodSpec, name, "'outpace methods' lists them; NAME or NAME:k=v,... as on the command line"),
    TEXT(MethodSpec, label, "in tables; by default name and parameters"),
    NODE(MethodSpec, "matrix", matrix, "axes of which every combination is a point"),
    NODE(MethodSpec, "zip", zip, "axes that advance together; a list of maps makes several zips"),
    NODE(MethodSpec, "exclude where", exclude,
         "a condition such as W > 15 and not G == 3, or a list of them"),
};
static const ArgTable METHOD = ARG_TABLE("a method", METHOD_FIELDS, MethodSpec, .lone_key = "name");

static const char *const STOPS[] = {"passes", "timing", NULL};
static const Arg MEASUREMENT_FIELDS[] = {
    INT(Measurement, reruns, 0, 1000, "of passes that keep state and were disturbed, at most"),
    INT(Measurement, warmup, 0, 1000, "prompts before the first that counts"),
    INT(Measurement, passes, 1, 1000, "each is every prompt once"),
    INT(Measurement, most_passes, 1, 1000, "under stop: timing"),
    CHOICE(Measurement, stop, STOPS, "after passes, or when a point's time is known to timing_error"),
    REAL(Measurement, timing_error, 1e-6, 1, "relative, of a point's time"),
    REAL(Measurement, time_limit, 0, 1e9, "seconds of decoding a point; 0: none"),
};
static const ArgTable MEASUREMENT =
    ARG_TABLE("measurement", MEASUREMENT_FIELDS, Measurement, .lone_key = NULL);

static const Arg EXPERIMENT_FIELDS[] = {
    NEEDED(Experiment, name, "of the run"),
    TEXT(Experiment, about, "one line on its purpose"),
    TEXTS(Experiment, tables, "the papers' tables that it's for"),
    TEXTS(Experiment, plots, "the papers' figures that it's for"),
    TEXTS(Experiment, chosen, "choices where the paper is silent"),
    EACH(Experiment, models, model_count, EXPERIMENT_MODELS, MODEL, "a bare path is the target"),
    EACH(Experiment, datasets, dataset_count, EXPERIMENT_DATASETS, DATASET,
         "a bare name is the whole set, as written"),
    NODE(Experiment, "hardware", settings[0], "where and how the models run: each key is an axis"),
    NODE(Experiment, "generation", settings[1], "what is generated: each key is an axis"),
    EACH(Experiment, methods, method_count, EXPERIMENT_METHODS, METHOD, "a bare name has the defaults"),
    ROW(Experiment, measurement, ARG_MAP, .table = &MEASUREMENT,
        .help = "how often, and when a point is done"),
    NODE(Experiment, SCALE_SMALL, scales[0], "the changes of --scale small: published models on two cores"),
    NODE(Experiment, SCALE_SMOKE, scales[1], "the changes of --scale smoke: stand-ins"),
};
const ArgTable experiment_keys = ARG_TABLE("a config", EXPERIMENT_FIELDS, Experiment, .lone_key = NULL);

// --- models and datasets ---------------------------------------------------------------------------------

static bool check_model(ModelSpec *m, Error *e) {
    const char *sources[] = {m->target, m->reference, m->synthesise}, *first = NULL;
    int count = 0;
    for (size_t i = 0; i < COUNT(sources); i++) {
        if (sources[i] && !first) first = sources[i];
        count += sources[i] != NULL;
    }
    if (count != 1)
        return yaml_error(m->at, e,
                          "a model is one of target: DIR, reference: NAME and synthesise: SHAPE; %s",
                          count ? "take the others away" : "give one");
    if (m->draft_device && !m->draft)
        return yaml_error(m->at, e, "draft_device is '%s', but the model has no draft", m->draft_device);
    if (m->synthesise && m->inflate)
        return yaml_error(m->at, e, "a model to synthesise is not inflated: give its shape in synthesise");
    if (m->inflate_first && !m->inflate)
        return yaml_error(m->at, e, "inflate_first is for the layers of an inflated model: give inflate");
    if (m->inflate_draft && !(m->inflate && m->draft))
        return yaml_error(m->at, e, "inflate_draft is for the draft of an inflated model: give %s",
                          m->draft ? "inflate" : "draft");
    if (m->inflate && m->draft && !m->inflate_draft)
        return yaml_error(
            m->at, e,
            "a draft beside 'inflate: %s' costs next to nothing as it is: give inflate_draft, a "
            "shape of about a tenth of it (50m for 500m), or " INFLATE_NONE,
            m->inflate);
    if (!m->name) m->name = first;
    return true;
}

static bool check_models(Experiment *x, Error *e) {
    for (int i = 0; i < x->model_count; i++) {
        ModelSpec *m = &x->models[i];
        if (!check_model(m, e)) return false;
        for (int k = 0; k < i; k++)
            if (strcmp(x->models[k].name, m->name) == 0)
                return yaml_error(m->at, e, "two models are called '%s': give one another name", m->name);
    }
    return true;
}

static bool check_template(const char *template, const YamlNode *of, Error *e) {
    size_t count;
    const Template *table = template_table(&count);
    if (!template || strcmp(template, TEMPLATE_OF_MODEL) == 0) return true;
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].name, template) == 0) return true;
    const char *nearest = suggest(template, table, count, sizeof *table);
    const YamlNode *at = yaml_find(of, "template");
    if (nearest) return yaml_error(at, e, "there is no template '%s'; did you mean '%s'?", template, nearest);
    return yaml_error(at, e, "there is no template '%s'; 'outpace tokenizer encode --help' lists them",
                      template);
}

static bool is_of_model(const DatasetSpec *d) {
    return d->template && strcmp(d->template, TEMPLATE_OF_MODEL) == 0;
}

const char *experiment_template(const Experiment *x, int model, int dataset, bool asks) {
    const DatasetSpec *d = &x->datasets[dataset];
    const char *models = x->models[model].template;
    if (d->template ? !is_of_model(d) : !asks) return d->template;
    return models ? models : TEMPLATE_OF_MODEL;
}

// Where a dataset takes the model's, all models have one, or none has: texts are then as written.
static bool check_templates(const Experiment *x, Error *e) {
    bool any = false;
    for (int m = 0; m < x->model_count; m++) any = any || x->models[m].template;
    for (int m = 0; m < x->model_count; m++) {
        const ModelSpec *model = &x->models[m];
        if (!check_template(model->template, model->at, e)) return false;
        for (int d = 0; d < x->dataset_count; d++)
            if (any && is_of_model(&x->datasets[d]) && !model->template)
                return yaml_error(
                    x->datasets[d].at, e,
                    "dataset '%s' takes the model's template, and model '%s' has none: give it a 'template'",
                    x->datasets[d].name, model->name);
    }
    return true;
}

static bool check_datasets(const Experiment *x, Error *e) {
    for (int i = 0; i < x->dataset_count; i++) {
        const DatasetSpec *d = &x->datasets[i];
        if (d->path && d->parts.count)
            return yaml_error(d->at, e, "a dataset has a path or parts, not both: take one away");
        if (!is_of_model(d) && !check_template(d->template, d->at, e)) return false;
        for (int k = 0; k < i; k++)
            if (strcmp(x->datasets[k].name, d->name) == 0)
                return yaml_error(d->at, e,
                                  "two datasets are called '%s': give one another name and its "
                                  "path, or parts",
                                  d->name);
    }
    return true;
}

// --- axes ------------------------------------------------------------------------------------------------

// tables: those that the axis may come from.
static bool unknown_axis(const YamlNode *axis, const char *where, const SettingsSection *tables, int n,
                         Error *e) {
    const Arg *all[2 * ARGS_MAX];
    size_t count = 0;
    for (int t = 0; t < n; t++)
        for (size_t i = 0; i < tables[t].count; i++) {
            assert(count < 2 * ARGS_MAX);
            all[count++] = &tables[t].params[i];
        }
    const char *nearest = suggest(axis->key, all, count, 0);
    const YamlNode key = yaml_key(axis);
    if (nearest)
        return yaml_error(&key, e, "%s has no parameter '%s'; did you mean '%s'?", where, axis->key, nearest);
    return yaml_error(&key, e, "%s has no parameter '%s'; configs/README.md and 'outpace methods' list them",
                      where, axis->key);
}

// Each value alone must be one that the parameter takes.
static bool check_values(const Arg *p, const YamlNode *axis, void *scratch, Error *e) {
    for (const YamlNode *v = axis->first; v; v = v->next)
        if (!args_set(p, 1, scratch, p->name, v->text, e)) return yaml_within(v, e);
    return true;
}

// All axes of one map: of a section of settings.
static bool read_section(Experiment *x, int i, Error *e) {
    const SettingsSection *s = &settings_sections[i];
    Settings scratch;
    YamlNode *map = x->settings[i];
    if (!map) return true;
    if (map->kind != NODE_MAP)
        return yaml_error(map, e, "'%s' must be a map: lines such as '%s: ...'", s->name, s->params[0].name);
    for (YamlNode *axis = map->first; axis; axis = axis->next) {
        const Arg *p = arg_find(s->params, s->count, axis->key);
        if (!p) return unknown_axis(axis, s->name, s, 1, e);
        if (!axis_expand(&x->tree, axis, e) || !check_values(p, axis, &scratch, e)) return false;
    }
    return true;
}

static bool read_method_axis(Experiment *x, const MethodSpec *m, YamlNode *axis, void *scratch, Error *e) {
    const MethodInfo *info = m->info;
    const Arg *own = arg_find(info->params, info->param_count, axis->key);
    const Arg *setting = settings_find(axis->key);
    Settings settings;
    if (!own && !setting) {
        char where[128];
        snprintf(where, sizeof where, "method '%s'", info->name);
        SettingsSection tables[1 + SETTINGS_SECTIONS] = {{info->name, info->params, info->param_count}};
        memcpy(tables + 1, settings_sections, sizeof settings_sections);
        return unknown_axis(axis, where, tables, 1 + SETTINGS_SECTIONS, e);
    }
    return axis_expand(&x->tree, axis, e) &&
           check_values(own ? own : setting, axis, own ? scratch : (void *)&settings, e);
}

static bool read_axes(Experiment *x, const MethodSpec *m, YamlNode *map, bool zipped, void *scratch,
                      Error *e) {
    if (map->kind != NODE_MAP)
        return yaml_error(map, e, "%s must be a map of axes: {k: [1, 5], w: 2..14+2}",
                          zipped ? "'zip'" : "'matrix'");
    for (YamlNode *axis = map->first; axis; axis = axis->next)
        if (!read_method_axis(x, m, axis, scratch, e)) return false;
    // A zip's axes walk together, so they are of one length.
    for (YamlNode *axis = zipped ? map->first : NULL; axis; axis = axis->next)
        if (axis->count != map->first->count)
            return yaml_error(axis, e, "'%s' has %d values, '%s' %d: zipped axes have as many", axis->key,
                              axis->count, map->first->key, map->first->count);
    return true;
}

// --- methods ---------------------------------------------------------------------------------------------

static bool in_maps(const YamlNode *maps, const YamlNode *axis) {
    const YamlNode *found = maps && maps->kind == NODE_MAP ? yaml_find(maps, axis->key) : NULL;
    if (found && found != axis) return true;
    for (const YamlNode *map = maps && maps->kind == NODE_LIST ? maps->first : NULL; map; map = map->next)
        if (in_maps(map, axis)) return true;
    return false;
}

// No axis of a map occurs in another map of the method.
static bool stand_once(const MethodSpec *m, const YamlNode *maps, Error *e) {
    for (const YamlNode *n = maps ? maps->first : NULL; n; n = n->next) {
        if (maps->kind == NODE_LIST && !stand_once(m, n, e)) return false;
        if (maps->kind == NODE_MAP && (in_maps(m->matrix, n) || in_maps(m->zip, n)))
            return yaml_error(n, e, "'%s' is an axis of this method twice: take one away", n->key);
    }
    return true;
}

static bool read_method(Experiment *x, MethodSpec *m, Error *e) {
    const YamlNode *at = yaml_find(m->at, "name") ? yaml_find(m->at, "name") : m->at;
    m->info = method_of(m->name, &m->params, e);
    if (!m->info) return yaml_within(at, e);
    if (*m->params && (m->matrix || m->zip))
        return yaml_error(at, e, "'%s' has parameters in its name and axes: move the former to 'matrix'",
                          m->name);
    LOCAL_MEMORY void *scratch = mem_new(1, m->info->param_size);
    bool ok = args_parse(m->info->params, m->info->param_count, scratch, m->params, e) || yaml_within(at, e);
    if (ok && m->matrix) ok = read_axes(x, m, m->matrix, false, scratch, e);
    bool list = m->zip && m->zip->kind == NODE_LIST;
    for (YamlNode *map = list ? m->zip->first : m->zip; ok && map; map = list ? map->next : NULL)
        ok = read_axes(x, m, map, true, scratch, e);
    if (!ok || !stand_once(m, m->matrix, e) || !stand_once(m, m->zip, e)) return false;
    ok = !m->exclude || m->exclude->kind != NODE_MAP;
    for (const YamlNode *n = m->exclude ? m->exclude->first : NULL; ok && n; n = n->next)
        ok = n->kind == NODE_VALUE;
    return ok || yaml_error(m->exclude, e,
                            "'exclude where' must be a condition, such as W > 15, or a list of them");
}

static bool read_experiment(Experiment *x, Error *e) {
    Measurement *m = &x->measurement;
    *m = (Measurement){
        .at = x->tree.root, .warmup = 1, .passes = 1, .most_passes = 1000, .reruns = 2, .timing_error = 0.02};
    if (!values_read(&experiment_keys, x->tree.root, x, e)) return false;
    if (!check_models(x, e) || !check_datasets(x, e) || !check_templates(x, e)) return false;
    if (m->most_passes < m->passes)
        return yaml_error(m->at, e, "most_passes is %d, must be at least passes, %d", m->most_passes,
                          m->passes);
    for (int i = 0; i < SETTINGS_SECTIONS; i++)
        if (!read_section(x, i, e)) return false;
    for (int i = 0; i < x->method_count; i++)
        if (!read_method(x, &x->methods[i], e)) return false;
    return true;
}

// --- changes from the command line -----------------------------------------------------------------------

static bool apply_set(YamlTree *t, const char *set, Error *e) {
    char path[512];
    size_t n = strcspn(set, "=");
    if (!set[n] || n >= sizeof path)
        return error_input(e, "--set is '%s', must be written path=value: generation.max_tokens=64", set);
    memcpy(path, set, n);
    path[n] = 0;
    return yaml_set(t, "--set ", path, set + n + 1, e);
}

// One "key=DIR" of n bytes; quoted, so that a directory may have any name.
static bool set_directory(YamlTree *t, const char *pair, size_t n, Error *e) {
    size_t key = strcspn(pair, "=");
    LOCAL_TEXT path = {0}, value = {0};
    if (key >= n) return error_input(e, "--model has '%s', must be target=DIR[,draft=DIR,...]", pair);
    text_printf(&path, "models.%.*s", (int)key, pair);
    text_puts(&value, "'");
    for (const char *p = pair + key + 1; p < pair + n; p++)
        text_add(&value, *p == '\'' ? "''" : p, *p == '\'' ? 2 : 1);
    text_puts(&value, "'");
    return yaml_set(t, "--model: ", text_get(&path), text_get(&value), e);
}

static bool apply_model(YamlTree *t, const char *model, Error *e) {
    if (!yaml_set(t, "--model: ", "models", "{}", e)) return false;
    for (const char *p = model;;) {
        size_t n = strcspn(p, ",");
        if (!set_directory(t, p, n, e)) return false;
        if (!p[n]) return true;
        p += n + 1;
    }
}

static bool parse(Experiment *x, const char *bytes, size_t n, const char *file,
                  const ExperimentChanges *changes, Error *e) {
    *x = (Experiment){0};
    bool ok = yaml_parse(&x->tree, bytes, n, file, e);
    const Words *sets = changes ? changes->sets : NULL;
    if (ok && changes)
        ok = scale_apply(&x->tree, changes->scale, e) &&
             (!changes->model || apply_model(&x->tree, changes->model, e));
    for (int i = 0; ok && sets && i < sets->count; i++) ok = apply_set(&x->tree, sets->items[i], e);
    ok = ok && read_experiment(x, e);
    if (!ok) experiment_release(x);
    return ok;
}

bool experiment_parse(Experiment *x, const char *bytes, size_t n, const char *file,
                      const ExperimentChanges *changes, Error *e) {
    if (!parse(x, bytes, n, file, changes, e)) return false;
    // The config at the other scales, as written, must be one that can be run.
    LOCAL_MEMORY Experiment *other = mem_new(1, sizeof *other);
    bool ok = true;
    for (int i = 0; ok && i < EXPERIMENT_SCALES; i++) {
        ok = !x->scales[i] ||
             parse(other, bytes, n, file, &(ExperimentChanges){.scale = experiment_scales[i]}, e);
        experiment_release(other);
    }
    if (!ok) experiment_release(x);
    return ok;
}

bool experiment_open(Experiment *x, const char *path, const ExperimentChanges *changes, Error *e) {
    LOCAL_MEMORY char *bytes = NULL;
    size_t n;
    *x = (Experiment){0};
    if (!file_read(path, YAML_BYTES, &bytes, &n, e)) return false;
    return experiment_parse(x, bytes, n, path, changes, e);
}

void experiment_release(Experiment *x) {
    yaml_release(&x->tree);
    *x = (Experiment){0};
}

// --- smaller scales: the section of that name

const char *const experiment_scales[EXPERIMENT_SCALES] = {SCALE_SMALL, SCALE_SMOKE};

static bool put(YamlNode *at, YamlNode *with, Error *e);

// A key of the map names a place in `at`: the child of a map, which may not be there yet, or an item of a
// list.
static bool put_each(YamlNode *at, YamlNode *map, Error *e) {
    for (YamlNode *n = map->first, *next; n; n = next) {
        next = n->next;
        YamlNode *place = at->kind == NODE_MAP ? yaml_find(at, n->key) : yaml_item(at, n->key, e);
        const YamlNode key = yaml_key(n);
        if (!place && at->kind != NODE_MAP) return yaml_within(&key, e);
        if (place && at->kind != NODE_MAP && place->kind == NODE_VALUE && n->kind == NODE_MAP)
            return yaml_error(place, e, "'%s' is a single value: write {name: %s} to change something in it",
                              place->text, place->text);
        if (place && !put(place, n, e)) return false;
        if (!place) yaml_add(at, n);
    }
    return true;
}

static bool put(YamlNode *at, YamlNode *with, Error *e) {
    if (with->kind == NODE_MAP && at->kind != NODE_VALUE) return put_each(at, with, e);
    yaml_become(at, with);
    return true;
}

static bool apply(YamlNode *root, YamlNode *section, Error *e) {
    if (section->kind != NODE_MAP)
        return yaml_error(section, e, "'%s' must be a map of sections: {generation: ...}", section->key);
    for (const YamlNode *n = section->first; n; n = n->next) {
        const YamlNode at = yaml_key(n);
        if (strcmp(n->key, "name") == 0 || text_among(n->key, experiment_scales, EXPERIMENT_SCALES) >= 0)
            return yaml_error(&at, e, "'%s' has no '%s': take it away", section->key, n->key);
    }
    if (!put_each(root, section, e)) return false;
    section->first = section->last = NULL;
    section->count = 0;
    return true;
}

bool scale_apply(YamlTree *t, const char *scale, Error *e) {
    if (!scale || strcmp(scale, "full") == 0) return true;
    if (text_among(scale, experiment_scales, EXPERIMENT_SCALES) < 0)
        return error_input(e, "--scale is '%s', must be " SCALE_SMALL ", " SCALE_SMOKE " or full", scale);
    YamlNode *section = yaml_find(t->root, scale);
    return section
               ? apply(t->root, section, e)
               : yaml_error(t->root, e, "this config has no section '%s': it doesn't have that scale", scale);
}
