// Small models on top of a target's hidden states: Kangaroo's adapters, Medusa's heads and EAGLE's
// drafts, as a directory of config.json and model.safetensors.
//
//      x: the target's state at one position
//      kangaroo   h = x + attention(norm(x));             the target's head on norm(h)
//      with-head  the same, with a head of its own
//      one-layer  a whole transformer layer;              the target's head on norm(h)
//      mlp        h = x + W2 silu(W1 norm(x));            a head of its own on norm(h)
//      medusa     h = x + silu(W x + b);                  a head of its own on h; `heads` such models
//      eagle      h = layer(fc [e; x])                    the target's head on h; e: the next embedding
//      mtp        h = layer(fc [norm x; norm e])          the target's head on norm(h)
//      eagle3     h = layer([norm e; norm fc x])          a head on norm(h), maybe for fewer tokens
//      dflash     layers over a block of masks (block.h)  the target's head on norm(h)
//
// The first four are Kangaroo's Table 2 and read the residual stream after exit_layer layers; Medusa's
// heads and eagle read the final normed state, mtp this or the last residual stream, eagle3 and dflash
// several layers. Attention has as many heads, of the same size, as the target; no bias, no norm of q and k;
// RoPE and window as the target's.
//
// config.json: "model_type": "outpace_adapter", "variant": one of the names above, "exit_layer" (not
// medusa), "heads" (medusa), "hidden_size" and "vocab_size" (of the target), "num_key_value_heads"
// (optional; default: as many as query heads).
//
//      input_layernorm.weight               (width)                 all but medusa
//      self_attn.{q,k,v,o}_proj.weight                              kangaroo, with-head, one-layer
//      post_attention_layernorm.weight      (width)                 one-layer
//      mlp.{gate,up,down}_proj.weight       as the target's         one-layer
//      linear.0.weight, linear.1.weight     (width, width)          mlp: W1, W2
//      norm.weight                          (width)                 all but medusa
//      lm_head.weight                       (vocab, width)          with-head, mlp
//      I.0.linear.weight, I.0.linear.bias   (width, width), (width) medusa, head I from 0
//      I.1.weight                           (vocab, width)          medusa
//
// Files of eagle, eagle3, mtp and dflash are their authors', or other projects' (adapter_eagle.c,
// adapter_block.c).
#pragma once
#include "engine/base/text.h"
#include "engine/model/weights.h"

#include <jansson.h>
#include <stdint.h>

typedef enum {
    ADAPTER_KANGAROO,
    ADAPTER_WITH_HEAD,
    ADAPTER_ONE_LAYER,
    ADAPTER_MLP,
    ADAPTER_MEDUSA,
    ADAPTER_EAGLE, // 1, 2 and HASS
    ADAPTER_MTP,
    ADAPTER_EAGLE3,
    ADAPTER_DFLASH // and DSpark
} AdapterVariant;

enum { ADAPTER_HEADS_MAX = 8 };

// Whose adapter it is, where a target has several: a config's keys, in this order.
typedef enum {
    ADAPTER_ANY,
    ADAPTER_FOR_MEDUSA,
    ADAPTER_FOR_EAGLE,
    ADAPTER_FOR_EAGLE3,
    ADAPTER_FOR_MTP,
    ADAPTER_FOR_DFLASH,
    ADAPTER_ROLES
} AdapterRole;
const char *adapter_role_name(AdapterRole role); // adapter, heads, eagle, eagle3, mtp, ..
// Whether the target's own files hold this adapter: an MTP layer.
static inline bool adapter_in_target(AdapterRole role, const Model *target) {
    return role == ADAPTER_FOR_MTP && target->mtp_layers;
}

// An adapter's own settings; the rest are its target's.
typedef struct AdapterKind {
    AdapterVariant variant;
    int exit_layer;    // of the target; its number of layers for medusa and EAGLE's
    int heads;         // medusa's; else 1
    int kv_heads;      // 0: as many as query heads; of EAGLE's drafts, as the target, but a file has its own
    Captures captures; // eagle3's; none: as its authors choose them, or others in a shallow target; mtp's
    bool recycles_normed; // mtp's: in use, a guess reads the final norm's output in front, not its input
    int vocab;            // eagle3's, for fewer tokens than the target has; 0: the target's
    bool normed_heads;    // eagle3's in the form of DeepSpec, and dflash's: heads of q and k are normed
    int layers;           // of DFlash's and EAGLE's; 0: one
    BlockDraft block;     // dflash's
    int mask; // dflash's and P-EAGLE's: the token of a place to be guessed; 0: of eagle3's, it has none
} AdapterKind;

