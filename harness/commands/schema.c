// Prints the JSON Schema of configs.
#include "harness/cli/command.h"

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

const Command command_schema = {
    .name = "schema",
    .usage = "",
    .summary = "print the JSON Schema of configs, for editors",
    .arguments = {0, 0},
    .lesson = "Editors that know the schema complete a config's keys, methods and parameters, and mark\n"
              "mistakes. With yaml-language-server (VS Code, Neovim, Emacs, ..) the config names it in its\n"
              "first line:\n"
              "\n"
              "  outpace schema > outpace.schema.json\n"
              "  # yaml-language-server: $schema=outpace.schema.json\n"
              "\n"
              "'outpace plan CONFIG --check' checks more: that files exist, that keys go together.\n",
    .run = run};
