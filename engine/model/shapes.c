#include "engine/model/shapes.h"

#include "engine/base/shipped.h"

char *shape_file(const char *name, Error *e) { return shipped_named("shapes", "shape", name, e); }

bool shape_names(Text *out, Error *e) { return shipped_names("shapes", out, e); }
