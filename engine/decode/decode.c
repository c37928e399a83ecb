// A step, as told in decode.h. The sequence is kept here, prompt and output in one array; the session holds
// all of it but the last token, which is the next step's root.
//
// Invariant between steps: session length = sequence length - 1.
#include "engine/decode/decode.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

typedef struct Loop {
    Session *target;
    Method *method;
    const DecodeOptions *o;
    Verifier verifier;
    PassLog *log;                    // of the open step
    int *sequence;                   // (limit + 1)
    int length, prompt_count, limit; // tokens of prompt and output together
    bool ended;                      // by EOS, the limit, or the caller
    PhaseSeconds worked;             // the target, until this step
    DecodeResult *out;
} Loop;

static double now(const Loop *l) { return clock_now(l->o->clock); }

static bool is_eos(const DecodeOptions *o, int token) {
    for (int i = 0; i < o->eos_count && !o->ignore_eos; i++)
        if (o->eos[i] == token) return true;
    return false;
}

// Since the last call; -1 each where the device does not say.
static PhaseSeconds device_seconds(Loop *l) {
    PhaseSeconds before = l->worked, now;
    if (!session_worked(l->target, &now)) return (PhaseSeconds){-1, -1, -1};
    l->worked = now;
    return (PhaseSeconds){now.run - before.run, now.head - before.head, now.commit - before.commit};
}

static bool prefill(Loop *l, float **hidden, Error *e) {
    const MethodInfo *info = l->method->info;
    int layer = info->hidden_layer ? info->hidden_layer(l->method->self) : HIDDEN_NONE,
        count = l->prompt_count - 1;
    if (layer != HIDDEN_NONE) {
        *hidden = mem_alloc((size_t)count * (size_t)l->target->shape.width, sizeof **hidden);
        if (!*hidden) return error_system(e, "out of memory for the hidden states of %d tokens", count);
    }
    return session_prefill(l->target, l->sequence, count, l->o->prefill_chunk, layer, *hidden, e);
}

static bool begin(Loop *l, Error *e) {
    float *hidden = NULL;
    double t0 = now(l);
    bool ok = prefill(l, &hidden, e);
    double t1 = now(l);
    Prompt prompt = {l->sequence, l->prompt_count, hidden, l->o->seed};
    ok = ok && l->method->info->begin(l->method->self, &prompt, e);
    mem_free(hidden);
    double t2 = now(l);
    l->out->prefill_s = t2 - t0;
    if (device_seconds(l).run < 0) l->out->device = (PhaseSeconds){-1, -1, -1};
    StepReport r = report_prefill(l->prompt_count - 1, l->log, t1 - t0, t2 - t1);
    if (ok && l->o->prefill) l->o->prefill(l->o->state, &r);
    return ok;
}

// Appends tokens until one ends the output; gives how many were emitted.
static int emit(Loop *l, const int *tokens, int count) {
    int n = 0;
    while (n < count && !l->ended) {
        int token = tokens[n++];
        l->sequence[l->length++] = token;
        l->out->ended_by_eos = is_eos(l->o, token);
        bool go_on = !l->o->emit || l->o->emit(l->o->state, token);
        l->ended = l->out->ended_by_eos || !go_on || l->length == l->limit;
    }
    return n;
}

// The step's tokens: what was accepted, then the bonus unless it is dropped (method.h says when it may be).
static int gather(Loop *l, const Verdict *v, int *tokens) {
    const Tree *t = &l->target->tree;
    const MethodInfo *info = l->method->info;
    int path[TREE_MAX_NODES], n = 0;
    tree_path(t, v->node, path);
    for (int i = 1; i <= v->accepted; i++) tokens[n++] = t->token[path[i]];
    bool full = v->accepted > 0 && t->first_proposal[v->node] == TREE_NONE;
    bool drop = full && info->drops_bonus && info->drops_bonus(l->method->self, v);
    if (!drop) tokens[n++] = v->bonus;
    return n;
}

static void judge_sources(const Loop *l, const Verdict *v, StepReport *r) {
    const MethodInfo *info = l->method->info;
    const Offers *offers = info->offers ? info->offers(l->method->self) : NULL;
    if (!offers) return;
    r->source_count = offers->source_count;
    sources_judge(offers, &l->target->tree, v, r->sources);
}

static bool propose(Loop *l, Error *e) {
    pass_log_clear(l->log);
    session_begin_step(l->target, l->o->merge, l->o->layout);
    if (l->o->max_rows > 0) tree_limit_rows(&l->target->tree, l->o->max_rows);
    int root = tree_root(&l->target->tree, l->sequence[l->length - 1]);
    assert(root == 0);
    (void)root;
    return l->method->info->propose(l->method->self, &l->target->tree, e);
}

static bool forward(Loop *l, Error *e) {
    return session_run(l->target, l->target->shape.layers, e) && verifier_read(&l->verifier, l->target, e);
}

// Emits what the verdict gives and commits all of it but the last token, the next root.
static bool settle(Loop *l, const Verdict *v, int *tokens, StepReport *r, Error *e) {
    int count = gather(l, v, tokens);
    r->emitted = emit(l, tokens, count);
    return session_commit(l->target, v->node, r->emitted, e);
}

