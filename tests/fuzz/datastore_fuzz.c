// A datastore: whatever is taken can be searched and read without leaving it, in whatever order its places
// are.
#include "engine/decode/structures/datastore.h"

#include "engine/base/memory.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LONGEST = 4 };

static void demand(bool holds) {
    if (!holds) abort();
}

static void check_phrase(const Datastore *d, const int *phrase, int n) {
    int first = -1, found = datastore_find(d, phrase, n, &first);
    demand(found >= 0 && first >= 0 && first + found <= d->count);
}

// Every phrase that stands in it, as far as one input may take time.
static void check(const Datastore *d) {
    int most = d->count < 200 ? d->count : 200;
    demand(d->count > 0 && d->vocab > 0);
    for (int i = 0; i < most; i++) {
        for (int n = 1; n <= LONGEST && n <= d->count - i; n++) check_phrase(d, d->tokens + i, n);
        demand(d->tokens[i] >= DATASTORE_BREAK && d->tokens[i] < d->vocab);
        demand(d->places[i] >= 0 && d->places[i] < d->count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Datastore d;
    Error e = {0};
    unsigned char *aligned = mem_new(size, 1);
    memcpy(aligned, data, size);
    if (datastore_parse(aligned, size, "fuzz", &d, &e)) check(&d);
    else demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz") && !d.tokens);
    mem_free(aligned);
    return 0;
}
