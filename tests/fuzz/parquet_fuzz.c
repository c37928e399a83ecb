// A Parquet file: accepted rows are objects, numbered from 1; a refused file leaves one line. The bytes as
// blocks of each compression too.
#include "datasets/format.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

static bool take(void *state, Row *row, Error *e) {
    (void)e;
    demand(row->number == ++*(size_t *)state && json_is_object(row->json));
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t out[1000];
    size_t rows = 0;
    Error e = {0};
    if (!parquet_each((const char *)data, size, "fuzz", 1 << 20, take, &rows, &e))
        demand(e.kind == ERROR_INPUT && strstr(e.text, "'fuzz'"));
    snappy_block(data, size, out, size % sizeof out);
    gzip_block(data, size, out, size % sizeof out);
    zstd_block(data, size, out, size % sizeof out);
    return 0;
}
