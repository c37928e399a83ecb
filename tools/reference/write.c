// Documents of a grammar (its files one after another) to standard output:
//
//     write text COUNT SEED GRAMMAR...                   to learn from, each ended by a line <|end|>
//     write held-out COUNT SEED NAME TASK GRAMMAR...     prompts of a set NAME as JSON Lines, of documents
//     whose
//                                                        structure is in no text to learn from
#include "engine/base/error.h"
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "tools/reference/grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One structure in this many is held out.
enum { HELD_OUT_ONE_IN = 50, OTHERS_MOST = 100 * HELD_OUT_ONE_IN, GRAMMAR_MOST = 1 << 20 };

static void json_text(const char *s, size_t n) {
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\n') fputs("\\n", stdout);
        else {
            if (s[i] == '"' || s[i] == '\\') putchar('\\');
            putchar(s[i]);
        }
    }
    putchar('"');
}

typedef struct Set {
    const char *name, *task; // NULL: text to learn from
} Set;

static void print_row(const Document *d, Set set, long number) {
    const char *s = text_get(&d->text);
    printf("{\"id\": \"%s-%02ld\", \"task\": \"%s\", \"prompt\": ", set.name, number, set.task);
    json_text(s, d->cut);
    fputs(", \"reference\": ", stdout);
    const size_t space = s[d->cut] == ' '; // a model's first token brings it
    json_text(s + d->cut + space, d->text.length - d->cut - space);
    puts("}");
}

static bool write_all(const Grammar *g, long count, uint64_t seed, Set set, Error *e) {
    Document d = {0};
    Random r = {.seed = seed, .stream = set.name != NULL};
    bool ok = true;
    for (long written = 0, others = 0; ok && written < count;) {
        ok = grammar_write(g, "document", &r, &d, e);
        if (!ok) break;
        if ((d.structure % HELD_OUT_ONE_IN == 0) != (set.name != NULL)) {
            ok =
                ++others < OTHERS_MOST || error_input(e, "all structures are on the other side of the split");
            continue;
        }
        written++;
        others = 0;
        if (set.name) print_row(&d, set, written);
        else printf("%s\n<|end|>\n", text_get(&d.text));
    }
    document_release(&d);
    return ok;
}

static bool read_all(int count, char **paths, Text *out, Error *e) {
    for (int i = 0; i < count; i++) {
        char *bytes;
        size_t size;
        if (!file_read(paths[i], GRAMMAR_MOST, &bytes, &size, e)) return false;
        text_add(out, bytes, size);
        mem_free(bytes);
    }
    return true;
}

int main(int argc, char **argv) {
    Error e = {0};
    Text bytes = {0};
    Grammar *g = NULL;
    const bool text = argc > 4 && strcmp(argv[1], "text") == 0,
               held_out = argc > 6 && strcmp(argv[1], "held-out") == 0;
    const int first = held_out ? 6 : 4;
    if (!text && !held_out) {
        fputs("usage: write text COUNT SEED GRAMMAR... | held-out COUNT SEED NAME TASK GRAMMAR...\n", stderr);
        return 2;
    }
    bool ok = read_all(argc - first, argv + first, &bytes, &e) &&
              (g = grammar_parse(text_get(&bytes), bytes.length, argv[argc - 1], &e)) &&
              write_all(g, strtol(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
                        held_out ? (Set){argv[4], argv[5]} : (Set){0}, &e);
    if (ok && fflush(stdout) != 0) ok = error_system(&e, "cannot write documents");
    if (!ok) fprintf(stderr, "write: %s\n", e.text);
    grammar_close(g);
    text_release(&bytes);
    return ok ? 0 : error_exit_code(&e);
}
