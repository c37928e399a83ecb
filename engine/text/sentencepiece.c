// Reads a sentencepiece model of the kind BPE. sentencepiece merges the two neighbours whose joint text is
// the piece of the highest score, the leftmost of equals; so each cut of a piece into two pieces is a merge,
// ranked by the score of the whole. The steps before and after are given in the language of tokenizer.json.
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/text/pipeline.h"
#include "engine/text/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- protocol buffers ----------------------------------------------------------------------------------

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

static size_t proto_size(const Proto *p) { return (size_t)(p->end - p->at); }

static bool read_varint(Proto *p, uint64_t *out) {
    *out = 0;
    for (int shift = 0; shift < 64 && p->at < p->end; shift += 7) {
        unsigned char byte = *p->at++;
        *out |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static bool read_fixed(Proto *p, size_t n, uint64_t *out) {
    if (proto_size(p) < n) return false;
    *out = 0;
    for (size_t i = 0; i < n; i++) *out |= (uint64_t)p->at[i] << 8 * i;
    p->at += n;
    return true;
}

static bool read_bytes(Proto *p, Proto *out) {
    uint64_t length;
    if (!read_varint(p, &length) || length > proto_size(p)) return false;
    *out = (Proto){p->at, p->at + length};
    p->at += length;
    return true;
}

// Reads the next field; *more is false at the end. False if the bytes aren't a protocol buffer.
static bool proto_next(Proto *p, ProtoField *field, bool *more) {
    uint64_t key;
    *more = p->at < p->end;
    if (!*more) return true;
    if (!read_varint(p, &key) || key >> 3 == 0 || key >> 32) return false;
    *field = (ProtoField){.number = (uint32_t)(key >> 3), .wire = (WireType)(key & 7)};
    switch (field->wire) {
    case WIRE_VARINT: return read_varint(p, &field->value);
    case WIRE_FIXED64: return read_fixed(p, 8, &field->value);
    case WIRE_FIXED32: return read_fixed(p, 4, &field->value);
    case WIRE_BYTES: return read_bytes(p, &field->bytes);
    }
    return false;
}

// --- the model's fields --------------------------------------------------------------------------------

// Field numbers of sentencepiece_model.proto.
enum { MODEL_PIECE = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3, MODEL_DENORMALIZER = 5 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3, PIECE_LONGEST = 256 };
enum { TRAINER_TYPE = 3, TRAINER_SUFFIX = 24, TRAINER_BYTES = 35, TRAINER_BOS = 41 };
enum { NORM_NAME = 1, NORM_CHARSMAP = 2, NORM_PREFIX = 3, NORM_EXTRA = 4, NORM_ESCAPE = 5 };
enum { TYPE_UNIGRAM = 1, TYPE_BPE = 2 };
typedef enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, NOT_USED = 5, BYTE = 6 } PieceType;

typedef struct {
    const char *text;
    size_t length;
    float score;
    PieceType type;
    int rank; // by score; equal scores have equal ranks
} ModelPiece;

typedef struct {
    Tokenizer *t;
    const char *place;
    Error *e;
    ModelPiece *pieces; // (count)
    size_t count, capacity;
    int type, bos;
    bool suffix, byte_fallback;
    bool prefix, remove_extra, escape, charsmap;
    bool gguf; // the pieces are a GGUF file's, where user-defined ones have spaces
    char normalizer[64];
} Model;

static bool broken(const Model *m) {
    return error_input(
        m->e, "'%s' is not a whole sentencepiece model (if it is one of tiktoken's, give the tokenizer.json)",
        m->place);
}

static bool check_piece(const Model *m, const ModelPiece *p) {
    if (p->length == 0 || p->length > PIECE_LONGEST || memchr(p->text, 0, p->length) ||
        !utf8_valid(p->text, p->length))
        return error_input(m->e, "piece %zu of '%s' is not UTF-8 of 1 to %d bytes", m->count, m->place,
                           PIECE_LONGEST);
    if (!isfinite(p->score)) return error_input(m->e, "piece %zu of '%s' has no score", m->count, m->place);
    if (p->type < NORMAL || p->type > BYTE || (p->type == NOT_USED && !m->gguf))
        return error_input(m->e, "piece %zu of '%s' is of the type %d, which is not supported", m->count,
                           m->place, (int)p->type);
    return true;
}

static bool read_piece(Model *m, Proto message) {
    ModelPiece p = {.text = "", .type = NORMAL};
    ProtoField f;
    bool more;
    while (proto_next(&message, &f, &more) && more) {
        if (f.number == PIECE_TEXT && f.wire == WIRE_BYTES) {
            p.text = (const char *)f.bytes.at;
            p.length = proto_size(&f.bytes);
        } else if (f.number == PIECE_SCORE && f.wire == WIRE_FIXED32) {
            uint32_t bits = (uint32_t)f.value;
            memcpy(&p.score, &bits, sizeof p.score);
        } else if (f.number == PIECE_TYPE && f.wire == WIRE_VARINT) p.type = (PieceType)(f.value & 0xFF);
    }
    if (more) return broken(m);
    if (!check_piece(m, &p)) return false;
    if (m->count == VOCAB_MAX) return error_input(m->e, "'%s' has more than %d pieces", m->place, VOCAB_MAX);
    *LIST_ADD(m->pieces, m->count, m->capacity) = p;
    return true;
}

static bool read_trainer(Model *m, Proto message) {
    ProtoField f;
    bool more;
    while (proto_next(&message, &f, &more) && more) {
        if (f.wire != WIRE_VARINT) continue;
        if (f.number == TRAINER_TYPE) m->type = (int)(f.value & 0xFF);
        if (f.number == TRAINER_SUFFIX) m->suffix = f.value != 0;
        if (f.number == TRAINER_BYTES) m->byte_fallback = f.value != 0;
        if (f.number == TRAINER_BOS) m->bos = f.value < VOCAB_MAX ? (int)f.value : -1;
    }
    return !more || broken(m);
}

// Back: of changes to decoded text. There only the table matters, and no supported model has one.
static bool read_normalizer(Model *m, Proto message, bool back) {
    ProtoField f;
    bool more;
    while (proto_next(&message, &f, &more) && more) {
        size_t n = f.wire == WIRE_BYTES ? proto_size(&f.bytes) : 0;
        if (f.number == NORM_NAME && n && n < sizeof m->normalizer) memcpy(m->normalizer, f.bytes.at, n);
        if (f.number == NORM_CHARSMAP && n) m->charsmap = true;
        if (back) continue;
        if (f.number == NORM_PREFIX) m->prefix = f.value != 0;
        if (f.number == NORM_EXTRA) m->remove_extra = f.value != 0;
        if (f.number == NORM_ESCAPE) m->escape = f.value != 0;
    }
    return !more || broken(m);
}

static bool read_file(Model *m, Proto file) {
    ProtoField f;
    bool more;
    while (proto_next(&file, &f, &more) && more) {
        bool ok = true;
        if (f.wire != WIRE_BYTES) continue;
        if (f.number == MODEL_PIECE) ok = read_piece(m, f.bytes);
        if (f.number == MODEL_TRAINER) ok = read_trainer(m, f.bytes);
        if (f.number == MODEL_NORMALIZER) ok = read_normalizer(m, f.bytes, false);
        if (f.number == MODEL_DENORMALIZER) ok = read_normalizer(m, f.bytes, true);
        if (!ok) return false;
    }
    return !more || broken(m);
}

static bool check_file(const Model *m) {
    static const char *const kinds[] = {"of an unknown kind", "unigram", "BPE", "word", "char"};
    if (m->count == 0)
        return error_input(m->e, "'%s' is not a sentencepiece model: it has no pieces", m->place);
    if (m->type != TYPE_BPE)
        return error_input(m->e, "the model '%s' is %s, supported is BPE", m->place,
                           kinds[m->type >= 1 && m->type <= 4 ? m->type : 0]);
    if (m->charsmap)
        return error_input(m->e, "the normalizer '%s' of '%s' is not supported; this one is: identity",
                           m->normalizer, m->place);
    if (m->suffix || !m->escape)
        return error_input(m->e, "'%s' writes spaces as suffixes or as they are, which is not supported",
                           m->place);
    return true;
}

// --- merges --------------------------------------------------------------------------------------------

static int by_score(const void *a, const void *b) {
    const ModelPiece *x = *(const ModelPiece *const *)a, *y = *(const ModelPiece *const *)b;
    return (x->score < y->score) - (x->score > y->score);
}

static void rank_pieces(Model *m) {
    ModelPiece **order = mem_new(m->count, sizeof *order);
    for (size_t i = 0; i < m->count; i++) order[i] = &m->pieces[i];
    qsort(order, m->count, sizeof *order, by_score);
    for (size_t i = 1; i < m->count; i++) {
        order[i]->rank = order[i]->score < order[i - 1]->score ? (int)i : order[i - 1]->rank;
        assert(order[i]->score <= order[i - 1]->score);
    }
    mem_free(order);
}

static int find_normal(const Model *m, const char *text, size_t n) {
    int id = vocab_find(&m->t->bpe.vocab, text, n);
    return id >= 0 && m->pieces[id].type == NORMAL ? id : -1;
}

static void add_cuts(const Model *m, int id) {
    const ModelPiece *p = &m->pieces[id];
    for (size_t at = 1; at < p->length; at++) {
        if ((p->text[at] & 0xC0) == 0x80) continue;
        int left = find_normal(m, p->text, at);
        int right = left >= 0 ? find_normal(m, p->text + at, p->length - at) : -1;
        if (right >= 0) bpe_set_merge(&m->t->bpe, left, right, p->rank, id);
    }
}

static bool fill_bpe(Model *m) {
    Bpe *b = &m->t->bpe;
    rank_pieces(m);
    size_t cuts = 0; // between the characters of all pieces: the most merges that there can be
    for (size_t i = 0; i < m->count; i++)
        for (size_t at = 1; at < m->pieces[i].length; at++) cuts += (m->pieces[i].text[at] & 0xC0) != 0x80;
    if (!bpe_init(b, (int)m->count, cuts, m->e)) return false;
    for (size_t i = 0; i < m->count; i++) {
        const ModelPiece *p = &m->pieces[i];
        if (p->type == UNKNOWN) b->unknown = (int)i;
        if (p->type == CONTROL || p->type == USER_DEFINED || p->type == NOT_USED) continue;
        if (!vocab_add(&b->vocab, p->text, p->length, (int)i, m->place, m->e)) return false;
    }
    for (size_t i = 0; i < m->count; i++)
        if (m->pieces[i].type == NORMAL) add_cuts(m, (int)i);
    m->t->base_size = (int)m->count;
    b->byte_fallback = m->byte_fallback;
    b->fuse_unknown = true;
    bpe_finish(b);
    return true;
}

// --- the rest ------------------------------------------------------------------------------------------

// The text of a piece with marks for spaces.
static char *marked(const ModelPiece *p) {
    LOCAL_TEXT text = {0};
    for (size_t i = 0; i < p->length; i++)
        if (p->text[i] == ' ') text_puts(&text, "\xe2\x96\x81");
        else text_add(&text, p->text + i, 1);
    return mem_text(text_get(&text), text.length);
}

// User-defined pieces are sought in the normalized text but aren't normalized themselves, so they are added
// before the normalizers. Control pieces are sought in the text itself, as in the families that use them.
static bool add_tokens(const Model *m) {
    pipeline_begin_added(m->t, m->count);
    for (size_t i = 0; i < m->count; i++) {
        const ModelPiece *p = &m->pieces[i];
        bool user = p->type == USER_DEFINED;
        if (!user && p->type != UNKNOWN && p->type != CONTROL) continue;
        LOCAL_MEMORY char *content = m->gguf && user ? marked(p) : mem_text(p->text, p->length);
        AddedToken a = {.id = (int)i, .special = !user, .normalized = user};
        if (!pipeline_add_token(m->t, a, content, m->place, m->e)) return false;
    }
    return pipeline_end_added(m->t, m->e);
}

static const char ONE_SPACE[] =
    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\\\\A +|[ \xe2\x96\x81]+\\\\z\"},\"content\":\"\"},"
    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"},";
static const char PREFIX[] = "{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"},";
static const char STEPS[] =
    "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[%s%s"
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"},"
    "{\"type\":\"ByteFallback\",\"each_byte\":true},{\"type\":\"Fuse\"},"
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":%d}]}}";

