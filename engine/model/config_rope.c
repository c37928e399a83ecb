// Reads three generations of keys: rope_theta with rope_scaling {type}, with rope_scaling {rope_type}, and
// rope_parameters, which contains both.
#include "engine/model/config.h"

#include "engine/base/json.h"

#include <math.h>
#include <string.h>

// The arguments of every reader.
typedef struct {
    const json_t *root;
    const char *place;
    Error *e;
} Reader;

static bool read_llama3(const Reader *r, const json_t *scaling, Rope *rope) {
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
static bool read_original_context(const Reader *r, const json_t *scaling, int64_t *out) {
    static const char key[] = "original_max_position_embeddings";
    return field_int_optional(scaling, key, 1, 1 << 24, out, r->place, r->e) &&
           field_int_optional(r->root, key, 1, 1 << 24, out, r->place, r->e);
}

static bool read_list(const Reader *r, const json_t *scaling, const char *key, int pairs, float *out) {
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
static bool read_longrope(const Reader *r, const Architecture *a, const json_t *scaling, const Shape *s,
                          Rope *rope) {
    int original_context = a->shape.rope.original_context;
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

static bool read_scaling(const Reader *r, const Architecture *a, const json_t *scaling, const Shape *s,
                         Rope *rope) {
    const char *key = field_present(scaling, "rope_type") ? "rope_type" : "type";
    if (!field_present(scaling, key)) return true;
    const char *type = field_text(scaling, key, r->place, r->e);
    if (!type) return false;
    if (strcmp(type, "default") == 0) return true;
    if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0) {
        rope->kind = ROPE_LONGROPE;
        return read_longrope(r, a, scaling, s, rope);
    }
    if (strcmp(type, "linear") != 0 && strcmp(type, "llama3") != 0)
        return error_input(
            r->e, "rope scaling '%s' in '%s' is not supported: default, linear, llama3 and longrope are",
            type, r->place);
    rope->kind = type[1] == 'i' ? ROPE_LINEAR : ROPE_LLAMA3;
    if (!field_real(scaling, "factor", 1e-6, 1e6, &rope->factor, r->place, r->e)) return false;
    return rope->kind == ROPE_LINEAR || read_llama3(r, scaling, rope);
}

// Finds rope_scaling, or rope_parameters in newer files; *out is NULL if there is neither.
static bool find_object(const Reader *r, json_t **out) {
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

// Refuses objects inside, which are ropes for some layers each.
static bool check_flat(const Reader *r, json_t *scaling) {
    const char *key;
    json_t *part;
    json_object_foreach(scaling, key, part) {
        if (json_is_object(part))
            return error_input(
                r->e, "'%.40s' in '%s' gives some layers a rope of their own, which is not supported", key,
                r->place);
    }
    return true;
}

// Reads how much of a head is rotated.
static bool read_pairs(const Reader *r, const Architecture *a, const json_t *scaling, Shape *s) {
    static const char key[] = "partial_rotary_factor";
    double part = 1;
    if (!field_real_optional(r->root, key, 0, 1, &part, r->place, r->e) ||
        !field_real_optional(scaling, key, 0, 1, &part, r->place, r->e))
        return false;
    if (part != 1 && !a->partly_rotated)
        return error_input(r->e, "'%s' in '%s' is %g, only 1 is supported for %s", key, r->place, part,
                           a->model_type);
    int dims = (int)(s->head_dim * part);
    if (part != 1 && (dims < 2 || dims % 2))
        return error_input(r->e,
                           "'%s' %g in '%s' rotates %d of %d dimensions, must be an even number of them", key,
                           part, r->place, dims, s->head_dim);
    s->rope.pairs = dims / 2;
    return true;
}

bool config_rope(const json_t *root, const Architecture *a, Shape *s, const char *place, Error *e) {
    const Reader r = {root, place, e};
    static const char theta[] = "rope_theta";
    json_t *scaling;
    s->rope = (Rope){.kind = ROPE_PLAIN, .theta = 10000, .factor = 1, .attention_factor = 1};
    return find_object(&r, &scaling) && check_flat(&r, scaling) &&
           field_real_optional(root, theta, 1, 1e12, &s->rope.theta, place, e) &&
           field_real_optional(scaling, theta, 1, 1e12, &s->rope.theta, place, e) &&
           read_pairs(&r, a, scaling, s) && read_scaling(&r, a, scaling, s, &s->rope);
}
