// Opening a method: its name, its parameters, and whether the models it needs are there and fit the target.
//
// Invariant: an open method has self and values, and they belong to it.
#include "engine/decode/method.h"

#include "engine/base/memory.h"
#include "engine/base/error.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *name_at(const void *table, size_t i) {
    return ((const MethodInfo *const *)table)[i]->name;
}

const MethodInfo *method_find(const char *name, Error *e) {
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i]->name, name) == 0) return table[i];
    const char *nearest = suggest(name, table, count, name_at);
    if (strchr(name, ',')) error_input(e, "there is no method '%s'; a method is NAME:k=v,...", name);
    else if (nearest) error_input(e, "there is no method '%s'; did you mean '%s'?", name, nearest);
    else error_input(e, "there is no method '%s'; 'outpace methods' lists them", name);
    return NULL;
}

bool prompt_fits(const Prompt *prompt, const Session *draft, Error *e) {
    for (int i = 0; i < prompt->count; i++)
        if (prompt->tokens[i] >= draft->shape.vocab)
            return error_input(e, "token %d of the prompt is %d, outside the draft's vocabulary of %d", i,
                               prompt->tokens[i], draft->shape.vocab);
    return true;
}

static bool shares_vocabulary(const Session *s, const char *name, const MethodEnv *env, Error *e) {
    int own = s->shape.real_vocab, want = env->target->shape.real_vocab;
    return own == want || error_input(e, "the %s has %d tokens, the target %d: they must share a vocabulary",
                                      name, own, want);
}

static bool check_adapters(const MethodEnv *env, Error *e) {
    for (int i = 0; i < env->adapter_count; i++) {
        const Shape *s = &env->adapters[i].shape;
        assert(s->input == INPUT_HIDDEN && s->width == env->target->shape.width);
        (void)s;
        if (!shares_vocabulary(&env->adapters[i], "adapter", env, e)) return false;
    }
    return true;
}

static bool check_needs(const MethodInfo *info, const MethodEnv *env, Error *e) {
    bool final = env->adapter_layer == env->target->shape.layers;
    if (info->needs & NEEDS_DRAFT && !env->draft)
        return error_input(e, "a draft model is needed: give one with --draft DIR, in a config draft: DIR");
    if (info->needs & NEEDS_DRAFT && !shares_vocabulary(env->draft, "draft model", env, e)) return false;
    if (info->needs & NEEDS_ADAPTER && (env->adapter_count != 1 || final))
        return error_input(e, "an adapter on one of the target's lower layers is needed: give one with "
                              "--adapter DIR, in a config adapter: DIR");
    if (info->needs & NEEDS_HEADS && (env->adapter_count < 1 || !final))
        return error_input(e,
                           "Medusa heads are needed: give them with --adapter DIR, in a config heads: DIR");
    if (info->needs & NEEDS_LAYERS && env->target->shape.layers < 2)
        return error_input(e, "the target has one layer, so there is none to leave it after");
    if (info->needs & NEEDS_ANSWER && env->mixed)
        return error_input(e, "it knows the model's own continuation, which a mix doesn't give its methods");
    if (info->needs & NEEDS_ANSWER && !sampling_is_greedy(&env->sampling))
        return error_input(e, "it knows the model's own continuation, and so needs temperature 0");
    return check_adapters(env, e);
}

static void check(const Method *m) {
    assert(m->info && m->self && m->values);
    assert(!m->adapter_count || m->adapters);
}

bool method_open(Method *m, const char *text, const MethodEnv *env, Error *e) {
    char name[64];
    size_t n = strcspn(text, ":");
    *m = (Method){0};
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), text);
    const MethodInfo *info = method_find(name, e);
    if (!info) return false;
    *m = (Method){
        .info = info, .draft = env->draft, .adapters = env->adapters, .adapter_count = env->adapter_count};
    m->values = mem_new(1, info->param_size);
    args_defaults(info->params, info->param_count, m->values);
    if (args_parse(info->params, info->param_count, m->values, text[n] ? text + n + 1 : "", e) &&
        check_needs(info, env, e)) {
        m->self = info->open(env, m->values, e);
        if (m->self) {
            check(m);
            return true;
        }
    }
    error_within(e, "method '%s'", name);
    method_close(m);
    return false;
}

void method_close(Method *m) {
    assert(!m->self || m->info);
    if (m->self) m->info->close(m->self);
    mem_free(m->values);
    *m = (Method){0};
}

bool method_drafts_chain(const Method *m, Error *e) {
    size_t count;
    Text names = {0};
    const MethodInfo *const *table = method_table(&count);
    if (m->info->chain && m->info->chain(m->self)) return true;
    for (size_t i = 0; i < count; i++)
        if (table[i]->chain) text_printf(&names, "%s%s", names.length ? ", " : "", table[i]->name);
    error_input(e,
                "verification 'block' is for chains of tokens drawn from q, and '%s' drafts none here: take "
                "'token'; these methods do where both temperatures are above 0: %s",
                m->info->name, text_get(&names));
    text_release(&names);
    return false;
}

void method_describe(const MethodInfo *info, Text *out) {
    text_printf(out, "%s\n    %s\n", info->name, info->summary);
    args_describe(info->params, info->param_count, out);
}
