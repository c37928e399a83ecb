// Opening inputs. The order of an experiment's contents is part of hashes: it stays.
#include "harness/inputs/inputs.h"

#include "engine/base/memory.h"
#include "harness/cli/version.h"
#include "harness/inputs/prompts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    TEMPLATE_ROOM = 64, // tokens that a template puts around a turn, at most
    STEP_ROOM = 512,    // positions after the last token: a step must not be cut by the context's end
    LEAVE_OUT = 1,      // DatasetSpec.too_long
};

// --- contents --------------------------------------------------------------------------------------------

static InputContent *add_content(Inputs *in, const char *kind, const char *name, const char *path) {
    assert(in->content_count < INPUT_CONTENTS);
    InputContent *c = &in->contents[in->content_count++];
    *c = (InputContent){.kind = kind, .name = name, .path = path};
    return c;
}

// --- models ----------------------------------------------------------------------------------------------

static bool hash_weights(Inputs *in, const char *kind, const char *name, const ModelWeights *w,
                         const char *dir, Error *e) {
    return !dir || model_identity(w, dir, add_content(in, kind, name, dir)->hash, e);
}

static bool hash_parts(Inputs *in, int i, bool weights, Error *e) {
    InputModel *m = &in->models[i];
    const ModelFiles *f = &m->files;
    const char *name = in->experiment->models[i].name;
    bool ok = hash_weights(in, "weights", name, &m->weights, f->target, e) &&
              hash_weights(in, "draft", name, &m->draft_weights, f->draft, e) &&
              content_tokenizer(f->target, add_content(in, "tokenizer", name, f->target)->hash, e);
    for (int k = 0; ok && weights && k < ADAPTER_ROLES; k++)
        ok = hash_weights(in, adapter_role_name(k), name, &m->adapters[k].weights, f->adapters[k], e);
    return ok;
}

// Weights are mapped and never read: opening checks names, shapes and types.
static bool open_model(InputModel *m, bool weights, Error *e) {
    ModelFiles *f = &m->files;
    if (f->unmade) m->model = f->model;
    else if (!(weights ? model_open(&m->model, &m->weights, f->target, e)
                       : model_open_config(&m->model, f->target, e)))
        return false;
    const Shape *s = &m->model.shape;
    m->bytes = !weights    ? 0
               : f->unmade ? shape_parameters(s) * dtype_size(m->model.dtype)
                           : model_bytes(&m->model);
    if (!m->tokenizer && !(m->tokenizer = model_files_tokenizer(f, e))) return false;
    bool ok = true;
    if (f->draft_unmade) m->draft = f->draft_model;
    else if (f->draft)
        ok = weights ? model_open(&m->draft, &m->draft_weights, f->draft, e)
                     : model_open_config(&m->draft, f->draft, e);
    for (int i = 0; ok && i < ADAPTER_ROLES; i++) {
        if (!f->adapters[i] && adapter_in_target((AdapterRole)i, &m->model))
            f->adapters[i] = mem_text(f->target, strlen(f->target));
        if (!f->adapters[i]) continue;
        if (f->unmade) adapter_describe(&m->adapters[i], &f->kinds[i], &m->model);
        else
            ok =
                (weights ? adapter_open : adapter_open_config)(&m->adapters[i], &m->model, f->adapters[i], e);
    }
    return ok;
}

static bool hash_model(Inputs *in, int i, Error *e) {
    InputModel *m = &in->models[i];
    LOCAL_TEXT all = {0};
    int from = in->content_count;
    if (!hash_parts(in, i, in->sweep->computes[i], e)) return yaml_within(in->experiment->models[i].at, e);
    for (int k = from; k < in->content_count; k++)
        text_printf(&all, "%s %s\n", in->contents[k].kind, in->contents[k].hash);
    return sha256_bytes(all.data, all.length, m->hash, e);
}

static void close_model(InputModel *m) {
    for (int i = 0; i < ADAPTER_ROLES; i++) adapter_close(&m->adapters[i]);
    model_close(&m->draft_weights);
    model_close(&m->weights);
}

// --- files that methods name -----------------------------------------------------------------------------

static void release_files(Inputs *in) {
    while (in->file_count) mem_free(in->files[--in->file_count]);
}

static bool hash_file(Inputs *in, const char *path, Error *e) {
    for (int i = 0; i < in->file_count; i++)
        if (strcmp(in->files[i], path) == 0) return true;
    if (in->file_count == INPUT_FILES)
        return error_input(e, "the methods name more than %d files", INPUT_FILES);
    char *own = in->files[in->file_count++] = mem_text(path, strlen(path));
    return sha256_file(own, add_content(in, "file", own, own)->hash, e);
}

