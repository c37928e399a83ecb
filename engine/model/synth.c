// The config is read and checked as any other; then the list of stored tensors is laid out (offsets, shards),
// and each shard is written front to back through one buffer, so that memory does not grow with the model.
#include "engine/model/synth.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/random.h"
#include "engine/base/text.h"
#include "engine/model/config.h"
#include "engine/model/shapes.h"
#include "engine/model/weights.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 16, MAX_PATH = 4096, MAX_JSON = 16 << 20 };
static const size_t SHARD_BYTES = 5000000000u;
// The name of config.json until all the rest is there; it tells a later synth whose the rest is.
static const char UNFINISHED[] = "outpace-synth.json";
static const char MARK[] = "outpace_synth"; // the key in config.json that says who made it

// A tensor as it will be stored.
typedef struct Planned {
    char name[TENSOR_NAME];
    size_t rows, columns;
    bool vector;
    float centre, spread; // values are uniform in centre +- spread
    int shard;
    size_t begin; // in its shard's data
} Planned;

typedef struct Plan {
    Planned *tensors; // (count)
    int count, shards;
    Dtype dtype;
    size_t bytes; // of all
    size_t written;
    const SynthOptions *o;
} Plan;

static size_t planned_bytes(const Plan *p, const Planned *t) {
    return t->rows * t->columns * dtype_size(p->dtype);
}

// --- config
// --------------------------------------------------------------------------------------------------------

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
    char *path = shape_file(o->shape, e);
    json_t *root = path ? json_from_file(path, MAX_JSON, e) : NULL;
    mem_free(path);
    bool ok =
        root && (json_is_object(root) || error_input(e, "the shape '%s' must be a JSON object", o->shape));
    for (int i = 0; ok && i < o->set_count; i++) ok = apply_set(root, o->sets[i], e);
    if (ok) {
        json_t *mark = json_pack("{s:s, s:I}", "shape", o->shape, "seed", (json_int_t)o->seed);
        ok = json_object_set_new(root, MARK, mark) == 0 ||
             error_input(e, "the shape's name is not valid UTF-8");
    }
    if (ok) return root;
    json_decref(root);
    return NULL;
}

static bool read_dtype(const json_t *root, Dtype *out, Error *e) {
    static const struct {
        const char *name;
        Dtype dtype;
    } known[] = {
        {"bfloat16", DTYPE_BF16},
        {"float16",  DTYPE_F16 },
        {"float32",  DTYPE_F32 }
    };
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
// ----------------------------------------------------------------------------------------------------------

// Spreads that keep what flows at size about 1: a product of `columns` unit numbers with weights of variance
// 1 / columns. The head is larger, so that distributions have a clear favourite. A uniform number of
// half-width h has variance h^2 / 3.
static void choose_values(Planned *t, bool is_head) {
    float scale = is_head ? 3.0f : 1.0f;
    t->centre = t->vector && !strstr(t->name, "bias") ? 1.0f : 0.0f;
    t->spread = t->vector ? 0.2f : scale * sqrtf(3.0f / (float)t->columns);
}

static void add_tensor(Plan *p, const WeightSpec *s, bool is_head) {
    if (!s->name[0] || s->first_row) return; // not of this architecture; or a later slice of a fused tensor
    Planned *t = &p->tensors[p->count++];
    memcpy(t->name, s->name, sizeof t->name);
    t->rows = (size_t)s->stored_rows;
    t->columns = (size_t)s->columns;
    t->vector = s->vector;
    choose_values(t, is_head);
}

// Of a list without roles: what has the most rows, by far, is the projection to the vocabulary.
static bool is_head(const WeightSpec *s) { return !s->vector && s->rows > s->columns * 4; }

static void lay_out(Plan *p) {
    size_t at = 0, most = p->o->shard_bytes ? p->o->shard_bytes : SHARD_BYTES;
    for (int i = 0; i < p->count; i++) {
        size_t bytes = planned_bytes(p, &p->tensors[i]);
        if (at && at + bytes > most) {
            p->shards++;
            at = 0;
        }
        p->tensors[i].shard = p->shards;
        p->tensors[i].begin = at;
        at += bytes;
        p->bytes += bytes;
    }
    p->shards++;
}

static bool make_plan(Plan *p, const Model *m, Error *e) {
    WeightSpec specs[LAYER_WEIGHTS];
    p->tensors = mem_alloc((size_t)m->shape.layers * LAYER_WEIGHTS + 3, sizeof *p->tensors);
    if (!p->tensors) return error_system(e, "out of memory for a list of tensors");
    int ends = weights_of_ends(m, specs);
    add_tensor(p, &specs[0], m->shape.tied_head);
    for (int layer = 0; layer < m->shape.layers; layer++) {
        int n = weights_of_layer(m, layer, specs);
        for (int i = 0; i < n; i++) add_tensor(p, &specs[i], false);
    }
    weights_of_ends(m, specs);
    for (int i = 1; i < ends; i++) add_tensor(p, &specs[i], i == 2);
    lay_out(p);
    return true;
}

// --- shards
// --------------------------------------------------------------------------------------------------------

// Four numbers come from one draw. The stream is the tensor's number.
static void fill(const Plan *p, int tensor, size_t from, size_t count, unsigned char *out) {
    const Planned *t = &p->tensors[tensor];
    uint64_t stream = STREAM_WEIGHTS + ((uint64_t)tensor << 8), bits = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = from + i;
        if (i == 0 || at % 4 == 0) bits = random_at(p->o->seed, stream, at / 4) >> 16 * (at % 4);
        float u = ((float)(bits & 0xffff) + 0.5f) * 0x1p-15f - 1.0f, x = t->centre + t->spread * u;
        bits >>= 16;
        uint16_t h = p->dtype == DTYPE_F16 ? f32_to_f16(x) : f32_to_bf16(x);
        if (p->dtype == DTYPE_F32) memcpy(out + 4 * i, &x, 4);
        else memcpy(out + 2 * i, &h, 2);
    }
}

