// Text to ids and back, by the model's own tokenizer.json or tokenizer.model.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// --- lists of ids

typedef struct IdList {
    int *ids; // (count); for ids_release
    size_t count, capacity;
} IdList;

void ids_add(IdList *list, int id);
void ids_release(IdList *list);

// --- a tokenizer

typedef struct Tokenizer Tokenizer;

// Opens tokenizer.json or, if there isn't one, tokenizer.model in a model directory, or the tokenizer of a
// GGUF file, which `dir` may name; NULL with e filled.
Tokenizer *tokenizer_open(const char *dir, Error *e);
// The path of the file that this opens, for mem_free; NULL if there is none.
char *tokenizer_file(const char *dir);
// Parses the bytes of a tokenizer.json; `place` is its name in messages.
Tokenizer *tokenizer_parse(const char *bytes, size_t n, const char *place, Error *e);
// Parses the bytes of a tokenizer.model, a sentencepiece model of the kind BPE.
Tokenizer *tokenizer_parse_model(const char *bytes, size_t n, const char *place, Error *e);
struct Gguf; // engine/base/gguf.h
Tokenizer *tokenizer_parse_gguf(const struct Gguf *g, Error *e);
void tokenizer_close(Tokenizer *t); // takes NULL

int tokenizer_size(const Tokenizer *t);      // the largest id, plus 1
int tokenizer_base_size(const Tokenizer *t); // the same without added tokens

// Appends the ids of n bytes of text. Each byte that isn't UTF-8 becomes a replacement character or a byte
// token, as in the family. add_special: with the ids that the post-processor puts around a single text (BOS).
bool tokenizer_encode(const Tokenizer *t, const char *text, size_t n, bool add_special, IdList *out,
                      Error *e);

// Appends the text of ids. skip_special leaves special tokens out.
bool tokenizer_decode(const Tokenizer *t, const int *ids, size_t count, bool skip_special, Text *out,
                      Error *e);

// The ids that add_special puts before a text.
const int *tokenizer_prefix(const Tokenizer *t, int *count);

// The chat template of this name or, for TEMPLATE_OF_MODEL, the one that the tokenizer's files have
// (tokenizer.chat_template of a GGUF file; chat_template.jinja or tokenizer_config.json). NULL with e filled.
const struct Template *tokenizer_template(const Tokenizer *t, const char *name, Error *e);
// Whether its files have one, known or not. Both take NULL for a model without a tokenizer.
bool tokenizer_has_template(const Tokenizer *t);

// The piece as the vocabulary has it ("▁the", "<0x0A>"), or NULL.
const char *tokenizer_piece(const Tokenizer *t, int id);

// Decoding one id at a time, never half a character: bytes that may still become one are held back.
enum { DECODERS_MAX = 8 };

typedef struct TextStream {
    const Tokenizer *tokenizer;
    bool skip_special;
    Text *out; // of the call under way
    struct {
        Text held;          // bytes that are not whole characters yet
        int taken;          // how often the start was stripped
        bool begun;         // a token has come
    } stages[DECODERS_MAX]; // of each decoder
} TextStream;

void stream_begin(TextStream *s, const Tokenizer *t, bool skip_special); // t may be NULL if no id comes
bool stream_next(TextStream *s, int id, Text *out, Error *e);            // appends whole characters
bool stream_end(TextStream *s, Text *out, Error *e);                     // appends the rest
void stream_release(TextStream *s);
