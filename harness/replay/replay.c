// The real loop, methods and verifier, on a backend that follows a given text (Script). At a node whose path
// is the text's own, the next token is the text's. What a model would output after any other path is unknown:
// there the backend outputs token 0, which the verifier never reads, and a method must not. Logits, hidden
// states and bigrams are refused, so that a method that needs a model fails with a clear error.
#include "harness/replay/replay.h"

#include "engine/base/memory.h"
#include "engine/decode/decode.h"
#include "engine/decode/ngram_pool.h"
#include "harness/prompts/conversation.h"

#include <math.h>
#include <string.h>

// --- the text as a model ---------------------------------------------------------------------------------

typedef struct Script {
    const int *tokens;
    int count;
    int next[TREE_MAX_NODES]; // the token after node i; OFF: its path is not the text's
} Script;

enum { OFF = -1 };

static bool on_path(const Script *s, const Tree *t, int node) {
    int position = tree_position(t, node), parent = t->parent[node];
    return position < s->count && t->token[node] == s->tokens[position] &&
           (parent == TREE_NONE || s->next[parent] != OFF);
}

static bool script_run(void *self, const StepRun *run, Error *e) {
    Script *s = self;
    (void)e;
    for (int i = run->first; i < run->last; i++) {
        int after = tree_position(run->tree, i) + 1;
        s->next[i] = !on_path(s, run->tree, i) ? OFF : after < s->count ? s->tokens[after] : 0;
    }
    return true;
}

static bool refuse(const char *what, Error *e) {
    return error_input(e, "the method asks a model for %s; replay has only text", what);
}

static bool script_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    const Script *s = self;
    if (want & ~(unsigned)HEAD_ARGMAX) return refuse("its distribution", e);
    for (int i = 0; i < count; i++) out->argmax[i] = s->next[nodes[i]] == OFF ? 0 : s->next[nodes[i]];
    return true;
}

static bool script_get_hidden(void *self, const int *nodes, int count, HiddenKind kind, float *rows,
                              Error *e) {
    (void)self, (void)nodes, (void)count, (void)kind, (void)rows;
    return refuse("hidden states", e);
}

static bool script_set_hidden(void *self, int first, int count, const float *rows, Error *e) {
    (void)self, (void)first, (void)count, (void)rows;
    return refuse("hidden states", e);
}

static bool script_commit(void *self, const int *nodes, const int *slots, int count, Error *e) {
    (void)self, (void)nodes, (void)slots, (void)count, (void)e;
    return true;
}

static void script_reset(void *self) { (void)self; }

static void script_report(const void *self, BackendReport *out) {
    (void)self;
    *out = (BackendReport){.name = "script", .device = "none", .isa = "none"};
}

static void script_close(void *self) { mem_free(self); }

static const Backend SCRIPT = {.name = "script",
                               .run = script_run,
                               .head = script_head,
                               .get_hidden = script_get_hidden,
                               .set_hidden = script_set_hidden,
                               .commit = script_commit,
                               .reset = script_reset,
                               .report = script_report,
                               .close = script_close};

// Opens the session, which owns the script; context: positions that it holds.
static Script *script_open(Session *session, int vocab, int context) {
    Shape shape = {.input = INPUT_TOKENS, .layers = 1, .width = 1};
    shape.vocab = shape.real_vocab = vocab;
    shape.context = context;
    BackendOptions o = {.max_nodes = TREE_MAX_NODES};
    Script *s = mem_new(1, sizeof *s);
    session_init(session, &SCRIPT, s, &shape, &o);
    return s;
}

// --- Ouroboros' pool of phrases without its draft model --------------------------------------------------

// A text can fill the pool only with itself; a replay measures how much of an answer is found there. Every
// beta tokens of prompt and answer become a phrase as soon as they are known; the K newest phrases that begin
// with the last token are tried, as Ouroboros tries them after a draft (section 2.4).

static const char NAME[] = "ouroboros-pool";

typedef struct PoolParams {
    int K, beta, W;
    bool warm;
} PoolParams;

#define AT(name) offsetof(PoolParams, name)
static const Arg PARAMS[] = {
    {"K", ARG_INT, AT(K), 1, 256, "20", .help = "phrases tried, at most"},
    {"beta", ARG_INT, AT(beta), 2, 32, "7", .help = "tokens of a phrase"},
    {"W", ARG_INT, AT(W), 1, 1024, "20", .help = "phrases kept under a token"},
    {"warm", ARG_FLAG, AT(warm), .fallback = "off", .help = "keep the phrases from text to text"},
};
#undef AT

typedef struct PoolReplay {
    PoolParams p;
    NgramPool pool;
    int last; // the sequence's last token
} PoolReplay;

static void pool_close(void *self) {
    PoolReplay *r = self;
    if (!r) return;
    ngram_pool_release(&r->pool);
    mem_free(r);
}

static void *pool_open(const MethodEnv *env, const void *values, Error *e) {
    PoolReplay *r = mem_new(1, sizeof *r);
    r->p = *(const PoolParams *)values;
    if (ngram_pool_init(&r->pool, env->target->shape.vocab, r->p.beta - 1, r->p.W, POOL_LRU, e)) return r;
    pool_close(r);
    return NULL;
}

