#include "harness/prompts/stop.h"

#include <string.h>

// Where the stop string begins that is complete first, or n; of two that end together the longer. To look for
// the leftmost instead would make the output depend on how the text is cut into pieces.
static size_t find_stop(const StopFilter *f, const char *text, size_t n) {
    size_t first = n, first_end = n + 1;
    for (int i = 0; i < f->stops->count; i++) {
        size_t length = strlen(f->stops->items[i]);
        const char *found = memmem(text, n, f->stops->items[i], length);
        size_t at = found ? (size_t)(found - text) : n, end = at + length;
        if (!found || end > first_end || (end == first_end && at > first)) continue;
        first = at;
        first_end = end;
    }
    return first;
}

// True if text, n bytes, is the beginning of a stop string.
static bool is_beginning(const StopFilter *f, const char *text, size_t n) {
    for (int i = 0; i < f->stops->count; i++)
        if (n < strlen(f->stops->items[i]) && memcmp(f->stops->items[i], text, n) == 0) return true;
    return false;
}

bool stop_feed(StopFilter *f, const char *text, size_t n, Text *out) {
    text_add(&f->held, text, n);
    const char *held = text_get(&f->held);
    size_t length = f->held.length, at = find_stop(f, held, length), safe = 0;
    if (at < length) {
        text_add(out, held, at);
        text_clear(&f->held);
        return true;
    }
    while (safe < length && !is_beginning(f, held + safe, length - safe)) safe++;
    text_add(out, held, safe);
    if (length) memmove(f->held.data, f->held.data + safe, length - safe + 1);
    f->held.length = length - safe;
    return false;
}

void stop_flush(StopFilter *f, Text *out) {
    text_add(out, text_get(&f->held), f->held.length);
    text_clear(&f->held);
}

void stop_release(StopFilter *f) { text_release(&f->held); }
