// Ouroboros: a small model writes a draft, phrase by phrase; phrases that start with its last token are tried
// after it; the target's outputs along all of that make new phrases.
//
//      draft model: lookahead steps with the pool's phrases    d1 .. dm, m up to gamma
//      target:      x - d1 - d2 .. dm -+- phrase 1             1 + gamma + K(beta-1) tokens
//                                      +- ...
//                                      +- phrase K             the newest that start with dm
//      pool:        n-grams of the draft model's window; inspiration and refinement, below
//
// A phrase of beta tokens is a key of the pool and a tuple of beta - 1 tokens. The draft is greedy, so every
// proposal is a one-hot: sampling keeps the target's distribution.
//
// The authors' code (Ouroboros at 7dac65b) is looser: inspiration needs one agreeing token fewer; refinement
// overwrites the key's newest phrases, although inspiration may have pushed others on top; neither draft nor
// target gets a free token after a full phrase; the draft model verifies nothing while its window fills, and
// keeps EOS in it.
//
// The draft is appended to the sequence that the draft model follows (draft.h) and committed as it is
// written; the part that the target did not confirm is taken back.
//
// Invariant between steps, asserted by ouroboros_check(): the follower's sequence is the target's, without a
// draft.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"
#include "engine/decode/draft.h"
#include "engine/decode/structures/ngram_pool.h"
#include "engine/decode/structures/window.h"

#include <assert.h>
#include <string.h>

typedef enum { MODE_PAPER, MODE_REFERENCE } Mode;
typedef enum { REFINE_ALWAYS, REFINE_ON_ACCEPT, REFINE_IN_PLACE, REFINE_OFF } Refine;
typedef enum { INSPIRE_ON, INSPIRE_LOOSE, INSPIRE_OFF } Inspire;
typedef enum { BONUS_KEEP, BONUS_DROP } Bonus;

enum { BETA_MOST = 32 };

typedef struct OuroborosParams {
    int preset, mode;
    int gamma, K, beta, W, window;
    bool suffixes;
    int inspiration, refine, bonus;
    bool verify_while_filling, replace_eos;
    bool warm;
} OuroborosParams;

typedef struct Preset {
    int gamma, beta, W; // the window has W columns too
} Preset;

// From the authors' code: its function's defaults, its README (also HumanEval's for Yi), and the settings of
// its benchmark/test_*.py for a pair of models, as defaults or in their last comment. All leave topk, our K,
// at 3.
enum { PRESET_K = 3 };
// clang-format off
static const char *const PRESETS[] = {
    "none", "code", "readme", "human-eval-deepseek", "human-eval-codellama", "mbpp-yi", "mbpp-deepseek",
    "mbpp-codellama", "gsm8k-yi", "gsm8k-llama", "cnn-dm-yi", "cnn-dm-llama", NULL};
// clang-format on
static const Preset PRESET_VALUES[] = {{0, 0, 0},   {4, 7, 20},  {12, 7, 20}, {11, 7, 20},
                                       {10, 6, 20}, {12, 5, 18}, {7, 5, 15},  {8, 6, 16},
                                       {4, 6, 15},  {6, 6, 17},  {10, 5, 15}, {4, 5, 13}};

static const char *const MODES[] = {"paper", "reference", NULL};
static const char *const REFINES[] = {"always", "on_accept", "in_place", "off", NULL};
static const char *const INSPIRES[] = {"on", "loose", "off", NULL};
static const char *const BONUSES[] = {"keep", "drop", NULL};

enum { SOURCE_DRAFT, SOURCE_PHRASES };
static const char *const SOURCES[] = {"draft", "phrases", NULL};

#define AT(name) offsetof(OuroborosParams, name)
static const Arg PARAMS[] = {
    {"preset", ARG_CHOICE, AT(preset), .fallback = "none", .choices = PRESETS,
     .help = "a published setting of gamma, K, beta, W and window"},
    {"mode", ARG_CHOICE, AT(mode), .fallback = "paper", .choices = MODES,
     .help = "reference: bonus=drop,verify_while_filling=off,replace_eos=off; inspiration=loose and "
             "refine=in_place unless off"},
    {"gamma", ARG_INT, AT(gamma), 1, TREE_MAX_NODES - 1, "12", .help = "most tokens per draft"},
    {"K", ARG_INT, AT(K), 0, 256, "3", .help = "most phrases tried after the draft"},
    {"beta", ARG_INT, AT(beta), 2, BETA_MOST, "7", .help = "tokens per phrase"},
    {"W", ARG_INT, AT(W), 1, 1024, "20", .help = "phrases kept per first token"},
    {"window", ARG_INT, AT(window), 1, 256, "20", .help = "columns of the draft model's window"},
    {"suffixes", ARG_FLAG, AT(suffixes), .fallback = "on", .help = "try phrases after the draft"},
    {"inspiration", ARG_CHOICE, AT(inspiration), .fallback = "on", .choices = INSPIRES,
     .help = "learn phrases that agree after a wrong token; loose: in beta-2 tokens"},
    {"refine", ARG_CHOICE, AT(refine), .fallback = "always", .choices = REFINES,
     .help = "when tried phrases take the target's tokens; in_place: as the authors' code"},
    {"bonus", ARG_CHOICE, AT(bonus), .fallback = "keep", .choices = BONUSES,
     .help = "the free token after a full phrase"},
    {"verify_while_filling", ARG_FLAG, AT(verify_while_filling), .fallback = "on",
     .help = "the draft model verifies in its first beta-2 steps too"},
    {"replace_eos", ARG_FLAG, AT(replace_eos), .fallback = "on",
     .help = "replace EOS in the window by a drawn token"},
    {"warm", ARG_FLAG, AT(warm), .fallback = "off", .help = "keep the phrases between prompts"},
};

