// Byte pieces are joined until another piece comes: only then is it known whether the run is text. If it is
// not, each of its bytes becomes U+FFFD, which is what Hugging Face tokenizers does.
#include "engine/text/pipeline.h"
#include "engine/text/utf8.h"

#include <stdlib.h>
#include <string.h>

void stream_begin(TextStream *s, const Tokenizer *t, bool skip_special) {
    *s = (TextStream){.tokenizer = t, .skip_special = skip_special, .strip = t ? t->strip_left : 0};
}

void stream_release(TextStream *s) { text_release(&s->bytes); }

// Appends text, less the spaces that are still to be stripped off the start.
static void put(TextStream *s, const char *text, size_t n, Text *out) {
    for (; s->strip > 0 && n > 0 && *text == ' '; s->strip--, text++, n--) {}
    if (n) s->strip = 0;
    text_add(out, text, n);
}

static void end_run(TextStream *s, Text *out) {
    const char *bytes = text_get(&s->bytes);
    if (utf8_valid(bytes, s->bytes.length)) put(s, bytes, s->bytes.length, out);
    else
        for (size_t i = 0; i < s->bytes.length; i++) put(s, UTF8_REPLACEMENT, 3, out);
    text_clear(&s->bytes);
}

// The byte of a piece "<0xNN>", or -1.
static int byte_of(const Piece *p) {
    char *end;
    if (p->length != 6 || memcmp(p->text, "<0x", 3) != 0 || p->text[5] != '>') return -1;
    long value = strtol(p->text + 3, &end, 16);
    return end == p->text + 5 && p->text[3] != '-' && p->text[3] != '+' && p->text[3] != ' ' ? (int)value
                                                                                             : -1;
}

static void put_piece(TextStream *s, const Piece *p, Text *out) {
    for (size_t i = 0; i < p->length;) {
        bool space =
            s->tokenizer->metaspace_to_spaces && p->length - i >= 3 && memcmp(p->text + i, METASPACE, 3) == 0;
        put(s, space ? " " : p->text + i, 1, out);
        i += space ? 3 : 1;
    }
}

bool stream_next(TextStream *s, int id, Text *out, Error *e) {
    const Tokenizer *t = s->tokenizer;
    if (id < 0 || id >= t->bpe.vocab.size || !t->bpe.vocab.pieces[id].text)
        return true; // a padded row of the head
    if (s->skip_special && t->is_special[id]) return true;
    const Piece *p = &t->bpe.vocab.pieces[id];
    int byte = t->join_bytes ? byte_of(p) : -1;
    if (byte >= 0) {
        char c = (char)byte;
        text_add(&s->bytes, &c, 1);
    } else {
        end_run(s, out);
        put_piece(s, p, out);
    }
    return !(out->failed || s->bytes.failed) || error_system(e, "out of memory decoding");
}

bool stream_end(TextStream *s, Text *out, Error *e) {
    end_run(s, out);
    return !out->failed || error_system(e, "out of memory decoding");
}
