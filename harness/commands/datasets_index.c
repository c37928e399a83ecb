// datasets index: texts tokenised and indexed for the method `rest`, which looks phrases up in them.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "engine/base/output.h"
#include "engine/decode/structures/datastore.h"
#include "engine/text/tokenizer.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const size_t MOST_BYTES = (size_t)4 << 30; // of one file of text

typedef struct {
    const char *output, *model;
    bool lines, force, info;
} DatastoreOptions;

#define AT(name) offsetof(DatastoreOptions, name)
static const Arg OPTIONS[] = {
    {"output", ARG_WORD, AT(output), .help = "the index to write", .value = "FILE", .letter = 'o'},
    {"model", ARG_WORD, AT(model), .help = "the model whose tokenizer is used", .value = "MODEL",
     .letter = 'm'},
    ARG_FORCE(AT(force)),
    {"info", ARG_FLAG, AT(info), .help = "print the contents of an index"},
    {"lines", ARG_FLAG, AT(lines), .help = "each line is a document; otherwise each file"},
};

// --- building

static const OutputKind DATASTORE = {.start = DATASTORE_START};

// Empty documents are left out.
static bool add_document(const Tokenizer *t, const char *text, size_t n, IdList *out, Error *e) {
    size_t before = out->count;
    if (!tokenizer_encode(t, text, n, false, out, e)) return false;
    if (out->count == before) return true;
    if (out->count >= INT_MAX)
        return error_input(e, "more than %d tokens: build several datastores", INT_MAX);
    ids_add(out, DATASTORE_BREAK);
    return true;
}

static bool add_lines(const Tokenizer *t, const char *text, size_t n, IdList *out, Error *e) {
    for (const char *line = text, *end = text + n; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) stop = end;
        if (!add_document(t, line, (size_t)(stop - line), out, e)) return false;
        line = stop + 1;
    }
    return true;
}

static bool build(const Words *files, const DatastoreOptions *o, Error *e) {
    LOCAL(ids_release) IdList ids = {0};
    LOCAL(output_release) Output out = {.force = o->force};
    if (!o->output || !o->model)
        return error_input(e, "datasets index: -o FILE and --model MODEL are missing");
    output_reads(&out, o->model);
    for (int i = 0; i < files->count; i++) output_reads(&out, files->items[i]);
    Tokenizer *t = output_check(&out, o->output, &DATASTORE, e) ? tokenizer_open(o->model, e) : NULL;
    bool ok = t != NULL;
    for (int i = 0; i < files->count && ok; i++) {
        LOCAL_MEMORY char *text = NULL;
        size_t n;
        if (!(ok = file_read(files->items[i], MOST_BYTES, &text, &n, e))) break;
        ok = (o->lines ? add_lines : add_document)(t, text, n, &ids, e) ||
             error_within(e, "'%s'", files->items[i]);
    }
    size_t n = 0;
    LOCAL_MEMORY unsigned char *bytes =
        ok ? datastore_make(ids.ids, (int)ids.count, tokenizer_size(t), &n, e) : NULL;
    ok = bytes && output_add(&out, o->output, &DATASTORE, bytes, n, e) && output_finish(&out, e);
    if (ok)
        fprintf(out.streamed ? stderr : stdout, "wrote %zu tokens of %d files to %s\n", ids.count,
                files->count, SHOWN(o->output));
    tokenizer_close(t);
    return ok;
}

// --- info

static bool info(const char *path, Error *e) {
    LOCAL(datastore_close) Datastore d = {0};
    int documents = 0;
    if (!datastore_open(&d, path, e)) return false;
    for (int i = 0; i < d.count; i++) documents += d.tokens[i] == DATASTORE_BREAK;
    printf("documents       %d\ntokens          %d\nvocabulary      %d\nbytes           %zu\n", documents,
           d.count - documents, d.vocab, d.view.size);
    return true;
}

static bool run(void *options, CommandLine *line, Error *e) {
    DatastoreOptions *o = options;
    return o->info ? info(line->words.items[0], e) : build(&line->words, o, e);
}

const Command command_datasets_index = {
    .name = "datasets index",
    .usage = "FILES... -o FILE --model MODEL | --info FILE",
    .summary = "index texts for the method 'rest', which looks phrases up in them",
    .arguments = {1, WORDS_MAX},
    .kept = "nothing is written",
    COMMAND_OPTIONS(OPTIONS, DatastoreOptions),
    .run = run};
