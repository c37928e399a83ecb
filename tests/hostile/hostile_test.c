// Model directories that are broken or malicious, each one change away from a good one, run through the real
// program. Each must give exit code 2, one line on stderr that names the file and the fault, without a signal
// or a hang and with little memory. A new kind of damage is a new row.
#include "tests/support/check.h"

#include "engine/model/make/quantise.h"
#include "engine/model/make/synth.h"
#include "tests/support/child.h"
#include "tests/support/spoil.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const double MOST_SECONDS = 2;
#ifdef __SANITIZE_ADDRESS__ // which keeps freed memory, ours and the child's
static const size_t MOST_BYTES = SIZE_MAX / 2;
#else
static const size_t MOST_BYTES = 100u << 20; // above what a good directory takes
#endif

typedef enum {
    SINGLE,  // one model.safetensors
    SHARDED, // an index and shards
    MIXED,   // as SINGLE, with experts
    CODED,   // as SINGLE, in codes of 4 bits
    AWQ,     // without a tokenizer
    GPTQ,
    LAYOUTS
} Layout;

typedef enum {
    IDS,    // generate DIR --ids 1,2 -n 1
    PROMPT, // generate DIR "ab <new> cd" -n 1
    CHECK,  // model info DIR --check
} Use;

typedef struct {
    const char *name;
    Spoil *spoil;
    const char *a, *b;
    const char *file;  // that the message must name
    const char *words; // that it must hold; NULL: the change does no harm, and the run succeeds
} Case;

#define CONFIG     "config.json"
#define GENERATION "generation_config.json"
#define WEIGHTS    "model.safetensors"
#define INDEX      "model.safetensors.index.json"
#define TOKENIZER  "tokenizer.json"
#define SHARD_2    "model-00002-of-00006.safetensors"
#define SHARD_3    "model-00003-of-00006.safetensors"

// Not in aligned columns, which would be 200 characters wide.
// clang-format off

