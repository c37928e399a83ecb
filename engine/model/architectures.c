// The table of architectures. A model of a new one that computes nothing new is a row here: its shape where
// config.json doesn't give a number, the names of its tensors, and a function for keys that only it has.
#include "engine/model/config.h"

#include "engine/base/json.h"

#include <string.h>

enum { NO_WINDOWS = 1 << 20 };

const char ARCHITECTURES_SUPPORTED[] =
    "llama (also CodeLlama, Vicuna, Yi, DeepSeek-coder), mistral, phi3, qwen2, qwen3";

static const Architecture ARCHITECTURES[] = {
    {.model_type = "llama", .full_layers = NO_WINDOWS, .shape = {.context = 2048, .norm_epsilon = 1e-6f}},
    {.model_type = "mistral",
     .windowed = true,
     .shape = {.context = 131072, .window = 4096, .norm_epsilon = 1e-6f}},
    {.model_type = "phi3",
     .fused = 1u << GROUP_QKV | 1u << GROUP_IN,
     .partly_rotated = true,
     .windowed = true,
     .shape = {.context = 4096, .rope.original_context = 4096, .norm_epsilon = 1e-5f}},
    {.model_type = "qwen2",
     .full_layers = 28,
     .keys = {{"attention_bias", NULL}},
     .shape = {.context = 32768, .window = 4096, .qkv_bias = true, .norm_epsilon = 1e-6f}},
    {.model_type = "qwen3",
     .full_layers = 28,
     .shape = {.head_dim = 128, .context = 32768, .window = 4096, .qk_norm = true, .norm_epsilon = 1e-6f}},
};

const Architecture *architecture_find(const char *model_type) {
    for (size_t i = 0; i < sizeof ARCHITECTURES / sizeof *ARCHITECTURES; i++)
        if (strcmp(ARCHITECTURES[i].model_type, model_type) == 0) return &ARCHITECTURES[i];
    return NULL;
}
