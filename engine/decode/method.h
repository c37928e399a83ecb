// A method proposes; verify.c disposes.
//
// A method gets the prompt (begin), fills the tree (propose), and sees the model's output at every node and
// the verdict (observe). It never emits a token, so it can't break losslessness. A new method is one file
// under methods/ and one row in methods/table.c.
#pragma once
#include "engine/base/args.h"
#include "engine/core/ranks.h"
#include "engine/decode/env.h"
#include "engine/decode/rank_tree.h"
#include "engine/decode/sources.h"
#include "engine/decode/switch.h"
#include "engine/decode/verify.h"

typedef struct Prompt {
    const int *tokens; // the whole prompt; the last token is the first step's root
    int count;
    const float *hidden; // (count - 1, width) at hidden_layer, of captures a row of all; NULL: it has neither
    uint64_t seed;       // of this output: where draws of STREAM_DRAFT start
    const int *answer;   // (answer_count): the model's own greedy output; NULL: not known. Lives as long as
    int answer_count;    // the output is written
} Prompt;

// One finished step. The session still has the step's tree and outputs: session_argmax, session_get_hidden.
typedef struct Observation {
    const Session *target;
    const Verdict *verdict;
    const int *emitted;  // (emitted_count): the accepted tokens, then the bonus
    int emitted_count;   // after EOS and limits
    const int *sequence; // (length): prompt and output so far
    int length;
    const float *hidden; // (nodes, width) at the method's hidden_layer, in a mix; else NULL
} Observation;

// Requirements; method_open checks that they are there and fit the target.
typedef enum {
    NEEDS_DRAFT = 1,
    NEEDS_ADAPTER = 2,  // one, on a layer below the last
    NEEDS_HEADS = 4,    // adapters on the final normed states, one per further token
    NEEDS_FILE = 8,     // named by a parameter without a default
    NEEDS_ANSWER = 16,  // the prompt's, and so greedy decoding; not in a mix
    NEEDS_LAYERS = 32,  // of the target: more than one, and no other method that drafts from them
    NEEDS_EAGLE = 64,   // a draft that reads tokens and the final normed states
    NEEDS_EAGLE3 = 128, // one that reads tokens and several layers
    NEEDS_DFLASH = 256, // one that reads several layers and guesses a block
    NEEDS_MTP = 512,    // one that reads tokens and the last layer's states
    NEEDS_ADAPTERS = NEEDS_ADAPTER | NEEDS_HEADS | NEEDS_EAGLE | NEEDS_EAGLE3 | NEEDS_MTP | NEEDS_DFLASH,
} MethodNeed;

// Forwards of a model that drafts in a step.
typedef struct DraftWork {
    const Shape *shape;
    int layers;            // that run
    bool head;             // runs, too
    double forwards, rows; // rows: of all of them
} DraftWork;

enum { DRAFTS_MOST = 4 };
// A step as planned. All are upper bounds, except where the rows depend on the text by a rule (suffix).
typedef struct StepWork {
    int longest; // tokens that it can emit
    double rows; // of the target, root included
    DraftWork drafts[DRAFTS_MOST];
    int draft_count;
} StepWork;