static bool hash_files(Inputs *in, const Point *p, Error *e) {
    LOCAL(point_name_release) PointName n = {0};
    struct stat st;
    bool ok = true;
    point_name(in->experiment, p, &n);
    const MethodInfo *info = method_find(n.method, NULL);
    for (int i = 0; ok && i < n.param_count; i++) {
        const StoreParam *x = &n.params[i];
        const Arg *a =
            strcmp(x->section, "method") == 0 ? arg_find(info->params, info->param_count, x->name) : NULL;
        if (a && a->type == ARG_TEXT && stat(x->value, &st) == 0 && S_ISREG(st.st_mode))
            ok = hash_file(in, x->value, e);
    }
    return ok;
}

// --- prompts ---------------------------------------------------------------------------------------------

static bool is_of_files(const char *template) { return template && strcmp(template, TEMPLATE_OF_MODEL) == 0; }

static const char *template_name(const Inputs *in, int model, int dataset) {
    return experiment_template(in->experiment, model, dataset, dataset_asks(&in->datasets[dataset]));
}

// Where the model's files have no template, texts are as written.
static bool find_template(Inputs *in, int model, int dataset, Error *e) {
    const Tokenizer *t = in->models[model].tokenizer;
    const char *name = template_name(in, model, dataset);
    if (is_of_files(name) && !tokenizer_has_template(t)) name = NULL;
    const Template *found = name ? tokenizer_template(t, name, e) : NULL;
    in->templates[model][dataset] = found;
    return found || !name || yaml_within(in->experiment->models[model].at, e);
}

const Template *inputs_own_template(const Inputs *in, int model, int dataset) {
    return is_of_files(template_name(in, model, dataset)) ? in->templates[model][dataset] : NULL;
}

static bool hash_template(Inputs *in, int model, Error *e) {
    const Template *t = NULL;
    for (int i = 0; !t && i < in->experiment->dataset_count; i++) t = inputs_own_template(in, model, i);
    return !t || sha256_bytes(t->name, strlen(t->name),
                              add_content(in, "template", in->experiment->models[model].name, NULL)->hash, e);
}

// Tokens of the first turn's prompt; of the whole conversation and of all its prefills, at most.
static bool conversation_length(const InputModel *m, const Template *t, const DatasetPrompt *p,
                                int max_tokens, size_t *first, size_t *all, double *prefill, Error *e) {
    LOCAL(conversation_release) Conversation c;
    LOCAL(ids_release) IdList ids = {0};
    conversation_begin(&c, m->tokenizer, t);
    bool ok = conversation_ask(&c, p->turns[0], &ids, e);
    *first = ids.count;
    *all = ids.count + (size_t)max_tokens;
    *prefill += (double)ids.count;
    for (int i = 1; ok && i < p->turn_count; i++) {
        LOCAL(ids_release) IdList turn = {0};
        ok = tokenizer_encode(m->tokenizer, p->turns[i], strlen(p->turns[i]), false, &turn, e);
        *prefill += (double)(*all + turn.count);
        *all += turn.count + TEMPLATE_ROOM + (size_t)max_tokens;
    }
    return ok;
}

// One error for all prompts that don't fit into the model's context: a dataset may have dozens.
static bool refuse_long(const Inputs *in, const Group *g, size_t count, const char *id, size_t tokens,
                        Error *e) {
    const DatasetSpec *spec = &in->experiment->datasets[g->dataset];
    size_t context = (size_t)in->models[in->schedule->setups[g->setup].model].model.shape.context;
    if (count == 1)
        return yaml_error(
            spec->at, e,
            "prompt '%s' of '%s' has %zu tokens, the model's context holds %zu: 'too_long: skip' in the "
            "dataset leaves it out",
            id, spec->name, tokens, context);
    return yaml_error(
        spec->at, e,
        "%zu of %zu prompts of '%s' have more tokens than the model's context holds, which is %zu, "
        "'%s' has %zu: 'too_long: skip' in the dataset leaves them out",
        count, in->datasets[g->dataset].count, spec->name, context, id, tokens);
}

