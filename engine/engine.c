// Opens the config first, so that memory is checked and reported before a weight is read; then weights,
// backend and tokenizer.
#include "engine/engine.h"

#include "engine/base/memory.h"
#include "engine/base/system.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/pool.h"
#include "engine/cuda/cuda.h"
#include "engine/model/make/synth.h"
#include "engine/null/null.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Device {
    const char *name;
    const Backend *backend;
    bool weights;  // needs more than config.json
    bool host;     // each step reads the weights from this machine's memory, so they must fit there
    bool numbered; // there may be several: "name:n", and a model on some of them: "name:n,name:m"
    bool (*open)(const Model *model, const BackendOptions *o, void **self, Error *e);
    bool (*ceilings)(const BackendOptions *o, Ceilings *out, Error *e); // NULL: it does no arithmetic
    bool (*gauge)(int ordinal, Gauge *out, Error *e);                   // NULL: it has no readings
    bool (*copy_rate)(int ordinal, double *bytes_per_s, Error *e);
    bool (*usable)(int ordinal, Error *e);                                                 // NULL: always
    int (*fits)(const Model *model, const BackendOptions *o);                              // NULL: see host
    size_t (*weights_there)(const Model *model, const BackendOptions *o, size_t *decoded); // NULL: as open
} Device;

enum { CPU, CUDA, NOTHING, DEVICE_COUNT };
static const Device DEVICES[DEVICE_COUNT] = {
    [CPU] = {.name = "cpu",
             .backend = &cpu_backend,
             .weights = true,
             .host = true,
             .open = cpu_open,
             .ceilings = cpu_ceilings},
    [CUDA] = {.name = "cuda",
              .backend = &cuda_backend,
              .weights = true,
              .numbered = true,
              .open = cuda_open,
              .ceilings = cuda_ceilings,
              .gauge = cuda_gauge,
              .copy_rate = cuda_copy_rate,
              .usable = cuda_usable,
              .fits = cuda_fits,
              .weights_there = cuda_weights},
    [NOTHING] = {.name = "null", .backend = &null_backend, .open = null_open},
};

// "name:n", n of at most three digits, or "name", which is the first. Returns the rest of the text; NULL:
// it's neither, or there are too many.
static const char *read_card(const Device *d, const char *text, Cards *cards) {
    size_t n = strcspn(text, ":,+"), digits = text[n] == ':' ? strspn(text + n + 1, "0123456789") : 0;
    bool numbered = text[n] == ':';
    if (strlen(d->name) != n || strncmp(d->name, text, n) != 0 ||
        (numbered && (!d->numbered || !digits || digits > 3)) || cards->count == CARDS_MAX)
        return NULL;
    cards->ordinal[cards->count++] = numbered ? (int)strtol(text + n + 1, NULL, 10) : 0;
    return text + n + (numbered ? 1 + digits : 0);
}

static bool read_cards(const Device *d, const char *text, Cards *cards) {
    cards->count = 0;
    do {
        text = read_card(d, text, cards);
        if (!text || (*text && (!strchr(",+", *text) || !d->numbered))) return false;
    } while (*text++);
    return true;
}

// The first GPU that can be used.
static bool find_gpu(Cards *cards) {
    int count = cuda_count();
    *cards = (Cards){1, {0}};
    for (int i = 0; i < count; i++)
        if (cuda_usable(i, NULL)) {
            cards->ordinal[0] = i;
            return true;
        }
    return false;
}

static bool is_auto(const char *text) { return text && strcmp(text, "auto") == 0; }

// "cuda:1" is the second card of device cuda, "cuda:0,cuda:1" two cards for one model; "auto" is the first
// GPU that can be used, or else the CPU.
static const Device *find_device(const char *text, Cards *cards, Error *e) {
    const char *name = text && *text ? text : "cpu";
    if (is_auto(text)) return &DEVICES[find_gpu(cards) ? CUDA : CPU];
    for (const Device *d = DEVICES; d < DEVICES + DEVICE_COUNT; d++) {
        if (!read_cards(d, name, cards)) continue;
        for (int i = 0; i < cards->count; i++)
            for (int k = 0; k < i; k++)
                if (cards->ordinal[i] == cards->ordinal[k]) {
                    error_input(e, "device '%s' has %s:%d twice", name, d->name, cards->ordinal[i]);
                    return NULL;
                }
        return d;
    }
    error_input(e, "there is no device '%s': cpu, cuda[:n][,cuda:m..], auto and null are known", name);
    return NULL;
}