static bool add_steps(const Model *m) {
    LOCAL_TEXT text = {0};
    text_printf(&text, STEPS, m->remove_extra ? ONE_SPACE : "", m->prefix ? PREFIX : "",
                m->remove_extra ? 1 << 20 : (int)m->prefix); // each piece at the start loses its space
    json_auto_t *root = json_from_bytes(text_get(&text), text.length, "steps of sentencepiece", m->e);
    return root && pipeline_read_steps(m->t, root, m->place, m->e);
}

static bool fill(Model *m) { return check_file(m) && fill_bpe(m) && add_tokens(m) && add_steps(m); }

bool pipeline_read_model(Tokenizer *t, const char *bytes, size_t n, const char *place, Error *e) {
    const unsigned char *start = (const unsigned char *)bytes;
    Model m = {.t = t, .place = place, .e = e, .type = TYPE_UNIGRAM, .bos = 1};
    m.prefix = m.remove_extra = m.escape = true;
    bool ok = read_file(&m, (Proto){start, start + n}) && fill(&m);
    if (ok && m.bos >= 0 && (size_t)m.bos < m.count && m.pieces[m.bos].type == CONTROL)
        t->prefix.ids[t->prefix.count++] = m.bos;
    mem_free(m.pieces);
    return ok;
}

