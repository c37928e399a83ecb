// Finds the end of a sequence earlier in the sequence: an index of all n-grams of lengths 1 to `longest`, fed
// token by token. A lookup costs as much as there are answers.
//
// An occurrence is named by its end: the position after the n-gram's last token, where its continuation
// starts. The occurrences of one n-gram form a linked list, newest first, found by a hash of the n-gram; each
// list keeps its oldest end too. A hash hit is checked against length and tokens, so a collision only costs
// time.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { SUFFIX_LONGEST = 16, SUFFIX_NONE = -1 };

typedef struct SuffixList {
    uint64_t hash;
    int n;              // length of the n-gram
    int newest, oldest; // ends
    int count;          // 0: a free place in the table
} SuffixList;

typedef struct SuffixIndex {
    int longest;
    int *tokens;  // (length)
    int *earlier; // (length, longest): the previous occurrence of the n-gram that ends here
    size_t length, token_capacity, earlier_capacity;
    SuffixList *table; // (table_size): lists of all lengths
    size_t table_size, used;
} SuffixIndex;

// longest: 1 to SUFFIX_LONGEST.
void suffix_init(SuffixIndex *x, int longest);
void suffix_release(SuffixIndex *x);
void suffix_clear(SuffixIndex *x);

void suffix_push(SuffixIndex *x, int token);

// The newest and the oldest earlier end of the n-gram at the end of the sequence, not counting that n-gram
// itself; SUFFIX_NONE if it occurs nowhere else. suffix_before steps from one end to the next older one.
int suffix_newest(const SuffixIndex *x, int n);
int suffix_oldest(const SuffixIndex *x, int n);
int suffix_before(const SuffixIndex *x, int n, int end);
