// Ouroboros' pool by itself: its phrases, without the draft model whose words it would go on from. What a
// text alone can fill it with is the text; how much of an answer stands in it is what a replay measures.
#pragma once
#include "engine/decode/method.h"

// Whether the text names it: "ouroboros-pool", or with parameters behind a colon.
bool replay_pool_is_meant(const char *text);

// Opens it as method_open opens others; for method_close.
bool replay_pool_open(Method *m, const char *text, const MethodEnv *env, Error *e);
