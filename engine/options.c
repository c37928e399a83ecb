// See options.h. A row's place is part of what stored hashes are made of: new ones go behind the older
// settings, and are `added`.
#include "engine/options.h"

#include "engine/core/step.h"

#include <stddef.h>
#include <string.h>

static const char *const MATHS[] = {"exact", "fast", NULL};
static const char *const COMPUTES[] = {"weights", "f32", "bf16", "f16", "int8", NULL};
static const char *const LAYOUTS[] = {"tree", "batch", "copied", NULL};
static const char *const WEIGHTS[] = {"mapped", "held", "exact", NULL};
static const char *const ATTENTIONS[] = {"flash", "plain", NULL};

// A choice is stored as an int.
_Static_assert(sizeof(Math) == sizeof(int) && sizeof(ComputeChoice) == sizeof(int) &&
                   sizeof(Layout) == sizeof(int) && sizeof(WeightsPlace) == sizeof(int) &&
                   sizeof(Attention) == sizeof(int),
               "an enum is not an int");

#define AT(name) offsetof(EngineOptions, name)
const Arg MODEL_OPTIONS[MODEL_OPTION_COUNT] = {
    {"device", ARG_TEXT, AT(device), .fallback = "cpu", .help = "cpu, cuda[:n][+cuda:m], auto, null",
     .value = "NAME"},
    {"math", ARG_CHOICE, AT(math), .fallback = "exact", .choices = MATHS,
     .help = "fast: products by cuBLASLt, on cuda; sums may depend on the step's rows"},
    {"compute", ARG_CHOICE, AT(compute), .fallback = "weights", .choices = COMPUTES,
     .help = "f32, bf16, f16, int8: how activations enter products", .value = "KIND"},
    {"threads", ARG_INT, AT(threads), 0, 1024, "0", .help = "0: one a core", .value = "N"},
    {"layout", ARG_CHOICE, AT(layout), .fallback = "tree", .choices = LAYOUTS,
     .help = "how rows share the context"},
    {"merge", ARG_NOT, AT(no_merge), .fallback = "on", .help = "equal prefixes run once"},
    {"max_rows", ARG_INT, AT(max_rows), 0, TREE_MAX_NODES, "0",
     .help = "of a step; 0: as many as a method asks for", .value = "N"},
    {"sliding_window", ARG_NOT, AT(no_window), .fallback = "on", .help = "off: as if the model had none"},
    {"weights", ARG_CHOICE, AT(weights), .fallback = "mapped", .choices = WEIGHTS, .added = true,
     .help = "held: in huge pages; cpu (docs/speed.md); exact: a GGUF's in f32 (models.md)"},
    {"attention", ARG_CHOICE, AT(attention), .fallback = "flash", .choices = ATTENTIONS, .added = true,
     .help = "plain: scores go through memory (docs/speed.md)"},
    {"batch", ARG_INT, AT(batch), 0, SEQUENCES_MAX, "0", .added = true,
     .help = "sequences that share each step (docs/speed.md); 0: one", .value = "B"},
    {"isa", ARG_WORD, AT(isa), .fallback = "the best there is", .help = "force a set of CPU kernels",
     .value = "NAME"},
    {"context", ARG_INT, AT(context), 0, 1 << 24, "0", .letter = 'c',
     .help = "positions to hold; 0: the model's, or what fits a GPU", .value = "N"},
};
#undef AT

int options_batch(const EngineOptions *o) { return o->batch > 1 ? o->batch : 1; }

bool options_same_engine(const EngineOptions *a, const EngineOptions *b) {
    return strcmp(a->device, b->device) == 0 && a->math == b->math && a->compute == b->compute &&
           a->threads == b->threads && a->weights == b->weights && a->attention == b->attention &&
           a->no_window == b->no_window && options_batch(a) == options_batch(b);
}

void options_clear_step(EngineOptions *o) {
    o->layout = LAYOUT_TREE;
    o->no_merge = false;
    o->max_rows = 0;
}
