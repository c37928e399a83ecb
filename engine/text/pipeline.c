#include "engine/text/pipeline.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Tokenizer *t;
    const json_t *root;
    const char *place;
    Error *e;
} Reader;

static bool type_is(const json_t *part, const char *type) {
    const char *s = json_string_value(json_object_get(part, "type"));
    return s && strcmp(s, type) == 0;
}

static bool flag(const json_t *part, const char *key, bool fallback) {
    const json_t *v = json_object_get(part, key);
    return json_is_boolean(v) ? json_is_true(v) : fallback;
}

static bool text_is(const json_t *part, const char *key, const char *want) {
    const char *s = json_string_value(json_object_get(part, key));
    return s && strcmp(s, want) == 0;
}

static bool unsupported(const Reader *r, const char *what, const json_t *part) {
    const char *type = json_string_value(json_object_get(part, "type"));
    return error_input(r->e, "%s '%s' in '%s' is not supported: byte-fallback BPE (Llama, Mistral, Phi-3) is",
                       what, type ? type : "?", r->place);
}

// Calls read for the part, or for each member of a Sequence.
static bool each(const Reader *r, const json_t *part, const char *list,
                 bool (*read)(const Reader *, const json_t *)) {
    if (!part || json_is_null(part)) return true;
    if (!type_is(part, "Sequence")) return read(r, part);
    const json_t *members = json_object_get(part, list);
    for (size_t i = 0; i < json_array_size(members); i++)
        if (!read(r, json_array_get(members, i))) return false;
    return true;
}

// --- before BPE
// ----------------------------------------------------------------------------------------------------

static bool read_normalizer(const Reader *r, const json_t *part) {
    if (type_is(part, "Prepend") && text_is(part, "prepend", METASPACE)) {
        r->t->prepend = PREPEND_EVEN_TWICE;
        return true;
    }
    const json_t *pattern = json_object_get(part, "pattern");
    if (type_is(part, "Replace") && text_is(pattern, "String", " ") && text_is(part, "content", METASPACE)) {
        r->t->spaces_to_metaspace = true;
        return true;
    }
    return unsupported(r, "normalizer", part);
}

static bool read_pre_tokenizer(const Reader *r, const json_t *part) {
    Tokenizer *t = r->t;
    if (!type_is(part, "Metaspace")) return unsupported(r, "pre_tokenizer", part);
    const char *scheme = json_string_value(json_object_get(part, "prepend_scheme"));
    t->prepend = scheme && strcmp(scheme, "first") == 0   ? PREPEND_FIRST
                 : scheme && strcmp(scheme, "never") == 0 ? PREPEND_NEVER
                 : flag(part, "add_prefix_space", true)   ? PREPEND_ALWAYS
                                                          : PREPEND_NEVER;
    t->spaces_to_metaspace = true;
    t->split_words = flag(part, "split", true);
    return true;
}

// --- vocabulary, merges
// --------------------------------------------------------------------------------------------

