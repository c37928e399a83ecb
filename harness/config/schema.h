// A config as a JSON Schema (draft 7), for editors: from the tables that read configs, so that it can't
// drift.
#pragma once
#include <jansson.h>

// For json_decref.
json_t *config_schema(void);
