// Learns a tokenizer of byte-fallback BPE. Each distinct word is kept once, with its count. A merge is found
// by looking at the counts of all pairs and made by a pass over all words: simple, and for a few thousand
// pieces a matter of seconds.
//
// Invariant: the count of pair (a, b) is the number of places where b follows a, each times its word's count.
#include "engine/train/trainer.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/model/make/synth.h"
#include "engine/text/utf8.h"
#include "engine/text/vocab.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METASPACE "\xe2\x96\x81" // ▁

enum { LONGEST_PIECE = 16, BREAK = -1, LONGEST_WORD = 1 << 12 };

// Rarer characters than those that cover this share of the text are left to byte fallback.
static const double COVERED = 0.9998;

typedef struct Word {
    size_t at, length; // bytes in Learner.text
    int64_t count;
} Word;

struct Learner {
    Text text; // of all distinct words
    Word *words;
    size_t word_count, word_capacity;
    uint32_t *places; // (place_count), a power of two: word + 1 by hash of its text, 0 where free
    size_t place_count;
};

Learner *learner_open(void) { return mem_new(1, sizeof(Learner)); }

void learner_close(Learner *l) {
    if (!l) return;
    text_release(&l->text);
    MEM_FREE(l->words, l->places, l);
}

// --- counting words --------------------------------------------------------------------------------------

// The place of a word, or where it belongs.
static uint32_t *place_of(const Learner *l, const char *s, size_t n) {
    size_t i = vocab_hash(s, n) & (l->place_count - 1);
    for (; l->places[i]; i = (i + 1) & (l->place_count - 1)) {
        const Word *w = &l->words[l->places[i] - 1];
        if (w->length == n && memcmp(l->text.data + w->at, s, n) == 0) break;
    }
    return &l->places[i];
}

static void make_room(Learner *l) {
    mem_grow(&l->words, &l->word_capacity, l->word_count + 1, sizeof *l->words);
    if (2 * l->word_count < l->place_count) return;
    mem_free(l->places);
    l->place_count = l->place_count ? 2 * l->place_count : 1024;
    l->places = mem_new(l->place_count, sizeof *l->places);
    for (size_t i = 0; i < l->word_count; i++)
        *place_of(l, l->text.data + l->words[i].at, l->words[i].length) = (uint32_t)i + 1;
}

static void count_word(Learner *l, const char *s, size_t n) {
    if (n == 0) return;
    make_room(l);
    uint32_t *place = place_of(l, s, n);
    if (*place == 0) {
        l->words[l->word_count] = (Word){l->text.length, n, 0};
        text_add(&l->text, s, n);
        *place = (uint32_t)++l->word_count;
    }
    l->words[*place - 1].count++;
    assert(2 * l->word_count <= l->place_count + 1 && *place <= l->word_count);
}

typedef enum { SPACE, LETTER, SIGN, LINE, DIGIT } Kind;

static Kind kind_of(const char *s, int length) {
    if (*s == ' ' || (length == 3 && memcmp(s, METASPACE, 3) == 0)) return SPACE;
    if (length > 1 || isalpha((unsigned char)*s)) return LETTER;
    return *s == '\n' ? LINE : isdigit((unsigned char)*s) ? DIGIT : SIGN;
}

// Whether a word continues from a character of one kind to the next one.
static bool continues(Kind before, Kind next) {
    return before == SPACE ? next != DIGIT : before == next && before != DIGIT;
}

// Sees the text as the new tokenizer's normalizer writes it: with "▁" at its start, and for each space.
void learner_add(Learner *l, const char *text, size_t n) {
    char word[LONGEST_WORD] = METASPACE;
    size_t length = 3;
    Kind before = SPACE;
    for (size_t i = 0; i < n;) {
        int bytes = utf8_length(text + i, n - i);
        Kind kind = bytes ? kind_of(text + i, bytes) : DIGIT;
        if (!continues(before, kind) || length + 4 > sizeof word) {
            count_word(l, word, length);
            length = 0;
        }
        const char *from = kind == SPACE ? METASPACE : text + i;
        size_t more = kind == SPACE ? 3 : (size_t)bytes;
        memcpy(word + length, from, more);
        length += more;
        before = kind;
        i += bytes ? (size_t)bytes : 1;
    }
    count_word(l, word, length);
}

// --- characters ------------------------------------------------------------------------------------------

typedef struct Character {
    char text[5];
    int64_t count;
} Character;

typedef struct Pair {
    uint64_t key; // left << 32 | right; 0: a free place, because <unk> is never in a pair
    int64_t count;
} Pair;

// Finds the pieces.
typedef struct Finder {
    const Learner *l;
    Vocab vocab;
    int pieces; // so far
    int target;
    int *symbols;    // of all words; BREAK after each
    int64_t *counts; // (symbols): of the word that the symbol is in
    size_t symbol_count;
    Pair *pairs; // (pair_places), a power of two
    size_t pair_places, pair_count;
    json_t *merges;
} Finder;

