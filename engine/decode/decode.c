// The decode loop. The loop owns the sequence, prompt and output in one array; the session has committed all
// of it except the last token, which is the root of the next step.
//
// Invariants between steps, asserted by decode_check():
//  1. committed tokens = sequence length - 1;
//  2. prompt length <= sequence length <= limit <= the session's context.
#include "engine/decode/decode.h"

#include "engine/base/memory.h"
#include "engine/core/batch.h"
#include "engine/decode/call.h"

#include <assert.h>
#include <string.h>

typedef struct Loop {
    Session *target;
    Method *method;
    const DecodeOptions *o;
    Verifier verifier;
    PassLog *log;                    // of the open step
    StepGuess *rejected;             // (TREE_MAX_NODES) of the open step; NULL: they aren't recorded
    int *sequence;                   // (limit + 1)
    int length, prompt_count, limit; // tokens of prompt and output together
    bool ended;                      // by EOS, the limit, or the caller
    PhaseSeconds worked;             // by the target, up to this step
    DecodeResult *out;
} Loop;

static void decode_check(const Loop *l) {
    assert(l->target->cache.length == l->length - 1);
    assert(l->prompt_count >= 1 && l->prompt_count <= l->length);
    assert(l->length <= l->limit && l->limit <= l->target->context);
}

static double now(const Loop *l) { return clock_now(l->o->clock); }

static bool is_eos(const DecodeOptions *o, int token) {
    for (int i = 0; i < o->eos_count && !o->ignore_eos; i++)
        if (o->eos[i] == token) return true;
    return false;
}

// The device's time since the last call; -1 each if the device has no clock.
static PhaseSeconds device_seconds(Loop *l) {
    PhaseSeconds before = l->worked, worked;
    if (!session_worked(l->target, &worked)) return (PhaseSeconds){-1, -1, -1};
    l->worked = worked;
    return (PhaseSeconds){worked.run - before.run, worked.head - before.head, worked.commit - before.commit};
}

// --- reports

static void report_nodes(const Tree *t, StepReport *r) {
    r->rows = t->count;
    r->asked = t->asked;
    r->parts = t->parts;
    for (int i = 0; i < t->parts; i++)
        r->part_rows[i] = (i + 1 < t->parts ? t->part_root[i + 1] : t->count) - t->part_root[i];
    for (int i = 0; i < t->count; i++) {
        if (t->flags[i] & NODE_CANDIDATE && t->depth[i] > r->depth) r->depth = t->depth[i];
        r->probes += (t->flags[i] & NODE_PROBE) != 0;
        r->candidates += (t->flags[i] & NODE_CANDIDATE) != 0;
    }
}

static void report_chain(const Session *s, StepReport *r) {
    const Tree *t = &s->tree;
    int node = 0, i;
    while ((i = t->first_proposal[node]) != TREE_NONE && t->proposals[i].next == TREE_NONE) { // the only one
        int child = t->proposals[i].child;
        if (r->chain < 64 && session_argmax(s, node) == t->token[child]) r->agrees |= 1ull << r->chain;
        r->chain++;
        node = child;
    }
}

static void check_report(const StepReport *r) {
    int rows = 0;
    for (int i = 0; i < r->parts; i++) rows += r->part_rows[i];
    assert(rows == r->rows && r->rows >= 1 && r->rows <= r->asked && r->candidates <= r->rows);
    assert(r->accepted >= 0 && r->accepted <= r->tried && r->accepted <= r->depth);
    assert(r->emitted >= 1 && r->emitted <= r->accepted + 1);
    assert(r->chain <= r->candidates && r->source_count <= SOURCES_MAX && r->pass_count <= PASS_LOG_SIZE);
}

// Everything in the report that comes from the tree and the verdict; called before anything is committed.
static void report_tree(const Loop *l, const Verdict *v, StepReport *r) {
    const MethodInfo *info = l->method->info;
    const Sources *sources = method_sources(l->method);
    report_nodes(&l->target->tree, r);
    report_chain(l->target, r);
    r->accepted = v->accepted;
    r->tried = v->tried;
    if (sources) {
        r->source_count = sources->source_count;
        sources_judge(sources, &l->target->tree, v, r->sources);
    }
    const RankTree *ranks = info->rank_tree ? info->rank_tree(l->method->self) : NULL;
    if (ranks) rank_tree_follow(ranks, &l->target->tree, v, &r->ranks);
    if (info->note) info->note(l->method->self, &r->note);
}

