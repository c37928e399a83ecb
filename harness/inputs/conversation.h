// Conversations, and the stop strings that end a reply.
//
// Each turn's prompt is the whole conversation so far: the user's turns and the method's own replies.
#pragma once
#include "engine/base/args.h"
#include "engine/text/template.h"
#include "engine/text/tokenizer.h"

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
