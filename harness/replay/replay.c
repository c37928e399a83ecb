#include "harness/replay/replay.h"

#include "engine/base/memory.h"
#include "engine/decode/decode.h"
#include "harness/prompts/conversation.h"
#include "harness/replay/replay_pool.h"
#include "harness/replay/script.h"

#include <math.h>
#include <string.h>

// --- texts -----------------------------------------------------------------------------------------------

static const char *answer_of(const DatasetPrompt *p, int turn) {
    for (int i = 0; i < p->reference_count; i++)
        if (p->references[i].turn == turn && p->references[i].text[0]) return p->references[i].text;
    return NULL;
}

static bool add_text(ReplayTexts *out, const IdList *prompt, const IdList *answer, const char *task,
                     Error *e) {
    size_t count = prompt->count + answer->count;
    if (count > (size_t)1 << 24) return error_input(e, "a text of %zu tokens is too long to replay", count);
    if (!mem_grow((void **)&out->texts, &out->capacity, out->count + 1, sizeof *out->texts))
        return error_system(e, "out of memory for answers");
    int *ids = mem_alloc(count, sizeof *ids);
    if (!ids) return error_system(e, "out of memory for answers");
    memcpy(ids, prompt->ids, prompt->count * sizeof *ids);
    memcpy(ids + prompt->count, answer->ids, answer->count * sizeof *ids);
    out->texts[out->count++] = (ReplayText){ids, (int)prompt->count, (int)count, task};
    out->tokens += answer->count;
    if ((int)count > out->longest) out->longest = (int)count;
    return true;
}

// One turn; *answered becomes false where there is nothing to replay, nor to go on from.
static bool add_turn(ReplayTexts *out, Conversation *c, const DatasetPrompt *p, int turn, bool *answered,
                     Error *e) {
    IdList prompt = {0}, answer = {0};
    const char *text = answer_of(p, turn);
    bool ok = !text || tokenizer_encode(c->tokenizer, text, strlen(text), false, &answer, e);
    *answered = ok && answer.count > 0;
    if (*answered)
        ok = conversation_ask(c, p->turns[turn], &prompt, e) &&
             (prompt.count > 0 ? add_text(out, &prompt, &answer, p->task, e)
                               : error_input(e, "the prompt has no token")) &&
             conversation_reply(c, answer.ids, (int)answer.count, e);
    ids_release(&prompt);
    ids_release(&answer);
    return ok;
}

static bool add_prompt(ReplayTexts *out, const DatasetPrompt *p, const Tokenizer *tokenizer,
                       const Template *template, Error *e) {
    Conversation c;
    bool ok = true, answered = true;
    int turn = 0, turns = p->turn_count < CONVERSATION_TURNS ? p->turn_count : CONVERSATION_TURNS;
    conversation_begin(&c, tokenizer, template);
    for (; ok && answered && turn < turns; turn++) ok = add_turn(out, &c, p, turn, &answered, e);
    if (!answered) out->unanswered += (size_t)(turns - turn + 1);
    conversation_release(&c);
    return ok || error_within(e, "prompt '%s'", p->id);
}

bool replay_texts(const Dataset *d, const Tokenizer *tokenizer, const Template *template, ReplayTexts *out,
                  Error *e) {
    *out = (ReplayTexts){.vocab = tokenizer_size(tokenizer)};
    for (size_t i = 0; i < d->count; i++)
        if (!add_prompt(out, &d->prompts[i], tokenizer, template, e)) return false;
    return out->count > 0 ||
           error_input(e, "dataset '%s' has no answers to replay: a 'reference' to a prompt", d->name);
}

void replay_texts_release(ReplayTexts *t) {
    for (size_t i = 0; i < t->count; i++) mem_free(t->texts[i].ids);
    mem_free(t->texts);
    *t = (ReplayTexts){0};
}

// --- methods ---------------------------------------------------------------------------------------------

static double no_time(void *state) {
    (void)state;
    return 0;
}

