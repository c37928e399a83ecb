// From pieces to text: the decoders of a tokenizer.json as a chain, each taking text a token at a time and
// handing on what it can, so that text streams as tokens come.
#pragma once
#include "engine/text/bytelevel.h"
#include "engine/text/tokenizer.h"

#include <jansson.h>

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
