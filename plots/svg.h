// An SVG picture as a part of a page that holds others.
#pragma once
#include "engine/base/text.h"

// Without what belongs to a file (prolog) and to a tool (titles that would show as tips); every id, and what
// refers to it, begins with `prefix`, so that pictures do not take each other's marks and patterns. The
// colours of ink, grid and paper become the page's own (var(--ink), ...), so that one picture is for light
// and dark.
void svg_inline(const char *svg, const char *prefix, Text *out);
