// The real loop, methods and verifier, on a backend that follows a given text (Script). At a node whose path
// is the text's own, the next token is the text's. What a model would output after any other path is unknown:
// there the backend outputs token 0, which the verifier never reads, and a method must not. Logits, hidden
// states and bigrams are refused, so that a method that needs a model fails with a clear error.
#include "harness/replay/replay.h"

#include "engine/base/memory.h"

#include <math.h>
#include <string.h>

// --- the text as a model ---------------------------------------------------------------------------------

static bool script_run(void *self, const StepRun *run, UNUSED Error *e) {
    Script *s = self;
    for (int i = run->first; i < run->last; i++) {
        const Tree *t = run->tree;
        int position = tree_position(t, i), parent = t->parent[i];
        bool on_path = position < s->count && t->token[i] == s->tokens[position] &&
                       (parent == TREE_NONE || s->next[parent] != SCRIPT_OFF);
        s->next[i] = !on_path ? SCRIPT_OFF : position + 1 < s->count ? s->tokens[position + 1] : 0;
    }
    return true;
}

static bool refuse(const char *what, Error *e) {
    return error_input(e, "the method asks a model for %s; replay has only text", what);
}

static bool script_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    const Script *s = self;
    if (want & ~(unsigned)HEAD_ARGMAX) return refuse("its distribution", e);
    for (int i = 0; i < count; i++) out->argmax[i] = s->next[nodes[i]] == SCRIPT_OFF ? 0 : s->next[nodes[i]];
    return true;
}

static bool script_get_hidden(UNUSED void *self, UNUSED const int *nodes, UNUSED int count,
                              UNUSED HiddenKind kind, UNUSED float *rows, Error *e) {
    return refuse("hidden states", e);
}

static bool script_set_hidden(UNUSED void *self, UNUSED int first, UNUSED int count, UNUSED const float *rows,
                              Error *e) {
    return refuse("hidden states", e);
}

static bool script_commit(UNUSED void *self, UNUSED const int *nodes, UNUSED const int *slots,
                          UNUSED int count, UNUSED Error *e) {
    return true;
}

static void script_reset(void *self) { (void)self; }

static void script_report(UNUSED const void *self, BackendReport *out) {
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

// Opens the session, which owns the script.
static Script *script_open(Session *session, const ReplayTexts *texts) {
    Shape shape = {.input = INPUT_TOKENS, .layers = 1, .width = 1};
    shape.vocab = shape.real_vocab = texts->vocab;
    shape.context = texts->longest + TREE_MAX_NODES; // a step's guesses may reach past the text's end
    BackendOptions o = {.max_nodes = TREE_MAX_NODES};
    Script *s = mem_new(1, sizeof *s);
    s->texts = texts;
    session_init(session, &SCRIPT, s, &shape, &o);
    return s;
}

// --- methods ---------------------------------------------------------------------------------------------

static double no_time(UNUSED void *state) { return 0; }

typedef struct Replaying {
    const ReplayTexts *texts;
    Session target;
    Script *script;
    Method method;
    const ReplaySink *sink; // may be NULL
    Clock clock;
    Replay *out;
    AnswerTurn turn; // of the text that is decoded, for the sink
} Replaying;

static void count_step(void *state, const StepReport *r) {
    Replaying *g = state;
    int most = REPLAY_LENGTHS - 1, accepted = r->emitted - 1 < r->accepted ? r->emitted - 1 : r->accepted;
    g->out->accepted[accepted < most ? accepted : most]++;
    if (g->sink) answer_step(&g->turn, r);
}

static bool take_result(Replaying *g, size_t i, Error *e) {
    const ReplayText *text = &g->texts->texts[i];
    const DecodeResult *r = &g->turn.result;
    Replay *out = g->out;
    out->tokens[i] = r->tokens, out->steps[i] = r->steps;
    out->total_tokens += r->tokens, out->total_steps += r->steps;
    out->rows += r->rows;
    if (r->tokens != text->count - text->prompt ||
        memcmp(r->ids, text->ids + text->prompt, (size_t)r->tokens * sizeof *r->ids) != 0)
        return error_system(e, "text %zu came out as another text", i + 1);
    return !g->sink || g->sink->take(g->sink->state, i, &g->turn, e);
}

static bool replay_text(Replaying *g, size_t i, Error *e) {
    const ReplayText *text = &g->texts->texts[i];
    AnswerTurn *turn = &g->turn;
    DecodeOptions o = {.max_tokens = text->count - text->prompt,
                       .ignore_eos = true,
                       .merge = true,
                       .clock = g->sink ? g->sink->clock : (Clock){no_time, NULL},
                       .step = count_step,
                       .state = g};
    g->script->tokens = text->ids;
    g->script->prompt = text->prompt;
    g->script->count = text->count;
    g->script->lists = (const uint8_t *const *)text->lists;
    turn->pass_count = 0;
    double from = clock_now(g->clock);
    bool ok = decode(&g->target, &g->method, text->ids, text->prompt, &o, &turn->result, e);
    g->out->seconds += clock_now(g->clock) - from;
    ok = ok && take_result(g, i, e);
    decode_result_release(&turn->result);
    return ok;
}

static bool open_replay(Replaying *g, const char *method, Error *e) {
    g->script = script_open(&g->target, g->texts);
    MethodEnv env = {.target = &g->target,
                     .only_text = "replay has only text, for prompt-lookup, suffix, ngram-mod, ngrammys with "
                                  "strategy=context, rest, mixes of them, ouroboros-pool, and recorded"};
    return draft_open(&g->method, method, &env, e);
}

static void close_replay(Replaying *g) {
    method_close(&g->method);
    session_release(&g->target);
    answer_turn_release(&g->turn);
}

bool replay_check(const ReplayTexts *texts, const char *method, Error *e) {
    Replaying g = {.texts = texts};
    bool ok = open_replay(&g, method, e);
    close_replay(&g);
    return ok || error_within(e, "replay of '%s'", texts->name);
}

bool replay_run(const ReplayTexts *texts, const char *method, Clock clock, const ReplaySink *sink,
                Replay *out, Error *e) {
    Replaying g = {.texts = texts, .sink = sink, .clock = clock, .out = out};
    *out = (Replay){.tokens = mem_new(texts->count, sizeof(double)),
                    .steps = mem_new(texts->count, sizeof(double))};
    bool ok = open_replay(&g, method, e) && (!sink || sink->open(sink->state, &g.method, e));
    for (size_t i = 0; ok && i < texts->count; i++) ok = replay_text(&g, i, e);
    close_replay(&g);
    return ok;
}

void replay_release(Replay *r) {
    MEM_FREE(r->tokens, r->steps);
    *r = (Replay){0};
}

double replay_rate(const Replay *r) { return r->seconds > 0 ? r->total_tokens / r->seconds : NAN; }

double replay_ctar(const Replay *r, int w) {
    double steps = 0;
    for (int i = w; i < REPLAY_LENGTHS; i++) steps += r->accepted[i];
    return r->total_steps > 0 ? steps / r->total_steps : 0;
}
