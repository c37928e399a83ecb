// Symbols are a linked list in an array; a heap holds the possible merges by (rank, position). A merge joins
// its right neighbour into the left symbol; entries of the heap that a later merge made stale are known by
// their ids.
#include "engine/text/bpe.h"

#include "engine/base/memory.h"
#include "engine/text/utf8.h"

#include <stdio.h>
#include <string.h>

bool bpe_init(Bpe *b, int vocab_size, size_t merges, Error *e) {
    size_t places = 16;
    while (places < 2 * merges) places *= 2;
    *b = (Bpe){.merge_places = places, .unknown = -1};
    b->merges = mem_alloc(places, sizeof *b->merges);
    if (!b->merges) return error_system(e, "out of memory for %zu merges", merges);
    for (size_t i = 0; i < places; i++) b->merges[i].rank = -1;
    if (vocab_init(&b->vocab, vocab_size, e)) return true;
    bpe_release(b);
    return false;
}

void bpe_release(Bpe *b) {
    vocab_release(&b->vocab);
    mem_free(b->merges);
    *b = (Bpe){0};
}

static Merge *find(const Bpe *b, int left, int right) {
    uint64_t pair = (uint64_t)(unsigned)left << 32 | (unsigned)right;
    size_t i = (size_t)(pair * 0x9E3779B97F4A7C15u >> 20) & (b->merge_places - 1);
    while (b->merges[i].rank >= 0 && b->merges[i].pair != pair) i = (i + 1) & (b->merge_places - 1);
    return &b->merges[i];
}

static int joined(const Bpe *b, const char *left, size_t left_n, const char *right, size_t right_n,
                  Error *e) {
    char *text = mem_alloc(left_n + right_n + 1, 1);
    if (!text) {
        error_system(e, "out of memory for a merge");
        return -1;
    }
    memcpy(text, left, left_n);
    memcpy(text + left_n, right, right_n);
    int id = vocab_find(&b->vocab, text, left_n + right_n);
    mem_free(text);
    return id;
}

bool bpe_add_merge(Bpe *b, const char *left, size_t left_n, const char *right, size_t right_n,
                   const char *place, Error *e) {
    int l = vocab_find(&b->vocab, left, left_n), r = vocab_find(&b->vocab, right, right_n);
    int id = l >= 0 && r >= 0 ? joined(b, left, left_n, right, right_n, e) : -1;
    if (id < 0)
        return error_input(e, "merge %zu of '%s' joins '%.40s' and '%.40s', but %s is not in the vocabulary",
                           b->merge_count, place, left, right,
                           l < 0   ? "the first"
                           : r < 0 ? "the second"
                                   : "the result");
    Merge *m = find(b, l, r);
    if (m->rank < 0) *m = (Merge){(uint64_t)(unsigned)l << 32 | (unsigned)r, (int)b->merge_count, id};
    b->merge_count++;
    return true;
}

void bpe_find_bytes(Bpe *b) {
    char piece[8];
    for (int i = 0; i < 256; i++) {
        snprintf(piece, sizeof piece, "<0x%02X>", (unsigned)i);
        b->bytes[i] = vocab_find(&b->vocab, piece, 6);
    }
}

// --- one word
// ------------------------------------------------------------------------------------------------------

typedef struct {
    int id;             // -1: joined into the one before
    int before, behind; // neighbours, -1 at the ends
} Symbol;

typedef struct {
    int rank, at;    // of the left symbol
    int left, right; // ids when it was entered
    int id;
} Candidate;

typedef struct {
    const Bpe *b;
    Symbol *symbols; // (symbol_count)
    size_t symbol_count, symbol_capacity;
    Candidate *heap; // (heap_count)
    size_t heap_count, heap_capacity;
} Word;

static bool add_symbol(Word *w, int id) {
    void *symbols = w->symbols;
    if (!mem_grow(&symbols, &w->symbol_capacity, w->symbol_count + 1, sizeof *w->symbols)) return false;
    w->symbols = symbols;
    int n = (int)w->symbol_count++;
    w->symbols[n] = (Symbol){id, n - 1, n + 1};
    return true;
}

static bool has_bytes(const Bpe *b, const char *s, int n) {
    for (int i = 0; i < n; i++)
        if (b->bytes[(unsigned char)s[i]] < 0) return false;
    return b->byte_fallback;
}

