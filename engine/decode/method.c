// Opening a method: its name, its parameters, and whether the models it needs are there and fit the target.
//
// Invariant: an open method has self and values, and they belong to it.
#include "engine/decode/method.h"

#include "engine/base/memory.h"
#include "engine/base/error.h"
#include "engine/decode/call.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const MethodInfo *method_find(const char *name, Error *e) {
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i]->name, name) == 0) return table[i];
    const char *nearest = suggest(name, table, count, 0);
    if (strchr(name, ',')) error_input(e, "there is no method '%s'; a method is NAME:k=v,...", name);
    else if (nearest) error_input(e, "there is no method '%s'; did you mean '%s'?", name, nearest);
    else error_input(e, "there is no method '%s'; 'outpace methods' lists them", name);
    return NULL;
}

// Kinds of adapters: their input, and whether they read the target's last layer.
static const struct AdapterNeed {
    MethodNeed need;
    InputKind input;
    bool final;
    const char *what, *option;
} ADAPTERS[] = {
    {NEEDS_ADAPTER, INPUT_HIDDEN, false, "an adapter on one of the target's lower layers is needed: give one",
     "adapter"},
    {NEEDS_HEADS, INPUT_HIDDEN, true, "Medusa heads are needed: give them", "heads"},
    {NEEDS_EAGLE, INPUT_FUSED, true, "a draft of EAGLE-1 or 2 is needed: give one", "eagle"},
    {NEEDS_EAGLE3, INPUT_PAIRED, true, "a draft of EAGLE-3 is needed: give one", "eagle3"},
    {NEEDS_MTP, INPUT_MTP, true, "an MTP layer is needed, which this model's files don't have: give one",
     "mtp"},
    {NEEDS_DFLASH, INPUT_BLOCK, true, "a draft of DFlash or DSpark is needed: give one", "dflash"},
};

// If several sets fit, the last one is taken: that of an option of its own, not of --adapter. EAGLE-3's and
// DFlash's may have another vocabulary, whose map was checked.
static bool find_adapter(const MethodInfo *info, MethodEnv *env, Error *e) {
    const Shape *target = &env->target->shape;
    env->adapter = NULL;
    for (const struct AdapterNeed *n = ADAPTERS; n < ADAPTERS + sizeof ADAPTERS / sizeof *ADAPTERS; n++) {
        if (!(info->needs & n->need)) continue;
        for (int i = 0; i < ADAPTER_SETS; i++) {
            const AdapterSet *a = &env->adapters[i];
            if (a->count && a->sessions[0].shape.input == n->input &&
                (a->layer == target->layers) == n->final && (a->count == 1 || n->need == NEEDS_HEADS))
                env->adapter = a;
        }
        if (!env->adapter)
            return error_input(e, "%s with --%s DIR, in a config %s: DIR", n->what, n->option, n->option);
        for (int i = 0; i < env->adapter->count; i++) {
            const Session *s = &env->adapter->sessions[i];
            int own = s->shape.real_vocab;
            assert(s->shape.width == target->width);
            if (n->input < INPUT_PAIRED && own != target->real_vocab)
                return error_input(e,
                                   "the adapter has %d tokens, the target %d: they must share a vocabulary",
                                   own, target->real_vocab);
        }
    }
    return true;
}

static bool check_needs(const MethodInfo *info, const MethodEnv *env, Error *e) {
    if (env->only_text && !info->from_text)
        return error_input(e, "it reads the model's outputs; %s", env->only_text);
    if (info->needs & NEEDS_DRAFT && !env->draft)
        return error_input(e, "a draft model is needed: give one with --draft DIR, in a config draft: DIR");
    // A draft may know fewer ids than the target. It must not propose others.
    if (info->needs & NEEDS_DRAFT && env->draft->shape.real_vocab > env->target->shape.real_vocab)
        return error_input(e, "the draft model proposes ids up to %d, the target has %d",
                           env->draft->shape.real_vocab - 1, env->target->shape.real_vocab);
    if (info->needs & NEEDS_LAYERS && env->target->shape.layers < 2)
        return error_input(e, "the target has one layer, so there is none to leave it after");
    if (info->needs & NEEDS_ANSWER && env->mixed)
        return error_input(e, "it knows the model's own continuation, which a mix doesn't give its methods");
    if (info->needs & NEEDS_ANSWER && !sampling_is_greedy(&env->sampling))
        return error_input(e, "it knows the model's own continuation, and so needs temperature 0");
    return true;
}

static Sources *sources_of(const Method *m) {
    return m->info->sources ? (void *)((char *)m->self + m->info->sources) : NULL;
}

static bool open_self(Method *m, const MethodEnv *env, Error *e) {
    const MethodInfo *info = m->info;
    m->self = mem_new(1, info->self_size);
    memcpy(m->self, m->values, info->param_size);
    Sources *s = sources_of(m);
    if (s) s->names = info->source_names;
    while (s && s->names && s->names[s->source_count]) s->source_count++;
    return !info->open || info->open(m->self, env, e);
}