// Phrases that end after `from` tokens of the sequence, and by its end.
static void learn(PoolReplay *r, const int *sequence, int from, int length) {
    int beta = r->p.beta;
    for (int end = from > beta - 1 ? from + 1 : beta; end <= length; end++)
        ngram_pool_insert(&r->pool, sequence[end - beta], sequence + end - beta + 1);
    r->last = sequence[length - 1];
}

static bool pool_begin(void *self, const Prompt *prompt, Error *e) {
    PoolReplay *r = self;
    (void)e;
    if (!r->p.warm) ngram_pool_clear(&r->pool);
    learn(r, prompt->tokens, 0, prompt->count);
    return true;
}

static bool pool_propose(void *self, Tree *tree, Error *e) {
    PoolReplay *r = self;
    int count = ngram_pool_count(&r->pool, r->last), root = tree_row(tree);
    (void)e;
    for (int i = 0; i < count && i < r->p.K; i++)
        tree_chain(tree, root, ngram_pool_tuple(&r->pool, r->last, i), r->pool.width, NULL);
    return true;
}

static bool pool_observe(void *self, const Observation *seen, Error *e) {
    (void)e;
    learn(self, seen->sequence, seen->length - seen->emitted_count, seen->length);
    return true;
}

static const MethodInfo INFO = {.name = NAME,
                                .summary = "Ouroboros' phrases without its draft model",
                                .params = PARAMS,
                                .param_count = sizeof PARAMS / sizeof *PARAMS,
                                .param_size = sizeof(PoolParams),
                                .open = pool_open,
                                .begin = pool_begin,
                                .propose = pool_propose,
                                .observe = pool_observe,
                                .close = pool_close};

// Opens the pool as method_open opens other methods; for method_close.
static bool open_pool(Method *m, const char *text, const MethodEnv *env, Error *e) {
    size_t n = strcspn(text, ":");
    *m = (Method){.info = &INFO, .values = mem_new(1, INFO.param_size)};
    args_defaults(PARAMS, INFO.param_count, m->values);
    if (args_parse(PARAMS, INFO.param_count, m->values, text[n] ? text + n + 1 : "", e) &&
        (m->self = pool_open(env, m->values, e)))
        return true;
    error_within(e, "method '%s'", NAME);
    method_close(m);
    return false;
}

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
    mem_grow(&out->texts, &out->capacity, out->count + 1, sizeof *out->texts);
    int *ids = mem_new(count, sizeof *ids);
    memcpy(ids, prompt->ids, prompt->count * sizeof *ids);
    memcpy(ids + prompt->count, answer->ids, answer->count * sizeof *ids);
    out->texts[out->count++] = (ReplayText){ids, (int)prompt->count, (int)count, task};
    out->tokens += answer->count;
    if ((int)count > out->longest) out->longest = (int)count;
    return true;
}

// Adds one turn; *answered becomes false if it has no answer: the conversation ends there.
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

// A method that reads the model's outputs off the text's path cannot be replayed, by itself or in a mix.
static bool needs_only_text(const char *text, const Method *m, Error *e) {
    bool mix = strcmp(m->info->name, "mix") == 0;
    size_t methods;
    const MethodInfo *const *table = method_table(&methods);
    for (size_t i = 0; i < methods; i++)
        if (!table[i]->from_text && (mix ? strstr(text, table[i]->name) != NULL : table[i] == m->info))
            return error_input(
                e,
                "'%s' reads the model's outputs; replay has only text, for "
                "prompt-lookup, suffix, ngram-mod, ngrammys with strategy=context, rest, mixes of them, and "
                "ouroboros-pool",
                table[i]->name);
    return true;
}

static bool open_method(Method *m, const char *text, const MethodEnv *env, Error *e) {
    if (strcspn(text, ":") == sizeof NAME - 1 && strncmp(text, NAME, sizeof NAME - 1) == 0)
        return open_pool(m, text, env, e);
    return method_open(m, text, env, e) && needs_only_text(text, m, e);
}

static bool replay_all(const ReplayTexts *texts, Session *target, Script *script, Method *method, Clock clock,
                       Replay *out, Error *e) {
    double from = clock_now(clock);
    for (size_t i = 0; i < texts->count; i++) {
        script->tokens = texts->texts[i].ids;
        script->count = texts->texts[i].count;
        if (!replay_text(target, method, &texts->texts[i], out, i, e)) return false;
    }
    out->seconds = clock_now(clock) - from;
    return true;
}

bool replay_run(const ReplayTexts *texts, const char *method, Clock clock, Replay *out, Error *e) {
    Session target = {0};
    Method m = {0};
    *out = (Replay){.tokens = mem_new(texts->count, sizeof(double)),
                    .steps = mem_new(texts->count, sizeof(double))};
    // A step's guesses may reach past the text's end.
    Script *script = script_open(&target, texts->vocab, texts->longest + TREE_MAX_NODES);
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
