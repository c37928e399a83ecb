#include "harness/models/models.h"

#include "engine/base/memory.h"
#include "harness/program/shape_text.h"
#include "harness/program/terminal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void tell(const Engine *engine, const char *dir) {
    const Session *s = &engine->session;
    shape_warn(&engine->model, dir);
    if (engine->fits)
        fprintf(stderr,
                "note: '%s' holds a context of %d, not %d: its device has no room; --context %d fits\n",
                SHOWN(s->name), s->context, s->shape.context, engine->fits);
}

// Where the draft goes.
static const char *draft_device(const ModelChoice *c) {
    const char *last = c->device;
    for (const char *p = c->device; p && *p; p++)
        if (strchr(",+", *p)) last = p + 1;
    return c->draft_device ? c->draft_device : last;
}

// The models beside the target.
static bool open_beside(Models *m, const ModelChoice *c, const EngineOptions *target, Error *e) {
    EngineOptions options = *target, draft;
    options.beside = &m->target;
    if (m->target.fits) options.backend.context = m->target.session.context;
    draft = options;
    draft.device = draft_device(c);
    if (c->draft && !engine_open(&m->draft, c->draft, &draft, &m->draft_memory, e))
        return error_within(e, "--draft '%s'", c->draft);
    if (c->draft) tell(&m->draft, c->draft);
    m->has_draft = c->draft != NULL;
    if (c->draft && !engine_same_vocabulary(&m->target, &m->draft, e)) return false;
    if (c->heads && !engine_open_adapter(&m->heads, &m->target, c->heads, &options, &m->heads_memory, e))
        return error_within(e, "heads '%s'", c->heads);
    return !c->adapter ||
           engine_open_adapter(&m->adapters, &m->target, c->adapter, &options, &m->adapter_memory, e) ||
           error_within(e, "--adapter '%s'", c->adapter);
}

static EngineOptions engine_options(const ModelChoice *c) {
    return (EngineOptions){
        .device = c->device,
        .window = c->window,
        .attention = c->attention,
        .weights = c->weights,
        .compute = c->compute,
        .math = c->math,
        .backend = {.context = c->context, .threads = c->threads, .isa = c->isa, .progress = c->progress}};
}

bool models_open(Models *m, const ModelChoice *c, Error *e) {
    EngineOptions options = engine_options(c);
    *m = (Models){.progress = c->progress, .must_keep = c->cache != NULL};
    if (c->draft_device && !c->draft)
        return error_input(e, "--draft-device is '%s', but there is no --draft", c->draft_device);
    if (!engine_open(&m->target, c->target, &options, &m->memory, e)) return false;
    m->facts = (EngineFacts){&m->target, c->target};
    if (c->context > m->target.model.shape.context)
        fprintf(stderr, "warning: --context %d is cut to %d, all that '%s' holds\n", c->context,
                m->target.model.shape.context, SHOWN(c->target));
    tell(&m->target, c->target);
    if (facts_cache(c->cache, &m->cache, e) && open_beside(m, c, &options, e)) return true;
    models_close(m);
    return false;
}

static bool rehearse_beside(Models *m, const ModelChoice *c, const DescribedModels *d, Error *e) {
    EngineOptions options = engine_options(c);
    options.beside = &m->target;
    options.device = draft_device(c);
    m->has_draft = d->draft != NULL;
    if (d->draft && !engine_rehearse(&m->draft, c->draft, d->draft, &options, e))
        return error_within(e, "--draft '%s'", c->draft);
    m->draft.tokenizer = d->draft_tokenizer;
    bool ok = (!d->draft || engine_same_vocabulary(&m->target, &m->draft, e)) &&
              (!d->heads || engine_rehearse_adapter(&m->heads, c->heads, d->heads, &m->target, e)) &&
              (!d->adapter || engine_rehearse_adapter(&m->adapters, c->adapter, d->adapter, &m->target, e));
    m->draft.tokenizer = NULL; // the caller's
    return ok;
}

bool models_rehearse(Models *m, const ModelChoice *c, const DescribedModels *d, Error *e) {
    EngineOptions options = engine_options(c);
    *m = (Models){.has_draft = false};
    if (!engine_rehearse(&m->target, c->target, d->target, &options, e)) return false;
    m->facts = (EngineFacts){&m->target, c->target};
    m->target.tokenizer = d->tokenizer;
    if (rehearse_beside(m, c, d, e)) return true;
    models_end_rehearsal(m);
    return false;
}

void models_end_rehearsal(Models *m) {
    m->target.tokenizer = NULL;
    models_close(m);
}

void models_close(Models *m) {
    mem_free(m->cache);
    engine_close_adapter(&m->heads);
    engine_close_adapter(&m->adapters);
    engine_close(&m->draft);
    engine_close(&m->target);
    *m = (Models){.has_draft = false};
}

// Without a cache a method runs all the same.
static void tell_unkept(const void *models, const Error *why) {
    (void)models;
    fprintf(stderr, "%swarning: a table made of the model is not kept, and is made again next time: %s\n",
            isatty(STDERR_FILENO) ? "\r\033[K" : "",
            why->kind == ERROR_NONE ? "there is no directory $HOME; --cache names another place" : why->text);
}

MethodEnv models_env(Models *m, const Sampling *sampling, uint64_t seed, bool ignore_eos) {
    return (MethodEnv){.target = &m->target.session,
                       .draft = m->has_draft ? &m->draft.session : NULL,
                       .adapters = m->adapters.sessions,
                       .adapter_count = m->adapters.count,
                       .adapter_layer = m->adapters.adapter.kind.exit_layer,
                       .sampling = *sampling,
                       .seed = seed,
                       .eos = m->target.model.eos,
                       .eos_count = ignore_eos ? 0 : m->target.model.eos_count,
                       .facts = facts_of(&m->facts),
                       .cache = m->cache,
                       .unkept = m->must_keep ? NULL : tell_unkept,
                       .progress = m->progress};
}

void models_give_heads(Models *m, MethodEnv *env) {
    if (!m->heads.count) return;
    env->adapters = m->heads.sessions;
    env->adapter_count = m->heads.count;
    env->adapter_layer = m->heads.adapter.kind.exit_layer;
}
