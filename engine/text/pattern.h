// Patterns of tokenizer files, which are written for Oniguruma, run by PCRE2.
//
// The two agree on what tokenizers use, but for a few constructs: \s and \w are spelled out by the Unicode
// properties that Oniguruma means, and what PCRE2 would read differently (\h, nested classes, &&, {n,m}+) is
// refused. A match may cost MATCH_LIMIT steps: a pattern that backtracks without end is an error, not a hang.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>

typedef struct Pattern Pattern;

// A regular expression, or a literal text; NULL with e filled. `place` is the file, for messages.
Pattern *pattern_open(const char *source, bool literal, const char *place, Error *e);
void pattern_close(Pattern *p); // takes NULL

// Finds the matches in a text from left to right. An empty match right after the last one is none.
typedef struct Search {
    const Pattern *pattern;
    void *match; // PCRE2's memory for one match
    const char *text;
    size_t length, at;
    size_t last_end; // of the last match; past the text where there was none
} Search;

bool search_open(Search *s, const Pattern *p, Error *e);
void search_close(Search *s);                             // takes a zeroed one
void search_begin(Search *s, const char *text, size_t n); // n bytes of valid UTF-8

// The next match is [*from, *to); *found says if there is one. False with e filled if it went on too long.
bool search_next(Search *s, bool *found, size_t *from, size_t *to, Error *e);
