// The file of a machine. Every number has a source: a price is no better than the numbers behind it.
#include "simulate/hardware.h"

#include "engine/base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    if (strlen(name) >= sizeof h->name)
        return error_input(e, "%s: 'name' has %zu bytes, must be at most %zu", place, strlen(name),
                           sizeof h->name - 1);
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

// The reached shares, if the file has them: fitted to measured steps.
static bool read_reached(const json_t *root, const char *place, Hardware *h, Error *e) {
    const struct {
        const char *key;
        double *value;
    } ROWS[] = {
        {"read_share", &h->read_share},   {"compute_share", &h->compute_share},
        {"cache_share", &h->cache_share}, {"attention_share", &h->attention_share},
        {"row_passes", &h->row_passes},   {"overlap", &h->overlap},
        {"step_s", &h->step_s},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (json_object_get(root, ROWS[i].key) && !read_number(root, ROWS[i].key, ROWS[i].value, place, e))
            return false;
    return (!json_object_get(root, "most_rows") || read_whole(root, "most_rows", &h->most_rows, place, e)) &&
           (!json_object_get(root, "head_width") || read_whole(root, "head_width", &h->head_width, place, e));
}

static bool read_root(json_t *root, const char *place, Hardware *out, Error *e) {
    *out = (Hardware){0};
    hardware_floor(out);
    bool ok = root && (json_is_object(root) || error_input(e, "%s: not a JSON object", place)) &&
              read_machine(root, place, out, e) && read_reached(root, place, out, e) &&
              (hardware_check(out, e) || error_within(e, "%s", place));
    json_decref(root);
    return ok;
}

bool hardware_parse(const char *bytes, size_t n, const char *place, Hardware *out, Error *e) {
    return read_root(json_from_bytes(bytes, n, place, e), place, out, e);
}

bool hardware_open(const char *path, Hardware *out, Error *e) {
    return read_root(json_from_file(path, MOST_BYTES, e), path, out, e);
}

// --- writing ---------------------------------------------------------------------------------------------

static bool put(json_t *root, const char *key, double value, const char *source) {
    bool whole = value == floor(value) && fabs(value) < 1e15;
    json_t *number = whole ? json_integer((json_int_t)value) : json_real(value);
    return json_object_set_new(root, key, json_pack("{s:o, s:s}", "value", number, "source", source)) == 0;
}

char *hardware_write(const Hardware *h, const char *sheet, const char *reached) {
    json_auto_t *root = json_pack("{s:s}", "name", h->name);
    bool whole =
        put(root, "bytes_per_s", h->bytes_per_s, sheet) &&
        put(root, "operations_per_s", h->operations_per_s, sheet) &&
        put(root, "memory_bytes", h->memory_bytes, sheet) && put(root, "processors", h->processors, sheet) &&
        put(root, "tile_rows", h->tile_rows, sheet) && put(root, "tile_columns", h->tile_columns, sheet) &&
        put(root, "least_rows", h->least_rows, sheet) && put(root, "launch_s", h->launch_s, sheet) &&
        put(root, "launches", h->launches, sheet) && put(root, "read_share", h->read_share, reached) &&
        put(root, "compute_share", h->compute_share, reached) &&
        put(root, "cache_share", h->cache_share, reached) &&
        put(root, "attention_share", h->attention_share, reached) &&
        put(root, "row_passes", h->row_passes, reached) && put(root, "overlap", h->overlap, reached) &&
        put(root, "step_s", h->step_s, reached) &&
        (!h->most_rows || put(root, "most_rows", h->most_rows, reached)) &&
        (!h->head_width || put(root, "head_width", h->head_width, sheet));
    return whole ? json_text(root, JSON_INDENT(2)) : NULL;
}
