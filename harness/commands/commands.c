// The table of the subcommands, in the order of --help: main finds them here, and completions describe them.
#include "harness/cli/command.h"

#include "engine/base/shipped.h"

#include <stddef.h>

// clang-format off
const Command *const commands[] = {
    &command_generate, &command_verify, &command_methods, &command_run, &command_plan, &command_status,
    &command_show, &command_compare,
    &command_report, &command_plot, &command_table, &command_sql, &command_store,
    &command_bench, &command_fit, &command_simulate, &command_tune, &command_replay, &command_doctor,
    &command_model, &command_quality, &command_tokenizer, &command_train, &command_datasets,
    &command_completions, &command_schema, NULL,
};
// clang-format on

const char *command_group(size_t i) {
    static const struct {
        const Command *first;
        const char *heading;
    } GROUPS[] = {{&command_generate, "Decode, and compare methods"},
                  {&command_report, "Results"},
                  {&command_bench, "Costs and prices"},
                  {&command_model, "Models and texts"},
                  {&command_completions, "For shells and editors"}};
    for (size_t g = 0; g < sizeof GROUPS / sizeof *GROUPS; g++)
        if (GROUPS[g].first == commands[i]) return GROUPS[g].heading;
    return NULL;
}

EMBED(lessons, "harness/commands/lessons.txt")

void command_lesson(const char *name, Text *out) {
    LOCAL_TEXT heading = {0};
    text_printf(&heading, "\n\n== %s\n", name);
    const char *lesson = strstr(lessons, text_get(&heading));
    if (lesson) {
        lesson += heading.length;
        const char *next = strstr(lesson, "\n\n== ");
        text_add(out, lesson, next ? (size_t)(next + 1 - lesson) : strlen(lesson));
    }
}

void command_sets(const Command *c, ArgSet out[COMMAND_SETS]) {
    out[0] = (ArgSet){c->options, c->option_count, 0, NULL};
    out[1] = c->shared;
}
