// Writes a large model that computes the same function as a small one: real acceptance at a large model's
// cost, from a model that anyone can train in an hour.
//
// Every weight of the large shape is in the file, is read, and is multiplied in each step. placement.h
// describes where the small model's weights go, and inflated_rows.c fills the rest. config.json takes over
// everything that the small model's function depends on: activation, RoPE, epsilon (times w / W, the small
// width over the large), context, window, BOS and EOS, real_vocab_size (head rows from there on are masked),
// and the type of its weights. The tokenizer is copied.
//
// Which numbers are the small model's bit for bit?
//
//      products   yes: added columns come after the real ones and meet activations that are exactly zero, so
//                 each partial sum adds the same numbers in the same order, then zeros. For o only if the
//                 head size is a multiple of 32 (the columns of a kernel's step), else its sums are cut
//                 elsewhere
//      scores     yes: summed over dimensions in order, with zeros between. Not on matrix tiles, which take
//                 dimensions in pairs
//      norms      where W / w is a power of 4, as every factor is then a power of 2; else two roundings
//      differ
//
// So the reference, 256 wide with heads of 32, gives its very logits at widths 1,024, 4,096 and 16,384, and
// nearly the same at others (tests/engine/model/inflate_test.c).
//
// Such a model is marked as a stand-in by "outpace_stand_in" in config.json (Model.stand_in).
#pragma once
#include "engine/base/progress.h"
#include "engine/base/file.h"
#include "engine/model/adapter.h"

#include <stddef.h>
#include <stdint.h>

typedef struct InflateOptions {
    const char *small; // its directory
    const char
        *adapter;      // or heads of the small model: to write them for the inflated model. NULL: to write it
    const char *shape; // a name (config.h) or a path to a config.json
    uint64_t seed;     // of the random numbers
    int first;         // so many of its layers stay the first (placement.h)
    bool force;        // replace a model that something else made
    size_t shard_bytes; // most in one file of weights; 0: 5 GB
    Progress progress;
} InflateOptions;

// Writes into dir, which is made if necessary, by the rules of made.h; a failure leaves nothing there.
bool model_inflate(const char *dir, const InflateOptions *o, Error *e);

// The config that model_inflate would write.
typedef struct Inflated {
    char key[SHA256_TEXT]; // a hash of everything that it is made from
    Model model;           // without weights, also if an adapter is written
    AdapterKind kind;      // of that
} Inflated;

bool inflate_describe(const InflateOptions *o, Inflated *out, Error *e);

// Whether dir holds a whole model, or adapter, with this key.
bool inflate_is(const char *dir, const char key[SHA256_TEXT]);
