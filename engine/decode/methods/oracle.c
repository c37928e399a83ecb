// Known acceptance on purpose: proposes the model's own continuation, in which each token is replaced by
// another with a set chance. The verifier is the real one, so the output stays the model's. With a chance of
// 1 it is the limit that the cost of a step sets to any drafter; with a known one, S must be that of the laws
// of guess-and-verify decoding (simulate/laws.h), whose terms are parameters here.
//
// A step draws whether it is good, then how many guesses it has, then every guess token by token. Where only
// a mean length is known, as benchmarks of servers publish it, the steps of an output have the two whole
// lengths around it, so that their sum is never off by more than half a token: the least variance there is.
//
// Invariant between steps: `at` tokens of the output are known; the answer continues there.
#include "engine/decode/methods/methods.h"

#include "engine/base/ranges.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef enum { BONUS_KEEP, BONUS_DROP } Bonus;
typedef enum { SPREAD_LEAST, SPREAD_GEOMETRIC } Spread;

typedef struct OracleParams {
    char accept[ARG_TEXT_SIZE], guess_shares[ARG_TEXT_SIZE];
    char levels[ARG_TEXT_SIZE], level_shares[ARG_TEXT_SIZE];
    int draft, guesses, filling, bonus, spread;
    double f, eta, length;
} OracleParams;

static const char *const BONUSES[] = {"keep", "drop", NULL}, *const SPREADS[] = {"least", "geometric", NULL};

#define AT(name) offsetof(OracleParams, name)
static const Arg PARAMS[] = {
    {"accept", ARG_TEXT, AT(accept), .fallback = "0.8",
     .help = "chance that a token is right: a, or a1:a2:... by position, the last one for all further"},
    {"length", ARG_REAL, AT(length), 0, TREE_MAX_NODES, "0",
     .help = "in place of accept: a step's mean tokens, the model's own included; 0: none"},
    {"spread", ARG_CHOICE, AT(spread), .fallback = "least", .choices = SPREADS,
     .help = "of length: least: the whole numbers around it; geometric: one chance at all positions"},
    {"draft", ARG_INT, AT(draft), 0, TREE_MAX_NODES - 1, "5",
     .help = "tokens of a guess; 0: up to its first wrong one"},
    {"guesses", ARG_INT, AT(guesses), 0, TREE_MAX_NODES - 1, "1", .help = "of a step, each drawn by itself"},
    {"guess_shares", ARG_TEXT, AT(guess_shares), .fallback = "none",
     .help = "s0:s1:...: shares of steps with 0, 1, ... guesses, in place of guesses"},
    {"f", ARG_REAL, AT(f), 1, 1e6, "1", .help = "one step in f has guesses, at random"},
    {"filling", ARG_INT, AT(filling), 0, 1 << 20, "0", .help = "first steps of an output without guesses"},
    {"bonus", ARG_CHOICE, AT(bonus), .fallback = "keep", .choices = BONUSES,
     .help = "drop: not the model's token after a full match"},
    {"levels", ARG_TEXT, AT(levels), .fallback = "none",
     .help = "c1:c2:...: confidences that tokens have; accept is then by level"},
    {"level_shares", ARG_TEXT, AT(level_shares), .fallback = "none",
     .help = "s1:s2:...: the levels' shares of all tokens"},
    {"eta", ARG_REAL, AT(eta), 0, 1, "0", .help = "a guess ends after a token of this confidence or less"},
};

static const char *const SOURCES[] = {"answer", NULL};

typedef struct Oracle {
    OracleParams p;
    RealList accept, guess_shares, levels, level_shares;
    const int *answer; // (count): the caller's
    int count, at, steps;
    int right;   // of this step's guess, with a length of least spread
    double owed; // right tokens that steps should have had so far beyond those that they had
    int vocab;
    Random random;
    Sources sources;
} Oracle;

static void oracle_check(UNUSED const Oracle *o) {
    assert(o->accept.count >= 1 && o->levels.count == o->level_shares.count);
    assert(o->at >= 0 && o->steps <= o->at);
}

// --- open

static bool read_list(const char *text, const char *what, RealList *out, Error *e) {
    return strcmp(text, "none") == 0 || real_list_parse(text, what, 0, 1, out, e);
}

static bool check_shares(const RealList *shares, const char *what, Error *e) {
    double sum = 0;
    for (int i = 0; i < shares->count; i++) sum += shares->items[i];
    return shares->count == 0 || fabs(sum - 1) <= 1e-9 ||
           error_input(e, "%s sum to %g, must to 1", what, sum);
}

static bool read_lists(Oracle *o, Error *e) {
    const OracleParams *p = &o->p;
    if (!real_list_parse(p->accept, "'accept'", 0, 1, &o->accept, e) ||
        !read_list(p->guess_shares, "'guess_shares'", &o->guess_shares, e) ||
        !read_list(p->levels, "'levels'", &o->levels, e) ||
        !read_list(p->level_shares, "'level_shares'", &o->level_shares, e) ||
        !check_shares(&o->guess_shares, "'guess_shares'", e) ||
        !check_shares(&o->level_shares, "'level_shares'", e))
        return false;
    int levels = o->levels.count;
    return (levels == o->level_shares.count && (!levels || levels == o->accept.count)) ||
           error_input(e,
                       "there are %d 'levels', %d 'level_shares' and %d chances in 'accept': give "
                       "as many of each",
                       levels, o->level_shares.count, o->accept.count);
}

