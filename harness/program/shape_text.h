// A model's shape, as commands print it.
#pragma once
#include "engine/model/model.h"

// As the store keeps it: what a price of its steps, and the size of its cache, need. A JSON object, for
// mem_free; NULL: no memory.
char *shape_text(const Shape *s);

// A line on standard error, where its files hold more layers than its config.json names.
void shape_warn(const Model *m, const char *name);
