// Makes model directories (random, inflated, quantised, untrained adapters) and describes those that exist. A
// part of the command has options of its own in the struct that they share.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "engine/base/output.h"
#include "engine/base/shipped.h"
#include "engine/base/system.h"
#include "engine/model/adapter.h"
#include "engine/model/model.h"
#include "engine/model/make/inflate.h"
#include "engine/model/config.h"
#include "engine/model/make/quantise.h"
#include "engine/model/make/synth.h"
#include "harness/cli/signals.h"
#include "harness/cli/terminal.h"
#include "harness/cli/records.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    uint64_t seed;
    Words sets;
    bool check, force, accept;
    const char *variant, *shape, *adapter;
    int exit_layer, heads, kv_heads, layers, block, markov_rank, bits, group;
    Records records;
} ModelOptions;

#define AT(name) offsetof(ModelOptions, name)
#define SEED_OPTION                                                                                    \
    {                                                                                                  \
        "seed", ARG_SEED, AT(seed), .help = "random weights are a function of it alone", .value = "N", \
                                    .fallback = "0"                                                    \
    }

static const char KEPT[] = "nothing is left in the directory";

// Files can't be replaced while they are read, --force or not. adapter, shape: NULL if there's none.
static bool check_apart(const char *dir, const char *model, const char *adapter, const char *shape,
                        Error *e) {
    LOCAL(output_release) Output out = {0};
    LOCAL_MEMORY char *config = file_path(dir, "config.json"), *from = shape ? shape_file(shape, NULL) : NULL;
    output_reads(&out, model);
    output_reads(&out, adapter);
    output_reads(&out, from);
    return output_check_directory(&out, dir, e) &&
           (!file_exists(config) || output_check(&out, config, &(OutputKind){0}, e));
}

// --- random models

static const Arg SYNTH_OPTIONS[] = {
    SEED_OPTION,
    {"set", ARG_WORDS, AT(sets), .help = "change a key of the shape's config.json; repeatable",
     .value = "KEY=VALUE"},
    ARG_FORCE(AT(force)),
};

static bool synth(void *options, CommandLine *line, Error *e) {
    const ModelOptions *o = options;
    const char *shape = line->words.items[0], *dir = line->words.items[1];
    Line shown;
    line_begin(&shown, true);
    interrupt_catch();
    SynthOptions s = {.shape = shape,
                      .sets = o->sets.items,
                      .set_count = o->sets.count,
                      .seed = o->seed,
                      .force = o->force,
                      .threads = system_processors((int)sysconf(_SC_NPROCESSORS_ONLN)),
                      .progress = line_progress(&shown)};
    bool ok = check_apart(dir, NULL, NULL, shape, e) && model_synth(dir, &s, e);
    line_clear(&shown);
    if (ok) printf("wrote a random model of shape %s to %s\n", SHOWN(shape), SHOWN(dir));
    return ok;
}

static const Command SYNTH = {.name = "model synth",
                              .usage = "SHAPE DIR [OPTIONS]",
                              .summary = "write a random model of a shape",
                              .arguments = {2, 2},
                              .kept = KEPT,
                              COMMAND_OPTIONS(SYNTH_OPTIONS, ModelOptions),
                              .run = synth};

// --- adapters

static const Arg ADAPTER_OPTIONS[] = {
    SEED_OPTION,
    {"variant", ARG_WORD, AT(variant),
     .help = "kangaroo, with-head, one-layer, mlp, medusa, eagle[3], mtp, dflash", .value = "NAME",
     .fallback = "kangaroo", .literal = true},
    {"exit-layer", ARG_INT, AT(exit_layer), 1, 1000, "2", .help = "it reads what L layers of the model give",
     .value = "L"},
    {"heads", ARG_INT, AT(heads), 1, ADAPTER_HEADS_MAX, "4", .help = "heads of medusa", .value = "N"},
    {"kv-heads", ARG_INT, AT(kv_heads), 0, 1 << 10, "0", .help = "key-value heads; 0: as many as query heads",
     .value = "N"},
    {"layers", ARG_INT, AT(layers), 1, 64, "5", .help = "layers of dflash", .value = "N"},
    {"block", ARG_INT, AT(block), 2, BLOCK_MOST, "16", .help = "rows of dflash's block", .value = "B"},
    {"markov-rank", ARG_INT, AT(markov_rank), 0, 1 << 12, "0",
     .help = "of dflash; above 0 it's DSpark's, with its heads", .value = "R"},
    ARG_FORCE(AT(force)),
};

