// A hash table of ids with open addressing, at most half full. Invariant: every id in the table has a text,
// and looking that text up gives the id.
#include "engine/text/vocab.h"

#include "engine/base/memory.h"
#include "engine/text/utf8.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

bool vocab_init(Vocab *v, int size, Error *e) {
    size_t places = 16;
    while (places < 2 * (size_t)size) places *= 2;
    *v = (Vocab){.size = size, .table_size = places};
    v->pieces = mem_try((size_t)size, sizeof *v->pieces);
    v->table = mem_try(places, sizeof *v->table);
    if (!v->pieces || !v->table) {
        vocab_release(v);
        return error_system(e, "no memory for a vocabulary of %d pieces", size);
    }
    for (size_t i = 0; i < places; i++) v->table[i] = -1;
    return true;
}

void vocab_release(Vocab *v) {
    for (int i = 0; v->pieces && i < v->size; i++) mem_free((void *)(size_t)v->pieces[i].text);
    MEM_FREE(v->pieces, v->table);
    *v = (Vocab){0};
}

uint64_t vocab_hash(const char *text, size_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return h ^ h >> 32;
}

static size_t place_of(const Vocab *v, const char *text, size_t n) {
    size_t i = vocab_hash(text, n) & (v->table_size - 1);
    for (; v->table[i] >= 0; i = (i + 1) & (v->table_size - 1)) {
        const Piece *p = &v->pieces[v->table[i]];
        if (p->length == n && memcmp(p->text, text, n) == 0) break;
    }
    return i;
}

int vocab_find(const Vocab *v, const char *text, size_t n) { return v->table[place_of(v, text, n)]; }

void vocab_check(const Vocab *v) {
    UNUSED size_t used = 0;
    for (size_t i = 0; i < v->table_size; i++) {
        if (v->table[i] < 0) continue;
        UNUSED const Piece *p = &v->pieces[v->table[i]];
        assert(v->table[i] < v->size && p->text && place_of(v, p->text, p->length) == i);
        used++;
    }
    assert(2 * used <= v->table_size && (v->table_size & (v->table_size - 1)) == 0);
}

// How many bytes of a text, which may have no NUL after it, a message shows.
static int shown(size_t n) { return n < 60 ? (int)n : 60; }

bool vocab_name(Vocab *v, const char *text, size_t n, int id, const char *place, Error *e) {
    const Piece *p = &v->pieces[id];
    if (p->text && p->length == n && memcmp(p->text, text, n) == 0) return true;
    if (p->text)
        return error_input(e, "the id %d belongs to two pieces in '%s': '%.60s' and '%.*s'", id, place,
                           p->text, shown(n), text);
    char *copy = mem_text(text, n);
    v->pieces[id] = (Piece){copy, n};
    return true;
}

bool vocab_add(Vocab *v, const char *text, size_t n, int id, const char *place, Error *e) {
    size_t at = place_of(v, text, n);
    if (v->table[at] == id) return true;
    if (v->table[at] >= 0)
        return error_input(e, "the piece '%.*s' has two ids in '%s': %d and %d", shown(n), text, place,
                           v->table[at], id);
    if (!vocab_name(v, text, n, id, place, e)) return false;
    v->table[at] = id;
    return true;
}

// --- added tokens

static int longer_first(const void *a, const void *b) {
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x < y) - (x > y);
}

bool added_init(AddedSet *s, const AddedToken *tokens, int count, bool normalized, Error *e) {
    size_t room = (size_t)count + 1;
    *s = (AddedSet){.tokens = mem_new(room, sizeof *s->tokens), .lengths = mem_new(room, sizeof *s->lengths)};
    if (!vocab_init(&s->index, count + 1, e)) return false;
    for (int i = 0; i < count; i++) {
        const AddedToken *t = &tokens[i];
        if (t->normalized != normalized || !t->length || vocab_find(&s->index, t->text, t->length) >= 0)
            continue;
        if (!vocab_add(&s->index, t->text, t->length, s->count, "the added tokens", e)) return false;
        s->tokens[s->count++] = t;
        s->starts[(unsigned char)t->text[0]] = true;
    }
    for (int i = 0; i < s->count; i++) s->lengths[i] = s->tokens[i]->length;
    qsort(s->lengths, (size_t)s->count, sizeof *s->lengths, longer_first);
    for (int i = 0; i < s->count; i++) // each length once
        if (i == 0 || s->lengths[i] != s->lengths[i - 1]) s->lengths[s->length_count++] = s->lengths[i];
    vocab_check(&s->index);
    return true;
}

void added_release(AddedSet *s) {
    vocab_release(&s->index);
    MEM_FREE(s->tokens, s->lengths);
    *s = (AddedSet){.count = 0};
}

// Letters, marks, decimal digits, letter numbers, connectors and joiners: \w of Rust's regular expressions.
static bool is_word(uint32_t code) {
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC ||
           code == 0x200C || code == 0x200D || (code >= 0x24B6 && code <= 0x24E9);
}

static bool stands_alone(const char *text, size_t n, size_t from, size_t to) {
    if (from > 0) {
        size_t last = utf8_last(text, from);
        if (is_word(utf8_code(text + last, (int)(from - last)))) return false;
    }
    int length = utf8_length(text + to, n - to);
    return !length || !is_word(utf8_code(text + to, length));
}

static const AddedToken *longest_at(const AddedSet *s, const char *text, size_t n) {
    for (int i = 0; i < s->length_count; i++) {
        int k = s->lengths[i] <= n ? vocab_find(&s->index, text, s->lengths[i]) : -1;
        if (k >= 0) return s->tokens[k];
    }
    return NULL;
}

AddedMatch added_next(const AddedSet *s, const char *text, size_t n, size_t at) {
    for (size_t i = at; i < n; i++) {
        const AddedToken *t = s->starts[(unsigned char)text[i]] ? longest_at(s, text + i, n - i) : NULL;
        if (!t) continue;
        size_t end = i + t->length;
        if (t->single_word && !stands_alone(text, n, i, end)) {
            i = end - 1;
            continue;
        }
        AddedMatch m = {t, i, end};
        if (t->left) m.from -= utf8_space_at_end(text + at, i - at);
        if (t->right) m.to += utf8_space_at_start(text + end, n - end);
        return m;
    }
    return (AddedMatch){NULL, n, n};
}