typedef struct Ouroboros {
    OuroborosParams p;
    Session *target;
    Follower follower; // the draft model's
    Window window;
    NgramPool pool;
    Random random;
    int length, drafted; // tokens of the sequence, of the draft after it
    int *nodes;          // (gamma): the draft in the target's tree
    int *argmax;         // (gamma + 1): the target's output before each token of the draft, and after it
    Sources sources;     // of the open step: the draft, then the phrases
    int tried;           // phrases tried after the draft
    int *phrases;        // (K, beta - 1)
    int *phrase_nodes;   // (K, beta - 1)
    const int *eos;
    int eos_count;
} Ouroboros;

// --- open and close

static void ouroboros_resolve(void *values) {
    OuroborosParams *p = values;
    const Preset *preset = &PRESET_VALUES[p->preset];
    if (p->preset) {
        p->gamma = preset->gamma;
        p->K = PRESET_K;
        p->beta = preset->beta;
        p->W = p->window = preset->W;
    }
    if (p->mode == MODE_REFERENCE) {
        if (p->inspiration != INSPIRE_OFF) p->inspiration = INSPIRE_LOOSE;
        if (p->refine != REFINE_OFF) p->refine = REFINE_IN_PLACE;
        p->bonus = BONUS_DROP;
        p->verify_while_filling = p->replace_eos = false;
    }
    if (!p->suffixes) p->K = 0;
    p->preset = 0;
    p->mode = MODE_PAPER;
}

static void ouroboros_close(void *self) {
    Ouroboros *o = self;
    follower_release(&o->follower);
    window_release(&o->window);
    ngram_pool_release(&o->pool);
    MEM_FREE(o->nodes, o->argmax, o->phrases, o->phrase_nodes);
}

static bool ouroboros_open(void *self, const MethodEnv *env, Error *e) {
    Ouroboros *o = self;
    OuroborosParams *p = &o->p;
    ouroboros_resolve(p);
    size_t gamma = (size_t)p->gamma, tails = (size_t)p->K * (size_t)(p->beta - 1);
    int step = 1 + p->gamma + p->K * (p->beta - 1);
    if (step > TREE_MAX_NODES)
        return error_input(
            e, "gamma=%d, K=%d and beta=%d make a step of %d tokens, 1+gamma+K(beta-1); it holds at most %d",
            p->gamma, p->K, p->beta, step, TREE_MAX_NODES);
    o->target = env->target;
    o->random = (Random){.seed = env->seed, .stream = STREAM_METHOD};
    o->eos = env->eos;
    o->eos_count = p->replace_eos ? env->eos_count : 0;
    o->nodes = mem_new(gamma, sizeof *o->nodes);
    o->argmax = mem_new(gamma + 1, sizeof *o->argmax);
    o->phrases = mem_new(tails, sizeof *o->phrases);
    o->phrase_nodes = mem_new(tails, sizeof *o->phrase_nodes);
    follower_init(&o->follower, env->draft, env->target->context);
    window_init(&o->window, p->window, p->beta);
    return ngram_pool_init(&o->pool, env->target->shape.vocab, p->beta - 1, p->W, POOL_LRU, e);
}

static void ouroboros_check(const Ouroboros *o) {
    assert(o->drafted == 0 && o->length == o->follower.length);
}

// The draft, (drafted).
static int *draft_of(const Ouroboros *o) { return o->follower.sequence + o->length; }

// The last token of the sequence, or of the draft after it.
static int last_token(const Ouroboros *o) { return draft_of(o)[o->drafted - 1]; }

// A prompt that is too long for the draft model is not followed: its steps only use the pool.
static bool ouroboros_begin(void *self, const Prompt *prompt, Error *e) {
    Ouroboros *o = self;
    o->random.counter = 0; // a prompt's window does not depend on the prompts before it
    if (!o->p.warm) ngram_pool_clear(&o->pool);
    o->length = prompt->count;
    o->drafted = 0;
    if (!follower_begin(&o->follower, prompt->tokens, prompt->count, NULL, e)) return false;
    window_start(&o->window, &(WindowSource){&o->random, o->follower.sequence, prompt->count});
    return true;
}

