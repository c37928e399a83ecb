// Invariant of open Models: adapters, heads and the draft share the target's vocabulary and live no longer
// than the target; models_close takes whatever part is open.
#include "harness/inputs/models.h"

#include "engine/base/gguf.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/core/batch.h"
#include "engine/model/make/synth.h"
#include "engine/model/model.h"
#include "harness/cli/terminal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double gigabyte = 1e9;

void memory_warn(const EngineMemory *m, const char *name) {
    const double weights = (double)m->weights / gigabyte, available = (double)m->available / gigabyte;
    if (m->from_file)
        fprintf(stderr,
                "warning: '%s' has %.1f GB of weights, %.1f GB of memory are free: each step reads them from "
                "the disk, at 1 GB/s in %.0f s\n",
                SHOWN(name), weights, available, weights);
}

// Tells a person what a large model takes, and warns of one that does not fit. On the CPU nothing of the
// weights has been read by then.
static void warn(const Engine *engine, const EngineMemory *memory, const char *dir) {
    const Session *s = &engine->session;
    shape_warn(&engine->model, dir);
    memory_warn(memory, dir);
    const double weights = (double)memory->weights / gigabyte, cache = (double)memory->cache / gigabyte,
                 step = (double)memory->step / gigabyte, available = (double)memory->available / gigabyte,
                 sum = weights + cache + step;
    if (!memory->from_file && sum >= 1 && available > 0 && isatty(STDERR_FILENO))
        fprintf(stderr,
                "memory: '%s' takes %.1f GB (weights %.1f, cache %.1f, step %.1f), %.1f GB are free\n",
                SHOWN(dir), sum, weights, cache, step, available);
    if (engine->fits)
        fprintf(stderr,
                "note: '%s' holds a context of %d, not %d: its device has no room; --context %d fits\n",
                SHOWN(s->name), s->context, s->shape.context, engine->fits);
}

void cards_warn(const char *device) {
    Gauge g;
    for (int i = 0; engine_gauge(device, i, &g, NULL); i++)
        if (g.compiles)
            fprintf(
                stderr,
                "note: this build has no machine code for the %s: the driver compiles its %s at the first "
                "use, about half a minute, and keeps it\n",
                g.name, g.code);
}

// As the target, but on the device that the draft runs on, and without ids that the target lacks.
static EngineOptions draft_options(const EngineOptions *base, const ModelChoice *c, const Engine *target) {
    EngineOptions o = *base;
    o.beside = target;
    o.real_vocab = target->model.shape.real_vocab;
    const char *last = c->engine.device;
    for (const char *p = last; *p; p++)
        if (strchr(",+", *p)) last = p + 1;
    snprintf(o.device, sizeof o.device, "%s", c->draft_device ? c->draft_device : last);
    return o;
}

// Opens the draft and the adapters.
static bool open_others(Models *m, const ModelChoice *c, Error *e) {
    EngineOptions options = c->engine, draft;
    options.beside = &m->target;
    options.team = NULL;
    if (m->target.fits) options.context = m->target.session.context;
    draft = draft_options(&options, c, &m->target);
    if (c->draft && !engine_open(&m->draft, c->draft, &draft, &m->draft_memory, e))
        return error_within(e, "--draft '%s'", c->draft);
    if (c->draft) warn(&m->draft, &m->draft_memory, c->draft);
    m->has_draft = c->draft != NULL;
    if (c->draft && !engine_same_vocabulary(&m->target, &m->draft, e)) return false;
    for (int i = 0; i < ADAPTER_ROLES; i++) {
        bool own = adapter_in_target((AdapterRole)i, &m->target.model);
        const char *dir = c->adapters[i] || !own ? c->adapters[i] : c->target;
        if (dir && !engine_open_adapter(&m->adapters[i], &m->target, dir, &options, &m->adapter_memory[i], e))
            return error_within(e, "--%s '%s'", adapter_role_name(i), dir);
    }
    return true;
}

