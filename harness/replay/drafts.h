// The folder's internal page: the text that a replay follows, and methods that exist only in a replay.
//
//      ouroboros-pool   Ouroboros' phrases without its draft model (section 2.4 of its paper)
//      recorded         a draft whose accepted tokens, at every position, are in a file
#pragma once
#include "harness/replay/replay.h"

#include "engine/decode/method.h"

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
