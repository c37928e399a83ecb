// A method's axes are dimensions of a grid: an axis of the matrix is one, and so are all axes of a zip
// together. An odometer walks the grid; each of its positions sets the parameters from their defaults anew,
// so no combination can leave a trace in the next.
#include "harness/config/sweep.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DIMENSIONS_MAX = 2 * ARGS_MAX, VARIABLES_MAX = 2 * ARGS_MAX + 2 };

typedef struct Dimension {
    const YamlNode *axis;
    bool zipped; // its brothers walk with it
    int at;
} Dimension;

typedef struct Grid {
    const Experiment *experiment;
    Point point; // of the open position; its decoder is not made yet
    const MethodSpec *method;
    Dimension dimensions[DIMENSIONS_MAX];
    int count;
    void *values; // the method's parameter struct
} Grid;

// Which hashes the sweep has: open addressing, indices of points + 1.
typedef struct Seen {
    int *slots;
    size_t size; // a power of two
} Seen;

typedef struct Expansion {
    const Experiment *experiment;
    Sweep *sweep;
    size_t capacity;
    Seen seen;
    int blocks, cleared; // points that are verified by blocks; points that asked for it in vain
    Error *e;
} Expansion;

// --- the grid --------------------------------------------------------------------------------------------

static bool method_varies(const MethodSpec *m, const char *name) {
    const YamlNode *zip = m->zip;
    if (m->matrix && yaml_find(m->matrix, name)) return true;
    if (zip && zip->kind == NODE_MAP) return yaml_find(zip, name) != NULL;
    for (const YamlNode *map = zip ? zip->first : NULL; map; map = map->next)
        if (yaml_find(map, name)) return true;
    return false;
}

static void add_dimension(Grid *g, const YamlNode *axis, bool zipped) {
    if (!axis) return; // an empty zip
    assert(g->count < DIMENSIONS_MAX);
    g->dimensions[g->count++] = (Dimension){axis, zipped, 0};
}

// To the next position; false after the last.
static bool turn(Grid *g) {
    for (int i = g->count - 1; i >= 0; i--) {
        Dimension *d = &g->dimensions[i];
        if (++d->at < d->axis->count) return true;
        d->at = 0;
    }
    return false;
}

// experiment.c has tried every value alone.
static void set_axis(Grid *g, const YamlNode *axis, int at) {
    const MethodInfo *info = g->method->info;
    const YamlNode *value = axis->first;
    for (int i = 0; i < at; i++) value = value->next;
    const Arg *own = arg_find(info->params, info->param_count, axis->key);
    const Arg *p = own ? own : settings_find(axis->key);
    UNUSED bool ok = args_set(p, 1, own ? g->values : (void *)&g->point.settings, p->name, value->text, NULL);
    assert(ok);
}

static void set_position(Grid *g) {
    args_defaults(g->method->info->params, g->method->info->param_count, g->values);
    const MethodInfo *info = g->method->info;
    UNUSED bool ok = args_parse(info->params, info->param_count, g->values, g->method->params, NULL);
    assert(ok);
    settings_defaults(&g->point.settings);
    for (int i = 0; i < g->count; i++) {
        const Dimension *d = &g->dimensions[i];
        for (const YamlNode *axis = d->axis; axis; axis = d->zipped ? axis->next : NULL)
            set_axis(g, axis, d->at);
    }
}

// --- exclude where ---------------------------------------------------------------------------------------

static Variable variable_of(const Arg *p, const void *values) {
    const void *at = (const char *)values + p->at;
    Variable v = {.name = p->name};
    switch (p->type) {
    case ARG_INT: v.number = *(const int *)at; break;
    case ARG_REAL: v.number = *(const double *)at; break;
    case ARG_TEXT:
    case ARG_METHODS: v.text = at; break;
    case ARG_FLAG:
    case ARG_NOT:
        v.text = *(const bool *)at == (p->type == ARG_FLAG) ? "on" : "off";
        v.choices = condition_on_off;
        break;
    case ARG_CHOICE:
        v.text = p->choices[*(const int *)at];
        v.choices = p->choices;
        break;
    default: assert(!"an axis of a type that no setting has");
    }
    return v;
}

static bool holds(const Grid *g, const YamlNode *condition, bool *out, Error *e) {
    Variable variables[VARIABLES_MAX];
    const MethodInfo *info = g->method->info;
    size_t count = 0;
    variables[count++] =
        (Variable){.name = "model", .text = g->experiment->models[g->point.model].name, .choices = NULL};
    variables[count++] = (Variable){
        .name = "dataset", .text = g->experiment->datasets[g->point.dataset].name, .choices = NULL};
    for (size_t i = 0; i < info->param_count; i++)
        variables[count++] = variable_of(&info->params[i], g->values);
    for (int s = 0; s < SETTINGS_SECTIONS; s++)
        for (size_t i = 0; i < settings_sections[s].count; i++)
            variables[count++] = variable_of(&settings_sections[s].params[i], &g->point.settings);
    if (condition_holds(condition->text, &(Scope){variables, count}, out, e)) return true;
    return error_within(e, "%s:%d:%d: exclude where", condition->file, condition->line, condition->column);
}