typedef struct Adapter {
    AdapterKind kind;
    Model models[ADAPTER_HEADS_MAX]; // (kind.heads), of one layer but dflash's; no weights after open_config
    int64_t trained;                 // tokens of its training, by config.json; 0: unknown
    Captures captures;               // the target's layers that it reads; none: the final normed state
    int *draft_ids;                  // eagle3: (vocab of the draft): the target's ids; NULL: the same
    float *mask_states;              // P-EAGLE: (states * width) of a mask's row; else NULL
    ModelWeights weights;            // of its models
} Adapter;

// False with e filled, a then empty. The target outlives the adapter, whose models may share its head.
bool adapter_open(Adapter *a, const Model *target, const char *dir, Error *e);
bool adapter_open_config(Adapter *a, const Model *target, const char *dir, Error *e); // no weights
void adapter_describe(Adapter *a, const AdapterKind *kind, const Model *target);      // no files at all
void adapter_close(Adapter *a);                                                       // takes an empty one

size_t adapter_parameters(const Adapter *a); // without a head that is the target's; 0: empty

bool adapter_is_eagle(AdapterVariant v);
const char *adapter_variant_name(AdapterVariant v);
bool adapter_variant_find(const char *name, AdapterVariant *out, Error *e);

// For those who write one: the shape of its models; how many parts its weights have, Medusa's heads or a
// block's layers, the first with the weights of the whole model; a part's weights (those that it lacks have
// no name), and config.json.
bool adapter_check(const AdapterKind *kind, const Model *target, const char *place, Error *e); // that it fits
Shape adapter_shape(const AdapterKind *kind, const Shape *target);
int adapter_parts(const AdapterKind *kind);
void adapter_weights(AdapterVariant v, const Shape *s, int part, WeightSpec specs[WEIGHTS]);
void adapter_config(const AdapterKind *kind, const Shape *target, Text *out);
Captures adapter_captures(const AdapterKind *kind, const Shape *target);

// The layers that a file names at the top or in `inner`; unchanged if it names none. The maps between
// vocabularies.
bool adapter_read_layers(const json_t *root, const json_t *inner, int layers, Captures *out,
                         const char *place, Error *e);
bool adapter_read_maps(Adapter *a, const Shard *shard, const char *dir, Error *e);

// --- those of blocks, for adapter.c; as EAGLE's below

bool block_is(const json_t *root);
bool block_read(Adapter *a, const json_t *root, const Model *target, const char *place, Error *e);
void block_config(const AdapterKind *kind, const Shape *target, Text *out);
Shape block_shape(const AdapterKind *kind, const Shape *target);
Captures block_captures(const AdapterKind *kind, const Shape *target);
const char *block_name(const Shape *s, int layer, Weight w, char out[TENSOR_NAME]);
bool block_bind(Adapter *a, const Model *target, const Shard *shard, const char *dir, Error *e);

// --- EAGLE's, for adapter.c

bool eagle_is(const json_t *root); // whether a config.json is not ours, and may be of such a draft
// Fills kind, shape, captures; a draft that is known to be EAGLE-3's has that kind already.
bool eagle_read(Adapter *a, const json_t *root, const Model *target, const char *place, Error *e);
void eagle_config(const AdapterKind *kind, const Shape *target, Text *out);
// A weight's name without its ending, maybe written to `out`; NULL: such drafts lack it.
const char *eagle_name(AdapterVariant v, const Shape *s, int layer, Weight w, char out[TENSOR_NAME]);
extern const char eagle_mask[]; // the name of the tensor of a mask's states, of P-EAGLE's
bool eagle_has_hidden_norm(const Shard *shard);
bool eagle_bind(Adapter *a, const Model *target, const Shard *shards, const char *dir, Error *e); // all files
