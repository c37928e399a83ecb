// Which methods of a mix draft in a step: the first, whose draft is ready before anything runs (it copies
// from texts), or the others, which run a model and have a price.
//
//      match     the first alone after a match of `threshold` tokens or more, else the others (SAM-Decoding)
//      score     the first alone if it expects `threshold` right tokens or more, else the others
//      learned   those whose tokens are worth their price, by how right drafts like these were in the past
//
// The learned rule sorts the first's drafts into buckets by their score and match. It keeps three means of
// each bucket: right tokens of the first, right tokens of the others, and how many more the better of the two
// had. A bucket begins with the first's own score, scaled by how true scores have been so far, and with the
// others' mean of all buckets. A step with t tokens at the price c is worth t - r c, where r is the tokens
// per price of the last steps, that is, as many as the same price gave elsewhere.
//
// The first's drafts are judged by the text that came, also where it didn't draft: a draft waits until a
// token differs from it, or its end is reached. The others are judged only where they drafted. So a bucket
// that leaves them out lets them draft now and then: after as many steps as it saw them draft, at most 16.
#pragma once
#include <stdbool.h>

// A draft that is ready: `match` tokens of the text's end were found, and `score` right tokens are expected.
typedef struct Outlook {
    int match, count;
    double score;
    const int *token;  // (count)
    const int *parent; // (count): an earlier token, or -1: the text; NULL: a chain
} Outlook;

typedef enum { SWITCH_OFF, SWITCH_MATCH, SWITCH_SCORE, SWITCH_LEARNED } SwitchRule;

typedef struct SwitchParams {
    SwitchRule rule;
    double threshold; // of match and score
    double cost;      // of the others' drafting, in steps of the target
    bool both;        // the learned rule may let all draft
} SwitchParams;

enum { DRAFT_FIRST = 1, DRAFT_REST = 2, SWITCH_BUCKETS = 40, SWITCH_WAITING = 32, SWITCH_DRAFT_MOST = 256 };

// A mean of the newest numbers: old ones fade.
typedef struct Mean {
    double sum, weight;
} Mean;

typedef struct SwitchBucket {
    Mean first, rest, gain; // right tokens, and max(first, rest) - rest
    int left_out;           // steps since the others drafted
} SwitchBucket;

// A draft of the first whose right tokens aren't known yet.
typedef struct Waiting {
    int bucket, count, node, right; // node: the last right token, or -1
    int rest;                       // right tokens of the others in that step; -1: they did not draft
    double score;
    int token[SWITCH_DRAFT_MOST], parent[SWITCH_DRAFT_MOST];
} Waiting;

typedef struct Switch {
    SwitchParams p;
    SwitchBucket buckets[SWITCH_BUCKETS];
    Mean right, score, rest;         // of the first's drafts, and right tokens of the others: all buckets
    Mean tokens, price;              // of a step
    Waiting waiting[SWITCH_WAITING]; // (waiting_count), oldest first
    int waiting_count;
    int bucket, chosen; // of the open step
} Switch;

void switch_init(Switch *s, const SwitchParams *p); // forgets everything, too
void switch_begin(Switch *s);                       // a new text; all that was learned stays

// Returns a set of DRAFT_FIRST and DRAFT_REST, at least one. both_fit: there are rows for all.
int switch_choose(Switch *s, const Outlook *first, bool both_fit);

// The step's tokens. rest: right tokens of the others; -1: they didn't draft.
void switch_observe(Switch *s, const int *tokens, int count, int rest);
