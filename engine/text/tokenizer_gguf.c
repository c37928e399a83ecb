// The tokenizer of a GGUF file. Byte-level BPE (model gpt2) is put into the form of a tokenizer.json: the
// file has pieces and merges, and names the family's normalizer and pre-tokenizers, which are a table here,
// as in the originals. A name that isn't in the table is refused, so that no text is ever tokenized wrongly.
#include "engine/base/gguf.h"
#include "engine/text/pipeline.h"

#include <string.h>

// --- families

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define REST         "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORDS        CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define UPPER        "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define BEFORE       "[^\\r\\n\\p{L}\\p{N}]?"

enum { SPLITS = 4 };

typedef struct {
    const char *names[4];      // of tokenizer.ggml.pre
    const char *split[SPLITS]; // patterns, one after another
    bool removed;              // text that the pattern leaves out is removed
    bool digits, gpt2;         // digits one by one; GPT-2's own pattern
    bool nfc;                  // the normalizer
    bool bos;                  // where the file doesn't say
    bool ignore_merges;
} Family;

static const Family FAMILIES[] = {
    {{"llama-bpe", "llama3", "llama-v3"},
     {WORDS "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" REST},
     .bos = true,
     .ignore_merges = true},
    {{"qwen2"}, {WORDS "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" REST}, .nfc = true},
    {{"gpt-2", "phi-2"}, .gpt2 = true},
    {{"olmo", "mpt"}, .gpt2 = true, .nfc = true}, // GPT-NeoX
    {{"starcoder", "refact", "smollm", "exaone"}, .digits = true, .gpt2 = true},
    {{"command-r"}, .digits = true, .gpt2 = true, .nfc = true, .bos = true},
    {{"dbrx"},
     {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|"
                   "\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"},
     .removed = true}, // OLMo 2, Phi-4
    {{"tekken"},
     {BEFORE UPPER "*" LOWER "+|" BEFORE UPPER "+" LOWER "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" REST},
     .bos = true,
     .ignore_merges = true},
    {{"seed-coder"}, {WORDS "\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" REST}, .nfc = true, .bos = true},
    {{"deepseek-coder"},
     {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+",
      "[\xe4\xb8\x80-\xe9\xbe\xa5\xe0\xa0\x80-\xe4\xb8\x80\xea\xb0\x80-\xed\x9f\xbf]+"},
     .digits = true,
     .bos = true},
};

static const char FAMILIES_SUPPORTED[] =
    "llama-bpe, qwen2, gpt-2, phi-2, olmo, mpt, starcoder, refact, smollm, exaone, command-r, dbrx, tekken, "
    "seed-coder and deepseek-coder";

typedef struct {
    Tokenizer *t;
    const Gguf *g;
    const Family *family;
    Error *e;
} GgufVocabReader;

static bool find_family(GgufVocabReader *r) {
    const GgufValue *v = gguf_find(r->g, "tokenizer.ggml.pre");
    json_auto_t *pre = v ? gguf_json(v) : NULL;
    const char *name = json_string_value(pre);
    for (size_t i = 0; name && i < sizeof FAMILIES / sizeof *FAMILIES; i++)
        for (size_t k = 0; k < 4 && FAMILIES[i].names[k]; k++)
            if (strcmp(name, FAMILIES[i].names[k]) == 0) r->family = &FAMILIES[i];
    if (!r->family)
        error_input(r->e, "tokenizer.ggml.pre '%.40s' in '%s' is not supported: %s are", name ? name : "",
                    r->g->place, FAMILIES_SUPPORTED);
    return r->family != NULL;
}

static json_t *pre_tokenizer(const Family *f) {
    json_t *steps = json_array();
    for (int i = 0; i < SPLITS && f->split[i]; i++)
        json_array_append_new(steps, json_pack("{ss,s{ss},ss,sb}", "type", "Split", "pattern", "Regex",
                                               f->split[i], "behavior", f->removed ? "Removed" : "Isolated",
                                               "invert", (int)f->removed));
    if (f->digits)
        json_array_append_new(steps, json_pack("{ss,sb}", "type", "Digits", "individual_digits", 1));
    json_array_append_new(steps, json_pack("{ss,sb,sb}", "type", "ByteLevel", "add_prefix_space", 0,
                                           "use_regex", (int)f->gpt2));
    return json_pack("{ss,so}", "type", "Sequence", "pretokenizers", steps);
}

// --- pieces and merges

// As sentencepiece numbers them.
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, NOT_USED = 5 };

