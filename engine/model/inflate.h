// Writes a large model that computes the same function as a small one: real acceptance at a large model's
// cost, from a model that anyone can train in an hour.
//
// Every weight of the large shape is there, read, and multiplied; placement.h says where the small ones
// stand, inflated_rows.h what stands around them. config.json takes from the small model what its function
// hangs on: activation, RoPE, epsilon (times w / W), context, window, BOS and EOS, real_vocab_size (head rows
// from there on are masked), and the type of its weights. The tokenizer is copied.
//
// What is the same, bit for bit, and what only up to rounding. Products: added columns meet activations that
// are exactly zero, and stand behind the real ones, so each partial sum of each kernel adds the same numbers
// in the same order, and zeros. That holds for o as well if the head size is a multiple of 32 (the columns
// that a kernel's step takes); else its partial sums are cut differently. Scores are summed over dimensions
// in order, with zeros between (not on matrix tiles, which take them in pairs). Norms are the same where W /
// w is a power of 4 (every factor is then a power of 2), else two roundings differ. So the logits of the
// reference, 256 wide with heads of 32, are its very bits at widths 1024, 4096 and 16384; otherwise they are
// near (tests/engine/model/inflate_test.c).
//
// Rows that such a model gives are a stand-in's: "outpace_stand_in" in config.json says so (Model.stand_in).
#pragma once
#include "engine/base/error.h"
#include "engine/base/sha256.h"

#include <stddef.h>
#include <stdint.h>

typedef struct InflateOptions {
    const char *small;   // its directory
    const char *adapter; // of the small model, or heads: they are written, for the inflated model. NULL: it
    const char *shape;   // a name (shapes.h) or a path to a config.json
    uint64_t seed;       // of the random numbers
    size_t shard_bytes;  // most in one file of weights; 0: 5 GB
    void (*progress)(void *state, double share); // may be NULL
    void *state;
} InflateOptions;

// Writes into dir, which is made if it is not there, by the rules of made.h; a failure leaves nothing there.
bool model_inflate(const char *dir, const InflateOptions *o, Error *e);

// A name for what model_inflate would write, made of all that it is made of.
bool inflate_key(const InflateOptions *o, char out[SHA256_TEXT], Error *e);

// Whether dir holds, whole, what goes by that name.
bool inflate_is(const char *dir, const char key[SHA256_TEXT]);
