// Reading a training file. Every key is a row: its type, the offset of its value, its limits, and whether
// it's required. A preset is written into the YAML tree before it's read, so it passes the same checks.
// Invariant of a file: every entry of `files` has a domain.
#include "harness/train/train.h"

#include "engine/base/system.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const OPTIMIZERS[] = {"adamw", "muon", NULL};
static const char *const SCHEDULES[] = {"cosine", "stable", NULL};
static const char *const DECAYS[] = {"all", "layers", NULL};

#define AT(field) offsetof(TrainFile, field)
// The keys of any run.
#define RUN_KEYS                                                                                        \
    {"files", ARG_WORDS, .at = AT(files)}, {"domains", ARG_NODE, .at = AT(domain_map)},                 \
        {"begun", ARG_INT, AT(config.optimizer.begun), .low = 0, .high = 1 << 30},                      \
        {"separator", ARG_WORD, .at = AT(separator)},                                                   \
        {"held_out", ARG_REAL, AT(config.held_out), .low = 0, .high = 0.9},                             \
        {"held_out_rows", ARG_INT, AT(config.held_out_rows), .low = 1, .high = 1 << 30},                \
        {"held_out_every", ARG_INT, AT(held_out_every), .low = 1, .high = 1 << 30},                     \
        {"checkpoint_every", ARG_INT, AT(checkpoint_every), .low = 1, .high = 1 << 30},                 \
        {"warmup", ARG_INT, AT(config.optimizer.warmup), .low = 0, .high = 1 << 30},                    \
        {"last_rate", ARG_REAL, AT(config.optimizer.last_rate), .low = 0, .high = 10},                  \
        {"beta1", ARG_REAL, AT(config.optimizer.beta1), .low = 0, .high = 0.99999},                     \
        {"beta2", ARG_REAL, AT(config.optimizer.beta2), .low = 0, .high = 0.99999},                     \
        {"epsilon", ARG_REAL, AT(config.optimizer.epsilon), .low = 0, .high = 1},                       \
        {"weight_decay", ARG_REAL, AT(config.optimizer.weight_decay), .low = 0, .high = 10},            \
        {"clip", ARG_REAL, AT(config.optimizer.clip), .low = 0, .high = 1e9},                           \
        {"optimizer", ARG_CHOICE, AT(optimizer), .choices = OPTIMIZERS},                                \
        {"momentum", ARG_REAL, AT(config.optimizer.momentum), .low = 0, .high = 0.99999},               \
        {"schedule", ARG_CHOICE, AT(schedule), .choices = SCHEDULES},                                   \
        {"cooldown", ARG_REAL, AT(config.optimizer.cooldown), .low = 0, .high = 1},                     \
        {"decays", ARG_CHOICE, AT(decays), .choices = DECAYS},                                          \
        {"embedding_rate", ARG_REAL, AT(config.optimizer.embedding_rate), .low = 0, .high = 10},        \
        {"pass", ARG_INT, AT(config.pass), .low = 1, .high = 1 << 20},                                  \
        {"keep", ARG_REAL, AT(keep), .low = 0, .high = 1e6}, {"seed", ARG_SEED, .at = AT(config.seed)}, \
        {"threads", ARG_INT, AT(config.threads), .low = 0, .high = 1024}, {                             \
        "isa", ARG_WORD, .at = AT(isa)                                                                  \
    }

static const char *const STATES[] = {"raw", "normed", NULL};

