// Parses the config like any other, plans the stored tensors, and has weights_out write them.
#include "engine/model/make/synth.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/random.h"
#include "engine/base/shipped.h"
#include "engine/base/text.h"
#include "engine/model/config.h"
#include "engine/model/make/quantise.h"
#include "engine/model/make/weights_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char MARK[] = "outpace_synth"; // the maker's key in config.json

// The values of a tensor are uniform in centre +- spread.
typedef struct Values {
    float centre, spread;
} Values;

typedef struct SynthPlan {
    WeightsOut out;
    Values *values; // (out.count), of each tensor
    Dtype dtype;
    uint64_t seed;
} SynthPlan;

// --- config

static bool apply_set(json_t *root, const char *set, Error *e) {
    const char *equals = strchr(set, '=');
    char key[128];
    if (!equals || equals == set || (size_t)(equals - set) >= sizeof key)
        return error_input(e, "--set '%s' must be written as key=value", set);
    snprintf(key, sizeof key, "%.*s", (int)(equals - set), set);
    json_t *value = json_loads(equals + 1, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (!value) value = json_string(equals + 1);
    return json_object_set_new(root, key, value) == 0 || error_input(e, "--set '%s' is not valid UTF-8", set);
}

static json_t *read_config(const SynthOptions *o, Error *e) {
    LOCAL_MEMORY char *path = shape_file(o->shape, e);
    json_auto_t *root = path ? json_from_file(path, MADE_MAX_CONFIG, e) : NULL;
    bool ok =
        root && (json_is_object(root) || error_input(e, "the shape '%s' must be a JSON object", o->shape));
    for (int i = 0; ok && i < o->set_count; i++) ok = apply_set(root, o->sets[i], e);
    if (ok) {
        json_t *mark = json_pack("{s:s, s:I}", "shape", o->shape, "seed", (json_int_t)o->seed);
        ok = json_object_set_new(root, MARK, mark) == 0 ||
             error_input(e, "the shape's name is not valid UTF-8");
    }
    return ok ? json_incref(root) : NULL;
}

static bool read_dtype(const json_t *root, Dtype *out, Error *e) {
    static const struct {
        const char *name;
        Dtype dtype;
    } known[] = {{"bfloat16", DTYPE_BF16}, {"float16", DTYPE_F16}, {"float32", DTYPE_F32}};
    const char *key = field_present(root, "dtype") ? "dtype" : "torch_dtype";
    *out = DTYPE_BF16;
    if (!field_present(root, key)) return true;
    const char *name = json_string_value(json_object_get(root, key));
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) {
            *out = known[i].dtype;
            return true;
        }
    return error_input(e, "'%s' must be bfloat16, float16 or float32", key);
}

// --- plan

static void add_tensor(SynthPlan *p, const WeightSpec *s, bool is_head) {
    TensorPlan *t = &p->out.tensors[p->out.count];
    if (!tensor_plan(s, p->dtype, t)) return;
    // Spreads that keep activations near size 1: weights of variance 1 / columns. The head's are larger, so
    // that distributions have a clear favourite. A uniform number of half-width h has variance h^2 / 3.
    float scale = is_head ? 3.0f : 1.0f;
    p->values[p->out.count++] =
        (Values){.centre = t->vector && !strstr(t->name, "bias") ? 1.0f : 0.0f,
                 .spread = t->vector ? 0.2f : scale * sqrtf(3.0f / (float)t->columns)};
}

static uint64_t stream_of(int tensor) { return STREAM_WEIGHTS + ((uint64_t)tensor << 8); }

// Four numbers come from one draw. The stream is the tensor's number.
static void fill(const void *source, int tensor, size_t from, size_t count, unsigned char *out) {
    const SynthPlan *p = source;
    Values v = p->values[tensor];
    uint64_t stream = stream_of(tensor), bits = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = from + i;
        if (i == 0 || at % 4 == 0) bits = random_at(p->seed, stream, at / 4) >> 16 * (at % 4);
        float u = ((float)(bits & 0xffff) + 0.5f) * 0x1p-15f - 1.0f, x = v.centre + v.spread * u;
        bits >>= 16;
        weight_put(p->dtype, out, i, x);
    }
}

static void plan_init(SynthPlan *p, size_t most) {
    p->out.fill = fill;
    p->out.source = p;
    p->out.tensors = mem_new(most, sizeof *p->out.tensors);
    p->values = mem_new(most, sizeof *p->values);
}

static void plan_release(SynthPlan *p) { MEM_FREE(p->out.tensors, p->values); }

static void plan_model(SynthPlan *p, const Model *m) {
    Weight head = m->shape.tied_head ? W_EMBEDDING : W_HEAD;
    plan_init(p, (size_t)weights_count(m));
    for (int i = 0; i < weights_count(m); i++) {
        WeightSpec s = weights_at(m, i);
        add_tensor(p, &s, s.which == head);
    }
}