// Adds a piece that isn't there yet.
static void add_piece(Finder *s, const char *text, size_t n) {
    UNUSED bool added = vocab_add(&s->vocab, text, n, s->pieces++, "a new tokenizer", NULL);
    assert(added && s->pieces <= s->target);
}

static void add_fixed(Finder *s) {
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    char piece[16];
    for (int i = 0; i < 3; i++) add_piece(s, special[i], strlen(special[i]));
    for (int i = 0; i < 256; i++) {
        snprintf(piece, sizeof piece, "<0x%02X>", (unsigned)i);
        add_piece(s, piece, strlen(piece));
    }
}

static int commonest_first(const void *a, const void *b) {
    const Character *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return strcmp(x->text, y->text);
}

enum { CHARACTERS_MOST = 1 << 16 };

// The distinct characters, with a vocabulary to find them by.
typedef struct Characters {
    Vocab index;
    Character *list; // (count)
    int count;
} Characters;

static void count_character(Characters *c, const char *text, size_t n, int64_t by) {
    int id = vocab_find(&c->index, text, n);
    if (id < 0) {
        if (c->count == CHARACTERS_MOST) return;
        id = c->count++;
        memcpy(c->list[id].text, text, n);
        vocab_add(&c->index, text, n, id, "characters", NULL);
    }
    c->list[id].count += by;
}

// Counts ASCII's printable characters, even if the text lacks them, and all characters of the text.
static void count_characters(Characters *c, const Learner *l) {
    for (char ascii = 33; ascii < 127; ascii++) count_character(c, &ascii, 1, 0);
    for (size_t w = 0; w < l->word_count; w++) {
        const char *text = l->text.data + l->words[w].at;
        for (size_t i = 0, n; i < l->words[w].length; i += n) {
            n = (size_t)utf8_length(text + i, l->words[w].length - i);
            count_character(c, text + i, n, l->words[w].count);
        }
    }
}

static bool add_characters(Finder *s, Error *e) {
    int64_t all = 0, covered = 0;
    LOCAL_MEMORY Character *list = mem_new(CHARACTERS_MOST, sizeof *list);
    Characters c = {.list = list};
    bool ok = vocab_init(&c.index, CHARACTERS_MOST, e);
    if (ok) count_characters(&c, s->l);
    for (int i = 0; i < c.count; i++) all += list[i].count;
    qsort(list, (size_t)c.count, sizeof *list, commonest_first);
    for (int i = 0; i < c.count; i++) {
        bool ascii = list[i].text[1] == 0 && (unsigned char)list[i].text[0] > 32;
        bool common =
            (double)covered < COVERED * (double)all && list[i].count > 0 && s->pieces < s->target - 96;
        covered += list[i].count;
        if (ascii || common || strcmp(list[i].text, METASPACE) == 0)
            add_piece(s, list[i].text, strlen(list[i].text));
    }
    vocab_release(&c.index);
    return ok;
}

// --- merges ----------------------------------------------------------------------------------------------

static uint64_t key_of(int left, int right) { return (uint64_t)(unsigned)left << 32 | (unsigned)right; }

static Pair *pair_at(Pair *pairs, size_t places, uint64_t key) {
    size_t i = (size_t)(key * 0x9E3779B97F4A7C15u >> 20) & (places - 1);
    while (pairs[i].key && pairs[i].key != key) i = (i + 1) & (places - 1);
    return &pairs[i];
}

static void grow_pairs(Finder *s) {
    size_t places = s->pair_places ? 2 * s->pair_places : 1 << 14;
    Pair *pairs = mem_new(places, sizeof *pairs);
    for (size_t i = 0; i < s->pair_places; i++)
        if (s->pairs[i].key) *pair_at(pairs, places, s->pairs[i].key) = s->pairs[i];
    mem_free(s->pairs);
    s->pairs = pairs;
    s->pair_places = places;
}

static void count_pair(Finder *s, int left, int right, int64_t by) {
    if (left == BREAK || right == BREAK) return;
    if (2 * s->pair_count >= s->pair_places) grow_pairs(s);
    Pair *p = pair_at(s->pairs, s->pair_places, key_of(left, right));
    if (!p->key) s->pair_count++;
    p->key = key_of(left, right);
    p->count += by;
    assert(p->count >= 0);
}

// Adds `by` times the count of every pair of neighbours.
static void count_pairs(Finder *s, int64_t by) {
    for (size_t i = 0; i + 1 < s->symbol_count; i++)
        count_pair(s, s->symbols[i], s->symbols[i + 1], by * s->counts[i]);
}

#ifndef NDEBUG
static void learn_check(Finder *s) {
    count_pairs(s, -1);
    for (size_t i = 0; i < s->pair_places; i++) assert(s->pairs[i].count == 0);
    count_pairs(s, 1);
    vocab_check(&s->vocab);
}
#else
static void learn_check(const Finder *s) { (void)s; }
#endif

