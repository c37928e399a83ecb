// The insides of a Tokenizer, from either kind of file.
//
//      text -> added tokens cut out -> each rest: normalizers -> normalized added tokens cut out
//           -> each rest: pre-tokenizers -> words -> BPE -> ids, between prefix and suffix
//      ids -> pieces -> decoders -> text
#pragma once
#include "engine/base/gguf.h"
#include "engine/text/vocab.h"
#include "engine/text/bpe.h"
#include "engine/text/utf8.h"
#include "engine/text/stage.h"
#include "engine/text/template.h"
#include "engine/text/tokenizer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// --- decoding

typedef struct Decoder Decoder;

// A row of the table. `take` gets the text of one token or, after a decoder that joins tokens, a part of the
// whole text; `end` passes on the bytes still held. Both call decoder_pass with their output.
typedef struct DecoderKind {
    const char *type;
    bool joins; // its output is no longer one text per token
    bool (*read)(Decoder *d, const json_t *part, const char *place, Error *e);
    bool (*take)(TextStream *s, int stage, const char *text, size_t n, Error *e);
    bool (*end)(TextStream *s, int stage, Error *e); // may be NULL
} DecoderKind;

struct Decoder {
    const DecoderKind *kind;
    char *find;     // replaced, or stripped
    char *text;     // the replacement
    int start;      // Strip: how many at most
    bool joined;    // a decoder before this one joins
    bool each_byte; // of a run that isn't UTF-8, replace only the bad bytes, as sentencepiece does
    ByteLetters letters;
};

typedef struct Decoders {
    Decoder items[DECODERS_MAX];
    int count;
} Decoders;

// Appends the decoders of a part of a tokenizer.json: one, a Sequence, or for null spaces between tokens.
bool decoders_read(Decoders *d, const json_t *part, const char *place, Error *e);
void decoders_release(Decoders *d);

// --- the pipeline

enum { AFFIX_MAX = 8 };

// Ids put before or after a text.
typedef struct Affix {
    int ids[AFFIX_MAX], count;
} Affix;

struct Tokenizer {
    Bpe bpe;
    AddedToken *added; // (added_count)
    int added_count;
    int base_size;    // the largest id of a piece, plus 1
    int *added_by_id; // (vocab size) index in `added` plus 1, or 0
    AddedSet raw, normalized;
    Steps normalizers, splitters;
    Affix prefix, suffix;
    Decoders decoders;
    bool has_template;
    const Template *template; // the files' own; NULL: there is none, or it isn't known
};

// Fills an empty t from a tokenizer.json, from a tokenizer.model.
bool pipeline_read_json(Tokenizer *t, const char *bytes, size_t n, const char *place, Error *e);
bool pipeline_read_model(Tokenizer *t, const char *bytes, size_t n, const char *place, Error *e);
bool pipeline_read_root(Tokenizer *t, const json_t *root, const char *place, Error *e); // a parsed .json

// The same from a GGUF file; the second for sentencepiece's pieces, without the ids around a text.
bool pipeline_read_gguf(Tokenizer *t, const Gguf *g, Error *e);
bool pipeline_read_scores(Tokenizer *t, const Gguf *g, Error *e);

// Reads steps and decoders of a parsed tokenizer.json: everything but model, added tokens and post-processor.
bool pipeline_read_steps(Tokenizer *t, const json_t *root, const char *place, Error *e);

// Makes room for `count` added tokens, which are then added one by one. The vocabulary must be complete
// before; pipeline_end_added makes the tokens findable.
void pipeline_begin_added(Tokenizer *t, size_t count);
bool pipeline_add_token(Tokenizer *t, AddedToken token, const char *content, const char *place, Error *e);
bool pipeline_end_added(Tokenizer *t, Error *e);
