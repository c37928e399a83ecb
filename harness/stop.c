#include "harness/stop.h"

#include <string.h>

// The first place where a whole stop string stands, or n.
static size_t find_stop(const StopFilter *f, const char *text, size_t n) {
    size_t first = n;
    for (int i = 0; i < f->stops->count; i++) {
        const char *at = memmem(text, n, f->stops->items[i], strlen(f->stops->items[i]));
        if (at && (size_t)(at - text) < first) first = (size_t)(at - text);
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