// --- the directory

static Made made_in(const char *dir, bool adapter, bool force) {
    return (Made){dir, "synth", MARK, .adapter = adapter, .force = force};
}

static bool write_tokenizer(const char *dir, int vocab, Error *e) {
    if (vocab < SYNTH_TOKENIZER_MIN) return true; // ids only
    LOCAL_MEMORY char *text = synth_tokenizer(vocab);
    bool ok = made_text(dir, "tokenizer.json", text, e);
    return ok &&
           made_text(
               dir, "tokenizer_config.json",
               "{\"tokenizer_class\": \"PreTrainedTokenizerFast\", \"bos_token\": \"<s>\", \"eos_token\": "
               "\"</s>\", \"unk_token\": \"<unk>\", \"clean_up_tokenization_spaces\": false}\n",
               e);
}

static bool describe(const json_t *config, const char *place, Model *m, Error *e) {
    LOCAL_MEMORY char *text = json_text(config, 0);
    *m = (Model){0};
    bool ok = config_parse(m, text, strlen(text), place, e);
    return ok && read_dtype(config, &m->dtype, e);
}

bool synth_describe(const SynthOptions *o, Model *out, Error *e) {
    json_auto_t *config = read_config(o, e);
    return config && describe(config, o->shape, out, e);
}

static bool synth(const char *dir, const json_t *config, SynthPlan *p, const SynthOptions *o, Error *e) {
    Model m;
    Made made = made_in(dir, false, o->force);
    if (!describe(config, o->shape, &m, e)) return false;
    p->dtype = m.dtype;
    plan_model(p, &m);
    if (!made_begin(&made, config, e)) return false;
    static const char *const ids[] = {"bos_token_id", "eos_token_id"};
    json_auto_t *generation = json_object();
    for (size_t i = 0; i < 2; i++)
        if (json_object_get(config, ids[i]))
            json_object_set(generation, ids[i], json_object_get(config, ids[i]));
    bool ok = write_tokenizer(dir, m.shape.vocab, e) &&
              made_json(dir, "generation_config.json", generation, e) && weights_out(&p->out, dir, e) &&
              made_finish(&made, e);
    if (!ok) made_abandon(&made);
    return ok;
}

bool model_synth(const char *dir, const SynthOptions *o, Error *e) {
    LOCAL(plan_release)
    SynthPlan p = {.out = {.shard_bytes = o->shard_bytes, .threads = o->threads, .progress = o->progress},
                   .seed = o->seed};
    json_auto_t *config = read_config(o, e);
    return config && synth(dir, config, &p, o, e);
}

// --- without files. Tensors are one after another in memory that stays empty, as in a file.

typedef struct SynthNumbers {
    SynthPlan plan;
    StoredTensor *stored; // (plan.out.count), in the order of the plan
    const unsigned char *memory;
    char *config;
} SynthNumbers;

static void numbers_free(SynthNumbers *n) {
    MEM_FREE(n->config, n->stored);
    plan_release(&n->plan);
    mem_free(n);
}

enum { BITS_GROUP = 32, LINE = 64 };
static const uint16_t SCALE = 0x1400; // f16 of 2^-10

// The shape in front of ":8" or ":4".
static bool split_name(const char *name, char shape[SHARD_NAME], int *bits) {
    size_t n = strlen(name);
    *bits = n > 2 && name[n - 2] == ':' && strchr("48", name[n - 1]) ? name[n - 1] - '0' : 0;
    return snprintf(shape, SHARD_NAME, "%.*s", (int)(*bits ? n - 2 : n), name) < SHARD_NAME;
}

bool synth_named(const char *name) {
    char shape[SHARD_NAME];
    int bits;
    if (!split_name(name, shape, &bits)) return false;
    size_t n = strlen(shape);
    if (n > 5 && strcmp(shape + n - 5, ".json") == 0) return file_exists(shape);
    if (file_exists(name) || strchr(name, '/')) return false;
    LOCAL_MEMORY char *path = shape_file(shape, NULL);
    return path != NULL;
}

static StoredTensor stored_as(const TensorPlan *t, size_t *at) {
    StoredTensor s = {.begin = *at, .end = *at + plan_bytes(t)};
    memcpy(s.name, t->name, sizeof s.name);
    snprintf(s.dtype, sizeof s.dtype, "%s", t->bits == 8 ? "I8" : t->bits == 4 ? "U8" : dtype_name(t->dtype));
    if (t->planes) s.dims[s.rank++] = (int64_t)t->planes;
    if (!t->vector) s.dims[s.rank++] = (int64_t)t->rows;
    s.dims[s.rank++] = (int64_t)t->columns;
    *at = (s.end + LINE - 1) / LINE * LINE;
    return s;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const StoredTensor *)a)->name, ((const StoredTensor *)b)->name);
}

