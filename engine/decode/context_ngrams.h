// What followed the last q tokens wherever they stood before, the most frequent first: the context n-gram of
// N-Grammys (section 4.2).
//
//      ... a b c d ... a b c e ... a b c d ... a        q = 1, w = 3: "b c d" twice, then "b c e" once
//
// Places are equal if the w tokens after them are, fewer at the sequence's end included. Ties go to the
// place that stands later (the text), or to the smaller tokens (the order in which the appendix's code lists
// them).
#pragma once
#include "engine/decode/suffix.h"

typedef enum { TIES_RECENT, TIES_SORTED } Ties;

typedef struct ContextSetup {
    int q; // 1 to SUFFIX_LONGEST
    int w; // at least 1
    Ties ties;
    bool keep_short; // places with fewer than w tokens after them
    int context;     // tokens that the sequence may have
} ContextSetup;

// Equal places.
typedef struct ContextNgram {
    int end;    // of the newest: its tokens stand at index.tokens + end
    int length; // at most w
    int count;  // places
    uint64_t hash;
} ContextNgram;

typedef struct ContextNgrams {
    ContextSetup setup;
    SuffixIndex index;    // of the whole sequence
    ContextNgram *groups; // (context)
    int group_count;
    int *table;     // (table_size): group number + 1; 0: free. All free between lookups
    int *used;      // (context): places in the table that are taken
    int table_size; // a power of two, at least twice the context
} ContextNgrams;

bool context_ngrams_init(ContextNgrams *f, const ContextSetup *setup, Error *e);
void context_ngrams_release(ContextNgrams *f);
void context_ngrams_clear(ContextNgrams *f);
bool context_ngrams_push(ContextNgrams *f, const int *tokens, int count, Error *e);

// The best `most` at the sequence's end, best first; gives their number. Allocates nothing.
int context_ngrams_find(ContextNgrams *f, int most, ContextNgram *out);
static inline const int *context_ngrams_tokens(const ContextNgrams *f, const ContextNgram *x) {
    return f->index.tokens + x->end;
}
