// Pieces back to text, one token at a time through a chain of decoders. A decoder holds bytes back while it
// can't know whether they are text: ByteFallback a run of byte pieces, ByteLevel the start of a character.
//
// Invariant: between calls ByteLevel holds at most a character that more bytes may complete, and after
// stream_end no decoder holds anything.
#include "engine/text/pipeline.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/text/utf8.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const Decoder *decoder_of(const TextStream *s, int stage) {
    return &s->tokenizer->decoders.items[stage];
}

// Passes text to a stage, or to the stream's output after the last.
static bool decoder_pass(TextStream *s, int stage, const char *text, size_t n, Error *e) {
    if (stage < s->tokenizer->decoders.count) return decoder_of(s, stage)->kind->take(s, stage, text, n, e);
    text_add(s->out, text, n);
    return true;
}

static bool read_text(char **out, const json_t *part, const char *key, const char *place, Error *e) {
    const char *text = field_text(part, key, place, e);
    if (!text) return false;
    *out = mem_text(text, strlen(text));
    return true;
}

// Passes the text on with `with` in place of every `find` of the decoder.
static bool pass_replaced(TextStream *s, int stage, const char *text, size_t n, const char *with, Error *e) {
    const char *find = decoder_of(s, stage)->find, *end = text + n;
    size_t length = strlen(find);
    LOCAL_TEXT out = {0};
    for (const char *hit; (hit = memmem(text, (size_t)(end - text), find, length)); text = hit + length) {
        text_add(&out, text, (size_t)(hit - text));
        text_puts(&out, with);
    }
    text_add(&out, text, (size_t)(end - text));
    return decoder_pass(s, stage + 1, text_get(&out), out.length, e);
}

// --- Replace, Metaspace, Strip, Fuse, and nothing ------------------------------------------------------

static bool read_replace(Decoder *d, const json_t *part, const char *place, Error *e) {
    const json_t *pattern = json_object_get(part, "pattern");
    const char *literal = json_string_value(json_object_get(pattern, "String"));
    if (d->joined || !literal || !*literal)
        return error_input(e,
                           "the decoder Replace of '%s' is supported with a 'pattern' {\"String\": ...} and "
                           "before tokens are joined only",
                           place);
    return read_text(&d->find, pattern, "String", place, e) && read_text(&d->text, part, "content", place, e);
}

static bool take_replace(TextStream *s, int stage, const char *text, size_t n, Error *e) {
    return pass_replaced(s, stage, text, n, decoder_of(s, stage)->text, e);
}

static bool read_metaspace(Decoder *d, const json_t *part, const char *place, Error *e) {
    bool prefix = true;
    const char *scheme = json_string_value(json_object_get(part, "prepend_scheme"));
    if (!field_bool_optional(part, "add_prefix_space", &prefix, place, e)) return false;
    d->start = scheme ? strcmp(scheme, "never") != 0 : prefix;
    return read_text(&d->find, part, "replacement", place, e) &&
           (*d->find || error_input(e, "'replacement' in '%s' is empty", place));
}

// The first token loses all its marks, as in Hugging Face tokenizers.
static bool take_metaspace(TextStream *s, int stage, const char *text, size_t n, Error *e) {
    bool drop = decoder_of(s, stage)->start && !s->stages[stage].begun;
    s->stages[stage].begun = true;
    return pass_replaced(s, stage, text, n, drop ? "" : " ", e);
}

static bool read_strip(Decoder *d, const json_t *part, const char *place, Error *e) {
    int64_t start = 0, stop = 0;
    if (!field_int_optional(part, "start", 0, 1 << 20, &start, place, e) ||
        !field_int_optional(part, "stop", 0, 0, &stop, place, e))
        return false;
    d->start = (int)start;
    return read_text(&d->find, part, "content", place, e) &&
           (*d->find || error_input(e, "'content' of the decoder Strip in '%s' is empty", place));
}

static bool take_strip(TextStream *s, int stage, const char *text, size_t n, Error *e) {
    const Decoder *d = decoder_of(s, stage);
    size_t length = strlen(d->find);
    int *taken = &s->stages[stage].taken;
    if (!d->joined) *taken = 0;
    for (; *taken < d->start && n >= length && memcmp(text, d->find, length) == 0; ++*taken) {
        text += length;
        n -= length;
    }
    if (n) *taken = d->start;
    return decoder_pass(s, stage + 1, text, n, e);
}

