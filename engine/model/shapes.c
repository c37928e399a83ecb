#include "engine/model/shapes.h"

#include "engine/base/configs.h"

char *shape_file(const char *name, Error *e) { return configs_named("shapes", "shape", name, e); }

bool shape_names(Text *out, Error *e) { return configs_names("shapes", out, e); }
