// A tokenizer.json (if it starts with a brace) or a tokenizer.model, then a text, then one byte: the text's
// length. An accepted one encodes the text to its own ids, and decodes them and any others to UTF-8.
#include "engine/text/tokenizer.h"
#include "engine/text/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

static void check_decode(const Tokenizer *t, const int *ids, size_t count) {
    Error e = {0};
    Text text = {0};
    demand(tokenizer_decode(t, ids, count, false, &text, &e));
    demand(utf8_valid(text_get(&text), text.length));
    text_release(&text);
}

// A pattern may take too long on the text: that is the user's to mend, and says so.
static void check_encode(const Tokenizer *t, const char *text, size_t n) {
    Error e = {0};
    IdList ids = {0};
    if (tokenizer_encode(t, text, n, true, &ids, &e)) {
        for (size_t i = 0; i < ids.count; i++) {
            demand(ids.ids[i] >= 0 && ids.ids[i] < tokenizer_size(t));
            demand(tokenizer_piece(t, ids.ids[i]) != NULL);
        }
        check_decode(t, ids.ids, ids.count);
    } else demand(e.kind == ERROR_INPUT && strstr(e.text, "takes too long"));
    ids_release(&ids);
}

static void check_all_ids(const Tokenizer *t) {
    int ids[300];
    for (int i = 0; i < 300; i++) ids[i] = i - 1;
    check_decode(t, ids, 300);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Error e = {0};
    size_t most = size ? size - 1 : 0, n = size && data[most] < most ? data[most] : most;
    const char *file = (const char *)data, *text = file + most - n;
    bool json = most > 0 && *file == '{';
    Tokenizer *t = (json ? tokenizer_parse : tokenizer_parse_model)(file, most - n, "fuzz", &e);
    if (t) {
        check_encode(t, text, n);
        check_all_ids(t);
    } else demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz"));
    tokenizer_close(t);
    return 0;
}
