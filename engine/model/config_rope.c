// Reads three generations of keys: rope_theta with rope_scaling {type}, with rope_scaling {rope_type}, and
// rope_parameters, which contains both.
#include "engine/model/config.h"

#include "engine/base/json.h"
#include "engine/core/rope.h"

#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

static bool read_llama3(const ConfigReader *r, const json_t *scaling, Rope *rope) {
    int64_t original;
    if (!field_real(scaling, "low_freq_factor", 1e-6, 1e6, &rope->low_frequency_factor, r->place, r->e) ||
        !field_real(scaling, "high_freq_factor", 1e-6, 1e6, &rope->high_frequency_factor, r->place, r->e) ||
        !field_int(scaling, "original_max_position_embeddings", 1, 1 << 24, &original, r->place, r->e))
        return false;
    rope->original_context = (int)original;
    if (rope->low_frequency_factor >= rope->high_frequency_factor)
        return error_input(r->e, "'low_freq_factor' in '%s' must be below 'high_freq_factor'", r->place);
    return true;
}

// The file's own key counts before the one in its rope object.
static bool read_original_context(const ConfigReader *r, const json_t *scaling, int64_t *out) {
    static const char key[] = "original_max_position_embeddings";
    return field_int_optional(scaling, key, 1, 1 << 24, out, r->place, r->e) &&
           field_int_optional(r->root, key, 1, 1 << 24, out, r->place, r->e);
}

static bool read_list(const ConfigReader *r, const json_t *scaling, const char *key, int pairs, float *out) {
    const json_t *list = json_object_get(scaling, key);
    if (json_array_size(list) != (size_t)pairs)
        return error_input(r->e,
                           "'%s' in '%s' has %zu numbers, must have %d (half the rotated part of a head)",
                           key, r->place, json_array_size(list), pairs);
    for (int i = 0; i < pairs; i++) {
        double x = json_number_value(json_array_get(list, (size_t)i));
        if (!(x > 0 && x < 1e9))
            return error_input(r->e, "'%s' in '%s' must hold positive numbers", key, r->place);
        out[i] = (float)x;
    }
    return true;
}

// Phi-3's long contexts. The factor of attention is the same for both lists.
static bool read_longrope(const ConfigReader *r, const json_t *scaling, const Shape *s, Rope *rope) {
    int original_context = r->a->shape.rope.original_context;
    int64_t original = original_context ? original_context : s->context;
    if (!read_original_context(r, scaling, &original) ||
        !read_list(r, scaling, "short_factor", rope->pairs, rope->stretch[0]) ||
        !read_list(r, scaling, "long_factor", rope->pairs, rope->stretch[1]))
        return false;
    rope->original_context = (int)original;
    rope_fit(rope, s->context);
    double ratio = (double)s->context / (double)original;
    if (!field_real_optional(scaling, "factor", 1e-6, 1e6, &ratio, r->place, r->e)) return false;
    rope->attention_factor = ratio > 1 ? sqrt(1 + log(ratio) / log((double)original)) : 1;
    return field_real_optional(scaling, "attention_factor", 1e-3, 1e3, &rope->attention_factor, r->place,
                               r->e);
}

static double yarn_scale(double factor, double m) { return factor <= 1 ? 1 : 0.1 * m * log(factor) + 1; }

// The pair that makes this many turns in the original context.
static double pair_of_turns(const Rope *rope, double turns) {
    return rope->pairs * log(rope->original_context / (turns * 2 * PI)) / log(rope->theta);
}

// YaRN (Peng et al., 2023): pairs of less than `beta_slow` turns are interpolated, those of more than
// `beta_fast` are not.
static bool read_yarn(const ConfigReader *r, const json_t *scaling, const Shape *s, Rope *rope) {
    int64_t original = s->context;
    double fast = 32, slow = 1, m = 0, m_all = 0, last = 2 * rope->pairs - 1;
    bool whole = true;
    if (!read_original_context(r, scaling, &original)) return false;
    rope->original_context = (int)original;
    rope->factor = (double)s->context / (double)original;
    if (!field_real_optional(scaling, "factor", 1e-6, 1e6, &rope->factor, r->place, r->e) ||
        !field_real_optional(scaling, "beta_fast", 1e-6, 1e6, &fast, r->place, r->e) ||
        !field_real_optional(scaling, "beta_slow", 1e-6, 1e6, &slow, r->place, r->e) ||
        !field_real_optional(scaling, "mscale", 0, 1e6, &m, r->place, r->e) ||
        !field_real_optional(scaling, "mscale_all_dim", 0, 1e6, &m_all, r->place, r->e) ||
        !field_bool_optional(scaling, "truncate", &whole, r->place, r->e))
        return false;
    if (rope->theta <= 1) return error_input(r->e, "'rope_theta' in '%s' must be above 1 for yarn", r->place);
    double from = pair_of_turns(rope, fast), to = pair_of_turns(rope, slow);
    rope->ramp_from = fmax(whole ? floor(from) : from, 0);
    rope->ramp_to = fmin(whole ? ceil(to) : to, last);
    if (rope->ramp_to <= rope->ramp_from) rope->ramp_to = rope->ramp_from + 0.001;
    bool both = m > 0 && m_all > 0;
    rope->attention_factor =
        both ? yarn_scale(rope->factor, m) / yarn_scale(rope->factor, m_all) : yarn_scale(rope->factor, 1);
    return field_real_optional(scaling, "attention_factor", 1e-3, 1e3, &rope->attention_factor, r->place,
                               r->e);
}

