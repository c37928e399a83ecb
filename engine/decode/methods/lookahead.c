// Lookahead decoding: each step both makes n-grams and verifies some. A window of guesses (window.h) runs as
// probes; the n-grams down its columns go into a pool (ngram_pool.h); the pool's n-grams that start with the
// sequence's last token are this step's candidates.
//
//      root -+- window: (N-1) rows of W               (W+G)(N-1) tokens per step, root included, before
//            +- n-gram 1: N-1 tokens                  equal prefixes are merged
//            +- ...
//            +- n-gram G
//
// Ranks (section 3.4): the columns and the n-grams are cut into R shares. Each share is a part of the tree
// with a root of its own and the part of row 0 that its columns are children of. In R processes
// (core/ranks.h) every rank has this window and this pool and learns everything, so the output equals that of
// R = 1.
//
// The authors' code (LookaheadDecoding at eed010d) does not verify while the window fills, drops the free
// token after a full match, slides by one whatever was accepted, leaves EOS in the window of a greedy search,
// and misreads its own output when it adds it to the pool: each token of a step as the step's last.
//
// Invariant between steps: `last` is the sequence's last token.
#include "engine/decode/methods/methods.h"

#include "engine/decode/structures/window.h"

#include <assert.h>
#include <string.h>

typedef enum { MODE_PAPER, MODE_REFERENCE } Mode;
typedef enum { SLIDE_ONE, SLIDE_ACCEPTED } Slide;
typedef enum { BONUS_KEEP, BONUS_DROP } Bonus;
typedef enum { SCOPE_TURN, SCOPE_CONVERSATION } Scope;
typedef enum { PROMPT_OFF, PROMPT_ON, PROMPT_LAST } PromptPool;
typedef enum { REPLACE_ALWAYS, REPLACE_SAMPLED } ReplaceEos;

enum { N_MOST = 32, WG_MOST = 256 };

typedef struct LookaheadParams {
    int preset, mode;
    int W, N, G;
    bool verify_while_filling;
    int slide, bonus;
    int pool_cap, eviction, pool_scope;
    int prompt_pool, replace_eos;
    int ranks;
} LookaheadParams;

typedef struct Preset {
    int W, N, G;
} Preset;

// Lookahead's Table 4 with G = W (its Table 3 prints the same triples as N, W, G), and the README's 7B.
static const char *const PRESETS[] = {"none", "paper-7b", "paper-13b", "paper-34b", "readme-7b", NULL};
static const Preset PRESET_VALUES[] = {{0, 0, 0}, {15, 5, 15}, {10, 5, 10}, {7, 5, 7}, {7, 5, 7}};

static const char *const MODES[] = {"paper", "reference", NULL};
static const char *const SLIDES[] = {"one", "accepted", NULL};
static const char *const BONUSES[] = {"keep", "drop", NULL};
static const char *const EVICTIONS[] = {"lru", "fifo", NULL}; // as PoolEviction
static const char *const SCOPES[] = {"turn", "conversation", NULL};
static const char *const PROMPT_POOLS[] = {"off", "on", "last", NULL};
static const char *const REPLACES[] = {"always", "sampled", NULL};

enum { SOURCE_POOL };
static const char *const SOURCES[] = {"pool", NULL};

#define AT(name) offsetof(LookaheadParams, name)
static const Arg PARAMS[] = {
    {"preset", ARG_CHOICE, AT(preset), .fallback = "none", .choices = PRESETS,
     .help = "a published setting of W, N and G"},
    {"mode", ARG_CHOICE, AT(mode), .fallback = "paper", .choices = MODES,
     .help = "reference: verify_while_filling=off,slide=one,bonus=drop,replace_eos=sampled; "
             "prompt_pool=last for on"},
    {"W", ARG_INT, AT(W), 1, WG_MOST, "15", .help = "columns of the window"},
    {"N", ARG_INT, AT(N), 2, N_MOST, "5", .help = "tokens of an n-gram"},
    {"G", ARG_INT, AT(G), 0, WG_MOST, "15", .help = "most n-grams verified per step"},
    {"verify_while_filling", ARG_FLAG, AT(verify_while_filling), .fallback = "on",
     .help = "verify n-grams in the first N-2 steps too"},
    {"slide", ARG_CHOICE, AT(slide), .fallback = "one", .choices = SLIDES,
     .help = "how far the window moves per step"},
    {"bonus", ARG_CHOICE, AT(bonus), .fallback = "keep", .choices = BONUSES,
     .help = "the free token after a full match"},
    {"pool_cap", ARG_INT, AT(pool_cap), 0, 1024, "0", .help = "n-grams kept per first token; 0: G"},
    {"eviction", ARG_CHOICE, AT(eviction), .fallback = "lru", .choices = EVICTIONS,
     .help = "which n-gram is evicted for a new one"},
    {"pool_scope", ARG_CHOICE, AT(pool_scope), .fallback = "turn", .choices = SCOPES,
     .help = "conversation: keep the pool between prompts"},
    {"prompt_pool", ARG_CHOICE, AT(prompt_pool), .fallback = "off", .choices = PROMPT_POOLS,
     .help = "pool n-grams of prompt and output too; last: read a step's output as its last token repeated"},
    {"replace_eos", ARG_CHOICE, AT(replace_eos), .fallback = "always", .choices = REPLACES,
     .help = "replace EOS in the window by a drawn token; sampled: not in greedy decoding"},
    {"ranks", ARG_INT, AT(ranks), 1, TREE_MAX_PARTS, "1", .help = "ranks that share a step"},
};

