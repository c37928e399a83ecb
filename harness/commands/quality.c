// How well a model predicts texts, and how far it is from the model that it was quantised from.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "harness/cli/table.h"
#include "harness/inputs/models.h"
#include "harness/inputs/inputs.h"
#include "harness/inputs/prompts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *against, *template;
    Words datasets, paths;
    int limit, greedy;
    EngineOptions engine;
    Records records;
} QualityOptions;

#define AT(name) offsetof(QualityOptions, name)
static const Arg OPTIONS[] = {
    {"against", ARG_WORD, AT(against), .help = "the model that MODEL was quantised from", .value = "MODEL"},
    {"dataset", ARG_WORDS, AT(datasets), .help = "whose prompts and answers are the text; repeatable",
     .value = "DATASET"},
    {"path", ARG_WORDS, AT(paths), .help = "a file of your own; repeatable", .value = "FILE"},
    {"template", ARG_WORD, AT(template), .help = "put prompts into a chat template; model: the model's own",
     .value = "TEMPLATE", .fallback = "the model's, if it has one, for prompts that ask"},
    {"limit", ARG_INT, AT(limit), 0, 1 << 24, "0", .help = "prompts of each; 0: all", .value = "N"},
    {"greedy", ARG_INT, AT(greedy), 0, 1 << 20, "64",
     .help = "tokens that the original writes after each prompt; 0: none", .value = "N"},
    RECORDS_OPTIONS(AT(records)),
};

typedef struct Looked {
    const QualityOptions *o;
    Engine model, original;
    Line line;
    RecordTable table;
    Quality all;
    int sets;
    const Template *template, *used; // as named, and as used last; NULL: none
} Looked;

// --- what is printed

static const Column COLUMNS[] = {
    {"text", "text", .least = 8, .help = "the set"},
    {"texts", "texts", AS_COUNT, .drop = 1, .help = "its texts"},
    {"tokens", "tokens", AS_COUNT, .help = "predicted tokens"},
    {"loss", "loss", AS_FIXED, 4, .help = "of the model, nats a token"},
    {"perplexity", "perplexity", AS_SHORT, 4, .help = "e to that power"},
    {"original_loss", "original's", AS_FIXED, 4, .help = "with `--against` only, as all that follow"},
    {"original_perplexity", "perplexity", AS_SHORT, 4, .help = "e to that power"},
    {"divergence", "divergence", AS_FIXED, 5, .help = "Kullback-Leibler, in nats"},
    {"same", "same", AS_SHARE, 2, .help = "share of tokens with the same likeliest token"},
    {"greedy", "greedy", AS_COUNT, .drop = 2, .help = "tokens that the original wrote"},
    {"greedy_same", "same", AS_SHARE, 2, .help = "share of these that the model chooses, too"},
    {"greedy_unbroken", "unbroken", AS_SHARE, 2, .drop = 3,
     .help = "share of these before the first other choice"},
};
static const TableForm FORM = {
    "quality", TABLE_COLUMNS(COLUMNS),
    .about =
        "An object for each dataset or file, and one for all if there are several. Means are over tokens."};

static double share(size_t part, size_t of) { return of ? (double)part / (double)of : NAN; }
static double mean(double sum, size_t of) { return of ? sum / (double)of : NAN; }

static void put(Looked *l, const char *name, const Quality *q) {
    enum { ALONE = 5 }; // cells without an original
    double loss = mean(q->loss, q->tokens), original = mean(q->of_original, q->tokens);
    const Cell cells[] = {CELL(name),
                          CELL(q->texts),
                          CELL(q->tokens),
                          CELL(loss),
                          CELL(exp(loss)),
                          CELL(original),
                          CELL(exp(original)),
                          CELL(mean(q->divergence, q->tokens)),
                          CELL(share(q->same, q->tokens)),
                          CELL(q->greedy),
                          CELL(share(q->greedy_same, q->greedy)),
                          CELL(share(q->unbroken, q->greedy))};
    table_row(&l->table, cells, l->o->against ? TABLE_COUNT(cells) : ALONE);
}

static void print_models(const Looked *l, const char *model) {
    const Model *m = &l->model.model;
    terminal_printf("model     %s: %s%s%s%s%s, %.3f GB\n", SHOWN(model), model_dtype_name(m),
                    m->stand_in[0] ? ", stand-in: " : "", SHOWN(m->stand_in),
                    m->quantised[0] ? ", quantised: " : "", SHOWN(m->quantised),
                    (double)model_bytes(m) * 1e-9);
    if (l->used) terminal_printf("template  %s\n", l->used->name);
    if (l->o->against)
        terminal_printf("original  %s: %s, %.3f GB\n", SHOWN(l->o->against),
                        model_dtype_name(&l->original.model), (double)model_bytes(&l->original.model) * 1e-9);
}

// --- texts

// The first turn's prompt and reference as ids; *prompt: how many of them are the prompt's.
static bool encode(const Tokenizer *t, const Template *template, const DatasetPrompt *p, IdList *out,
                   size_t *prompt, Error *e) {
    if (!prompt_of_dataset(p, t, template, out, e)) return false;
    *prompt = out->count;
    for (int i = 0; i < p->reference_count; i++)
        if (p->references[i].turn == 0)
            return prompt_encode(t, p->references[i].text, strlen(p->references[i].text), false, out, e);
    return true;
}