static bool write_out(int fd, const void *data, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t k = write(fd, (const char *)data + done, n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        done += (size_t)k;
    }
    return true;
}

static bool write_tensor(Plan *p, int tensor, int fd, unsigned char *buffer) {
    const Planned *t = &p->tensors[tensor];
    size_t elements = t->rows * t->columns, step = BUFFER / 4;
    for (size_t done = 0; done < elements; done += step) {
        size_t n = elements - done < step ? elements - done : step, bytes = n * dtype_size(p->dtype);
        fill(p, tensor, done, n, buffer);
        if (!write_out(fd, buffer, bytes)) return false;
        p->written += bytes;
        if (p->o->progress && done % (step << 8) == 0)
            p->o->progress(p->o->state, (double)p->written / (double)p->bytes);
    }
    return true;
}

static void header_text(const Plan *p, int shard, Text *t) {
    text_puts(t, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < p->count; i++) {
        const Planned *x = &p->tensors[i];
        if (x->shard != shard) continue;
        text_printf(t, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", x->name, dtype_name(p->dtype));
        if (!x->vector) text_printf(t, "%zu,", x->rows);
        text_printf(t, "%zu],\"data_offsets\":[%zu,%zu]}", x->columns, x->begin,
                    x->begin + planned_bytes(p, x));
    }
    text_puts(t, "}");
    while (t->length % 8 && !t->failed) text_puts(t, " "); // so that the data is aligned
}

static bool write_shard_to(Plan *p, int shard, int fd, Error *e) {
    Text header = {0};
    unsigned char length[8], *buffer = mem_alloc(BUFFER, 1);
    header_text(p, shard, &header);
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)header.length >> 8 * i);
    bool ok = (buffer && !header.failed) || error_system(e, "out of memory for the header of a shard");
    if (ok) {
        ok = write_out(fd, length, 8) && write_out(fd, header.data, header.length);
        for (int i = 0; ok && i < p->count; i++)
            if (p->tensors[i].shard == shard) ok = write_tensor(p, i, fd, buffer);
        ok = ok && fsync(fd) == 0;
        if (!ok) error_system(e, "cannot write weights: %s", strerror(errno));
    }
    mem_free(buffer);
    text_release(&header);
    return ok;
}