static const Case SINGLE_CASES[] = {
    // --- the header's length
    {"length 0", spoil_length, "0", "", WEIGHTS, "line 1"},
    {"length 1", spoil_length, "1", "", WEIGHTS, "line 1"},
    {"length 7", spoil_length, "7", "", WEIGHTS, "line 1"},
    {"length past the file", spoil_length, "1000000", "", WEIGHTS, "fetch it again"},
    {"length 100 MB", spoil_length, "104857600", "", WEIGHTS, "claims a header of 104857600 bytes"},
    {"length 2^63", spoil_length, "0x8000000000000000", "", WEIGHTS, "claims a header"},
    {"length 2^64 - 1", spoil_length, "0xffffffffffffffff", "", WEIGHTS, "claims a header"},
    {"header of 100 MB", spoil_big_header, "100", "", WEIGHTS, "at most"},
    {"largest header", spoil_big_header, "1", "", "", "has no tensor"},
    // --- the file
    {"weights empty", spoil_cut, WEIGHTS, "0", WEIGHTS, "not a safetensors file"},
    {"weights of 7 bytes", spoil_cut, WEIGHTS, "7", WEIGHTS, "not a safetensors file"},
    {"weights of 8 bytes", spoil_cut, WEIGHTS, "8", WEIGHTS, "fetch it again"},
    {"weights cut in the header", spoil_cut, WEIGHTS, "900", WEIGHTS, "fetch it again"},
    {"weights cut by a byte", spoil_cut, WEIGHTS, "-1", WEIGHTS, "cut short"},
    {"weights cut in half", spoil_cut, WEIGHTS, "-200000", WEIGHTS, "cut short"},
    {"trailing bytes", spoil_append, WEIGHTS, "x", WEIGHTS, "1 bytes after its last tensor"},
    {"weights missing", spoil_remove, WEIGHTS, "", "", "neither model.safetensors nor"},
    {"weights a directory", spoil_folder, WEIGHTS, "", WEIGHTS, "not a regular file"},
    {"weights a pipe", spoil_fifo, WEIGHTS, "", WEIGHTS, "not a regular file"},
    {"weights a link to itself", spoil_loop, WEIGHTS, "", "", "model.safetensors"},
    {"weights a JSON", spoil_copy, CONFIG, WEIGHTS, WEIGHTS, "claims a header"},
    // --- the header
    {"header no object", spoil_header_whole, "[]", "", WEIGHTS, "JSON object"},
    {"header empty", spoil_header_whole, "{}", "", WEIGHTS, "after its last tensor"},
    {"header no UTF-8", spoil_header, "embed", "\xff\xfe", WEIGHTS, "line 1"},
    {"tensors overlap", spoil_header, "[65536,65664]", "[65534,65662]", WEIGHTS, "overlap"},
    {"a hole", spoil_header, "[65536,65664]", "[65538,65666]", WEIGHTS, "hole"},
    {"offsets reversed", spoil_header, "[65536,65664]", "[65664,65536]", WEIGHTS, "begin not after end"},
    {"offsets negative", spoil_header, "[65536,65664]", "[-128,0]", WEIGHTS, "data_offsets"},
    {"offsets floats", spoil_header, "[65536,65664]", "[65536.0,65664.0]", WEIGHTS, "data_offsets"},
    {"offsets huge", spoil_header, "[65536,65664]", "[9223372036854775679,9223372036854775807]", WEIGHTS,
     "cut short"},
    {"offsets past 63 bits", spoil_header, "[65536,65664]", "[65536,9223372036854775808]", WEIGHTS, "line 1"},
    {"shape overflows", spoil_header, "[512,64]", "[4294967296,4294967296]", WEIGHTS, "overflows"},
    {"shape negative", spoil_header, "[512,64]", "[-512,-64]", WEIGHTS, "a count"},
    {"shape of another product", spoil_header, "[512,64]", "[512,65]", WEIGHTS, "need 66560"},
    {"shape turned", spoil_header, "[512,64]", "[64,512]", WEIGHTS, "config.json needs (512, 64)"},
    {"shape flat", spoil_header, "[512,64]", "[32768] ", WEIGHTS, "config.json needs (512, 64)"},
    {"dtype of another size", spoil_header, "\"BF16\"", "\"F32\"", WEIGHTS, "dtype and shape need 131072"},
    {"dtype no weight has", spoil_header, "\"BF16\"", "\"I16\" ", WEIGHTS, "BF16, F16 and F32"},
    {"dtype unknown", spoil_header, "\"BF16\"", "\"F8_E4M3\"", WEIGHTS, "'F8_E4M3'"},
    {"name twice", spoil_header, "model.norm.weight", "lm_head.weight", WEIGHTS, "duplicate"},
    {"name unknown", spoil_header, "model.norm.weight", "model.morn.weight", "", "'model.norm.weight'"},
    {"name with a line end", spoil_header, "model.norm.weight\":{\"dtype\":\"BF16\"",
     "a\\nb\":{\"dtype\":\"X\"", WEIGHTS, "'a?b'"},
    {"data misaligned", spoil_header, "{\"__metadata__\"", " {\"__metadata__\"", WEIGHTS, "not a multiple"},
    {"weights a pointer", spoil_replace, WEIGHTS,
     "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", WEIGHTS, "git lfs pull"},
    // --- config.json
    {"config missing", spoil_remove, CONFIG, "", "", "no readable config.json"},
    {"config empty", spoil_cut, CONFIG, "0", CONFIG, "line 1"},
    {"config cut", spoil_cut, CONFIG, "-20", CONFIG, "line"},
    {"config a directory", spoil_folder, CONFIG, "", CONFIG, "not a regular file"},
    {"config a pipe", spoil_fifo, CONFIG, "", CONFIG, "not a regular file"},
    {"config deep", spoil_deep, CONFIG, "100000", CONFIG, "depth"},
    {"config no UTF-8", spoil_replace, CONFIG, "{\"model_type\": \"lla\xe9ma\"}", CONFIG, "line 1"},
    {"config a list", spoil_replace, CONFIG, "[1]", CONFIG, "JSON object"},
    {"config too long", spoil_objects, CONFIG, "1025", CONFIG, "at most"},
    {"config of a million bytes in objects", spoil_objects, CONFIG, "1020", CONFIG, "'model_type'"},
    {"config key twice", spoil_replace, CONFIG, "{\"a\": 1, \"a\": 2}", CONFIG, "duplicate"},
    {"type with line ends", spoil_json, CONFIG "/model_type", "\"a\\n\\u001b[31m\"", CONFIG, "not supported"},
    {"config of an adapter", spoil_json, CONFIG "/model_type", "\"outpace_adapter\"", CONFIG, "--adapter"},
    {"heads do not divide", spoil_json, CONFIG "/num_attention_heads", "5", CONFIG, "not a multiple"},
    {"kv heads do not divide", spoil_json, CONFIG "/num_key_value_heads", "3", CONFIG, "do not divide"},
    {"no layers", spoil_json, CONFIG "/num_hidden_layers", "0", CONFIG, "from 1 to 1000"},
    {"layers missing", spoil_json, CONFIG "/num_hidden_layers", "", CONFIG, "missing"},
    {"a layer too many", spoil_json, CONFIG "/num_hidden_layers", "4", "",
     "'model.layers.3.input_layernorm.weight'"},
    {"vocabulary unlike the embedding", spoil_json, CONFIG "/vocab_size", "600", WEIGHTS, "needs (600, 64)"},
    {"size a text", spoil_json, CONFIG "/hidden_size", "\"64\"", CONFIG, "'hidden_size'"},
    {"size a real", spoil_json, CONFIG "/hidden_size", "64.5", CONFIG, "'hidden_size'"},
    {"size a list", spoil_json, CONFIG "/intermediate_size", "[160]", CONFIG, "'intermediate_size'"},
    {"size 2^62", spoil_json, CONFIG "/hidden_size", "4611686018427387904", CONFIG, "'hidden_size'"},
    {"size negative", spoil_json, CONFIG "/max_position_embeddings", "-1", CONFIG,
     "'max_position_embeddings'"},
    {"size of 40 digits", spoil_replace, CONFIG,
     "{\"hidden_size\": 1000000000000000000000000000000000000000}", CONFIG, "too big"},
    {"real past all limits", spoil_replace, CONFIG, "{\"rope_theta\": 1e999}", CONFIG, "overflow"},
    {"end id past the vocabulary", spoil_json, CONFIG "/eos_token_id", "512", CONFIG, "'eos_token_id' 512"},
    {"rope scaling a number", spoil_json, CONFIG "/rope_scaling", "2", CONFIG, "'rope_scaling'"},
    {"rope scaling unknown", spoil_json, CONFIG "/rope_scaling", "{\"type\":\"ntk\",\"factor\":2}", CONFIG,
     "'ntk'"},
    {"quantised", spoil_json, CONFIG "/quantization_config", "{\"bits\":4}", CONFIG, "original"},
    {"quantised by others", spoil_json, CONFIG "/quantization_config", "{\"quant_method\":\"bitsandbytes\"}",
     CONFIG, "'bitsandbytes', which is not supported"},
    {"packed, without parts", spoil_json, CONFIG "/quantization_config",
     "{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128}", "", NULL}, // nothing needs to be packed
    // --- generation_config.json
    {"generation config empty", spoil_cut, GENERATION, "0", GENERATION, "line 1"},
    {"generation config a directory", spoil_folder, GENERATION, "", GENERATION, "not a regular file"},
    {"generation end id a text", spoil_json, GENERATION "/eos_token_id", "\"</s>\"", GENERATION, "integer"},
    {"generation config missing", spoil_remove, GENERATION, "", "", NULL},
    // --- tokenizer.json
    {"tokenizer missing", spoil_remove, TOKENIZER, "", "", NULL}, // ids will do
    {"tokenizer empty", spoil_cut, TOKENIZER, "0", TOKENIZER, "line 1"},
    {"tokenizer cut", spoil_cut, TOKENIZER, "-9", TOKENIZER, "line"},
    {"tokenizer a directory", spoil_folder, TOKENIZER, "", TOKENIZER, "not a regular file"},
    {"tokenizer deep", spoil_deep, TOKENIZER, "100000", TOKENIZER, "depth"},
    {"tokenizer a list", spoil_replace, TOKENIZER, "[]", TOKENIZER, "JSON object"},
    {"tokenizer without a model", spoil_replace, TOKENIZER, "{}", TOKENIZER, "'vocab'"},
    {"vocabulary a list", spoil_json, TOKENIZER "/model/vocab", "[]", TOKENIZER, "'vocab'"},
    {"vocabulary empty", spoil_json, TOKENIZER "/model/vocab", "{}", TOKENIZER, ""},
    {"merges missing", spoil_json, TOKENIZER "/model/merges", "", TOKENIZER, "'merges'"},
    {"merge of an unknown piece", spoil_json, TOKENIZER "/model/merges/5", "\"qq zz\"", TOKENIZER, "merge 5"},
    {"merge with an unknown result", spoil_json, TOKENIZER "/model/merges/5", "\"a a\"", TOKENIZER,
     "merge 5"},
    {"merge of one piece", spoil_json, TOKENIZER "/model/merges/5", "\"ba\"", TOKENIZER, "merge 5"},
    {"merge of three pieces", spoil_json, TOKENIZER "/model/merges/5", "[\"a\",\"b\",\"c\"]", TOKENIZER,
     "merge 5"},
    {"merge a number", spoil_json, TOKENIZER "/model/merges/5", "5", TOKENIZER, "merge 5"},
    {"id of two pieces", spoil_json, TOKENIZER "/model/vocab/ba", "300", TOKENIZER, "300"},
    {"id negative", spoil_json, TOKENIZER "/model/vocab/ba", "-1", TOKENIZER, "'ba'"},
    {"id a text", spoil_json, TOKENIZER "/model/vocab/ba", "\"7\"", TOKENIZER, "'ba'"},
    {"id 2^40", spoil_json, TOKENIZER "/model/vocab/ba", "1099511627776", TOKENIZER, "'ba'"},
    {"ids sparse", spoil_json, TOKENIZER "/model/vocab/ba", "2000000", TOKENIZER, "ids are missing"},
    {"piece past the vocabulary", spoil_json, TOKENIZER "/model/vocab/brand-new", "512", TOKENIZER, "512"},
    {"piece <0x-1>", spoil_json, TOKENIZER "/model/vocab/<0x-1>", "511", TOKENIZER, "511"},
    {"byte pieces missing", spoil_json, TOKENIZER "/model/vocab/<0x41>", "", "", NULL},
    {"added token without text", spoil_json, TOKENIZER "/added_tokens/1", "{\"id\":1}", TOKENIZER,
     "'content'"},
    {"added token empty", spoil_json, TOKENIZER "/added_tokens/1", "{\"id\":1,\"content\":\"\"}", TOKENIZER,
     "empty"},
    {"added token a number", spoil_json, TOKENIZER "/added_tokens/1", "1", TOKENIZER, "'id'"},
    {"added id of another piece", spoil_json, TOKENIZER "/added_tokens/1/id", "77", TOKENIZER, "'<s>'"},
    {"added id negative", spoil_json, TOKENIZER "/added_tokens/1/id", "-1", TOKENIZER, "'id'"},
    {"added id 2^31", spoil_json, TOKENIZER "/added_tokens/1/id", "2147483648", TOKENIZER, "'id'"},
    {"added id far past the vocabulary", spoil_json, TOKENIZER "/added_tokens/-",
     "{\"id\":1000000,\"content\":\"<new>\"}", TOKENIZER, "ids are missing"},
    {"added id past the vocabulary, unused", spoil_json, TOKENIZER "/added_tokens/-",
     "{\"id\":600,\"content\":\"<new>\"}", "", NULL}, // as CodeLlama 34B has them
    {"template with an unknown id", spoil_json, TOKENIZER "/post_processor/special_tokens/<s>/ids",
     "[99999]", TOKENIZER, "post_processor"},
    {"normalizer unknown", spoil_json, TOKENIZER "/normalizer", "{\"type\":\"Ominous\"}", TOKENIZER,
     "Ominous"},
    {"pre-tokenizer unknown", spoil_json, TOKENIZER "/pre_tokenizer", "{\"type\":\"Ominous\"}", TOKENIZER,
     "Ominous"},
    {"decoder unknown", spoil_json, TOKENIZER "/decoder", "{\"type\":\"Ominous\"}", TOKENIZER, "Ominous"},
    {"model unknown", spoil_json, TOKENIZER "/model/type", "\"Ominous\"", TOKENIZER, "Ominous"},
};

