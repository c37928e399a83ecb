// SHA-256 of bytes and files, as 64 lower-case hexadecimal digits: names the content a result came from.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>

enum { SHA256_TEXT = 65 }; // digits and the NUL

bool sha256_bytes(const void *data, size_t n, char out[SHA256_TEXT], Error *e);
bool sha256_file(const char *path, char out[SHA256_TEXT], Error *e);
