// Opens the model, plans a tensor of codes and one of scales for each matrix, and has weights_out write them.
// A group is coded when its bytes are asked for: once for its codes, once for its scale.
#include "engine/model/make/quantise.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char MARK[] = "outpace_quantise";

// --- one group

// x in steps of the scale, from low to high. Written for compilers to vectorise: the sum rounds to an
// integer.
static inline float code_of(float x, float steps, float low, float high) {
    float q = x * steps;
    q = q < low ? low : q > high ? high : q;
    return (q + 0x1.8p23f) - 0x1.8p23f;
}

static float error_of(const float *x, int n, float scale) {
    float miss[GROUP_MOST], steps = 1 / scale, sum = 0;
    for (int i = 0; i < n; i++) {
        miss[i] = x[i] - code_of(x[i], steps, -8, 7) * scale;
        miss[i] *= miss[i];
    }
    for (int i = 0; i < n; i++) sum += miss[i];
    return sum;
}

// As f16, neither 0 nor infinite: such scales are refused when a model is opened.
static float storable(float scale) {
    float least = copysignf(0x1p-24f, scale), most = copysignf(65504, scale), half = f16_round(scale);
    return half == 0 ? least : isinf(half) ? most : half; // NOLINT: exact
}

// Codes of 4 bits go from -8 to 7, so that the largest number gets the sign that has -8. A somewhat smaller
// or larger scale may miss the other numbers by less.
static float best_scale(const float *x, int n, float largest) {
    enum { TRIES = 9 };
    float best = storable(largest / -8), least = error_of(x, n, best);
    for (int i = 0; i < TRIES; i++) {
        float scale = storable(largest / -(6.75f + 0.25f * (float)i));
        float error = error_of(x, n, scale);
        if (error < least) {
            least = error;
            best = scale;
        }
    }
    return best;
}

uint16_t quantise_group(const float *x, int n, int bits, unsigned char *codes) {
    float largest = 0, scale = 1;
    assert(n >= 2 && n <= GROUP_MOST && n % 2 == 0);
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(largest)) largest = x[i];
    if (fabsf(largest) > 0) scale = bits == 8 ? storable(fabsf(largest) / 127) : best_scale(x, n, largest);
    float steps = 1 / scale;
    for (int i = 0; bits == 8 && i < n; i++)
        codes[i] = (unsigned char)(int8_t)code_of(x[i], steps, -127, 127);
    for (int i = 0; bits == 4 && i < n; i += 2)
        codes[i / 2] = (unsigned char)(((int)code_of(x[i], steps, -8, 7) + 8) |
                                       ((int)code_of(x[i + 1], steps, -8, 7) + 8) << 4);
    return f32_to_f16(scale);
}

// --- plan

typedef enum { PART_KEPT, PART_CODES, PART_SCALES } PartKind;

typedef struct Part {
    const Tensor *from;
    PartKind kind;
    int bits;
} Part;

typedef struct QuantisePlan {
    WeightsOut out;
    Part *parts; // (out.count)
    const QuantiseOptions *o;
} QuantisePlan;

// One row's groups from `from` on, as their codes or scales; count: bytes of codes, or scales.
static void fill_groups(const QuantisePlan *p, const Part *part, size_t from, size_t count,
                        unsigned char *out) {
    size_t group = (size_t)p->o->group, unit = part->kind == PART_CODES ? group * (size_t)part->bits / 8 : 1;
    size_t groups = (size_t)part->from->columns / group;
    assert(from % unit == 0 && count % unit == 0);
    for (size_t i = from / unit; i < (from + count) / unit; i++) {
        float x[GROUP_MOST];
        unsigned char codes[GROUP_MOST];
        for (size_t k = 0; k < group; k++)
            x[k] = tensor_value(part->from, i / groups, i % groups * group + k);
        uint16_t scale = quantise_group(x, (int)group, part->bits, codes);
        if (part->kind == PART_CODES) memcpy(out + (i * unit - from), codes, unit);
        else memcpy(out + (i - from) * sizeof scale, &scale, sizeof scale);
    }
}

static void fill(const void *source, int tensor, size_t from, size_t count, unsigned char *out) {
    const QuantisePlan *p = source;
    const Part *part = &p->parts[tensor];
    size_t size = dtype_size(part->from->dtype);
    if (part->kind != PART_KEPT) fill_groups(p, part, from, count, out);
    else memcpy(out, (const unsigned char *)part->from->data + from * size, count * size);
}

static TensorPlan *add(QuantisePlan *p, Part part) {
    p->parts[p->out.count] = part;
    return &p->out.tensors[p->out.count++];
}