// A pattern of the pre-tokenizer that backtracks exponentially belongs here once patterns are read.
static const Case PROMPT_CASES[] = {
    {"added id past the vocabulary, used", spoil_json, TOKENIZER "/added_tokens/-",
     "{\"id\":600,\"content\":\"<new>\"}", "", "outside the vocabulary of 512"},
    {"no tokenizer for a text", spoil_remove, TOKENIZER, "", "", "--ids"},
};

static const Case CHECK_CASES[] = {
    {"a NaN", spoil_weight, "model.layers.1.mlp.up_proj.weight", "70", WEIGHTS,
     "'model.layers.1.mlp.up_proj.weight'"},
    {"a NaN at the end", spoil_weight, "lm_head.weight", "32767", WEIGHTS,
     "row 511, column 63, the first of 1 "},
    {"offsets overlap", spoil_header, "[65536,65664]", "[65534,65662]", WEIGHTS, "overlap"},
};

static const Case SHARDED_CASES[] = {
    {"shard missing", spoil_remove, SHARD_2, "", SHARD_2, "No such file"},
    {"shard empty", spoil_cut, SHARD_2, "0", SHARD_2, "not a safetensors file"},
    {"shard cut", spoil_cut, SHARD_2, "-1", SHARD_2, "cut short"},
    {"shard a directory", spoil_folder, SHARD_2, "", SHARD_2, "not a regular file"},
    {"shard a pipe", spoil_fifo, SHARD_2, "", SHARD_2, "not a regular file"},
    {"shards swapped", spoil_swap, SHARD_2, SHARD_3, INDEX, "which doesn't have it"},
    {"shard twice", spoil_copy, SHARD_2, SHARD_3, INDEX, "which doesn't have it"},
    {"index missing", spoil_remove, INDEX, "", "", "neither model.safetensors nor"},
    {"index empty", spoil_cut, INDEX, "0", INDEX, "line 1"},
    {"index a list", spoil_replace, INDEX, "[]", INDEX, "'weight_map'"},
    {"index without a map", spoil_json, INDEX "/weight_map", "", INDEX, "'weight_map'"},
    {"index with an empty map", spoil_json, INDEX "/weight_map", "{}", INDEX, "'weight_map'"},
    {"index deep", spoil_deep, INDEX, "100000", INDEX, "depth"},
    {"index too long", spoil_objects, INDEX, "4097", INDEX, "at most"},
    {"index of a million bytes in objects", spoil_objects, INDEX, "1020", INDEX, "'weight_map'"},
    {"index a directory", spoil_folder, INDEX, "", INDEX, "not a regular file"},
    {"index names a number", spoil_json, INDEX "/weight_map/lm_head.weight", "7", INDEX, "'lm_head.weight'"},
    {"index names ../", spoil_json, INDEX "/weight_map/lm_head.weight", "\"../../etc/passwd\"", INDEX,
     "plain file name"},
    {"index names a path", spoil_json, INDEX "/weight_map/lm_head.weight", "\"/etc/passwd\"", INDEX,
     "plain file name"},
    {"index names ..", spoil_json, INDEX "/weight_map/lm_head.weight", "\"..\"", INDEX, "plain file name"},
    {"index names nothing", spoil_json, INDEX "/weight_map/lm_head.weight", "\"\"", INDEX, "plain file name"},
    {"index names itself", spoil_json, INDEX "/weight_map/lm_head.weight", "\"" INDEX "\"", INDEX,
     "claims a header"},
    {"index names another shard", spoil_json, INDEX "/weight_map/lm_head.weight", "\"" SHARD_2 "\"", INDEX,
     "which doesn't have it"},
    {"index has a tensor too many", spoil_json, INDEX "/weight_map/lm_head.bias", "\"" SHARD_2 "\"", INDEX,
     "'lm_head.bias'"},
};