// What only some devices have.
static bool check_device(const Device *d, const EngineOptions *o, Error *e) {
    bool cuda = d->backend == &cuda_backend;
    if (o->math == MATH_FAST && !cuda)
        return error_input(e, "math fast needs device cuda; %s has exact alone", d->name);
    if (o->compute == CHOOSE_INT8 && d->backend != &cpu_backend)
        return error_input(e, "compute int8 needs device cpu; leave --compute out for %s", d->name);
    if (options_batch(o) > 1 && o->team)
        return error_input(e, "batch %d: ranks share the steps of one sequence; leave one of both out",
                           o->batch);
    return o->weights != WEIGHTS_HELD || d->host ||
           error_input(e, "weights held needs device cpu; leave --weights out for %s", d->name);
}

// Free memory for a model that is open together with another. The other's weights may be in pages that the
// system could drop, but must not.
static size_t memory_beside(const Engine *other) {
    size_t available = system_memory(),
           taken = other && !other->weights.held ? model_bytes(&other->model) : 0;
    return available > taken ? available - taken : available > 0;
}

// Positions of the session.
static int context_of(const Shape *s, const BackendOptions *o) {
    return o->context > 0 && o->context < s->context ? o->context : s->context;
}

static EngineMemory estimate(const Model *m, const BackendOptions *o) {
    const Shape *s = &m->shape;
    Cache cache;
    int context = context_of(s, o);
    int nodes = o->max_nodes > 0 && o->max_nodes < TREE_MAX_NODES ? o->max_nodes : TREE_MAX_NODES;
    cache_init(&cache, context, s->window, o->slack > 0 ? o->slack : CACHE_SLACK);
    // Bytes of keys and values of one position, all layers.
    size_t row = 2 * (size_t)s->layers * (size_t)shape_kv_width(s) * dtype_size(compute_dtype(o->compute));
    size_t angles = (size_t)context * (size_t)s->rope.pairs * 2;
    size_t panel = 256 * (size_t)(3 * s->width + 2 * s->mlp_width + 2 * shape_q_width(s));
    size_t scores = o->plain ? 256 * (size_t)s->heads * (size_t)context : 0;
    size_t weights = model_bytes(m), sequences = o->sequences > 1 ? (size_t)o->sequences : 1;
    if (!weights) weights = model_expected_bytes(m);
    return (EngineMemory){.weights = weights,
                          .cache = sequences * (size_t)cache.capacity * row,
                          .step = sequences * (size_t)nodes * (row + (size_t)s->width * sizeof(float)) +
                                  (angles + panel + scores) * sizeof(float)};
}

// What must be in memory: weights that are mapped from their file need not be.
static size_t resident(const EngineMemory *m, bool from_file) {
    return (from_file ? 0 : m->weights) + m->cache + m->step;
}

// The longest context that fits, with a little to spare, since others use memory too; 0: none does.
static int longest_context(const Model *m, const BackendOptions *o, size_t available, bool from_file) {
    int low = 0, high = m->shape.context;
    while (low < high) {
        BackendOptions tried = *o;
        tried.context = low + (high - low + 1) / 2;
        EngineMemory need = estimate(m, &tried);
        if (resident(&need, from_file) <= available - available / 32) low = tried.context;
        else high = tried.context - 1;
    }
    return low;
}

// The most sequences that fit with this context; 0: not even one.
static int largest_batch(const Model *m, const BackendOptions *o, size_t available) {
    BackendOptions tried = *o;
    for (tried.sequences = o->sequences - 1; tried.sequences > 0; tried.sequences--) {
        EngineMemory need = estimate(m, &tried);
        if (resident(&need, false) <= available - available / 32) break;
    }
    return tried.sequences > 0 ? tried.sequences : 0;
}

static bool lacks_memory(const EngineMemory *need, const char *mend, Error *e) {
    const double gigabyte = 1e9;
    return error_system(e,
                        "the model needs %.1f GB (weights %.1f, cache %.1f, step %.1f), %.1f GB are free: %s",
                        (double)resident(need, false) / gigabyte, (double)need->weights / gigabyte,
                        (double)need->cache / gigabyte, (double)need->step / gigabyte,
                        (double)need->available / gigabyte, mend);
}

