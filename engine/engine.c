// Opening: config first, so that memory can be told and checked before a weight is touched; then weights,
// backend and tokenizer.
#include "engine/engine.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/cpu/cpu.h"
#include "engine/cuda/cuda.h"
#include "engine/null/null.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Device {
    const char *name;
    const Backend *backend;
    bool weights;  // needs more than config.json
    bool numbered; // there may be several: "name:n"
    bool (*open)(const Model *model, int ordinal, const BackendOptions *o, void **self, Error *e);
} Device;

static bool open_cpu(const Model *model, int ordinal, const BackendOptions *o, void **self, Error *e) {
    (void)ordinal;
    return cpu_open(model, o, self, e);
}

static bool open_null(const Model *model, int ordinal, const BackendOptions *o, void **self, Error *e) {
    (void)ordinal;
    return null_open(model, o, self, e);
}

static const Device DEVICES[] = {
    {"cpu",  &cpu_backend,  true,  false, open_cpu },
    {"cuda", &cuda_backend, true,  true,  cuda_open},
    {"null", &null_backend, false, false, open_null},
};

// The number behind the colon, at most three digits; 0 where there is none. False if it is anything else.
static bool read_ordinal(const Device *d, const char *text, int *ordinal) {
    size_t digits = strspn(text, "0123456789");
    *ordinal = (int)strtol(text, NULL, 10);
    return d->numbered && digits > 0 && digits <= 3 && text[digits] == 0;
}

// "cuda:1" is device cuda, ordinal 1.
static const Device *find_device(const char *text, int *ordinal, Error *e) {
    const char *name = text ? text : "cpu";
    size_t n = strcspn(name, ":");
    *ordinal = 0;
    for (size_t i = 0; i < sizeof DEVICES / sizeof *DEVICES; i++)
        if (strlen(DEVICES[i].name) == n && strncmp(DEVICES[i].name, name, n) == 0 &&
            (!name[n] || read_ordinal(&DEVICES[i], name + n + 1, ordinal)))
            return &DEVICES[i];
    error_input(e, "there is no device '%s': cpu, cuda[:n] and null are known", name);
    return NULL;
}

static bool choose_compute(const char *text, const Model *m, Compute *out, Error *e) {
    if (!text) *out = m->dtype == DTYPE_BF16 ? COMPUTE_BF16 : COMPUTE_F32;
    else if (strcmp(text, "f32") == 0) *out = COMPUTE_F32;
    else if (strcmp(text, "bf16") == 0) *out = COMPUTE_BF16;
    else return error_input(e, "there is no compute '%s': f32 and bf16 are known", text);
    return true;
}

static size_t available_memory(void) {
    char line[256];
    unsigned long long kilobytes = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1) break;
    if (f) fclose(f);
    return (size_t)kilobytes << 10;
}

// Bytes of keys and values of one position, all layers.
static size_t position_bytes(const Shape *s, Compute compute) {
    return 2 * (size_t)s->layers * (size_t)shape_kv_width(s) * (compute == COMPUTE_BF16 ? 2 : 4);
}

static void estimate(const Model *m, const BackendOptions *o, EngineMemory *out) {
    const Shape *s = &m->shape;
    Cache cache;
    int context = o->context > 0 && o->context < s->context ? o->context : s->context;
    int nodes = o->max_nodes > 0 && o->max_nodes < TREE_MAX_NODES ? o->max_nodes : TREE_MAX_NODES;
    cache_init(&cache, context, s->window, o->slack > 0 ? o->slack : CACHE_SLACK);
    out->weights = model_bytes(m);
    out->cache = (size_t)cache.capacity * position_bytes(s, o->compute);
    out->step = (size_t)nodes * (position_bytes(s, o->compute) + (size_t)s->width * sizeof(float)) +
                (size_t)(3 * s->width + 2 * s->mlp_width + 2 * shape_q_width(s)) * 256 * sizeof(float);
    out->available = available_memory();
}

// Weights are mapped from files, so the system can drop their pages; but a step reads them all, so they must
// fit.
static bool check_memory(const Model *m, const BackendOptions *o, const EngineMemory *need, Error *e) {
    size_t total = need->weights + need->cache + need->step;
    const double gigabyte = 1e9;
    if (need->available == 0 || total <= need->available) return true;
    if (need->weights + need->step >= need->available)
        return error_system(
            e,
            "the model needs %.1f GB (weights %.1f, cache %.1f, step %.1f), %.1f GB are free: it does "
            "not fit, whatever the context",
            (double)total / gigabyte, (double)need->weights / gigabyte, (double)need->cache / gigabyte,
            (double)need->step / gigabyte, (double)need->available / gigabyte);
    size_t fits = (need->available - need->weights - need->step) / position_bytes(&m->shape, o->compute);
    return error_system(e,
                        "a context of %d tokens needs %.1f GB beside %.1f GB of weights, %.1f GB are free: "
                        "--context %zu would fit",
                        o->context > 0 ? o->context : m->shape.context, (double)need->cache / gigabyte,
                        (double)need->weights / gigabyte, (double)need->available / gigabyte,
                        fits > 256 ? fits - 256 : fits);
}

static bool open_tokenizer(Engine *engine, const char *dir, Error *e) {
    static const char *const files[] = {"tokenizer.json", "tokenizer.model"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = file_path(dir, files[i]);
        bool there = path && file_exists(path);
        mem_free(path);
        if (!there) continue;
        engine->tokenizer = tokenizer_open(dir, e);
        return engine->tokenizer != NULL;
    }
    return true;
}

static bool open_session(Engine *engine, const Device *device, int ordinal, const BackendOptions *o,
                         Error *e) {
    void *self;
    return device->open(&engine->model, ordinal, o, &self, e) &&
           session_init(&engine->session, device->backend, self, &engine->model.shape, o, e);
}

bool engine_open(Engine *engine, const char *dir, const EngineOptions *o, EngineMemory *memory, Error *e) {
    int ordinal;
    EngineMemory need = {0};
    BackendOptions backend = o->backend;
    *engine = (Engine){0};
    const Device *device = find_device(o->device, &ordinal, e);
    if (!device) return false;
    bool ok =
        device->weights ? model_open(&engine->model, dir, e) : model_open_config(&engine->model, dir, e);
    ok = ok && choose_compute(o->compute, &engine->model, &backend.compute, e);
    if (ok && device->weights) {
        estimate(&engine->model, &backend, &need);
        ok = check_memory(&engine->model, &backend, &need, e);
    }
    if (memory) *memory = need;
    ok = ok && open_tokenizer(engine, dir, e) && open_session(engine, device, ordinal, &backend, e);
    if (!ok) engine_close(engine);
    return ok;
}

void engine_close(Engine *engine) {
    session_release(&engine->session);
    tokenizer_close(engine->tokenizer);
    model_close(&engine->model);
    *engine = (Engine){0};
}