// Codes and scales of every matrix that quantise.h codes, too.
static bool plan_codes(SynthPlan *p, const Model *m, Error *e) {
    Values none = {0};
    plan_init(p, 2 * (size_t)weights_count(m));
    for (int i = 0; i < weights_count(m); i++) {
        WeightSpec s = weights_at(m, i);
        TensorPlan *t = &p->out.tensors[p->out.count];
        if (!quantise_codes(&s)) {
            add_tensor(p, &s, false);
            continue;
        }
        if (s.columns % BITS_GROUP)
            return error_input(e, "tensor '%s' has %d columns, which groups of %d don't divide", s.name,
                               s.columns, BITS_GROUP);
        if (!quantise_plan(&s, m->bits, BITS_GROUP, &t[0], &t[1], e)) return false;
        for (int k = 0; k < 2; k++) p->values[p->out.count++] = none;
    }
    return true;
}

// The host reads vectors, tensors that are rearranged when they are bound, and scales.
static void fill_here(SynthNumbers *n, const Model *m) {
    unsigned char *memory = (unsigned char *)(uintptr_t)n->memory;
    for (int i = 0; i < weights_count(m); i++) {
        WeightSpec s = weights_at(m, i);
        for (int k = 0; k < n->plan.out.count; k++) {
            const TensorPlan *t = &n->plan.out.tensors[k];
            bool own = strcmp(t->name, s.name) == 0 && !t->bits && (s.vector || s.form != STORED_AS_READ);
            if (own) fill(&n->plan, k, 0, plan_bytes(t) / dtype_size(t->dtype), memory + n->stored[k].begin);
        }
    }
    for (int k = 1; k < n->plan.out.count; k++)
        for (size_t at = n->stored[k].begin; n->plan.out.tensors[k - 1].bits && at < n->stored[k].end;
             at += sizeof SCALE)
            memcpy(memory + at, &SCALE, sizeof SCALE);
}

static bool bind_numbers(Model *m, ModelWeights *w, SynthNumbers *n, const char *name, Error *e) {
    size_t count = (size_t)n->plan.out.count, bytes = 0;
    n->stored = mem_new(count, sizeof *n->stored);
    for (size_t i = 0; i < count; i++) n->stored[i] = stored_as(&n->plan.out.tensors[i], &bytes);
    if (!file_empty(bytes, &w->files[w->file_count].view, e)) return false;
    WeightFile *file = &w->files[w->file_count++];
    snprintf(file->name, SHARD_NAME, "the numbers of synth");
    n->memory = file->view.data;
    fill_here(n, m);
    LOCAL_MEMORY StoredTensor *sorted = mem_new(count, sizeof *sorted);
    memcpy(sorted, n->stored, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_name);
    Shard shard = {{sorted, count}, file->view.data, file->name};
    bool ok = weights_bind(m, w, &shard, 1, name, e);
    m->numbers = n;
    return ok;
}

bool synth_open(Model *m, ModelWeights *w, const char *name, Error *e) {
    char shape[SHARD_NAME], set[96];
    int bits;
    split_name(name, shape, &bits);
    snprintf(set, sizeof set,
             "quantization_config={\"quant_method\": \"outpace\", \"bits\": %d, \"group_size\": %d}", bits,
             BITS_GROUP);
    const char *const sets[] = {set};
    SynthOptions o = {.shape = shape, .sets = sets, .set_count = bits ? 1 : 0};
    json_auto_t *config = read_config(&o, e);
    *m = (Model){0};
    *w = (ModelWeights){.dir = mem_text(name, strlen(name))};
    bool ok = config && describe(config, shape, m, e);
    if (ok) {
        w->numbers = mem_new(1, sizeof *w->numbers);
        w->numbers->plan.dtype = m->dtype;
        w->numbers->config = json_text(config, 0);
        w->numbers_config = w->numbers->config;
        w->free_numbers = numbers_free;
        w->files = mem_new(1, sizeof *w->files);
        if (bits) ok = plan_codes(&w->numbers->plan, m, e);
        else plan_model(&w->numbers->plan, m);
        weights_take_layers(m, w);
        ok = ok && bind_numbers(m, w, w->numbers, name, e);
    }
    if (ok) return true;
    model_close(w);
    *m = (Model){0};
    return false;
}