// DSpark's has all of its heads, and its rows guess the tokens behind them. The mask is the last id.
static void choose_block(AdapterKind *k, const ModelOptions *o, const Model *target) {
    bool spark = o->markov_rank > 0;
    k->layers = o->layers;
    k->normed_heads = true;
    k->mask = target->shape.vocab - 1;
    k->block = (BlockDraft){.rows = o->block, .from_root = spark, .rank = o->markov_rank};
    k->block.markov = spark ? MARKOV_VANILLA : MARKOV_NONE;
    k->block.confidence = spark ? CONFIDENCE_TOKEN : CONFIDENCE_NONE;
}

static bool adapter(void *options, CommandLine *line, Error *e) {
    const ModelOptions *o = options;
    const char *model = line->words.items[0], *dir = line->words.items[1];
    Model target;
    LOCAL(model_close) ModelWeights weights = {0};
    AdapterKind kind = {.heads = 1, .kv_heads = o->kv_heads};
    if (!adapter_variant_find(o->variant, &kind.variant, e) || !check_apart(dir, model, NULL, NULL, e))
        return false;
    if (!model_open(&target, &weights, model, e)) return false;
    bool medusa = kind.variant == ADAPTER_MEDUSA;
    kind.exit_layer = kind.variant >= ADAPTER_MEDUSA ? target.shape.layers : o->exit_layer;
    if (kind.variant == ADAPTER_DFLASH) choose_block(&kind, o, &target);
    if (medusa) kind.heads = o->heads;
    if (!adapter_synth(dir, &target, &kind, o->seed, o->force, e)) return false;
    printf("wrote a random adapter (%s) for %s to %s\n", o->variant, SHOWN(model), SHOWN(dir));
    return true;
}

static const Command ADAPTER = {.name = "model adapter",
                                .usage = "MODEL DIR [OPTIONS]",
                                .summary = "write a random adapter for a model",
                                .arguments = {2, 2},
                                .kept = KEPT,
                                COMMAND_OPTIONS(ADAPTER_OPTIONS, ModelOptions),
                                .run = adapter};

// --- inflated models

static const Arg INFLATE_OPTIONS[] = {
    {"shape", ARG_WORD, AT(shape), .help = "the shape to write; 'outpace model shapes' lists them",
     .value = "SHAPE"},
    {"adapter", ARG_WORD, AT(adapter),
     .help = "write this adapter of MODEL, or its heads, for the inflated model", .value = "MODEL"},
    SEED_OPTION,
    ARG_FORCE(AT(force)),
};

static bool inflate(void *options, CommandLine *line, Error *e) {
    const ModelOptions *o = options;
    const char *small = line->words.items[0], *dir = line->words.items[1];
    Line shown;
    line_begin(&shown, true);
    interrupt_catch();
    InflateOptions x = {.small = small,
                        .adapter = o->adapter,
                        .shape = o->shape,
                        .seed = o->seed,
                        .force = o->force,
                        .progress = line_progress(&shown)};
    if (!o->shape)
        return error_input(e, "inflate needs --shape; 'outpace model shapes' lists those there are");
    bool ok = check_apart(dir, small, o->adapter, o->shape, e) && model_inflate(dir, &x, e);
    line_clear(&shown);
    if (ok)
        printf("wrote %s, inflated to %s, to %s: a stand-in\n", SHOWN(o->adapter ? o->adapter : small),
               SHOWN(o->shape), SHOWN(dir));
    return ok;
}

static const Command INFLATE = {.name = "model inflate",
                                .usage = "MODEL DIR --shape SHAPE [OPTIONS]",
                                .summary = "write a small model's text at a large one's cost",
                                .arguments = {2, 2},
                                .kept = KEPT,
                                COMMAND_OPTIONS(INFLATE_OPTIONS, ModelOptions),
                                .run = inflate};

// --- quantised models

static const Arg QUANTISE_OPTIONS[] = {
    {"bits", ARG_INT, AT(bits), 4, 8, "8", .help = "of a weight, 8 or 4", .value = "B"},
    {"group", ARG_INT, AT(group), 32, 128, "32",
     .help = "neighbouring weights that share a scale: 32, 64 or 128", .value = "G"},
    ARG_FORCE(AT(force)),
};

static bool quantise(void *options, CommandLine *line, Error *e) {
    const ModelOptions *o = options;
    const char *model = line->words.items[0], *dir = line->words.items[1];
    Line shown;
    if ((o->bits != 8 && o->bits != 4) || (o->group != 32 && o->group != 64 && o->group != 128))
        return error_input(e, "quantise takes --bits 8 or 4, and --group 32, 64 or 128");
    line_begin(&shown, true);
    interrupt_catch();
    QuantiseOptions x = {.from = model,
                         .bits = o->bits,
                         .group = o->group,
                         .force = o->force,
                         .progress = line_progress(&shown)};
    bool ok = check_apart(dir, model, NULL, NULL, e) && model_quantise(dir, &x, e);
    line_clear(&shown);
    if (ok) printf("wrote %s in %d bits, groups of %d, to %s\n", SHOWN(model), o->bits, o->group, SHOWN(dir));
    return ok;
}

