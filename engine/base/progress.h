// How long work tells how far it has come, and learns that it should end. One callback, passed down to where
// the long loops are: each calls it between two pieces of work, far less than a second apart where that can
// be.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>

typedef struct Progress {
    // what: "making bigrams"; NULL: there is nothing new to tell. share: of it, in
    // [0, 1]; below 0: not known. Returns false where
    // the work is to end. NULL: nobody listens.
    bool (*say)(void *state, const char *what, double share);
    void *state;
} Progress;

// False, with e filled by ERROR_INTERRUPTED, where the work is to end: as after any other failure, nothing of
// it is left behind. p may be NULL.
static inline bool progress_say(const Progress *p, const char *what, double share, Error *e) {
    return !p || !p->say || p->say(p->state, what, share) || error_interrupted(e, what);
}
