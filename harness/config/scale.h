// A config at a smaller scale: its section `smoke` says, in the words of the config itself, what is different
// there.
//
//     a map         goes over a map key by key, and over a list to the items that its keys name (or number)
//     all else      stands in place of what is there
#pragma once
#include "harness/config/yaml.h"

#include <stdbool.h>

#define SCALE_SECTION "smoke"

// scale: "full" or NULL, which changes nothing, or "smoke". Below the section nothing is left then.
bool scale_apply(YamlTree *t, const char *scale, Error *e);