// 6 experts of width 40 in each of 3 layers, of which a token has 2.
#define EXPERT_0 "model.layers.0.mlp.experts."
static const Case MIXED_CASES[] = {
    {"an expert too few", spoil_json, CONFIG "/num_experts", "5", WEIGHTS, "config.json needs (5, 64)"},
    {"an expert too many", spoil_json, CONFIG "/num_experts", "7", WEIGHTS, "config.json needs (7, 64)"},
    {"router for another number", spoil_header, "[6,64]", "[4,96]", WEIGHTS, "has shape (4, 96), config.json needs (6, 64)"},
    {"expert of another width", spoil_json, CONFIG "/moe_intermediate_size", "41", WEIGHTS, "needs (41, 64)"},
    {"more of a token than there are", spoil_json, CONFIG "/num_experts_per_tok", "7", CONFIG, "from 1 to 6"},
    {"no experts", spoil_json, CONFIG "/num_experts", "0", "", "mlp.gate_proj.weight'"},
    {"a dense layer", spoil_json, CONFIG "/mlp_only_layers", "[2]", "", "'model.layers.2.mlp.gate_proj.weight'"},
    {"an expert's tensor missing", spoil_header, EXPERT_0 "3.up_proj", EXPERT_0 "3.up_prow", "", "'" EXPERT_0 "3.up_proj.weight'"},
    {"an expert of a large number", spoil_header, "lm_head.weight", EXPERT_0 "99999999.gate_proj.weight", "", "'lm_head.weight'"},
    {"router of NaN", spoil_weight, "model.layers.1.mlp.gate.weight", "70", "", "not finite"},
    {"expert of NaN", spoil_weight, "model.layers.1.mlp.experts.2.down_proj.weight", "5", "", "not finite"},
};

