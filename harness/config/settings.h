// A point's settings besides its method: where and how the model runs, and what is generated. Each row is a
// parameter like a method's (engine/base/args.h) and so may be an axis: of the whole experiment, or of one
// method.
#pragma once
#include "engine/decode/verify.h"
#include "engine/options.h"

typedef struct Settings {
    EngineOptions engine; // hardware: first, so that rows of both sections set a Settings
    // generation
    int max_tokens;
    double temperature; // 0 is greedy
    int top_k;          // 0: off
    double top_p;       // 1: off
    int seed;
    bool ignore_eos;
    Verification verification; // TOKEN where a method never drafts a chain (sweep.c)
} Settings;

// The row of this setting, here and in commands that decode.
#define VERIFICATION_OPTION(at)                                                     \
    {                                                                               \
        "verification", ARG_CHOICE, at,                                             \
            .fallback = "token", .choices = verification_names, .added = true,      \
            .help = "block: judge a drawn chain as a whole (methods that have one)" \
    }

// The rows of a section of the config.
typedef struct SettingsSection {
    const char *name;
    const Arg *params;
    size_t count;
} SettingsSection;

enum { SETTINGS_SECTIONS = 2 };
extern const SettingsSection settings_sections[SETTINGS_SECTIONS]; // hardware, generation

const Arg *settings_find(const char *name); // in any section; NULL: there is none
void settings_defaults(Settings *out);
void settings_describe(const Settings *s, Text *out); // all, as args_write: a part of a point's hash