static bool take_fuse(TextStream *s, int stage, const char *text, size_t n, Error *e) {
    return decoder_pass(s, stage + 1, text, n, e);
}

static bool take_spaced(TextStream *s, int stage, const char *text, size_t n, Error *e) {
    bool space = s->stages[stage].begun;
    s->stages[stage].begun = true;
    return (!space || decoder_pass(s, stage + 1, " ", 1, e)) && decoder_pass(s, stage + 1, text, n, e);
}

// --- ByteFallback --------------------------------------------------------------------------------------

static bool read_byte_fallback(Decoder *d, const json_t *part, const char *place, Error *e) {
    if (d->joined) return error_input(e, "the decoder ByteFallback of '%s' must come before Fuse", place);
    return field_bool_optional(part, "each_byte", &d->each_byte, place, e);
}

// Passes on a run of byte pieces, which is text if it is UTF-8 as a whole.
static bool end_run(TextStream *s, int stage, Error *e) {
    Text *run = &s->stages[stage].held;
    const char *bytes = text_get(run);
    size_t n = run->length;
    bool ok = true, each = decoder_of(s, stage)->each_byte;
    if (n == 0) return true;
    if (utf8_valid(bytes, n)) ok = decoder_pass(s, stage + 1, bytes, n, e);
    else
        for (size_t i = 0; ok && i < n;) {
            int length = each ? utf8_length(bytes + i, n - i) : 0;
            ok = decoder_pass(s, stage + 1, length ? bytes + i : UTF8_REPLACEMENT,
                              length ? (size_t)length : 3, e);
            i += length ? (size_t)length : 1;
        }
    text_clear(run);
    return ok;
}

static bool take_byte_fallback(TextStream *s, int stage, const char *text, size_t n, Error *e) {
    bool is_byte = n == 6 && memcmp(text, "<0x", 3) == 0 && text[5] == '>' &&
                   strspn(text + 3, "0123456789abcdefABCDEF") == 2; // "<0xNN>"
    if (!is_byte) return end_run(s, stage, e) && decoder_pass(s, stage + 1, text, n, e);
    char c = (char)strtol(text + 3, NULL, 16);
    text_add(&s->stages[stage].held, &c, 1);
    return true;
}

// --- ByteLevel -----------------------------------------------------------------------------------------

static bool read_byte_level(Decoder *d, UNUSED const json_t *part, UNUSED const char *place,
                            UNUSED Error *e) {
    byte_letters_init(&d->letters);
    return true;
}

// Passes on the held bytes: valid text unchanged, and U+FFFD for bytes that can't become text. A character
// that more bytes may complete stays, unless this is the end.
static bool pass_valid(TextStream *s, int stage, bool end, Error *e) {
    Text *held = &s->stages[stage].held;
    LOCAL_TEXT out = {0};
    const char *bytes = text_get(held);
    size_t n = held->length, i = 0;
    while (i < n && (end || !utf8_is_cut(bytes + i, n - i))) {
        int length = utf8_length(bytes + i, n - i);
        if (length) text_add(&out, bytes + i, (size_t)length);
        else text_puts(&out, UTF8_REPLACEMENT);
        i += (size_t)(length ? length : utf8_bad_length(bytes + i, n - i));
    }
    if (i) memmove(held->data, bytes + i, n - i);
    if (i) held->length = n - i;
    assert(held->length == 0 || (!end && utf8_is_cut(held->data, held->length)));
    return decoder_pass(s, stage + 1, text_get(&out), out.length, e);
}

// A token with any character outside the alphabet, such as a special one, is its own bytes.
static bool take_byte_level(TextStream *s, int stage, const char *text, size_t n, Error *e) {
    Text *held = &s->stages[stage].held;
    if (!byte_letters_read(&decoder_of(s, stage)->letters, text, n, held)) text_add(held, text, n);
    return pass_valid(s, stage, false, e);
}

static bool end_byte_level(TextStream *s, int stage, Error *e) { return pass_valid(s, stage, true, e); }

// --- the table -----------------------------------------------------------------------------------------

