// Reads `quantization_config` of a config.json: how the files hold weights of codes, and of which model.
#include "engine/base/json.h"
#include "engine/model/config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char KEY[] = "quantization_config";

static const char *word(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

void config_shown(const char *text, char *out, size_t n) {
    snprintf(out, n, "%s", text);
    for (; *out; out++)
        if (*out < ' ' || *out > '~') *out = '?';
}

void config_quantised(Model *m, const char *codes, const char *name) {
    char plain[80];
    config_shown(name, plain, sizeof plain);
    snprintf(m->quantised, sizeof m->quantised, "%s%s%s", codes, *plain ? ", of " : "", plain);
}

// The form of quantise.h.
static bool read_own(const ConfigReader *r, const json_t *codes, Model *m) {
    json_int_t bits = json_integer_value(json_object_get(codes, "bits")),
               group = json_integer_value(json_object_get(codes, "group_size"));
    if ((bits != 8 && bits != 4) || (group != 32 && group != 64 && group != 128))
        return error_input(
            r->e,
            "'%s' in '%s' must have 'bits' 8 or 4, and 'group_size' 32, 64 or 128: quantise the model again",
            KEY, r->place);
    m->bits = (int)bits;
    m->group = (int)group;
    m->unfused = true;
    char form[48];
    snprintf(form, sizeof form, "%d bits, groups of %d", m->bits, m->group);
    config_quantised(m, form, word(codes, "original"));
    return true;
}

// --- what others publish

typedef struct Published {
    const char *method, *shown;
    PackedForm form;
    int bits[2];
    bool (*read)(const ConfigReader *r, const json_t *codes, Packing *out);
} Published;

static bool unsupported(const ConfigReader *r, const char *what, const char *value) {
    return error_input(
        r->e,
        "'%s' holds a quantised model ('%s') whose %s is '%.40s', which is not supported: awq (gemm), "
        "gptq and compressed-tensors (pack-quantized) are; give its bf16, f16 or f32 original",
        r->place, KEY, what, value);
}

static bool read_sizes(const ConfigReader *r, const json_t *codes, const char *bits_key, Packing *out) {
    int64_t bits = 0, group = -1;
    if (!field_int(codes, bits_key, 1, 16, &bits, r->place, r->e) ||
        !field_int_optional(codes, "group_size", -1, 1 << 19, &group, r->place, r->e))
        return false;
    out->bits = (int)bits;
    out->group = group < 1 ? 0 : (int)group;
    return true;
}

static bool read_awq(const ConfigReader *r, const json_t *codes, Packing *out) {
    const char *version = word(codes, "version");
    if (!*version) version = word(codes, "checkpoint_format");
    if (*version && strcasecmp(version, "gemm") != 0) return unsupported(r, "version", version);
    return read_sizes(r, codes, "bits", out);
}

static bool read_gptq(const ConfigReader *r, const json_t *codes, Packing *out) {
    const char *format = word(codes, "checkpoint_format");
    bool second = strcmp(format, "gptq_v2") == 0, symmetric = true;
    if (*format && !second && strcmp(format, "gptq") != 0) return unsupported(r, "checkpoint_format", format);
    out->one_less = !second;
    return read_sizes(r, codes, "bits", out) &&
           field_bool_optional(codes, "desc_act", &out->ordered, r->place, r->e) &&
           field_bool_optional(codes, "sym", &symmetric, r->place, r->e);
}

// One group of all linear layers, whose inputs stay as they are.
static bool read_tensors(const ConfigReader *r, const json_t *codes, Packing *out) {
    const json_t *groups = json_object_get(codes, "config_groups");
    const char *format = word(codes, "format");
    if (strcmp(format, "pack-quantized") != 0) return unsupported(r, "format", format);
    const json_t *group = json_object_iter_value(json_object_iter((json_t *)(size_t)groups));
    const json_t *weights = json_object_get(group, "weights");
    if (json_object_size(groups) != 1 || !json_is_object(weights) ||
        field_present(group, "input_activations"))
        return error_input(r->e,
                           "'config_groups' of '%s' in '%s' must be one group, with 'weights' and without "
                           "'input_activations'",
                           KEY, r->place);
    if (strcmp(word(weights, "type"), "int") != 0) return unsupported(r, "type", word(weights, "type"));
    return read_sizes(r, weights, "num_bits", out);
}

static const Published PUBLISHED[] = {
    {"awq", "AWQ", PACKED_AWQ, {4}, read_awq},
    {"gptq", "GPTQ", PACKED_GPTQ, {4, 8}, read_gptq},
    {"compressed-tensors", "compressed-tensors", PACKED_TENSORS, {4, 8}, read_tensors},
};

static bool read_published(const ConfigReader *r, const json_t *codes, const Published *p, Model *m) {
    Packing *k = &m->packing;
    if (!p->read(r, codes, k)) return false;
    k->form = p->form;
    if (k->bits != p->bits[0] && k->bits != p->bits[1])
        return error_input(r->e, "'%s' in '%s' has weights of %d bits, which is not supported for %s: %s",
                           KEY, r->place, k->bits, p->shown, p->bits[1] ? "4 and 8 are" : "4 are");
    bool valued = k->ordered && k->group;
    m->bits = valued ? 0 : k->bits;
    m->group = k->group ? k->group : GROUP_MOST;
    char form[64];
    if (k->group) snprintf(form, sizeof form, "%d bits, groups of %d (%s)", k->bits, k->group, p->shown);
    else snprintf(form, sizeof form, "%d bits, a group a row (%s)", k->bits, p->shown);
    // The last part of the name that config.json gives the original, or its type.
    const char *path = word(r->root, "_name_or_path"), *slash = strrchr(path, '/');
    const char *original = slash ? slash + 1 : path;
    config_quantised(m, form, *original ? original : m->architecture);
    return true;
}

bool config_codes(const ConfigReader *r, Model *m) {
    const json_t *codes = json_object_get(r->root, KEY);
    const char *method = word(codes, "quant_method");
    if (!field_present(r->root, KEY)) return true;
    m->dtype = DTYPE_BF16;
    if (strcmp(method, "outpace") == 0) return read_own(r, codes, m);
    for (size_t i = 0; i < sizeof PUBLISHED / sizeof *PUBLISHED; i++)
        if (strcmp(method, PUBLISHED[i].method) == 0) return read_published(r, codes, &PUBLISHED[i], m);
    return unsupported(r, "quant_method", method);
}