// The invariant above, of open models.
static void models_check(const Models *m) {
    UNUSED const Session *target = &m->target.session;
    assert(target->backend && m->facts.engine == &m->target);
    assert(m->has_draft == (m->draft.session.backend != NULL));
    assert(!m->has_draft || m->draft.model.shape.real_vocab <= m->target.model.shape.real_vocab);
    for (const AdapterEngine *a = m->adapters; a < m->adapters + ADAPTER_ROLES; a++) {
        assert(a->count <= ADAPTER_HEADS_MAX);
        for (int i = 0; i < a->count; i++) assert(a->sessions[i].context == target->context);
    }
}

bool models_open(Models *m, const ModelChoice *c, Error *e) {
    BackendReport report;
    *m = (Models){.progress = c->engine.progress, .must_keep = c->cache != NULL};
    if (c->draft_device && !c->draft)
        return error_input(e, "--draft-device is '%s', but there is no --draft", c->draft_device);
    cards_warn(c->engine.device);
    if (c->draft_device) cards_warn(c->draft_device);
    if (!engine_open(&m->target, c->target, &c->engine, &m->memory, e)) return false;
    m->facts = (EngineFacts){&m->target, c->target};
    m->target.session.backend->report(m->target.session.self, &report);
    if (report.note) fprintf(stderr, "note: %s: %s\n", report.device, report.note);
    if (c->engine.context > m->target.model.shape.context)
        fprintf(stderr, "warning: --context %d is cut to %d, all that '%s' holds\n", c->engine.context,
                m->target.model.shape.context, SHOWN(c->target));
    warn(&m->target, &m->memory, c->target);
    m->cache = models_cache(c->cache);
    if (!open_others(m, c, e)) {
        models_close(m);
        return false;
    }
    models_check(m);
    return true;
}

bool models_rehearse(Models *m, const ModelChoice *c, const DescribedModels *d, Error *e) {
    *m = (Models){.has_draft = false};
    if (!engine_rehearse(&m->target, c->target, d->target, &c->engine, &m->memory, e)) return false;
    m->facts = (EngineFacts){&m->target, c->target};
    m->target.tokenizer = d->tokenizer;
    EngineOptions options = draft_options(&c->engine, c, &m->target);
    m->has_draft = d->draft != NULL;
    bool ok = !d->draft || engine_rehearse(&m->draft, c->draft, d->draft, &options, &m->draft_memory, e) ||
              error_within(e, "--draft '%s'", c->draft);
    if (ok) m->draft.tokenizer = d->draft_tokenizer;
    ok = ok && (!d->draft || engine_same_vocabulary(&m->target, &m->draft, e));
    for (int i = 0; ok && i < ADAPTER_ROLES; i++)
        ok = !d->adapters[i] ||
             engine_rehearse_adapter(&m->adapters[i], c->adapters[i], d->adapters[i], &m->target, e);
    m->draft.tokenizer = NULL; // the caller's
    if (ok) models_check(m);
    else models_end_rehearsal(m);
    return ok;
}

void models_end_rehearsal(Models *m) {
    m->target.tokenizer = NULL;
    models_close(m);
}

void models_close(Models *m) {
    mem_free(m->cache);
    for (int i = 0; i < ADAPTER_ROLES; i++) engine_close_adapter(&m->adapters[i]);
    engine_close(&m->draft);
    engine_close(&m->target);
    *m = (Models){.has_draft = false};
}

bool models_are_unchanged(const Models *m, Error *e) {
    bool ok = model_is_unchanged(&m->target.weights, e) && model_is_unchanged(&m->draft.weights, e);
    for (int i = 0; ok && i < ADAPTER_ROLES; i++) ok = model_is_unchanged(&m->adapters[i].adapter.weights, e);
    return ok;
}

// A method runs without a cache, too.
static void warn_unkept(UNUSED const void *models, const Error *why) {
    fprintf(stderr, "%swarning: a table made of the model is not kept, and is made again next time: %s\n",
            isatty(STDERR_FILENO) ? "\r\033[K" : "",
            why->kind == ERROR_NONE ? "there is no directory $HOME; --cache names another place" : why->text);
}

