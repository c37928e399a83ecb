// Stop strings in a stream: text is held back only as long as it could still become one.
#pragma once
#include "engine/base/text.h"
#include "engine/base/args.h"

typedef struct StopFilter {
    const Words *stops; // none of them empty
    Text held;
} StopFilter;

// Takes more text; appends to out what is safe to show. True if a stop string is complete: out then ends
// before it, and nothing more may be given. How the text is cut into pieces makes no difference.
bool stop_feed(StopFilter *f, const char *text, size_t n, Text *out);

// Appends what is still held: the stream has ended without a stop string.
void stop_flush(StopFilter *f, Text *out);

void stop_release(StopFilter *f);