// Marks the prompts that don't fit into a model's context.
static bool mark_long(Inputs *in, int model, int dataset, bool *too_long, Error *e) {
    const InputModel *m = &in->models[model];
    const Dataset *d = &in->datasets[dataset];
    const Template *t = in->templates[model][dataset];
    for (size_t i = 0; i < d->count; i++) {
        size_t first, all;
        double prefill = 0;
        if (!conversation_length(m, t, &d->prompts[i], 0, &first, &all, &prefill, e)) return false;
        too_long[i] = too_long[i] || first >= (size_t)m->model.shape.context;
    }
    return true;
}

// Leaves out every prompt that is too long for any model: all models are measured on the same prompts, in
// every part of a sweep.
static bool leave_out(Inputs *in, int dataset, Error *e) {
    const DatasetSpec *spec = &in->experiment->datasets[dataset];
    Dataset *d = &in->datasets[dataset];
    size_t count = 0, all = d->count;
    LOCAL_MEMORY bool *too_long = mem_new(all, sizeof *too_long);
    for (int i = 0; i < in->experiment->model_count; i++)
        if (in->sweep->reads[i][dataset] && !mark_long(in, i, dataset, too_long, e))
            return yaml_within(spec->at, e);
    for (size_t i = 0; i < all; i++) count += too_long[i];
    if (count == all)
        return yaml_error(spec->at, e,
                          "all %zu prompts of '%s' have more tokens than a model's context holds", all,
                          spec->name);
    if (!count) return true;
    in->left_out[dataset] =
        mem_printf("%zu of %zu prompts of %s, which have more tokens than a model's context holds", count,
                   all, spec->name);
    return dataset_leave_out(d, too_long, spec->path != NULL, e);
}

static bool check_prompts(Inputs *in, const Group *g, Error *e) {
    const Setup *setup = &in->schedule->setups[g->setup];
    const InputModel *m = &in->models[setup->model];
    const DatasetSpec *spec = &in->experiment->datasets[g->dataset];
    const Dataset *d = &in->datasets[g->dataset];
    const Settings *s = &in->schedule->points[in->schedule->members[g->first]].settings;
    const Template *t = in->templates[setup->model][g->dataset];
    size_t too_long = 0, example = 0, tokens = 0, context = (size_t)m->model.shape.context;
    for (size_t i = 0; i < d->count; i++) {
        size_t first, all;
        if (!conversation_length(m, t, &d->prompts[i], s->max_tokens, &first, &all,
                                 &in->prefill[g - in->schedule->groups], e))
            return error_within(e, "dataset '%s', prompt '%s'", spec->name, d->prompts[i].id);
        if (first == 0)
            return yaml_error(spec->at, e, "prompt '%s' of '%s' has no token: there is nothing to continue",
                              d->prompts[i].id, spec->name);
        if (first >= context && too_long++ == 0) example = i, tokens = first;
        all += STEP_ROOM;
        int *most = &in->positions[g->setup];
        if ((int)(all < context ? all : context) > *most) *most = (int)(all < context ? all : context);
    }
    return too_long == 0 || refuse_long(in, g, too_long, d->prompts[example].id, tokens, e);
}

// --- choices for opening ---------------------------------------------------------------------------------

ModelChoice inputs_choice(const Inputs *in, int setup) {
    const Setup *s = &in->schedule->setups[setup];
    const ModelFiles *f = &in->models[s->model].files;
    ModelChoice choice = {.target = f->target,
                          .draft = f->draft,
                          .draft_device = in->experiment->models[s->model].draft_device,
                          .cache = in->cache_option,
                          .engine = s->settings->engine};
    for (int i = 0; i < ADAPTER_ROLES; i++) choice.adapters[i] = f->adapters[i];
    choice.engine.isa = getenv("OUTPACE_ISA");
    choice.engine.context = in->positions[setup];
    choice.engine.team = in->team;
    return choice;
}

// A CPU doesn't round weights; it's a device whose kernels have a name before it's opened.
const char *inputs_rounding(const Inputs *in, int model, const Settings *s) {
    Dtype weights = in->models[model].model.dtype;
    Compute c = compute_choose(s->engine.compute, weights);
    if (strcmp(s->engine.device, "null") == 0 || engine_kernels(s->engine.device, NULL) ||
        !compute_rounds(c, weights))
        return NULL;
    return c == COMPUTE_BF16 ? "f16 to bf16" : "bf16 to f16";
}

MethodEnv inputs_env(const Inputs *in, int point, Models *m, int sequence, const Sampling *sampling) {
    const Point *p = &in->schedule->points[point];
    return models_env_of(m, sequence, sampling, (uint64_t)p->settings.seed, p->settings.ignore_eos);
}

