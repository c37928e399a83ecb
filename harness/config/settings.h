// What a point sets beside its method: where and how the model runs, and what is generated. Each row is a
// parameter like a method's (engine/base/args.h) and so may be an axis: of the whole experiment, or of one
// method.
#pragma once
#include "engine/base/args.h"

typedef struct Settings {
    // hardware
    char device[ARG_TEXT_SIZE]; // cpu, cuda[:n], "cuda:0+cuda:1", auto, null
    int math;                   // SettingsMath
    int compute;                // SettingsCompute
    int threads;                // 0: one a core
    int layout;                 // Layout (engine/core/tree.h)
    bool merge;                 // equal prefixes run once
    int max_rows;               // of a step; 0: as many as a method asks for
    bool sliding_window;        // off: as if the model had none
    int weights;                // SettingsWeights
    int attention;              // SettingsAttention
    // generation
    int max_tokens;
    double temperature; // 0 is greedy
    int top_k;          // 0: off
    double top_p;       // 1: off
    int seed;
    bool ignore_eos;
} Settings;

typedef enum { MATH_EXACT, MATH_FAST } SettingsMath;           // FAST: may differ with the number of rows
typedef enum { WEIGHTS_MAPPED, WEIGHTS_HELD } SettingsWeights; // HELD: in memory of our own (engine.h)
typedef enum { ATTENTION_FLASH, ATTENTION_PLAIN } SettingsAttention; // PLAIN: BackendOptions.plain
typedef enum { SETTINGS_AS_STORED, SETTINGS_F32, SETTINGS_BF16, SETTINGS_F16 } SettingsCompute;

// The rows of a section of the config.
typedef struct SettingsSection {
    const char *name;
    const Arg *params;
    size_t count;
} SettingsSection;

enum { SETTINGS_SECTIONS = 2 };
extern const SettingsSection settings_sections[SETTINGS_SECTIONS]; // hardware, generation

// The rows of both, in that order.
extern const Arg *const settings_params;
extern const size_t settings_count;

// As --compute names it; NULL: as the weights.
const char *settings_compute(const Settings *s);

// Writes them as param_write does, but of weights only that they are held, and of attention that it is plain:
// so points have the hashes that they had before there was a choice, and are found again in older stores.
void settings_describe(const Settings *s, Text *out);