static const Arg MODEL_KEYS[] = {
    {"out", ARG_WORD, .at = AT(out)},
    {"tokenizer", ARG_WORD, .at = AT(tokenizer)},
    {"eos", ARG_WORD, .at = AT(eos)},
    {"start", ARG_WORD, .at = AT(start)},
    {"teacher", ARG_WORD, .at = AT(teacher)},
    {"layers", ARG_INT, AT(config.shape.layers), 1, 1000, .required = true},
    {"width", ARG_INT, AT(config.shape.width), 1, 1 << 17, .required = true},
    {"heads", ARG_INT, AT(config.shape.heads), 1, 1 << 10, .required = true},
    {"key_heads", ARG_INT, AT(config.shape.kv_heads), 1, 1 << 10, .required = true},
    {"head_size", ARG_INT, AT(head_size), .low = 2, .high = 512},
    {"parallel", ARG_INT, AT(parallel), .low = 1, .high = 64},
    {"mask", ARG_WORD, .at = AT(mask)},
    {"mlp", ARG_INT, AT(config.shape.mlp_width), 1, 1 << 19, .required = true},
    {"context", ARG_INT, AT(config.shape.context), 2, 1 << 20, .required = true},
    {"rope_theta", ARG_REAL, AT(config.shape.rope.theta), .low = 1, .high = 1e9},
    {"norm_epsilon", ARG_REAL, AT(norm_epsilon), .low = 1e-9, .high = 0.1},
    {"steps", ARG_INT, AT(config.optimizer.steps), 0, 1 << 30, .required = true},
    {"rate", ARG_REAL, AT(config.optimizer.rate), 0, 10, .required = true},
    {"batch", ARG_INT, AT(config.batch), 1, 1 << 24, .required = true},
    RUN_KEYS};

static const Arg ADAPTER_KEYS[] = {{"out", ARG_WORD, .at = AT(out)},
                                   {"context", ARG_INT, AT(config.shape.context), .low = 2, .high = 1 << 20},
                                   {"steps", ARG_INT, AT(config.optimizer.steps), .low = 0, .high = 1 << 30},
                                   {"rate", ARG_REAL, AT(config.optimizer.rate), .low = 0, .high = 10},
                                   {"batch", ARG_INT, AT(config.batch), .low = 1, .high = 1 << 24},
                                   {"forwards", ARG_INT, AT(forwards), .low = 1, .high = FORWARDS_MAX},
                                   {"layers", ARG_WORDS, .at = AT(layers)},
                                   {"draft_vocab", ARG_INT, AT(draft_vocab), .low = 0, .high = 1 << 24},
                                   {"normed_heads", ARG_FLAG, .at = AT(normed_heads)},
                                   {"state", ARG_CHOICE, AT(state), .choices = STATES},
                                   {"recycle", ARG_CHOICE, AT(recycle), .choices = STATES},
                                   {"draft_layers", ARG_INT, AT(draft_layers), .low = 1, .high = 64},
                                   {"block", ARG_INT, AT(block), .low = 2, .high = BLOCK_MOST},
                                   {"markov_rank", ARG_INT, AT(markov_rank), .low = 1, .high = 1 << 12},
                                   {"parallel", ARG_INT, AT(parallel), .low = 1, .high = FORWARDS_MAX},
                                   {"mask", ARG_WORD, .at = AT(mask)},
                                   RUN_KEYS};
#undef AT

static const ArgTable TABLES[] = {
    [TRAIN_MODEL] = ARG_TABLE("a training file", MODEL_KEYS, TrainFile, .lone_key = NULL),
    [TRAIN_ADAPTER] = ARG_TABLE("an adapter's training file", ADAPTER_KEYS, TrainFile, .lone_key = NULL),
};

// By default a pass is the largest multiple of the context that divides the batch and has at most PASS_ROWS
// rows.
void train_file_set_context(TrainFile *f, int context) {
    enum { PASS_ROWS = 1024 };
    TrainConfig *c = &f->config;
    c->shape.context = context;
    if (c->pass) return;
    c->pass = context;
    for (int n = context; n <= PASS_ROWS && n <= c->batch; n += context)
        if (c->batch % n == 0) c->pass = n;
}

// An adapter's defaults are those of configs/train/adapter.yaml.
static void set_defaults(TrainFile *f, TrainKind kind) {
    OptimizerOptions *o = &f->config.optimizer;
    f->eos = "</s>";
    f->checkpoint_every = f->held_out_every = 200;
    f->norm_epsilon = 1e-5;
    f->parallel = 1;
    f->draft_vocab = -1;
    f->keep = -1;
    f->config = (TrainConfig){.held_out_rows = 1 << 16, .shape.rope.theta = 10000};
    *o = (OptimizerOptions){.beta1 = 0.9,
                            .beta2 = 0.95,
                            .epsilon = 1e-8,
                            .weight_decay = 0.1,
                            .clip = 1,
                            .momentum = 0.95,
                            .cooldown = 0.2};
    if (kind == TRAIN_MODEL) return;
    o->steps = 1200;
    o->warmup = 100;
    o->rate = 6e-3;
    o->weight_decay = 0;
    o->cooldown = 0.5;
    f->optimizer = OPTIMIZER_MUON;
    f->schedule = SCHEDULE_STABLE;
    f->config.batch = 2048;
    f->config.held_out = 0.01;
    f->config.held_out_rows = 1 << 14;
}

