// Describes methods and their parameters, from the rows that parse them.
#include "harness/cli/command.h"

#include "engine/decode/method.h"
#include "harness/cli/terminal.h"

#include <stdio.h>

static bool run(int argc, char **argv, int *code, Error *e) {
    (void)code;
    Words rest;
    bool stop;
    if (!command_parse(&command_methods, argc, argv, NULL, &rest, &stop, e)) return false;
    if (stop) return true;
    size_t count;
    Text text = {0};
    const MethodInfo *const *table = method_table(&count);
    if (rest.count == 0)
        for (size_t i = 0; i < count; i++) method_describe(table[i], &text);
    for (int i = 0; i < rest.count; i++) {
        const MethodInfo *info = method_find(rest.items[i], e);
        if (!info) return false;
        method_describe(info, &text);
    }
    terminal_print(&text);
    return true;
}

const Command command_methods = {
    .name = "methods",
    .usage = "[NAME...]",
    .summary = "list the decoding methods and their parameters",
    .arguments = {0, WORDS_MAX},
    .lesson =
        "Lists the methods, or those named, with a line a parameter: name, range, default, meaning.\n"
        "Give parameters after the method's name:\n"
        "  outpace generate MODEL \"Hello\" --method prompt-lookup:ngram_max=2,draft=8\n"
        "A mix puts several into one tree. Each has its parameters in parentheses, and the whole is written\n"
        "in quotes, since a shell reads parentheses itself; of the rows left each may use an equal part,\n"
        "in turn:\n"
        "  outpace generate MODEL \"Hello\" --method 'mix:ngrammys(k=5,w=4)+lookahead(W=7,G=7),rows=64'\n",
    .run = run};
