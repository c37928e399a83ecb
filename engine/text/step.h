// One step between a text and the words that BPE is given: a normalizer or a pre-tokenizer of a
// tokenizer.json. Each takes words and gives words; the normalizers run while the text is one word.
#pragma once
#include "engine/text/bytelevel.h"
#include "engine/text/pattern.h"
#include "engine/text/words.h"

#include <jansson.h>

enum { STEPS_MAX = 16 };

// What becomes of the matches of a pattern that splits.
typedef enum {
    SPLIT_ISOLATED,
    SPLIT_REMOVED,
    SPLIT_WITH_PREVIOUS,
    SPLIT_WITH_NEXT,
    SPLIT_CONTIGUOUS, // neighbours of a kind stay together
} SplitBehavior;

// When something is put before a word.
typedef enum { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS } Prepend;

typedef struct Step Step;

// A row of a table: what tokenizer.json calls it, how its part is read, what it does.
typedef struct StepKind {
    const char *type;
    bool (*read)(Step *s, const json_t *part, const char *place, Error *e); // may be NULL
    bool (*run)(const Step *s, const Words *in, Words *out, Error *e);      // appends to out
} StepKind;

struct Step {
    const StepKind *kind;
    Pattern *pattern;
    char *text; // what is put before, or in place of a match
    size_t length;
    SplitBehavior behavior;
    bool invert; // what does not match is the match
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

// Appends what a part of a tokenizer.json says: one step, a Sequence of them, or none where it is null.
bool steps_read(Steps *s, const StepTable *table, const json_t *part, const char *place, Error *e);
void steps_release(Steps *s);

// Runs all steps; the result is in *words, `other` is memory to work in.
bool steps_run(const Steps *s, Words *words, Words *other, Error *e);

// For the rows: copies a string, opens the pattern {"String": ...} or {"Regex": ...}.
bool step_read_text(Step *s, const json_t *part, const char *key, const char *place, Error *e);
bool step_read_pattern(Step *s, const json_t *part, const char *place, Error *e);