// Tokenizers of the two models must give the same ids.
static bool check_ids(const Looked *l, const Template *template, const DatasetPrompt *p, const IdList *ids,
                      Error *e) {
    LOCAL(ids_release) IdList theirs = {0};
    size_t prompt;
    if (!l->o->against || !l->original.tokenizer) return true;
    if (!encode(l->original.tokenizer, template, p, &theirs, &prompt, e)) return false;
    if (theirs.count == ids->count && !memcmp(theirs.ids, ids->ids, ids->count * sizeof *ids->ids))
        return true;
    return error_input(e, "the tokenizers of '%s' and of the model cut prompt '%s' differently",
                       l->o->against, p->id);
}

static bool look_at(Looked *l, const DatasetPrompt *p, Quality *q, Error *e) {
    LOCAL(ids_release) IdList ids = {0};
    size_t prompt = 0;
    const Template *t = l->template ? l->template : prompt_template(p, l->model.tokenizer);
    bool ok = encode(l->model.tokenizer, t, p, &ids, &prompt, e) && check_ids(l, t, p, &ids, e);
    if (t) l->used = t;
    if (ok && ids.count > 1)
        ok = quality_text(&l->model, l->o->against ? &l->original : NULL, ids.ids, (int)ids.count, q, e);
    if (ok && l->o->against && l->o->greedy && prompt)
        ok = quality_greedy(&l->model, &l->original, ids.ids, (int)prompt, l->o->greedy, q, e);
    return ok;
}

static bool look_at_set(Looked *l, const char *name, const char *path, Error *e) {
    const char *folder = getenv("OUTPACE_DATA");
    DatasetRequest request = {.name = name,
                              .path = path,
                              .folder = folder && *folder ? folder : NULL,
                              .limit = (size_t)l->o->limit};
    LOCAL(dataset_release) Dataset d = {0};
    Quality q = {0};
    bool ok = dataset_open(&d, &request, e);
    for (size_t i = 0; ok && i < d.count; i++) {
        snprintf(l->line.at, sizeof l->line.at, "%.100s, prompt %zu of %zu", name, i + 1, d.count);
        ok = look_at(l, &d.prompts[i], &q, e) || error_within(e, "'%s', prompt '%s'", name, d.prompts[i].id);
    }
    if (!ok) return false;
    put(l, name, &q);
    quality_add(&l->all, &q);
    l->sets++;
    return true;
}

static bool look_at_all(Looked *l, Error *e) {
    const QualityOptions *o = l->o;
    for (int i = 0; i < o->datasets.count; i++)
        if (!look_at_set(l, o->datasets.items[i], NULL, e)) return false;
    for (int i = 0; i < o->paths.count; i++)
        if (!look_at_set(l, o->paths.items[i], o->paths.items[i], e)) return false;
    if (l->sets > 1) put(l, "all", &l->all);
    return true;
}

// --- the command

static bool open_models(Looked *l, const char *model, Error *e) {
    EngineOptions o = l->o->engine;
    o.progress = line_progress(&l->line);
    cards_warn(o.device);
    if (!engine_open(&l->model, model, &o, NULL, e)) return false;
    if (!l->model.tokenizer) return error_input(e, "'%s' has no tokenizer, which the texts need", model);
    if (!l->o->against) return true;
    o.beside = &l->model;
    if (o.compute == CHOOSE_INT8) o.compute = CHOOSE_WEIGHTS;
    return engine_open(&l->original, l->o->against, &o, NULL, e) &&
           quality_comparable(&l->model, &l->original, e);
}

static bool report(Looked *l, const char *model, Error *e) {
    const char *name = l->o->template;
    if (name && !(l->template = tokenizer_template(l->model.tokenizer, name, e))) return false;
    l->table = (RecordTable){.form = &FORM, .as = &l->o->records};
    bool ok = look_at_all(l, e);
    line_clear(&l->line);
    if (ok && !records_asked(&l->o->records)) print_models(l, model);
    return table_end(&l->table, ok, e);
}

static bool run(void *options, CommandLine *line, Error *e) {
    QualityOptions *o = options;
    if (!o->datasets.count && !o->paths.count)
        return error_input(e, "quality: give texts: --dataset NAME or --path FILE");
    Looked l = {.o = o};
    interrupt_catch();
    line_begin(&l.line, true);
    bool ok = open_models(&l, line->words.items[0], e) && report(&l, line->words.items[0], e);
    line_clear(&l.line);
    engine_close(&l.original);
    engine_close(&l.model);
    return ok;
}

const Command command_quality = {
    .name = "quality",
    .usage = "MODEL --dataset DATASET | --path FILE [--against MODEL] [OPTIONS]",
    .summary = "loss of a quantised model on texts, and how often it chooses as its original does",
    .arguments = {1, 1},
    COMMAND_OPTIONS(OPTIONS, QualityOptions),
    .shared = MODEL_SET(offsetof(QualityOptions, engine), "batch layout merge max_rows"),
    .run = run,
    .tables = TABLES(&FORM)};
