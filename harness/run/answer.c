// Answers and their certificates. Step reports are copied between two steps, while no clock runs. Invariant
// of a turn: the passes of its steps are stored one after another in `passes`, pass_count in total, so a step
// needs no pointer to its own.
#include "harness/run/answer.h"

#include "engine/base/memory.h"
#include "results/record.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void answer_step(AnswerTurn *t, const StepReport *report) {
    size_t n = (size_t)report->number, more = (size_t)report->pass_count;
    mem_grow(&t->steps, &t->step_capacity, n + 1, sizeof *t->steps);
    mem_grow(&t->passes, &t->pass_capacity, t->pass_count + more, sizeof *t->passes);
    if (more) memcpy(t->passes + t->pass_count, report->passes, more * sizeof *t->passes);
    t->pass_count += more;
    more = (size_t)report->rejected_count;
    mem_grow(&t->rejected, &t->rejected_capacity, t->rejected_count + more, sizeof *t->rejected);
    if (more) memcpy(t->rejected + t->rejected_count, report->rejected, more * sizeof *t->rejected);
    t->rejected_count += more;
    t->steps[n] = *report;
    t->steps[n].passes = NULL; // the report's arrays are reused in the next step
    t->steps[n].rejected = NULL;
}

static void take_step(void *state, const StepReport *report) { answer_step(state, report); }

static void answer_turn_check(const AnswerTurn *t) {
    size_t passes = 0;
    for (int i = 0; i < t->result.steps; i++) {
        assert(t->steps[i].number == i && !t->steps[i].passes);
        passes += (size_t)t->steps[i].pass_count;
    }
    assert(passes == t->pass_count);
}

void answer_turn_release(AnswerTurn *t) {
    ids_release(&t->prompt);
    decode_result_release(&t->result);
    MEM_FREE(t->steps, t->passes, t->rejected);
    *t = (AnswerTurn){0};
}

void answer_release(Answer *a) {
    for (int i = 0; i < a->count; i++) answer_turn_release(&a->turns[i]);
    mem_free(a->turns);
    *a = (Answer){0};
}

double answer_decode_seconds(const DecodeResult *r) {
    return r->propose_s + r->forward_s + r->verify_s + r->observe_s;
}

// The last answer of the round that ran this prompt and nothing besides, or NULL.
static const AnswerTurn *runner_of(const AnswerEnv *env, const IdList *prompt) {
    const AnswerTurn *runner = NULL;
    for (const Answer *a = env->round; a && a < env->round + env->round_count; a++)
        for (const AnswerTurn *t = a->turns; t < a->turns + a->count; t++)
            if (t->result.prompt_s > 0 && t->prompt.count == prompt->count &&
                memcmp(t->prompt.ids, prompt->ids, prompt->count * sizeof *prompt->ids) == 0)
                runner = t;
    return runner;
}

bool answer_prompt(const AnswerEnv *env, Method *method, const Settings *settings, char *const *turns,
                   int count, const Answer *known, Answer *out, Error *e) {
    LOCAL(conversation_release) Conversation c;
    bool ok = true;
    assert(!out->turns && out->count == 0);
    out->turns = mem_new((size_t)count, sizeof *out->turns);
    conversation_begin(&c, env->tokenizer, env->template);
    for (int i = 0; ok && i < count; i++) {
        AnswerTurn *turn = &out->turns[out->count++];
        // Every method and pass has the same seed: S is measured once per seed, and repeats measure time.
        DecodeOptions o = {.max_tokens = settings->max_tokens,
                           .eos = env->eos,
                           .eos_count = env->eos_count,
                           .ignore_eos = settings->ignore_eos,
                           .sampling = {settings->temperature, settings->top_k, settings->top_p},
                           .verification = settings->verification,
                           .seed = random_at((uint64_t)settings->seed, STREAM_BENCH,
                                             (uint64_t)out->prompt * CONVERSATION_TURNS + (uint64_t)i),
                           .layout = settings->engine.layout,
                           .merge = !settings->engine.no_merge,
                           .max_rows = settings->engine.max_rows,
                           .clock = env->clock,
                           .record = env->record,
                           .step = take_step,
                           .state = turn};
        if (known && i < known->count) { // prompts of turns are equal as long as their answers are
            o.answer = known->turns[i].result.ids;
            o.answer_count = known->turns[i].result.tokens;
        }
        ok = conversation_ask(&c, turns[i], &turn->prompt, e);
        if (ok && i > 0 && turn->prompt.count >= (size_t)env->target->context) {
            answer_turn_release(
                &out->turns[--out->count]); // no room for a single token: the conversation ends
            break;
        }
        const AnswerTurn *runner = ok ? runner_of(env, &turn->prompt) : NULL;
        o.share_prompt = runner;
        turn->began = clock_wall();
        ok = ok &&
             decode(env->target, method, turn->prompt.ids, (int)turn->prompt.count, &o, &turn->result, e);
        if (!ok) break;
        answer_turn_check(turn);
        turn->flags = env->watch ? watch_judge(env->watch) : 0;
        if (turn->result.prompt_held) {
            turn->shared_s = runner->result.prompt_s;
            turn->result.prefill_s += turn->shared_s;
            turn->flags |= runner->flags & FLAGS_FROM_OUTSIDE;
        }
        if (!turn->result.ended_by_eos) turn->flags |= FLAG_CUT;
        ok = conversation_reply(&c, turn->result.ids, turn->result.tokens, e);
    }
    return ok;
}