// --- the draft model's steps

// Appends the model's tokens after `base`: those that a phrase predicted, and one more. After a full match,
// `bonus` decides about that one. Returns the node of the last predicted token.
static int append_tokens(Ouroboros *o, int base, int room) {
    const Session *s = o->follower.session;
    int node = base;
    for (int count = 0; o->drafted < room; count++) {
        if (o->p.bonus == BONUS_DROP && count == o->pool.width) break;
        int token = session_argmax(s, node), next = tree_child(&s->tree, node, token);
        follower_append(&o->follower, &token, 1);
        o->drafted++;
        if (next == TREE_NONE || !(s->tree.flags[next] & NODE_CANDIDATE)) break;
        node = next;
    }
    return node;
}

// The last token stays out of the cache: the next step starts with it.
static bool draft_step(Ouroboros *o, int base, int room, Error *e) {
    Session *s = o->follower.session;
    int last = last_token(o);
    bool verifies = o->p.verify_while_filling || !window_is_filling(&o->window);
    WindowSource from = {&o->random, o->follower.sequence, o->length + o->drafted};
    for (int i = 0; i < ngram_pool_count(&o->pool, last) && verifies; i++) {
        int phrase[BETA_MOST];
        follower_known(&o->follower, ngram_pool_tuple(&o->pool, last, i), o->pool.width, phrase);
        tree_chain(&s->tree, base, phrase, o->pool.width, NULL);
    }
    window_probe(&o->window, &s->tree, base, 0, window_columns(&o->window));
    if (!session_run(s, s->shape.layers, e) || !session_read(s, HEAD_ARGMAX, e)) return false;
    int node = append_tokens(o, base, room);
    window_read(&o->window, s, &from);
    window_collect(&o->window, last, &o->pool);
    window_slide(&o->window, 1, o->eos, o->eos_count, &from);
    return session_commit(s, node, follower_missing(&o->follower) - 1, e);
}

static bool write_draft(Ouroboros *o, Error *e) {
    int room = o->target->context - o->length, rows = tree_room(&o->target->tree), base;
    if (room > o->p.gamma) room = o->p.gamma;
    if (room > rows) room = rows;
    o->drafted = 0;
    while (o->drafted < room && (base = follower_catch_up(&o->follower)) != TREE_NONE)
        if (!draft_step(o, base, room, e)) return false;
    return true;
}

// --- phrases from a verified draft (section 2.5): the target's tokens after a wrong one are not thrown away
//
// The draft EFGHIWKLMN, of which the target would write EFGHIJKLMN and then O, beta = 4: EFGHI is accepted, J
// is the correction; KLM and LMN agree after it, so KLMN and LMNO are phrases.

// Candidate inspiration: after the first wrong token, wherever beta-1 tokens of the draft in a row agree with
// the target, those and the target's next token are a phrase. draft (count); argmax (count + 1): the target's
// output at each place of the draft and after it; accepted: accepted tokens of the draft. Loose, as in the
// authors' code: the key is the draft's token, from the wrong one on and right or not, and beta-2 tokens
// after it must agree.
static void phrases_inspire(NgramPool *p, const int *draft, const int *argmax, int count, int accepted,
                            bool loose) {
    int after = loose ? 1 : 0, width = p->width;
    for (int i = accepted + 1 - after; i + width <= count; i++)
        if (memcmp(draft + i + after, argmax + i + after, (size_t)(width - after) * sizeof *draft) == 0)
            ngram_pool_insert(p, loose ? draft[i] : argmax[i], argmax + i + 1);
}

// Candidate refinement: replaces `phrase`, tried below the key, by the target's output along it. Both
// (beta - 1); the phrase must not point into the pool.
static void phrases_refine(NgramPool *p, int key, const int *phrase, const int *better) {
    ngram_pool_remove(p, key, phrase);
    ngram_pool_insert(p, key, better);
}

// --- the target's step

static void propose_phrases(Ouroboros *o, Tree *tree, int parent) {
    int last = last_token(o), count = ngram_pool_count(&o->pool, last), width = o->pool.width;
    o->tried = count < o->p.K ? count : o->p.K;
    for (int i = 0; i < o->tried; i++) {
        int *phrase = o->phrases + i * width;
        memcpy(phrase, ngram_pool_tuple(&o->pool, last, i), (size_t)width * sizeof *phrase);
        sources_record(&o->sources, SOURCE_PHRASES,
                       tree_chain(tree, parent, phrase, width, o->phrase_nodes + i * width));
    }
}

