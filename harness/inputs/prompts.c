// Every source is read whole, up to a limit in bytes, before a token is made of it: a pipe or a file that is
// too large is an error, never a cut prompt.
#include "harness/inputs/prompts.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/random.h"

#include <errno.h>
#include <glob.h>
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
        ids_add(out, (int)id);
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
    return true;
}

static bool read_text(const PromptSource *source, Text *out, Error *e) {
    struct stat st;
    bool is_pipe = source->file && stat(source->file, &st) == 0 && S_ISFIFO(st.st_mode); // <(command)
    if (is_pipe) {
        FILE *in = fopen(source->file, "re");
        if (!in) return error_input(e, "cannot open '%s': %s", source->file, strerror(errno));
        bool ok = read_stream(in, source->file, out, e);
        fclose(in);
        return ok;
    }
    if (source->file) {
        LOCAL_MEMORY char *bytes = NULL;
        size_t n;
        if (!file_read(source->file, MOST_BYTES, &bytes, &n, e)) return false;
        text_add(out, bytes, n);
    } else if (source->text && strcmp(source->text, "-") != 0) text_puts(out, source->text);
    else if (source->text || !isatty(STDIN_FILENO)) {
        if (!read_stream(stdin, "standard input", out, e)) return false;
    }
    if (!source->file && !source->text && !out->length)
        return error_input(e,
                           "there is no prompt: give a text, -f FILE, - for standard input, or --ids 1,2,3");
    return true;
}

static bool apply_template(const PromptSource *source, const Template *t, Text *text, Error *e) {
    Text rendered = {0};
    if (memchr(text_get(text), 0, text->length))
        return error_input(e, "a prompt with NUL bytes does not fit a template");
    bool ok = template_render(t, source->system, &(Turn){.user = text_get(text)}, 1, &rendered, e);
    text_release(text);
    *text = rendered;
    return ok;
}

// A text that starts with the tokenizer's prefix does not get that prefix twice.
bool prompt_encode(const Tokenizer *tokenizer, const char *text, size_t n, bool special, IdList *out,
                   Error *e) {
    int count;
    if (!tokenizer_encode(tokenizer, text, n, special, out, e)) return false;
    const int *prefix = tokenizer_prefix(tokenizer, &count);
    size_t ids = (size_t)count;
    if (!special || ids == 0 || out->count < 2 * ids ||
        memcmp(out->ids + ids, prefix, ids * sizeof *prefix) != 0)
        return true;
    out->count -= ids;
    memmove(out->ids, out->ids + ids, out->count * sizeof *out->ids);
    return true;
}

bool prompt_read(const PromptSource *source, const Tokenizer *tokenizer, IdList *out, Error *e) {
    const Template *t = source->template ? tokenizer_template(tokenizer, source->template, e) : NULL;
    if (source->template && !t) return false;
    if (source->system && !t) return error_input(e, "--system needs a --template to stand in");
    if (source->ids)
        return (!t || error_input(e, "--template is for texts, not for --ids")) &&
               parse_ids(source->ids, out, e);
    if (!tokenizer)
        return error_input(e, "the model has neither tokenizer.json nor tokenizer.model: "
                              "give the prompt as --ids 1,2,3");
    LOCAL_TEXT text = {0};
    bool special = !source->no_special && !(t && t->begin);
    return read_text(source, &text, e) && (!t || apply_template(source, t, &text, e)) &&
           prompt_encode(tokenizer, text_get(&text), text.length, special, out, e);
}

// Of a text, n bytes, in a template or, if it's NULL, as it is.
static bool encode_turn(const Tokenizer *tokenizer, const Template *t, const char *text, size_t n,
                        IdList *out, Error *e) {
    LOCAL_TEXT turn = {0}, rendered = {0};
    const Text *whole = t ? &rendered : &turn;
    text_add(&turn, text, n);
    return (!t || template_render(t, NULL, &(Turn){.user = text_get(&turn)}, 1, &rendered, e)) &&
           prompt_encode(tokenizer, text_get(whole), whole->length, !(t && t->begin), out, e);
}

bool prompt_of_dataset(const DatasetPrompt *p, const Tokenizer *tokenizer, const Template *template,
                       IdList *out, Error *e) {
    return encode_turn(tokenizer, template, p->turns[0], strlen(p->turns[0]), out, e);
}

const Template *prompt_template(const DatasetPrompt *p, const Tokenizer *tokenizer) {
    return p->asks ? tokenizer_template(tokenizer, TEMPLATE_OF_MODEL, NULL) : NULL;
}

// --- several prompts -------------------------------------------------------------------------------------

enum { RANDOM_LONGEST = 40 };

static const char *const OURS[] = {
    "What should I look at first when I visit a city that I do not know? Name three things and say why.",
    "def count_words(text):\n    \"\"\"Return a dictionary of how often each word stands in text.\"\"\"\n",
    "Question: A farmer has 17 sheep and buys 3 times as many. How many has he then? Answer:",
    ("Summarise in one sentence: The bridge was closed on Monday because of the flood. Engineers looked "
     "at its pillars on Tuesday and Wednesday, found no damage, and opened it again on Thursday morning."),
    "Write a short letter to a neighbour whose dog barks at night. Be friendly, and end with a suggestion.",
    "for (int i = 0; i < n; i++) {\n    total += values[i];\n}\nfor (int i = 0; i < n; i++) {\n    total",
    "Compute step by step: (12 + 8) * 3 - 14 / 2 =",
    ("Summarise: The meeting began at nine. The meeting ended at ten. The meeting was about the "
     "budget. The budget"),
};

