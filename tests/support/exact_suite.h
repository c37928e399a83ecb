// A node's logits and hidden states are the same bits whatever shares the step with it. Each round takes a
// random model, a random sequence and a random tree, runs every path of the tree by itself, one token per
// step, and compares all other ways of running the same nodes with that, bit for bit. Nodes that are read
// after some layers have the logits of a model of that many. Then one of the model's logits becomes a NaN,
// which every way of reading them must refuse.
#pragma once
#include "tests/support/random_model.h"

#include "engine/core/session.h"

enum { EXACT_MAX_NODES = 200, EXACT_MAX_CONTEXT = 150 };

typedef struct ExactBackend {
    const Backend *backend;
    bool (*open)(const Model *model, const BackendOptions *o, void **self, Error *e);
    void (*poison)(Session *s); // makes everything that no run has written a NaN; NULL: it is so already
    const char *isa;
    int most_context; // tokens before the tree, at most EXACT_MAX_CONTEXT
} ExactBackend;

// most_nodes: of a tree, at most EXACT_MAX_NODES.
// Rounds [first, first + rounds): round i is of compute i mod COMPUTE_KINDS.
void exact_suite(const ExactBackend *b, int first, int rounds, int most_nodes);