// All conditions are read, so that an error in any of them is reported.
static bool is_excluded(const Grid *g, bool *out, Error *e) {
    const YamlNode *exclude = g->method->exclude;
    bool list = exclude && exclude->kind == NODE_LIST;
    *out = false;
    for (const YamlNode *n = list ? exclude->first : exclude; n; n = list ? n->next : NULL) {
        bool one;
        if (!holds(g, n, &one, e)) return false;
        *out = *out || one;
    }
    return true;
}

// --- a point -------------------------------------------------------------------------------------

static void write_text(Text *out, const char *name, const char *value) {
    if (value) text_printf(out, "%s %zu %s\n", name, strlen(value), value);
}

void sweep_describe(const Experiment *x, const Point *p, Text *out) {
    const ModelSpec *m = &x->models[p->model];
    const DatasetSpec *d = &x->datasets[p->dataset];
    write_text(out, "target", m->target);
    write_text(out, "reference", m->reference);
    write_text(out, "synthesise", m->synthesise);
    write_text(out, "inflate", m->inflate);
    if (m->inflate_first) text_printf(out, "inflate-first %d\n", m->inflate_first);
    write_text(out, "draft", m->draft);
    write_text(out, "inflate-draft", m->inflate_draft);
    write_text(out, "draft-device", m->draft_device);
    for (int i = 0; i < ADAPTER_ROLES; i++) write_text(out, adapter_role_name(i), m->adapters[i]);
    write_text(out, "model-template", m->template);
    text_printf(out, "model-seed %" PRIu64 "\n", m->seed);
    write_text(out, "dataset", d->name);
    write_text(out, "path", d->path);
    write_text(out, "format", d->format);
    write_text(out, "split", d->split);
    write_text(out, "template", d->template);
    for (int i = 0; i < d->parts.count; i++) write_text(out, "part", d->parts.items[i]);
    text_printf(out, "rows limit=%d,turns=%d,order=%d,consecutive=%d,seed=%" PRIu64 "\nsettings ", d->limit,
                d->turns, d->order, d->consecutive, d->seed);
    settings_describe(&p->settings, out);
    text_puts(out, "\n");
    write_text(out, "method", p->decoder);
}

// --- the list --------------------------------------------------------------------------------------------

// True if the hash is new, and then remembered as that of points[index].
static bool remember(Seen *seen, const Point *points, const char *hash, int index) {
    char digits[17] = {0};
    memcpy(digits, hash, 16);
    size_t at = strtoull(digits, NULL, 16) & (seen->size - 1);
    for (; seen->slots[at]; at = (at + 1) & (seen->size - 1))
        if (strcmp(points[seen->slots[at] - 1].hash, hash) == 0) return false;
    seen->slots[at] = index + 1;
    return true;
}

static void add_point(Expansion *run, const Point *p) {
    Sweep *s = run->sweep;
    mem_grow(&s->points, &run->capacity, (size_t)s->count + 1, sizeof *p);
    if (!remember(&run->seen, s->points, p->hash, s->count)) {
        mem_free(p->decoder);
        s->repeated++;
        return;
    }
    s->points[s->count] = *p;
    s->points[s->count].number = s->count;
    s->computes[p->model] = s->computes[p->model] || strcmp(p->settings.engine.device, "null") != 0;
    s->reads[p->model][p->dataset] = true;
    s->count++;
}

static bool take_position(Expansion *run, Grid *g) {
    bool excluded;
    LOCAL_TEXT text = {0};
    set_position(g);
    if (!is_excluded(g, &excluded, run->e)) return false;
    if (excluded) {
        run->sweep->excluded++;
        return true;
    }
    Point p = g->point;
    // Where blocks change nothing, the point is that of verification by tokens, and dropped if it's there
    // already.
    if (p.settings.verification != VERIFICATION_TOKEN) {
        bool drafts = g->method->info->chain && p.settings.temperature > 0;
        ++*(drafts ? &run->blocks : &run->cleared);
        if (!drafts) p.settings.verification = VERIFICATION_TOKEN;
    }
    const MethodInfo *info = g->method->info;
    text_printf(&text, "%s%s", info->name, info->param_count ? ":" : "");
    args_write(info->params, info->param_count, g->values, &text);
    p.decoder = mem_text(text.data, text.length);
    p.warm = method_is_warm(info, g->values);
    text_clear(&text);
    sweep_describe(run->experiment, &p, &text);
    bool ok = sha256_bytes(text.data, text.length, p.hash, run->e);
    if (ok) add_point(run, &p);
    else mem_free(p.decoder);
    return ok;
}