bool synth_run(const SynthNumbers *n, const Tensor *t, SynthRun *out) {
    for (int i = 0; n && i < n->plan.out.count; i++) {
        const TensorPlan *p = &n->plan.out.tensors[i];
        size_t at = (size_t)t->data - (size_t)n->memory;
        if (at < n->stored[i].begin || at >= n->stored[i].end) continue;
        at -= n->stored[i].begin;
        Values v = n->plan.values[i];
        *out = (SynthRun){n->plan.seed, stream_of(i), p->bits ? at : at / dtype_size(p->dtype),
                          v.centre,     v.spread,     p->bits != 0};
        return true;
    }
    return false;
}

bool adapter_synth(const char *dir, const Model *target, const AdapterKind *kind, uint64_t seed, bool force,
                   Error *e) {
    WeightSpec specs[WEIGHTS];
    Shape shape = adapter_shape(kind, &target->shape);
    LOCAL_TEXT text = {0};
    if (!adapter_check(kind, target, dir, e)) return false;
    LOCAL(plan_release) SynthPlan p = {.dtype = target->dtype, .seed = seed};
    Made made = made_in(dir, true, force);
    plan_init(&p, (size_t)adapter_parts(kind) * WEIGHTS);
    for (int i = 0; i < adapter_parts(kind); i++) {
        adapter_weights(kind->variant, &shape, i, specs);
        // By far the most rows belong to the projection to the vocabulary.
        for (const WeightSpec *w = specs; w < specs + WEIGHTS; w++)
            add_tensor(&p, w, !w->vector && w->rows > w->columns * 4);
    }
    adapter_config(kind, &target->shape, &text);
    json_auto_t *config = json_loads(text_get(&text), 0, NULL);
    json_object_set_new(config, MARK, json_pack("{s:I}", "seed", (json_int_t)seed));
    return weights_made(&p.out, &made, config, NULL, e);
}

// --- a tokenizer for it

enum { FIRST_LETTER = 259, PIECE = 64 };

static const char SPACE[] = "\xe2\x96\x81"; // ▁
static const char VOWELS[] = "aeiou", CONSONANTS[] = "bdfgklmnprst";

// Without pieces.
EMBED(empty_tokenizer, "engine/model/make/tokenizer.json")

json_t *tokenizer_json(json_t *vocab, json_t *merges) {
    json_t *root = json_loads(empty_tokenizer, 0, NULL), *model = json_object_get(root, "model");
    json_object_set_new(model, "vocab", vocab);
    json_object_set_new(model, "merges", merges);
    return root;
}

static void add_fixed(json_t *vocab, int size) {
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    char piece[16];
    for (int i = 0; i < 3; i++) json_object_set_new(vocab, special[i], json_integer(i));
    for (int i = 0; i < 256; i++) {
        snprintf(piece, sizeof piece, "<0x%02X>", (unsigned)i);
        json_object_set_new(vocab, piece, json_integer(3 + i));
    }
    if (size > FIRST_LETTER) json_object_set_new(vocab, SPACE, json_integer(FIRST_LETTER));
    for (int c = 33, id = FIRST_LETTER + 1; c < 127 && id < size; c++, id++) {
        snprintf(piece, sizeof piece, "%c", c);
        json_object_set_new(vocab, piece, json_integer(id));
    }
}

// Breadth first: pieces[head] and each letter that may follow it.
static void add_syllables(json_t *vocab, json_t *merges, char (*pieces)[PIECE], int first, int size) {
    int count = 0, id = first;
    char merge[PIECE + 4];
    snprintf(pieces[count++], PIECE, "%s", SPACE);
    for (const char *c = CONSONANTS; *c; c++) snprintf(pieces[count++], PIECE, "%c", *c);
    for (int head = 0; id < size; head++) {
        char last = pieces[head][strlen(pieces[head]) - 1];
        const char *letters = strchr(VOWELS, last) || (unsigned char)last >= 0x80 ? CONSONANTS : VOWELS;
        for (const char *c = letters; *c && id < size; c++, id++, count++) {
            snprintf(pieces[count], PIECE, "%.*s%c", PIECE - 2, pieces[head], *c);
            json_object_set_new(vocab, pieces[count], json_integer(id));
            snprintf(merge, sizeof merge, "%s %c", pieces[head], *c);
            json_array_append_new(merges, json_string(merge));
        }
    }
}

char *synth_tokenizer(int size) {
    enum { FIRST_SYLLABLE = FIRST_LETTER + 1 + 94 };
    json_t *vocab = json_object(), *merges = json_array();
    LOCAL_MEMORY char(*pieces)[PIECE] = mem_new((size_t)size + 64, PIECE);
    add_fixed(vocab, size);
    add_syllables(vocab, merges, pieces, FIRST_SYLLABLE, size);
    json_auto_t *root = tokenizer_json(vocab, merges);
    LOCAL_MEMORY char *text = json_text(root, JSON_COMPACT);
    return mem_printf("%s\n", text);
}
