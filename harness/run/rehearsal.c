// Whether points can be run, found out by the very calls that the run opens them with: each setup's models
// and each point's method are opened, on sessions that have the models' shapes and compute nothing. What is
// refused here would be refused there, and the run's own list is this one.
#include "harness/run/inputs.h"

#include "engine/base/memory.h"
#include "engine/model/identity.h"

#include <stdlib.h>
#include <string.h>

typedef struct Stage {
    Inputs *in;
    int setup;
    const InputModel *model;
    Models models;
    int *opened; // (opened_count): points of the setup that differ in what is opened
    int opened_count;
} Stage;

static bool refuse(Inputs *in, int point, const char *why, Error *e) {
    in->refusals[point] = mem_text(why, strlen(why));
    return in->refusals[point] || error_system(e, "out of memory for a sweep's points");
}

// --- a point ---------------------------------------------------------------------------------------------

// Of the model that the session stands for.
static bool identify(const void *self, char out[SHA256_TEXT], Error *e) {
    const InputModel *m = self;
    return model_identity(&m->model, m->files.target, out, e);
}

static void no_row(const void *self, EmbeddingKind kind, int token, float *row) {
    (void)self, (void)kind, (void)token, (void)row;
}

static bool open_point(Stage *s, int point, Error *e) {
    const Settings *set = &s->in->schedule->points[point].settings;
    Sampling sampling = {set->temperature, set->top_k, set->top_p};
    MethodEnv env = inputs_env(s->in, point, &s->models, &sampling);
    Method method;
    env.rehearsal = &s->in->rehearsals[s->setup];
    env.cache = s->model->files.unmade ? NULL : s->in->cache;
    env.facts.self = s->model;
    env.facts.identify = identify;
    env.facts.embedding = s->model->bytes ? no_row : NULL;
    if (!method_open(&method, s->in->schedule->points[point].decoder, &env, e)) return false;
    method_close(&method);
    return true;
}

// A point that opened the same, or -1: sweeps repeat a method over datasets, seeds and lengths.
static int same_before(const Stage *s, int point) {
    const Point *p = &s->in->schedule->points[point];
    for (int i = 0; i < s->opened_count; i++) {
        const Point *q = &s->in->schedule->points[s->opened[i]];
        if (q->method == p->method && (q->settings.temperature > 0) == (p->settings.temperature > 0) &&
            strcmp(q->decoder, p->decoder) == 0)
            return s->opened[i];
    }
    return -1;
}

static bool rehearse_point(Stage *s, int point, const char *setup_why, Error *e) {
    Error why = {0};
    if (setup_why) return refuse(s->in, point, setup_why, e);
    int before = same_before(s, point);
    if (before >= 0) {
        const char *same = inputs_refusal(s->in, before);
        return !same || refuse(s->in, point, same, e);
    }
    s->opened[s->opened_count++] = point;
    return open_point(s, point, &why) || refuse(s->in, point, why.text, e);
}

// --- a setup ---------------------------------------------------------------------------------------------

static bool open_models(Stage *s, Error *e) {
    const ModelFiles *f = &s->model->files;
    ModelChoice choice = inputs_choice(s->in, s->setup);
    DescribedModels d = {.target = &s->model->model,
                         .draft = f->draft ? &s->model->draft : NULL,
                         .adapter = f->adapter ? &s->model->adapter : NULL,
                         .heads = f->heads ? &s->model->heads : NULL,
                         .tokenizer = s->model->tokenizer};
    const char *draft = f->draft_unmade ? f->small_draft : f->draft;
    if (draft && !(d.draft_tokenizer = tokenizer_open(draft, e))) return false;
    bool ok = models_rehearse(&s->models, &choice, &d, e);
    tokenizer_close(d.draft_tokenizer);
    return ok;
}

// setup_why: why no point of the setup can be run; NULL: each may.
static bool rehearse_points(Stage *s, const char *setup_why, Error *e) {
    const Schedule *all = s->in->schedule;
    for (int i = 0; i < all->group_count; i++) {
        const Group *g = &all->groups[i];
        for (int k = g->first; g->setup == s->setup && k < g->first + g->count; k++)
            if (!rehearse_point(s, all->members[k], setup_why, e)) return false;
    }
    return true;
}

static bool rehearse_setup(Stage *s, Error *e) {
    Error why = {0};
    const char *device = s->in->schedule->setups[s->setup].settings->device;
    s->in->rehearsals[s->setup] =
        (Rehearsal){.backend = device, .kernels = engine_kernels(device, getenv("OUTPACE_ISA"))};
    if (!open_models(s, &why)) return rehearse_points(s, why.text, e);
    bool ok = rehearse_points(s, NULL, e);
    models_end_rehearsal(&s->models);
    return ok;
}

bool inputs_rehearse(Inputs *in, Error *e) {
    const Schedule *all = in->schedule;
    int *opened = mem_alloc((size_t)all->point_count, sizeof *opened);
    bool ok = opened || error_system(e, "out of memory for a sweep's points");
    for (int i = 0; ok && i < all->setup_count; i++) {
        Stage s = {.in = in, .setup = i, .model = &in->models[all->setups[i].model], .opened = opened};
        ok = rehearse_setup(&s, e);
    }
    mem_free(opened);
    return ok;
}
