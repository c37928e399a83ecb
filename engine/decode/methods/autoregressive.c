// One token per step: proposes nothing, so each step emits the model's token after the last one. Has no
// state.
#include "engine/decode/methods/methods.h"

static bool autoregressive_begin(UNUSED void *self, UNUSED const Prompt *prompt, UNUSED Error *e) {
    return true;
}

static bool autoregressive_propose(UNUSED void *self, UNUSED Tree *tree, UNUSED Error *e) { return true; }

static bool autoregressive_observe(UNUSED void *self, UNUSED const Observation *seen, UNUSED Error *e) {
    return true;
}

const MethodInfo method_autoregressive = {.name = "autoregressive",
                                          .summary = "one token a step: the baseline",
                                          .from_text = true,
                                          .begin = autoregressive_begin,
                                          .propose = autoregressive_propose,
                                          .observe = autoregressive_observe};
