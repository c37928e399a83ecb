// Reads a tokenizer.json. Unsupported settings are refused by name, so that no text is ever tokenized
// wrongly.
#include "engine/text/pipeline.h"

#include "engine/base/json.h"

#include <limits.h>
#include <string.h>

typedef struct {
    Tokenizer *t;
    const char *place;
    Error *e;
} TokenizerReader;

// --- vocabulary, merges --------------------------------------------------------------------------------

// The largest id of vocabulary and added tokens, plus 1.
static bool count_ids(const TokenizerReader *r, json_t *vocab, const json_t *added, int *size) {
    const char *key;
    json_t *v;
    int64_t highest = -1;
    size_t count = json_object_size(vocab) + json_array_size(added);
    json_object_foreach(vocab, key, v) {
        int64_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id >= VOCAB_MAX)
            return error_input(r->e, "the piece '%.60s' in '%s' has no id from 0 to %d", key, r->place,
                               VOCAB_MAX - 1);
        if (id > highest) highest = id;
    }
    r->t->base_size = (int)highest + 1;
    for (size_t i = 0; i < json_array_size(added); i++) {
        int64_t id = 0;
        if (!field_int(json_array_get(added, i), "id", 0, VOCAB_MAX - 1, &id, r->place, r->e)) return false;
        if (id > highest) highest = id;
    }
    if (highest < 0) return error_input(r->e, "'%s' has an empty vocabulary", r->place);
    if ((size_t)highest > 4 * count + 1024)
        return error_input(r->e, "'%s' has %zu pieces but ids up to %lld: ids are missing", r->place, count,
                           (long long)highest);
    *size = (int)highest + 1;
    return true;
}

static bool read_vocab(const TokenizerReader *r, json_t *vocab) {
    const char *key;
    json_t *v;
    json_object_foreach(vocab, key, v) {
        if (!vocab_add(&r->t->bpe.vocab, key, strlen(key), (int)json_integer_value(v), r->place, r->e))
            return false;
    }
    return true;
}

// "left right", or [left, right].
static bool read_merge(const TokenizerReader *r, const json_t *merge, size_t number) {
    const char *left = json_string_value(merge), *right = left ? strchr(left, ' ') : NULL;
    size_t left_n = right ? (size_t)(right - left) : 0;
    if (right) right++;
    if (json_array_size(merge) == 2) {
        left = json_string_value(json_array_get(merge, 0));
        right = json_string_value(json_array_get(merge, 1));
        left_n = left ? strlen(left) : 0;
    }
    if (!left || !right || !left_n || !*right)
        return error_input(r->e, "merge %zu of '%s' must be two pieces", number, r->place);
    return bpe_add_merge(&r->t->bpe, left, left_n, right, strlen(right), r->place, r->e);
}

static bool read_unknown(const TokenizerReader *r, const json_t *model) {
    if (!field_present(model, "unk_token")) return true;
    const char *unknown = field_text(model, "unk_token", r->place, r->e);
    if (!unknown) return false;
    r->t->bpe.unknown = vocab_find(&r->t->bpe.vocab, unknown, strlen(unknown));
    return r->t->bpe.unknown >= 0 ||
           error_input(r->e, "the unk_token '%.60s' of '%s' is not in the vocabulary", unknown, r->place);
}

// Settings of other kinds of BPE must be off.
static bool check_model(const TokenizerReader *r, const json_t *model) {
    static const char *const others[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const char *type = json_string_value(json_object_get(model, "type"));
    if (type && strcmp(type, "BPE") != 0)
        return error_input(r->e, "the model '%.40s' of '%s' is not supported; this one is: BPE", type,
                           r->place);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *value = json_string_value(json_object_get(model, others[i]));
        if (value && *value)
            return error_input(r->e, "'%s' of the model in '%s' is '%.40s', supported is none", others[i],
                               r->place, value);
    }
    double dropout = 0;
    return field_real_optional(model, "dropout", 0, 0, &dropout, r->place, r->e);
}

static bool read_model(const TokenizerReader *r, const json_t *model, const json_t *added) {
    Bpe *b = &r->t->bpe;
    json_t *vocab = json_object_get(model, "vocab"), *merges = json_object_get(model, "merges");
    int size = 0;
    if (!check_model(r, model)) return false;
    if (!json_is_object(vocab) || !json_is_array(merges))
        return error_input(r->e, "'%s' must have a model with 'vocab' and 'merges'", r->place);
    if (!count_ids(r, vocab, added, &size) || !bpe_init(b, size, json_array_size(merges), r->e) ||
        !read_vocab(r, vocab) || !read_unknown(r, model) ||
        !field_bool_optional(model, "byte_fallback", &b->byte_fallback, r->place, r->e) ||
        !field_bool_optional(model, "fuse_unk", &b->fuse_unknown, r->place, r->e) ||
        !field_bool_optional(model, "ignore_merges", &b->ignore_merges, r->place, r->e))
        return false;
    for (size_t i = 0; i < json_array_size(merges); i++)
        if (!read_merge(r, json_array_get(merges, i), i)) return false;
    bpe_finish(b);
    return true;
}