static bool add_character(Word *w, const char *s, int n, bool *last_unknown) {
    const Bpe *b = w->b;
    int id = vocab_find(&b->vocab, s, (size_t)n);
    bool was_unknown = *last_unknown;
    *last_unknown = false;
    if (id >= 0) return add_symbol(w, id);
    if (has_bytes(b, s, n)) {
        for (int i = 0; i < n; i++)
            if (!add_symbol(w, b->bytes[(unsigned char)s[i]])) return false;
        return true;
    }
    *last_unknown = true;
    if (b->unknown < 0 || (was_unknown && b->fuse_unknown)) return true;
    return add_symbol(w, b->unknown);
}

static bool split(Word *w, const char *word, size_t n) {
    bool unknown = false;
    for (size_t i = 0; i < n;) {
        int length = utf8_length(word + i, n - i);
        if (length == 0) length = 1; // the caller gives valid text; never loop on anything else
        if (!add_character(w, word + i, length, &unknown)) return false;
        i += (size_t)length;
    }
    if (w->symbol_count) w->symbols[w->symbol_count - 1].behind = -1;
    return true;
}

static bool before(const Candidate *a, const Candidate *b) {
    return a->rank < b->rank || (a->rank == b->rank && a->at < b->at);
}

static void swap(Candidate *a, Candidate *b) {
    Candidate t = *a;
    *a = *b;
    *b = t;
}

// Enters the merge of symbol `at` with the one behind it, if there is one.
static bool push(Word *w, int at) {
    int behind = at >= 0 ? w->symbols[at].behind : -1;
    if (behind < 0) return true;
    int left = w->symbols[at].id, right = w->symbols[behind].id;
    const Merge *m = find(w->b, left, right);
    if (m->rank < 0) return true;
    void *heap = w->heap;
    if (!mem_grow(&heap, &w->heap_capacity, w->heap_count + 1, sizeof *w->heap)) return false;
    w->heap = heap;
    size_t i = w->heap_count++;
    w->heap[i] = (Candidate){m->rank, at, left, right, m->id};
    for (; i > 0 && before(&w->heap[i], &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&w->heap[i], &w->heap[(i - 1) / 2]);
    return true;
}

static Candidate pop(Word *w) {
    Candidate top = w->heap[0];
    w->heap[0] = w->heap[--w->heap_count];
    for (size_t i = 0, child; (child = 2 * i + 1) < w->heap_count; i = child) {
        if (child + 1 < w->heap_count && before(&w->heap[child + 1], &w->heap[child])) child++;
        if (!before(&w->heap[child], &w->heap[i])) break;
        swap(&w->heap[child], &w->heap[i]);
    }
    return top;
}

static bool merge_all(Word *w) {
    for (size_t i = 0; i < w->symbol_count; i++)
        if (!push(w, (int)i)) return false;
    while (w->heap_count) {
        Candidate c = pop(w);
        Symbol *left = &w->symbols[c.at];
        if (left->id != c.left || left->behind < 0 || w->symbols[left->behind].id != c.right)
            continue; // stale
        Symbol *right = &w->symbols[left->behind];
        left->id = c.id;
        right->id = -1;
        left->behind = right->behind;
        if (left->behind >= 0) w->symbols[left->behind].before = c.at;
        if (!push(w, left->before) || !push(w, c.at)) return false;
    }
    return true;
}

static bool add_id(IdList *out, int id) {
    void *ids = out->ids;
    if (!mem_grow(&ids, &out->capacity, out->count + 1, sizeof *out->ids)) return false;
    out->ids = ids;
    out->ids[out->count++] = id;
    return true;
}

bool bpe_encode(const Bpe *b, const char *word, size_t n, IdList *out, Error *e) {
    Word w = {.b = b};
    int whole = b->ignore_merges ? vocab_find(&b->vocab, word, n) : -1;
    bool ok = true;
    if (whole >= 0) ok = add_id(out, whole);
    else if (n) {
        ok = split(&w, word, n) && merge_all(&w);
        for (int i = w.symbol_count ? 0 : -1; ok && i >= 0; i = w.symbols[i].behind)
            ok = add_id(out, w.symbols[i].id);
    }
    mem_free(w.symbols);
    mem_free(w.heap);
    return ok || error_system(e, "out of memory encoding %zu bytes", n);
}
