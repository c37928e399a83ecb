// The table of the subcommands, in the order of --help: main finds them here, and completions describe them.
#include "harness/cli/command.h"

const Command *const commands[] = {
    &command_generate, &command_verify,   &command_methods,
    &command_model,    &command_quality,  &command_tokenizer,
    &command_train,    &command_run,      &command_plan,
    &command_status,   &command_show,     &command_compare,
    &command_table,    &command_plot,     &command_report,
    &command_sql,      &command_store,    &command_bench,
    &command_fit,      &command_simulate, &command_replay,
    &command_tune,     &command_datasets, &command_completions,
    &command_schema,   &command_doctor,   NULL,
};

void command_sets(const Command *c, ArgSet out[COMMAND_SETS]) {
    out[0] = (ArgSet){c->options, c->option_count, 0, NULL};
    out[1] = c->shared;
}
