// A word is cut wherever no merge joins the two characters that meet, because no merge can cross such a
// place. That keeps parts short if a whole text is one word, as in the byte-fallback families. A part's
// symbols are a linked list in an array; a heap holds the possible merges by (rank, position). A merge joins
// its right neighbour into the left symbol. Heap entries that a later merge made stale are recognised by
// their ids.
//
// Invariants: a merge's piece is the text of its two pieces; symbols that are left form a list in both
// directions, in order of position.
#include "engine/text/bpe.h"

#include "engine/base/memory.h"
#include "engine/text/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

bool bpe_init(Bpe *b, int vocab_size, size_t merges, Error *e) {
    size_t places = 16;
    while (places < 2 * merges) places *= 2;
    *b = (Bpe){.merge_places = places, .unknown = -1};
    b->merges = mem_try(places, sizeof *b->merges);
    b->joints = mem_try(places, sizeof *b->joints);
    if (!b->merges || !b->joints) {
        bpe_release(b);
        return error_system(e, "no memory for %zu merges", merges);
    }
    for (size_t i = 0; i < places; i++) b->merges[i].rank = -1;
    if (vocab_init(&b->vocab, vocab_size, e)) return true;
    bpe_release(b);
    return false;
}

void bpe_release(Bpe *b) {
    vocab_release(&b->vocab);
    MEM_FREE(b->merges, b->joints);
    *b = (Bpe){0};
}

// --- merges and joints ---------------------------------------------------------------------------------

static size_t place_of(const Bpe *b, uint64_t pair) {
    return (size_t)(pair * 0x9E3779B97F4A7C15u >> 32) & (b->merge_places - 1); // bits that both halves reach
}

static Merge *find(const Bpe *b, int left, int right) {
    uint64_t pair = (uint64_t)(unsigned)left << 32 | (unsigned)right;
    size_t i = place_of(b, pair);
    while (b->merges[i].rank >= 0 && b->merges[i].pair != pair) i = (i + 1) & (b->merge_places - 1);
    return &b->merges[i];
}

void bpe_set_merge(Bpe *b, int left, int right, int rank, int id) {
    *find(b, left, right) = (Merge){(uint64_t)(unsigned)left << 32 | (unsigned)right, rank, id};
    b->merge_count++;
}

// The id of the joint piece, or -1.
static int find_joined(const Bpe *b, const Piece *left, const Piece *right) {
    size_t n = left->length + right->length;
    LOCAL_MEMORY char *text = mem_new(n + 1, 1);
    memcpy(text, left->text, left->length);
    memcpy(text + left->length, right->text, right->length);
    return vocab_find(&b->vocab, text, n);
}

bool bpe_add_merge(Bpe *b, const char *left, size_t left_n, const char *right, size_t right_n,
                   const char *place, Error *e) {
    int l = vocab_find(&b->vocab, left, left_n), r = vocab_find(&b->vocab, right, right_n);
    int id = l >= 0 && r >= 0 ? find_joined(b, &b->vocab.pieces[l], &b->vocab.pieces[r]) : -1;
    if (id < 0)
        return error_input(e, "merge %zu of '%s' joins '%.*s' and '%.40s', but %s is not in the vocabulary",
                           b->merge_count, place, (int)(left_n < 40 ? left_n : 40), left, right,
                           l < 0   ? "the first"
                           : r < 0 ? "the second"
                                   : "the result");
    bpe_set_merge(b, l, r, (int)b->merge_count, id);
    return true;
}

static uint64_t joint_of(uint32_t left, uint32_t right) { return (uint64_t)left << 32 | right | 1u << 31; }

static uint64_t *find_joint(const Bpe *b, uint64_t joint) {
    size_t i = place_of(b, joint);
    while (b->joints[i] && b->joints[i] != joint) i = (i + 1) & (b->merge_places - 1);
    return &b->joints[i];
}

