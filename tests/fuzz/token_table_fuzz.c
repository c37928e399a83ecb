// A table of continuations, unchanged and with the checksum that its ids would need: an accepted one has ids
// of the vocabulary, or none.
#include "engine/decode/model_tables.h"

#include "engine/base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VOCAB = 40, HEADER = 24, DIGITS = SHA256_TEXT - 1, IDS_AT = HEADER + 2 * DIGITS };

static void demand(bool holds) {
    if (!holds) abort();
}

static void check(const char *bytes, size_t n) {
    TokenTable t;
    Error e = {0};
    char key[SHA256_TEXT];
    if (!token_table_parse(bytes, n, "fuzz", VOCAB, &t, key, &e)) {
        demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz") && !t.ids);
        return;
    }
    demand(t.tokens >= 1 && t.tokens <= VOCAB && strlen(key) <= DIGITS);
    for (int token = 0; token < t.tokens; token++)
        for (int rank = 0; rank < t.k; rank++)
            for (int i = 0; i < t.w; i++) {
                int id = token_table_row(&t, token, rank)[i];
                demand(id == TABLE_NO_TOKEN || (id >= 0 && id < VOCAB));
            }
    token_table_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char sum[SHA256_TEXT], *mended = mem_new(size, 1);
    demand(mended != NULL);
    memcpy(mended, data, size);
    check(mended, size);
    if (size >= IDS_AT) {
        demand(sha256_bytes(mended + IDS_AT, size - IDS_AT, sum, NULL));
        memcpy(mended + HEADER + DIGITS, sum, DIGITS);
        check(mended, size);
    }
    mem_free(mended);
    return 0;
}