// A step reads all weights, so they should fit with cache and step. Where they can't, whatever the context,
// every step reads them from the file (EngineMemory.from_file), unless they are to be held.
static bool check_memory(const Model *m, const BackendOptions *o, bool held, EngineMemory *need, Error *e) {
    char mend[80];
    if (need->available == 0 || resident(need, false) <= need->available) return true;
    int batch = o->sequences > 1 ? largest_batch(m, o, need->available) : 0;
    if (batch) {
        snprintf(mend, sizeof mend, "--batch %d would fit", batch);
        return lacks_memory(need, mend, e);
    }
    int fits = longest_context(m, o, need->available, false);
    if (!fits && held) return lacks_memory(need, "leave --weights held out, to read them from the file", e);
    need->from_file = !fits;
    if (need->from_file && resident(need, true) <= system_memory()) return true;
    if (need->from_file) fits = longest_context(m, o, system_memory(), true);
    snprintf(mend, sizeof mend, fits ? "--context %d would fit" : "it does not fit, whatever the context",
             fits);
    return lacks_memory(need, mend, e);
}

static bool open_tokenizer(Engine *engine, const char *dir, Error *e) {
    LOCAL_MEMORY char *path = tokenizer_file(dir);
    if (!path) return true;
    engine->tokenizer = tokenizer_open(dir, e);
    bool ok = engine->tokenizer;
    int pieces = ok ? tokenizer_base_size(engine->tokenizer) : 0, rows = engine->model.shape.vocab;
    // A piece without a row in the embedding is of another model. Added tokens may be beyond (CodeLlama 34B
    // has four of them): a prompt that holds one is refused when it comes.
    if (pieces > rows)
        ok = error_input(e,
                         "'%s' has pieces up to id %d, the model a vocabulary of %d: "
                         "one of them is of another model",
                         path, pieces - 1, rows);
    return ok;
}

static bool open_session(Session *s, const char *dir, const Model *model, const Device *device,
                         const BackendOptions *o, Error *e) {
    void *self;
    if (!device->open(model, o, &self, e)) return false;
    session_init(s, device->backend, self, &model->shape, o);
    snprintf(s->name, sizeof s->name, "%s", dir);
    return true;
}

// The sessions of further sequences, beside the first ones: (count) each.
static bool open_more(Session **more, int *more_count, const Session *first, const Model *models, int count,
                      const Device *device, const BackendOptions *o, Error *e) {
    *more = mem_new((size_t)(o->sequences * count), sizeof **more);
    for (int i = 0; i < (o->sequences - 1) * count; i++) {
        BackendOptions own = *o;
        own.first = first[i % count].self;
        if (!open_session(&(*more)[i], first[i % count].name, &models[i % count], device, &own, e))
            return false;
        ++*more_count;
    }
    return true;
}

static void add_what_it_took(const Session *s, EngineMemory *out) {
    BackendReport r;
    s->backend->report(s->self, &r);
    out->cache += r.cache_bytes;
    out->step += r.step_bytes;
}

static void *instance_beside(const Engine *other, const Device *device) {
    return other && other->session.backend == device->backend ? other->session.self : NULL;
}

// The options' choices, before and after config.json is read.
typedef struct Opening {
    const Device *device;
    BackendOptions backend;
    EngineMemory need;
    int fits; // see Engine
} Opening;

static BackendOptions backend_options(const EngineOptions *o, const Device *device, Cards cards) {
    return (BackendOptions){.cards = cards,
                            .context = o->context,
                            .max_nodes = o->max_nodes,
                            .slack = o->slack,
                            .threads = o->threads,
                            .plain = o->attention == ATTENTION_PLAIN,
                            .isa = o->isa,
                            .fast = o->math == MATH_FAST,
                            .sequences = options_batch(o),
                            .beside = instance_beside(o->beside, device),
                            .progress = o->progress};
}

static bool choose_device(Opening *w, const EngineOptions *o, Error *e) {
    Cards cards;
    *w = (Opening){.device = find_device(o->device, &cards, e)};
    if (!w->device || !check_device(w->device, o, e)) return false;
    w->backend = backend_options(o, w->device, cards);
    return true;
}

bool engine_check(const EngineOptions *o, Error *e) {
    Opening w;
    return choose_device(&w, o, e);
}

