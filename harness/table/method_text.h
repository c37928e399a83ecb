// A method as papers' tables write it beside one that was run: "lookahead:W=15,N=5" means the defaults for
// the rest, as it would in a config; "ngrammys:k=*" leaves k open.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

// Whether `text` names a method that there is and parameters that it has. False with e filled.
bool method_text_check(const char *text, Error *e);

bool method_text_open(const char *text);                         // it has a '*'
bool method_text_same_method(const char *text, const char *ran); // whatever the parameters

// How many parameters of `ran` are others than `text` says; each is added to `out` (may be NULL) as "W=5,
// not 15". A text that no method parses (of an imported run) differs in nothing.
int method_text_differences(const char *text, const char *ran, Text *out);