// Groups of 32; AWQ's of 64, with columns of 64 and, of down, 128; GPTQ's of 32.
#define Q_0 "model.layers.0.self_attn.q_proj."
#define DOWN_1 "model.layers.1.mlp.down_proj."
#define CODES CONFIG "/quantization_config"
static const Case CODED_CASES[] = {
    {"groups that don't divide", spoil_json, CODES "/group_size", "128", WEIGHTS, "(512, 64) numbers in groups of 128"},
    {"groups of another size", spoil_json, CODES "/group_size", "64", WEIGHTS, ".scales' in"},
    {"groups of 0", spoil_json, CODES "/group_size", "0", CONFIG, "'group_size' 32, 64 or 128"},
    {"bits of 3", spoil_json, CODES "/bits", "3", CONFIG, "'bits' 8 or 4"},
    {"scale of NaN", spoil_bytes, Q_0 "weight.scales", "6:007e", WEIGHTS, "'" Q_0 "weight.scales'"},
    {"scale of 0", spoil_bytes, Q_0 "weight.scales", "6:0000", WEIGHTS, "holds 0 at row 1, column 1, which is not a scale"},
    {"scale of -0", spoil_bytes, Q_0 "weight.scales", "6:0080", WEIGHTS, "holds 0 at row 1, column 1"},
    {"scale infinite", spoil_bytes, Q_0 "weight.scales", "0:007c", WEIGHTS, "holds an infinity at row 0, column 0"},
    {"scales missing", spoil_header, Q_0 "weight.scales", Q_0 "weight.scalez", "", "'" Q_0 "weight.scale"},
    {"scales in BF16", spoil_header, Q_0 "weight.scales\":{\"dtype\":\"F16\"", Q_0 "weight.scales\":{\"dtype\":\"BF16\"", WEIGHTS, "scales in F16"},
    {"codes turned", spoil_header, "\"U8\",\"shape\":[64,32]", "\"U8\",\"shape\":[32,64]", WEIGHTS, "isn't codes of 4 bits for (64, 64)"},
    {"codes of 8 bits for 4", spoil_header, "\"U8\",\"shape\":[64,32]", "\"I8\",\"shape\":[64,32]", WEIGHTS, "isn't codes of 8 bits"},
};

