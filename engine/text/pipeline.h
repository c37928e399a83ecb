// What a tokenizer.json says, taken apart: the insides of a Tokenizer.
//
//      text -> added tokens cut out -> each rest: spaces to "▁", one put before -> words -> BPE -> template
//      ids -> pieces -> "▁" to spaces, byte pieces to bytes -> leading space off
#pragma once
#include "engine/text/bpe.h"

enum { TEMPLATE_MAX = 8 };

// When "▁" is put before a rest.
typedef enum { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS, PREPEND_EVEN_TWICE } Prepend;

typedef struct AddedToken {
    char *text;
    size_t length;
    int id;
    bool special;     // left out of decoded text on request
    bool left, right; // takes the white space on that side with it
    bool single_word; // only where no word character stands beside it
    bool normalized;  // sought in the text after spaces were replaced
} AddedToken;

struct Tokenizer {
    Bpe bpe;
    AddedToken *added; // (added_count), longest first
    int added_count;
    bool *is_special; // (vocab size)
    int base_size;    // the largest id that is not only an added token's, plus 1
    // before BPE
    bool spaces_to_metaspace;
    Prepend prepend;
    bool split_words; // at every "▁"
    // around a text
    int prefix[TEMPLATE_MAX], prefix_count;
    int suffix[TEMPLATE_MAX], suffix_count;
    // decoding
    bool metaspace_to_spaces, join_bytes;
    int strip_left; // spaces taken off the start
};

#define METASPACE "\xe2\x96\x81"

// Fills t from a tokenizer.json.
bool pipeline_parse(Tokenizer *t, const char *bytes, size_t n, const char *place, Error *e);
