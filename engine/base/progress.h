// How long-running work reports its progress and learns that it should stop. It's one callback, passed down
// to the long loops: each calls it between two pieces of work, if possible far more often than once a second.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>

typedef struct Progress {
    // what: "making bigrams"; NULL: nothing to report, just asking. share: the finished part of it, in [0,
    // 1]; below 0: unknown. Returns false if the work should stop. The callback may be NULL.
    bool (*say)(void *state, const char *what, double share);
    void *state;
} Progress;

// Returns false, with e set to ERROR_INTERRUPTED, if the work should stop: the caller then cleans up as after
// any other failure. p may be NULL.
static inline bool progress_say(const Progress *p, const char *what, double share, Error *e) {
    return !p || !p->say || p->say(p->state, what, share) || error_interrupted(e, what);
}
