// Each number of a machine's file says where it comes from: a price is no better than what it is made of.
#include "simulate/hardware.h"

#include "engine/base/json.h"

#include <stdio.h>

enum { MOST_BYTES = 1 << 16 };

static bool read_number(const json_t *root, const char *key, double *out, const char *place, Error *e) {
    json_t *field = json_object_get(root, key);
    char inner[256];
    snprintf(inner, sizeof inner, "%.180s: %s", place, key);
    if (!json_is_object(field))
        return error_input(e, "%s: '%s' must be an object of \"value\" and \"source\"", place, key);
    const char *source = field_text(field, "source", inner, e);
    if (!source) return false;
    if (!*source) return error_input(e, "%s: \"source\" is empty; say where the number comes from", inner);
    return field_real(field, "value", 0, 1e30, out, inner, e);
}

static bool read_whole(const json_t *root, const char *key, int *out, const char *place, Error *e) {
    double value;
    if (!read_number(root, key, &value, place, e)) return false;
    if (value > 1e9 || value != (int)value)
        return error_input(e, "%s: '%s' is %g, must be a whole number up to 1e9", place, key, value);
    *out = (int)value;
    return true;
}

static bool read_machine(const json_t *root, const char *place, Hardware *h, Error *e) {
    const char *name = field_text(root, "name", place, e);
    if (!name) return false;
    snprintf(h->name, sizeof h->name, "%s", name);
    return read_number(root, "bytes_per_s", &h->bytes_per_s, place, e) &&
           read_number(root, "operations_per_s", &h->operations_per_s, place, e) &&
           read_number(root, "memory_bytes", &h->memory_bytes, place, e) &&
           read_whole(root, "processors", &h->processors, place, e) &&
           read_whole(root, "tile_rows", &h->tile_rows, place, e) &&
           read_whole(root, "tile_columns", &h->tile_columns, place, e) &&
           read_whole(root, "least_rows", &h->least_rows, place, e) &&
           read_number(root, "launch_s", &h->launch_s, place, e) &&
           read_whole(root, "launches", &h->launches, place, e);
}

static bool read_root(json_t *root, const char *place, Hardware *out, Error *e) {
    *out = (Hardware){0};
    hardware_floor(out);
    bool ok = root && (json_is_object(root) || error_input(e, "%s: not a JSON object", place)) &&
              read_machine(root, place, out, e) && (hardware_check(out, e) || error_within(e, "%s", place));
    json_decref(root);
    return ok;
}

bool hardware_parse(const char *bytes, size_t n, const char *place, Hardware *out, Error *e) {
    return read_root(json_from_bytes(bytes, n, place, e), place, out, e);
}

bool hardware_open(const char *path, Hardware *out, Error *e) {
    return read_root(json_from_file(path, MOST_BYTES, e), path, out, e);
}