static IdList *add_prompt(PromptList *list) {
    mem_grow(&list->prompts, &list->capacity, list->count + 1, sizeof *list->prompts);
    list->prompts[list->count] = (IdList){0};
    return &list->prompts[list->count++];
}

// One line: JSON if it begins as an object, else the text itself.
static bool add_line(PromptList *list, const Tokenizer *t, const Template *template, const char *line,
                     size_t n, const char *path, int number, Error *e) {
    if (line[0] != '{') return encode_turn(t, template, line, n, add_prompt(list), e);
    json_auto_t *row = json_from_bytes(line, n, path, e);
    const char *text = row ? field_text(row, "prompt", path, e) : NULL;
    return text ? encode_turn(t, template, text, strlen(text), add_prompt(list), e)
                : error_within(e, "line %d", number);
}

static bool read_lines(const char *path, const Tokenizer *t, const Template *template, size_t most,
                       PromptList *out, Error *e) {
    LOCAL_MEMORY char *bytes = NULL;
    size_t size;
    bool ok = true;
    if (!file_read(path, MOST_BYTES, &bytes, &size, e)) return false;
    int number = 1;
    for (size_t at = 0, n; ok && at < size && out->count < most; at += n + 1, number++) {
        const char *end = memchr(bytes + at, '\n', size - at);
        n = end ? (size_t)(end - bytes) - at : size - at;
        if (n) ok = add_line(out, t, template, bytes + at, n, path, number, e);
    }
    return ok &&
           (out->count || error_input(e, "'%s' has no prompt: give a line of text, or of JSON, each", path));
}

bool prompts_read(const char *path, const Tokenizer *tokenizer, const Template *template, size_t most,
                  PromptList *out, Error *e) {
    if (path) return read_lines(path, tokenizer, template, most, out, e);
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS && out->count < most; i++)
        if (!encode_turn(tokenizer, template, OURS[i], strlen(OURS[i]), add_prompt(out), e)) return false;
    return true;
}

bool prompts_of_dataset(const Dataset *d, const Tokenizer *tokenizer, const Template **template,
                        PromptList *out, Error *e) {
    const Template *named = *template;
    for (size_t i = 0; i < d->count; i++) {
        const Template *t = named ? named : prompt_template(&d->prompts[i], tokenizer);
        if (t) *template = t;
        if (!prompt_of_dataset(&d->prompts[i], tokenizer, t, add_prompt(out), e))
            return error_within(e, "'%s', prompt '%s'", d->name, d->prompts[i].id);
    }
    return true;
}

void prompts_random(int vocab, size_t count, uint64_t seed, PromptList *out) {
    Random r = {.seed = seed, .stream = STREAM_BENCH};
    for (size_t i = 0; i < count; i++) {
        IdList *ids = add_prompt(out);
        size_t n = 1 + random_below(&r, RANDOM_LONGEST);
        mem_grow(&ids->ids, &ids->capacity, n, sizeof *ids->ids);
        for (; ids->count < n; ids->count++) ids->ids[ids->count] = (int)random_below(&r, (uint32_t)vocab);
    }
}

void prompts_release(PromptList *list) {
    for (size_t i = 0; i < list->count; i++) ids_release(&list->prompts[i]);
    mem_free(list->prompts);
    *list = (PromptList){0};
}

// --- documents -------------------------------------------------------------------------------------------

static const size_t DOCUMENT_BYTES = (size_t)4 << 30;

// Returns where the first line that equals the separator begins; n if there is none.
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

static bool split_documents(const char *text, size_t n, const char *separator, TakeDocument *take,
                            void *state, Error *e) {
    for (size_t from = 0; from < n;) {
        size_t length = separator ? find_separator(text + from, n - from, separator) : n;
        size_t shown = length && text[from + length - 1] == '\n' && separator ? length - 1 : length;
        if (shown && !take(state, text + from, shown, e)) return false;
        from += length + (separator ? strlen(separator) + 1 : 0);
    }
    return true;
}

static bool read_documents(const char *path, const char *separator, TakeDocument *take, void *state,
                           Error *e) {
    LOCAL_MEMORY char *text = NULL;
    size_t n;
    if (!file_read(path, DOCUMENT_BYTES, &text, &n, e)) return false;
    return split_documents(text, n, separator, take, state, e);
}

bool documents_read(const char *const *patterns, int count, const char *separator, TakeDocument *take,
                    void *state, Error *e) {
    for (int i = 0; i < count; i++) {
        LOCAL(globfree) glob_t found = {0};
        int why = glob(patterns[i], 0, NULL, &found);
        if (why == GLOB_NOMATCH) return error_input(e, "there is no file '%s'", patterns[i]);
        if (why) return error_system(e, "cannot list the files '%s'", patterns[i]);
        for (size_t k = 0; k < found.gl_pathc; k++)
            if (!read_documents(found.gl_pathv[k], separator, take, state, e)) return false;
    }
    return true;
}
