// Named shapes: the config.json of a published architecture under a short name (configs/shapes/NAME.json).
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

// The path of a shape's file, for mem_free: `name` itself where it is a path to a file, else NAME.json of the
// folder, wherever that is (engine/base/shipped.h). NULL with e filled; an unknown name is answered with the
// known ones.
char *shape_file(const char *name, Error *e);

// The known names, one a line, in order.
bool shape_names(Text *out, Error *e);
