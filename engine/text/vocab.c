#include "engine/text/vocab.h"

#include "engine/base/memory.h"

#include <stdint.h>
#include <string.h>

bool vocab_init(Vocab *v, int size, Error *e) {
    size_t places = 16;
    while (places < 2 * (size_t)size) places *= 2;
    *v = (Vocab){.size = size, .table_size = places};
    v->pieces = mem_alloc((size_t)size, sizeof *v->pieces);
    v->table = mem_alloc(places, sizeof *v->table);
    if (!v->pieces || !v->table) {
        vocab_release(v);
        return error_system(e, "out of memory for a vocabulary of %d pieces", size);
    }
    for (size_t i = 0; i < places; i++) v->table[i] = -1;
    return true;
}

void vocab_release(Vocab *v) {
    for (int i = 0; v->pieces && i < v->size; i++) mem_free((void *)(size_t)v->pieces[i].text);
    mem_free(v->pieces);
    mem_free(v->table);
    *v = (Vocab){0};
}

// FNV-1a.
static uint64_t hash_of(const char *s, size_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return h ^ h >> 32;
}

static size_t place_of(const Vocab *v, const char *text, size_t n) {
    size_t i = hash_of(text, n) & (v->table_size - 1);
    for (; v->table[i] >= 0; i = (i + 1) & (v->table_size - 1)) {
        const Piece *p = &v->pieces[v->table[i]];
        if (p->length == n && memcmp(p->text, text, n) == 0) break;
    }
    return i;
}

int vocab_find(const Vocab *v, const char *text, size_t n) { return v->table[place_of(v, text, n)]; }

// How much of a text, which may have no NUL after it, a message shows.
static int shown(size_t n) { return n < 60 ? (int)n : 60; }

bool vocab_name(Vocab *v, const char *text, size_t n, int id, const char *place, Error *e) {
    const Piece *p = &v->pieces[id];
    if (p->text && p->length == n && memcmp(p->text, text, n) == 0) return true;
    if (p->text)
        return error_input(e, "the id %d belongs to two pieces in '%s': '%.60s' and '%.*s'", id, place,
                           p->text, shown(n), text);
    char *copy = mem_text(text, n);
    if (!copy) return error_system(e, "out of memory for the vocabulary of '%s'", place);
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
