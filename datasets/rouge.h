// How well an answer matches a reference.
//
// ROUGE-1, ROUGE-2 and ROUGE-L (Lin, 2004) as Python's rouge-score computes them with its stemmer on: words
// of a to z and 0 to 9 in lower case, those of four letters or more stemmed; n-grams counted with repeats; L
// by the longest common subsequence of whole texts.
#pragma once
#include <stddef.h>

typedef struct RougeScore {
    double precision, recall, f; // common words / candidate words, common / reference; harmonic mean
} RougeScore;

typedef struct Rouge {
    RougeScore one, two, longest;
} Rouge;

// Texts are UTF-8. An empty one scores 0. Time grows with the product of the lengths in words.
Rouge rouge_score(const char *reference, const char *candidate);

// Each score is that of the reference with the highest f, the first of equals; count >= 1.
Rouge rouge_best(const char *const *references, int count, const char *candidate);

// Porter's stemmer (Program 14(3), 1980) with the changes that NLTK makes by default and Python's rouge-score
// therefore has: irregular words, short -ies and -ied, y after a consonant, -alli before -bli, -fulli, -logi.
// Stems the n letters at `word` in place (bytes other than a to z count as consonants) and returns how many
// are left, never more than n.
size_t porter_stem(char *word, size_t n);
