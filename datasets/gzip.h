// Files compressed by gzip (RFC 1952), by zlib.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>

bool gzip_is(const char *bytes, size_t n); // by its first bytes

// All members, one after the other. A few bytes can claim to be a thousand times as many: more than `most`
// of them is an error, and no more memory than for those is taken. Free *out with mem_free; a NUL stands
// after it.
bool gzip_expand(const char *bytes, size_t n, const char *file, size_t most, char **out, size_t *size,
                 Error *e);
