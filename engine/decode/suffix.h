// Where does what stands at the end of a sequence stand earlier in it? An index of all its n-grams of lengths
// 1 to `longest`, fed token by token; a lookup costs as much as there are answers.
//
// An occurrence is named by its end: the position after the n-gram's last token, where its continuation
// starts. For each length the occurrences of equal n-grams are a linked list, newest first, found by a hash
// of the n-gram; each list knows its oldest one too. Hashes are checked against length and tokens, so a
// collision costs time only.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
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
    int *earlier; // (length, longest): the occurrence before, of the n-gram that ends here
    size_t length, token_capacity, earlier_capacity;
    SuffixList *table; // (table_size), a power of two; all lengths together
    size_t table_size, used;
} SuffixIndex;

// longest: from 1 to SUFFIX_LONGEST.
bool suffix_init(SuffixIndex *x, int longest, Error *e);
void suffix_release(SuffixIndex *x);
void suffix_clear(SuffixIndex *x);

bool suffix_push(SuffixIndex *x, int token, Error *e);

// The newest and the oldest earlier end of the n-gram that stands at the end of the sequence, itself left
// out; SUFFIX_NONE if it stands nowhere else. suffix_before goes from one end to the next older one.
int suffix_newest(const SuffixIndex *x, int n);
int suffix_oldest(const SuffixIndex *x, int n);
int suffix_before(const SuffixIndex *x, int n, int end);
