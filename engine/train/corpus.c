// Documents, their split into two sides, and the rows of batches. A feed's order is a function of its seed
// and epoch, so its place is three numbers, and a checkpoint keeps only those.
//
// Invariant of a feed with documents: document < count, and offset < the rows of that document.
#include "engine/train/corpus.h"

#include "engine/base/memory.h"
#include "engine/base/random.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void corpus_add(Corpus *c, const int *ids, size_t n) {
    if (n < 2) return;
    mem_grow(&c->ids, &c->capacity, c->count + n, sizeof *c->ids);
    mem_grow(&c->ends, &c->end_capacity, c->documents + 1, sizeof *c->ends);
    memcpy(c->ids + c->count, ids, n * sizeof *ids);
    c->count += n;
    c->ends[c->documents++] = c->count;
}

void corpus_release(Corpus *c) {
    MEM_FREE(c->ids, c->ends);
    *c = (Corpus){0};
}

// A token in a key: the rarer, or of equals the higher, the larger it is.
static int by_key(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int by_id(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

void corpus_commonest(const Corpus *c, int vocab, int *ids, int count) {
    LOCAL_MEMORY uint64_t *keys = mem_new((size_t)vocab, sizeof *keys);
    assert(count <= vocab && c->count < UINT32_MAX);
    for (int i = 0; i < vocab; i++) keys[i] = (uint64_t)UINT32_MAX << 32 | (uint64_t)i;
    for (size_t i = 0; i < c->count; i++) keys[c->ids[i]] -= (uint64_t)1 << 32;
    qsort(keys, (size_t)vocab, sizeof *keys, by_key);
    for (int i = 0; i < count; i++) ids[i] = (int)(uint32_t)keys[i];
    qsort(ids, (size_t)count, sizeof *ids, by_id);
}

double corpus_share(const Corpus *c, const int *ids, int count) {
    size_t in = 0;
    for (size_t i = 0; i < c->count; i++)
        in += bsearch(&c->ids[i], ids, (size_t)count, sizeof *ids, by_id) != NULL;
    return (double)in / (double)c->count;
}

static size_t rows_of(const Corpus *c, size_t document) {
    return c->ends[document] - corpus_begin(c, document) - 1;
}

static void corpus_check(const Feed *f) {
    assert(!f->count || f->document < f->count);
    assert(!f->count || f->offset < rows_of(f->corpus, f->documents[f->document]));
}

// A number in [0, 1): FNV-1a of the ids, then one random number from that.
static double place_of(const Corpus *c, size_t document, uint64_t seed) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = corpus_begin(c, document); i < c->ends[document]; i++)
        h = (h ^ (uint64_t)c->ids[i]) * 0x100000001b3u;
    return (double)(random_at(seed, STREAM_TRAIN, h) >> 11) * 0x1p-53;
}

// Fisher and Yates, from the corpus's order: an epoch's order depends only on the seed and its number.
static void shuffle(Feed *f) {
    Random r = {.seed = f->seed, .stream = STREAM_TRAIN + ((f->epoch + 1) << 8)};
    memcpy(f->documents, f->given, f->count * sizeof *f->given);
    for (size_t i = f->count; i > 1; i--) {
        size_t j = random_below(&r, (uint32_t)i), swapped = f->documents[i - 1];
        f->documents[i - 1] = f->documents[j];
        f->documents[j] = swapped;
    }
}

static void move_to(Feed *f, uint64_t epoch, size_t document, size_t offset) {
    f->epoch = epoch;
    f->document = document;
    f->offset = offset;
    shuffle(f);
}

bool feed_open(Feed *f, const Corpus *c, double share, bool held_out, uint64_t seed, Error *e) {
    *f = (Feed){.corpus = c, .seed = seed};
    f->documents = mem_new(c->documents, sizeof *f->documents);
    f->given = mem_new(c->documents, sizeof *f->given);
    // Documents whose place is below this are held out: `share` of them or, if share is above 0 and too small
    // for one, the document with the least place.
    double least = 1;
    for (size_t i = 0; share > 0 && i < c->documents; i++) least = fmin(least, place_of(c, i, seed));
    double below = share > 0 && least >= share ? nextafter(least, 1) : share;
    for (size_t i = 0; i < c->documents; i++)
        if ((place_of(c, i, seed) < below) == held_out) {
            f->given[f->count++] = i;
            f->rows += rows_of(c, i);
        }
    if (!f->count) {
        feed_close(f);
        return error_input(
            e,
            "none of %zu documents %s: change the held-out share, or give more; without --separator LINE "
            "a file is one document",
            c->documents, held_out ? "is held out" : "is left to learn from");
    }
    shuffle(f);
    return true;
}

void feed_close(Feed *f) {
    MEM_FREE(f->documents, f->given);
    *f = (Feed){0};
}

void feed_narrow(Feed *f, bool (*keep)(const void *state, size_t document), const void *state) {
    size_t kept = 0;
    f->rows = 0;
    for (size_t i = 0; i < f->count; i++)
        if (keep(state, f->given[i])) {
            f->rows += rows_of(f->corpus, f->given[i]);
            f->given[kept++] = f->given[i];
        }
    f->count = kept;
    move_to(f, 0, 0, 0);
    corpus_check(f);
}

bool feed_seek(Feed *f, uint64_t epoch, size_t document, size_t offset) {
    move_to(f, epoch, document, offset);
    if (document < f->count && offset < rows_of(f->corpus, f->documents[document])) return true;
    move_to(f, 0, 0, 0);
    return false;
}

void feed_fill(Feed *f, int rows, int context, int *tokens, int *targets, int *start, size_t *places) {
    assert(f->count && rows > 0 && context > 0);
    for (int r = 0; r < rows; r++) {
        size_t document = f->documents[f->document];
        size_t at = corpus_begin(f->corpus, document) + f->offset;
        const int *ids = f->corpus->ids + at;
        start[r] = f->offset == 0 || r % context == 0 ? r : start[r - 1];
        places[r] = f->offset == 0 || (start[r] < r && places[r - 1] != NO_PLACE) ? at : NO_PLACE;
        tokens[r] = ids[0];
        targets[r] = ids[1];
        if (++f->offset < rows_of(f->corpus, document)) continue;
        f->offset = 0;
        if (++f->document == f->count) move_to(f, f->epoch + 1, 0, 0);
    }
    corpus_check(f);
}