// --- certificates ----------------------------------------------------------------------------------------

enum { AT_ONCE = 64 }; // tokens per forward: each has logits of the whole vocabulary

// Runs tokens as one chain after the committed ones, so that node i's logits can be read.
static bool read_chain(Session *s, const int *tokens, int count, Error *e) {
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, tokens[0]);
    for (int i = 1; i < count; i++) node = tree_probe(&s->tree, node, tokens[i], true);
    return session_run(s, s->shape.layers, e) && session_read(s, HEAD_LOGITS, e);
}

static int *join(const IdList *prompt, const int *ids, int count) {
    int *all = mem_new(prompt->count + (size_t)count + 1, sizeof *all);
    memcpy(all, prompt->ids, prompt->count * sizeof *all);
    if (count) memcpy(all + prompt->count, ids, (size_t)count * sizeof *all);
    return all;
}

static float margin_of(const float *logits, int vocab) {
    float best = -INFINITY, second = -INFINITY;
    for (int i = 0; i < vocab; i++) {
        if (logits[i] > best) {
            second = best;
            best = logits[i];
        } else if (logits[i] > second) second = logits[i];
    }
    return best - second;
}

bool certify_greedy(Session *s, const IdList *prompt, const DecodeResult *want, const DecodeResult *got,
                    Divergence *out, Error *e) {
    int n = 0, last = (int)prompt->count - 1;
    while (n < want->tokens && n < got->tokens && want->ids[n] == got->ids[n]) n++;
    *out = (Divergence){.position = -1};
    if (n == want->tokens && n == got->tokens) return true;
    *out = (Divergence){.position = n,
                        .want = n < want->tokens ? want->ids[n] : -1,
                        .got = n < got->tokens ? got->ids[n] : -1};
    LOCAL_MEMORY int *all = join(prompt, want->ids, n);
    session_reset(s);
    bool ok = session_prefill(s, all, last + n, 0, 0, NULL, e) && read_chain(s, all + last + n, 1, e);
    if (!ok) return false;
    const float *logits = session_logits(s, 0);
    out->margin = margin_of(logits, s->shape.vocab);
    if (out->want >= 0) out->logits[0] = logits[out->want];
    if (out->got >= 0) out->logits[1] = logits[out->got];
    return true;
}

// The probability of all tokens that are likelier than this one (of equals, those with a lower id), plus a
// share of its own.
static double sampled_place(const float *p, int vocab, int token, double share) {
    double below = 0, total = 0;
    for (int i = 0; i < vocab; i++) {
        total += (double)p[i];
        if (p[i] > p[token] || (p[i] == p[token] && i < token)) below += (double)p[i];
    }
    return (below + share * (double)p[token]) / total;
}

bool certify_sampled(Session *s, const IdList *prompt, const int *ids, int count, SampledPlaces *out,
                     Error *e) {
    LOCAL(sampler_release) Sampler sampler = {0};
    int vocab = s->shape.vocab, last = (int)prompt->count - 1;
    LOCAL_MEMORY int *all = join(prompt, ids, count);
    LOCAL_MEMORY float *p = mem_new((size_t)vocab, sizeof *p);
    sampler_init(&sampler, &out->sampling, vocab);
    session_reset(s);
    if (!session_prefill(s, all, last, 0, 0, NULL, e)) return false;
    for (int done = 0, n; done < count; done += n) {
        n = count - done < AT_ONCE ? count - done : AT_ONCE;
        if (n > s->tree.capacity) n = s->tree.capacity;
        if (!read_chain(s, all + last + done, n, e)) return false;
        for (int i = 0; i < n; i++) {
            sampler_distribution(&sampler, session_logits(s, i), p);
            out->impossible += !(p[ids[done + i]] > 0);
            out->u[out->count++] = sampled_place(p, vocab, ids[done + i], random_uniform(&out->random));
            assert(!(out->u[out->count - 1] < 0 || out->u[out->count - 1] > 1));
        }
        if (!session_commit(s, n - 1, n, e)) return false;
    }
    return true;
}

bool answer_compare(Session *s, const Answer *want, Answer *got, Error *e) {
    got->diverged = -1;
    for (int i = 0; got->diverged < 0 && i < want->count && i < got->count; i++) {
        const AnswerTurn *a = &want->turns[i], *b = &got->turns[i];
        bool same_prompt = a->prompt.count == b->prompt.count &&
                           memcmp(a->prompt.ids, b->prompt.ids, a->prompt.count * sizeof *a->prompt.ids) == 0;
        if (!same_prompt) return true; // one was cut, or an earlier divergence can't be seen in the output
        if (!certify_greedy(s, &a->prompt, &a->result, &b->result, &got->divergence, e)) return false;
        if (got->divergence.position >= 0) got->diverged = i;
    }
    return true;
}