static void lay_out(Grid *g) {
    const YamlNode *matrix = g->method->matrix, *zip = g->method->zip;
    for (int k = 0; k < SETTINGS_SECTIONS; k++) {
        const YamlNode *section = g->experiment->settings[k];
        for (size_t i = 0; section && i < settings_sections[k].count; i++) {
            const char *name = settings_sections[k].params[i].name;
            if (!method_varies(g->method, name)) add_dimension(g, yaml_find(section, name), false);
        }
    }
    for (const YamlNode *axis = matrix ? matrix->first : NULL; axis; axis = axis->next)
        add_dimension(g, axis, false);
    if (zip && zip->kind == NODE_MAP) add_dimension(g, zip->first, true);
    for (const YamlNode *map = zip && zip->kind == NODE_LIST ? zip->first : NULL; map; map = map->next)
        add_dimension(g, map->first, true);
}

static bool walk_grid(Expansion *run, int model, int dataset, int method) {
    const Experiment *x = run->experiment;
    Grid g = {.experiment = x, .method = &x->methods[method]};
    g.point = (Point){.model = model, .dataset = dataset, .method = method};
    g.values = mem_new(1, g.method->info->param_size);
    lay_out(&g);
    bool ok;
    do ok = take_position(run, &g);
    while (ok && turn(&g));
    mem_free(g.values);
    return ok;
}

// A double holds any product of axes well enough to see that it is too large.
static bool check_size(const Experiment *x, Error *e) {
    double sum = 0, texts = (double)x->model_count * x->dataset_count;
    for (int i = 0; i < x->method_count; i++) {
        Grid g = {.experiment = x, .method = &x->methods[i]};
        lay_out(&g);
        double size = 1;
        for (int d = 0; d < g.count; d++) size *= g.dimensions[d].axis->count;
        sum += size * texts;
        if (sum > SWEEP_MAX)
            return yaml_error(g.method->at, e,
                              "up to this method there are %.10g points, %d at most: take "
                              "values away or split the experiment",
                              sum, SWEEP_MAX);
    }
    return true;
}

// No two points are the same (by the hash), and each names what the config has.
static void sweep_check(UNUSED const Experiment *x, const Sweep *s, const Seen *seen) {
    UNUSED int known = 0;
    for (size_t i = 0; i < seen->size; i++) known += seen->slots[i] != 0;
    assert(known == s->count && s->count <= SWEEP_MAX);
    for (int i = 0; i < s->count; i++) {
        UNUSED const Point *p = &s->points[i];
        assert(p->model >= 0 && p->model < x->model_count && p->dataset >= 0 &&
               p->dataset < x->dataset_count);
        assert(p->method >= 0 && p->method < x->method_count && p->decoder &&
               strlen(p->hash) == SHA256_TEXT - 1);
    }
}

bool sweep_expand(const Experiment *x, Sweep *out, Error *e) {
    Expansion run = {.experiment = x, .sweep = out, .seen.size = 2 * SWEEP_MAX, .e = e};
    *out = (Sweep){0};
    if (!check_size(x, e)) return false;
    run.seen.slots = mem_new(run.seen.size, sizeof *run.seen.slots);
    bool ok = true;
    for (int model = 0; model < x->model_count; model++)
        for (int dataset = 0; dataset < x->dataset_count; dataset++)
            for (int method = 0; ok && method < x->method_count; method++)
                ok = walk_grid(&run, model, dataset, method);
    if (ok && !run.blocks && run.cleared)
        ok = yaml_error(x->at, e,
                        "'verification: block' changes no point: it needs a temperature above 0 and a method "
                        "that drafts a chain, such as speculative or kangaroo");
    const Measurement *m = &x->measurement;
    LOCAL_TEXT text = {0};
    text_printf(&text,
                "warmup=%d,passes=%d,most_passes=%d,reruns=%d,stop=%d,timing_error=%.17g,time_limit=%.17g\n",
                m->warmup, m->passes, m->most_passes, m->reruns, m->stop, m->timing_error, m->time_limit);
    for (int i = 0; i < out->count; i++) text_printf(&text, "%s\n", out->points[i].hash);
    ok = ok && sha256_bytes(text.data, text.length, out->hash, e);
    out->total = out->count;
    out->shards = 1;
    sweep_check(x, out, &run.seen);
    mem_free(run.seen.slots);
    if (ok && out->count == 0)
        ok = yaml_error(x->at, e, "no points are left: 'exclude where' takes all %d away", out->excluded);
    if (!ok) sweep_release(out);
    return ok;
}

