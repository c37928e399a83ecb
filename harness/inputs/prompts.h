// Text from files: the prompt of a command, lists of prompts, and documents to learn from.
#pragma once
#include "datasets/datasets.h"
#include "engine/base/args.h"
#include "engine/text/template.h"
#include "engine/text/tokenizer.h"

#include <stdint.h>

// Where one prompt comes from: an argument, a file, standard input, or ids written out.
typedef struct PromptSource {
    const char *text; // an argument; "-" is standard input
    const char *file;
    const char *ids;      // "1,2,3"
    const char *template; // of engine/text/template.h; NULL: none
    const char *system;   // text for the template; NULL: its own
    bool no_special;      // nothing is put around the text, no BOS
} PromptSource;

// Fills `out` with the prompt's ids. The tokenizer may be NULL if ids are given. A text that starts with the
// BOS itself, as a rendered prompt may, does not get a second one.
bool prompt_read(const PromptSource *source, const Tokenizer *tokenizer, IdList *out, Error *e);

// Appends the ids of a text; special: with the tokenizer's prefix and suffix, the prefix once (see above).
bool prompt_encode(const Tokenizer *tokenizer, const char *text, size_t n, bool special, IdList *out,
                   Error *e);

// Appends the ids of a dataset's prompt, its first turn. template NULL: the text as it is.
bool prompt_of_dataset(const DatasetPrompt *p, const Tokenizer *tokenizer, const Template *template,
                       IdList *out, Error *e);
// Its template if none is named: if it asks, the model's own where that is known; else NULL.
const Template *prompt_template(const DatasetPrompt *p, const Tokenizer *tokenizer);

// --- several prompts

typedef struct PromptList {
    IdList *prompts; // (count)
    size_t count, capacity;
} PromptList;

// Appends at most `most` prompts of a file: a line of text each, or JSONL with the prompt under "prompt".
// path NULL: a few of our own, of chat, code, mathematics and summarisation. template NULL: texts as they
// are.
bool prompts_read(const char *path, const Tokenizer *tokenizer, const Template *template, size_t most,
                  PromptList *out, Error *e);
// The same of a dataset's prompts. *template: as named; NULL: prompt_template, which is put there if it's
// used.
bool prompts_of_dataset(const Dataset *d, const Tokenizer *tokenizer, const Template **template,
                        PromptList *out, Error *e);

// Appends prompts of random ids, for a model without a tokenizer.
void prompts_random(int vocab, size_t count, uint64_t seed, PromptList *out);

void prompts_release(PromptList *list);

// --- documents, for training and tokenizers

// Gets every document; false with e filled stops the reading.
typedef bool TakeDocument(void *state, const char *text, size_t n, Error *e);

// Passes on the documents of the files that the patterns name ("corpus/*.txt"), file by file in sorted order.
// A file is one document; with a separator it is several, each ended by a line that is exactly the separator.
// Empty documents are left out. A pattern that matches no file is an error.
bool documents_read(const char *const *patterns, int count, const char *separator, TakeDocument *take,
                    void *state, Error *e);

// --- conversations --------------------------------------------------------------------------------------

// Conversations, and the stop strings that end a reply.
//
// Each turn's prompt is the whole conversation so far: the user's turns and the method's own replies.
enum { CONVERSATION_TURNS = 64 };

typedef struct Conversation {
    const Tokenizer *tokenizer;
    const Template *template; // NULL: texts as they are, with an empty line between them
    Turn turns[CONVERSATION_TURNS];
    int count;                         // turns so far; all but the last have replies
    char *replies[CONVERSATION_TURNS]; // for mem_free
} Conversation;

void conversation_begin(Conversation *c, const Tokenizer *tokenizer, const Template *t);

// Adds a user's turn, at most CONVERSATION_TURNS times, and appends the prompt's ids to out.
bool conversation_ask(Conversation *c, const char *user, IdList *out, Error *e);

// Adds the method's reply to the last turn.
bool conversation_reply(Conversation *c, const int *ids, int count, Error *e);

void conversation_release(Conversation *c); // takes an empty one

// Finds stop strings in a stream: text is held back only while it could still become one.
typedef struct StopFilter {
    const Words *stops; // none of them empty
    Text held;
} StopFilter;

// Takes more text; appends to out what is safe to show. Returns true once a stop string is complete: out then
// ends before it, and no more text may be given. How the text is cut into pieces makes no difference.
bool stop_feed(StopFilter *f, const char *text, size_t n, Text *out);

// Appends the text that is still held: the stream has ended without a stop string.
void stop_flush(StopFilter *f, Text *out);

void stop_release(StopFilter *f);