static bool read_scaling(const ConfigReader *r, const json_t *scaling, const Shape *s, Rope *rope) {
    const char *key = field_present(scaling, "rope_type") ? "rope_type" : "type";
    if (!field_present(scaling, key)) return true;
    const char *type = field_text(scaling, key, r->place, r->e);
    if (!type) return false;
    if (strcmp(type, "default") == 0) return true;
    if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0) {
        rope->kind = ROPE_LONGROPE;
        return read_longrope(r, scaling, s, rope);
    }
    if (strcmp(type, "yarn") == 0) {
        rope->kind = ROPE_YARN;
        return read_yarn(r, scaling, s, rope);
    }
    if (strcmp(type, "dynamic") == 0) return true; // as default within the model's context, where we stay
    if (strcmp(type, "linear") != 0 && strcmp(type, "llama3") != 0)
        return error_input(r->e,
                           "rope scaling '%s' in '%s' is not supported: default, linear, dynamic, llama3, "
                           "longrope and yarn are",
                           type, r->place);
    rope->kind = type[1] == 'i' ? ROPE_LINEAR : ROPE_LLAMA3;
    if (!field_real(scaling, "factor", 1e-6, 1e6, &rope->factor, r->place, r->e)) return false;
    return rope->kind == ROPE_LINEAR || read_llama3(r, scaling, rope);
}

// Finds rope_scaling, or rope_parameters in newer files; *out is NULL if there is neither.
static bool find_object(const ConfigReader *r, json_t **out) {
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    *out = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *v = json_object_get(r->root, keys[i]);
        if (!field_present(r->root, keys[i])) continue;
        if (!json_is_object(v)) return error_input(r->e, "'%s' in '%s' must be an object", keys[i], r->place);
        if (*out && !json_equal(*out, v))
            return error_input(
                r->e, "'rope_scaling' and 'rope_parameters' in '%s' differ: remove one of them", r->place);
        *out = v;
    }
    return true;
}

// Newer files have an object for each type of layers: *global gets that of layers without a window, *local
// the other. Without them, *global is `scaling` itself.
static bool find_parts(const ConfigReader *r, json_t *scaling, const json_t **global, const json_t **local) {
    const char *key;
    json_t *part;
    *global = scaling;
    json_object_foreach(scaling, key, part) {
        bool full = strcmp(key, "full_attention") == 0;
        if (!json_is_object(part)) continue;
        if (!full && strcmp(key, "sliding_attention") != 0)
            return error_input(r->e,
                               "'%.40s' in '%s' gives some layers a rope of their own, which is not "
                               "supported: full_attention and sliding_attention are",
                               key, r->place);
        *(full ? global : local) = part;
    }
    return true;
}

// The rope of layers with a window: a plain one.
static bool read_local(const ConfigReader *r, const json_t *local, Shape *s) {
    const char *type = local ? json_string_value(json_object_get(local, "rope_type")) : NULL;
    bool same = local && json_equal(local, json_object_get(json_object_get(r->root, "rope_parameters"),
                                                           "full_attention"));
    static const LayerSet none;
    if (same || !memcmp(&s->local, &none, sizeof none)) {
        s->local_theta = 0;
        return true;
    }
    if (type && strcmp(type, "default") != 0)
        return error_input(r->e,
                           "rope '%.40s' of sliding_attention in '%s' is not supported there: default is",
                           type, r->place);
    if (local && s->local_theta == 0) s->local_theta = s->rope.theta;
    return field_real_optional(r->root, "rope_local_base_freq", 1, 1e12, &s->local_theta, r->place, r->e) &&
           field_real_optional(local, "rope_theta", 1, 1e12, &s->local_theta, r->place, r->e);
}

// Reads how much of a head is rotated.
static bool read_pairs(const ConfigReader *r, const json_t *scaling, Shape *s) {
    static const char key[] = "partial_rotary_factor";
    double part = r->a->rotated > 0 ? r->a->rotated : 1;
    if (!config_real(r, key, 0, 1, &part) || !field_real_optional(scaling, key, 0, 1, &part, r->place, r->e))
        return false;
    if (part != 1 && !(r->a->rotated > 0) && !r->a->partly_rotated)
        return error_input(r->e, "'%s' in '%s' is %g, only 1 is supported for %s", key, r->place, part,
                           r->a->model_type);
    int dims = (int)(s->head_dim * part);
    if (part != 1 && (dims < 2 || dims % 2))
        return error_input(r->e,
                           "'%s' %g in '%s' rotates %d of %d dimensions, must be an even number of them", key,
                           part, r->place, dims, s->head_dim);
    s->rope.pairs = dims / 2;
    return true;
}

bool config_rope(const ConfigReader *r, Shape *s) {
    json_t *scaling;
    const json_t *global = NULL, *local = NULL;
    double theta = s->rope.theta > 0 ? s->rope.theta : 10000;
    s->rope = (Rope){.theta = theta, .neighbours = s->rope.neighbours, .factor = 1, .attention_factor = 1};
    return find_object(r, &scaling) && find_parts(r, scaling, &global, &local) &&
           config_real(r, "rope_theta", 1, 1e12, &s->rope.theta) &&
           field_real_optional(global, "rope_theta", 1, 1e12, &s->rope.theta, r->place, r->e) &&
           read_pairs(r, global, s) && read_scaling(r, global, s, &s->rope) && read_local(r, local, s);
}
