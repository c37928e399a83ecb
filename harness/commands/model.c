// Makes model directories (random, inflated, untrained adapters) and describes those that exist.
#include "harness/cli/command.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/output.h"
#include "engine/model/adapter.h"
#include "engine/model/model.h"
#include "engine/model/inflate.h"
#include "engine/model/config.h"
#include "engine/model/quantise.h"
#include "engine/model/synth.h"
#include "harness/cli/signals.h"
#include "harness/cli/line.h"
#include "harness/cli/terminal.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    uint64_t seed;
    Words sets;
    bool check, force;
    const char *variant, *shape, *adapter;
    int exit_layer, heads, kv_heads, bits, group;
} ModelOptions;

#define AT(name) offsetof(ModelOptions, name)
static const Arg OPTIONS[] = {
    {"seed", ARG_SEED, AT(seed), .help = "synth, adapter, inflate: random weights are a function of it alone",
     .value = "N", .fallback = "0"},
    {"set", ARG_WORDS, AT(sets), .help = "synth: change a key of the shape's config.json; repeatable",
     .value = "KEY=VALUE"},
    ARG_FORCE(AT(force)),
    {"check", ARG_FLAG, AT(check),
     .help = "info: read all weights too, and check that each is a finite number"},
    {"variant", ARG_WORD, AT(variant),
     .help = "adapter: kangaroo, with-head, one-layer, mlp, medusa, eagle, eagle3", .value = "NAME",
     .fallback = "kangaroo"},
    {"exit-layer", ARG_INT, AT(exit_layer), 1, 1000, "2",
     .help = "adapter: it reads what L layers of the model give", .value = "L"},
    {"heads", ARG_INT, AT(heads), 1, ADAPTER_HEADS_MAX, "4", .help = "adapter: heads of medusa",
     .value = "N"},
    {"kv-heads", ARG_INT, AT(kv_heads), 0, 1 << 10, "0",
     .help = "adapter: key-value heads; 0: as many as query heads", .value = "N"},
    {"shape", ARG_WORD, AT(shape), .help = "inflate: the shape to write", .value = "SHAPE"},
    {"adapter", ARG_WORD, AT(adapter),
     .help = "inflate: write this adapter of MODEL, or its heads, for the inflated model", .value = "DIR"},
    {"bits", ARG_INT, AT(bits), 4, 8, "8", .help = "quantise: of a weight, 8 or 4", .value = "B"},
    {"group", ARG_INT, AT(group), 32, 128, "32",
     .help = "quantise: neighbouring weights that share a scale: 32, 64 or 128", .value = "G"},
};
#undef AT

// Files can't be replaced while they are read, --force or not. adapter, shape: NULL if there's none.
static bool check_apart(const char *dir, const char *model, const char *adapter, const char *shape,
                        Error *e) {
    Output out = {0};
    char *config = file_path(dir, "config.json"), *from = shape ? shape_file(shape, NULL) : NULL;
    output_reads(&out, model);
    output_reads(&out, adapter);
    output_reads(&out, from);
    bool ok = output_check_directory(&out, dir, e) &&
              (!file_exists(config) || output_check(&out, config, &(OutputKind){0}, e));
    output_release(&out);
    mem_free(config);
    mem_free(from);
    return ok;
}

static bool synth(const char *shape, const char *dir, const ModelOptions *o, Error *e) {
    Line line;
    line_begin(&line, true);
    interrupt_catch();
    SynthOptions s = {.shape = shape,
                      .sets = o->sets.items,
                      .set_count = o->sets.count,
                      .seed = o->seed,
                      .force = o->force,
                      .threads = (int)sysconf(_SC_NPROCESSORS_ONLN),
                      .progress = line_progress(&line)};
    bool ok = check_apart(dir, NULL, NULL, shape, e) && model_synth(dir, &s, e);
    line_clear(&line);
    if (ok) printf("wrote a random model of shape %s to %s\n", SHOWN(shape), SHOWN(dir));
    return ok;
}

static bool inflate(const char *small, const char *dir, const ModelOptions *o, Error *e) {
    Line line;
    line_begin(&line, true);
    interrupt_catch();
    InflateOptions x = {.small = small,
                        .adapter = o->adapter,
                        .shape = o->shape,
                        .seed = o->seed,
                        .force = o->force,
                        .progress = line_progress(&line)};
    if (!o->shape)
        return error_input(e, "inflate needs --shape; 'outpace model shapes' lists those there are");
    bool ok = check_apart(dir, small, o->adapter, o->shape, e) && model_inflate(dir, &x, e);
    line_clear(&line);
    if (ok)
        printf("wrote %s, inflated to %s, to %s: a stand-in\n", SHOWN(o->adapter ? o->adapter : small),
               SHOWN(o->shape), SHOWN(dir));
    return ok;
}

