// Drafts of blocks against a network written with PyTorch: small random drafts in their authors' files, ten
// steps with no, some and all guesses kept (by tests/oracle/blocks.py). Guesses are the same, logits in f32
// within 2e-5 of the largest of a row.
#pragma once
#include "tests/support/exact_suite.h"

void block_golden(const ExactBackend *on);