static bool choose_rest(Opening *w, Model *m, const EngineOptions *o, Error *e) {
    w->backend.compute = compute_choose(o->compute, m->dtype);
    if (o->compute == CHOOSE_INT8 && m->layers && !model_coded(m) && !o->beside)
        return error_input(e, "compute int8 is for weights of 4 to 8 bits, and this model has none: leave "
                              "--compute out, or quantise the model (outpace model quantise)");
    if (o->no_window) m->shape.window = m->shape.local_window = 0;
    if (o->real_vocab && o->real_vocab < m->shape.real_vocab) m->shape.real_vocab = o->real_vocab;
    // A context that nobody asked for need not be the model's own: where a device has no room for that, half
    // of what fits is taken, since other models and other programs need room, too.
    bool free_choice = w->device->fits && m->layers && !w->backend.context;
    int fits = free_choice ? w->device->fits(m, &w->backend) : 0;
    if (fits > 1 && fits < m->shape.context) { // else all of it, or what opening will refuse
        w->fits = fits;
        w->backend.context = fits / 2;
    }
    rope_fit(&m->shape.rope, context_of(&m->shape, &w->backend));
    if (!w->device->host) return true;
    w->need = estimate(m, &w->backend);
    w->need.available = memory_beside(o->beside);
    return check_memory(m, &w->backend, o->weights == WEIGHTS_HELD, &w->need, e);
}

// --- ranks

// Followed by the two texts.
typedef struct SharedOpening {
    EngineOptions options; // without pointers
    size_t isa, dir;       // bytes, each with a NUL
    bool forced;           // there is an isa
} SharedOpening;

static void share(Engine *engine, const char *dir, const EngineOptions *o) {
    SharedOpening s = {.options = *o, .forced = o->isa != NULL, .dir = strlen(dir) + 1};
    const char *isa = o->isa ? o->isa : "";
    LOCAL_TEXT opening = {0};
    s.isa = strlen(isa) + 1;
    s.options.isa = NULL;
    s.options.progress = (Progress){0};
    s.options.beside = NULL;
    s.options.team = NULL;
    s.options.context = engine->session.context;
    text_add(&opening, (const char *)&s, sizeof s);
    text_add(&opening, isa, s.isa);
    text_add(&opening, dir, s.dir);
    session_share(&engine->session, o->team, &opening);
}

size_t engine_gpu_weights(const Model *m, const EngineOptions *o, size_t *decoded) {
    Cards cards;
    const Device *d = find_device(o->device, &cards, NULL);
    BackendOptions there = {.compute = compute_choose(o->compute, m->dtype), .fast = o->math == MATH_FAST};
    *decoded = 0;
    return d && d->weights_there && m->layers ? d->weights_there(m, &there, decoded) : 0;
}

void engine_local_device(const char *device, int local, char out[ARG_TEXT_SIZE]) {
    bool gpu = strcmp(device, "cuda") == 0 || (is_auto(device) && cuda_count() > local);
    if (gpu) snprintf(out, ARG_TEXT_SIZE, "cuda:%d", local);
    else snprintf(out, ARG_TEXT_SIZE, "%s", device);
}

bool engine_open_shared(Engine *engine, const char *opening, const Team *team, int local, Error *e) {
    SharedOpening s;
    memcpy(&s, opening, sizeof s);
    const char *isa = opening + sizeof s, *dir = isa + s.isa;
    char device[ARG_TEXT_SIZE];
    engine_local_device(s.options.device, local, device);
    snprintf(s.options.device, sizeof s.options.device, "%s", device);
    s.options.isa = s.forced ? isa : NULL;
    s.options.team = team;
    return engine_open(engine, dir, &s.options, NULL, e);
}

Session *engine_session(Engine *engine, int sequence) {
    assert(sequence >= 0 && sequence <= engine->more_count);
    return sequence ? &engine->more[sequence - 1] : &engine->session;
}

// A shape's name is the model that synth would write, on devices that make its numbers by themselves.
static bool open_weights(Engine *engine, const char *dir, const Device *device, bool exact, Error *e) {
    if (!synth_named(dir))
        return (exact ? model_open_exact : model_open)(&engine->model, &engine->weights, dir, e);
    return device->backend == &cuda_backend
               ? synth_open(&engine->model, &engine->weights, dir, e)
               : error_input(
                     e,
                     "'%s' is a shape, whose weights only device cuda makes: 'outpace model synth %s DIR' "
                     "writes them into a directory",
                     dir, dir);
}