static bool write_shard(Plan *p, const char *dir, const char *name, int shard, Error *e) {
    char path[MAX_PATH], part[MAX_PATH + 8];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(part, sizeof part, "%s.part", path);
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return error_system(e, "cannot write '%s': %s", part, strerror(errno));
    bool ok = write_shard_to(p, shard, fd, e) || error_within(e, "'%s'", path);
    if (close(fd) && ok) ok = error_system(e, "cannot write '%s': %s", path, strerror(errno));
    if (ok && rename(part, path)) ok = error_system(e, "cannot write '%s': %s", path, strerror(errno));
    if (!ok) unlink(part);
    return ok;
}

static void shard_name(const Plan *p, int shard, char out[64]) {
    if (p->shards == 1) snprintf(out, 64, "model.safetensors");
    else snprintf(out, 64, "model-%05d-of-%05d.safetensors", shard + 1, p->shards);
}

static bool write_text(const char *dir, const char *name, const char *text, Error *e) {
    char *path = file_path(dir, name);
    bool ok = path ? file_write(path, text, strlen(text), e) : error_system(e, "out of memory");
    mem_free(path);
    return ok;
}

// jansson (2.14) may drop a key, and say nothing, where memory runs out while it writes: what it wrote is
// read again.
static bool is_text_of(const char *text, const json_t *root) {
    json_t *again = text ? json_loads(text, 0, NULL) : NULL;
    bool same = again && json_equal(again, root);
    json_decref(again);
    return same;
}

static bool write_json(const char *dir, const char *name, const json_t *root, Error *e) {
    char *text = json_dumps(root, JSON_INDENT(2));
    bool ok = is_text_of(text, root) ? write_text(dir, name, text, e)
                                     : error_system(e, "out of memory for '%s'", name);
    free(text); // jansson's own
    return ok;
}

static bool write_index(const Plan *p, const char *dir, Error *e) {
    json_t *map = json_object();
    for (int i = 0; i < p->count; i++) {
        char name[64];
        shard_name(p, p->tensors[i].shard, name);
        json_object_set_new(map, p->tensors[i].name, json_string(name));
    }
    json_t *root =
        json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)p->bytes, "weight_map", map);
    bool ok =
        root ? write_json(dir, "model.safetensors.index.json", root, e) : error_system(e, "out of memory");
    json_decref(root);
    return ok;
}

static bool write_weights(Plan *p, const char *dir, Error *e) {
    char name[64];
    for (int shard = 0; shard < p->shards; shard++) {
        shard_name(p, shard, name);
        if (!write_shard(p, dir, name, shard, e)) return false;
    }
    return p->shards == 1 || write_index(p, dir, e);
}

// --- the directory
// -------------------------------------------------------------------------------------------------

static bool holds(const char *dir, const char *name) {
    char path[MAX_PATH];
    snprintf(path, sizeof path, "%s/%s", dir, name); // model_synth has seen to the length
    return access(path, F_OK) == 0;
}

// False with e filled where the directory holds a model that is not ours to replace.
static bool check_owner(const char *dir, Error *e) {
    const char *name = holds(dir, "config.json") ? "config.json" : UNFINISHED;
    bool weights = holds(dir, "model.safetensors") || holds(dir, "model.safetensors.index.json");
    if (!holds(dir, name))
        return !weights ||
               error_input(e, "'%s' holds weights without a config.json; give another directory", dir);
    char *path = file_path(dir, name);
    if (!path) return error_system(e, "out of memory");
    json_t *root = json_from_file(path, MAX_JSON, e);
    bool ours = json_object_get(root, MARK) != NULL;
    if (root && !ours)
        error_input(e, "'%s' holds a model that 'synth' did not write; give another directory", dir);
    json_decref(root);
    mem_free(path);
    return ours;
}