// The proposals that a step rejected, and its margin, which takes the head's two best tokens and so is only
// known of greedy output in a single process. That extra pass of the head is not logged. Called before
// anything is committed.
static bool record(Loop *l, const Verdict *v, StepReport *r, Error *e) {
    const Tree *t = &l->target->tree;
    int path[TREE_MAX_NODES], ids[2], last = v->node;
    float logits[2];
    bool ok = true, alone = !l->target->lane && !l->out->ranks && sampling_is_greedy(&l->o->sampling);
    int length = tree_path(t, v->node, path);
    for (int i = 0; i < length; i++)
        for (int q = t->first_proposal[path[i]]; q != TREE_NONE; q = t->proposals[q].next) {
            int child = t->proposals[q].child;
            if (r->rejected_count < TREE_MAX_NODES && (i + 1 == length || child != path[i + 1]))
                l->rejected[r->rejected_count++] = (StepGuess){i + 1, t->token[child]};
        }
    r->rejected = l->rejected;
    l->target->log = NULL;
    if (alone) ok = session_top(l->target, &last, 1, 2, ids, logits, e);
    l->target->log = l->log;
    r->margin = alone && ok ? (double)(logits[0] - logits[1]) : -1;
    return ok;
}

// propose_s of prefill is the time of the method's begin. Prefill emits nothing: the prompt's last token is
// the first step's root.
static StepReport report_prefill(int rows, const PassLog *log, double forward_s, double begin_s) {
    return (StepReport){.number = -1,
                        .note.kind = STEP_PREFILL,
                        .rows = rows,
                        .asked = rows,
                        .parts = 1,
                        .part_rows = {rows},
                        .passes = log->passes,
                        .pass_count = log->count,
                        .propose_s = begin_s,
                        .forward_s = forward_s};
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
    out->latency_s += r->latency_s;
    out->record_s += r->record_s;
    if (r->device.run >= 0) {
        out->device.run += r->device.run;
        out->device.head += r->device.head;
        out->device.commit += r->device.commit;
    }
    out->source_count = r->source_count;
    sources_add(out->sources, r->sources, r->source_count);
}

// --- prefill

// The method looks at each part of the prompt when it has run.
static bool part_ran(void *loop, int first, int count, Error *e) {
    const Loop *l = loop;
    const MethodInfo *info = l->method->info;
    return !info->prefilled || info->prefilled(l->method->self, l->sequence, first, count, e);
}

static bool prefill(Loop *l, float **hidden, Error *e) {
    const MethodInfo *info = l->method->info;
    int layer = info->hidden_layer ? info->hidden_layer(l->method->self) : HIDDEN_NONE;
    const Captures *captures = info->captures ? info->captures(l->method->self) : NULL;
    int count = l->prompt_count - 1, states = captures ? captures->count : 1;
    if (!session_capture(l->target, captures, e)) return false;
    if (captures) layer = LAYERS_CAPTURED;
    if (layer != HIDDEN_NONE) {
        size_t width = (size_t)states * (size_t)l->target->shape.width;
        *hidden = mem_try((size_t)count * width, sizeof **hidden);
        if (!*hidden) return error_system(e, "out of memory for the hidden states of %d tokens", count);
    }
    Prefill p = {.tokens = l->sequence,
                 .count = count,
                 .chunk = l->o->prefill_chunk,
                 .hidden_layer = layer,
                 .hidden = *hidden,
                 .ran = part_ran,
                 .state = l};
    return session_prefill_parts(l->target, &p, e);
}

