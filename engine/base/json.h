// JSON, by jansson: duplicate keys are refused, depth is capped (at jansson's own 2,048), an error is one
// line. jansson never runs out of memory: the program ends first (memory.h), so a value that json_pack and
// its relatives return is NULL only for text that is not UTF-8.
//
// The getters check type and range and name the key in their message; `place` is the file (and, where that
// helps, the object in it) for the message.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Why jansson could not parse: in our words where its own speak of its C interface.
const char *json_why(const json_error_t *why);

// Parses exactly n bytes; NULL with e filled if that is not JSON. Release with json_decref.
json_t *json_from_bytes(const char *bytes, size_t n, const char *place, Error *e);
json_t *json_from_file(const char *path, size_t max_size, Error *e);

// A value as text, to be freed by mem_free; NULL for NULL. flags are those of json_dumps.
char *json_text(const json_t *value, size_t flags);

// The same as a line to a file, and at the end of a text. Both release the value; false if it is NULL. The
// file's owner checks whether the line was written.
bool json_print(json_t *value, size_t flags, FILE *out);
bool json_append(json_t *value, size_t flags, Text *out);

json_t *json_number(double x); // null where x is not finite: JSON has no word for that

// True if the key is there and not null.
bool field_present(const json_t *object, const char *key);

// Each fills *out. A key that is absent or null is an error ("missing"); wrong type or range too. The
// optional forms leave *out (the default) as it is where the key is absent or null.
bool field_int(const json_t *object, const char *key, int64_t low, int64_t high, int64_t *out,
               const char *place, Error *e);
bool field_int_optional(const json_t *object, const char *key, int64_t low, int64_t high, int64_t *out,
                        const char *place, Error *e);
bool field_real(const json_t *object, const char *key, double low, double high, double *out,
                const char *place,
                Error *e); // an integer will do
bool field_real_optional(const json_t *object, const char *key, double low, double high, double *out,
                         const char *place, Error *e);
bool field_bool_optional(const json_t *object, const char *key, bool *out, const char *place, Error *e);
const char *field_text(const json_t *object, const char *key, const char *place,
                       Error *e); // NULL: absent, e filled
