// Byte-pair encoding of one word: the neighbours with the lowest rank are merged, the leftmost of equals,
// until no two neighbours have a merge.
#pragma once
#include "engine/base/error.h"
#include "engine/text/tokenizer.h"
#include "engine/text/vocab.h"

#include <stdint.h>

typedef struct Merge {
    uint64_t pair; // left id << 32 | right id
    int rank;      // -1: a free place
    int id;        // of the joint piece
} Merge;

typedef struct Bpe {
    Vocab vocab;
    Merge *merges; // (merge_places), a power of two; by hash of the pair
    size_t merge_places, merge_count;
    uint64_t *joints;   // (merge_places) pairs of characters that some merge joins, 0: a free place
    bool whole;         // words cannot be cut at joints: byte or unknown pieces merge
    int bytes[256];     // ids of <0x00> .. <0xFF>, or -1
    bool byte_fallback; // a character without a piece becomes its bytes
    int unknown;        // id of other characters; -1: they are left out
    bool fuse_unknown;  // a run of them becomes one id
    bool ignore_merges; // a word that is a piece becomes that piece
} Bpe;

bool bpe_init(Bpe *b, int vocab_size, size_t merges, Error *e);
void bpe_release(Bpe *b);

// Adds the next merge, in order of rank. Both pieces and the joint one must be in the vocabulary. A pair that
// comes twice has the later rank, as in Hugging Face tokenizers.
bool bpe_add_merge(Bpe *b, const char *left, size_t left_n, const char *right, size_t right_n,
                   const char *place, Error *e);

// Adds a merge by ids, of any rank; at most as many as bpe_init made room for.
void bpe_set_merge(Bpe *b, int left, int right, int rank, int id);

// Derives bytes, joints and `whole`. Call it when vocabulary, merges and settings are complete.
void bpe_finish(Bpe *b);

// Scratch memory, reused from word to word. Starts zeroed.
typedef struct BpeSymbol BpeSymbol;
typedef struct BpeCandidate BpeCandidate;
typedef struct BpeWork {
    BpeSymbol *symbols; // (symbol_count)
    size_t symbol_count, symbol_capacity;
    BpeCandidate *heap; // (heap_count)
    size_t heap_count, heap_capacity;
} BpeWork;

void bpe_work_release(BpeWork *w);

// Appends the ids of n bytes of valid UTF-8. Time grows with n log n.
void bpe_encode(const Bpe *b, BpeWork *w, const char *word, size_t n, IdList *out);
