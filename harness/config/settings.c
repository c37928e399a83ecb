#include "harness/config/settings.h"

static const char *const MATHS[] = {"exact", "fast", NULL};
static const char *const COMPUTES[] = {"weights", "f32", "bf16", "f16", NULL};
static const char *const WEIGHTS[] = {"mapped", "held", NULL};
static const char *const ATTENTIONS[] = {"flash", "plain", NULL};
static const char *const LAYOUTS[] = {"tree", "batch", "copied", NULL};

#define AT(name) offsetof(Settings, name)
static const Arg PARAMS[] = {
    {"device", ARG_TEXT, AT(device), .fallback = "cpu", .help = "cpu, cuda[:n][+cuda:m], auto, null"},
    {"math", ARG_CHOICE, AT(math), .fallback = "exact", .choices = MATHS,
     .help = "fast: sums may depend on the step's rows"},
    {"compute", ARG_CHOICE, AT(compute), .fallback = "weights", .choices = COMPUTES,
     .help = "how activations enter products"},
    {"threads", ARG_INT, AT(threads), 0, 1024, "0", .help = "0: one a core"},
    {"layout", ARG_CHOICE, AT(layout), .fallback = "tree", .choices = LAYOUTS,
     .help = "how rows share the context"},
    {"merge", ARG_FLAG, AT(merge), .fallback = "on", .help = "equal prefixes run once"},
    {"max_rows", ARG_INT, AT(max_rows), 0, 1024, "0", .help = "of a step; 0: as many as a method asks for"},
    {"sliding_window", ARG_FLAG, AT(sliding_window), .fallback = "on",
     .help = "off: as if the model had none"},
    {"weights", ARG_CHOICE, AT(weights), .fallback = "mapped", .choices = WEIGHTS,
     .help = "held: in huge pages of our own; cpu"},
    {"attention", ARG_CHOICE, AT(attention), .fallback = "flash", .choices = ATTENTIONS,
     .help = "plain: scores go through memory; cpu, null"},
    {"max_tokens", ARG_INT, AT(max_tokens), 1, 1 << 24, "128", .help = "generated at most"},
    {"temperature", ARG_REAL, AT(temperature), 0, 100, "0", .help = "0 is greedy"},
    {"top_k", ARG_INT, AT(top_k), 0, 1 << 24, "0", .help = "sample from the likeliest; 0 is off"},
    {"top_p", ARG_REAL, AT(top_p), 0, 1, "1", .help = "sample from the likeliest that hold so much"},
    {"seed", ARG_INT, AT(seed), 0, 1 << 30, "0", .help = "of everything random"},
    {"ignore_eos", ARG_FLAG, AT(ignore_eos), .fallback = "off",
     .help = "go on after the end-of-sequence token"},
};
#undef AT
enum { HARDWARE_COUNT = 10, FIRST_COUNT = 8, COUNT = sizeof PARAMS / sizeof *PARAMS };

const SettingsSection settings_sections[SETTINGS_SECTIONS] = {
    {"hardware", PARAMS, HARDWARE_COUNT},
    {"generation", PARAMS + HARDWARE_COUNT, COUNT - HARDWARE_COUNT},
};

const Arg *const settings_params = PARAMS;
const size_t settings_count = COUNT;

const char *settings_compute(const Settings *s) {
    return s->compute == SETTINGS_AS_STORED ? NULL : COMPUTES[s->compute];
}

void settings_describe(const Settings *s, Text *out) {
    args_write(PARAMS, FIRST_COUNT, s, out);
    text_puts(out, ",");
    for (size_t i = FIRST_COUNT; i < HARDWARE_COUNT; i++) {
        if (i == FIRST_COUNT ? s->weights == WEIGHTS_MAPPED : s->attention == ATTENTION_FLASH) continue;
        args_write(PARAMS + i, 1, s, out);
        text_puts(out, ",");
    }
    args_write(PARAMS + HARDWARE_COUNT, COUNT - HARDWARE_COUNT, s, out);
}
