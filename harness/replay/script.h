// A model that says a given text, for methods that look at nothing but text: replay.
//
// At a node whose path is the text's own, the next token is the text's. What a model would say after any
// other path is not known: there it says token 0, which the verifier never reads, and a method must not.
// Logits, hidden states and bigrams are refused, so that a method that needs a model says so.
#pragma once
#include "engine/core/session.h"

typedef struct Script Script;

// Opens the session; session_release closes both. context: positions that it holds.
bool script_open(Session *session, Script **script, int vocab, int context, Error *e);

// The text that it says from now on, prompt and answer together, (count); borrowed. The session is reset
// before it runs.
void script_set(Script *script, const int *tokens, int count);