static bool add_piece(const GgufVocabReader *r, const char *text, size_t n, size_t id, int type,
                      json_t *vocab, json_t *added) {
    json_auto_t *piece = memchr(text, 0, n) ? NULL : json_stringn(text, n);
    const char *key = json_string_value(piece);
    bool ok = piece || error_input(r->e, "token %zu in '%s' isn't UTF-8", id, r->g->place);
    if (ok && type == NORMAL)
        ok = !json_object_get(vocab, key) ||
             error_input(r->e, "the token '%.60s' has two ids in '%s'", key, r->g->place);
    if (ok && type == NORMAL) json_object_set_new(vocab, key, json_integer((json_int_t)id));
    else if (ok && type != NOT_USED)
        json_array_append_new(added, json_pack("{sI,ss,sb}", "id", (json_int_t)id, "content", key, "special",
                                               (int)(type != USER_DEFINED)));
    return ok;
}

static bool add_pieces(const GgufVocabReader *r, json_t *vocab, json_t *added) {
    GgufTexts texts = gguf_texts(gguf_find(r->g, "tokenizer.ggml.tokens"));
    const GgufValue *types = gguf_find(r->g, "tokenizer.ggml.token_type");
    const char *text;
    size_t n, id = 0;
    if (texts.left == 0 || texts.left > VOCAB_MAX)
        return error_input(r->e, "'%s' must have 1 to %d tokenizer.ggml.tokens", r->g->place, VOCAB_MAX);
    while (gguf_next(&texts, &text, &n)) {
        int type = types && id < types->count ? (int)gguf_number(types, id) : NORMAL;
        if (!add_piece(r, text, n, id, type, vocab, added)) return false;
        id++;
    }
    return true;
}

static bool add_merges(const GgufVocabReader *r, json_t *merges) {
    GgufTexts texts = gguf_texts(gguf_find(r->g, "tokenizer.ggml.merges"));
    const char *text;
    size_t n;
    while (gguf_next(&texts, &text, &n)) {
        json_t *merge = memchr(text, 0, n) ? NULL : json_stringn(text, n);
        if (!merge)
            return error_input(r->e, "merge %zu in '%s' isn't UTF-8", json_array_size(merges), r->g->place);
        json_array_append_new(merges, merge);
    }
    return true;
}

// --- ids before and after a text

// The id at a key, if another key asks for it; -1: none.
static int affix_id(const Gguf *g, const char *asks, const char *key, bool otherwise) {
    const GgufValue *ask = gguf_find(g, asks), *v = gguf_find(g, key);
    bool on = ask && ask->count == 1 ? gguf_number(ask, 0) != 0 : otherwise;
    double id = on && v && v->count == 1 ? gguf_number(v, 0) : -1;
    return id >= 0 && id < VOCAB_MAX ? (int)id : -1;
}

static bool add_affix(const GgufVocabReader *r, int id, Affix *to) {
    if (id < 0) return true;
    if (!tokenizer_piece(r->t, id))
        return error_input(r->e, "the id %d that '%s' puts around a text is no token's", id, r->g->place);
    to->ids[to->count++] = id;
    return true;
}

static bool read_affixes(const GgufVocabReader *r, bool bos) {
    int before = affix_id(r->g, "tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id", bos);
    int after = affix_id(r->g, "tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id", false);
    return add_affix(r, before, &r->t->prefix) && add_affix(r, after, &r->t->suffix);
}

// --- the whole

static bool read_bytes(GgufVocabReader *r) {
    json_t *vocab = json_object(), *merges = json_array(), *added = json_array();
    bool ok = find_family(r) && add_pieces(r, vocab, added) && add_merges(r, merges);
    json_auto_t *root =
        json_pack("{so,s{so,so}}", "added_tokens", added, "model", "vocab", vocab, "merges", merges);
    if (ok) {
        json_object_set_new(json_object_get(root, "model"), "ignore_merges",
                            json_boolean(r->family->ignore_merges));
        json_object_set_new(root, "normalizer",
                            r->family->nfc ? json_pack("{ss}", "type", "NFC") : json_null());
        json_object_set_new(root, "pre_tokenizer", pre_tokenizer(r->family));
        json_object_set_new(root, "decoder", json_pack("{ss}", "type", "ByteLevel"));
        ok = pipeline_read_root(r->t, root, r->g->place, r->e) && read_affixes(r, r->family->bos);
    }
    return ok;
}

bool pipeline_read_gguf(Tokenizer *t, const Gguf *g, Error *e) {
    GgufVocabReader r = {.t = t, .g = g, .e = e};
    const GgufValue *v = gguf_find(g, "tokenizer.ggml.model");
    json_auto_t *model = v ? gguf_json(v) : NULL;
    const char *name = json_string_value(model) ? json_string_value(model) : "";
    bool ok;
    if (strcmp(name, "gpt2") == 0) ok = read_bytes(&r);
    else if (strcmp(name, "llama") == 0) ok = pipeline_read_scores(t, g, e) && read_affixes(&r, true);
    else
        ok = error_input(e, "tokenizer.ggml.model '%.40s' in '%s' is not supported: gpt2 and llama are", name,
                         g->place);
    return ok;
}