typedef struct Lookahead {
    LookaheadParams p;
    Window window;
    NgramPool pool;
    Sources sources; // of the open step: the pool's n-grams, newest first
    Random random;
    int last;       // the sequence's last token, the root of the next step
    const int *eos; // (eos_count): tokens that the window does not keep
    int eos_count;
    int read[N_MOST]; // (read_count), at most N: the end of the text that prompt_pool has read
    int read_count;
} Lookahead;

// --- open and close

static void lookahead_resolve(void *values) {
    LookaheadParams *p = values;
    const Preset *preset = &PRESET_VALUES[p->preset];
    if (p->preset) {
        p->W = preset->W;
        p->N = preset->N;
        p->G = preset->G;
    }
    if (p->mode == MODE_REFERENCE) {
        p->verify_while_filling = false;
        p->slide = SLIDE_ONE;
        p->bonus = BONUS_DROP;
        p->replace_eos = REPLACE_SAMPLED;
        if (p->prompt_pool == PROMPT_ON) p->prompt_pool = PROMPT_LAST;
    }
    if (p->pool_cap == 0) p->pool_cap = p->G > 0 ? p->G : 1;
    p->preset = 0;
    p->mode = MODE_PAPER;
}

static void lookahead_close(void *self) {
    Lookahead *l = self;
    window_release(&l->window);
    ngram_pool_release(&l->pool);
}

static bool lookahead_open(void *self, const MethodEnv *env, Error *e) {
    Lookahead *l = self;
    LookaheadParams *p = &l->p;
    lookahead_resolve(p);
    int nodes = (p->W + p->G) * (p->N - 1);
    if (nodes > TREE_MAX_NODES)
        return error_input(e, "W=%d, N=%d and G=%d make a step of %d tokens, (W+G)(N-1); it holds at most %d",
                           p->W, p->N, p->G, nodes, TREE_MAX_NODES);
    if (env->mixed && p->ranks > 1)
        return error_input(e, "'ranks' is %d, must be 1 in a mix: its methods share one tree", p->ranks);
    l->random = (Random){.seed = env->seed, .stream = STREAM_METHOD};
    l->eos = env->eos;
    l->eos_count =
        p->replace_eos == REPLACE_SAMPLED && sampling_is_greedy(&env->sampling) ? 0 : env->eos_count;
    window_init(&l->window, p->W, p->N);
    return ngram_pool_init(&l->pool, env->target->shape.vocab, p->N - 1, p->pool_cap,
                           (PoolEviction)p->eviction, e);
}

// --- the pool

// Reads the next token of the text and inserts the n-gram that ends with it.
static void read_token(Lookahead *l, int token) {
    if (l->read_count == l->p.N) memmove(l->read, l->read + 1, (size_t)(--l->read_count) * sizeof *l->read);
    assert(l->read_count < l->p.N);
    l->read[l->read_count++] = token;
    if (l->read_count == l->p.N) ngram_pool_insert(&l->pool, l->read[0], l->read + 1);
}

// --- a step

static bool lookahead_begin(void *self, const Prompt *prompt, UNUSED Error *e) {
    Lookahead *l = self;
    l->random.counter = 0; // a prompt's window does not depend on the prompts before it
    l->last = prompt->tokens[prompt->count - 1];
    window_start(&l->window, &(WindowSource){&l->random, prompt->tokens, prompt->count});
    if (l->p.pool_scope == SCOPE_TURN) ngram_pool_clear(&l->pool);
    l->read_count = 0;
    for (int i = 0; i < prompt->count && l->p.prompt_pool; i++) read_token(l, prompt->tokens[i]);
    return true;
}

