// A batch whose rows read copies of the cache has the same bits as one whose rows read the cache itself:
// random models, rows, prompts and tokens taken back.
#pragma once
#include "tests/support/exact_suite.h"

// rings: short windows in short rings, of which more is taken back.
void copies_suite(const ExactBackend *b, int rounds, bool rings);