static const Command QUANTISE = {.name = "model quantise",
                                 .usage = "MODEL DIR [OPTIONS]",
                                 .summary = "write a model with weights of 8 or 4 bits",
                                 .arguments = {2, 2},
                                 .kept = KEPT,
                                 COMMAND_OPTIONS(QUANTISE_OPTIONS, ModelOptions),
                                 .run = quantise};

// --- descriptions

static const Arg INFO_OPTIONS[] = {
    {"check", ARG_FLAG, AT(check), .help = "read all weights too, and check that each is a finite number"},
    RECORDS_OPTIONS(AT(records)),
};

static json_t *info_json(const Model *m, const ModelWeights *w, const char *dir, bool checked) {
    const Shape *s = &m->shape;
    size_t repeated = model_repeated_parameters(m);
    return json_pack("{s:o, s:s, s:o, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:I, s:i, s:b}",
                     "model", json_from_text(dir), "architecture", m->architecture, "stand_in",
                     m->stand_in[0] ? json_from_text(m->stand_in) : json_null(), "parameters",
                     (json_int_t)(shape_parameters(s) - repeated), "active_parameters",
                     (json_int_t)(shape_active_parameters(s) - repeated), "layers", s->layers, "width",
                     s->width, "mlp_width", s->mlp_width, "heads", s->heads, "kv_heads", s->kv_heads,
                     "head_dim", s->head_dim, "vocab", s->vocab, "context", s->context, "dtype",
                     model_dtype_name(m), "bytes", (json_int_t)model_bytes(m), "files", w->file_count,
                     "checked", checked);
}

static bool info(void *options, CommandLine *line, Error *e) {
    const ModelOptions *o = options;
    const char *dir = line->words.items[0];
    Model m;
    LOCAL(model_close) ModelWeights w = {0};
    LOCAL_TEXT text = {0};
    if (!model_open(&m, &w, dir, e)) return false;
    bool records = records_asked(&o->records);
    model_describe(&m, &w, &text);
    if (o->check && !model_check_finite(&m, &w, e)) return false;
    if (o->check) text_puts(&text, "checked         every weight is a finite number\n");
    if (!records) fputs(text_get(&text), stdout);
    return !records || records_print(info_json(&m, &w, dir, o->check), NULL, &o->records, e);
}

static const Command INFO = {.name = "model info",
                             .usage = "MODEL [OPTIONS]",
                             .summary = "check the files of a model, and describe it",
                             .arguments = {1, 1},
                             COMMAND_OPTIONS(INFO_OPTIONS, ModelOptions),
                             .run = info};

// --- shapes

static bool shapes(UNUSED void *options, UNUSED CommandLine *line, Error *e) {
    LOCAL_TEXT text = {0};
    if (!shape_names(&text, e)) return false;
    fputs(text_get(&text), stdout);
    return true;
}

static const Command SHAPES = {.name = "model shapes",
                               .usage = "",
                               .summary = "list the shapes that synth and inflate know",
                               .arguments = {0, 0},
                               .run = shapes};

// --- published models

static const Arg FETCH_OPTIONS[] = {
    {"accept", ARG_FLAG, AT(accept), .help = "accept the terms of a model that has some"},
};

// The script does the work; it runs in place of the program.
static bool fetch(void *options, CommandLine *line, Error *e) {
    const ModelOptions *o = options;
    char *script = shipped_fetch(), *argv[WORDS_MAX + 4] = {"sh", script, o->accept ? "--accept" : NULL};
    if (!script)
        return error_input(e,
                           "models/fetch isn't next to the program: 'models/fetch' in the repository is it");
    for (int i = 0; i < line->words.count; i++)
        argv[i + 2 + o->accept] = (char *)(size_t)line->words.items[i];
    fflush(stdout);
    execv("/bin/sh", argv);
    error_system(e, "cannot run '%s': %s", script, strerror(errno));
    mem_free(script);
    return false;
}

static const Command FETCH = {.name = "model fetch",
                              .usage = "[NAME...] [--accept]",
                              .summary = "download published models",
                              .arguments = {0, WORDS_MAX},
                              COMMAND_OPTIONS(FETCH_OPTIONS, ModelOptions),
                              .run = fetch};

const Command command_model = {
    .name = "model",
    .usage = "info|synth|adapter|inflate|quantise|shapes|fetch ...",
    .summary = "describe or fetch a model; write a random, inflated or quantised one, or an adapter",
    .parts = (const Command *const[]){&INFO, &SYNTH, &ADAPTER, &INFLATE, &QUANTISE, &SHAPES, &FETCH, NULL}};
