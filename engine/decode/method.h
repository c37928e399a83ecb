// What a method is: it proposes; verify.c disposes.
//
// A method is told the prompt (begin), fills the tree (propose) and sees what the model said at every node
// and what was accepted (observe). It never emits a token, so it cannot break losslessness. A new method is
// one file under methods/ and one row in methods/table.c.
#pragma once
#include "engine/base/file.h"
#include "engine/core/session.h"
#include "engine/base/args.h"
#include "engine/core/sampler.h"
#include "engine/decode/sources.h"
#include "engine/decode/verify.h"

#include <stdint.h>

typedef enum { EMBEDDING_INPUT, EMBEDDING_OUTPUT } EmbeddingKind;

// What is known of the target beside what it says. All zero: nothing.
typedef struct TargetFacts {
    const int *prefix; // (prefix_count): what stands before every text, BOS
    int prefix_count;
    const void *self; // of the functions
    // Names the weights, equal only where they are; NULL: what is made of them is not kept.
    bool (*identify)(const void *self, char out[SHA256_TEXT], Error *e);
    // Writes a token's row of the input or output embedding, (width); NULL: there are no weights.
    void (*embedding)(const void *self, EmbeddingKind kind, int token, float *row);
} TargetFacts;

// What a method may use. Sessions it does not need are NULL.
typedef struct MethodEnv {
    Session *target;
    Session *draft;    // same vocabulary
    Session *adapters; // (adapter_count): Kangaroo's adapter, or Medusa's heads; input: hidden states
    int adapter_count;
    int adapter_layer; // of the target, whose states they take; its number of layers: the final normed ones
    Sampling sampling;
    uint64_t seed;
    const int *eos; // tokens that end the output; they outlive the method
    int eos_count;
    TargetFacts facts;
    const char *cache; // a directory for what is made once and used again; NULL: nothing is kept
    bool mixed;        // others fill the same tree: what is accepted may not be the method's own
    // Told that a table that was made is not kept, and why; NULL: where it cannot be, that is an error.
    void (*unkept)(const void *state, const Error *why);
    const void *unkept_state;
    Progress progress;           // of making them
    struct Rehearsal *rehearsal; // nothing is run: see model_tables.h; NULL: it is
} MethodEnv;

typedef struct Prompt {
    const int *tokens; // the whole prompt; the last one is the first step's root
    int count;
    const float *hidden; // (count - 1, width) where the method asked for it (hidden_layer), else NULL
    uint64_t seed;       // of this output: what is drawn for it (STREAM_DRAFT) begins here
} Prompt;

// Whether a draft model has all of the prompt's ids: a target may have more padding at its vocabulary's end.
bool prompt_fits(const Prompt *prompt, const Session *draft, Error *e);

// One finished step. The session's tree and outputs are those of the step: session_argmax, session_get_hidden
// and tree hold.
typedef struct Observation {
    const Session *target;
    const Verdict *verdict;
    const int *emitted;  // tokens that the step emitted: accepted ones, then the bonus
    int emitted_count;   // after EOS and limits
    const int *sequence; // the whole sequence so far, prompt and output
    int length;
    const float *hidden; // (nodes, width) at the method's hidden_layer, where it is mixed; else NULL
} Observation;

enum { HIDDEN_NONE = -1 };

typedef enum {
    STEP_STEADY,
    STEP_FILLING, // of Lookahead's window: not all of its rows are there yet
    STEP_PREFILL, // not a step: the prompt's run
} StepKind;

const char *step_kind_name(StepKind kind);

// What a method says of its step beside the tree; all zero: nothing.
typedef struct StepNote {
    StepKind kind;
    int pool, pool_hits; // n-grams in its pool, and those that it tried
} StepNote;

// What a method cannot do without; method_open sees to it that it is there and fits the target.
typedef enum {
    NEEDS_DRAFT = 1,
    NEEDS_ADAPTER = 2, // one, on a layer below the last
    NEEDS_HEADS = 4,   // adapters on the final normed states, one for each further token
    NEEDS_FILE = 8,    // named by a parameter that has no default
} MethodNeed;

typedef struct MethodInfo {
    const char *name;
    const char *summary; // one line
    unsigned needs;      // of MethodNeed
    const Arg *params;
    size_t param_count;
    size_t param_size; // of the parameter struct
    // Puts into `values` what presets and modes stand for, and takes these away, so that two ways to say one
    // thing are equal; NULL: there are none.
    void (*resolve)(void *values);
    // values: the parameter struct, copied by open if needed later.
    void *(*open)(const MethodEnv *env, const void *values, Error *e);
    // A new sequence. State of the last one is dropped, unless the method keeps some by its parameters.
    bool (*begin)(void *self, const Prompt *prompt, Error *e);
    // The target's step is open and has its root (node 0). Adds what should be tried. May run the target's
    // lower layers and other sessions.
    bool (*propose)(void *self, Tree *tree, Error *e);
    bool (*observe)(void *self, const Observation *seen, Error *e);
    void (*close)(void *self); // takes NULL
    // The layer whose hidden states of the prompt `begin` wants, or HIDDEN_NONE; NULL: none.
    int (*hidden_layer)(const void *self);
    // True where the step's bonus token is thrown away, as some authors' codes do (Lookahead's `bonus`);
    // NULL: never. Only asked after a full match: candidates were accepted, and the last of them has no
    // proposals below it. After a rejection the bonus comes from what the rejection left of p; thrown away
    // and drawn anew from p, the rejected token would get a second chance. For the same reason the bonus is
    // not shown.
    bool (*drops_bonus)(const void *self, const Verdict *verdict);
    // Where the rows of the last propose came from; NULL: the method has no sources to tell apart.
    const Offers *(*offers)(const void *self);
    void (*note)(const void *self, StepNote *out); // asked before observe, out all zero; NULL: nothing to say
} MethodInfo;

// All methods, in the order of --help.
const MethodInfo *const *method_table(size_t *count);
const MethodInfo *method_find(const char *name, Error *e); // unknown: e names the nearest

// A method by "name" or "name:key=value,...".
typedef struct Method {
    const MethodInfo *info;
    void *self;
    void *values; // the parameter struct, as opened
    // What it runs beside the target (see MethodEnv): here so that the loop can note their passes.
    Session *draft, *adapters; // adapters: (adapter_count)
    int adapter_count;
} Method;

bool method_open(Method *m, const char *text, const MethodEnv *env, Error *e);
void method_close(Method *m);

// Name, summary and one line per parameter, for `outpace methods`.
void method_describe(const MethodInfo *info, Text *out);