// --- domains ---------------------------------------------------------------------------------------------

// "texts/novels.txt" is named novels, and a pattern such as "texts/*.txt" after its directory.
static DomainName name_of_path(const char *path) {
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *ending = strrchr(name, '.');
    if (name > path && strpbrk(name, "*?[")) {
        const char *end = name - 1;
        for (name = end; name > path && name[-1] != '/';) name--;
        if (name < end) return (DomainName){name, (int)(end - name)};
    }
    return (DomainName){name, ending && ending > name ? (int)(ending - name) : (int)strlen(name)};
}

static bool read_domains(TrainFile *f, TrainKind kind, Error *e) {
    const YamlNode *map = f->domain_map;
    for (int i = 0; i < f->files.count; i++) f->domains[i] = name_of_path(f->files.items[i]);
    if (map && map->kind != NODE_MAP)
        return yaml_error(map, e, "'domains' must be a map of names to files: 'code: [a.txt, b.txt]'");
    for (const YamlNode *d = map ? map->first : NULL; d; d = d->next)
        for (const YamlNode *file = d->kind == NODE_LIST ? d->first : d; file; file = file->next) {
            if (file->kind != NODE_VALUE || !*file->text)
                return yaml_error(file, e, "the domain '%s' must be a list of files: [one, two]", d->key);
            if (f->files.count == WORDS_MAX)
                return yaml_error(file, e, "there are more than %d files", WORDS_MAX);
            f->domains[f->files.count] = (DomainName){d->key, (int)strlen(d->key)};
            f->files.items[f->files.count++] = file->text;
            if (d->kind != NODE_LIST) break;
        }
    return f->files.count || kind == TRAIN_ADAPTER ||
           yaml_error(f->tree.root, e, "a training file needs 'files' or 'domains': add a line 'files: ...'");
}

// --- presets ---------------------------------------------------------------------------------------------

// Keys and values, meant for a vocabulary of 2,048, 4,096 and 8,192 tokens; others work too. 'outpace train
// --help' has sizes and times.
typedef struct Preset {
    const char *name;
    const char *pairs[20][2]; // ending in NULL
} Preset;

// clang-format off
#define COMMON \
    {"context", "1024"}, {"rate", "6e-3"}, {"last_rate", "0"}, {"warmup", "100"}, {"optimizer", "muon"}, \
    {"schedule", "stable"}, {"cooldown", "0.5"}, {"weight_decay", "0.1"}, {"held_out", "0.01"}, \
    {"held_out_every", "200"}, {"checkpoint_every", "100"}
static const Preset PRESETS[] = {
    {"5m", {{"layers", "8"}, {"width", "256"}, {"heads", "8"}, {"key_heads", "2"}, {"mlp", "512"},
            {"steps", "2400"}, {"batch", "8192"}, COMMON}},
    {"20m", {{"layers", "12"}, {"width", "384"}, {"heads", "12"}, {"key_heads", "4"}, {"mlp", "1024"},
             {"steps", "4000"}, {"batch", "8192"}, COMMON}},
    {"60m", {{"layers", "16"}, {"width", "576"}, {"heads", "18"}, {"key_heads", "6"}, {"mlp", "1536"},
             {"steps", "6000"}, {"batch", "16384"}, COMMON}},
};
// clang-format on

// Sets the keys that the file doesn't have.
static bool add_preset(TrainFile *f, const char *name, Error *e) {
    const Preset *p = PRESETS, *end = PRESETS + sizeof PRESETS / sizeof *PRESETS;
    while (p < end && strcmp(p->name, name) != 0) p++;
    if (p == end) return error_input(e, "there is no preset '%s': there are 5m, 20m and 60m", name);
    for (int i = 0; p->pairs[i][0]; i++)
        if (!yaml_find(f->tree.root, p->pairs[i][0]) &&
            !yaml_set(&f->tree, "--preset ", p->pairs[i][0], p->pairs[i][1], e))
            return false;
    return true;
}