static const Case AWQ_CASES[] = {
    {"groups that don't divide", spoil_json, CODES "/group_size", "48", "", "'" Q_0 "weight' of"},
    {"groups of 2^19 columns", spoil_json, CODES "/group_size", "524288", "", "groups of 524288"},
    {"groups past the limit", spoil_json, CODES "/group_size", "524289", CONFIG, "'group_size'"},
    {"groups a text", spoil_json, CODES "/group_size", "\"64\"", CONFIG, "'group_size'"},
    {"groups of half the size", spoil_json, CODES "/group_size", "32", WEIGHTS, "'" Q_0 "qzeros'"},
    {"bits of 3", spoil_json, CODES "/bits", "3", CONFIG, "3 bits, which is not supported for AWQ"},
    {"bits missing", spoil_json, CODES "/bits", "", CONFIG, "'bits'"},
    {"another version", spoil_json, CODES "/version", "\"gemv\"", CONFIG, "version is 'gemv'"},
    {"scale of NaN", spoil_bytes, Q_0 "scales", "6:007e", WEIGHTS, "'" Q_0 "scales' in"},
    {"scale of 0", spoil_bytes, DOWN_1 "scales", "130:0000", WEIGHTS, "holds 0 for row 1, group 1, which is not a scale"},
    {"scale infinite", spoil_bytes, Q_0 "scales", "0:007c", WEIGHTS, "holds inf for row 0, group 0"},
    {"codes missing", spoil_header, Q_0 "qweight", Q_0 "qveight", "", "'" Q_0 "weight'"},
    {"zero points missing", spoil_header, Q_0 "qzeros", Q_0 "qzerox", "", "'" Q_0 "qzeros'"},
    {"scales missing", spoil_header, Q_0 "scales", Q_0 "scalez", "", "'" Q_0 "scales'"},
    {"codes turned", spoil_header, Q_0 "qweight\":{\"dtype\":\"I32\",\"shape\":[64,8]", Q_0 "qweight\":{\"dtype\":\"I32\",\"shape\":[8,64]", WEIGHTS, "has shape (8, 64), config.json needs (64, 8)"},
    {"codes real", spoil_header, Q_0 "qweight\":{\"dtype\":\"I32\"", Q_0 "qweight\":{\"dtype\":\"F32\"", WEIGHTS, "must have I32"},
    {"another method", spoil_json, CODES "/quant_method", "\"gptq\"", WEIGHTS, "'" Q_0 "qweight' in"},
};