bool engine_open(Engine *engine, const char *dir, const EngineOptions *o, EngineMemory *memory, Error *e) {
    Opening w;
    *engine = (Engine){0};
    if (!choose_device(&w, o, e)) return false;
    bool ok = w.device->weights ? open_weights(engine, dir, w.device, o->weights == WEIGHTS_EXACT, e)
                                : model_open_config(&engine->model, dir, e);
    ok = ok && choose_rest(&w, &engine->model, o, e) && open_tokenizer(engine, dir, e) &&
         (o->weights != WEIGHTS_HELD ||
          model_hold(&engine->model, &engine->weights, &w.backend.progress, e)) &&
         open_session(&engine->session, dir, &engine->model, w.device, &w.backend, e);
    EngineMemory need = w.need;
    engine->fits = w.fits;
    need.cache = ok ? 0 : need.cache;
    need.step = ok ? 0 : need.step;
    if (ok && w.backend.sequences > 1)
        ok = open_more(&engine->more, &engine->more_count, &engine->session, &engine->model, 1, w.device,
                       &w.backend, e);
    need.weights = ok && w.device->weights ? model_bytes(&engine->model) : need.weights;
    for (int i = 0; ok && w.device->weights && i <= engine->more_count; i++)
        add_what_it_took(engine_session(engine, i), &need);
    if (ok && o->team) share(engine, dir, o);
    if (memory) *memory = need;
    if (!ok) engine_close(engine);
    return ok;
}

bool engine_rehearse(Engine *engine, const char *name, const Model *m, const EngineOptions *o,
                     EngineMemory *memory, Error *e) {
    Opening w;
    *engine = (Engine){0};
    if (!choose_device(&w, o, e)) return false;
    for (int i = 0; w.device->usable && i < w.backend.cards.count; i++)
        if (!w.device->usable(w.backend.cards.ordinal[i], e)) return false;
    if (w.device->backend == &cpu_backend && !cpu_isa(o->isa, e)) return false;
    engine->model = *m;
    bool ok = choose_rest(&w, &engine->model, o, e);
    if (memory) *memory = w.need;
    ok = ok && open_session(&engine->session, name, &engine->model, &DEVICES[NOTHING], &w.backend, e);
    if (!ok) engine_close(engine);
    return ok;
}

const char *engine_kernels(const char *device, const char *isa) {
    Cards cards;
    const Device *d = find_device(device, &cards, NULL);
    return d && d->backend == &cpu_backend ? cpu_isa(isa, NULL) : NULL;
}

int engine_threads(const EngineOptions *o) { return o->threads > 0 ? o->threads : pool_cores(); }

static void release_more(Session *more, int count) {
    for (int i = 0; i < count; i++) session_release(&more[i]);
    mem_free(more);
}

void engine_close(Engine *engine) {
    release_more(engine->more, engine->more_count);
    session_release(&engine->session);
    tokenizer_close(engine->tokenizer);
    model_close(&engine->weights);
    *engine = (Engine){0};
}

bool engine_same_vocabulary(const Engine *target, const Engine *draft, Error *e) {
    int rows = target->model.shape.vocab, own = draft->model.shape.vocab;
    bool readable = target->tokenizer && draft->tokenizer;
    if (rows != own && !readable)
        return error_input(e,
                           "the draft model has %d tokens, the target %d, and not both have a tokenizer that "
                           "shows whether one vocabulary is the start of the other",
                           own, rows);
    for (int id = 0; readable && id < rows && id < own; id++) {
        const char *a = tokenizer_piece(target->tokenizer, id), *b = tokenizer_piece(draft->tokenizer, id);
        // An id that only one of them has a piece for is padding of the other.
        if (a && b && strcmp(a, b) != 0)
            return error_input(e,
                               "token %d is '%s' for the target, '%s' for the draft model: they must "
                               "share a vocabulary",
                               id, a, b);
    }
    return true;
}

// --- adapters

Session *engine_adapter_sessions(AdapterEngine *a, int sequence) {
    assert(sequence == 0 || sequence * a->count <= a->more_count);
    return sequence ? a->more + (ptrdiff_t)(sequence - 1) * a->count : a->sessions;
}