// Turns words into characters; one without a piece becomes a break.
static void lay_out(Finder *s) {
    const Learner *l = s->l;
    size_t most = l->text.length + l->word_count, n = 0;
    s->symbols = mem_new(most, sizeof *s->symbols);
    s->counts = mem_new(most, sizeof *s->counts);
    for (size_t w = 0; w < l->word_count; w++) {
        const char *text = l->text.data + l->words[w].at;
        for (size_t i = 0, bytes; i < l->words[w].length; i += bytes) {
            bytes = (size_t)utf8_length(text + i, l->words[w].length - i);
            s->counts[n] = l->words[w].count;
            s->symbols[n++] = vocab_find(&s->vocab, text + i, bytes);
        }
        s->symbols[n++] = BREAK;
    }
    s->symbol_count = n;
    count_pairs(s, 1);
    learn_check(s);
}

static int characters_of(const Piece *p) {
    int n = 0;
    for (size_t i = 0; i < p->length; i++) n += ((unsigned char)p->text[i] & 0xc0) != 0x80;
    return n;
}

// The commonest pair, of equals the one with the lowest ids; NULL if no pair occurs twice.
static const Pair *best_pair(const Finder *s) {
    const Pair *best = NULL;
    for (size_t i = 0; i < s->pair_places; i++) {
        const Pair *p = &s->pairs[i];
        if (p->count < 2 || (best && p->count < best->count)) continue;
        if (best && p->count == best->count && p->key > best->key) continue;
        const Piece *left = &s->vocab.pieces[p->key >> 32], *right = &s->vocab.pieces[p->key & 0xffffffffu];
        if (characters_of(left) + characters_of(right) <= LONGEST_PIECE) best = p;
    }
    return best;
}

// Records a merge and returns the joint piece's id: a new one, unless other pieces made the same text before.
static int join(Finder *s, int left, int right) {
    const Piece *a = &s->vocab.pieces[left], *b = &s->vocab.pieces[right];
    char text[8 * LONGEST_PIECE], merge[16 * LONGEST_PIECE];
    size_t n = a->length + b->length;
    memcpy(text, a->text, a->length);
    memcpy(text + a->length, b->text, b->length);
    snprintf(merge, sizeof merge, "%s %s", a->text, b->text);
    json_array_append_new(s->merges, json_string(merge));
    int id = vocab_find(&s->vocab, text, n);
    if (id >= 0) return id;
    add_piece(s, text, n);
    return s->pieces - 1;
}

// Replaces each left, right by id, closes the gaps and updates the counts of the pairs around.
static void replace(Finder *s, int left, int right, int id) {
    size_t to = 0;
    for (size_t i = 0; i < s->symbol_count; i++, to++) {
        s->symbols[to] = s->symbols[i];
        s->counts[to] = s->counts[i];
        if (s->symbols[i] != left || i + 1 == s->symbol_count || s->symbols[i + 1] != right) continue;
        int before = to ? s->symbols[to - 1] : BREAK,
            behind = i + 2 < s->symbol_count ? s->symbols[i + 2] : BREAK;
        int64_t count = s->counts[i];
        s->symbols[to] = id;
        count_pair(s, before, left, -count);
        count_pair(s, before, id, count);
        count_pair(s, left, right, -count);
        count_pair(s, right, behind, -count);
        count_pair(s, id, behind, count);
        i++;
    }
    s->symbol_count = to;
}

static bool merge_pairs(Finder *s, Error *e) {
    while (s->pieces < s->target) {
        const Pair *p = best_pair(s);
        if (!p)
            return error_input(
                e, "there is too little text for %d pieces: it gives %d; give more, or --vocab %d", s->target,
                s->pieces, s->pieces);
        int left = (int)(p->key >> 32), right = (int)(p->key & 0xffffffffu);
        replace(s, left, right, join(s, left, right));
    }
    learn_check(s);
    return true;
}

// --- the file --------------------------------------------------------------------------------------------

static char *file_text(const Finder *s) {
    json_t *vocab = json_object();
    for (int i = 0; i < s->pieces; i++) json_object_set_new(vocab, s->vocab.pieces[i].text, json_integer(i));
    json_t *root = tokenizer_json(vocab, json_incref(s->merges));
    char *text = json_text(root, JSON_INDENT(1));
    json_decref(root);
    return text;
}

char *learner_finish(Learner *l, int vocab, Error *e) {
    Finder s = {.l = l, .target = vocab};
    char *out = NULL;
    if (vocab < LEARN_MIN_VOCAB || vocab > VOCAB_MAX) {
        error_input(e, "cannot learn a vocabulary of %d pieces: give from %d to %d", vocab, LEARN_MIN_VOCAB,
                    VOCAB_MAX);
        return NULL;
    }
    if (!vocab_init(&s.vocab, vocab, e)) return NULL;
    s.merges = json_array();
    add_fixed(&s);
    if (add_characters(&s, e)) {
        lay_out(&s);
        if (merge_pairs(&s, e)) out = file_text(&s);
    }
    json_decref(s.merges);
    vocab_release(&s.vocab);
    MEM_FREE(s.symbols, s.counts, s.pairs);
    return out;
}