static const Case GPTQ_CASES[] = {
    {"zero point out of range", spoil_bytes, Q_0 "qzeros", "1:f7", WEIGHTS, "the zero point 16 for row 3, group 0, must be at most 15"},
    {"zero points as they are", spoil_json, CODES "/checkpoint_format", "\"gptq_v2\"", "", NULL},
    {"group out of range", spoil_bytes, Q_0 "g_idx", "8:02000000", WEIGHTS, "'" Q_0 "g_idx' in"},
    {"group negative", spoil_bytes, Q_0 "g_idx", "8:ffffffff", WEIGHTS, "puts column 2 into group -1 of 2"},
    {"groups turned", spoil_bytes, Q_0 "g_idx", "0:01000000", "", NULL}, // values, then
    {"groups missing", spoil_header, Q_0 "g_idx", Q_0 "g_idy", WEIGHTS, "doesn't belong"},
    {"another format", spoil_json, CODES "/checkpoint_format", "\"marlin\"", CONFIG, "checkpoint_format is 'marlin'"},
    {"order a number", spoil_json, CODES "/desc_act", "2", CONFIG, "'desc_act'"},
    {"bits of 8", spoil_json, CODES "/bits", "8", WEIGHTS, "'" Q_0 "qweight' in"},
    {"bits of 2", spoil_json, CODES "/bits", "2", CONFIG, "4 and 8 are"},
};

// clang-format on

// --- running one

typedef struct {
    char root[FOLDER_PATH_SIZE];
    char good[LAYOUTS][FOLDER_PATH_SIZE + 16]; // by Layout
    char dir[FOLDER_PATH_SIZE + 16];           // the spoilt copy
    size_t good_bytes;                         // that a good run takes
} Bench;

// A child that computes for ever is ended by its processor time, one that waits for ever by the clock: which
// a busy machine must not reach.
#define UNHUNG "prlimit", "--cpu=20", "timeout", "120"
static void use_model(Child *c, const char *dir, Use use) {
    const char *program = getenv("OUTPACE") ? getenv("OUTPACE") : "./outpace";
    const char *const ids[] = {UNHUNG, program, "generate", dir, "--ids", "1,2", "-n", "1", NULL};
    const char *const prompt[] = {UNHUNG, program, "generate", dir, "ab <new> cd", "-n", "1", NULL};
    const char *const check[] = {UNHUNG, program, "model", "info", dir, "--check", NULL};
    child_run(c, NULL, NULL, use == IDS ? ids : use == PROMPT ? prompt : check);
}

static bool is_one_line(const Text *t) {
    const char *s = text_get(t);
    for (size_t i = 0; i + 1 < t->length; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f) return false;
    return t->length > 1 && s[t->length - 1] == '\n';
}

// What is wrong with how it went; NULL if nothing.
static const char *fault(const Child *c, const Case *row, const Bench *b) {
    const char *err = text_get(&c->err);
    if (c->seconds > MOST_SECONDS) return "it took too long";
    if (c->peak_bytes > b->good_bytes + MOST_BYTES) return "it took too much memory";
    if (!row->words) return c->code == 0 && !c->err.length ? NULL : "wanted it to do no harm";
    if (c->code != 2) return "wanted exit code 2";
    if (!is_one_line(&c->err)) return "wanted one line on stderr";
    if (c->out.length) return "wanted nothing on stdout";
    if (*row->file && !strstr(err, b->dir)) return "wanted the path of the directory";
    if (!strstr(err, row->file)) return "wanted the file named";
    return strstr(err, row->words) ? NULL : "wanted other words";
}

static bool run_case(Bench *b, const Case *row, Layout layout, Use use) {
    Child c;
    scratch_copy(b->good[layout], b->dir);
    row->spoil(b->dir, row->a, row->b);
    use_model(&c, b->dir, use);
    const char *wrong = fault(&c, row, b);
    if (wrong)
        print_error("%s: %s: exit code %d, %.2f s, %zu MB, stderr '%s'; wanted '%s'\n", row->name, wrong,
                    c.code, c.seconds, c.peak_bytes >> 20, text_get(&c.err), row->words ? row->words : "");
    child_release(&c);
    folder_remove(b->dir);
    return !wrong;
}

