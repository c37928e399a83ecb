// The insides of a Tokenizer, whatever file it was read from.
//
//      text -> added tokens cut out -> each rest: normalizers -> normalized added tokens cut out
//           -> each rest: pre-tokenizers -> words -> BPE -> ids, between prefix and suffix
//      ids -> pieces -> decoders -> text
#pragma once
#include "engine/text/vocab.h"
#include "engine/text/bpe.h"
#include "engine/text/utf8.h"
#include "engine/text/stage.h"
#include "engine/text/tokenizer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// --- decoding

typedef struct Decoder Decoder;

// A row of the table. `take` gets the text of one token, or, after a decoder that joins tokens, a part of
// the whole text; `end` hands on what is still held. Either calls decoder_pass for what comes out.
typedef struct DecoderKind {
    const char *type;
    bool joins; // what it hands on is no longer a token each
    bool (*read)(Decoder *d, const json_t *part, const char *place, Error *e);
    bool (*take)(TextStream *s, int stage, const char *text, size_t n, Error *e);
    bool (*end)(TextStream *s, int stage, Error *e); // may be NULL
} DecoderKind;

struct Decoder {
    const DecoderKind *kind;
    char *find;     // what is replaced; what is stripped
    char *text;     // what replaces it
    int start;      // Strip: how many at most
    bool joined;    // a decoder before this one joins
    bool each_byte; // of a run that is no text: bad bytes alone are replaced, as sentencepiece does
    ByteLetters letters;
};

typedef struct Decoders {
    Decoder items[DECODERS_MAX];
    int count;
} Decoders;

// Appends what a part of a tokenizer.json says: one decoder, a Sequence, or, where it is null, spaces between
// tokens.
bool decoders_read(Decoders *d, const json_t *part, const char *place, Error *e);
void decoders_release(Decoders *d);

// Hands text to the stage, or to the stream's output after the last.
bool decoder_pass(TextStream *s, int stage, const char *text, size_t n, Error *e);

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
bool pipeline_begin_added(Tokenizer *t, size_t count);
bool pipeline_add_token(Tokenizer *t, AddedToken token, const char *content, const char *place, Error *e);
bool pipeline_end_added(Tokenizer *t, Error *e);

// --- protocol buffers

typedef struct Proto {
    const unsigned char *at, *end;
} Proto;

typedef enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 } WireType;

typedef struct ProtoField {
    uint32_t number;
    WireType wire;
    uint64_t value; // VARINT, FIXED32, FIXED64
    Proto bytes;    // BYTES: a string or a message
} ProtoField;

// The next field; *more is false at the end. False if the bytes are no protocol buffer.
bool proto_next(Proto *p, ProtoField *field, bool *more);

static inline size_t proto_size(const Proto *p) { return (size_t)(p->end - p->at); }
float proto_float(const ProtoField *field); // of FIXED32
