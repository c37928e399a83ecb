// Prints the JSON Schema of configs; and the keys of records, as docs/json.md has them.
#include "harness/cli/command.h"

#include "harness/cli/table.h"
#include "harness/config/experiment.h"

#include <stdio.h>
#include <stdlib.h>

static bool run(int argc, char **argv, int *code, Error *e) {
    Words rest;
    bool stop;
    (void)code;
    if (!command_parse(&command_schema, argc, argv, NULL, &rest, &stop, e)) return false;
    if (stop) return true;
    json_t *schema = config_schema();
    json_dumpf(schema, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(10));
    puts("");
    json_decref(schema);
    return true;
}

static void document(const Command *c, Text *out) {
    for (const TableForm *const *form = c->tables; form && *form; form++) table_document(*form, out);
    for (const Command *const *part = c->parts; part && *part; part++) document(*part, out);
}

static const Command RECORDS;

static bool run_records(int argc, char **argv, int *code, Error *e) {
    Words rest;
    bool stop;
    Text text = {0};
    (void)code;
    if (!command_parse(&RECORDS, argc, argv, NULL, &rest, &stop, e)) return false;
    for (size_t i = 0; !stop && commands[i]; i++) document(commands[i], &text);
    fputs(text_get(&text), stdout);
    text_release(&text);
    return true;
}

static const Command RECORDS = {
    .name = "schema records",
    .usage = "",
    .summary = "print what the keys of --json mean, in Markdown",
    .arguments = {0, 0},
    .lesson = "Prints the tables of docs/json.md that commands make of their columns.\n",
    .run = run_records};

const Command command_schema = {
    .name = "schema",
    .usage = "[records]",
    .summary = "print the JSON Schema of configs, for editors",
    .arguments = {0, 0},
    .lesson = "Editors that know the schema complete a config's keys, methods and parameters, and mark\n"
              "mistakes. With yaml-language-server (VS Code, Neovim, Emacs, ..) the config names it in its\n"
              "first line:\n"
              "\n"
              "  outpace schema > outpace.schema.json\n"
              "  # yaml-language-server: $schema=outpace.schema.json\n"
              "\n"
              "'outpace plan CONFIG --check' checks more: that files exist, that keys go together.\n"
              "'outpace schema records' prints what the keys of --json mean, table by table.\n",
    .run = run,
    .parts = (const Command *const[]){&RECORDS, NULL}};