// --- all of it -------------------------------------------------------------------------------------------

static bool hash_run(Inputs *in, const char *machine, Error *e) {
    LOCAL_TEXT all = {0};
    Gauge gpu;
    if (!sha256_file("/proc/self/exe", add_content(in, "program", "outpace", NULL)->hash, e)) return false;
    // The models of the GPUs that points run on are part of the machine; their serial numbers are only in the
    // environment.
    text_puts(&all, machine);
    for (int i = 0; i < in->schedule->setup_count; i++)
        for (int k = 0; engine_gauge(in->schedule->setups[i].settings->engine.device, k, &gpu, NULL); k++)
            text_printf(&all, ", %s", gpu.name);
    for (const ModelSpec *m = in->experiment->models;
         m < in->experiment->models + in->experiment->model_count; m++)
        for (int k = 0; m->draft_device && engine_gauge(m->draft_device, k, &gpu, NULL); k++)
            text_printf(&all, ", %s", gpu.name);
    bool ok = sha256_bytes(text_get(&all), all.length, add_content(in, "machine", "machine", NULL)->hash, e);
    text_clear(&all);
    text_printf(&all, "sweep %s\n", in->sweep->hash);
    if (in->sweep->shards > 1) text_printf(&all, "in %d parts by %s\n", in->sweep->shards, version_text());
    // The parts of a sweep are one run on whatever machines they are measured, and a commit identifies its
    // builds.
    for (int i = 0; i < in->content_count; i++) {
        const InputContent *c = &in->contents[i];
        bool is_machine = strcmp(c->kind, "machine") == 0,
             is_build = strcmp(c->kind, "program") == 0 && version_is_commit();
        if (in->sweep->shards == 1 || !(is_machine || is_build))
            text_printf(&all, "%s %s\n", c->kind, c->hash);
    }
    return ok && sha256_bytes(all.data, all.length, in->hash, e);
}

// The CPU and the null backend only have exact sums; only the CPU can hold weights in memory.
static bool check_devices(const Inputs *in, Error *e) {
    const YamlNode *hardware = in->experiment->settings[0], *at = hardware ? hardware : in->experiment->at;
    for (int i = 0; i < in->schedule->setup_count; i++) {
        const EngineOptions *s = &in->schedule->setups[i].settings->engine;
        if (s->math == MATH_FAST && strncmp(s->device, "cuda", 4) != 0)
            return yaml_error(at, e, "math: fast needs device cuda, and a point has it on '%s'", s->device);
        if (s->compute == CHOOSE_INT8 && strcmp(s->device, "cpu") != 0)
            return yaml_error(at, e, "compute: int8 needs device cpu, and a point has it on '%s'", s->device);
        if (s->weights == WEIGHTS_EXACT)
            return yaml_error(at, e,
                              "weights: exact is for generate, verify, quality and bench: leave it out");
        if (s->weights == WEIGHTS_HELD && strcmp(s->device, "cpu") != 0)
            return yaml_error(at, e, "weights: held needs device cpu, and a point has it on '%s'", s->device);
    }
    return true;
}

static bool read_all(Inputs *in, Error *e) {
    const Experiment *x = in->experiment;
    in->positions = mem_new((size_t)in->schedule->setup_count, sizeof *in->positions);
    in->prefill = mem_new((size_t)in->schedule->group_count, sizeof *in->prefill);
    in->rehearsals = mem_new((size_t)in->schedule->setup_count, sizeof *in->rehearsals);
    in->memory = mem_new((size_t)in->schedule->setup_count, sizeof *in->memory);
    in->refusals = mem_new((size_t)in->schedule->point_count, sizeof *in->refusals);
    in->work = mem_new((size_t)in->schedule->point_count, sizeof *in->work);
    if (!check_devices(in, e)) return false;
    for (int i = 0; i < x->dataset_count; i++) {
        const DatasetSpec *d = &x->datasets[i];
        DatasetRequest request = {.name = d->name,
                                  .path = d->path,
                                  .format = d->format,
                                  .split = d->split,
                                  .parts = d->parts.items,
                                  .part_count = d->parts.count,
                                  .folder = getenv("OUTPACE_DATA"),
                                  .limit = (size_t)d->limit,
                                  .turns = d->turns,
                                  .order = (DatasetOrder)d->order,
                                  .consecutive = d->consecutive,
                                  .seed = d->seed};
        if (!dataset_open(&in->datasets[i], &request, e)) return yaml_within(d->at, e);
    }
    for (int i = 0; i < x->model_count; i++) {
        if (!model_files_find(&x->models[i], in->cache, &in->models[i].files, e)) return false;
        if (!open_model(&in->models[i], in->sweep->computes[i], e)) return yaml_within(x->models[i].at, e);
    }
    for (int i = 0; i < x->model_count; i++)
        for (int k = 0; k < x->dataset_count; k++)
            if (!find_template(in, i, k, e)) return false;
    for (int i = 0; i < x->dataset_count; i++)
        if (x->datasets[i].too_long == LEAVE_OUT && !leave_out(in, i, e)) return false;
    for (int i = 0; i < in->schedule->group_count; i++)
        if (!check_prompts(in, &in->schedule->groups[i], e)) return false;
    inputs_rehearse(in);
    return true;
}

