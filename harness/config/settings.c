// See settings.h. Stored points are found by hashes of the rows' text: a new row is `added`
// (engine/base/args.h).
#include "harness/config/settings.h"

#define AT(name) offsetof(Settings, name)
static const Arg GENERATION[] = {
    {"max_tokens", ARG_INT, AT(max_tokens), 1, 1 << 24, "128", .help = "generated at most"},
    {"temperature", ARG_REAL, AT(temperature), 0, 100, "0", .help = "0 is greedy"},
    {"top_k", ARG_INT, AT(top_k), 0, 1 << 24, "0", .help = "sample from the likeliest; 0 is off"},
    {"top_p", ARG_REAL, AT(top_p), 0, 1, "1", .help = "sample from the likeliest that hold so much"},
    {"seed", ARG_INT, AT(seed), 0, 1 << 30, "0", .help = "of everything random"},
    {"ignore_eos", ARG_FLAG, AT(ignore_eos), .fallback = "off",
     .help = "go on after the end-of-sequence token"},
    VERIFICATION_OPTION(AT(verification)),
};
_Static_assert(sizeof(Verification) == sizeof(int), "a choice is stored as an int");
_Static_assert(AT(engine) == 0, "the rows of MODEL_OPTIONS begin elsewhere");
#undef AT

const SettingsSection settings_sections[SETTINGS_SECTIONS] = {
    {"hardware", MODEL_OPTIONS, MODEL_SETTINGS},
    {"generation", GENERATION, sizeof GENERATION / sizeof *GENERATION},
};

const Arg *settings_find(const char *name) {
    const Arg *found = NULL;
    for (int i = 0; !found && i < SETTINGS_SECTIONS; i++)
        found = arg_find(settings_sections[i].params, settings_sections[i].count, name);
    return found;
}

void settings_defaults(Settings *out) {
    *out = (Settings){.max_tokens = 0};
    for (int i = 0; i < SETTINGS_SECTIONS; i++)
        args_defaults(settings_sections[i].params, settings_sections[i].count, out);
}

void settings_describe(const Settings *s, Text *out) {
    for (int i = 0; i < SETTINGS_SECTIONS; i++) {
        if (i) text_puts(out, ",");
        args_write(settings_sections[i].params, settings_sections[i].count, s, out);
    }
}
