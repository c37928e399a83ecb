// Which card has which layers, and whether everything fits, decided before anything is allocated.
//
// Cards have consecutive layers, in the order in which the user named the cards. All are filled up to the
// same share of their free memory, the smallest share that holds the model: unequal cards get unequal numbers
// of layers, and each keeps some memory for a draft model. The needs of a card are added up by the same list
// that allocates later (Cuda.planning).

#include "engine/cuda/cuda.h"
#include "engine/cuda/device.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

// Needed in addition to the list: the loader's buffers, and recorded graphs.
static const size_t ROOM = (size_t)192 << 20;

// "cuda:0,cuda:1", as --device takes it.
static void name_cards(const Cuda *first, char *out, size_t size) {
    size_t n = 0;
    for (const Cuda *c = first; c && n < size; c = c->next)
        n += (size_t)snprintf(out + n, size - n, "%scuda:%d", n ? "," : "", c->ordinal);
}

void cuda_set_context(Cuda *first, int context, const BackendOptions *o) {
    for (Cuda *c = first; c; c = c->next) {
        c->context = context;
        cache_init(&c->cache, context, c->model->shape.window, o->slack > 0 ? o->slack : CACHE_SLACK);
        c->slots = c->cache.capacity;
    }
}

// Bytes that a card with layers [from, to) needs.
static size_t needed(Cuda *c, int from, int to) {
    c->from = from;
    c->to = to;
    assert(!c->blocks); // nothing is allocated yet
    c->planning = true;
    c->weight_bytes = c->cache_bytes = c->step_bytes = 0;
    memset(c->layers, 0, (size_t)c->model->shape.layers * sizeof *c->layers);
    (void)(cuda_take_weights(c, NULL) && cuda_take_buffers(c, NULL));
    c->planning = false;
    return c->weight_bytes + c->cache_bytes + c->step_bytes + ROOM;
}

// Places the layers, each card filled up to this share of its free memory. False if they don't fit.
static bool place(Cuda *first, double share) {
    int layers = first->model->shape.layers, behind = 0, at = 0;
    for (Cuda *c = first->next; c; c = c->next) behind++;
    for (Cuda *c = first; c; c = c->next, behind--) {
        size_t room = (size_t)(share * (double)c->facts.free_bytes);
        int to = behind ? at + 1 : layers;
        while (to < layers - behind && needed(c, at, to + 1) <= room) to++;
        if (needed(c, at, to) > room) return false;
        at = to;
    }
    return true;
}

static bool place_evenly(Cuda *first) {
    double enough = 1, little = 0;
    if (!place(first, enough)) return false;
    while (first->next && enough - little > 1e-3) {
        double middle = (enough + little) / 2;
        if (place(first, middle)) enough = middle;
        else little = middle;
    }
    return place(first, enough);
}

// --- if it does not fit

// The longest context that fits, with a little to spare; 0: none.
static int longest_context(Cuda *first, const BackendOptions *o) {
    int asked = first->context, low = 0, high = asked;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        cuda_set_context(first, middle, o);
        if (place(first, 31.0 / 32)) low = middle;
        else high = middle - 1;
    }
    cuda_set_context(first, asked, o);
    return low;
}

static void set_sequences(Cuda *first, int sequences) {
    for (Cuda *c = first; c; c = c->next) c->sequences = sequences;
}

// The most sequences that fit with this context; 0: not even one.
static int largest_batch(Cuda *first) {
    int asked = first->sequences, fits = asked - 1;
    for (; fits > 0; fits--) {
        set_sequences(first, fits);
        if (place(first, 31.0 / 32)) break;
    }
    set_sequences(first, asked);
    return fits;
}

// Writes the first card and as few others as have room together, as --device takes them; or nothing.
static void find_more(const Cuda *first, char *out, size_t size) {
    int count = cuda_count(), used = 1;
    *out = 0;
    if (count < 2 || first->next) return;
    LOCAL_MEMORY Cuda *cards = mem_new((size_t)count, sizeof *cards);
    cards[0] = *first;
    cards[0].first = cards;
    for (int i = 0; i < count && used < first->model->shape.layers; i++) {
        Cuda *c = &cards[used];
        *c = *first;
        c->first = cards;
        c->ordinal = i;
        if (i == first->ordinal || !device_find(i, &c->facts, NULL)) continue;
        cards[used++ - 1].next = c;
        if (!place(cards, 31.0 / 32)) continue;
        name_cards(cards, out, size);
        break;
    }
    gpu_use(first->ordinal);
}

// Adds up all cards' needs for layers divided evenly: any other division needs as much.
static void sum_up(Cuda *first, size_t *need, size_t *room, size_t sums[3]) {
    int count = 0, i = 0, layers = first->model->shape.layers;
    for (Cuda *c = first; c; c = c->next) count++;
    *need = *room = 0;
    for (Cuda *c = first; c; c = c->next, i++) {
        *need += needed(c, layers * i / count, layers * (i + 1) / count);
        *room += c->facts.free_bytes;
        sums[0] += c->weight_bytes;
        sums[1] += c->cache_bytes;
        sums[2] += c->step_bytes;
    }
}

static bool refuse(Cuda *first, const BackendOptions *o, Error *e) {
    const double gigabyte = 1e9;
    char all[256], more[256], fix[320], missing[64];
    size_t need, room, sums[3] = {0};
    const Cuda *least = first; // the card with the least memory
    for (const Cuda *c = first; c; c = c->next)
        if (c->facts.free_bytes < least->facts.free_bytes) least = c;
    int fits = longest_context(first, o), batch = largest_batch(first), n = 0;
    name_cards(first, all, sizeof all);
    find_more(first, more, sizeof more);
    sum_up(first, &need, &room, sums);
    if (batch) n = snprintf(fix, sizeof fix, "--batch %d", batch);
    if (fits) n += snprintf(fix + n, sizeof fix - (size_t)n, "%s--context %d", n ? " or " : "", fits);
    if (*more) n += snprintf(fix + n, sizeof fix - (size_t)n, "%s--device %s", n ? " or " : "", more);
    snprintf(fix + n, sizeof fix - (size_t)n, n ? " would fit" : "it does not fit, whatever the context");
    if (need > room)
        snprintf(missing, sizeof missing, "%.2f GB are missing", (double)(need - room) / gigabyte);
    else snprintf(missing, sizeof missing, "cuda:%d has too little for its layers", least->ordinal);
    return error_system(
        e, "%s: the model needs %.1f GB (weights %.1f, cache %.1f, step %.1f), %.1f GB are free, %s: %s", all,
        (double)need / gigabyte, (double)sums[0] / gigabyte, (double)sums[1] / gigabyte,
        (double)sums[2] / gigabyte, (double)room / gigabyte, missing, fix);
}

int cuda_longest(Cuda *first, const BackendOptions *o) {
    return place(first, 1) ? first->context : longest_context(first, o);
}

bool cuda_fit(Cuda *first, const BackendOptions *o, Error *e) {
    char all[256];
    int count = 0, layers = first->model->shape.layers;
    for (const Cuda *c = first; c; c = c->next) count++;
    name_cards(first, all, sizeof all);
    if (count > layers)
        return error_input(e, "%s: a model of %d layer%s cannot be on %d cards: name fewer", all, layers,
                           layers == 1 ? "" : "s", count);
    return place_evenly(first) || refuse(first, o, e);
}
