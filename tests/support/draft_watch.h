// Watches a method whose second model writes a chain of guesses: compares each step's chain with a slow model
// of it, which predicts the token after any sequence; on random streams of the null backend.
#pragma once
#include "engine/decode/pace.h"
#include "tests/support/check.h"
#include "tests/support/watched.h"

enum { WATCH_CONTEXT = 60, WATCH_TOKENS = 40, WATCH_GAMMA = 9, WATCH_VOCAB = 5 };

typedef struct DraftWatch DraftWatch;

struct DraftWatch {
    Watched text;
    Session target, second; // of the method
    // The second model's prediction after the sequence; its logits (vocab of `second`).
    int (*says)(DraftWatch *w, const int *tokens, int n, float *logits);
    Session slow, slow_target; // for `says`
    Sampling sampling;         // of the draft; temperature 0: greedy
    int gamma;
    bool heuristic; // two longer after a full match, else one shorter
    bool learned;   // as `pace` has it, which sees the same steps
    Pace pace;
    double confidence; // the chain ends after a chance that is not above this; 0: never
    bool strict;       // or below it
    bool alone;        // the target drafts by itself: `second` is its twin, and isn't used
    int layer;         // of a draft that is the target's first layers
    int mask;          // of a draft that guesses in parallel, after so many of these; 0: one by one
    // as the watch goes
    int length_wanted;
    int missed; // tokens of steps without a guess, which the second model hasn't read
    int accepted, full, proposed, rested; // rested: steps without a guess
};

// Decodes a random prompt with the method, open on w->target and w->second, and checks each step.
void draft_watch_decode(DraftWatch *w, Method *m, Random *r);

// Draws gamma, confidence and sampling.
void draft_watch_draw(DraftWatch *w, Random *r);

// Watches three prompts each of many methods. open: opens the sessions, which are closed here, and the
// method. `least`: guesses that must be accepted, and rejected, in all.
void draft_watch_rounds(Random r, void (*open)(DraftWatch *w, Method *m, Random *r), int least);