int models_batch(const Models *m) { return 1 + m->target.more_count; }

MethodEnv models_env(Models *m, const Sampling *sampling, uint64_t seed, bool ignore_eos) {
    return models_env_of(m, 0, sampling, seed, ignore_eos);
}

MethodEnv models_env_of(Models *m, int sequence, const Sampling *sampling, uint64_t seed, bool ignore_eos) {
    _Static_assert((int)ADAPTER_ROLES <= (int)ADAPTER_SETS,
                   "a method can be given the adapters of all roles");
    MethodEnv env = {.target = engine_session(&m->target, sequence),
                     .draft = m->has_draft ? engine_session(&m->draft, sequence) : NULL,
                     .sampling = *sampling,
                     .seed = seed,
                     .eos = m->target.model.eos,
                     .eos_count = ignore_eos ? 0 : m->target.model.eos_count,
                     .facts = facts_of(&m->facts),
                     .cache = m->cache,
                     .unkept = m->must_keep ? NULL : warn_unkept,
                     .progress = m->progress};
    for (int i = 0; i < ADAPTER_ROLES; i++) {
        AdapterEngine *a = &m->adapters[i];
        env.adapters[i] = (AdapterSet){engine_adapter_sessions(a, sequence),
                                       a->count,
                                       a->adapter.kind.exit_layer,
                                       &a->adapter.captures,
                                       a->adapter.draft_ids,
                                       a->adapter.mask_states,
                                       a->adapter.kind.recycles_normed};
    }
    return env;
}

// --- batches ---------------------------------------------------------------------------------------------

typedef struct Taking {
    Models *models;
    const Outputs *outputs;
    int next;
} Taking;

// Takes every session of a sequence, with its role in the lane, or (lane NULL) drops it.
static void take_sessions(Models *m, int sequence, Lane *lane) {
    Session *all[2 + ADAPTER_ROLES * ADAPTER_HEADS_MAX] = {
        engine_session(&m->target, sequence), m->has_draft ? engine_session(&m->draft, sequence) : NULL};
    int count = 2;
    for (AdapterEngine *a = m->adapters; a < m->adapters + ADAPTER_ROLES; a++)
        for (int i = 0; i < a->count; i++) all[count++] = &engine_adapter_sessions(a, sequence)[i];
    for (int i = 0; i < count; i++) {
        if (all[i] && lane) lane_take(lane, all[i], ROLE_TARGET + i);
        else if (all[i]) lane_drop(all[i]);
    }
}

static bool make_outputs(void *taking, Lane *lane, Error *e) {
    Taking *t = taking;
    const Outputs *o = t->outputs;
    int sequence = lane_number(lane);
    bool ok = true;
    take_sessions(t->models, sequence, lane);
    while (ok && t->next < o->count) ok = o->make(o->state, sequence, t->next++, lane_clock(lane), e);
    take_sessions(t->models, sequence, NULL);
    return ok;
}

bool models_run(Models *m, const Outputs *o, Error *e) {
    int batch = models_batch(m);
    for (int i = 0; batch == 1 && i < o->count; i++)
        if (!o->make(o->state, 0, i, o->clock, e)) return false;
    return batch == 1 || batch_run(batch, o->clock, make_outputs, &(Taking){m, o, 0}, e);
}

// --- facts -----------------------------------------------------------------------------------------------

static bool identify_engine(const void *self, char out[SHA256_TEXT], Error *e) {
    const EngineFacts *of = self;
    return model_identity(&of->engine->weights, of->dir, out, e);
}

static void embedding(const void *self, EmbeddingKind kind, int token, float *row) {
    const Model *m = &((const EngineFacts *)self)->engine->model;
    const Tensor *t = kind == EMBEDDING_INPUT ? &m->embedding : &m->head;
    tensor_row(t, (size_t)token, row);
}

