#include "engine/text/tokenizer.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/text/pipeline.h"
#include "engine/text/utf8.h"

#include <ctype.h>
#include <string.h>

enum { MAX_JSON = 256 << 20 };

void ids_release(IdList *list) {
    mem_free(list->ids);
    *list = (IdList){0};
}

Tokenizer *tokenizer_parse(const char *bytes, size_t n, const char *place, Error *e) {
    Tokenizer *t = mem_alloc(1, sizeof *t);
    if (!t) {
        error_system(e, "out of memory for the tokenizer '%s'", place);
        return NULL;
    }
    if (pipeline_parse(t, bytes, n, place, e)) return t;
    tokenizer_close(t);
    return NULL;
}

Tokenizer *tokenizer_open(const char *dir, Error *e) {
    char *path = file_path(dir, "tokenizer.json"), *bytes = NULL;
    size_t n;
    Tokenizer *t = NULL;
    if (!path) error_system(e, "out of memory");
    else if (file_read(path, MAX_JSON, &bytes, &n, e)) t = tokenizer_parse(bytes, n, path, e);
    mem_free(bytes);
    mem_free(path);
    return t;
}

void tokenizer_close(Tokenizer *t) {
    if (!t) return;
    for (int i = 0; i < t->added_count; i++) mem_free(t->added[i].text);
    mem_free(t->added);
    mem_free(t->is_special);
    bpe_release(&t->bpe);
    mem_free(t);
}

int tokenizer_size(const Tokenizer *t) { return t->bpe.vocab.size; }

int tokenizer_base_size(const Tokenizer *t) { return t->base_size; }

const char *tokenizer_piece(const Tokenizer *t, int id) {
    return id >= 0 && id < t->bpe.vocab.size ? t->bpe.vocab.pieces[id].text : NULL;
}

// --- encoding
// ------------------------------------------------------------------------------------------------------

// A byte that is no text becomes U+FFFD.
static void make_valid(const char *text, size_t n, Text *out) {
    for (size_t i = 0; i < n;) {
        int length = utf8_length(text + i, n - i);
        if (length) text_add(out, text + i, (size_t)length);
        else text_puts(out, UTF8_REPLACEMENT);
        i += length ? (size_t)length : 1;
    }
}

static void replace_spaces(const Tokenizer *t, const char *text, size_t n, bool first, Text *out) {
    bool starts = n >= 3 && memcmp(text, METASPACE, 3) == 0, space = n && text[0] == ' ';
    bool put = t->prepend == PREPEND_EVEN_TWICE || (t->prepend == PREPEND_ALWAYS && !starts && !space) ||
               (t->prepend == PREPEND_FIRST && first && !starts && !space);
    if (put) text_puts(out, METASPACE);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == ' ' && t->spaces_to_metaspace) text_puts(out, METASPACE);
        else text_add(out, text + i, 1);
    }
}

// Where the word that starts at s ends: before the next "▁".
static size_t word_length(const Tokenizer *t, const char *s, size_t n) {
    if (!t->split_words) return n;
    const char *next = n > 3 ? memmem(s + 1, n - 1, METASPACE, 3) : NULL;
    return next ? (size_t)(next - s) : n;
}

static bool encode_rest(const Tokenizer *t, const char *text, size_t n, bool first, IdList *out, Error *e) {
    Text words = {0};
    if (n == 0) return true;
    replace_spaces(t, text, n, first, &words);
    bool ok = !words.failed || error_system(e, "out of memory encoding %zu bytes", n);
    for (size_t i = 0, length; ok && i < words.length; i += length) {
        length = word_length(t, words.data + i, words.length - i);
        ok = bpe_encode(&t->bpe, words.data + i, length, out, e);
    }
    text_release(&words);
    return ok;
}

static bool is_word_byte(unsigned char c) { return isalnum(c) || c == '_' || c >= 0x80; }

// The added token that starts at text[i], or NULL.
static const AddedToken *added_at(const Tokenizer *t, const char *text, size_t n, size_t i) {
    for (int k = 0; k < t->added_count; k++) {
        const AddedToken *a = &t->added[k];
        size_t end = i + a->length;
        if (end > n || memcmp(text + i, a->text, a->length) != 0) continue;
        bool alone = (i == 0 || !is_word_byte((unsigned char)text[i - 1])) &&
                     (end == n || !is_word_byte((unsigned char)text[end]));
        if (!a->single_word || alone) return a;
    }
    return NULL;
}

static size_t trim_end(const char *text, size_t from, size_t to) {
    while (to > from && isspace((unsigned char)text[to - 1])) to--;
    return to;
}

static bool add_ids(IdList *out, const int *ids, int count, Error *e) {
    void *list = out->ids;
    if (!mem_grow(&list, &out->capacity, out->count + (size_t)count, sizeof *ids))
        return error_system(e, "out of memory for %zu ids", out->count);
    out->ids = list;
    if (count) memcpy(out->ids + out->count, ids, (size_t)count * sizeof *ids);
    out->count += (size_t)count;
    return true;
}

// Only a byte that some added token starts with can start one.
static void first_bytes(const Tokenizer *t, bool starts[256]) {
    memset(starts, 0, 256);
    for (int i = 0; i < t->added_count; i++) starts[(unsigned char)t->added[i].text[0]] = true;
}

static bool encode_valid(const Tokenizer *t, const char *text, size_t n, IdList *out, Error *e) {
    bool starts[256];
    size_t from = 0;
    first_bytes(t, starts);
    for (size_t i = 0; i < n;) {
        const AddedToken *a = starts[(unsigned char)text[i]] ? added_at(t, text, n, i) : NULL;
        if (!a) {
            i++;
            continue;
        }
        size_t rest = a->left ? trim_end(text, from, i) : i;
        if (!encode_rest(t, text + from, rest - from, from == 0, out, e) || !add_ids(out, &a->id, 1, e))
            return false;
        i += a->length;
        while (a->right && i < n && isspace((unsigned char)text[i])) i++;
        from = i;
    }
    return encode_rest(t, text + from, n - from, from == 0, out, e);
}

bool tokenizer_encode(const Tokenizer *t, const char *text, size_t n, bool add_special, IdList *out,
                      Error *e) {
    Text valid = {0};
    bool ok = !add_special || add_ids(out, t->prefix, t->prefix_count, e);
    make_valid(text, n, &valid);
    ok = ok && (!valid.failed || error_system(e, "out of memory encoding %zu bytes", n));
    ok = ok && encode_valid(t, text_get(&valid), valid.length, out, e);
    text_release(&valid);
    return ok && (!add_special || add_ids(out, t->suffix, t->suffix_count, e));
}

bool tokenizer_decode(const Tokenizer *t, const int *ids, size_t count, bool skip_special, Text *out,
                      Error *e) {
    TextStream s;
    bool ok = true;
    stream_begin(&s, t, skip_special);
    for (size_t i = 0; ok && i < count; i++) ok = stream_next(&s, ids[i], out, e);
    ok = ok && stream_end(&s, out, e);
    stream_release(&s);
    return ok;
}
