// The tiny models of build/golden (tests/support/golden_files.c) with Hugging Face transformers' results (by
// tests/oracle/models.py), and the error of an open session.
#pragma once
#include "engine/core/session.h"

enum { GOLDEN_MAX_IDS = 256 };

typedef struct Golden {
    char dir[512];
    int prompt_count, greedy_count, vocab;
    int ids[GOLDEN_MAX_IDS]; // the prompt, then the greedy tokens
    double bf16_error;       // of transformers' own bf16
    double f16_error;        // of its f16; 0: the weights are not f16
    const float *logits;     // (prompt_count + greedy_count, vocab)
    char *logit_bytes;
} Golden;

// The test fails if the model's files are not there.
void golden_open(Golden *g, const char *name);
void golden_release(Golden *g);

// Calls check with the name of every model; gives how many there are.
int golden_each(void (*check)(const char *name));

// All ids as one chain, in steps of at most `chunk` nodes: the largest difference of a logit, relative to the
// position's largest wanted logit. golden_rounded_error: for a model with experts the lower quartile of the
// positions; where two experts are nearly equal, roundings choose another one, and later positions see it.
double golden_error(Session *s, const Golden *g, int chunk);
double golden_rounded_error(Session *s, const Golden *g, int chunk);
