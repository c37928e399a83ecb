// Inflated models in the cache: made once, found again by what they are made of.
//
//      CACHE/inflated/KEY/     the model, or one of its adapters (engine/model/inflate.h)
//      CACHE/inflated/KEY.lock held while it is made, so that a second run waits and then finds it
#pragma once
#include "engine/model/inflate.h"

// Describes what model_inflate(o) would write, and where it would go: a path for mem_free. *there: it is
// there, whole. Nothing is written. A draft is a model of its own, inflated by itself. NULL with e filled.
char *inflated_find(const char *cache, const InflateOptions *o, Inflated *out, bool *there, Error *e);

// Makes it now, unless it is there.
char *inflated_open(const char *cache, const InflateOptions *o, Error *e);
