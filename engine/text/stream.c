// A token at a time through the chain of decoders; what comes out after the last is whole characters.
#include "engine/text/decoder.h"
#include "engine/text/pipeline.h"

void stream_begin(TextStream *s, const Tokenizer *t, bool skip_special) {
    *s = (TextStream){.tokenizer = t, .skip_special = skip_special};
}

void stream_release(TextStream *s) {
    for (int i = 0; i < DECODERS_MAX; i++) text_release(&s->stages[i].held);
}

// What the decoders are given for an id: its piece, or its added token as it is sought in normalized text.
static Piece piece_of(const Tokenizer *t, int id) {
    const AddedToken *a = t->added_by_id[id] ? &t->added[t->added_by_id[id] - 1] : NULL;
    return a ? (Piece){a->text, a->length} : t->bpe.vocab.pieces[id];
}

static bool is_special(const Tokenizer *t, int id) {
    return t->added_by_id[id] && t->added[t->added_by_id[id] - 1].special;
}

bool stream_next(TextStream *s, int id, Text *out, Error *e) {
    const Tokenizer *t = s->tokenizer;
    // A head may have more rows than there are tokens.
    if (id < 0 || id >= t->bpe.vocab.size || !t->bpe.vocab.pieces[id].text) return true;
    if (s->skip_special && is_special(t, id)) return true;
    Piece p = piece_of(t, id);
    s->out = out;
    return decoder_pass(s, 0, p.text, p.length, e) &&
           (!out->failed || error_system(e, "out of memory decoding"));
}

bool stream_end(TextStream *s, Text *out, Error *e) {
    bool ok = true;
    s->out = out;
    for (int i = 0; ok && s->tokenizer && i < s->tokenizer->decoders.count; i++) {
        const DecoderKind *kind = s->tokenizer->decoders.items[i].kind;
        ok = !kind->end || kind->end(s, i, e);
    }
    return ok && (!out->failed || error_system(e, "out of memory decoding"));
}