static bool adapter(const char *model, const char *dir, const ModelOptions *o, Error *e) {
    Model target;
    ModelWeights weights;
    AdapterKind kind = {.heads = 1, .kv_heads = o->kv_heads};
    if (!adapter_variant_find(o->variant, &kind.variant, e) || !check_apart(dir, model, NULL, NULL, e))
        return false;
    if (!model_open(&target, &weights, model, e)) return false;
    bool medusa = kind.variant == ADAPTER_MEDUSA;
    kind.exit_layer = medusa || adapter_is_eagle(kind.variant) ? target.shape.layers : o->exit_layer;
    if (medusa) kind.heads = o->heads;
    bool ok = adapter_synth(dir, &target, &kind, o->seed, o->force, e);
    if (ok) printf("wrote a random adapter (%s) for %s to %s\n", o->variant, SHOWN(model), SHOWN(dir));
    model_close(&weights);
    return ok;
}

static bool quantise(const char *model, const char *dir, const ModelOptions *o, Error *e) {
    Line line;
    if ((o->bits != 8 && o->bits != 4) || (o->group != 32 && o->group != 64 && o->group != 128))
        return error_input(e, "quantise takes --bits 8 or 4, and --group 32, 64 or 128");
    line_begin(&line, true);
    interrupt_catch();
    QuantiseOptions x = {.from = model,
                         .bits = o->bits,
                         .group = o->group,
                         .force = o->force,
                         .progress = line_progress(&line)};
    bool ok = check_apart(dir, model, NULL, NULL, e) && model_quantise(dir, &x, e);
    line_clear(&line);
    if (ok) printf("wrote %s in %d bits, groups of %d, to %s\n", SHOWN(model), o->bits, o->group, SHOWN(dir));
    return ok;
}

static bool info(const char *dir, bool check, Error *e) {
    Model m;
    ModelWeights w;
    Text text = {0};
    if (!model_open(&m, &w, dir, e)) return false;
    model_describe(&m, &w, &text);
    bool ok = !check || model_check_finite(&m, &w, e);
    if (ok && check) text_puts(&text, "checked         every weight is a finite number\n");
    if (ok) fputs(text_get(&text), stdout);
    text_release(&text);
    model_close(&w);
    return ok;
}

static bool shapes(Error *e) {
    Text text = {0};
    bool ok = shape_names(&text, e);
    if (ok) fputs(text_get(&text), stdout);
    text_release(&text);
    return ok;
}

static bool run(int argc, char **argv, int *code, Error *e) {
    (void)code;
    ModelOptions o = {.variant = "kangaroo", .exit_layer = 2, .heads = 4, .bits = 8, .group = 32};
    Words rest;
    bool stop;
    if (!command_parse(&command_model, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    const char *what = rest.count ? rest.items[0] : "";
    if (strcmp(what, "synth") == 0 && rest.count == 3) return synth(rest.items[1], rest.items[2], &o, e);
    if (strcmp(what, "adapter") == 0 && rest.count == 3) return adapter(rest.items[1], rest.items[2], &o, e);
    if (strcmp(what, "inflate") == 0 && rest.count == 3) return inflate(rest.items[1], rest.items[2], &o, e);
    if (strcmp(what, "quantise") == 0 && rest.count == 3)
        return quantise(rest.items[1], rest.items[2], &o, e);
    if (strcmp(what, "info") == 0 && rest.count == 2) return info(rest.items[1], o.check, e);
    if (strcmp(what, "shapes") == 0 && rest.count == 1) return shapes(e);
    return command_misused(&command_model, e);
}

const Command command_model = {
    .name = "model",
    .usage = "synth SHAPE DIR | adapter|inflate|quantise MODEL DIR | info DIR | shapes",
    .summary = "write a random model of a shape, or an adapter for it; inflate or quantise a model; describe "
               "one; list shapes",
    .arguments = {1, 3},
    .kept = "nothing is left in the directory",
    .lesson =
        "synth writes a random model of a published shape as a Hugging Face directory: real cost, no\n"
        "meaning.\n"
        "adapter writes a random Kangaroo adapter, Medusa's heads or EAGLE's draft, for a model.\n"
        "inflate writes a model of a large shape that computes a small one's results, every weight read and\n"
        "multiplied: the small one's acceptance at the large one's cost. It is a stand-in for such a model.\n"
        "quantise writes a model with weights of 8 or 4 bits. Its products are those of the weights' values "
        "in\n"
        "bf16, bit for bit; embedding and head have 8 bits.\n"
        "info opens a directory, checks every file in it, and describes the model; --check reads every\n"
        "weight.\n"
        "shapes lists the known shapes; the path of a config.json is a shape too.\n"
        "A directory with a model that the same command did not write is refused without --force.\n"
        "\n"
        "  outpace model synth tiny /tmp/tiny\n"
        "  outpace model synth mistral-7b /tmp/m --set num_hidden_layers=4 --seed 7\n"
        "  outpace model adapter /tmp/m /tmp/m-adapter --exit-layer 2\n"
        "  outpace model inflate models/reference /tmp/big --shape mistral-7b\n"
        "  outpace model inflate models/reference /tmp/big/adapter --shape mistral-7b --adapter A\n"
        "  outpace model quantise ~/models/Llama-2-7b-hf /tmp/llama-4 --bits 4\n"
        "  outpace model info ~/models/Llama-2-7b-hf --check\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};