// The largest id of vocabulary and added tokens, plus 1.
static bool count_ids(const Reader *r, const json_t *vocab, const json_t *added, int *size) {
    const char *key;
    json_t *v;
    int64_t highest = -1;
    size_t count = json_object_size(vocab) + json_array_size(added);
    json_object_foreach((json_t *)(size_t)vocab, key, v) {
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

static bool read_vocab(const Reader *r, const json_t *vocab) {
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(size_t)vocab, key, v) {
        if (!vocab_add(&r->t->bpe.vocab, key, strlen(key), (int)json_integer_value(v), r->place, r->e))
            return false;
    }
    return true;
}

// "left right", or [left, right].
static bool read_merge(const Reader *r, const json_t *merge, size_t number) {
    const char *left = json_string_value(merge), *right = left ? strchr(left, ' ') : NULL;
    size_t left_n = right ? (size_t)(right - left) : 0;
    if (right) right++;
    if (json_array_size(merge) == 2) {
        left = json_string_value(json_array_get(merge, 0));
        right = json_string_value(json_array_get(merge, 1));
        left_n = left ? strlen(left) : 0;
    }
    if (!left || !right) return error_input(r->e, "merge %zu of '%s' must be two pieces", number, r->place);
    return bpe_add_merge(&r->t->bpe, left, left_n, right, strlen(right), r->place, r->e);
}

static bool read_model(const Reader *r, const json_t *model, const json_t *added) {
    Bpe *b = &r->t->bpe;
    const json_t *vocab = json_object_get(model, "vocab"), *merges = json_object_get(model, "merges");
    if (json_object_get(model, "type") && !type_is(model, "BPE")) return unsupported(r, "model", model);
    if (!json_is_object(vocab) || !json_is_array(merges))
        return error_input(r->e, "'%s' must have a model with 'vocab' and 'merges'", r->place);
    int size = 0;
    if (!count_ids(r, vocab, added, &size) || !bpe_init(b, size, json_array_size(merges), r->e)) return false;
    b->byte_fallback = flag(model, "byte_fallback", false);
    b->fuse_unknown = flag(model, "fuse_unk", false);
    b->ignore_merges = flag(model, "ignore_merges", false);
    if (!read_vocab(r, vocab)) return false;
    for (size_t i = 0; i < json_array_size(merges); i++)
        if (!read_merge(r, json_array_get(merges, i), i)) return false;
    const char *unknown = json_string_value(json_object_get(model, "unk_token"));
    if (unknown) b->unknown = vocab_find(&b->vocab, unknown, strlen(unknown));
    bpe_find_bytes(b);
    return true;
}

// --- added tokens
// --------------------------------------------------------------------------------------------------

static int longest_first(const void *a, const void *b) {
    const AddedToken *x = a, *y = b;
    if (x->length != y->length) return x->length > y->length ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool read_added_token(const Reader *r, const json_t *v, AddedToken *out) {
    const char *content = field_text(v, "content", r->place, r->e);
    if (!content) return false;
    if (!content[0]) return error_input(r->e, "an added token of '%s' is empty", r->place);
    *out = (AddedToken){.text = mem_text(content, strlen(content)),
                        .length = strlen(content),
                        .id = (int)json_integer_value(json_object_get(v, "id")),
                        .special = flag(v, "special", false),
                        .left = flag(v, "lstrip", false),
                        .right = flag(v, "rstrip", false),
                        .single_word = flag(v, "single_word", false),
                        .normalized = flag(v, "normalized", false)};
    return out->text || error_system(r->e, "out of memory for '%s'", r->place);
}

static bool read_added(const Reader *r, const json_t *added) {
    Tokenizer *t = r->t;
    size_t n = json_array_size(added);
    t->added = mem_alloc(n, sizeof *t->added);
    t->is_special = mem_alloc((size_t)t->bpe.vocab.size, sizeof *t->is_special);
    if (!t->added || !t->is_special) return error_system(r->e, "out of memory for '%s'", r->place);
    for (size_t i = 0; i < n; i++) {
        AddedToken *a = &t->added[t->added_count++];
        if (!read_added_token(r, json_array_get(added, i), a)) return false;
        if (!vocab_add(&t->bpe.vocab, a->text, a->length, a->id, r->place, r->e)) return false;
        t->is_special[a->id] = a->special;
    }
    qsort(t->added, n, sizeof *t->added, longest_first);
    return true;
}

// --- template, decoder
// ---------------------------------------------------------------------------------------------

static bool add_template_ids(const Reader *r, const json_t *special, int *ids, int *count) {
    const json_t *list = json_object_get(special, "ids");
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t id = json_integer_value(json_array_get(list, i));
        if (id < 0 || id >= r->t->bpe.vocab.size || *count == TEMPLATE_MAX)
            return error_input(r->e, "the post_processor of '%s' adds an unknown id, or more than %d",
                               r->place, TEMPLATE_MAX);
        ids[(*count)++] = (int)id;
    }
    return true;
}

static bool read_post_processor(const Reader *r, const json_t *part) {
    if (!type_is(part, "TemplateProcessing")) return unsupported(r, "post_processor", part);
    const json_t *single = json_object_get(part, "single"), *tokens = json_object_get(part, "special_tokens");
    bool behind = false;
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *piece = json_array_get(single, i), *special = json_object_get(piece, "SpecialToken");
        const char *id = json_string_value(json_object_get(special, "id"));
        if (json_object_get(piece, "Sequence")) behind = true;
        else if (id && !behind) {
            if (!add_template_ids(r, json_object_get(tokens, id), r->t->prefix, &r->t->prefix_count))
                return false;
        } else if (id && !add_template_ids(r, json_object_get(tokens, id), r->t->suffix, &r->t->suffix_count))
            return false;
    }
    return true;
}

static bool read_decoder(const Reader *r, const json_t *part) {
    Tokenizer *t = r->t;
    const json_t *pattern = json_object_get(part, "pattern");
    if (type_is(part, "Replace") && text_is(pattern, "String", METASPACE) && text_is(part, "content", " "))
        t->metaspace_to_spaces = true;
    else if (type_is(part, "ByteFallback")) t->join_bytes = true;
    else if (type_is(part, "Strip") && text_is(part, "content", " "))
        t->strip_left = (int)json_integer_value(json_object_get(part, "start"));
    else if (type_is(part, "Metaspace")) {
        t->metaspace_to_spaces = true;
        t->strip_left = !text_is(part, "prepend_scheme", "never") && flag(part, "add_prefix_space", true);
    } else if (!type_is(part, "Fuse")) return unsupported(r, "decoder", part);
    return true;
}

static bool read_root(const Reader *r) {
    const json_t *root = r->root, *added = json_object_get(root, "added_tokens");
    if (!json_is_object(root)) return error_input(r->e, "'%s' must hold a JSON object", r->place);
    return each(r, json_object_get(root, "normalizer"), "normalizers", read_normalizer) &&
           each(r, json_object_get(root, "pre_tokenizer"), "pretokenizers", read_pre_tokenizer) &&
           read_model(r, json_object_get(root, "model"), added) && read_added(r, added) &&
           each(r, json_object_get(root, "post_processor"), "processors", read_post_processor) &&
           each(r, json_object_get(root, "decoder"), "decoders", read_decoder);
}

bool pipeline_parse(Tokenizer *t, const char *bytes, size_t n, const char *place, Error *e) {
    json_t *root = json_from_bytes(bytes, n, place, e);
    if (!root) return false;
    Reader r = {t, root, place, e};
    bool ok = read_root(&r);
    json_decref(root);
    return ok;
}
