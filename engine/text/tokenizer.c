// The pipeline of pipeline.h, run over a text: cut out added tokens, normalize, cut into words, merge.
//
// Invariant: every id below the vocabulary's size has a text or is unused, and an added token's id leads back
// to it through added_by_id.
#include "engine/text/tokenizer.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/text/pipeline.h"
#include "engine/text/utf8.h"

#include <assert.h>
#include <string.h>

enum { FILE_MAX = 64 << 20 };

static void check_affix(UNUSED const Tokenizer *t, const Affix *a) {
    assert(a->count >= 0 && a->count <= AFFIX_MAX);
    for (int i = 0; i < a->count; i++) assert(tokenizer_piece(t, a->ids[i]));
}

static void tokenizer_check(const Tokenizer *t) {
    UNUSED int size = t->bpe.vocab.size;
    assert(t->base_size >= 0 && t->base_size <= size);
    for (int i = 0; i < t->added_count; i++) {
        UNUSED const AddedToken *a = &t->added[i];
        assert(a->id >= 0 && a->id < size && t->bpe.vocab.pieces[a->id].text && a->text);
        assert(t->added_by_id[a->id] > i && t->added[t->added_by_id[a->id] - 1].id == a->id);
    }
    check_affix(t, &t->prefix);
    check_affix(t, &t->suffix);
}

// --- opening -------------------------------------------------------------------------------------------

static Tokenizer *finish(Tokenizer *t, bool ok) {
    if (ok) {
        tokenizer_check(t);
        return t;
    }
    tokenizer_close(t);
    return NULL;
}

Tokenizer *tokenizer_parse(const char *bytes, size_t n, const char *place, Error *e) {
    Tokenizer *t = mem_new(1, sizeof *t);
    return finish(t, pipeline_read_json(t, bytes, n, place, e));
}

Tokenizer *tokenizer_parse_model(const char *bytes, size_t n, const char *place, Error *e) {
    Tokenizer *t = mem_new(1, sizeof *t);
    return finish(t, pipeline_read_model(t, bytes, n, place, e));
}

// --- the files' chat template

static void take_template(Tokenizer *t, const char *text, const char *bos, const char *eos) {
    t->has_template = true;
    t->template = template_recognise(text, strlen(text), bos, eos);
}

static const char *gguf_piece(const Tokenizer *t, const Gguf *g, const char *key) {
    const GgufValue *v = gguf_find(g, key);
    double id = v ? gguf_number(v, 0) : -1;
    return id >= 0 && id < tokenizer_size(t) ? tokenizer_piece(t, (int)id) : NULL;
}

// A token is a text, or an object with its `content`.
static const char *config_token(const json_t *config, const char *key) {
    const json_t *token = json_object_get(config, key);
    return json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
}

// "chat_template" is a text, or a list of objects with name and template, of which one is the "default".
static const char *config_template(const json_t *config) {
    const json_t *value = json_object_get(config, "chat_template"), *row;
    size_t i;
    json_array_foreach(value, i, row) {
        const char *name = json_string_value(json_object_get(row, "name"));
        if (name && strcmp(name, "default") == 0) return json_string_value(json_object_get(row, "template"));
    }
    return json_string_value(value);
}

static void take_template_of(Tokenizer *t, const char *dir) {
    LOCAL_MEMORY char *path = file_path(dir, "chat_template.jinja"),
                      *config_path = file_path(dir, "tokenizer_config.json");
    LOCAL_MEMORY char *jinja = NULL;
    size_t n;
    json_auto_t *config = file_exists(config_path) ? json_from_file(config_path, FILE_MAX, NULL) : NULL;
    if (file_exists(path)) file_read(path, FILE_MAX, &jinja, &n, NULL);
    const char *text = jinja ? jinja : config_template(config);
    if (text) take_template(t, text, config_token(config, "bos_token"), config_token(config, "eos_token"));
}

bool tokenizer_has_template(const Tokenizer *t) { return t && t->has_template; }

const Template *tokenizer_template(const Tokenizer *t, const char *name, Error *e) {
    if (strcmp(name, TEMPLATE_OF_MODEL) != 0) return template_find(name, e);
    if (t && t->template) return t->template;
    LOCAL_TEXT known = {0};
    template_names(&known);
    error_input(e, "the model's files have %s: give the name of one that fits it, of %s",
                tokenizer_has_template(t) ? "a chat template that isn't known" : "no chat template",
                text_get(&known));
    return NULL;
}