// The characters that meet where the two pieces of a merge are joined.
static uint64_t joint_of_merge(const Bpe *b, uint64_t pair) {
    const Piece *left = &b->vocab.pieces[pair >> 32], *right = &b->vocab.pieces[pair & 0xFFFFFFFFu];
    size_t last = utf8_last(left->text, left->length);
    return joint_of(utf8_code(left->text + last, (int)(left->length - last)),
                    utf8_code(right->text, utf8_length(right->text, right->length)));
}

// A byte piece or the unknown one replaces characters that its text doesn't show, so no joint describes its
// merges.
static bool replaces_others(const Bpe *b, int id) {
    const Piece *p = &b->vocab.pieces[id];
    return id == b->unknown || (p->length == 6 && memcmp(p->text, "<0x", 3) == 0);
}

static void bpe_check(const Bpe *b) {
    assert(b->unknown >= -1 && b->unknown < b->vocab.size);
    for (size_t i = 0; i < b->merge_places; i++) {
        const Merge *m = &b->merges[i];
        if (m->rank < 0) continue;
        int left = (int)(m->pair >> 32), right = (int)(m->pair & 0xFFFFFFFFu);
        const Piece *p = b->vocab.pieces;
        assert(find(b, left, right) == m && p[m->id].length == p[left].length + p[right].length);
        assert(memcmp(p[m->id].text, p[left].text, p[left].length) == 0);
        assert(memcmp(p[m->id].text + p[left].length, p[right].text, p[right].length) == 0);
        (void)left, (void)right, (void)p;
    }
    vocab_check(&b->vocab);
}

void bpe_finish(Bpe *b) {
    for (int i = 0; i < 256; i++) {
        char piece[8];
        snprintf(piece, sizeof piece, "<0x%02X>", (unsigned)i);
        b->bytes[i] = vocab_find(&b->vocab, piece, 6);
    }
    for (size_t i = 0; i < b->merge_places; i++) {
        const Merge *m = &b->merges[i];
        if (m->rank < 0) continue;
        uint64_t joint = joint_of_merge(b, m->pair);
        *find_joint(b, joint) = joint;
        b->whole |=
            replaces_others(b, (int)(m->pair >> 32)) || replaces_others(b, (int)(m->pair & 0xFFFFFFFFu));
    }
    bpe_check(b);
}

// --- one part of a word --------------------------------------------------------------------------------

struct BpeSymbol {
    int id;             // -1: merged into the one before
    int before, behind; // neighbours, -1 at the ends
};

struct BpeCandidate {
    int rank, at;    // of the left symbol
    int left, right; // ids when it was entered
    int id;
};

void bpe_work_release(BpeWork *w) {
    MEM_FREE(w->symbols, w->heap);
    *w = (BpeWork){0};
}

static void add_symbol(BpeWork *w, int id) {
    mem_grow(&w->symbols, &w->symbol_capacity, w->symbol_count + 1, sizeof *w->symbols);
    int n = (int)w->symbol_count++;
    w->symbols[n] = (BpeSymbol){id, n - 1, n + 1};
}

static bool before(const BpeCandidate *a, const BpeCandidate *b) {
    return a->rank < b->rank || (a->rank == b->rank && a->at < b->at);
}

static void swap(BpeCandidate *a, BpeCandidate *b) {
    BpeCandidate t = *a;
    *a = *b;
    *b = t;
}

