// Tokenizers: a text's tokens, the text of tokens, and a tokenizer learnt from text.
#include "harness/cli/command.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/output.h"
#include "engine/text/tokenizer.h"
#include "engine/train/trainer.h"
#include "harness/cli/terminal.h"
#include "harness/inputs/prompts.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- encode and decode

typedef struct {
    PromptSource from;
    bool json;
} EncodeOptions;

#define AT(name) offsetof(EncodeOptions, name)
static const Arg ENCODE_OPTIONS[] = {
    {"file", ARG_WORD, AT(from.file), .help = "read the text from a file", .value = "FILE", .letter = 'f'},
    {"template", ARG_WORD, AT(from.template), .help = "put the text into a chat template",
     .value = "TEMPLATE", .fallback = "none"},
    {"system", ARG_WORD, AT(from.system), .help = "the template's system text", .value = "TEXT",
     .fallback = "the template's own"},
    {"no-special", ARG_FLAG, AT(from.no_special), .help = "don't put a BOS before the text"},
    {"json", ARG_FLAG, AT(json), .help = "print one JSON object"},
};
static const Arg DECODE_OPTIONS[] = {
    {"json", ARG_FLAG, AT(json), .help = "print one JSON object"},
};
#undef AT

static json_t *result_json(const Tokenizer *t, const IdList *ids, const Text *text) {
    json_t *numbers = json_array(), *pieces = json_array();
    for (size_t i = 0; i < ids->count; i++) {
        const char *piece = tokenizer_piece(t, ids->ids[i]);
        json_array_append_new(numbers, json_integer(ids->ids[i]));
        json_array_append_new(pieces, piece ? json_string(piece) : json_null());
    }
    json_t *decoded = json_stringn(text_get(text), text->length);
    return json_pack("{s:I, s:o, s:o, s:o}", "tokens", (json_int_t)ids->count, "ids", numbers, "pieces",
                     pieces, "text", decoded);
}

// One line per field: the ids as `decode` takes them, the rest in JSON's quotes.
static void print_lines(const IdList *ids, json_t *result) {
    const json_t *pieces = json_object_get(result, "pieces");
    printf("tokens  %zu\nids     ", ids->count);
    for (size_t i = 0; i < ids->count; i++) printf("%s%d", i ? "," : "", ids->ids[i]);
    printf("\npieces ");
    for (size_t i = 0; i < ids->count; i++) {
        putchar(' ');
        json_dumpf(json_array_get(pieces, i), stdout, JSON_ENCODE_ANY);
    }
    printf("\ntext    ");
    json_dumpf(json_object_get(result, "text"), stdout, JSON_ENCODE_ANY);
    puts("");
}

static bool show(const char *model, const EncodeOptions *o, Error *e) {
    LOCAL(ids_release) IdList ids = {0};
    LOCAL_TEXT text = {0};
    json_auto_t *result = NULL;
    Tokenizer *t = tokenizer_open(model, e);
    bool ok = t && prompt_read(&o->from, t, &ids, e);
    for (size_t i = 0; ok && i < ids.count; i++)
        if (ids.ids[i] >= tokenizer_size(t))
            ok = error_input(e, "id %d is too large: the tokenizer ends at %d", ids.ids[i],
                             tokenizer_size(t) - 1);
    ok = ok && tokenizer_decode(t, ids.ids, ids.count, true, &text, e);
    if (ok) result = result_json(t, &ids, &text);
    if (ok && o->json) {
        json_dumpf(result, stdout, 0);
        puts("");
    } else if (ok) print_lines(&ids, result);
    tokenizer_close(t);
    return ok;
}

static bool encode(void *options, CommandLine *line, Error *e) {
    EncodeOptions *o = options;
    const Words *words = &line->words;
    if (words->count > 2)
        return error_input(e, "tokenizer encode: '%s' is one argument too many; put the text in quotes",
                           words->items[2]);
    if (words->count == 2 && o->from.file)
        return error_input(e, "tokenizer encode: give one text only: an argument or -f FILE");
    o->from.text = words->items[1];
    return show(words->items[0], o, e);
}

