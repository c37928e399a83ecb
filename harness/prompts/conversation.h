// A conversation: what the user says turn by turn, and what one method replied. Each turn's prompt is all
// that was said before it, in the method's own words.
#pragma once
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

// What the user says next, at most CONVERSATION_TURNS times. Appends the prompt's ids to out.
bool conversation_ask(Conversation *c, const char *user, IdList *out, Error *e);

// What the method replied.
bool conversation_reply(Conversation *c, const int *ids, int count, Error *e);

void conversation_release(Conversation *c); // takes an empty one
