// Describes methods and their parameters, from the rows that parse them.
#include "harness/cli/command.h"

#include "harness/cli/records.h"
#include "engine/decode/method.h"
#include "harness/cli/terminal.h"

#include <stdio.h>

static const Arg OPTIONS[] = {RECORDS_OPTIONS(0)};

static json_t *bound(const Arg *a, double x) {
    return a->type == ARG_INT || a->type == ARG_REAL ? json_number(x) : json_null();
}

// A record a parameter; one of a method without any.
static void add_records(const MethodInfo *m, json_t *list) {
    for (size_t i = 0; i < m->param_count; i++) {
        const Arg *a = &m->params[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:s?, s:o, s:o, s:s}", "method", m->name, "summary",
                                        m->summary, "parameter", a->name, "default", a->fallback, "low",
                                        bound(a, a->low), "high", bound(a, a->high), "meaning", a->help));
    }
    if (m->param_count == 0)
        json_array_append_new(list, json_pack("{s:s, s:s}", "method", m->name, "summary", m->summary));
}

static void describe(const MethodInfo *m, const Records *as, json_t *list, Text *text) {
    if (records_asked(as)) add_records(m, list);
    else method_describe(m, text);
}

static bool run(int argc, char **argv, int *code, Error *e) {
    (void)code;
    Words rest;
    bool stop;
    Records as = {0};
    if (!command_parse(&command_methods, argc, argv, &as, &rest, &stop, e)) return false;
    if (stop) return true;
    size_t count;
    Text text = {0};
    const MethodInfo *const *table = method_table(&count);
    for (int i = 0; i < rest.count; i++)
        if (!method_find(rest.items[i], e)) return false;
    json_t *list = json_array();
    for (size_t i = 0; rest.count == 0 && i < count; i++) describe(table[i], &as, list, &text);
    for (int i = 0; i < rest.count; i++) describe(method_find(rest.items[i], e), &as, list, &text);
    if (records_asked(&as)) return records_print(list, NULL, &as, e);
    json_decref(list);
    terminal_print(&text);
    return true;
}

const Command command_methods = {
    .name = "methods",
    .usage = "[METHOD...]",
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
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};
