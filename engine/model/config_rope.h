// How positions turn heads, as config.json says it.
#pragma once
#include "engine/core/shape.h"
#include "engine/model/config.h"

#include <jansson.h>

// Fills s->rope; s has its head_dim and context. What is not supported is refused by name.
bool config_rope(const json_t *root, const Architecture *a, Shape *s, const char *place, Error *e);