// --- added tokens --------------------------------------------------------------------------------------

static bool read_added_token(const TokenizerReader *r, const json_t *v) {
    const char *content = field_text(v, "content", r->place, r->e);
    AddedToken a = {.id = (int)json_integer_value(json_object_get(v, "id"))};
    return content && field_bool_optional(v, "special", &a.special, r->place, r->e) &&
           field_bool_optional(v, "lstrip", &a.left, r->place, r->e) &&
           field_bool_optional(v, "rstrip", &a.right, r->place, r->e) &&
           field_bool_optional(v, "single_word", &a.single_word, r->place, r->e) &&
           field_bool_optional(v, "normalized", &a.normalized, r->place, r->e) &&
           pipeline_add_token(r->t, a, content, r->place, r->e);
}

// --- post-processor ------------------------------------------------------------------------------------

static bool add_ids(const TokenizerReader *r, const json_t *special, Affix *out) {
    const json_t *list = json_object_get(special, "ids");
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t id = json_integer_value(json_array_get(list, i));
        const char *piece = id >= 0 && id <= INT_MAX ? tokenizer_piece(r->t, (int)id) : NULL;
        if (!piece || out->count == AFFIX_MAX)
            return error_input(r->e, "the post_processor of '%s' adds an unknown id, or more than %d",
                               r->place, AFFIX_MAX);
        out->ids[out->count++] = (int)id;
    }
    return list || error_input(r->e, "the post_processor of '%s' adds a token it does not define", r->place);
}

static bool read_template(const TokenizerReader *r, const json_t *part) {
    const json_t *single = json_object_get(part, "single"), *tokens = json_object_get(part, "special_tokens");
    Affix *to = &r->t->prefix;
    if (r->t->prefix.count || r->t->suffix.count)
        return error_input(r->e, "'%s' has two TemplateProcessing, one is supported", r->place);
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *piece = json_array_get(single, i), *special = json_object_get(piece, "SpecialToken");
        const char *id = json_string_value(json_object_get(special, "id"));
        if (id && !add_ids(r, json_object_get(tokens, id), to)) return false;
        if (json_object_get(piece, "Sequence")) to = &r->t->suffix;
    }
    return to == &r->t->suffix ||
           error_input(r->e, "the TemplateProcessing of '%s' leaves the text out", r->place);
}

static bool read_post_processor(const TokenizerReader *r, const json_t *part) {
    if (!part || json_is_null(part)) return true;
    const char *type = field_text(part, "type", r->place, r->e);
    if (!type) return false;
    if (strcmp(type, "ByteLevel") == 0) return true; // it trims offsets, and we have none
    if (strcmp(type, "TemplateProcessing") == 0) return read_template(r, part);
    if (strcmp(type, "Sequence") != 0)
        return error_input(r->e,
                           "the post_processor '%.40s' of '%s' is not supported; these are: Sequence, "
                           "TemplateProcessing, ByteLevel",
                           type, r->place);
    const json_t *members = json_object_get(part, "processors");
    for (size_t i = 0; i < json_array_size(members); i++)
        if (!read_post_processor(r, json_array_get(members, i))) return false;
    return true;
}

bool pipeline_read_root(Tokenizer *t, const json_t *root, const char *place, Error *e) {
    TokenizerReader r = {t, place, e};
    const json_t *added = json_object_get(root, "added_tokens");
    if (!json_is_object(root)) return error_input(e, "'%s' must hold a JSON object", place);
    if (!pipeline_read_steps(t, root, place, e) || !read_model(&r, json_object_get(root, "model"), added))
        return false;
    size_t n = json_array_size(added);
    pipeline_begin_added(t, n);
    for (size_t i = 0; i < n; i++)
        if (!read_added_token(&r, json_array_get(added, i))) return false;
    return pipeline_end_added(t, e) && read_post_processor(&r, json_object_get(root, "post_processor"));
}

bool pipeline_read_json(Tokenizer *t, const char *bytes, size_t n, const char *place, Error *e) {
    json_auto_t *root = json_from_bytes(bytes, n, place, e);
    return root && pipeline_read_root(t, root, place, e);
}
