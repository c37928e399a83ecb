// The insides of a Tokenizer, whatever file it was read from.
//
//      text -> added tokens cut out -> each rest: normalizers -> normalized added tokens cut out
//           -> each rest: pre-tokenizers -> words -> BPE -> ids, between prefix and suffix
//      ids -> pieces -> decoders -> text
#pragma once
#include "engine/text/added.h"
#include "engine/text/bpe.h"
#include "engine/text/decoder.h"
#include "engine/text/step.h"

#include <jansson.h>

enum { AFFIX_MAX = 8 };

// Ids put before or after a text.
typedef struct Affix {
    int ids[AFFIX_MAX], count;
} Affix;

struct Tokenizer {
    Bpe bpe;
    AddedToken *added; // (added_count)
    int added_count;
    int base_size;    // the largest id that is not only an added token's, plus 1
    int *added_by_id; // (vocab size) index in `added` plus 1, or 0
    AddedSet raw, normalized;
    Steps normalizers, splitters;
    Affix prefix, suffix;
    Decoders decoders;
};

// Fills an empty t from a tokenizer.json, from a tokenizer.model.
bool pipeline_read_json(Tokenizer *t, const char *bytes, size_t n, const char *place, Error *e);
bool pipeline_read_model(Tokenizer *t, const char *bytes, size_t n, const char *place, Error *e);

// Steps and decoders of a parsed tokenizer.json: all but model, added tokens and post-processor.
bool pipeline_read_steps(Tokenizer *t, const json_t *root, const char *place, Error *e);

// Room for `count` added tokens, to be filled one by one, before which the vocabulary must be complete;
// pipeline_end_added makes them findable.
bool pipeline_begin_added(Tokenizer *t, size_t count, Error *e);
bool pipeline_add_token(Tokenizer *t, AddedToken token, const char *content, const char *place, Error *e);
bool pipeline_end_added(Tokenizer *t, Error *e);
