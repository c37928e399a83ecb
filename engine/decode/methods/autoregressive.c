// One token per step: proposes nothing, so each step emits the model's token after the last one. Has no
// state.
#include "engine/decode/methods/methods.h"

static bool autoregressive_begin(void *self, const Prompt *prompt, Error *e) {
    (void)self, (void)prompt, (void)e;
    return true;
}

static bool autoregressive_propose(void *self, Tree *tree, Error *e) {
    (void)self, (void)tree, (void)e;
    return true;
}

static bool autoregressive_observe(void *self, const Observation *seen, Error *e) {
    (void)self, (void)seen, (void)e;
    return true;
}

const MethodInfo method_autoregressive = {.name = "autoregressive",
                                          .summary = "one token a step: the baseline",
                                          .from_text = true,
                                          .begin = autoregressive_begin,
                                          .propose = autoregressive_propose,
                                          .observe = autoregressive_observe};
