// A batch whose rows read copies of the cache has the same bits as one whose rows read the cache itself:
// random models, rows, prompts and tokens taken back.
#pragma once
#include "tests/support/exact_suite.h"

void copies_suite(const ExactBackend *b, int rounds);
