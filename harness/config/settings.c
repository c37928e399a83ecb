#include "harness/config/settings.h"

static const char *const MATHS[] = {"exact", "fast", NULL};
static const char *const COMPUTES[] = {"weights", "f32", "bf16", "f16", NULL};
static const char *const WEIGHTS[] = {"mapped", "held", NULL};
static const char *const ATTENTIONS[] = {"flash", "plain", NULL};
static const char *const LAYOUTS[] = {"tree", "batch", "copied", NULL};

#define AT(name) offsetof(Settings, name)
static const Param PARAMS[] = {
    {"device", PARAM_TEXT, AT(device), 0, 0, "cpu", NULL, "cpu, cuda[:n][+cuda:m], auto, null"},
    {"math", PARAM_CHOICE, AT(math), 0, 0, "exact", MATHS, "fast: sums may depend on the step's rows"},
    {"compute", PARAM_CHOICE, AT(compute), 0, 0, "weights", COMPUTES, "how activations enter products"},
    {"threads", PARAM_INT, AT(threads), 0, 1024, "0", NULL, "0: one a core"},
    {"layout", PARAM_CHOICE, AT(layout), 0, 0, "tree", LAYOUTS, "how rows share the context"},
    {"merge", PARAM_BOOL, AT(merge), 0, 0, "on", NULL, "equal prefixes run once"},
    {"max_rows", PARAM_INT, AT(max_rows), 0, 1024, "0", NULL, "of a step; 0: as many as a method asks for"},
    {"sliding_window", PARAM_BOOL, AT(sliding_window), 0, 0, "on", NULL, "off: as if the model had none"},
    {"weights", PARAM_CHOICE, AT(weights), 0, 0, "mapped", WEIGHTS, "held: in huge pages of our own; cpu"},
    {"attention", PARAM_CHOICE, AT(attention), 0, 0, "flash", ATTENTIONS,
     "plain: scores go through memory; cpu, null"},
    {"max_tokens", PARAM_INT, AT(max_tokens), 1, 1 << 24, "128", NULL, "generated at most"},
    {"temperature", PARAM_REAL, AT(temperature), 0, 100, "0", NULL, "0 is greedy"},
    {"top_k", PARAM_INT, AT(top_k), 0, 1 << 24, "0", NULL, "sample from the likeliest; 0 is off"},
    {"top_p", PARAM_REAL, AT(top_p), 0, 1, "1", NULL, "sample from the likeliest that hold so much"},
    {"seed", PARAM_INT, AT(seed), 0, 1 << 30, "0", NULL, "of everything random"},
    {"ignore_eos", PARAM_BOOL, AT(ignore_eos), 0, 0, "off", NULL, "go on after the end-of-sequence token"},
};
#undef AT
enum { HARDWARE_COUNT = 10, FIRST_COUNT = 8, COUNT = sizeof PARAMS / sizeof *PARAMS };

const SettingsSection settings_sections[SETTINGS_SECTIONS] = {
    {"hardware", PARAMS, HARDWARE_COUNT},
    {"generation", PARAMS + HARDWARE_COUNT, COUNT - HARDWARE_COUNT},
};

const Param *const settings_params = PARAMS;
const size_t settings_count = COUNT;

const char *settings_compute(const Settings *s) {
    return s->compute == SETTINGS_AS_STORED ? NULL : COMPUTES[s->compute];
}

void settings_describe(const Settings *s, Text *out) {
    param_write(PARAMS, FIRST_COUNT, s, out);
    text_puts(out, ",");
    for (size_t i = FIRST_COUNT; i < HARDWARE_COUNT; i++) {
        if (i == FIRST_COUNT ? s->weights == WEIGHTS_MAPPED : s->attention == ATTENTION_FLASH) continue;
        param_write(PARAMS + i, 1, s, out);
        text_puts(out, ",");
    }
    param_write(PARAMS + HARDWARE_COUNT, COUNT - HARDWARE_COUNT, s, out);
}