bool quantise_codes(const WeightSpec *s) {
    return s->name[0] && !s->vector && s->which != W_POSITIONS && s->which != W_ROUTER &&
           s->which != W_SHARED_ROUTER;
}

// Embedding and head have 8 bits.
bool quantise_plan(const WeightSpec *s, int bits, int group, TensorPlan *codes, TensorPlan *scales,
                   Error *e) {
    size_t rows = (size_t)s->rows, columns = (size_t)s->columns;
    int own = s->which == W_EMBEDDING || s->which == W_HEAD ? 8 : bits;
    *codes = (TensorPlan){.rows = rows, .columns = columns * (size_t)own / 8, .bits = own};
    memcpy(codes->name, s->name, sizeof codes->name);
    *scales = (TensorPlan){.rows = rows, .columns = columns / (size_t)group, .dtype = DTYPE_F16};
    return scales_name(scales->name, s->name) ||
           error_input(e, "the name of tensor '%s' is too long", s->name);
}

static bool add_matrix(QuantisePlan *p, const WeightSpec *s, const Tensor *from, Error *e) {
    size_t columns = (size_t)s->columns, group = (size_t)p->o->group;
    if (from->codes.bits)
        return error_input(
            e, "tensor '%s' of '%s' has codes of %d bits already: give the bf16, f16 or f32 original",
            s->name, p->o->from, from->codes.bits);
    if (columns % group)
        return error_input(e, "tensor '%s' of '%s' has %zu columns, which groups of %zu don't divide%s",
                           s->name, p->o->from, columns, group,
                           columns % GROUP_LEAST ? ": it can't be quantised" : "; take a smaller --group");
    TensorPlan codes, scales;
    if (!quantise_plan(s, p->o->bits, p->o->group, &codes, &scales, e)) return false;
    *add(p, (Part){from, PART_CODES, codes.bits}) = codes;
    *add(p, (Part){from, PART_SCALES, codes.bits}) = scales;
    return true;
}

static bool plan_init(QuantisePlan *p, const Model *m, const QuantiseOptions *o, Error *e) {
    Model stored = *m; // its weights under the names that they get
    stored.unfused = true;
    size_t most = 2 * (size_t)weights_count(m);
    *p = (QuantisePlan){
        .out = {.fill = fill, .source = p, .shard_bytes = o->shard_bytes, .progress = o->progress},
        .parts = mem_new(most, sizeof *p->parts),
        .o = o};
    p->out.tensors = mem_new(most, sizeof *p->out.tensors);
    for (int i = 0; i < weights_count(m); i++) {
        WeightSpec s = weights_at(&stored, i);
        const Tensor *from = weight_tensor(m, s.layer, s.expert, s.which);
        if (!s.name[0]) continue;
        if (!(quantise_codes(&s) ? add_matrix(p, &s, from, e)
                                 : tensor_plan(&s, from->dtype, add(p, (Part){from, PART_KEPT, 0}))))
            return false;
    }
    return true;
}

// --- the directory

static const char *last_name(const char *path, char out[64]) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t from = end;
    while (from > 0 && path[from - 1] != '/') from--;
    snprintf(out, 64, "%.*s", (int)(end - from < 40 ? end - from : 40), path + from);
    return out;
}

// The original's config with its new form.
static json_t *config_of(const ModelWeights *w, const QuantiseOptions *o, Error *e) {
    char *path = file_path(o->from, "config.json"), identity[SHA256_TEXT], name[64], original[80];
    json_t *root = model_identity(w, o->from, identity, e) ? json_from_file(path, MADE_MAX_CONFIG, e) : NULL;
    mem_free(path);
    if (!root) return NULL;
    snprintf(original, sizeof original, "%s (%.12s)", last_name(o->from, name), identity);
    json_object_set_new(root, MARK, json_pack("{s:s}", "from", identity));
    json_t *codes = json_pack("{s:s, s:i, s:i, s:s}", "quant_method", "outpace", "bits", o->bits,
                              "group_size", o->group, "original", original);
    if (json_object_set_new(root, "quantization_config", codes) == 0) return root;
    error_input(e, "the name of '%s' is not valid UTF-8", o->from);
    json_decref(root);
    return NULL;
}

bool model_quantise(const char *dir, const QuantiseOptions *o, Error *e) {
    Model m;
    LOCAL(model_close) ModelWeights w = {0};
    QuantisePlan p;
    Made made = {dir, "quantise", MARK, .force = o->force};
    if (!model_open(&m, &w, o->from, e)) return false;
    json_auto_t *config =
        plan_init(&p, &m, o, e) && model_check_finite(&m, &w, e) ? config_of(&w, o, e) : NULL;
    bool ok = config && weights_made(&p.out, &made, config, o->from, e);
    MEM_FREE(p.parts, p.out.tensors);
    return ok;
}