static const DecoderKind KINDS[] = {
    {"ByteLevel", true, read_byte_level, take_byte_level, end_byte_level},
    {"ByteFallback", false, read_byte_fallback, take_byte_fallback, end_run},
    {"Metaspace", false, read_metaspace, take_metaspace, NULL},
    {"Replace", false, read_replace, take_replace, NULL},
    {"Strip", false, read_strip, take_strip, NULL},
    {"Fuse", true, NULL, take_fuse, NULL},
};
static const DecoderKind SPACED = {.type = "none", .joins = true, .take = take_spaced};

static Decoder *add(Decoders *d, const DecoderKind *kind, const char *place, Error *e) {
    if (d->count == DECODERS_MAX) {
        error_input(e, "'%s' has more than %d decoders", place, DECODERS_MAX);
        return NULL;
    }
    Decoder *last = d->count ? &d->items[d->count - 1] : NULL, *added = &d->items[d->count++];
    *added = (Decoder){.kind = kind, .joined = last && (last->joined || last->kind->joins)};
    return added;
}

static bool read_one(Decoders *d, const json_t *part, const char *place, Error *e) {
    const char *type = field_text(part, "type", place, e);
    if (!type) return false;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        if (strcmp(type, KINDS[i].type) != 0) continue;
        Decoder *added = add(d, &KINDS[i], place, e);
        return added && (!KINDS[i].read || KINDS[i].read(added, part, place, e));
    }
    LOCAL_TEXT known = {0};
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) text_printf(&known, ", %s", KINDS[i].type);
    return error_input(e, "the decoder '%.40s' of '%s' is not supported; these are: Sequence%s", type, place,
                       text_get(&known));
}

static bool read_part(Decoders *d, const json_t *part, const char *place, Error *e) {
    const char *type = json_string_value(json_object_get(part, "type"));
    if (!type || strcmp(type, "Sequence") != 0) return read_one(d, part, place, e);
    const json_t *members = json_object_get(part, "decoders");
    for (size_t i = 0; i < json_array_size(members); i++)
        if (!read_part(d, json_array_get(members, i), place, e)) return false;
    return json_is_array(members) || error_input(e, "a Sequence of '%s' needs a list 'decoders'", place);
}

static void decoder_check(const Decoders *d) {
    assert(d->count >= 0 && d->count <= DECODERS_MAX);
    for (int i = 0; i < d->count; i++) {
        UNUSED const Decoder *x = &d->items[i];
        assert(x->kind && x->kind->take);
        assert(x->joined == (i > 0 && (x[-1].joined || x[-1].kind->joins)));
    }
}

bool decoders_read(Decoders *d, const json_t *part, const char *place, Error *e) {
    bool null = !part || json_is_null(part);
    if (!(null ? add(d, &SPACED, place, e) != NULL : read_part(d, part, place, e))) return false;
    decoder_check(d);
    return true;
}

void decoders_release(Decoders *d) {
    for (int i = 0; i < d->count; i++) { MEM_FREE(d->items[i].find, d->items[i].text); }
    d->count = 0;
}

// --- streams

void stream_begin(TextStream *s, const Tokenizer *t, bool skip_special) {
    *s = (TextStream){.tokenizer = t, .skip_special = skip_special};
}

void stream_release(TextStream *s) {
    for (int i = 0; i < DECODERS_MAX; i++) text_release(&s->stages[i].held);
}

bool stream_next(TextStream *s, int id, Text *out, Error *e) {
    const Tokenizer *t = s->tokenizer; // a head may have more rows than t has tokens
    if (id < 0 || id >= t->bpe.vocab.size || !t->bpe.vocab.pieces[id].text) return true;
    const AddedToken *a = t->added_by_id[id] ? &t->added[t->added_by_id[id] - 1] : NULL;
    if (s->skip_special && a && a->special) return true;
    // The input of the decoders for an id: its piece, or its added token's normalized text.
    Piece p = a ? (Piece){a->text, a->length} : t->bpe.vocab.pieces[id];
    s->out = out;
    return decoder_pass(s, 0, p.text, p.length, e);
}

bool stream_end(TextStream *s, Text *out, Error *e) {
    bool ok = true;
    s->out = out;
    for (int i = 0; ok && s->tokenizer && i < s->tokenizer->decoders.count; i++) {
        const DecoderKind *kind = s->tokenizer->decoders.items[i].kind;
        ok = !kind->end || kind->end(s, i, e);
    }
    for (int i = 0; ok && i < DECODERS_MAX; i++) assert(s->stages[i].held.length == 0);
    return ok;
}