Tokenizer *tokenizer_parse_gguf(const Gguf *g, Error *e) {
    Tokenizer *t = mem_new(1, sizeof *t);
    if (!(t = finish(t, pipeline_read_gguf(t, g, e)))) return NULL;
    const GgufValue *v = gguf_find(g, "tokenizer.chat_template");
    json_auto_t *text = v ? gguf_json(v) : NULL;
    if (json_is_string(text))
        take_template(t, json_string_value(text), gguf_piece(t, g, "tokenizer.ggml.bos_token_id"),
                      gguf_piece(t, g, "tokenizer.ggml.eos_token_id"));
    return t;
}

static bool map_gguf(const char *path, FileView *view, Gguf *g, Error *e) {
    return file_map(path, view, e) && gguf_parse(view->data, view->size, path, g, e);
}

static bool gguf_has_one(const char *path) {
    LOCAL(file_unmap) FileView view = {0};
    LOCAL(gguf_release) Gguf g = {0};
    return map_gguf(path, &view, &g, NULL) && gguf_find(&g, "tokenizer.ggml.model");
}

char *tokenizer_file(const char *dir) {
    static const char *const names[] = {"tokenizer.json", "tokenizer.model"};
    if (gguf_named(dir)) return gguf_has_one(dir) ? mem_text(dir, strlen(dir)) : NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = file_path(dir, names[i]);
        if (file_exists(path)) return path;
        mem_free(path);
    }
    return NULL;
}

Tokenizer *tokenizer_open(const char *dir, Error *e) {
    LOCAL(file_unmap) FileView view = {0};
    LOCAL(gguf_release) Gguf g = {0};
    if (gguf_named(dir)) return map_gguf(dir, &view, &g, e) ? tokenizer_parse_gguf(&g, e) : NULL;
    LOCAL_MEMORY char *path = tokenizer_file(dir), *bytes = NULL;
    size_t n;
    Tokenizer *t = NULL;
    if (!path) error_input(e, "'%s' has neither tokenizer.json nor tokenizer.model", dir);
    else if (file_read(path, FILE_MAX, &bytes, &n, e))
        t = (text_ends(path, ".model") ? tokenizer_parse_model : tokenizer_parse)(bytes, n, path, e);
    if (t) take_template_of(t, dir);
    return t;
}

void tokenizer_close(Tokenizer *t) {
    if (!t) return;
    for (int i = 0; i < t->added_count; i++) mem_free(t->added[i].text);
    MEM_FREE(t->added, t->added_by_id);
    added_release(&t->raw);
    added_release(&t->normalized);
    steps_release(&t->normalizers);
    steps_release(&t->splitters);
    decoders_release(&t->decoders);
    bpe_release(&t->bpe);
    mem_free(t);
}

int tokenizer_size(const Tokenizer *t) { return t->bpe.vocab.size; }

int tokenizer_base_size(const Tokenizer *t) { return t->base_size; }

const char *tokenizer_piece(const Tokenizer *t, int id) {
    return id >= 0 && id < t->bpe.vocab.size ? t->bpe.vocab.pieces[id].text : NULL;
}

const int *tokenizer_prefix(const Tokenizer *t, int *count) {
    *count = t->prefix.count;
    return t->prefix.ids;
}

// --- encoding ------------------------------------------------------------------------------------------

typedef struct {
    const Tokenizer *t;
    IdList *out;
    BpeWork work;
    Words normal, words, other; // a rest normalized, its words, memory for the steps
} Encoder;

// A rest of the text, at its start or not.
typedef struct {
    const char *text;
    size_t length;
    bool at_start;
} Rest;

static bool encode_words(Encoder *c, Rest rest, Error *e) {
    Words *w = &c->words;
    words_clear(w);
    w->at_start = rest.at_start;
    words_add(w, rest.text, rest.length);
    if (!steps_run(&c->t->splitters, w, &c->other, e)) return false;
    for (size_t i = 0; i < w->count; i++) {
        size_t from = words_from(w, i);
        bpe_encode(&c->t->bpe, &c->work, w->text.data + from, w->ends[i] - from, c->out);
    }
    return true;
}

// Cuts the tokens of a set out of a rest, and passes the text between them to `next`.
static bool cut_out(Encoder *c, const AddedSet *set, Rest rest, bool (*next)(Encoder *, Rest, Error *),
                    Error *e) {
    AddedMatch m;
    for (size_t at = 0; at < rest.length || at == 0; at = m.to) {
        m = added_next(set, rest.text, rest.length, at);
        Rest before = {rest.text + at, m.from - at, rest.at_start && at == 0};
        if (before.length && !next(c, before, e)) return false;
        if (!m.token) break;
        ids_add(c->out, m.token->id);
    }
    return true;
}

