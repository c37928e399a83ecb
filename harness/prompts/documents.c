#include "harness/prompts/documents.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <glob.h>
#include <string.h>

static const size_t MOST_BYTES = (size_t)4 << 30;

// The first line of text that is the separator; n if there is none.
static size_t find_separator(const char *text, size_t n, const char *separator) {
    size_t length = strlen(separator);
    for (size_t i = 0; i < n;) {
        const char *end = memchr(text + i, '\n', n - i);
        size_t line = end ? (size_t)(end - text) - i : n - i;
        if (line == length && memcmp(text + i, separator, length) == 0) return i;
        i += line + 1;
    }
    return n;
}

static bool split(const char *text, size_t n, const char *separator, TakeDocument *take, void *state,
                  Error *e) {
    for (size_t from = 0; from < n;) {
        size_t length = separator ? find_separator(text + from, n - from, separator) : n;
        size_t shown = length && text[from + length - 1] == '\n' && separator ? length - 1 : length;
        if (shown && !take(state, text + from, shown, e)) return false;
        from += length + (separator ? strlen(separator) + 1 : 0);
    }
    return true;
}

static bool read_one(const char *path, const char *separator, TakeDocument *take, void *state, Error *e) {
    char *text;
    size_t n;
    if (!file_read(path, MOST_BYTES, &text, &n, e)) return false;
    bool ok = split(text, n, separator, take, state, e);
    mem_free(text);
    return ok;
}

bool documents_read(const char *const *patterns, int count, const char *separator, TakeDocument *take,
                    void *state, Error *e) {
    bool ok = true;
    for (int i = 0; ok && i < count; i++) {
        glob_t found;
        int why = glob(patterns[i], 0, NULL, &found);
        if (why == GLOB_NOMATCH) return error_input(e, "there is no file '%s'", patterns[i]);
        if (why) return error_system(e, "cannot list the files '%s'", patterns[i]);
        for (size_t k = 0; ok && k < found.gl_pathc; k++)
            ok = read_one(found.gl_pathv[k], separator, take, state, e);
        globfree(&found);
    }
    return ok;
}
