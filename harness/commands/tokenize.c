// Shows what a model's tokenizer makes of a text: ids, pieces, and the text that comes back.
#include "harness/program/command.h"

#include "engine/base/memory.h"
#include "engine/text/template.h"
#include "harness/prompts/prompt.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *file, *ids, *template, *system;
    bool no_special, json;
} TokenizeOptions;

#define AT(name) offsetof(TokenizeOptions, name)
static const Option OPTIONS[] = {
    {"file", 'f', OPTION_TEXT, AT(file), 0, 0, "FILE", "read the text from a file", NULL},
    {"ids", 0, OPTION_TEXT, AT(ids), 0, 0, "1,2,3", "the other way: decode these ids", NULL},
    {"template", 0, OPTION_TEXT, AT(template), 0, 0, "NAME", "put the text into a chat template", "none"},
    {"system", 0, OPTION_TEXT, AT(system), 0, 0, "TEXT", "the template's system text", "the template's own"},
    {"no-special", 0, OPTION_FLAG, AT(no_special), 0, 0, NULL, "put no BOS before the text", NULL},
    {"json", 0, OPTION_FLAG, AT(json), 0, 0, NULL, "print one JSON object", NULL},
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
    return json_pack("{s:o, s:o, s:o}", "ids", numbers, "pieces", pieces, "text", decoded);
}

// One line per field: the ids as --ids takes them, the rest in JSON's quotes.
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

static bool check_ids(const Tokenizer *t, const IdList *ids, Error *e) {
    for (size_t i = 0; i < ids->count; i++)
        if (ids->ids[i] >= tokenizer_size(t))
            return error_input(e, "--ids has %d, the largest id of the tokenizer is %d", ids->ids[i],
                               tokenizer_size(t) - 1);
    return true;
}

static bool show(const Tokenizer *t, const PromptSource *source, bool as_json, Error *e) {
    IdList ids = {0};
    Text text = {0};
    json_t *result = NULL;
    bool ok = prompt_read(source, t, &ids, e) && check_ids(t, &ids, e) &&
              tokenizer_decode(t, ids.ids, ids.count, true, &text, e);
    if (ok) result = result_json(t, &ids, &text);
    if (ok && !result) ok = error_system(e, "out of memory for %zu tokens", ids.count);
    if (ok && as_json) {
        json_dumpf(result, stdout, 0);
        puts("");
    } else if (ok) print_lines(&ids, result);
    json_decref(result);
    text_release(&text);
    ids_release(&ids);
    return ok;
}

static bool check_options(const TokenizeOptions *o, const Positionals *rest, Error *e) {
    if (rest->count > 2)
        return error_input(e, "tokenize: '%s' is one argument too many; put the text in quotes",
                           rest->items[2]);
    if ((rest->count == 2) + (o->file != NULL) + (o->ids != NULL) > 1)
        return error_input(e, "tokenize: give one text only: an argument, -f FILE or --ids");
    return true;
}

static bool run(int argc, char **argv, int *code, Error *e) {
    TokenizeOptions o = {.file = NULL};
    Positionals rest;
    bool stop;
    (void)code;
    if (!command_parse(&command_tokenize, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    if (!check_options(&o, &rest, e)) return false;
    PromptSource source = {.text = rest.count > 1 ? rest.items[1] : NULL,
                           .file = o.file,
                           .ids = o.ids,
                           .template = o.template,
                           .system = o.system,
                           .no_special = o.no_special};
    Tokenizer *t = tokenizer_open(rest.items[0], e);
    bool ok = t && show(t, &source, o.json, e);
    tokenizer_close(t);
    return ok;
}

const Command command_tokenize = {
    .name = "tokenize",
    .usage = "MODEL [TEXT | -f FILE | - | --ids 1,2,3] [OPTIONS]",
    .summary = "show a text's tokens, or the text of tokens",
    .arguments = {1, POSITIONALS_MAX},
    .lesson =
        "Prints the ids that MODEL's tokenizer.json or tokenizer.model gives a text, their pieces, and the\n"
        "text that they decode to (without special tokens). The weights are not read.\n"
        "\n"
        "  outpace tokenize MODEL \"Hello world\"\n"
        "  outpace tokenize MODEL -f prompt.txt --template llama-2 --system \"Be brief.\" --json\n"
        "  outpace tokenize MODEL --ids 1,257,300\n"
        "\n"
        "Templates: none, vicuna, llama-2, codellama, mistral, phi-3, llama-3, qwen-2.5, qwen-3.\n"
        "A text that is rendered already needs none; if it starts with the BOS it is not given a second\n"
        "one.\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};