bool engine_open_adapter(AdapterEngine *a, const Engine *target, const char *dir, const EngineOptions *o,
                         EngineMemory *memory, Error *e) {
    Cards cards;
    EngineMemory took = {0};
    *a = (AdapterEngine){0};
    const Device *device = find_device(o->device, &cards, e);
    if (!device || !check_device(device, o, e)) return false;
    BackendOptions backend = backend_options(o, device, (Cards){1, {cards.ordinal[cards.count - 1]}});
    took.available = device->host ? memory_beside(target) : 0;
    backend.beside = instance_beside(target, device);
    backend.compute = target->session.compute;
    backend.context = target->session.context;
    bool ok = device->weights ? adapter_open(&a->adapter, &target->model, dir, e)
                              : adapter_open_config(&a->adapter, &target->model, dir, e);
    // Heads see one row a step, an adapter the whole prompt.
    if (a->adapter.kind.variant == ADAPTER_MEDUSA) backend.max_nodes = 1;
    for (; ok && a->count < a->adapter.kind.heads; a->count += ok) {
        const Model *m = &a->adapter.models[a->count];
        ok = open_session(&a->sessions[a->count], dir, m, device, &backend, e);
        if (!ok || !device->weights) continue;
        add_what_it_took(&a->sessions[a->count], &took);
        took.weights += model_bytes(m);
    }
    if (ok && backend.sequences > 1)
        ok = open_more(&a->more, &a->more_count, a->sessions, a->adapter.models, a->count, device, &backend,
                       e);
    for (int i = 0; ok && device->weights && i < a->more_count; i++) add_what_it_took(&a->more[i], &took);
    if (memory) *memory = took;
    if (!ok) engine_close_adapter(a);
    return ok;
}

bool engine_rehearse_adapter(AdapterEngine *a, const char *name, const Adapter *adapter, const Engine *target,
                             Error *e) {
    const Session *s = &target->session;
    BackendOptions o = {.compute = s->compute, .context = s->context};
    *a = (AdapterEngine){.adapter = {.kind = adapter->kind, .captures = adapter->captures}};
    for (; a->count < adapter->kind.heads; a->count++)
        if (!open_session(&a->sessions[a->count], name, &adapter->models[a->count], &DEVICES[NOTHING], &o,
                          e)) {
            engine_close_adapter(a);
            return false;
        }
    return true;
}

void engine_close_adapter(AdapterEngine *a) {
    release_more(a->more, a->more_count);
    for (int i = 0; i < ADAPTER_HEADS_MAX; i++) session_release(&a->sessions[i]);
    adapter_close(&a->adapter);
    *a = (AdapterEngine){0};
}

void engine_list_gpus(const char *name, Text *list) {
    Cards cards, known = {0};
    const Device *device = find_device(name, &cards, NULL);
    if (!device || !device->gauge || (list->length && !read_cards(device, text_get(list), &known))) return;
    for (int i = 0; i < cards.count; i++) {
        bool there = false;
        for (int k = 0; k < known.count; k++) there |= known.ordinal[k] == cards.ordinal[i];
        if (!there && known.count + i < CARDS_MAX)
            text_printf(list, "%s%s:%d", list->length ? "," : "", device->name, cards.ordinal[i]);
    }
}

int engine_gpus(void) { return cuda_count(); }

bool engine_passes_over(const char *device, Error *why) {
    return is_auto(device) && !cuda_absent() && !cuda_usable(0, why);
}

bool engine_gauge(const char *name, int card, Gauge *out, Error *e) {
    Cards cards;
    const Device *device = find_device(name, &cards, e);
    return device && device->gauge && card < cards.count && device->gauge(cards.ordinal[card], out, e);
}

static void take_slower(double *slowest, double x) {
    if (*slowest <= 0 || x < *slowest) *slowest = x;
}

bool engine_ceilings(const char *name, const BackendOptions *o, Ceilings *out, Error *e) {
    Cards cards;
    const Device *device = find_device(name, &cards, e);
    for (int i = 0; device && i < cards.count; i++) {
        Ceilings own = {.isa = "none"};
        BackendOptions on = *o;
        on.cards = (Cards){1, {cards.ordinal[i]}};
        if (device->ceilings && !device->ceilings(&on, &own, e)) return false;
        if (i == 0) *out = own;
        take_slower(&out->bytes_per_s, own.bytes_per_s);
        for (int k = 0; k < COMPUTE_KINDS; k++)
            take_slower(&out->operations_per_s[k], own.operations_per_s[k]);
    }
    return device != NULL;
}

const char *engine_kernels_refused(void) { return cpu_kernels_refused(); }

bool engine_copy_rate(const char *name, double *bytes_per_s, Error *e) {
    Cards cards;
    const Device *device = find_device(name, &cards, e);
    *bytes_per_s = 0;
    if (!device || !device->copy_rate) return false;
    for (int i = 0; i < cards.count; i++) {
        double own;
        if (!device->copy_rate(cards.ordinal[i], &own, e)) return false;
        take_slower(bytes_per_s, own);
    }
    return true;
}
