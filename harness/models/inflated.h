// Inflated models in the cache: made once, found again by what they are made of.
//
//      CACHE/inflated/KEY/     the model, or one of its adapters (engine/model/inflate.h)
//      CACHE/inflated/KEY.lock held while it is made, so that a second run waits and then finds it
#pragma once
#include "engine/model/inflate.h"

// The directory of what model_inflate(o) writes, for mem_free, made now unless it is there. A draft is a
// model of its own, inflated by itself. NULL with e filled.
char *inflated_open(const char *cache, const InflateOptions *o, Error *e);
