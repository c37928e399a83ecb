// Sessions on the null backend, and any backend's output computed the plain way: one token per step.
#pragma once
#include "engine/base/clock.h"
#include "engine/decode/decode.h"

typedef struct NullSetup {
    int vocab, context;
    int masked;    // ids at the vocabulary's end that never come
    int window;    // 0: none
    int mask;      // the mask token of a parallel draft; 0: none
    int max_nodes; // 0: as many as there may be
    InputKind input;
    int tokens; // ids of the input, of a draft that reads tokens and hidden states; 0: vocab
} NullSetup;

enum { NULL_LAYERS = 3, NULL_WIDTH = 4, NULL_STATES = 2 };

void null_session_open(Session *s, const NullSetup *setup);

// Kangaroo's adapter on the first layer, one head of Medusa's, EAGLE's draft, EAGLE-3's, an MTP layer and
// DSpark's draft, in this order.
typedef struct NullAdapters {
    Session sessions[ADAPTER_SETS];
    Captures captures, last; // MTP's
} NullAdapters;

void null_adapters_open(NullAdapters *a, const NullSetup *setup);
void null_adapters_close(NullAdapters *a);

void null_adapters_give(NullAdapters *a, MethodEnv *env);

// Greedy output without trees, methods or loop: writes `count` tokens that follow the prompt to `out`. The
// session's sequence is lost.
void slow_greedy(Session *s, const int *prompt, int prompt_count, int count, int *out);

// Asserts that decode's output is slow_greedy's, up to and with the first EOS, or to the limit.
void slow_check_greedy(Session *slow, const int *prompt, int prompt_count, const DecodeOptions *o,
                       const DecodeResult *out);

// The model's prediction after the sequence: its argmax, and if logits isn't NULL, (vocab).
int slow_next(Session *s, const int *sequence, int length, float *logits);

// The chance of each token after the sequence (vocab), and of each two after the prompt (vocab x vocab, the
// first token's rows); small vocabularies only.
void slow_chances(Session *s, const Sampling *sampling, const int *sequence, int length, double *p);
void slow_pair_chances(Session *s, const Sampling *sampling, const int *prompt, int count, double *p);

// A stopped clock, for runs whose times don't matter.
Clock still_clock(void);
