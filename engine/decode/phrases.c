// The draft EFGHIWKLMN, of which the target would write EFGHIJKLMN and then O, beta = 4: EFGHI stands, J is
// its correction; KLM and LMN agree after it, so KLMN and LMNO are phrases.
#include "engine/decode/phrases.h"

#include <string.h>

void phrases_inspire(NgramPool *p, const int *draft, const int *says, int count, int accepted) {
    size_t matched = (size_t)p->width * sizeof *draft; // beta - 1 tokens
    for (int i = accepted + 1; i + p->width <= count; i++)
        if (memcmp(draft + i, says + i, matched) == 0) ngram_pool_insert(p, says[i], says + i + 1);
}

void phrases_inspire_loosely(NgramPool *p, const int *draft, const int *says, int count, int accepted) {
    size_t matched = (size_t)(p->width - 1) * sizeof *draft; // beta - 2 tokens
    for (int i = accepted; i + p->width <= count; i++)
        if (memcmp(draft + i + 1, says + i + 1, matched) == 0) ngram_pool_insert(p, draft[i], says + i + 1);
}

void phrases_refine(NgramPool *p, int key, const int *phrase, const int *says) {
    ngram_pool_remove(p, key, phrase);
    ngram_pool_insert(p, key, says);
}
