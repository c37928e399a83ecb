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
        assert(s->input != INPUT_TOKENS && s->width == env->target->shape.width);
        if (s->input == INPUT_PAIRED) continue; // of a vocabulary of its own, whose map was checked
        if (!shares_vocabulary(&env->adapters[i], "adapter", env, e)) return false;
    }
    return true;
}

// Whether there are adapters of this input, on the target's last layer or below.
static bool has_adapters(const MethodEnv *env, InputKind input, bool final) {
    bool last = env->adapter_layer == env->target->shape.layers;
    return env->adapter_count && env->adapters[0].shape.input == input && last == final;
}

static bool check_needs(const MethodInfo *info, const MethodEnv *env, Error *e) {
    if (info->needs & NEEDS_DRAFT && !env->draft)
        return error_input(e, "a draft model is needed: give one with --draft DIR, in a config draft: DIR");
    if (info->needs & NEEDS_DRAFT && !shares_vocabulary(env->draft, "draft model", env, e)) return false;
    if (info->needs & NEEDS_ADAPTER && (env->adapter_count != 1 || !has_adapters(env, INPUT_HIDDEN, false)))
        return error_input(e, "an adapter on one of the target's lower layers is needed: give one with "
                              "--adapter DIR, in a config adapter: DIR");
    if (info->needs & NEEDS_EAGLE && !has_adapters(env, INPUT_FUSED, true))
        return error_input(e, "a draft of EAGLE-1 or 2 is needed: give one with --adapter DIR");
    if (info->needs & NEEDS_EAGLE3 && !has_adapters(env, INPUT_PAIRED, true))
        return error_input(e, "a draft of EAGLE-3 is needed: give one with --adapter DIR");
    if (info->needs & NEEDS_HEADS && !has_adapters(env, INPUT_HIDDEN, true))
        return error_input(e,
                           "Medusa heads are needed: give them with --adapter DIR, in a config heads: DIR");
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

void method_describe(const MethodInfo *info, Text *out) {
    text_printf(out, "%s\n    %s\n", info->name, info->summary);
    args_describe(info->params, info->param_count, out);
}