// The chance that makes guesses of `draft` tokens (0: of any length) give so many tokens a step.
static double chance_of_length(double length, int draft) {
    double low = 0, high = 1;
    for (int round = 0; round < 60; round++) {
        double a = (low + high) / 2, power = 1, sum = 1;
        if (draft == 0) sum = 1 / (1 - a);
        for (int i = 0; i < draft; i++) sum += power *= a;
        if (sum < length) low = a;
        else high = a;
    }
    return high;
}

static bool take_length(Oracle *o, Error *e) {
    const OracleParams *p = &o->p;
    if (p->length <= 0) return true;
    if (p->length < 1) return error_input(e, "'length' is %g, must be 1 or more", p->length);
    if (p->draft && p->length > p->draft + 1)
        return error_input(e, "'length' is %g, but a guess of %d tokens gives at most %d", p->length,
                           p->draft, p->draft + 1);
    if (p->guesses != 1 || o->guess_shares.count || o->levels.count)
        return error_input(e, "'length' is of one guess a step, without 'guess_shares' and 'levels'");
    if (p->spread == SPREAD_GEOMETRIC)
        o->accept = (RealList){.count = 1, .items = {chance_of_length(p->length, p->draft)}};
    return true;
}

static int most_guesses(const Oracle *o) {
    return o->guess_shares.count ? o->guess_shares.count - 1 : o->p.guesses;
}

static bool oracle_open(void *self, const MethodEnv *env, Error *e) {
    Oracle *o = self;
    o->vocab = env->target->shape.real_vocab;
    if (!read_lists(o, e) || !take_length(o, e)) return false;
    int guesses = most_guesses(o);
    return (double)guesses * o->p.draft < TREE_MAX_NODES ||
           error_input(e, "%d guesses of %d tokens are too many for a step of %d nodes", guesses, o->p.draft,
                       TREE_MAX_NODES);
}

static void oracle_close(void *self) { (void)self; }

static bool oracle_begin(void *self, const Prompt *prompt, Error *e) {
    Oracle *o = self;
    if (!prompt->answer)
        return error_input(e, "the model's own continuation is not known here: 'outpace run', 'verify' and "
                              "'generate' decode it first");
    o->answer = prompt->answer;
    o->count = prompt->answer_count;
    o->at = o->steps = 0;
    o->owed = 0.5; // half of all outputs round up
    o->random = (Random){.seed = prompt->seed, .stream = STREAM_METHOD};
    oracle_check(o);
    return true;
}

// --- a step

static int draw_share(Oracle *o, const RealList *shares) {
    double u = random_uniform(&o->random);
    int i = 0;
    while (i < shares->count - 1 && u >= shares->items[i]) u -= shares->items[i++];
    return i;
}

static bool is_even(const Oracle *o) { return o->p.length > 0 && o->p.spread == SPREAD_LEAST; }

// Draws token `i` of a guess; false: the guess ends with it.
static bool draw_token(Oracle *o, int i, int *token) {
    bool leveled = o->levels.count > 0;
    int kind = leveled ? draw_share(o, &o->level_shares) : i < o->accept.count ? i : o->accept.count - 1;
    bool right = is_even(o) ? i < o->right : random_uniform(&o->random) < o->accept.items[kind];
    bool sure = !leveled || o->p.eta <= 0 || o->levels.items[kind] > o->p.eta;
    *token = o->answer[o->at + i];
    if (!right && o->vocab > 1) // another one
        *token = (*token + 1 + (int)random_below(&o->random, (uint32_t)o->vocab - 1)) % o->vocab;
    return sure && (right || o->p.draft > 0);
}

static bool oracle_propose(void *self, Tree *tree, UNUSED Error *e) {
    Oracle *o = self;
    int rest = o->count - o->at, most = o->p.draft > 0 ? o->p.draft : TREE_MAX_NODES - 1;
    if (most > rest) most = rest;
    o->sources.count = 0;
    int guesses = 0;
    if (o->steps >= o->p.filling && random_uniform(&o->random) * o->p.f < 1)
        guesses = o->guess_shares.count ? draw_share(o, &o->guess_shares) : o->p.guesses;
    if (guesses > 0 && is_even(o)) {
        o->owed += o->p.length - 1;
        o->right = (int)floor(o->owed);
        o->owed -= o->right;
    }
    for (; guesses > 0; guesses--) {
        int tokens[TREE_MAX_NODES], n = 0;
        for (bool more = true; more && n < most; n++) more = draw_token(o, n, &tokens[n]);
        sources_propose(&o->sources, tree, 0, tokens, n);
    }
    return true;
}

static bool oracle_observe(void *self, const Observation *seen, UNUSED Error *e) {
    Oracle *o = self;
    o->at += seen->emitted_count;
    o->steps++;
    oracle_check(o);
    return true;
}

static bool oracle_drops_bonus(const void *self, UNUSED const Verdict *verdict) {
    return ((const Oracle *)self)->p.bonus == BONUS_DROP;
}

static void oracle_note(const void *self, StepNote *out) {
    const Oracle *o = self;
    if (o->steps < o->p.filling) out->kind = STEP_FILLING;
}

static void oracle_work(const void *self, StepWork *out) {
    const Oracle *o = self;
    *out = (StepWork){.longest = o->p.draft + 1, .rows = 1 + most_guesses(o) * o->p.draft};
}

const MethodInfo method_oracle = {METHOD_ROW(oracle, Oracle),
                                  .name = "oracle",
                                  .summary = "the model's own continuation, right with a set chance; greedy",
                                  .needs = NEEDS_ANSWER,
                                  .drops_bonus = oracle_drops_bonus,
                                  .note = oracle_note};
