// A random model of any shape, as a Hugging Face directory that other programs load too: config.json,
// generation_config.json, model.safetensors (in shards, with an index, above 5 GB) and a made-up
// tokenizer.json.
//
// The weights are a function of the seed, the tensor's number and the element alone. They are uniform, with a
// spread that keeps activations at size 1 through any depth, so that no logit overflows and text does not
// fall silent.
#pragma once
#include "engine/base/json.h"
#include "engine/base/progress.h"
#include "engine/model/adapter.h"

#include <stddef.h>
#include <stdint.h>

typedef struct SynthOptions {
    const char *shape;       // a name (shapes.h) or a path to a config.json
    const char *const *sets; // "key=value" put on top of it; value as JSON, or else as text
    int set_count;
    uint64_t seed;
    bool force;         // replace a model that something else made
    size_t shard_bytes; // most in one file of weights; 0: 5 GB
    int threads;        // files written at once; 0: one
    Progress progress;
} SynthOptions;

// Writes into dir, which is made if necessary. A directory with a model that this function didn't make is
// refused unless o->force. Every file appears whole or not at all, config.json last.
bool model_synth(const char *dir, const SynthOptions *o, Error *e);

// The model that model_synth would write, without weights; nothing is written.
bool synth_describe(const SynthOptions *o, Model *out, Error *e);

// --- without files

// Whether a model's name is that of a shape, and of nothing on the disk, or the path of a config.json; with
// :8 or :4 behind it for so many bits.
bool synth_named(const char *name);

// Opens the model that model_synth would write from the seed 0, without files: a device makes its matrices by
// synth_run, and their memory here is empty (zeros, unless touched none of it is taken). Vectors are there.
// In 8 and 4 bits codes are random, and scales are all alike.
bool synth_open(Model *m, ModelWeights *w, const char *name, Error *e);

// The numbers of a tensor's rows, from its first element on: centre +- spread, four from each draw of the
// stream. Of codes: their bytes, eight from each draw. False for a tensor that is in memory.
typedef struct SynthRun {
    uint64_t seed, stream;
    size_t first;
    float centre, spread;
    bool bytes;
} SynthRun;
bool synth_run(const struct SynthNumbers *n, const Tensor *t, SynthRun *out);

// Writes an adapter's directory by the same rules: random weights for a target, of its dtype.
bool adapter_synth(const char *dir, const Model *target, const AdapterKind *kind, uint64_t seed, bool force,
                   Error *e);

// The tokenizer.json of a byte-fallback BPE with `vocab` pieces, at least SYNTH_TOKENIZER_MIN; for mem_free.
enum { SYNTH_TOKENIZER_MIN = 259 };
char *synth_tokenizer(int vocab);

// The tokenizer.json of any byte-fallback BPE with "<unk>", "<s>" and "</s>" first; takes over the pieces'
// ids and the list of "left right".
json_t *tokenizer_json(json_t *vocab, json_t *merges);
