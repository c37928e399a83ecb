// One step between a text and BPE's words: a normalizer or a pre-tokenizer of a tokenizer.json. Each turns
// words into words; normalizers run while the text is still one word.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/text/utf8.h"

#include <jansson.h>
#include <stddef.h>

// --- patterns

typedef struct Pattern Pattern;

// A regular expression, or a literal text; NULL with e filled. `place` is the file, for messages.
Pattern *pattern_open(const char *source, bool literal, const char *place, Error *e);
void pattern_close(Pattern *p); // takes NULL

// Finds the matches in a text from left to right. An empty match right after another match doesn't count.
typedef struct Search {
    const Pattern *pattern;
    void *match; // PCRE2's memory for one match
    const char *text;
    size_t length, at;
    size_t last_end; // of the last match; past the text before the first match
} Search;

void search_open(Search *s, const Pattern *p);
void search_close(Search *s);                             // takes a zeroed one
void search_begin(Search *s, const char *text, size_t n); // n bytes of valid UTF-8

// The next match is [*from, *to) if *found. False with e filled if the search takes too long.
bool search_next(Search *s, bool *found, size_t *from, size_t *to, Error *e);

// --- words

typedef struct Words {
    Text text;    // the words, one after another
    size_t *ends; // (count) where each word ends in text
    size_t count, capacity;
    bool at_start; // the first word begins the whole input
} Words;

// Ends the word that text_add has built in `text`; an empty one is dropped.
void words_end(Words *w);
void words_add(Words *w, const char *word, size_t n); // a whole word
void words_clear(Words *w);                           // keeps the memory
void words_release(Words *w);

static inline size_t words_from(const Words *w, size_t i) { return i ? w->ends[i - 1] : 0; }

// --- stages

enum { STEPS_MAX = 16 };

// The fate of the matches of a splitting pattern.
typedef enum {
    SPLIT_ISOLATED,
    SPLIT_REMOVED,
    SPLIT_WITH_PREVIOUS,
    SPLIT_WITH_NEXT,
    SPLIT_CONTIGUOUS, // neighbours of a kind stay together
} SplitBehavior;

// When Metaspace and ByteLevel put a mark before a word.
typedef enum { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS } Prepend;

typedef struct Step Step;

// A row of a table: a step's name in tokenizer.json, and the functions that read and run it.
typedef struct StepKind {
    const char *type;
    bool (*read)(Step *s, const json_t *part, const char *place, Error *e); // may be NULL
    bool (*run)(const Step *s, const Words *in, Words *out, Error *e);      // appends to out
    int form;                                                               // of utf8proc, for NFC and so on
} StepKind;

struct Step {
    const StepKind *kind;
    Pattern *pattern;
    char *text; // put before a word, or in place of a match
    size_t length;
    SplitBehavior behavior;
    bool invert; // the text between matches counts as the match
    bool left, right;
    Prepend prepend;
    ByteLetters letters;
};

typedef struct StepTable {
    const char *what; // "normalizer", for messages
    const char *list; // the key of a Sequence's members
    const StepKind *kinds;
    size_t count;
} StepTable;

typedef struct Steps {
    Step items[STEPS_MAX];
    size_t count;
} Steps;

extern const StepTable step_normalizers, step_splitters;

// Appends the steps of a part of a tokenizer.json: one, a Sequence, or none if the part is null.
bool steps_read(Steps *s, const StepTable *table, const json_t *part, const char *place, Error *e);
void steps_release(Steps *s);

// Runs all steps; the result is in *words, `other` is memory to work in.
bool steps_run(const Steps *s, Words *words, Words *other, Error *e);

// For the rows: copies a string, opens the pattern {"String": ...} or {"Regex": ...}.
bool step_read_text(Step *s, const json_t *part, const char *key, const char *place, Error *e);
bool step_read_pattern(Step *s, const json_t *part, const char *place, Error *e);