static void count_step(void *state, const StepReport *r) {
    Replay *out = state;
    int most = REPLAY_LENGTHS - 1, accepted = r->emitted - 1 < r->accepted ? r->emitted - 1 : r->accepted;
    out->accepted[accepted < most ? accepted : most]++;
}

static bool replay_text(Session *target, Method *method, const ReplayText *text, Replay *out, size_t i,
                        Error *e) {
    DecodeResult r;
    DecodeOptions o = {.max_tokens = text->count - text->prompt,
                       .ignore_eos = true,
                       .merge = true,
                       .clock = {no_time, NULL},
                       .step = count_step,
                       .state = out};
    if (!decode(target, method, text->ids, text->prompt, &o, &r, e)) return false;
    out->tokens[i] = r.tokens, out->steps[i] = r.steps;
    out->total_tokens += r.tokens, out->total_steps += r.steps;
    out->rows += r.rows;
    bool same = r.tokens == o.max_tokens &&
                memcmp(r.ids, text->ids + text->prompt, (size_t)r.tokens * sizeof *r.ids) == 0;
    decode_result_release(&r);
    return same || error_system(e, "text %zu came out as another text", i + 1);
}

// Off the path of the given text nothing is known of what a model would say, so a method that reads that
// cannot be replayed, by itself or in a mix.
static bool needs_only_text(const char *text, const Method *m, Error *e) {
    static const char *const NAMES[] = {"autoregressive", "prompt-lookup", "ngrammys", "rest", "mix"};
    bool mix = strcmp(m->info->name, "mix") == 0;
    size_t methods, names = sizeof NAMES / sizeof *NAMES;
    const MethodInfo *const *table = method_table(&methods);
    for (size_t i = 0, k; i < methods; i++) {
        for (k = 0; k < names && strcmp(table[i]->name, NAMES[k]) != 0; k++) {}
        if (k == names && (mix ? strstr(text, table[i]->name) != NULL : table[i] == m->info))
            return error_input(e,
                               "'%s' looks at what the model says; replay has only text, for "
                               "prompt-lookup, ngrammys with strategy=context, rest, mixes of them, and "
                               "ouroboros-pool",
                               table[i]->name);
    }
    return true;
}

static bool open_method(Method *m, const char *text, const MethodEnv *env, Error *e) {
    if (replay_pool_is_meant(text)) return replay_pool_open(m, text, env, e);
    return method_open(m, text, env, e) && needs_only_text(text, m, e);
}

static bool replay_all(const ReplayTexts *texts, Session *target, Script *script, Method *method, Clock clock,
                       Replay *out, Error *e) {
    double from = clock_now(clock);
    for (size_t i = 0; i < texts->count; i++) {
        script_set(script, texts->texts[i].ids, texts->texts[i].count);
        if (!replay_text(target, method, &texts->texts[i], out, i, e)) return false;
    }
    out->seconds = clock_now(clock) - from;
    return true;
}

bool replay_run(const ReplayTexts *texts, const char *method, Clock clock, Replay *out, Error *e) {
    Session target = {0};
    Script *script;
    Method m = {0};
    *out = (Replay){.tokens = mem_alloc(texts->count, sizeof(double)),
                    .steps = mem_alloc(texts->count, sizeof(double))};
    if (!out->tokens || !out->steps) return error_system(e, "out of memory");
    // A step's guesses may stand after the text's end.
    if (!script_open(&target, &script, texts->vocab, texts->longest + TREE_MAX_NODES, e)) return false;
    MethodEnv env = {.target = &target};
    bool ok = open_method(&m, method, &env, e) && replay_all(texts, &target, script, &m, clock, out, e);
    method_close(&m);
    session_release(&target);
    return ok;
}

void replay_release(Replay *r) {
    mem_free(r->tokens);
    mem_free(r->steps);
    *r = (Replay){0};
}

double replay_rate(const Replay *r) { return r->seconds > 0 ? r->total_tokens / r->seconds : NAN; }

double replay_ctar(const Replay *r, int w) {
    double steps = 0;
    for (int i = w; i < REPLAY_LENGTHS; i++) steps += r->accepted[i];
    return r->total_steps > 0 ? steps / r->total_steps : 0;
}
