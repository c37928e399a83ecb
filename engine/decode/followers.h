// What followed the last q tokens wherever they stood before, the most frequent first: the context n-gram of
// N-Grammys (section 4.2).
//
//      ... a b c d ... a b c e ... a b c d ... a        q = 1, w = 3: "b c d" twice, then "b c e" once
//
// Places are equal if the w tokens behind them are, fewer at the sequence's end included. Ties go to the
// place that stands later (the text), or to the smaller tokens (the order in which the appendix's code lists
// them).
#pragma once
#include "engine/decode/suffix.h"

typedef enum { TIES_RECENT, TIES_SORTED } Ties;

typedef struct FollowersSetup {
    int q; // 1 to SUFFIX_LONGEST
    int w; // at least 1
    Ties ties;
    bool keep_short; // places with fewer than w tokens behind them
    int context;     // tokens that the sequence may have
} FollowersSetup;

// Equal places.
typedef struct Follower {
    int end;    // of the newest: its tokens stand at index.tokens + end
    int length; // at most w
    int count;  // places
    uint64_t hash;
} Follower;

typedef struct Followers {
    FollowersSetup setup;
    SuffixIndex index; // of the whole sequence
    Follower *groups;  // (context)
    int group_count;
    int *table;     // (table_size): group number + 1; 0: free. All free between lookups
    int *used;      // (context): places in the table that are taken
    int table_size; // a power of two, at least twice the context
} Followers;

bool followers_init(Followers *f, const FollowersSetup *setup, Error *e);
void followers_release(Followers *f);
void followers_clear(Followers *f);
bool followers_push(Followers *f, const int *tokens, int count, Error *e);

// The best `most` at the sequence's end, best first; gives their number. Allocates nothing.
int followers_find(Followers *f, int most, Follower *out);
static inline const int *followers_tokens(const Followers *f, const Follower *x) {
    return f->index.tokens + x->end;
}
