#include "harness/run/measure.h"

#include "engine/base/memory.h"
#include "results/record.h"

#include <string.h>

typedef struct Taking {
    SaidTurn *turn;
    bool failed;
} Taking;

// Called between steps, when no time is taken.
static void take_step(void *state, const StepReport *report) {
    Taking *taking = state;
    SaidTurn *t = taking->turn;
    void *steps = t->steps, *passes = t->passes;
    size_t n = (size_t)report->number, more = (size_t)report->pass_count;
    taking->failed = taking->failed || !mem_grow(&steps, &t->step_capacity, n + 1, sizeof *t->steps);
    if (!taking->failed) t->steps = steps;
    taking->failed =
        taking->failed || !mem_grow(&passes, &t->pass_capacity, t->pass_count + more, sizeof *t->passes);
    if (taking->failed) return;
    t->passes = passes;
    if (more) memcpy(t->passes + t->pass_count, report->passes, more * sizeof *t->passes);
    t->pass_count += more;
    t->steps[n] = *report;
    t->steps[n].passes = NULL; // what it pointed to goes with the next step
}

static void release_turn(SaidTurn *t) {
    ids_release(&t->prompt);
    decode_result_release(&t->result);
    mem_free(t->steps);
    mem_free(t->passes);
    *t = (SaidTurn){0};
}

void said_release(Said *s) {
    for (int i = 0; i < s->count; i++) release_turn(&s->turns[i]);
    mem_free(s->turns);
    *s = (Said){0};
}

double said_decode_seconds(const DecodeResult *r) {
    return r->propose_s + r->forward_s + r->verify_s + r->observe_s;
}

// Equal for every method and every pass: S is measured once a seed, and repeats measure time.
static uint64_t seed_of(const Settings *s, const Ask *ask, int turn) {
    return random_at((uint64_t)s->seed, STREAM_BENCH,
                     (uint64_t)ask->number * CONVERSATION_TURNS + (uint64_t)turn);
}

static DecodeOptions options_of(const Measuring *m, const Settings *s, uint64_t seed, Taking *taking) {
    return (DecodeOptions){.max_tokens = s->max_tokens,
                           .eos = m->eos,
                           .eos_count = m->eos_count,
                           .ignore_eos = s->ignore_eos,
                           .sampling = {s->temperature, s->top_k, s->top_p},
                           .seed = seed,
                           .layout = (Layout)s->layout,
                           .merge = s->merge,
                           .clock = m->clock,
                           .step = take_step,
                           .state = taking};
}

static bool decode_turn(const Measuring *m, Method *method, const Settings *settings, uint64_t seed,
                        SaidTurn *turn, Error *e) {
    Taking taking = {.turn = turn};
    DecodeOptions o = options_of(m, settings, seed, &taking);
    turn->began = clock_wall();
    bool ok = decode(m->target, method, turn->prompt.ids, (int)turn->prompt.count, &o, &turn->result, e);
    if (ok && taking.failed) ok = error_system(e, "out of memory for the steps of an output");
    if (!ok) return false;
    turn->flags = m->watch ? watch_judge(m->watch) : 0;
    if (!turn->result.ended_by_eos) turn->flags |= FLAG_CUT;
    return true;
}

// A prompt that leaves no room for a single token ends the conversation.
static bool has_room(const Measuring *m, const SaidTurn *turn) {
    return turn->prompt.count < (size_t)m->target->context;
}

bool measure(const Measuring *m, Method *method, const Settings *settings, const Ask *ask, Said *out,
             Error *e) {
    Conversation c;
    bool full = false;
    said_release(out);
    out->turns = mem_alloc((size_t)ask->count, sizeof *out->turns);
    bool ok = out->turns || error_system(e, "out of memory");
    conversation_begin(&c, m->tokenizer, m->template);
    for (int i = 0; ok && !full && i < ask->count; i++) {
        SaidTurn *turn = &out->turns[out->count++];
        ok = conversation_ask(&c, ask->turns[i], &turn->prompt, e);
        full = ok && i > 0 && !has_room(m, turn);
        if (full) release_turn(&out->turns[--out->count]);
        else
            ok = ok && decode_turn(m, method, settings, seed_of(settings, ask, i), turn, e) &&
                 conversation_reply(&c, turn->result.ids, turn->result.tokens, e);
    }
    conversation_release(&c);
    return ok;
}

static bool same_prompt(const IdList *a, const IdList *b) {
    return a->count == b->count && memcmp(a->ids, b->ids, a->count * sizeof *a->ids) == 0;
}

bool measure_compare(Session *s, const Said *want, const Said *got, int *turn, Divergence *out, Error *e) {
    *turn = -1;
    for (int i = 0; i < want->count && i < got->count; i++) {
        const SaidTurn *a = &want->turns[i], *b = &got->turns[i];
        if (!same_prompt(&a->prompt, &b->prompt)) return true; // one has been cut, or differs in vain
        if (!certify_greedy(s, &a->prompt, &a->result, &b->result, out, e)) return false;
        if (out->position < 0) continue;
        *turn = i;
        return true;
    }
    return true;
}
