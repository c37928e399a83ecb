// The null backend with our own logits: certain at the first positions of a text, so that a method can warm
// up on known tokens, and undecided from there on.
#pragma once
#include "tests/support/null_session.h"

typedef struct Softness {
    int certain;  // tokens of a text that the model is sure of: those at positions up to it
    double scale; // of the logits after them; the null backend's differ by up to 8
} Softness;

void soft_session_open(Session *s, const NullSetup *setup, const Softness *softness);

// Whether the backend draws by itself (backend.h), by the host's own sampler. It does not when opened.
void soft_session_draws(Session *s, bool draws);
int soft_session_fetched(const Session *s); // whole distributions that it was asked for
