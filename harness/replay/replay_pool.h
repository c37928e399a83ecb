// Ouroboros' pool of phrases without its draft model. All that a text can fill the pool with is the text
// itself; a replay measures how much of an answer is found there.
#pragma once
#include "engine/decode/method.h"

// Whether the text names it: "ouroboros-pool", or with parameters after a colon.
bool replay_pool_is_meant(const char *text);

// Opens it as method_open opens others; for method_close.
bool replay_pool_open(Method *m, const char *text, const MethodEnv *env, Error *e);