const Command command_tokenizer_encode = {.name = "tokenizer encode",
                                          .usage = "MODEL [TEXT | -f FILE | -] [OPTIONS]",
                                          .summary = "print a text's tokens",
                                          .arguments = {1, WORDS_MAX},
                                          COMMAND_OPTIONS(ENCODE_OPTIONS, EncodeOptions),
                                          .run = encode};

static bool decode_ids(void *options, CommandLine *line, Error *e) {
    EncodeOptions *o = options;
    o->from.ids = line->words.items[1];
    return show(line->words.items[0], o, e);
}

const Command command_tokenizer_decode = {.name = "tokenizer decode",
                                          .usage = "MODEL 1,2,3 [--json]",
                                          .summary = "print the text of tokens",
                                          .arguments = {2, 2},
                                          COMMAND_OPTIONS(DECODE_OPTIONS, EncodeOptions),
                                          .run = decode_ids};

// --- train

typedef struct {
    int vocab;
    const char *out, *separator;
    bool force;
} TrainOptions;

#define AT(name) offsetof(TrainOptions, name)
static const Arg TRAIN_OPTIONS[] = {
    {"vocab", ARG_INT, AT(vocab), LEARN_MIN_VOCAB, 1 << 20, "2048", .help = "pieces to learn", .value = "N",
     .letter = 'n'},
    {"out", ARG_WORD, AT(out), .help = "the file to write", .value = "FILE", .fallback = "tokenizer.json",
     .literal = true, .letter = 'o'},
    ARG_FORCE(AT(force)),
    {"separator", ARG_WORD, AT(separator), .help = "the line that ends a document in the files",
     .value = "LINE"},
};
#undef AT

static bool take_document(void *state, const char *text, size_t n, UNUSED Error *e) {
    learner_add(state, text, n);
    return true;
}

// Only a file that this command wrote is replaced, and not one that a model was trained with ('outpace train'
// puts it next to the model's config).
static bool check(const TrainOptions *o, Output *out, const OutputKind *kind, Error *e) {
    LOCAL_MEMORY char *directory = file_directory(o->out), *config = file_path(directory, "config.json");
    bool of_model = file_exists(o->out) && file_exists(config) && !o->force;
    if (of_model)
        return error_input(
            e,
            "'%s' is the tokenizer of the model in its directory: give another path, or --force "
            "to replace it",
            o->out);
    return output_check(out, o->out, kind, e);
}

static bool train(void *options, CommandLine *line, Error *e) {
    const TrainOptions *o = options;
    const char *const *files = line->words.items;
    int count = line->words.count;
    // The beginning that learner_finish writes; other programs indent by two.
    static const OutputKind TOKENIZER = {.start = "{\n \"version\": \"1.0\",\n", .holds = "\"<unk>\""};
    LOCAL(output_release) Output out = {.force = o->force};
    for (int i = 0; i < count; i++) output_reads(&out, files[i]);
    Learner *l = learner_open();
    LOCAL_MEMORY char *json = NULL;
    if (check(o, &out, &TOKENIZER, e) && documents_read(files, count, o->separator, take_document, l, e))
        json = learner_finish(l, o->vocab, e);
    bool ok = json && output_add(&out, o->out, &TOKENIZER, json, strlen(json), e) && output_finish(&out, e);
    if (ok) fprintf(out.streamed ? stderr : stdout, "wrote %d pieces to %s\n", o->vocab, SHOWN(o->out));
    learner_close(l);
    return ok;
}

static const Command TRAIN = {.name = "tokenizer train",
                              .usage = "FILES... [--vocab N] [-o tokenizer.json]",
                              .summary = "learn a tokenizer from text",
                              .arguments = {1, WORDS_MAX},
                              .kept = "nothing is written",
                              COMMAND_OPTIONS(TRAIN_OPTIONS, TrainOptions),
                              .run = train};

const Command command_tokenizer = {
    .name = "tokenizer",
    .usage = "encode|decode|train ...",
    .summary = "print a text's tokens, or the text of tokens; learn a tokenizer",
    .parts = (const Command *const[]){&command_tokenizer_encode, &command_tokenizer_decode, &TRAIN, NULL}};
