// A tiny training run that tests share: a few documents of a small vocabulary, learned in milliseconds.
#pragma once
#include "engine/train/trainer.h"

enum { LEARNER_VOCAB = 40 };

// Documents whose tokens follow from the one before, but for the first: all of it can be learned by heart.
void learner_corpus(Corpus *c, int documents, int longest, uint64_t seed);

TrainConfig learner_config(int steps);
