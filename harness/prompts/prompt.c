#include "harness/prompts/prompt.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/text/template.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const size_t MOST_BYTES = 64u << 20;

static bool parse_ids(const char *text, IdList *out, Error *e) {
    for (const char *p = text; p;) {
        char *end;
        long id = strtol(p, &end, 10);
        if (end == p || id < 0 || id > INT_MAX || (*end && *end != ','))
            return error_input(e, "--ids must be numbers with commas between them, at '%.20s'", p);
        if (!ids_add(out, (int)id)) return error_system(e, "out of memory");
        p = *end ? end + 1 : NULL;
    }
    return true;
}

static bool read_stream(FILE *in, const char *name, Text *out, Error *e) {
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, in)) > 0;) {
        text_add(out, buffer, n);
        if (out->length > MOST_BYTES) return error_input(e, "%s has more than %zu bytes", name, MOST_BYTES);
    }
    if (ferror(in)) return error_system(e, "cannot read %s", name);
    return !out->failed || error_system(e, "out of memory");
}

// What a shell's <(command) names.
static bool is_pipe(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

static bool read_pipe(const char *path, Text *out, Error *e) {
    FILE *in = fopen(path, "re");
    if (!in) return error_input(e, "cannot open '%s': %s", path, strerror(errno));
    bool ok = read_stream(in, path, out, e);
    fclose(in);
    return ok;
}

static bool read_text(const PromptSource *source, Text *out, Error *e) {
    if (source->file && is_pipe(source->file)) return read_pipe(source->file, out, e);
    if (source->file) {
        char *bytes;
        size_t n;
        if (!file_read(source->file, MOST_BYTES, &bytes, &n, e)) return false;
        text_add(out, bytes, n);
        mem_free(bytes);
    } else if (source->text && strcmp(source->text, "-") != 0) text_puts(out, source->text);
    else if (source->text || !isatty(STDIN_FILENO)) {
        if (!read_stream(stdin, "standard input", out, e)) return false;
    }
    if (!source->file && !source->text && !out->length && !out->failed)
        return error_input(e,
                           "there is no prompt: give a text, -f FILE, - for standard input, or --ids 1,2,3");
    return !out->failed || error_system(e, "out of memory");
}

static bool apply_template(const PromptSource *source, const Template *t, Text *text, Error *e) {
    Text rendered = {0};
    if (memchr(text_get(text), 0, text->length))
        return error_input(e, "a prompt with NUL bytes fits no template");
    bool ok = template_render(t, source->system, &(Turn){.user = text_get(text)}, 1, &rendered, e);
    text_release(text);
    *text = rendered;
    return ok;
}

// What a text said itself at its start, and the tokenizer said before it, is said once.
static void drop_double_prefix(const Tokenizer *tokenizer, IdList *ids) {
    int count;
    const int *prefix = tokenizer_prefix(tokenizer, &count);
    size_t n = (size_t)count, bytes = n * sizeof *prefix;
    if (n == 0 || ids->count < 2 * n || memcmp(ids->ids + n, prefix, bytes) != 0) return;
    ids->count -= n;
    memmove(ids->ids, ids->ids + n, ids->count * sizeof *ids->ids);
}

bool prompt_encode(const Tokenizer *tokenizer, const char *text, size_t n, bool special, IdList *out,
                   Error *e) {
    if (!tokenizer_encode(tokenizer, text, n, special, out, e)) return false;
    if (special) drop_double_prefix(tokenizer, out);
    return true;
}

static bool encode_text(const PromptSource *source, const Tokenizer *tokenizer, const Template *t, Text *text,
                        IdList *out, Error *e) {
    bool special = !source->no_special && !(t && t->begin);
    return read_text(source, text, e) && (!t || apply_template(source, t, text, e)) &&
           prompt_encode(tokenizer, text_get(text), text->length, special, out, e);
}

bool prompt_read(const PromptSource *source, const Tokenizer *tokenizer, IdList *out, Error *e) {
    const Template *t = source->template ? template_find(source->template, e) : NULL;
    if (source->template && !t) return false;
    if (source->system && !t) return error_input(e, "--system needs a --template to stand in");
    if (source->ids)
        return (!t || error_input(e, "--template is for texts, not for --ids")) &&
               parse_ids(source->ids, out, e);
    Text text = {0};
    bool ok =
        tokenizer || error_input(e, "the model has neither tokenizer.json nor tokenizer.model: give the "
                                    "prompt as --ids 1,2,3");
    ok = ok && encode_text(source, tokenizer, t, &text, out, e);
    text_release(&text);
    return ok;
}