typedef struct MethodInfo {
    const char *name, *summary; // one line
    unsigned needs;             // of MethodNeed
    bool from_text;             // it reads the text alone, never the model's outputs: replay can run it
    const Arg *params;
    size_t param_count, param_size, self_size; // self: an open one's struct; begins with its parameters
    // Replaces presets and modes in `values` by the parameters they stand for. NULL: the method has none.
    void (*resolve)(void *values);
    // self has its parameters and sources' names, the rest is zero. After an error it is closed. NULL: none
    bool (*open)(void *self, const MethodEnv *env, Error *e);
    // Before begin, for each part of the prompt that has run: tokens [first, first + count), readable nodes.
    bool (*prefilled)(void *self, const int *tokens, int first, int count, Error *e);
    // A new sequence. Drops the last one's state, except what the method's parameters keep.
    bool (*begin)(void *self, const Prompt *prompt, Error *e);
    // Before the target's step is open: may run steps of its own on it (session_set_aside). NULL: none.
    bool (*prepare)(void *self, Error *e);
    // The step has its root (node 0). Adds tokens to try. May run the target's lower layers, other sessions.
    bool (*propose)(void *self, Tree *tree, Error *e);
    bool (*observe)(void *self, const Observation *seen, Error *e);
    void (*look)(void *self, Outlook *out); // the draft that propose would add; NULL: a model makes it
    bool may_rest;                          // a mix may leave propose out of a step, and call only observe
    void (*close)(void *self);              // frees what self owns, but not self. NULL: it owns nothing
    // The layer whose hidden states of the prompt `begin` needs, or HIDDEN_NONE. NULL: none.
    int (*hidden_layer)(const void *self);
    // Several such layers, whose states the target keeps in every step, too. NULL, or returns NULL: none.
    const Captures *(*captures)(const void *self);
    // Whether to drop the step's bonus token (Lookahead's `bonus`). NULL: never. Called only after a full
    // match, without the bonus: redrawn from p, it would give a rejected token a second chance.
    bool (*drops_bonus)(const void *self, const Verdict *verdict);
    size_t sources; // offsetof its Sources (method_sources). 0: it doesn't tell sources apart
    const char *const *source_names; // with a NULL at their end; or open gives them
    // The tree of ranks that the last propose placed. NULL, or returns NULL: none.
    const RankTree *(*rank_tree)(const void *self);
    void (*work)(const void *self, StepWork *out); // a step of one row is in *out; NULL: it is that
    void (*note)(const void *self, StepNote *out); // called before observe, with *out zero; NULL: no notes
    // Whether each step's proposals are one chain of draws from q; its end may depend on its tokens. NULL: no
    bool (*chain)(const void *self);
    // For core/ranks.h: how many ranks share a step, and a hash of all that the method remembers. NULL: none
    int (*ranks)(const void *self, RankLimits *most);
    uint64_t (*digest)(const void *self);
    void (*state)(const void *self, Text *out);    // a line on its memory: entries, bytes, evicted; or NULL
    bool (*unchanged)(const void *self, Error *e); // see method_is_unchanged. NULL: it maps no file
} MethodInfo;

// The members that nearly every method has; PARAMS are the rows of its parameters, SOURCES names.
#define METHOD_ROW(prefix, Type) METHOD_ROW_OF(prefix, Type, PARAMS), .source_names = SOURCES
#define METHOD_ROW_OF(prefix, Type, rows)                                                                   \
    .params = rows, .param_count = sizeof rows / sizeof *rows, .param_size = sizeof(Type##Params),          \
    .open = prefix##_open, .begin = prefix##_begin, .propose = prefix##_propose,                            \
    .observe = prefix##_observe, .close = prefix##_close, .work = prefix##_work, .self_size = sizeof(Type), \
    .sources = offsetof(Type, sources)

const MethodInfo *const *method_table(size_t *count);      // all, in the order of --help
const MethodInfo *method_find(const char *name, Error *e); // unknown: e names the nearest

typedef struct Method { // an open one
    const MethodInfo *info;
    void *self;
    void *values;   // the parameter struct, as opened
    Session *draft; // from MethodEnv, as the adapters: the loop logs their passes
    AdapterSet adapters[ADAPTER_SETS];
    uint64_t seed; // this and the next two: from MethodEnv
    Sampling sampling;
    int eos_count;
    Session *told; // its other ranks have opened the method, too; NULL: none (call.h)
} Method;

// text: "name" or "name:key=value,...". *params: what is behind its colon, perhaps "".
const MethodInfo *method_of(const char *text, const char **params, Error *e);
bool method_open(Method *m, const char *text, const MethodEnv *env, Error *e);
// The same of a method that may not be in the table; params: "key=value,...".
bool method_open_as(Method *m, const MethodInfo *info, const char *params, const MethodEnv *env, Error *e);
// "name(key=value,...)", n bytes, in the form that method_open reads.
bool method_plain_text(const char *part, size_t n, char out[ARG_TEXT_SIZE], Error *e);
void method_close(Method *m);
// Whether it keeps state from prompt to prompt: its parameter `warm`, or that of any of its methods.
bool method_is_warm(const MethodInfo *info, const void *values);
// False with e filled if a file that the method reads changed since it was opened.
bool method_is_unchanged(const Method *m, Error *e);
bool method_reads_prompt(const Method *m); // it needs the prompt's run: its states, or to see its parts
bool method_drafts_chain(const Method *m, Error *e); // see MethodInfo.chain; verification by blocks needs it
StepWork method_work(const Method *m);
const Sources *method_sources(const Method *m); // of the rows that the last propose added; NULL: none
void method_describe(const MethodInfo *info, Text *out); // name, summary and one line per parameter
