// Jacobi decoding (Lookahead, section 2): the next m tokens are the solution of a fixed-point equation; a
// block of m guesses is run as one chain, and each step replaces every guess by the model's argmax before it.
//
//      block   g0 g1 g2 g3          chain:  last - g0 - g1 - g2 - g3
//      argmax  a0 a1 a2 a3 a4       a0: after last, a1: after g0, ...
//      accepted: the longest i with g0 = a0, .., g(i-1) = a(i-1); the bonus is ai
//      next block: a(i+1) .. a4, the model's tokens after the bonus, then fresh guesses; or all fresh
//      (refill)
//
// Invariant: between steps `block` holds m guesses for the tokens after the sequence's last one.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

typedef enum { START_RANDOM, START_REPEAT, START_PAD } Start;
typedef enum { REFILL_PREDICTIONS, REFILL_FRESH } Refill;

typedef struct JacobiParams {
    int m;
    int start;
    int pad;
    int refill;
} JacobiParams;

static const char *const STARTS[] = {"random", "repeat", "pad", NULL};
static const char *const REFILLS[] = {"predictions", "fresh", NULL};

#define AT(name) offsetof(JacobiParams, name)
static const Arg PARAMS[] = {
    {"m", ARG_INT, AT(m), 1, TREE_MAX_NODES - 1, "8", .help = "guesses in a block"},
    {"start", ARG_CHOICE, AT(start), .fallback = "random", .choices = STARTS,
     .help = "fresh guesses: tokens of the prompt, the last token, or pad"},
    {"pad", ARG_INT, AT(pad), 0, 1 << 21, "0", .help = "token id for start=pad"},
    {"refill", ARG_CHOICE, AT(refill), .fallback = "predictions", .choices = REFILLS,
     .help = "next block: the model's tokens, or fresh guesses"},
};

static const char *const SOURCES[] = {"guesses", NULL};

typedef struct Jacobi {
    JacobiParams p;
    Random random;
    int *block, *nodes; // (m)
    int *prompt;        // (prompt_count)
    size_t prompt_capacity;
    int prompt_count;
    Sources sources; // of the open step: the block
} Jacobi;

static void jacobi_close(void *self) {
    Jacobi *j = self;
    MEM_FREE(j->block, j->nodes, j->prompt);
}

static bool jacobi_open(void *self, const MethodEnv *env, Error *e) {
    Jacobi *j = self;
    const JacobiParams *p = &j->p;
    if (p->start == START_PAD && p->pad >= env->target->shape.vocab)
        return error_input(e, "'pad' is %d, outside the vocabulary of %d", p->pad, env->target->shape.vocab);
    j->random = (Random){.seed = env->seed, .stream = STREAM_METHOD};
    j->block = mem_new((size_t)p->m, sizeof *j->block);
    j->nodes = mem_new((size_t)p->m, sizeof *j->nodes);
    return true;
}

static int fresh_guess(Jacobi *j, int last) {
    assert(j->prompt_count >= 1);
    switch ((Start)j->p.start) {
    case START_RANDOM: return j->prompt[random_below(&j->random, (uint32_t)j->prompt_count)];
    case START_REPEAT: return last;
    case START_PAD: return j->p.pad;
    }
    return last;
}

static bool jacobi_begin(void *self, const Prompt *prompt, UNUSED Error *e) {
    Jacobi *j = self;
    mem_grow(&j->prompt, &j->prompt_capacity, (size_t)prompt->count, sizeof *j->prompt);
    j->prompt_count = prompt->count;
    memcpy(j->prompt, prompt->tokens, (size_t)prompt->count * sizeof *j->prompt);
    j->random.counter = 0; // a prompt's guesses do not depend on the prompts before it
    for (int i = 0; i < j->p.m; i++) j->block[i] = fresh_guess(j, prompt->tokens[prompt->count - 1]);
    return true;
}

static bool jacobi_propose(void *self, Tree *tree, UNUSED Error *e) {
    Jacobi *j = self;
    assert(j->block && j->nodes && j->p.m >= 1);
    assert(j->prompt_count >= 1 && (size_t)j->prompt_count <= j->prompt_capacity);
    j->sources.count = 0;
    sources_record(&j->sources, 0, tree_chain(tree, tree_row(tree), j->block, j->p.m, j->nodes));
    return true;
}

static bool jacobi_observe(void *self, const Observation *seen, UNUSED Error *e) {
    Jacobi *j = self;
    int kept = 0, last = seen->sequence[seen->length - 1];
    if (j->p.refill == REFILL_PREDICTIONS)
        for (int i = seen->verdict->accepted; i < j->p.m && j->nodes[i] != TREE_NONE; i++)
            j->block[kept++] = session_argmax(seen->target, j->nodes[i]);
    for (; kept < j->p.m; kept++) j->block[kept] = fresh_guess(j, last);
    return true;
}

static void jacobi_work(const void *self, StepWork *out) {
    int m = ((const Jacobi *)self)->p.m;
    *out = (StepWork){.longest = m + 1, .rows = m + 1};
}

const MethodInfo method_jacobi = {METHOD_ROW(jacobi, Jacobi), .name = "jacobi",
                                  .summary =
                                      "a block of guesses, replaced in each step by the model's own tokens"};
