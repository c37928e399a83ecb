// Learns a tokenizer from text files.
#include "harness/program/command.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/output.h"
#include "engine/text/learn.h"
#include "harness/program/terminal.h"
#include "harness/prompts/documents.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    int vocab;
    const char *out, *separator;
    bool force;
} TokenizerOptions;

#define AT(name) offsetof(TokenizerOptions, name)
static const Option OPTIONS[] = {
    {"vocab", 'n', OPTION_INT, AT(vocab), LEARN_MIN_VOCAB, 1 << 20, "N", "pieces to learn", "2048"},
    {"out", 'o', OPTION_TEXT, AT(out), 0, 0, "FILE", "where to write", "tokenizer.json"},
    OPTION_FORCE(AT(force)),
    {"separator", 0, OPTION_TEXT, AT(separator), 0, 0, "LINE", "the line that ends a document in the files",
     NULL},
};
#undef AT

static bool take_document(void *state, const char *text, size_t n, Error *e) {
    return learner_add(state, text, n, e);
}

// One that this command wrote, and that no model has been trained with: 'train' puts it beside the model's
// config.
static bool check(const TokenizerOptions *o, const Output *out, const OutputKind *kind, Error *e) {
    char *directory = file_directory(o->out),
         *config = directory ? file_path(directory, "config.json") : NULL;
    bool of_model = config && file_exists(o->out) && file_exists(config) && !o->force;
    mem_free(directory);
    mem_free(config);
    if (of_model)
        return error_input(
            e,
            "'%s' is the tokenizer of the model in its directory: give another path, or --force "
            "to replace it",
            o->out);
    return output_check(out, o->out, kind, e);
}

static bool train(const TokenizerOptions *o, const char *const *files, int count, Error *e) {
    // As learner_finish writes it; others indent by two.
    static const OutputKind TOKENIZER = {.start = "{\n \"version\": \"1.0\",\n", .holds = "\"<unk>\""};
    Output out = {.force = o->force};
    for (int i = 0; i < count; i++) output_reads(&out, files[i]);
    if (!check(o, &out, &TOKENIZER, e)) return false;
    Learner *l = learner_open(e);
    char *json = NULL;
    if (l && documents_read(files, count, o->separator, take_document, l, e))
        json = learner_finish(l, o->vocab, e);
    bool ok = json && output_add(&out, o->out, &TOKENIZER, json, strlen(json), e) && output_finish(&out, e);
    if (ok) fprintf(out.streamed ? stderr : stdout, "wrote %d pieces to %s\n", o->vocab, SHOWN(o->out));
    mem_free(json);
    learner_close(l);
    output_release(&out);
    return ok;
}

static bool run(int argc, char **argv, int *code, Error *e) {
    (void)code;
    TokenizerOptions o = {.vocab = 2048, .out = "tokenizer.json"};
    Positionals rest;
    bool stop;
    if (!command_parse(&command_tokenizer, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    return strcmp(rest.items[0], "train") == 0 ? train(&o, rest.items + 1, rest.count - 1, e)
                                               : command_misused(&command_tokenizer, e);
}

const Command command_tokenizer = {
    .name = "tokenizer",
    .usage = "train FILES... [--vocab N] [-o tokenizer.json]",
    .summary = "learn a tokenizer from text",
    .arguments = {2, POSITIONALS_MAX},
    .kept = "nothing is written",
    .lesson =
        "Learns a byte-fallback BPE of the Llama 2 kind: any text can be encoded, common words are one\n"
        "piece. The file loads in other programs too (Hugging Face tokenizers). A pattern in quotes names\n"
        "many files. A file that is not such a tokenizer is not replaced without --force.\n"
        "\n"
        "  outpace tokenizer train 'corpus/*.txt' --vocab 2048 -o tokenizer.json\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};