// Enters the merge of symbol `at` with the one after it, if there is one.
static void push(const Bpe *b, BpeWork *w, int at) {
    int behind = at >= 0 ? w->symbols[at].behind : -1;
    if (behind < 0) return;
    int left = w->symbols[at].id, right = w->symbols[behind].id;
    const Merge *m = find(b, left, right);
    if (m->rank < 0) return;
    mem_grow(&w->heap, &w->heap_capacity, w->heap_count + 1, sizeof *w->heap);
    size_t i = w->heap_count++;
    w->heap[i] = (BpeCandidate){m->rank, at, left, right, m->id};
    for (; i > 0 && before(&w->heap[i], &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&w->heap[i], &w->heap[(i - 1) / 2]);
}

static BpeCandidate pop(BpeWork *w) {
    BpeCandidate top = w->heap[0];
    w->heap[0] = w->heap[--w->heap_count];
    for (size_t i = 0, child; (child = 2 * i + 1) < w->heap_count; i = child) {
        if (child + 1 < w->heap_count && before(&w->heap[child + 1], &w->heap[child])) child++;
        if (!before(&w->heap[child], &w->heap[i])) break;
        swap(&w->heap[child], &w->heap[i]);
    }
    return top;
}

static void merge_all(const Bpe *b, BpeWork *w) {
    for (size_t i = 0; i < w->symbol_count; i++) push(b, w, (int)i);
    while (w->heap_count) {
        BpeCandidate c = pop(w);
        BpeSymbol *left = &w->symbols[c.at];
        if (left->id != c.left || left->behind < 0 || w->symbols[left->behind].id != c.right)
            continue; // stale
        BpeSymbol *right = &w->symbols[left->behind];
        left->id = c.id;
        right->id = -1;
        left->behind = right->behind;
        if (left->behind >= 0) w->symbols[left->behind].before = c.at;
        push(b, w, left->before);
        push(b, w, c.at);
    }
    UNUSED int last = -1;
    for (int i = w->symbol_count ? 0 : -1; i >= 0; last = i, i = w->symbols[i].behind)
        assert(i > last && w->symbols[i].id >= 0 && w->symbols[i].before == last);
}

// Merges a part's symbols, appends their ids and empties the part.
static void end_part(const Bpe *b, BpeWork *w, IdList *out) {
    if (w->symbol_count == 0) return;
    w->symbols[w->symbol_count - 1].behind = -1;
    w->heap_count = 0;
    if (w->symbol_count > 1) merge_all(b, w);
    for (int i = 0; i >= 0; i = w->symbols[i].behind) ids_add(out, w->symbols[i].id);
    w->symbol_count = 0;
}

// --- a word --------------------------------------------------------------------------------------------

// A character of a word, looked up in the vocabulary.
typedef struct {
    const char *text;
    int length;
    int id;     // -1: it isn't a piece
    bool bytes; // it becomes its bytes
} Character;

static Character character_at(const Bpe *b, const char *s, size_t n) {
    int length = utf8_length(s, n);
    if (length == 0) length = 1; // the caller gives valid text; never loop on anything else
    Character c = {.text = s, .length = length, .id = vocab_find(&b->vocab, s, (size_t)length)};
    c.bytes = c.id < 0 && b->byte_fallback;
    for (int i = 0; i < length && c.bytes; i++) c.bytes = b->bytes[(unsigned char)s[i]] >= 0;
    return c;
}

static void encode_word(const Bpe *b, BpeWork *w, const char *word, size_t n, IdList *out) {
    bool unknown = false;
    uint32_t last = 0;
    w->symbol_count = 0;
    for (size_t i = 0; i < n;) {
        Character c = character_at(b, word + i, n - i);
        i += (size_t)c.length;
        if (c.id < 0 && !c.bytes && b->unknown < 0) continue; // left out: its neighbours meet
        uint32_t code = utf8_code(c.text, c.length);
        bool cut = w->symbol_count && !b->whole && !*find_joint(b, joint_of(last, code));
        if (cut) end_part(b, w, out);
        bool was_unknown = unknown;
        unknown = c.id < 0 && !c.bytes;
        if (c.id >= 0) add_symbol(w, c.id);
        else if (c.bytes)
            for (int k = 0; k < c.length; k++) add_symbol(w, b->bytes[(unsigned char)c.text[k]]);
        else if (!was_unknown || !b->fuse_unknown) add_symbol(w, b->unknown);
        last = code;
    }
    end_part(b, w, out);
}

void bpe_encode(const Bpe *b, BpeWork *w, const char *word, size_t n, IdList *out) {
    int whole = b->ignore_merges ? vocab_find(&b->vocab, word, n) : -1;
    if (whole >= 0) ids_add(out, whole);
    else encode_word(b, w, word, n, out);
}