static bool is_ours(const struct dirent *f) {
    static const char *const patterns[] = {"model.safetensors",        "model.safetensors.index.json",
                                           "model-*-of-*.safetensors", "tokenizer.json",
                                           "tokenizer_config.json",    "generation_config.json"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (fnmatch(patterns[i], f->d_name, 0) == 0) return true;
    return false;
}

// Removes what an earlier synth left, config.json first: without it the directory holds no model.
static bool clear(const char *dir, Error *e) {
    DIR *d = opendir(dir);
    if (!d) return error_system(e, "cannot list '%s': %s", dir, strerror(errno));
    bool ok = !holds(dir, "config.json") || unlinkat(dirfd(d), "config.json", 0) == 0;
    for (struct dirent *f; ok && (f = readdir(d));)
        if (is_ours(f)) ok = unlinkat(dirfd(d), f->d_name, 0) == 0;
    if (!ok) error_system(e, "cannot replace the model in '%s': %s", dir, strerror(errno));
    closedir(d);
    return ok;
}

static bool prepare(const char *dir, const json_t *config, Error *e) {
    if (mkdir(dir, 0777) && errno != EEXIST)
        return error_system(e, "cannot make '%s': %s", dir, strerror(errno));
    struct stat st;
    if (stat(dir, &st) || !S_ISDIR(st.st_mode))
        return error_input(e, "'%s' is not a directory; give the path of one, or of nothing yet", dir);
    return check_owner(dir, e) && write_json(dir, UNFINISHED, config, e) && clear(dir, e);
}

static bool finish(const char *dir, Error *e) {
    char *from = file_path(dir, UNFINISHED), *to = file_path(dir, "config.json");
    bool ok = from && to
                  ? rename(from, to) == 0 || error_system(e, "cannot write '%s': %s", to, strerror(errno))
                  : error_system(e, "out of memory");
    mem_free(from);
    mem_free(to);
    return ok;
}

static bool write_tokenizer(const char *dir, int vocab, Error *e) {
    if (vocab < SYNTH_TOKENIZER_MIN) return true; // ids only
    char *text = synth_tokenizer(vocab, e);
    bool ok = text && write_text(dir, "tokenizer.json", text, e);
    mem_free(text);
    return ok &&
           write_text(
               dir, "tokenizer_config.json",
               "{\"tokenizer_class\": \"PreTrainedTokenizerFast\", \"bos_token\": \"<s>\", \"eos_token\": "
               "\"</s>\", \"unk_token\": \"<unk>\", \"clean_up_tokenization_spaces\": false}\n",
               e);
}

static bool write_generation(const char *dir, const json_t *config, Error *e) {
    json_t *root = json_object();
    static const char *const keys[] = {"bos_token_id", "eos_token_id"};
    for (size_t i = 0; i < 2; i++)
        if (json_object_get(config, keys[i]))
            json_object_set(root, keys[i], json_object_get(config, keys[i]));
    bool ok = root ? write_json(dir, "generation_config.json", root, e) : error_system(e, "out of memory");
    json_decref(root);
    return ok;
}

static bool synth(const char *dir, const json_t *config, Model *m, Plan *p, Error *e) {
    char *text = json_dumps(config, 0);
    bool ok = text ? config_parse(m, text, strlen(text), p->o->shape, e) : error_system(e, "out of memory");
    free(text); // jansson's own
    return ok && read_dtype(config, &p->dtype, e) && make_plan(p, m, e) && prepare(dir, config, e) &&
           write_tokenizer(dir, m->shape.vocab, e) && write_generation(dir, config, e) &&
           write_weights(p, dir, e) && finish(dir, e);
}

bool model_synth(const char *dir, const SynthOptions *o, Error *e) {
    Model m = {0};
    Plan p = {.o = o};
    if (strlen(dir) > MAX_PATH - 128) return error_input(e, "the path of the directory is too long");
    json_t *config = read_config(o, e);
    bool ok = config && synth(dir, config, &m, &p, e);
    json_decref(config);
    mem_free(p.tensors);
    return ok;
}

bool synth_tensors(const char *dir, const SynthTensors *t, Error *e) {
    SynthOptions o = {.seed = t->seed};
    Plan p = {.o = &o, .dtype = t->dtype};
    if (strlen(dir) > MAX_PATH - 128) return error_input(e, "the path of the directory is too long");
    json_t *config = json_from_bytes(t->config, strlen(t->config), "config.json", e);
    bool ok = config != NULL;
    p.tensors = mem_alloc((size_t)t->count, sizeof *p.tensors);
    if (ok && !p.tensors) ok = error_system(e, "out of memory for a list of tensors");
    if (ok) {
        json_object_set_new(config, MARK, json_pack("{s:I}", "seed", (json_int_t)t->seed));
        for (int i = 0; i < t->count; i++) add_tensor(&p, &t->specs[i], is_head(&t->specs[i]));
        lay_out(&p);
        ok = prepare(dir, config, e) && write_weights(&p, dir, e) && finish(dir, e);
    }
    json_decref(config);
    mem_free(p.tensors);
    return ok;
}