static bool encode_rest(Encoder *c, Rest rest, Error *e) {
    Words *n = &c->normal;
    words_clear(n);
    n->at_start = rest.at_start;
    words_add(n, rest.text, rest.length);
    if (!steps_run(&c->t->normalizers, n, &c->other, e)) return false;
    return cut_out(c, &c->t->normalized, (Rest){text_get(&n->text), n->text.length, n->at_start},
                   encode_words, e);
}

// Replaces each byte that isn't UTF-8 by U+FFFD.
static void make_valid(const char *text, size_t n, Text *out) {
    for (size_t i = 0, from = 0; i < n; from = i) {
        int length = 1;
        while (i < n && (length = utf8_length(text + i, n - i))) i += (size_t)length;
        text_add(out, text + from, i - from);
        if (length == 0) text_puts(out, UTF8_REPLACEMENT);
        if (length == 0) i++;
    }
}

static void add_affix(const Affix *a, IdList *out) {
    for (int i = 0; i < a->count; i++) ids_add(out, a->ids[i]);
}

bool tokenizer_encode(const Tokenizer *t, const char *text, size_t n, bool add_special, IdList *out,
                      Error *e) {
    Encoder c = {.t = t, .out = out};
    LOCAL_TEXT valid = {0};
    make_valid(text, n, &valid);
    if (add_special) add_affix(&t->prefix, out);
    bool ok = cut_out(&c, &t->raw, (Rest){text_get(&valid), valid.length, true}, encode_rest, e);
    if (ok && add_special) add_affix(&t->suffix, out);
    bpe_work_release(&c.work);
    words_release(&c.normal);
    words_release(&c.words);
    words_release(&c.other);
    return ok;
}

bool tokenizer_decode(const Tokenizer *t, const int *ids, size_t count, bool skip_special, Text *out,
                      Error *e) {
    LOCAL(stream_release) TextStream s;
    stream_begin(&s, t, skip_special);
    for (size_t i = 0; i < count; i++)
        if (!stream_next(&s, ids[i], out, e)) return false;
    return stream_end(&s, out, e);
}

// --- the pipeline

bool pipeline_read_steps(Tokenizer *t, const json_t *root, const char *place, Error *e) {
    return steps_read(&t->normalizers, &step_normalizers, json_object_get(root, "normalizer"), place, e) &&
           steps_read(&t->splitters, &step_splitters, json_object_get(root, "pre_tokenizer"), place, e) &&
           decoders_read(&t->decoders, json_object_get(root, "decoder"), place, e);
}

void pipeline_begin_added(Tokenizer *t, size_t count) {
    t->added = mem_new(count, sizeof *t->added);
    t->added_by_id = mem_new((size_t)t->bpe.vocab.size, sizeof *t->added_by_id);
}

// Sets the text to search for: a token that is sought in normalized text is normalized too.
static bool set_text(const Tokenizer *t, AddedToken *a, const char *content, Error *e) {
    LOCAL(words_release) Words words = {.at_start = true}, other = {0};
    words_add(&words, content, strlen(content));
    bool ok = !a->normalized || steps_run(&t->normalizers, &words, &other, e);
    a->length = words.text.length;
    a->text = ok ? mem_text(text_get(&words.text), a->length) : NULL;
    return ok;
}

bool pipeline_add_token(Tokenizer *t, AddedToken token, const char *content, const char *place, Error *e) {
    AddedToken *a = &t->added[t->added_count++];
    size_t n = strlen(content);
    int piece = vocab_find(&t->bpe.vocab, content, n);
    *a = token;
    if (n == 0) return error_input(e, "an added token of '%s' is empty", place);
    if (piece >= 0 && piece != token.id)
        return error_input(e, "the token '%.60s' has two ids in '%s': %d and %d", content, place, piece,
                           token.id);
    t->added_by_id[token.id] = t->added_count;
    return vocab_name(&t->bpe.vocab, content, n, token.id, place, e) && set_text(t, a, content, e);
}

bool pipeline_end_added(Tokenizer *t, Error *e) {
    return added_init(&t->raw, t->added, t->added_count, false, e) &&
           added_init(&t->normalized, t->added, t->added_count, true, e);
}

// --- lists of ids

void ids_add(IdList *list, int id) {
    *LIST_ADD(list->ids, list->count, list->capacity) = id;
    assert(list->count <= list->capacity);
}

void ids_release(IdList *list) {
    mem_free(list->ids);
    *list = (IdList){0};
}