static bool begin(Loop *l, bool held, Error *e) {
    float *hidden = NULL;
    double t0 = now(l);
    bool ok = held ? session_capture(l->target, NULL, e) : prefill(l, &hidden, e);
    double t1 = now(l);
    Prompt prompt = {l->sequence, l->prompt_count, hidden, l->o->seed, l->o->answer, l->o->answer_count};
    session_keep_top(l->target, 0);
    ok = ok && l->method->info->begin(l->method->self, &prompt, e);
    mem_free(hidden);
    double t2 = now(l);
    l->out->prefill_s = t2 - t0;
    l->out->prompt_s = held || method_reads_prompt(l->method) ? 0 : t1 - t0;
    l->out->prompt_held = held;
    if (device_seconds(l).run < 0) l->out->device = (PhaseSeconds){-1, -1, -1};
    StepReport r = report_prefill(l->prompt_count - 1, l->log, t1 - t0, t2 - t1);
    if (ok && l->o->prefill) l->o->prefill(l->o->state, &r);
    return ok;
}

// --- a step

static bool propose(Loop *l, Error *e) {
    const MethodInfo *info = l->method->info;
    pass_log_clear(l->log);
    if (info->prepare && !info->prepare(l->method->self, e)) return false;
    session_begin_step(l->target, l->o->merge, l->o->layout);
    if (l->o->max_rows > 0) tree_limit_rows(&l->target->tree, l->o->max_rows);
    UNUSED int root = tree_root(&l->target->tree, l->sequence[l->length - 1]);
    assert(root == 0);
    if (l->out->ranks) ranks_digest(l->target, info->digest(l->method->self));
    return info->propose(l->method->self, &l->target->tree, e);
}

// The step's tokens: the accepted ones, then the bonus unless the method drops it (method.h: drops_bonus).
// Returns how many.
static int gather(Loop *l, const Verdict *v, int *tokens) {
    const Tree *t = &l->target->tree;
    const MethodInfo *info = l->method->info;
    int path[TREE_MAX_NODES], n = 0;
    tree_path(t, v->node, path);
    for (int i = 1; i <= v->accepted; i++) tokens[n++] = t->token[path[i]];
    bool full = v->accepted > 0 && t->first_proposal[v->node] == TREE_NONE;
    assert(n == v->accepted && v->bonus < t->vocab);
    bool drop = full && info->drops_bonus && info->drops_bonus(l->method->self, v);
    if (!drop) tokens[n++] = v->bonus;
    return n;
}

