// The values of an axis as people write them: one value, a list, ranges, or a list of both.
//
//   5        [5, 10, 15]        2..14        2..14+2        1..64*2        [0, 2..14+2]
//
// A range holds its ends where its steps meet them: 2..7+2 is 2, 4, 6. Steps may have a fraction
// (0.1..0.9+0.1). A quoted value is never a range.
#pragma once
#include "harness/config/yaml.h"

enum { AXIS_MAX = 4096 }; // values

// `axis` becomes a flat list of values, each with the place where it, or its range, was written.
bool axis_expand(YamlTree *t, YamlNode *axis, Error *e);
