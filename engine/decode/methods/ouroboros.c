// Ouroboros: a small model writes a draft, phrase by phrase; phrases that go on from its end are tried with
// it; and what the target says of all that makes new phrases.
//
//      draft model: lookahead steps with the pool's phrases    d1 .. dm, m up to gamma
//      target:      x - d1 - d2 .. dm -+- phrase 1             1 + gamma + K(beta-1) tokens
//                                      +- ...
//                                      +- phrase K             the newest that start with dm
//      pool:        n-grams of the draft model's window; inspiration and refinement (phrases.h)
//
// The draft is greedy, so that every proposal is a one-hot: sampling keeps the target's distribution.
//
// The authors' code (Ouroboros at 7dac65b) is looser: inspiration asks for one agreeing token fewer
// (phrases.h); refinement writes over the key's newest phrases, although inspiration may have pushed others
// on top; a full phrase gives no token for free, to the draft nor to the target; the draft model verifies
// nothing while its window fills, and keeps EOS in it.
//
// While drafting, the draft stands after the sequence that the draft model follows (follower.h), and is
// committed as it is written; what the target did not say is taken back.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"
#include "engine/decode/follower.h"
#include "engine/decode/phrases.h"
#include "engine/decode/window.h"

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
    int gamma, beta, W; // the window has W columns, too
} Preset;

// The authors' code: its function's defaults, its README (HumanEval's for Yi, too), and what its
// benchmark/test_*.py run for a pair of models, as defaults or in their last comment. All of them leave topk,
// our K, at 3.
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
static const char *const SOURCES[] = {"draft", "phrases"};

#define AT(name) offsetof(OuroborosParams, name)
static const Arg PARAMS[] = {
    {"preset", ARG_CHOICE, AT(preset), .fallback = "none", .choices = PRESETS,
     .help = "a published setting of gamma, K, beta, W and window"},
    {"mode", ARG_CHOICE, AT(mode), .fallback = "paper", .choices = MODES,
     .help = "reference: bonus=drop,verify_while_filling=off,replace_eos=off; inspiration=loose and "
             "refine=in_place "
             "unless off"},
    {"gamma", ARG_INT, AT(gamma), 1, TREE_MAX_NODES - 1, "12", .help = "tokens of a draft, at most"},
    {"K", ARG_INT, AT(K), 0, 256, "3", .help = "phrases tried after the draft, at most"},
    {"beta", ARG_INT, AT(beta), 2, BETA_MOST, "7", .help = "tokens of a phrase"},
    {"W", ARG_INT, AT(W), 1, 1024, "20", .help = "phrases kept under a token"},
    {"window", ARG_INT, AT(window), 1, 256, "20", .help = "columns of the draft model's window"},
    {"suffixes", ARG_FLAG, AT(suffixes), .fallback = "on", .help = "try phrases after the draft"},
    {"inspiration", ARG_CHOICE, AT(inspiration), .fallback = "on", .choices = INSPIRES,
     .help = "learn from what agrees after a wrong token; loose: from beta-2 tokens"},
    {"refine", ARG_CHOICE, AT(refine), .fallback = "always", .choices = REFINES,
     .help = "when tried phrases take the target's words; in_place: as the authors' code"},
    {"bonus", ARG_CHOICE, AT(bonus), .fallback = "keep", .choices = BONUSES,
     .help = "the token that a full phrase gives for free"},
    {"verify_while_filling", ARG_FLAG, AT(verify_while_filling), .fallback = "on",
     .help = "the draft model, in its first beta-2 steps, too"},
    {"replace_eos", ARG_FLAG, AT(replace_eos), .fallback = "on",
     .help = "EOS in the window makes way for a drawn token"},
    {"warm", ARG_FLAG, AT(warm), .fallback = "off", .help = "keep the phrases from prompt to prompt"},
};
#undef AT

typedef struct Ouroboros {
    OuroborosParams p;
    Session *target;
    Follower follower; // the draft model's
    Window window;
    NgramPool pool;
    Random random;
    int length, drafted; // tokens of the sequence, of the draft after it
    int *nodes, *says; // (gamma), (gamma + 1): the draft in the target's tree, and what the target says there
    Offers offers;     // of the open step: the draft, then the phrases
    int tried;         // phrases after the draft
    int *phrases;      // (K, beta - 1)
    int *phrase_nodes; // (K, beta - 1)
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
    if (!o) return;
    follower_release(&o->follower);
    window_release(&o->window);
    ngram_pool_release(&o->pool);
    mem_free(o->nodes);
    mem_free(o->says);
    mem_free(o->phrases);
    mem_free(o->phrase_nodes);
    mem_free(o);
}

