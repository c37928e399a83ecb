// Calls are plain bytes: all ranks run the same program (harness/ranks), so a struct is the same on all.
#include "engine/decode/call.h"

#include "engine/base/memory.h"

#include <string.h>

bool call_is_shared(const Session *target, const Method *method) {
    RankLimits most;
    const MethodInfo *info = method->info;
    if (!target->ranks || !info->ranks) return false;
    int ranks = info->ranks(method->self, &most);
    return ranks > 1 && ranks == ranks_team(target->ranks)->count;
}

static uint64_t name_of(const Method *m) { return (uint64_t)(uintptr_t)m->self; }

bool call_answer(Session *target, Method *m, const int *prompt, int count, const DecodeOptions *o, Error *e) {
    const Team *team = ranks_team(target->ranks);
    const Text *opening = ranks_opening(target->ranks);
    LOCAL_TEXT method = {0}, message = {0};
    text_puts(&method, m->info->name);
    if (m->info->param_count) text_puts(&method, ":");
    args_write(m->info->params, m->info->param_count, m->values, &method);
    Call call = {.kind = CALL_ANSWER,
                 .method = name_of(m),
                 .first = !m->told,
                 .seed = m->seed,
                 .sampling = m->sampling,
                 .eos = m->eos_count > 0,
                 .o = *o,
                 .prompt_count = count,
                 .opening_bytes = opening->length,
                 .text_bytes = method.length + 1};
    text_add(&message, (const char *)&call, sizeof call);
    text_add(&message, text_get(opening), opening->length);
    text_add(&message, text_get(&method), method.length + 1);
    text_add(&message, (const char *)o->eos, (size_t)o->eos_count * sizeof *o->eos);
    text_add(&message, (const char *)prompt, (size_t)count * sizeof *prompt);
    bool ok = team->tell(team->self, &message, e) && ranks_agree(team, true, e);
    m->told = target;
    return ok;
}

static bool tell(const Team *team, const Call *call, Error *e) {
    LOCAL_TEXT message = {0};
    text_add(&message, (const char *)call, sizeof *call);
    return team->tell(team->self, &message, e);
}

void call_close(Method *m) {
    const Team *team = m->told && m->told->ranks ? ranks_team(m->told->ranks) : NULL;
    if (team && team->rank == 0) tell(team, &(Call){.kind = CALL_CLOSE, .method = name_of(m)}, NULL);
    m->told = NULL;
}

bool call_quit(const Team *team, Error *e) { return tell(team, &(Call){.kind = CALL_QUIT}, e); }

static int *take_ints(const char **at, int count) {
    size_t bytes = (size_t)count * sizeof(int);
    int *out = mem_new((size_t)count + 1, sizeof *out);
    if (bytes) memcpy(out, *at, bytes);
    *at += bytes;
    return out;
}

bool call_read(const Text *message, CallView *out, Error *e) {
    const char *at = text_get(message);
    *out = (CallView){0};
    Call *c = &out->call;
    if (message->length < sizeof *c) return error_system(e, "rank 0 sent %zu bytes", message->length);
    memcpy(c, at, sizeof *c);
    size_t ints = ((size_t)c->o.eos_count + (size_t)c->prompt_count) * sizeof(int);
    if (message->length != sizeof *c + c->opening_bytes + c->text_bytes + ints)
        return error_system(e, "rank 0 sent %zu bytes", message->length);
    at += sizeof *c;
    out->opening = at;
    out->text = at + c->opening_bytes;
    at = out->text + c->text_bytes;
    out->eos = take_ints(&at, c->o.eos_count);
    out->prompt = take_ints(&at, c->prompt_count);
    c->o.eos = out->eos;
    c->o.answer = NULL;
    c->o.answer_count = 0;
    c->o.emit = NULL;
    c->o.prefill = c->o.step = NULL;
    c->o.state = NULL;
    c->o.clock = clock_monotonic();
    return true;
}

MethodEnv call_env(const CallView *v, Session *target, const int *eos, int eos_count) {
    const Call *c = &v->call;
    return (MethodEnv){.target = target,
                       .sampling = c->sampling,
                       .seed = c->seed,
                       .eos = eos,
                       .eos_count = c->eos ? eos_count : 0};
}

void call_release(CallView *v) {
    MEM_FREE(v->eos, v->prompt);
    *v = (CallView){0};
}