// The order of contents is part of the run's hash.
static bool hash_all(Inputs *in, Error *e) {
    in->content_count = 0;
    for (int i = 0; i < in->experiment->dataset_count; i++) {
        const DatasetSpec *d = &in->experiment->datasets[i];
        const char *out = in->left_out[i];
        memcpy(add_content(in, "dataset", d->name, d->path)->hash, in->datasets[i].sha256, SHA256_TEXT);
        if ((out && !sha256_bytes(out, strlen(out), add_content(in, "left out", out, NULL)->hash, e)) ||
            (d->template && !sha256_bytes(d->template, strlen(d->template),
                                          add_content(in, "template", d->name, NULL)->hash, e)))
            return false;
    }
    for (int i = 0; i < in->experiment->model_count; i++)
        if (!hash_model(in, i, e) || !hash_template(in, i, e)) return false;
    release_files(in);
    for (int i = 0; i < in->schedule->point_count; i++)
        if (!hash_files(in, &in->schedule->points[i], e)) return false;
    return hash_run(in, in->machine, e);
}

bool inputs_are_unchanged(const Inputs *in, int setup, Error *e) {
    const InputModel *m = &in->models[in->schedule->setups[setup].model];
    bool ok = model_is_unchanged(&m->weights, e) && model_is_unchanged(&m->draft_weights, e);
    for (int i = 0; ok && i < ADAPTER_ROLES; i++) ok = model_is_unchanged(&m->adapters[i].weights, e);
    return ok;
}

static bool is_unmade(const Inputs *in) {
    for (int i = 0; i < in->experiment->model_count; i++)
        if (in->models[i].files.unmade) return true;
    return false;
}

bool inputs_open(Inputs *out, const Experiment *x, const Schedule *s, const char *machine, const char *cache,
                 Error *e) {
    *out = (Inputs){.experiment = x, .schedule = s, .sweep = s->sweep, .cache_option = cache};
    out->machine = mem_text(machine, strlen(machine));
    out->cache = models_cache(cache);
    if (read_all(out, e) && (is_unmade(out) || hash_all(out, e))) return true;
    inputs_release(out);
    return false;
}

bool inputs_make(Inputs *in, Progress progress, Error *e) {
    if (!is_unmade(in)) return true;
    for (int i = 0; i < in->experiment->model_count; i++) {
        const ModelSpec *spec = &in->experiment->models[i];
        InputModel *m = &in->models[i];
        if (!m->files.unmade) continue;
        close_model(m);
        if (!model_files_make(spec, in->cache, &m->files, &progress, e)) return false;
        if (!open_model(m, in->sweep->computes[i], e)) return yaml_within(spec->at, e);
    }
    return hash_all(in, e);
}

int inputs_refused(const Inputs *in) {
    int count = 0;
    for (int i = 0; i < in->schedule->sweep_count; i++) count += inputs_refusal(in, i) != NULL;
    return count;
}

void inputs_release(Inputs *in) {
    for (int i = 0; i < EXPERIMENT_MODELS; i++) {
        tokenizer_close(in->models[i].tokenizer);
        close_model(&in->models[i]);
        model_files_release(&in->models[i].files);
    }
    for (int i = 0; i < EXPERIMENT_DATASETS; i++) {
        dataset_release(&in->datasets[i]);
        mem_free(in->left_out[i]);
    }
    for (int i = 0; in->refusals && i < in->schedule->point_count; i++) mem_free(in->refusals[i]);
    release_files(in);
    MEM_FREE(in->refusals, in->work, in->rehearsals, in->memory, in->prefill, in->positions, in->machine,
             in->cache);
    *in = (Inputs){0};
}