// --- GGUF

static bool flag(const Gguf *g, const char *key, bool otherwise) {
    const GgufValue *v = gguf_find(g, key);
    return v && v->count == 1 ? gguf_number(v, 0) != 0 : otherwise;
}

static bool read_scored(Model *m, const Gguf *g) {
    const GgufValue *tokens = gguf_find(g, "tokenizer.ggml.tokens"), *scores, *types;
    GgufTexts texts = gguf_texts(tokens);
    scores = gguf_find(g, "tokenizer.ggml.scores");
    types = gguf_find(g, "tokenizer.ggml.token_type");
    if (!scores || !types || scores->count != texts.left || types->count != texts.left ||
        scores->type == GGUF_TEXT || types->type == GGUF_TEXT || texts.left > VOCAB_MAX)
        return error_input(m->e,
                           "'%s' must have tokenizer.ggml.scores and tokenizer.ggml.token_type, as many as "
                           "tokens, and at most %d",
                           m->place, VOCAB_MAX);
    m->pieces = mem_new(texts.left, sizeof *m->pieces);
    for (ModelPiece *p = m->pieces; gguf_next(&texts, &p->text, &p->length); p++, m->count++) {
        double type = gguf_number(types, m->count);
        p->score = (float)gguf_number(scores, m->count);
        p->type = type >= NORMAL && type <= BYTE ? (PieceType)type : (PieceType)0;
        if (!check_piece(m, p)) return false;
        m->byte_fallback |= p->type == BYTE;
    }
    return true;
}

bool pipeline_read_scores(Tokenizer *t, const Gguf *g, Error *e) {
    Model m = {.t = t, .place = g->place, .e = e, .type = TYPE_BPE, .escape = true, .gguf = true};
    m.prefix = flag(g, "tokenizer.ggml.add_space_prefix", true);
    m.remove_extra = flag(g, "tokenizer.ggml.remove_extra_whitespaces", false);
    bool ok = read_scored(&m, g) && fill(&m);
    mem_free(m.pieces);
    return ok;
}
