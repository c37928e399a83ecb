// Prefix doubling (Manber, Myers): once places are sorted by their first h tokens and numbered by class, the
// pair (class here, class h further on) sorts them by 2h. Each round is a counting sort by the first of the
// pair over an order by the second, which the round before has left behind.
#include "engine/decode/suffix_array.h"

#include "engine/base/memory.h"

#include <stddef.h>
#include <string.h>

typedef struct Sorter {
    int n, classes;
    int *places;   // (n): the result
    int *class_of; // (n): by place
    int *order;    // (n): places by their second key
    int *starts;   // (larger of n and vocab, + 1): where each class begins
} Sorter;

// Places by class, in `order` within one.
static void sort_by_class(Sorter *s) {
    memset(s->starts, 0, ((size_t)s->classes + 1) * sizeof *s->starts);
    for (int i = 0; i < s->n; i++) s->starts[s->class_of[i] + 1]++;
    for (int c = 0; c < s->classes; c++) s->starts[c + 1] += s->starts[c];
    for (int i = 0; i < s->n; i++) s->places[s->starts[s->class_of[s->order[i]]]++] = s->order[i];
}

// After the text's end stands class -1, less than any.
static int class_behind(const Sorter *s, int place, int h) {
    return s->n - place > h ? s->class_of[place + h] : -1;
}

// Classes by 2h tokens, where places are sorted by them; h = 0: by the classes there are.
static void number_classes(Sorter *s, int h) {
    int count = 0, *next = s->order;
    for (int i = 0; i < s->n; i++) {
        int here = s->places[i], before = i ? s->places[i - 1] : -1;
        bool same = i && s->class_of[here] == s->class_of[before] &&
                    class_behind(s, here, h) == class_behind(s, before, h);
        count += !same;
        next[here] = count - 1;
    }
    s->order = s->class_of;
    s->class_of = next;
    s->classes = count;
}

static void order_by_second(Sorter *s, int h) {
    int k = 0;
    for (int i = s->n > h ? s->n - h : 0; i < s->n; i++) s->order[k++] = i;
    for (int i = 0; i < s->n; i++)
        if (s->places[i] >= h) s->order[k++] = s->places[i] - h;
}

static void sort(Sorter *s, const int *tokens, int vocab) {
    for (int i = 0; i < s->n; i++) {
        s->class_of[i] = tokens[i] + 1;
        s->order[i] = i;
    }
    s->classes = vocab + 1;
    sort_by_class(s);
    number_classes(s, 0);
    for (int h = 1; s->classes < s->n; h *= 2) {
        order_by_second(s, h);
        sort_by_class(s);
        number_classes(s, h);
    }
}

bool suffix_array_build(const int *tokens, int n, int vocab, int *places, Error *e) {
    size_t starts = (size_t)(n > vocab ? n : vocab) + 2;
    Sorter s = {.n = n, .places = places};
    s.class_of = mem_alloc((size_t)n, sizeof *s.class_of);
    s.order = mem_alloc((size_t)n, sizeof *s.order);
    s.starts = mem_alloc(starts, sizeof *s.starts);
    bool ok = s.class_of && s.order && s.starts;
    if (ok) sort(&s, tokens, vocab);
    mem_free(s.class_of);
    mem_free(s.order);
    mem_free(s.starts);
    return ok || error_system(e, "out of memory sorting a text of %d tokens", n);
}