static bool check_size(const OuroborosParams *p, Error *e) {
    int nodes = 1 + p->gamma + p->K * (p->beta - 1);
    return nodes <= TREE_MAX_NODES ||
           error_input(
               e,
               "gamma=%d, K=%d and beta=%d make a step of %d tokens, 1+gamma+K(beta-1); it holds at most %d",
               p->gamma, p->K, p->beta, nodes, TREE_MAX_NODES);
}

static bool allocate(Ouroboros *o, Error *e) {
    size_t gamma = (size_t)o->p.gamma, tails = (size_t)o->p.K * (size_t)(o->p.beta - 1);
    o->nodes = mem_alloc(gamma, sizeof *o->nodes);
    o->says = mem_alloc(gamma + 1, sizeof *o->says);
    o->phrases = mem_alloc(tails, sizeof *o->phrases);
    o->phrase_nodes = mem_alloc(tails, sizeof *o->phrase_nodes);
    return (o->nodes && o->says && o->phrases && o->phrase_nodes) ||
           error_system(e, "out of memory for a draft of %d tokens", o->p.gamma);
}

static bool ouroboros_init(Ouroboros *o, const MethodEnv *env, Error *e) {
    const OuroborosParams *p = &o->p;
    o->target = env->target;
    o->offers = (Offers){.names = SOURCES, .source_count = 2};
    o->random = (Random){.seed = env->seed, .stream = STREAM_METHOD};
    o->eos = env->eos;
    o->eos_count = p->replace_eos ? env->eos_count : 0;
    return check_size(p, e) && allocate(o, e) &&
           follower_init(&o->follower, env->draft, env->target->context, e) &&
           window_init(&o->window, p->window, p->beta, e) &&
           ngram_pool_init(&o->pool, env->target->shape.vocab, p->beta - 1, p->W, POOL_LRU, e);
}

static void *ouroboros_open(const MethodEnv *env, const void *values, Error *e) {
    Ouroboros *o = mem_alloc(1, sizeof *o);
    if (!o) {
        error_system(e, "out of memory");
        return NULL;
    }
    o->p = *(const OuroborosParams *)values;
    ouroboros_resolve(&o->p);
    if (ouroboros_init(o, env, e)) return o;
    ouroboros_close(o);
    return NULL;
}

// The draft, of which `drafted` tokens are there.
static int *draft_of(const Ouroboros *o) { return o->follower.sequence + o->length; }

// The last token of the sequence, or of the draft after it.
static int last_word(const Ouroboros *o) { return draft_of(o)[o->drafted - 1]; }

// A prompt that is too long for the draft model is not followed: its steps are the pool's alone.
static bool ouroboros_begin(void *self, const Prompt *prompt, Error *e) {
    Ouroboros *o = self;
    if (!prompt_fits(prompt, o->follower.session, e)) return false;
    o->random.counter = 0; // a prompt's window does not depend on the prompts before it
    if (!o->p.warm) ngram_pool_clear(&o->pool);
    o->length = prompt->count;
    o->drafted = 0;
    window_start(&o->window, &(WindowSource){&o->random, prompt->tokens, prompt->count});
    return follower_begin(&o->follower, prompt->tokens, prompt->count, NULL, e);
}

// --- the draft model's steps

// Appends the model's tokens after `base`: those that a phrase foretold, and one more. After a phrase that
// matched to its end, `bonus` decides about that one. Returns the node of the last token of a phrase.
static int append_words(Ouroboros *o, int base, int room) {
    const Session *s = o->follower.session;
    int node = base;
    for (int words = 0; o->drafted < room; words++) {
        if (o->p.bonus == BONUS_DROP && words == o->pool.width) break;
        int word = session_argmax(s, node), next = tree_child(&s->tree, node, word);
        follower_append(&o->follower, &word, 1);
        o->drafted++;
        if (next == TREE_NONE || !(s->tree.flags[next] & NODE_CANDIDATE)) break;
        node = next;
    }
    return node;
}