static int guesses(const Lookahead *l) {
    int n = ngram_pool_count(&l->pool, l->last);
    assert(l->last >= 0 && l->last < l->pool.vocab);
    if (window_is_filling(&l->window) && !l->p.verify_while_filling) return 0;
    return n < l->p.G ? n : l->p.G;
}

static int share_end(int share, int rank, int count) {
    return share * (rank + 1) < count ? share * (rank + 1) : count;
}

static int share_of(int count, int ranks) { return (count + ranks - 1) / ranks; }

// Newest n-gram first. If there is no room for a rank's root, its columns do not fit either.
static bool lookahead_propose(void *self, Tree *tree, UNUSED Error *e) {
    Lookahead *l = self;
    int columns = window_columns(&l->window), column = 0, guess = 0;
    l->sources.count = 0;
    for (int rank = 0; rank < l->p.ranks; rank++) {
        int columns_end = share_end(share_of(columns, l->p.ranks), rank, columns);
        int guesses_end = share_end(share_of(l->p.G, l->p.ranks), rank, guesses(l));
        int base = rank == 0 ? tree->part_root[0] : tree_part(tree);
        for (int i = guess; base != TREE_NONE && i < guesses_end; i++)
            sources_propose(&l->sources, tree, SOURCE_POOL, ngram_pool_tuple(&l->pool, l->last, i),
                            l->pool.width);
        window_probe(&l->window, tree, base, column, columns_end);
        column = columns_end;
        guess = guesses_end;
    }
    assert(column == columns); // every column is in one share
    return true;
}

static bool lookahead_observe(void *self, const Observation *seen, UNUSED Error *e) {
    Lookahead *l = self;
    WindowSource text = {&l->random, seen->sequence, seen->length};
    int by = l->p.slide == SLIDE_ACCEPTED ? seen->emitted_count : 1, count = seen->emitted_count;
    window_read(&l->window, seen->target, &text);
    window_collect(&l->window, l->last, &l->pool);
    for (int i = 0; i < count && l->p.prompt_pool; i++)
        read_token(l, seen->emitted[l->p.prompt_pool == PROMPT_LAST ? count - 1 : i]);
    window_slide(&l->window, by, l->eos, l->eos_count, &text);
    l->last = seen->sequence[seen->length - 1];
    return true;
}

static bool lookahead_drops_bonus(const void *self, const Verdict *verdict) {
    const Lookahead *l = self;
    return l->p.bonus == BONUS_DROP && verdict->accepted == l->p.N - 1;
}

static void lookahead_note(const void *self, StepNote *out) {
    const Lookahead *l = self;
    out->kind = window_is_filling(&l->window) ? STEP_FILLING : STEP_STEADY;
    out->pool = (int)l->pool.size;
    out->pool_hits = guesses(l);
}

static void lookahead_state(const void *self, Text *out) {
    ngram_pool_describe(&((const Lookahead *)self)->pool, out);
}

static void lookahead_work(const void *self, StepWork *out) {
    const LookaheadParams *p = &((const Lookahead *)self)->p;
    *out = (StepWork){.longest = p->N, .rows = (p->W + p->G) * (p->N - 1)};
}

// --- ranks

static int lookahead_ranks(const void *self, RankLimits *most) {
    const LookaheadParams *p = &((const Lookahead *)self)->p;
    int guessed = p->G * (p->N - 1); // equal prefixes are read by one rank: it may be the same for all
    *most = (RankLimits){1 + p->W + p->N - 2 + guessed, guessed};
    return p->ranks;
}

static uint64_t lookahead_digest(const void *self) {
    const Lookahead *l = self;
    uint64_t state[] = {l->pool.history, window_digest(&l->window), l->random.counter, (uint64_t)l->last};
    return ranks_hash(0, state, sizeof state);
}

const MethodInfo method_lookahead = {
    METHOD_ROW(lookahead, Lookahead),
    .name = "lookahead",
    .summary = "n-grams from a window of guesses that the model improves, verified as it goes",
    .resolve = lookahead_resolve,
    .drops_bonus = lookahead_drops_bonus,
    .note = lookahead_note,
    .state = lookahead_state,
    .ranks = lookahead_ranks,
    .digest = lookahead_digest};
