// ROUGE-1, ROUGE-2 and ROUGE-L (Lin, 2004) as Python's rouge-score computes them with its stemmer on: words
// of a to z and 0 to 9 in lower case, those of four letters or more stemmed; n-grams counted with repeats; L
// by the longest common subsequence of whole texts.
#pragma once
#include "engine/base/error.h"

typedef struct RougeScore {
    double precision, recall, f; // of words in the candidate, of words in the reference, their harmonic mean
} RougeScore;

typedef struct Rouge {
    RougeScore one, two, longest;
} Rouge;

// Texts are UTF-8. An empty one scores 0. Takes time in proportion to the product of the lengths in words.
bool rouge_score(const char *reference, const char *candidate, Rouge *out, Error *e);

// Of several references, for each score the one with the highest f, the first of equals; count >= 1.
bool rouge_best(const char *const *references, int count, const char *candidate, Rouge *out, Error *e);