void sweep_cut(Sweep *s, const int *shard_of, int shard, int shards) {
    int kept = 0;
    assert(s->count == s->total && shard >= 0 && shard < shards);
    for (int i = 0; i < s->count; i++) {
        if (shard_of[i] == shard) s->points[kept++] = s->points[i];
        else mem_free(s->points[i].decoder);
    }
    s->count = kept;
    s->shard = shard;
    s->shards = shards;
}

void sweep_release(Sweep *s) {
    for (int i = 0; i < s->count; i++) mem_free(s->points[i].decoder);
    mem_free(s->points);
    *s = (Sweep){0};
}

// --- names of points ------------------------------------------------------------------------------------

// Names are written from values, not copied from the config: a point's decoder is read back into its method's
// parameters, and every value printed in the one form that hashes have, too.

enum { MOST_PARAMS = 2 * ARGS_MAX };

// --- parameters one by one -------------------------------------------------------------------------------

static void add_params(PointName *n, const char *section, const Arg *params, size_t count, const void *values,
                       Text *texts) {
    assert((size_t)n->param_count + count <= MOST_PARAMS);
    for (size_t i = 0; i < count; i++) {
        n->params[n->param_count++] = (StoreParam){.section = section, .name = params[i].name};
        arg_write(&params[i], values, texts);
        text_add(texts, "", 1); // each its own C string
    }
}

static void list_params(PointName *n, const MethodInfo *info, const Point *p, const void *values) {
    LOCAL_TEXT texts = {0};
    n->params = mem_new(MOST_PARAMS + 1, sizeof *n->params);
    add_params(n, "method", info->params, info->param_count, values, &texts);
    for (int i = 0; i < SETTINGS_SECTIONS; i++)
        add_params(n, settings_sections[i].name, settings_sections[i].params, settings_sections[i].count,
                   &p->settings, &texts);
    n->texts = mem_text(texts.data, texts.length);
    const char *at = n->texts;
    for (int i = 0; i < n->param_count; i++, at += strlen(at) + 1) n->params[i].value = at;
}

// --- the label -------------------------------------------------------------------------------------------

// A file that doesn't vary is its name without folders.
static void name_axis(const MethodInfo *info, const Point *p, const void *values, const YamlNode *axis,
                      bool all, Text *out) {
    const Arg *own = arg_find(info->params, info->param_count, axis->key);
    const Arg *setting = settings_find(axis->key);
    if (axis->count < 2 && !all) return;
    const char *text = own && own->type == ARG_TEXT ? (const char *)values + own->at : "",
               *slash = axis->count < 2 ? strrchr(text, '/') : NULL;
    text_printf(out, " %s=", axis->key);
    if (slash) text_puts(out, slash + 1);
    else if (own) arg_write(own, values, out);
    else if (setting) arg_write(setting, &p->settings, out);
}

static void name_axes(const MethodInfo *info, const Point *p, const void *values, const YamlNode *maps,
                      bool all, Text *out) {
    for (const YamlNode *n = maps ? maps->first : NULL; n; n = n->next) {
        if (maps->kind == NODE_LIST) name_axes(info, p, values, n, all, out);
        else name_axis(info, p, values, n, all, out);
    }
}

// A method's parameters are in its decoder after the colon, "key=value,..."; a baseline has none. A label,
// or a name with parameters, replaces those that don't vary. The experiment's own axes are named where they
// vary.
void point_name(const Experiment *x, const Point *p, PointName *out) {
    const MethodSpec *m = p->method >= 0 ? &x->methods[p->method] : NULL;
    const MethodInfo *info = m ? m->info : method_find("autoregressive", NULL);
    *out = (PointName){.method = info->name};
    const char *colon = strchr(p->decoder, ':');
    LOCAL_MEMORY void *values = mem_new(1, info->param_size ? info->param_size : 1);
    args_defaults(info->params, info->param_count, values);
    UNUSED bool ok = !colon || args_parse(info->params, info->param_count, values, colon + 1, NULL);
    assert(ok); // the sweep has written it
    list_params(out, info, p, values);
    text_puts(&out->label, m && m->label ? m->label : m && *m->params ? m->name : info->name);
    if (m) name_axes(info, p, values, m->matrix, !m->label, &out->label);
    if (m) name_axes(info, p, values, m->zip, !m->label, &out->label);
    for (int i = 0; i < SETTINGS_SECTIONS; i++)
        name_axes(info, p, values, x->settings[i], false, &out->label);
}

void point_name_release(PointName *n) {
    text_release(&n->label);
    MEM_FREE(n->params, n->texts);
    *n = (PointName){0};
}
