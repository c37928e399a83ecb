#include "harness/prompt.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t MOST_BYTES = 64u << 20;

static bool parse_ids(const char *text, IdList *out, Error *e) {
    for (const char *p = text; p;) {
        char *end;
        long id = strtol(p, &end, 10);
        void *ids = out->ids;
        if (end == p || id < 0 || id > INT_MAX || (*end && *end != ','))
            return error_input(e, "--ids must be numbers with commas between them, at '%.20s'", p);
        if (!mem_grow(&ids, &out->capacity, out->count + 1, sizeof *out->ids))
            return error_system(e, "out of memory");
        out->ids = ids;
        out->ids[out->count++] = (int)id;
        p = *end ? end + 1 : NULL;
    }
    return true;
}

static bool read_stdin(Text *out, Error *e) {
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
        text_add(out, buffer, n);
        if (out->length > MOST_BYTES)
            return error_input(e, "standard input has more than %zu bytes", MOST_BYTES);
    }
    if (ferror(stdin)) return error_system(e, "cannot read standard input");
    return !out->failed || error_system(e, "out of memory");
}

static bool read_text(const PromptSource *source, Text *out, Error *e) {
    if (source->file) {
        char *bytes;
        size_t n;
        if (!file_read(source->file, MOST_BYTES, &bytes, &n, e)) return false;
        text_add(out, bytes, n);
        mem_free(bytes);
    } else if (source->text && strcmp(source->text, "-") == 0) return read_stdin(out, e);
    else if (source->text) text_puts(out, source->text);
    else
        return error_input(e,
                           "there is no prompt: give a text, -f FILE, - for standard input, or --ids 1,2,3");
    return !out->failed || error_system(e, "out of memory");
}

bool prompt_read(const PromptSource *source, const Tokenizer *tokenizer, IdList *out, Error *e) {
    if (source->ids) return parse_ids(source->ids, out, e);
    Text text = {0};
    bool ok = read_text(source, &text, e);
    if (ok && !tokenizer)
        ok = error_input(e, "the model has no tokenizer.json: give the prompt as --ids 1,2,3");
    ok = ok && tokenizer_encode(tokenizer, text_get(&text), text.length, true, out, e);
    text_release(&text);
    return ok;
}