static bool observe(Loop *l, const Verdict *v, const int *tokens, int emitted, Error *e) {
    Observation seen = {.target = l->target,
                        .verdict = v,
                        .emitted = tokens,
                        .emitted_count = emitted,
                        .sequence = l->sequence,
                        .length = l->length};
    return l->method->info->observe(l->method->self, &seen, e);
}

static void add_step(DecodeResult *out, const StepReport *r) {
    out->steps++;
    out->rows += r->rows;
    out->parts = r->parts > out->parts ? r->parts : out->parts;
    for (int i = 0; i < r->parts; i++) out->part_rows[i] += r->part_rows[i];
    out->propose_s += r->propose_s;
    out->forward_s += r->forward_s;
    out->verify_s += r->verify_s;
    out->observe_s += r->observe_s;
    if (r->device.run >= 0) {
        out->device.run += r->device.run;
        out->device.head += r->device.head;
        out->device.commit += r->device.commit;
    }
    out->source_count = r->source_count;
    sources_add(out->sources, r->sources, r->source_count);
}

static bool step(Loop *l, Error *e) {
    StepReport r = {.number = l->out->steps, .context = l->target->cache.length};
    int tokens[TREE_MAX_NODES + 1];
    Verdict v;
    double t0 = now(l);
    if (!propose(l, e)) return false;
    double t1 = now(l);
    if (!forward(l, e)) return false;
    double t2 = now(l);
    if (!verify(&l->verifier, l->target, &v, e)) return false;
    report_tree(l->target, &v, &r);
    judge_sources(l, &v, &r);
    if (l->method->info->note) l->method->info->note(l->method->self, &r.note);
    if (!settle(l, &v, tokens, &r, e)) return false;
    double t3 = now(l);
    if (!observe(l, &v, tokens, r.emitted, e)) return false;
    r.propose_s = t1 - t0;
    r.forward_s = t2 - t1;
    r.verify_s = t3 - t2;
    r.observe_s = now(l) - t3;
    r.device = device_seconds(l);
    r.passes = l->log->passes;
    r.pass_count = l->log->count;
    add_step(l->out, &r);
    if (l->o->step) l->o->step(l->o->state, &r);
    return true;
}

// Between steps, when no time is taken.
static bool go_on(const Loop *l, Error *e) {
    return progress_say(&l->target->progress, DECODING,
                        (double)(l->length - l->prompt_count) / l->o->max_tokens, e);
}

static bool check(const Session *s, const int *prompt, int count, Error *e) {
    if (count < 1) return error_input(e, "the prompt is empty: give at least one token");
    if (count > s->context)
        return error_input(
            e, "the prompt has %d tokens, the context holds %d; shorten it%s", count, s->context,
            s->context < s->shape.context ? " or raise --context" : ", for the model holds no more");
    for (int i = 0; i < count; i++)
        if (prompt[i] < 0 || prompt[i] >= s->shape.vocab)
            return error_input(e, "token %d of the prompt is %d, outside the vocabulary of %d", i, prompt[i],
                               s->shape.vocab);
    return true;
}

// Lets all that runs note its passes in the log, or in none.
static void note_passes(const Loop *l, PassLog *log) {
    const Method *m = l->method;
    l->target->log = log;
    l->target->log_as = PASS_TARGET;
    if (m->draft) m->draft->log = log;
    if (m->draft) m->draft->log_as = PASS_DRAFT;
    for (int i = 0; i < m->adapter_count; i++) {
        m->adapters[i].log = log;
        m->adapters[i].log_as = PASS_ADAPTER;
    }
}

static void finish(Loop *l) {
    DecodeResult *out = l->out;
    out->tokens = l->length - l->prompt_count;
    out->S = out->steps ? (double)out->tokens / out->steps : 0;
    out->S_reference = (double)(out->tokens + 1) / (out->steps + 1);
    memmove(l->sequence, l->sequence + l->prompt_count, (size_t)out->tokens * sizeof(int));
    out->ids = l->sequence;
}

bool decode(Session *target, Method *method, const int *prompt, int count, const DecodeOptions *o,
            DecodeResult *out, Error *e) {
    *out = (DecodeResult){0};
    if (!check(target, prompt, count, e)) return false;
    int room = target->context - count, asked = o->max_tokens > 0 ? o->max_tokens : 0;
    Loop l = {.target = target, .method = method, .o = o, .out = out, .length = count, .prompt_count = count};
    l.limit = count + (asked < room ? asked : room);
    l.ended = l.limit == count;
    l.sequence = mem_alloc((size_t)l.limit + 1, sizeof *l.sequence);
    l.log = mem_alloc(1, sizeof *l.log);
    bool ok = (l.sequence && l.log) || error_system(e, "out of memory for %d tokens", l.limit);
    ok = ok && verifier_init(&l.verifier, &o->sampling, o->seed, target->shape.vocab, e);
    if (ok) {
        memcpy(l.sequence, prompt, (size_t)count * sizeof *prompt);
        session_reset(target);
        note_passes(&l, l.log);
        ok = begin(&l, e);
        while (ok && !l.ended) ok = go_on(&l, e) && step(&l, e);
    }
    note_passes(&l, NULL);
    mem_free(l.log);
    verifier_release(&l.verifier);
    if (ok) finish(&l);
    else mem_free(l.sequence);
    return ok;
}

void decode_result_release(DecodeResult *r) {
    mem_free(r->ids);
    *r = (DecodeResult){0};
}
