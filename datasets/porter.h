// Porter's stemmer (Program 14(3), 1980) with the changes that NLTK makes by default and that Python's
// rouge-score therefore has: irregular words, short -ies and -ied, y after a consonant, -alli before -bli,
// -fulli, -logi.
#pragma once
#include <stddef.h>

// Stems the n letters at `word` (a to z; other bytes count as consonants) in place and returns how many are
// left: never more than n.
size_t porter_stem(char *word, size_t n);
