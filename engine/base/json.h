// JSON, by jansson: duplicate keys are refused, depth is capped (at jansson's own 2,048), an error is one
// line. If memory runs out the program ends (memory.h), so json_pack and its relatives return NULL only for
// text that isn't UTF-8.
//
// NaN, Infinity and -Infinity, which Python writes and JSON lacks, are read as strings of that name: under a
// key that nobody reads they stop nothing, and where a number is wanted they are refused.
//
// The getters check type and range and name the key in their message; `place` is the file (and, if it helps,
// the object in it) for the message.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// jansson's reason for refusing a text, reworded if its own words are about its C interface.
const char *json_why(const json_error_t *why);

// Parses exactly n bytes; NULL with e filled if they aren't JSON. Release with json_decref.
json_t *json_from_bytes(const char *bytes, size_t n, const char *place, Error *e);
json_t *json_from_file(const char *path, size_t max_size, Error *e);

// A value as text, for mem_free; NULL for NULL. flags are those of json_dumps.
char *json_text(const json_t *value, size_t flags);

// Writes a value as a line of a file; appends it to a text. Both release the value, and return false if it's
// NULL. The caller checks the file for write errors.
bool json_print(json_t *value, size_t flags, FILE *out);
bool json_append(json_t *value, size_t flags, Text *out);

json_t *json_from_text(const char *text); // a string; bytes beyond ASCII of text that isn't UTF-8 become "?"
json_t *json_number(double x);            // null if x isn't finite, since JSON has only finite numbers

// True if the key is there and not null.
bool field_present(const json_t *object, const char *key);

// Each fills *out. An absent or null key is an error ("missing"), and so is a wrong type or range. The
// optional forms leave *out (the default) alone if the key is absent or null.
bool field_int(const json_t *object, const char *key, int64_t low, int64_t high, int64_t *out,
               const char *place, Error *e);
bool field_int_optional(const json_t *object, const char *key, int64_t low, int64_t high, int64_t *out,
                        const char *place, Error *e);
bool field_real(const json_t *object, const char *key, double low, double high, double *out,
                const char *place,
                Error *e); // an integer is accepted
bool field_real_optional(const json_t *object, const char *key, double low, double high, double *out,
                         const char *place, Error *e);
bool field_bool_optional(const json_t *object, const char *key, bool *out, const char *place, Error *e);
const char *field_text(const json_t *object, const char *key, const char *place,
                       Error *e); // NULL with e filled: absent, or not a string
