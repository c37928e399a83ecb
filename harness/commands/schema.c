// Prints the JSON Schema of configs; and the keys of records, as docs/json.md has them.
#include "harness/cli/command.h"

#include "harness/cli/table.h"
#include "harness/config/experiment.h"

#include <stdio.h>
#include <string.h>

static void document(const Command *c, Text *out) {
    for (const TableForm *const *form = c->tables; form && *form; form++) table_document(*form, out);
    for (const Command *const *part = c->parts; part && *part; part++) document(*part, out);
}

static bool run(UNUSED void *options, CommandLine *line, Error *e) {
    LOCAL_TEXT text = {0};
    if (line->words.count && strcmp(line->words.items[0], "records") != 0)
        return command_misused(line->command, e);
    for (size_t i = 0; line->words.count && commands[i]; i++) document(commands[i], &text);
    if (!line->words.count) json_append(config_schema(), JSON_INDENT(1) | JSON_REAL_PRECISION(10), &text);
    puts(text_get(&text));
    return true;
}

const Command command_schema = {.name = "schema",
                                .usage = "[records]",
                                .summary = "print the JSON Schema of configs, for editors",
                                .arguments = {0, 1},
                                .run = run};