// The last word stays out of the cache: it is where the next step begins.
static bool draft_step(Ouroboros *o, int base, int room, Error *e) {
    Session *s = o->follower.session;
    int last = last_word(o);
    bool verifies = o->p.verify_while_filling || !window_is_filling(&o->window);
    WindowSource from = {&o->random, o->follower.sequence, o->length + o->drafted};
    for (int i = 0; i < ngram_pool_count(&o->pool, last) && verifies; i++)
        tree_chain(&s->tree, base, ngram_pool_tuple(&o->pool, last, i), o->pool.width, NULL);
    window_probe(&o->window, &s->tree, base, 0, window_columns(&o->window));
    if (!session_run(s, s->shape.layers, e) || !session_read(s, HEAD_ARGMAX, e)) return false;
    int node = append_words(o, base, room);
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

// --- the target's step

static void propose_phrases(Ouroboros *o, Tree *tree, int parent) {
    int last = last_word(o), count = ngram_pool_count(&o->pool, last), width = o->pool.width;
    o->tried = count < o->p.K ? count : o->p.K;
    for (int i = 0; i < o->tried; i++) {
        int *phrase = o->phrases + i * width;
        memcpy(phrase, ngram_pool_tuple(&o->pool, last, i), (size_t)width * sizeof *phrase);
        offer(&o->offers, SOURCE_PHRASES,
              tree_chain(tree, parent, phrase, width, o->phrase_nodes + i * width));
    }
}

static bool ouroboros_propose(void *self, Tree *tree, Error *e) {
    Ouroboros *o = self;
    int root = tree_row(tree);
    if (!write_draft(o, e)) return false;
    o->offers.count = 0;
    offer(&o->offers, SOURCE_DRAFT, tree_chain(tree, root, draft_of(o), o->drafted, o->nodes));
    propose_phrases(o, tree, o->drafted ? o->nodes[o->drafted - 1] : root);
    return true;
}

static int words_that_ran(const Ouroboros *o) {
    int n = 0;
    while (n < o->drafted && o->nodes[n] != TREE_NONE) n++;
    return n;
}

// The phrase begins with what the target says after the draft; a phrase that had no room is left as it is. It
// makes way for that, or (in place) that is written over the key's phrase `place`.
static void refine_phrase(Ouroboros *o, const Session *target, int i, int place) {
    int width = o->pool.width, said[BETA_MOST];
    const int *nodes = o->phrase_nodes + i * width;
    if (width > 1 && nodes[width - 2] == TREE_NONE) return;
    said[0] = o->says[o->drafted];
    for (int k = 1; k < width; k++) said[k] = session_argmax(target, nodes[k - 1]);
    if (o->p.refine == REFINE_IN_PLACE) ngram_pool_write(&o->pool, last_word(o), place, said);
    else phrases_refine(&o->pool, last_word(o), o->phrases + i * width, said);
}

// After a wrong token, the authors' code divides the number of phrases by their length once too often: so
// many of the oldest are refined, and written over the newest.
static int refined(const Ouroboros *o, int accepted) {
    bool divided = o->p.refine == REFINE_IN_PLACE && accepted < o->drafted;
    return divided ? o->tried / o->pool.width : o->tried;
}

static void learn(Ouroboros *o, const Observation *seen) {
    int ran = words_that_ran(o), accepted = 0;
    if (ran) accepted = sources_match(&seen->target->tree, o->nodes[ran - 1], seen->verdict->node);
    for (int i = 0; i <= ran; i++) o->says[i] = session_argmax(seen->target, i == 0 ? 0 : o->nodes[i - 1]);
    if (o->p.inspiration == INSPIRE_ON) phrases_inspire(&o->pool, draft_of(o), o->says, ran, accepted);
    if (o->p.inspiration == INSPIRE_LOOSE)
        phrases_inspire_loosely(&o->pool, draft_of(o), o->says, ran, accepted);
    if (o->p.refine == REFINE_OFF || ran < o->drafted) return;
    if (o->p.refine == REFINE_ON_ACCEPT && accepted < o->drafted) return;
    int count = refined(o, accepted); // oldest first, so that the newest stays the newest
    for (int i = 0; i < count; i++) refine_phrase(o, seen->target, o->tried - 1 - i, count - 1 - i);
}

// Takes the draft model back to what the sequence bears.
static bool follow(Ouroboros *o, const Observation *seen, Error *e) {
    int same = 0, most = seen->emitted_count - 1;
    while (same < most && same < o->drafted && draft_of(o)[same] == seen->emitted[same]) same++;
    int keep = o->length + same;
    o->follower.length = o->length; // without the draft
    follower_append(&o->follower, seen->emitted, seen->emitted_count);
    o->length = seen->length;
    o->drafted = 0;
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

static const Offers *ouroboros_offers(const void *self) { return &((const Ouroboros *)self)->offers; }

static void ouroboros_note(const void *self, StepNote *out) {
    const Ouroboros *o = self;
    out->pool = (int)o->pool.size;
    out->pool_hits = o->tried;
}

const MethodInfo method_ouroboros = {
    .name = "ouroboros",
    .summary = "a draft model that writes by phrases, and a pool of them that the target improves",
    .needs = NEEDS_DRAFT,
    .params = PARAMS,
    .param_count = sizeof PARAMS / sizeof *PARAMS,
    .param_size = sizeof(OuroborosParams),
    .resolve = ouroboros_resolve,
    .open = ouroboros_open,
    .begin = ouroboros_begin,
    .propose = ouroboros_propose,
    .observe = ouroboros_observe,
    .close = ouroboros_close,
    .drops_bonus = ouroboros_drops_bonus,
    .offers = ouroboros_offers,
    .note = ouroboros_note};
