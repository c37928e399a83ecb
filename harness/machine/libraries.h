// The libraries that this program runs on, by name and version: what every stored run names.
#pragma once
#include "engine/base/text.h"

#include <jansson.h>

json_t *libraries_json(void); // {"jansson": "2.14", ...}; NULL: no memory

// "jansson 2.14, pcre2 10.42, ..."
void libraries_text(Text *out);