// All of them are run, so that one look shows all that are wrong.
static void run_cases(Bench *b, const Case *rows, size_t count, Layout layout, Use use) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) wrong += !run_case(b, &rows[i], layout, use);
    if (wrong) fail_msg("%zu of %zu cases went wrong", wrong, count);
}

#define RUN(rows, layout, use) run_cases(*state, rows, sizeof(rows) / sizeof *(rows), layout, use)
static void single(void **state) { RUN(SINGLE_CASES, SINGLE, IDS); }
static void prompts(void **state) { RUN(PROMPT_CASES, SINGLE, PROMPT); }
static void checked(void **state) { RUN(CHECK_CASES, SINGLE, CHECK); }
static void sharded(void **state) { RUN(SHARDED_CASES, SHARDED, IDS); }
static void mixed(void **state) { RUN(MIXED_CASES, MIXED, CHECK); }
static void coded(void **state) { RUN(CODED_CASES, CODED, IDS); }
static void awq(void **state) { RUN(AWQ_CASES, AWQ, IDS); }
static void gptq(void **state) { RUN(GPTQ_CASES, GPTQ, IDS); }

// The directories that are spoilt are good, and tell how much memory is usual.
static void good_ones_run(void **state) {
    Bench *b = *state;
    for (Layout layout = SINGLE; layout < LAYOUTS; layout++)
        for (Use use = IDS; use <= CHECK; use++) {
            Child c;
            if (use == PROMPT && layout >= AWQ) continue;
            use_model(&c, b->good[layout], use);
            if (c.code || c.err.length || !c.out.length)
                fail_msg("layout %d, use %d: exit code %d, '%s'", layout, use, c.code, text_get(&c.err));
            if (c.peak_bytes > b->good_bytes) b->good_bytes = c.peak_bytes;
            child_release(&c);
        }
}

static int open_bench(void **state) {
    static Bench b;
    Error e = {0};
    folder_make(b.root);
    snprintf(b.good[SINGLE], sizeof b.good[SINGLE], "%s/single", b.root);
    snprintf(b.good[SHARDED], sizeof b.good[SHARDED], "%s/sharded", b.root);
    snprintf(b.good[MIXED], sizeof b.good[MIXED], "%s/mixed", b.root);
    snprintf(b.good[CODED], sizeof b.good[CODED], "%s/coded", b.root);
    snprintf(b.good[AWQ], sizeof b.good[AWQ], "%s/awq", b.root);
    snprintf(b.good[GPTQ], sizeof b.good[GPTQ], "%s/gptq", b.root);
    scratch_copy("build/golden/packed-awq", b.good[AWQ]);
    scratch_copy("build/golden/packed-gptq", b.good[GPTQ]);
    snprintf(b.dir, sizeof b.dir, "%s/model", b.root);
    *state = &b;
    const char *experts[] = {"model_type=qwen3_moe", "num_experts=6", "num_experts_per_tok=2",
                             "moe_intermediate_size=40"};
    return model_synth(b.good[MIXED], &(SynthOptions){.shape = "tiny", .sets = experts, .set_count = 4},
                       &e) &&
                   model_synth(b.good[SINGLE], &(SynthOptions){.shape = "tiny"}, &e) &&
                   model_synth(b.good[SHARDED], &(SynthOptions){.shape = "tiny", .shard_bytes = 70000}, &e) &&
                   model_quantise(b.good[CODED], &(QuantiseOptions){b.good[SINGLE], .bits = 4, .group = 32},
                                  &e)
               ? 0
               : -1;
}

static int close_bench(void **state) {
    folder_remove(((Bench *)*state)->root);
    return 0;
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    const struct rlimit no_core = {0, 0}, processor = {60, 60}; // ends a child that loops
    if (root && chdir(root)) return 1;
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_CPU, &processor);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones_run), // first: the others compare with it
        cmocka_unit_test(single),        cmocka_unit_test(prompts), cmocka_unit_test(checked),
        cmocka_unit_test(sharded),       cmocka_unit_test(mixed),   cmocka_unit_test(coded),
        cmocka_unit_test(awq),           cmocka_unit_test(gptq),
    };
    return cmocka_run_group_tests(tests, open_bench, close_bench);
}
