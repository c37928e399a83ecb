// This build and the libraries that it runs on, as every stored run records them.
#pragma once
#include "engine/base/text.h"

#include <jansson.h>

// "0.1.0 (3f2a91c)"; the commit, and "-dirty" for uncommitted changes, come from the Makefile.
const char *version_text(void);
bool version_is_commit(void);       // whether the commit identifies this program's code
const char *version_compiler(void); // the compiler and its version

json_t *libraries_json(void);   // {"jansson": "2.14", ...}
void libraries_text(Text *out); // "jansson 2.14, pcre2 10.42, ..."
