// Files that a test makes and changes in its own folder (tests/support/child.h). Errors here end the test
// program: they're never the subject of a test.
#pragma once
#include <jansson.h>
#include <stddef.h>

// Copies the regular files of one directory into another, which is made.
void scratch_copy(const char *from, const char *to);

// A whole file, with a NUL after it; for mem_free.
char *scratch_read(const char *dir, const char *name, size_t *size);
void scratch_write(const char *dir, const char *name, const void *bytes, size_t size);

// The JSON of a file and back; for json_decref.
json_t *scratch_json(const char *dir, const char *name);
void scratch_write_json(const char *dir, const char *name, const json_t *root);

// A safetensors file from its parts: the length, the header as it is given, the data.
void scratch_write_safetensors(const char *dir, const char *name, const char *header, const void *data,
                               size_t size);
