// Describes methods and their parameters, from the rows that parse them.
#include "harness/cli/command.h"

#include "engine/decode/method.h"
#include "harness/cli/table.h"

#include <math.h>

static const Arg OPTIONS[] = {RECORDS_OPTIONS(0)};

static const Column COLUMNS[] = {
    {"method summary", .help = "the method"},
    {"parameter default low high meaning", .help = "a parameter, its default and its range"},
};
static const TableForm FORM = {"methods", TABLE_COLUMNS(COLUMNS)};

static bool run(void *options, CommandLine *line, Error *e) {
    Records *as = options;
    size_t count;
    Text text = {0};
    const MethodInfo *const *table = method_table(&count);
    for (int i = 0; i < line->words.count; i++)
        if (!method_find(line->words.items[i], e)) return false;
    RecordTable t = {.form = &FORM, .as = as};
    if (line->words.count) count = (size_t)line->words.count;
    for (size_t i = 0; i < count; i++) {
        const MethodInfo *m = line->words.count ? method_find(line->words.items[i], e) : table[i];
        if (!records_asked(as)) method_describe(m, &text);
        for (const Arg *a = m->params; records_asked(as) && a < m->params + m->param_count; a++) {
            bool number = a->type == ARG_INT || a->type == ARG_REAL;
            TABLE_ROW(&t, CELL(m->name), CELL(m->summary), CELL(a->name), CELL(a->fallback),
                      CELL(number ? a->low : NAN), CELL(number ? a->high : NAN), CELL(a->help));
        }
        if (records_asked(as) && m->param_count == 0) TABLE_ROW(&t, CELL(m->name), CELL(m->summary));
    }
    if (records_asked(as)) return table_end(&t, true, e);
    terminal_print(&text);
    return true;
}

const Command command_methods = {.name = "methods",
                                 .usage = "[METHOD...]",
                                 .summary = "list the decoding methods and their parameters",
                                 .arguments = {0, WORDS_MAX},
                                 COMMAND_OPTIONS(OPTIONS, Records),
                                 .run = run,
                                 .tables = TABLES(&FORM)};
