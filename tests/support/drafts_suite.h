// Models of tokens and hidden states (EAGLE's) on a backend, and the targets whose states they read.
#pragma once
#include "tests/support/exact_suite.h"

// Their numbers in f32 against the formulas of shape.h in double, row by row.
void drafts_near_formulas(const ExactBackend *b, int rounds);

// A tree that grows level by level against each path by itself, bit for bit.
void drafts_exact(const ExactBackend *b, int rounds);

// A chain of the likeliest ids that a device goes on with by itself, against one that waits for each.
void drafts_chains(const ExactBackend *b, int rounds);

// A dynamic tree that a device grows by itself, if it does, against one that waits for each level.
void drafts_grown(const ExactBackend *b, int rounds, bool grows);

// ln p of the likeliest tokens against logits; the same bits with more threads.
void drafts_chances(const ExactBackend *b, int rounds);

// Captured layers, in a prefill and in a step, against states read one layer at a time, bit for bit.
void drafts_captured(const ExactBackend *b, int rounds);