// Appends tokens until one ends the output. Returns how many were emitted.
static int emit(Loop *l, const int *tokens, int count) {
    int n = 0;
    while (n < count && !l->ended) {
        int token = tokens[n++];
        l->sequence[l->length++] = token;
        l->out->ended_by_eos = is_eos(l->o, token);
        bool more = !l->o->emit || l->o->emit(l->o->state, token);
        l->ended = l->out->ended_by_eos || !more || l->length == l->limit;
    }
    return n;
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

static bool step(Loop *l, Error *e) {
    StepReport r = {.number = l->out->steps, .context = l->target->cache.length};
    int tokens[TREE_MAX_NODES + 1];
    Verdict v;
    decode_check(l);
    Lane *lane = l->target->lane;
    double began = lane ? lane_time(lane) : 0, t0 = now(l);
    if (!propose(l, e)) return false;
    double t1 = now(l);
    if (!session_run(l->target, l->target->shape.layers, e) || !verifier_read(&l->verifier, l->target, e))
        return false;
    double t2 = now(l);
    if (!verify(&l->verifier, l->target, &v, e)) return false;
    report_tree(l, &v, &r);
    PhaseSeconds worked = {0};
    if (l->rejected) { // outside of all times, the device's too
        double from = now(l);
        worked = device_seconds(l);
        if (!record(l, &v, &r, e)) return false;
        device_seconds(l);
        r.record_s = now(l) - from;
    }
    r.emitted = emit(l, tokens, gather(l, &v, tokens));
    if (!session_commit(l->target, v.node, r.emitted, e)) return false;
    double t3 = now(l);
    if (!observe(l, &v, tokens, r.emitted, e)) return false;
    r.propose_s = t1 - t0;
    r.forward_s = t2 - t1;
    r.verify_s = t3 - t2 - r.record_s;
    double t4 = now(l);
    r.observe_s = t4 - t3;
    if (lane) {
        r.sequences = lane_shared(lane).sequences;
        r.shared_run = lane_shared(lane).number;
    }
    r.latency_s = lane ? lane_time(lane) - began : t4 - t0 - r.record_s;
    r.device = device_seconds(l);
    if (l->rejected && r.device.run >= 0) {
        r.device.run += worked.run;
        r.device.head += worked.head;
        r.device.commit += worked.commit;
    }
    r.passes = l->log->passes;
    r.pass_count = l->log->count;
    check_report(&r);
    add_step(l->out, &r);
    if (l->o->step) l->o->step(l->o->state, &r);
    decode_check(l);
    return true;
}

// --- the whole output

static bool check_prompt(const Session *s, const int *prompt, int count, Error *e) {
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

// Makes every model that runs in a step write its passes to this log; NULL: to none.
static void log_passes(const Loop *l, PassLog *log) {
    const Method *m = l->method;
    l->target->log = log;
    l->target->log_as = PASS_TARGET;
    if (m->draft) m->draft->log = log;
    if (m->draft) m->draft->log_as = PASS_DRAFT;
    for (const AdapterSet *a = m->adapters; a < m->adapters + ADAPTER_SETS; a++)
        for (int i = 0; i < a->count; i++) {
            a->sessions[i].log = log;
            a->sessions[i].log_as = PASS_ADAPTER;
        }
}

static void finish(Loop *l) {
    DecodeResult *out = l->out;
    out->tokens = l->length - l->prompt_count;
    assert(out->steps <= out->tokens); // each step emits
    out->S = out->steps ? (double)out->tokens / out->steps : 0;
    out->S_reference = (double)(out->tokens + 1) / (out->steps + 1);
    memmove(l->sequence, l->sequence + l->prompt_count, (size_t)out->tokens * sizeof(int));
    out->ids = l->sequence;
}

// The prompt was run by every rank; from now on steps are shared.
static void share(Loop *l) {
    RankLimits most;
    l->out->ranks = l->method->info->ranks(l->method->self, &most);
    ranks_begin(l->target, &most, !sampling_is_greedy(&l->o->sampling));
}

bool decode(Session *target, Method *method, const int *prompt, int count, const DecodeOptions *o,
            DecodeResult *out, Error *e) {
    *out = (DecodeResult){0};
    bool shared = call_is_shared(target, method);
    if (!check_prompt(target, prompt, count, e)) return false;
    if (shared && ranks_team(target->ranks)->rank == 0 && !call_answer(target, method, prompt, count, o, e))
        return false;
    int room = target->context - count, asked = o->max_tokens > 0 ? o->max_tokens : 0;
    Loop l = {.target = target, .method = method, .o = o, .out = out, .length = count, .prompt_count = count};
    l.limit = count + (asked < room ? asked : room);
    l.ended = l.limit == count;
    verifier_init(&l.verifier, &o->sampling, o->seed, target->shape.vocab);
    l.verifier.blocks = o->verification == VERIFICATION_BLOCK && method_drafts_chain(method, NULL);
    l.sequence = mem_new((size_t)l.limit + 1, sizeof *l.sequence);
    l.log = mem_new(1, sizeof *l.log);
    if (o->record) l.rejected = mem_new(TREE_MAX_NODES, sizeof *l.rejected);
    memcpy(l.sequence, prompt, (size_t)count * sizeof *prompt);
    log_passes(&l, l.log);
    bool held = o->share_prompt && !shared && !method_reads_prompt(method) &&
                session_rewind(target, prompt, count - 1);
    if (!held) session_reset(target);
    bool ok = begin(&l, held, e);
    if (shared) share(&l);
    if (ok && target->lane) lane_enter(target->lane);
    while (ok && !l.ended) { // progress is reported between steps, when no clock runs
        double share = (double)(l.length - count) / o->max_tokens;
        ok = progress_say(&target->progress, DECODING, share, e) && step(&l, e);
    }
    if (target->lane) lane_leave(target->lane);
    if (shared) ok = ranks_end(target, ok, &out->times, e);
    log_passes(&l, NULL);
    MEM_FREE(l.log, l.rejected);
    verifier_release(&l.verifier);
    if (ok) finish(&l);
    else mem_free(l.sequence);
    return ok;
}

void decode_result_release(DecodeResult *r) {
    mem_free(r->ids);
    *r = (DecodeResult){0};
}
