// A model's shape, as commands print it.
#pragma once
#include "engine/model/adapter.h"

// As the store keeps it: what a price of its steps, and the size of its cache, need; and in "parts" the
// parameters of its adapter and heads, and the tokens that they were trained on. Empty ones are none, NULL as
// well. A JSON object, for mem_free; NULL: no memory.
char *shape_text(const Shape *s, const Adapter *adapter, const Adapter *heads);

// A line on standard error, where its files hold more layers than its config.json names.
void shape_warn(const Model *m, const char *name);