// The command line replaces what the file has.
static void apply(TrainFile *f, const TrainOptions *o) {
    if (o->out && *o->out) f->out = o->out;
    if (o->tokenizer) f->tokenizer = o->tokenizer;
    if (o->separator) f->separator = o->separator;
    if (o->steps) f->config.optimizer.steps = o->steps;
    if (o->begun) f->config.optimizer.begun = o->begun;
    if (o->batch) f->config.batch = o->batch;
    if (o->threads) f->config.threads = o->threads;
    if (o->rate > 0) f->config.optimizer.rate = o->rate;
    if (o->draft_vocab >= 0) f->draft_vocab = o->draft_vocab;
    if (o->files.count) f->files = o->files, f->domain_map = NULL;
}

static void train_file_check(const TrainFile *f) {
    assert(f->files.count >= 0 && f->files.count <= WORDS_MAX);
    for (int i = 0; i < f->files.count; i++) assert(f->domains[i].text && f->domains[i].length >= 0);
    assert(f->checkpoint_every >= 1 && f->held_out_every >= 1);
}

static bool need(bool given, const char *option, Error *e) {
    return given || error_input(e, "train: a preset without a file needs %s", option);
}

static bool need_key(const TrainFile *f, const char *value, const char *key, Error *e) {
    return value || yaml_error(f->tree.root, e, "a training file needs '%s': add a line '%s: ...'", key, key);
}

// Passes the file's choices on to the trainer's options.
static void set_choices(TrainFile *f) {
    f->config.isa = f->isa;
    f->config.keep = f->keep < 0 ? system_memory() / 2 : (size_t)(f->keep * 1e9);
    f->config.optimizer.kind = (OptimizerKind)f->optimizer;
    f->config.optimizer.schedule = (RateSchedule)f->schedule;
    f->config.optimizer.decays = (DecayPlace)f->decays;
}

// The tree has no root if an adapter has no file.
static bool read_tree(TrainFile *f, TrainKind kind, const TrainOptions *o, Error *e) {
    bool model = kind == TRAIN_MODEL;
    set_defaults(f, kind);
    bool ok = !f->tree.root || values_read(&TABLES[kind], f->tree.root, f, e);
    apply(f, o);
    ok = ok && (!model || (need_key(f, f->out, "out", e) && need_key(f, f->tokenizer, "tokenizer", e))) &&
         read_domains(f, kind, e);
    if (!ok) {
        train_file_release(f);
        return false;
    }
    Shape *s = &f->config.shape;
    if (model) {
        s->head_dim = f->head_size ? f->head_size : s->width / s->heads;
        s->rope.pairs = s->head_dim / 2;
        s->rope.attention_factor = 1;
        s->norm_epsilon = (float)f->norm_epsilon;
        s->tied_head = true;
        train_file_set_context(f, s->context);
    }
    set_choices(f);
    train_file_check(f);
    return true;
}

bool train_file_parse(TrainFile *f, const char *bytes, size_t n, const char *place, TrainKind kind,
                      Error *e) {
    *f = (TrainFile){0};
    return yaml_parse(&f->tree, bytes, n, place, e) &&
           read_tree(f, kind, &(TrainOptions){.draft_vocab = -1}, e);
}

bool train_file_open_adapter(TrainFile *f, const char *path, const TrainOptions *o, Error *e) {
    *f = (TrainFile){0};
    return (!path || yaml_open(&f->tree, path, e)) && read_tree(f, TRAIN_ADAPTER, o, e);
}

bool train_file_open_model(TrainFile *f, const char *path, const TrainOptions *o, Error *e) {
    *f = (TrainFile){0};
    bool ok = path ? yaml_open(&f->tree, path, e) : yaml_parse(&f->tree, "{}", 2, "--preset", e);
    ok = ok && (!o->preset || f->tree.root->kind != NODE_MAP || add_preset(f, o->preset, e)) &&
         (path || (need(o->out, "-o DIR", e) && need(o->files.count, "--text FILE", e) &&
                   need(o->tokenizer, "--tokenizer FILE; 'outpace tokenizer train' makes one", e)));
    if (ok) return read_tree(f, TRAIN_MODEL, o, e);
    train_file_release(f);
    return false;
}

void train_file_release(TrainFile *f) {
    yaml_release(&f->tree);
    *f = (TrainFile){0};
}