static bool ouroboros_propose(void *self, Tree *tree, Error *e) {
    Ouroboros *o = self;
    int root = tree_row(tree);
    ouroboros_check(o);
    if (!write_draft(o, e)) return false;
    o->sources.count = 0;
    sources_record(&o->sources, SOURCE_DRAFT, tree_chain(tree, root, draft_of(o), o->drafted, o->nodes));
    propose_phrases(o, tree, o->drafted ? o->nodes[o->drafted - 1] : root);
    return true;
}

// Replaces phrase i by the target's output along it, which starts with the token after the draft; or, in
// place, overwrites the key's phrase `place`. A phrase that did not fit is left as it is.
static void refine_phrase(Ouroboros *o, const Session *target, int i, int place) {
    int width = o->pool.width, better[BETA_MOST];
    const int *nodes = o->phrase_nodes + i * width;
    if (width > 1 && nodes[width - 2] == TREE_NONE) return;
    better[0] = o->argmax[o->drafted];
    for (int k = 1; k < width; k++) better[k] = session_argmax(target, nodes[k - 1]);
    if (o->p.refine == REFINE_IN_PLACE) ngram_pool_write(&o->pool, last_token(o), place, better);
    else phrases_refine(&o->pool, last_token(o), o->phrases + i * width, better);
}

static void learn(Ouroboros *o, const Observation *seen) {
    int ran = 0, accepted = 0;
    while (ran < o->drafted && o->nodes[ran] != TREE_NONE) ran++; // tokens that fit into the target's step
    if (ran) accepted = sources_match(&seen->target->tree, o->nodes[ran - 1], seen->verdict->node);
    for (int i = 0; i <= ran; i++) o->argmax[i] = session_argmax(seen->target, i == 0 ? 0 : o->nodes[i - 1]);
    if (o->p.inspiration != INSPIRE_OFF)
        phrases_inspire(&o->pool, draft_of(o), o->argmax, ran, accepted, o->p.inspiration == INSPIRE_LOOSE);
    if (o->p.refine == REFINE_OFF || ran < o->drafted) return;
    if (o->p.refine == REFINE_ON_ACCEPT && accepted < o->drafted) return;
    // After a wrong token, the authors' code divides the number of phrases by their length once too often:
    // only that many of the oldest are refined, and they overwrite the newest.
    bool divided = o->p.refine == REFINE_IN_PLACE && accepted < o->drafted;
    int count = divided ? o->tried / o->pool.width : o->tried;
    // oldest first, so that the newest stays the newest
    for (int i = 0; i < count; i++) refine_phrase(o, seen->target, o->tried - 1 - i, count - 1 - i);
}

// Takes the draft model back to the part of the draft that the sequence confirms.
static bool follow(Ouroboros *o, const Observation *seen, Error *e) {
    int same = 0, most = seen->emitted_count - 1;
    while (same < most && same < o->drafted && draft_of(o)[same] == seen->emitted[same]) same++;
    int keep = o->length + same;
    o->follower.length = o->length; // without the draft
    follower_append(&o->follower, seen->emitted, seen->emitted_count);
    o->length = seen->length;
    o->drafted = 0;
    ouroboros_check(o);
    return follower_take_back(&o->follower, keep, e);
}

static bool ouroboros_observe(void *self, const Observation *seen, Error *e) {
    Ouroboros *o = self;
    learn(o, seen);
    return follow(o, seen, e);
}

static bool ouroboros_drops_bonus(const void *self, const Verdict *verdict) {
    const Ouroboros *o = self;
    return o->p.bonus == BONUS_DROP && verdict->accepted == o->drafted + o->pool.width;
}

static void ouroboros_note(const void *self, StepNote *out) {
    const Ouroboros *o = self;
    out->pool = (int)o->pool.size;
    out->pool_hits = o->tried;
}

static void ouroboros_state(const void *self, Text *out) {
    ngram_pool_describe(&((const Ouroboros *)self)->pool, out);
}

static void ouroboros_work(const void *self, StepWork *out) {
    const Ouroboros *o = self;
    const Shape *draft = &o->follower.session->shape;
    int gamma = o->p.gamma, after = o->p.beta - 1;
    *out = (StepWork){.longest = gamma + after + 1, .rows = 1 + gamma + o->p.K * after, .draft_count = 1};
    out->drafts[0] = (DraftWork){draft, draft->layers, true, gamma, gamma * (1 + o->p.window * after)};
}

const MethodInfo method_ouroboros = {
    METHOD_ROW(ouroboros, Ouroboros),
    .name = "ouroboros",
    .summary = "a draft model that writes phrases from a pool, which the target improves",
    .needs = NEEDS_DRAFT,
    .resolve = ouroboros_resolve,
    .drops_bonus = ouroboros_drops_bonus,
    .note = ouroboros_note,
    .state = ouroboros_state};