TargetFacts facts_of(const EngineFacts *of) {
    const Model *m = &of->engine->model;
    TargetFacts facts = {.self = of, .identify = identify_engine};
    if (m->embedding.data && m->head.data) facts.embedding = embedding;
    if (of->engine->tokenizer) facts.prefix = tokenizer_prefix(of->engine->tokenizer, &facts.prefix_count);
    if (facts.prefix_count == 0 && m->bos >= 0) { // the model has one, though texts begin without it
        facts.prefix = &m->bos;
        facts.prefix_count = 1;
    }
    return facts;
}

// --- shapes ----------------------------------------------------------------------------------------------

static void add_shape_part(json_t *parts, const char *name, const Adapter *a) {
    size_t parameters = adapter_parameters(a);
    if (!parameters) return;
    json_t *part = json_pack("{s:s, s:I}", "variant", adapter_variant_name(a->kind.variant), "parameters",
                             (json_int_t)parameters);
    if (a->kind.variant >= ADAPTER_EAGLE3) {
        json_object_set_new(part, "vocab", json_integer(a->models[0].shape.vocab));
        json_object_set_new(part, "states", json_integer(a->captures.count));
    }
    if (a->trained > 0) json_object_set_new(part, "trained_tokens", json_integer(a->trained));
    json_object_set_new(parts, name, part);
}

char *shape_text(const Model *m, const Adapter adapters[ADAPTER_ROLES]) {
    const Shape *s = &m->shape;
    json_auto_t *parts = json_object();
    for (int i = 0; i < ADAPTER_ROLES; i++) add_shape_part(parts, adapter_role_name(i), &adapters[i]);
    json_auto_t *o =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "layers", s->layers, "width", s->width,
                  "heads", s->heads, "kv_heads", s->kv_heads, "head_dim", s->head_dim, "mlp_width",
                  s->mlp_width, "vocab", s->vocab, "context", s->context, "window", s->window);
    if (s->experts.count)
        json_object_set_new(o, "experts",
                            json_pack("{s:i, s:i, s:i, s:i, s:i}", "count", s->experts.count, "chosen",
                                      s->experts.chosen, "width", s->experts.width, "shared_width",
                                      s->experts.shared_width, "layers", layers_in(&s->sparse, s->layers)));
    if (json_object_size(parts)) json_object_set(o, "parts", parts);
    if (m->quantised[0]) json_object_set_new(o, "quantised", json_string(m->quantised));
    return json_text(o, JSON_COMPACT);
}

void shape_warn(const Model *m, const char *name) {
    if (m->unused_layers)
        fprintf(stderr,
                "warning: '%s' has %d layers, as its config.json says; the %d behind them in its "
                "files are left out\n",
                SHOWN(name), m->shape.layers, m->unused_layers);
}

// --- hashes ----------------------------------------------------------------------------------------------

bool content_model(const char *dir, bool weights, char out[SHA256_TEXT], Error *e) {
    Model m;
    LOCAL(model_close) ModelWeights w = {.dir = NULL};
    bool ok = weights && synth_named(dir) ? synth_open(&m, &w, dir, e)
              : weights                   ? model_open(&m, &w, dir, e)
                                          : model_open_config(&m, dir, e);
    return ok && model_identity(&w, dir, out, e);
}

// The part of a GGUF file that holds it.
static bool content_header(const char *path, char out[SHA256_TEXT], Error *e) {
    LOCAL(file_unmap) FileView view = {0};
    LOCAL(gguf_release) Gguf g = {0};
    return file_map(path, &view, e) && gguf_parse(view.data, view.size, path, &g, e) &&
           sha256_bytes(view.data, g.header, out, e);
}

bool content_tokenizer(const char *dir, char out[SHA256_TEXT], Error *e) {
    LOCAL_MEMORY char *path = tokenizer_file(dir);
    return path ? (gguf_named(path) ? content_header : sha256_file)(path, out, e)
                : error_input(e, "'%s' has no tokenizer", dir);
}
