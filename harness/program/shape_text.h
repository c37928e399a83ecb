// A model's shape as the store keeps it: what a price of its steps, and the size of its cache, need.
#pragma once
#include "engine/core/shape.h"

char *shape_text(const Shape *s); // a JSON object, for mem_free; NULL: no memory
