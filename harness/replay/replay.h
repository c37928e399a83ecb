// Given answers, decoded again by methods that need only text: how much a method would accept, at millions of
// tokens a second instead of a model's dozens. S equals that of a greedy run with these outputs.
//
//      texts of a dataset, or tokens of a file -> ReplayTexts -> replay_run -> S
//                                                           \-> replay_record -> the store, with every step
#pragma once
#include "datasets/datasets.h"
#include "engine/text/template.h"
#include "engine/text/tokenizer.h"
#include "harness/run/answer.h"

#include <stdint.h>

enum { REPLAY_LISTS = 8 };

typedef struct ReplayText {
    int *ids;                     // (prompt + answer)
    int prompt, count;            // tokens of the prompt, and of both
    char *name, *task;            // the dataset's; NULL: none
    int number, turn;             // of the row; of the conversation
    uint8_t *lists[REPLAY_LISTS]; // (answer) each: ReplayTokens.lists
} ReplayText;

typedef struct ReplayTexts {
    ReplayText *texts; // (count)
    size_t count, capacity;
    char *name, *model;        // of the dataset; of the model that wrote the answers: NULL unknown
    char sha256[SHA256_TEXT];  // of the file, or of the dataset
    int vocab, longest;        // tokens of the longest text
    size_t tokens, unanswered; // tokens of all answers; turns without an answer, or an empty one
    char *lists[REPLAY_LISTS]; // (list_count) names
    int list_count;
    size_t unequal; // rows left out: a list has not as many entries as the answer has tokens
} ReplayTexts;

// Every turn of the dataset that has an answer (its first reference), with the conversation before it. A
// conversation ends at its first turn without one. template: may be NULL. Release the result even on failure.
bool replay_texts(const Dataset *d, const Tokenizer *tokenizer, const Template *template, ReplayTexts *out,
                  Error *e);
void replay_texts_release(ReplayTexts *t);

// A file of rows with token ids: JSON Lines or one array, perhaps gzipped.
typedef struct ReplayTokens {
    const char *path;
    const char *prompt, *answer; // keys of the ids; "a/b" is key b of object a
    int vocab;                   // 0: the largest id of the file, plus 1
    size_t limit;                // rows; 0: all
    // Keys of lists: at every position of the answer, the tokens of a draft that were accepted there, plus 1;
    // a list itself, or an object whose acc_len it is. A row is left out and counted where one has another
    // length: it belongs to another text.
    const char *lists[REPLAY_LISTS]; // (list_count)
    int list_count;
} ReplayTokens;

// The texts are named after the file. Rows of several models (key "model") are an error. Release the result
// even on failure.
bool replay_tokens(const ReplayTokens *from, ReplayTexts *out, Error *e);
bool replay_tokens_parse(const ReplayTokens *from, const char *bytes, size_t n, ReplayTexts *out, Error *e);

enum { REPLAY_LENGTHS = 32 };

typedef struct Replay {
    double *tokens, *steps; // (texts)
    double total_tokens, total_steps;
    double rows;                     // of all steps
    double accepted[REPLAY_LENGTHS]; // steps that accepted i tokens; the last: i or more
    double seconds;                  // 0 if the clock is too coarse
} Replay;

// Takes the method when it is open, and then each text's decoding, which is released after the call.
typedef struct ReplaySink {
    bool (*open)(void *state, const Method *method, Error *e);
    bool (*take)(void *state, size_t text, AnswerTurn *turn, Error *e);
    void *state;
    Clock clock; // of the steps' own times
} ReplaySink;

// method: "prompt-lookup:draft=8", "ouroboros-pool", "recorded:list=acc_eagle". Fails for a method that needs
// a model. sink: may be NULL. Release the result even on failure.
bool replay_run(const ReplayTexts *texts, const char *method, Clock clock, const ReplaySink *sink,
                Replay *out, Error *e);
void replay_release(Replay *r);

// Fails as replay_run would for a method that can't be opened, before anything is printed or stored.
bool replay_check(const ReplayTexts *texts, const char *method, Error *e);

double replay_rate(const Replay *r); // tokens per second; NAN if no time was measured

// The share of steps that accepted w or more; w < REPLAY_LENGTHS.
double replay_ctar(const Replay *r, int w);

// --- into the store

typedef struct ReplayRecord {
    const char *db, *name, *model; // of the store, the run, and of a model that the texts don't name
    const ReplayTexts *sets;       // (set_count)
    const char *const *methods;    // (method_count): the first is autoregressive, the others' baseline
    int set_count, method_count;
    int argc;
    char *const *argv;
} ReplayRecord;

// Makes a run of kind 'import' of all methods on all sets: steps as a run's, with the methods' own times and
// none of a model. out: (set_count, method_count), zeroed, for replay_release even on failure. One
// transaction; texts and methods that the store has already are refused.
bool replay_record(const ReplayRecord *r, Clock clock, Replay *out, int64_t *run, Error *e);

// --- the folder's own: the text that a replay follows, and methods that exist only in a replay
//
//      ouroboros-pool   Ouroboros' phrases without its draft model (section 2.4 of its paper)
//      recorded         a draft whose accepted tokens, at every position, are in a file

// The text as a model: the backend of a replay's session.
typedef struct Script {
    const ReplayTexts *texts;
    const int *tokens; // (count)
    int prompt, count;
    const uint8_t *const *lists; // (texts->list_count) of (count - prompt)
    int next[TREE_MAX_NODES];    // the token after node i; SCRIPT_OFF: its path is not the text's
} Script;

enum { SCRIPT_OFF = -1 };

// As method_open, and for method_close, of any method that needs only text; env->target is the script's.
bool draft_open(Method *m, const char *text, const MethodEnv *env, Error *e);
