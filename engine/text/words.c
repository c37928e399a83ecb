#include "engine/text/words.h"

#include "engine/base/memory.h"

void words_end(Words *w) {
    void *ends = w->ends;
    if (w->text.length == words_from(w, w->count)) return;
    if (w->count == w->capacity && !mem_grow(&ends, &w->capacity, w->count + 1, sizeof *w->ends)) {
        w->text.failed = true;
        return;
    }
    w->ends = ends;
    w->ends[w->count++] = w->text.length;
}

void words_add(Words *w, const char *word, size_t n) {
    text_add(&w->text, word, n);
    words_end(w);
}

void words_clear(Words *w) {
    text_clear(&w->text);
    w->count = 0;
    w->at_start = false;
}

void words_release(Words *w) {
    text_release(&w->text);
    mem_free(w->ends);
    *w = (Words){0};
}