bool method_open_as(Method *m, const MethodInfo *info, const char *params, const MethodEnv *env, Error *e) {
    MethodEnv own = *env;
    *m = (Method){.info = info,
                  .draft = env->draft,
                  .values = mem_new(1, info->param_size),
                  .seed = env->seed,
                  .sampling = env->sampling,
                  .eos_count = env->eos_count};
    memcpy(m->adapters, env->adapters, sizeof m->adapters);
    args_defaults(info->params, info->param_count, m->values);
    if (args_parse(info->params, info->param_count, m->values, params, e) && check_needs(info, &own, e) &&
        find_adapter(info, &own, e) && open_self(m, &own, e))
        return true;
    error_within(e, "method '%s'", info->name);
    method_close(m);
    return false;
}

const MethodInfo *method_of(const char *text, const char **params, Error *e) {
    char name[64];
    size_t n = strcspn(text, ":");
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), text);
    *params = text[n] ? text + n + 1 : "";
    return method_find(name, e);
}

bool method_open(Method *m, const char *text, const MethodEnv *env, Error *e) {
    const char *params;
    const MethodInfo *info = method_of(text, &params, e);
    *m = (Method){0};
    return info && method_open_as(m, info, params, env, e);
}

bool method_plain_text(const char *part, size_t n, char out[ARG_TEXT_SIZE], Error *e) {
    snprintf(out, ARG_TEXT_SIZE, "%.*s", (int)n, part);
    char *open = strchr(out, '(');
    if (!open) return true;
    *open = ':';
    if (out[n - 1] != ')')
        return error_input(e, "'%.*s' must end with the parenthesis of its parameters", (int)n, part);
    out[n - 1] = 0;
    return true;
}

void method_close(Method *m) {
    assert(!m->self || m->info);
    call_close(m);
    if (m->self && m->info->close) m->info->close(m->self);
    MEM_FREE(m->self, m->values);
    *m = (Method){0};
}

// "name(key=value,...)+name(...)": a part that can't be read is refused when it is opened.
static bool any_is_warm(const char *parts) {
    bool warm = false;
    for (const char *p = parts; *p && !warm; p += *p == '+') {
        char text[ARG_TEXT_SIZE], *params;
        size_t n = args_span(p, '+');
        bool read = method_plain_text(p, n, text, NULL);
        p += n;
        if ((params = strchr(text, ':'))) *params++ = 0;
        const MethodInfo *info = read ? method_find(text, NULL) : NULL;
        if (!info) continue;
        LOCAL_MEMORY void *values = mem_new(1, info->param_size);
        args_defaults(info->params, info->param_count, values);
        warm = args_parse(info->params, info->param_count, values, params ? params : "", NULL) &&
               method_is_warm(info, values);
    }
    return warm;
}

bool method_is_warm(const MethodInfo *info, const void *values) {
    for (const Arg *p = info->params; p < info->params + info->param_count; p++) {
        const char *value = (const char *)values + p->at;
        if (strcmp(p->name, "warm") == 0 && *(const bool *)(const void *)value) return true;
        if (p->type == ARG_METHODS && any_is_warm(value)) return true;
    }
    return false;
}

bool method_is_unchanged(const Method *m, Error *e) {
    return !m->info->unchanged || m->info->unchanged(m->self, e);
}

bool method_drafts_chain(const Method *m, Error *e) {
    size_t count;
    LOCAL_TEXT names = {0};
    const MethodInfo *const *table = method_table(&count);
    if (m->info->chain && m->info->chain(m->self)) return true;
    for (size_t i = 0; i < count; i++)
        if (table[i]->chain) text_printf(&names, "%s%s", names.length ? ", " : "", table[i]->name);
    return error_input(
        e,
        "verification 'block' is for chains of tokens drawn from q, and '%s' drafts none here: take "
        "'token'; these methods do where both temperatures are above 0: %s",
        m->info->name, text_get(&names));
}

StepWork method_work(const Method *m) {
    StepWork out = {.longest = 1, .rows = 1};
    if (m->info->work) m->info->work(m->self, &out);
    assert(out.longest >= 1 && out.rows >= 1 && out.draft_count <= DRAFTS_MOST);
    return out;
}

const Sources *method_sources(const Method *m) { return sources_of(m); }

bool method_reads_prompt(const Method *m) {
    const MethodInfo *info = m->info;
    return info->prefilled || (info->hidden_layer && info->hidden_layer(m->self) != HIDDEN_NONE) ||
           (info->captures && info->captures(m->self));
}

void method_describe(const MethodInfo *info, Text *out) {
    text_printf(out, "%s\n    %s\n", info->name, info->summary);
    args_describe(info->params, info->param_count, out);
}
