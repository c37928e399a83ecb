// A gzip file: the expanded bytes are at most as many as allowed and end with a NUL; a refused file leaves
// one line.
#include "datasets/format.h"

#include "engine/base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const size_t MOST[] = {0, 1000, 1 << 20};
    for (size_t i = 0; i < sizeof MOST / sizeof *MOST; i++) {
        char *out = NULL;
        size_t n = 0;
        Error e = {0};
        if (gzip_expand((const char *)data, size, "fuzz", MOST[i], &out, &n, &e)) {
            demand(n <= MOST[i] && out[n] == 0 && gzip_is((const char *)data, size));
            mem_free(out);
        } else demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz") && !out);
    }
    return 0;
}
