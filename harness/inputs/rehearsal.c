// Finds the points that can't run, by the same calls that the run makes: each setup's models and each
// point's method are opened, on sessions that have the models' shapes and compute nothing. So the run would
// refuse the same points, and uses this list.
#include "harness/inputs/inputs.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct Stage {
    Inputs *in;
    int setup;
    const InputModel *model;
    Models models;
    PointWork *work;      // (points of the schedule)
    Rehearsal *rehearsal; // of the setup
    bool alike;           // on the null device, as any machine can: only the work is wanted
    int *opened;          // (opened_count): points of the setup that open different methods
    int opened_count;
} Stage;

static void refuse(const Stage *s, int point, const char *why) {
    if (s->alike) return;
    assert(!s->in->refusals[point]); // each point is tried once
    s->in->refusals[point] = mem_text(why, strlen(why));
}

// --- a point ---------------------------------------------------------------------------------------------

static bool identify_described(const void *self, char out[SHA256_TEXT], Error *e) {
    const InputModel *m = self;
    return model_identity(&m->weights, m->files.target, out, e);
}

static void no_row(UNUSED const void *self, UNUSED EmbeddingKind kind, UNUSED int token, UNUSED float *row) {}

static double parameters(const Shape *s, int layers, bool head) {
    return (double)shape_layers_parameters(s) * layers / s->layers + (head ? (double)s->vocab * s->width : 0);
}

static bool open_point(Stage *s, int point, Error *e) {
    const Settings *set = &s->in->schedule->points[point].settings;
    Sampling sampling = {set->temperature, set->top_k, set->top_p};
    MethodEnv env = inputs_env(s->in, point, &s->models, 0, &sampling);
    LOCAL(method_close) Method method = {0};
    env.rehearsal = s->rehearsal;
    env.cache = s->model->files.unmade ? NULL : s->in->cache;
    env.facts.self = s->model;
    env.facts.identify = identify_described;
    env.facts.embedding = s->model->bytes ? no_row : NULL;
    if (!method_open(&method, s->in->schedule->points[point].decoder, &env, e)) return false;
    bool ok = set->verification == VERIFICATION_TOKEN || method_drafts_chain(&method, e);
    StepWork step = method_work(&method);
    const Shape *target = &s->model->model.shape;
    PointWork *work = &s->work[point];
    *work =
        (PointWork){.longest = step.longest, .rows = step.rows, .reads_prompt = method_reads_prompt(&method)};
    if (set->engine.max_rows && work->rows > set->engine.max_rows) work->rows = set->engine.max_rows;
    for (const DraftWork *d = step.drafts; d < step.drafts + step.draft_count; d++) {
        double share = parameters(d->shape, d->layers, d->head) / parameters(target, target->layers, true);
        work->drafts += share * d->forwards;
        work->draft_rows += share * (d->rows - d->forwards);
    }
    return ok;
}

// An earlier point that opens the same method, or -1: sweeps repeat a method over datasets, seeds and
// lengths.
static int same_before(const Stage *s, int point) {
    const Point *p = &s->in->schedule->points[point];
    for (int i = 0; i < s->opened_count; i++) {
        const Point *q = &s->in->schedule->points[s->opened[i]];
        if (q->method == p->method && (q->settings.temperature > 0) == (p->settings.temperature > 0) &&
            q->settings.verification == p->settings.verification && strcmp(q->decoder, p->decoder) == 0)
            return s->opened[i];
    }
    return -1;
}

// setup_why: the reason why no point of the setup can run; NULL: each may.
static void rehearse_point(Stage *s, int point, const char *setup_why) {
    Error why = {0};
    int before = setup_why ? -1 : same_before(s, point);
    if (before >= 0 && !s->alike) setup_why = inputs_refusal(s->in, before);
    s->work[point] = before >= 0 ? s->work[before] : (PointWork){.longest = 1, .rows = 1};
    if (setup_why) refuse(s, point, setup_why);
    if (setup_why || before >= 0) return;
    s->opened[s->opened_count++] = point;
    if (!open_point(s, point, &why)) refuse(s, point, why.text);
}

// --- a setup ---------------------------------------------------------------------------------------------

static bool open_models(Stage *s, Error *e) {
    const ModelFiles *f = &s->model->files;
    ModelChoice choice = inputs_choice(s->in, s->setup);
    if (s->alike) choice.engine = (EngineOptions){.device = "null", .context = choice.engine.context};
    if (s->alike) choice.draft_device = NULL;
    DescribedModels d = {.target = &s->model->model,
                         .draft = f->draft ? &s->model->draft : NULL,
                         .tokenizer = s->model->tokenizer};
    for (int i = 0; i < ADAPTER_ROLES; i++) d.adapters[i] = f->adapters[i] ? &s->model->adapters[i] : NULL;
    const char *draft = f->draft_unmade ? f->small_draft : f->draft;
    if (draft && !(d.draft_tokenizer = tokenizer_open(draft, e))) return false;
    bool ok = models_rehearse(&s->models, &choice, &d, e);
    tokenizer_close(d.draft_tokenizer);
    return ok;
}

static void rehearse_setup(Stage *s) {
    const Schedule *all = s->in->schedule;
    Error why = {0};
    s->opened = mem_new((size_t)all->point_count, sizeof *s->opened);
    bool open = open_models(s, &why);
    if (!s->alike) s->in->memory[s->setup] = s->models.memory;
    for (const Group *g = all->groups; g < all->groups + all->group_count; g++)
        for (int k = g->first; g->setup == s->setup && k < g->first + g->count; k++)
            rehearse_point(s, all->members[k], open ? NULL : why.text);
    if (open) models_end_rehearsal(&s->models);
    mem_free(s->opened);
}

void inputs_rehearse(Inputs *in) {
    const Schedule *all = in->schedule;
    for (int i = 0; i < all->setup_count; i++) {
        const char *device = all->setups[i].settings->engine.device;
        in->rehearsals[i] =
            (Rehearsal){.backend = device, .kernels = engine_kernels(device, getenv("OUTPACE_ISA"))};
        rehearse_setup(&(Stage){.in = in,
                                .setup = i,
                                .model = &in->models[all->setups[i].model],
                                .work = in->work,
                                .rehearsal = &in->rehearsals[i]});
    }
}

void inputs_work(Inputs *in, PointWork *work) {
    const Schedule *all = in->schedule;
    for (int i = 0; i < all->setup_count; i++) {
        Rehearsal ours = {.backend = "null"};
        rehearse_setup(&(Stage){.in = in,
                                .setup = i,
                                .model = &in->models[all->setups[i].model],
                                .work = work,
                                .rehearsal = &ours,
                                .alike = true});
    }
}
