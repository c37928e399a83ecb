// The published templates, and one function that writes any of them.
#include "engine/text/template.h"

#include "engine/base/file.h"
#include "engine/text/utf8.h"

#include <string.h>

#define LLAMA2_PARTS                                                                                       \
    .begin = "<s>", .system_before = "<<SYS>>\n", .system_after = "\n<</SYS>>\n\n", .system_inside = true, \
    .user_before = "[INST] ", .user_after = " [/INST]", .reply_before = " ", .reply_after = " </s>",       \
    .again = "<s>", .trim_user = true, .trim_reply = true

// A role's name is between `open` and `close`, and `end` follows each text.
#define ROLES(first, open, close, end)                                         \
    .begin = first, .system_before = open "system" close, .system_after = end, \
    .user_before = open "user" close, .user_after = end open "assistant" close, .reply_after = end

#define CHATML_PARTS ROLES("", "<|im_start|>", "\n", "<|im_end|>\n")

#define GEMMA_PARTS                                                                          \
    .begin = "<bos>", .user_before = "<start_of_turn>user\n",                                \
    .user_after = "<end_of_turn>\n<start_of_turn>model\n", .reply_after = "<end_of_turn>\n", \
    .trim_user = true, .trim_reply = true

static const Template TEMPLATES[] = {
    {.name = "none", .about = "the text as it is"},
    {.name = "vicuna",
     .about = "Vicuna 1.1 and 1.5 (FastChat)",
     .system = "A chat between a curious user and an artificial intelligence assistant. The assistant gives "
               "helpful, detailed, and polite answers to the user's questions.",
     .system_after = " ",
     .user_before = "USER: ",
     .user_after = " ASSISTANT:",
     .reply_before = " ",
     .reply_after = "</s>"},
    {.name = "llama-2", .about = "Llama 2 chat", LLAMA2_PARTS},
    {.name = "codellama", .about = "CodeLlama instruct, as Llama 2", LLAMA2_PARTS},
    {.name = "mistral",
     .about = "Mistral instruct 0.1 and 0.2, Mixtral instruct",
     .begin = "<s>",
     .system_after = "\n\n",
     .system_inside = true,
     .user_before = "[INST] ",
     .user_after = " [/INST]",
     .reply_after = "</s>"},
    {.name = "phi-3", .about = "Phi-3 instruct", ROLES("", "<|", "|>\n", "<|end|>\n")},
    {.name = "llama-3",
     .about = "Llama 3 instruct",
     ROLES("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>"),
     .trim_system = true,
     .trim_user = true,
     .trim_reply = true},
    {.name = "qwen-2.5",
     .about = "Qwen2.5 instruct",
     .system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
     CHATML_PARTS},
    {.name = "qwen-3",
     .about = "Qwen3, which thinks before it answers",
     .thought_end = "</think>",
     CHATML_PARTS},
    {.name = "phi-4", .about = "Phi-4", ROLES("", "<|im_start|>", "<|im_sep|>", "<|im_end|>")},
    {.name = "phi-4-mini", .about = "Phi-4-mini instruct", ROLES("", "<|", "|>", "<|end|>")},
    {.name = "gemma", .about = "Gemma and Gemma 2, without system text", GEMMA_PARTS},
    {.name = "gemma-3",
     .about = "Gemma 3 instruct",
     .system_after = "\n\n",
     .system_inside = true,
     .kept_apart = true,
     GEMMA_PARTS},
    {.name = "olmo-2",
     .about = "OLMo 2 instruct",
     .begin = "<|endoftext|>",
     .system_before = "<|system|>\n",
     .system_after = "\n",
     .user_before = "<|user|>\n",
     .user_after = "\n<|assistant|>\n",
     .reply_after = "<|endoftext|>\n"},
    {.name = "granite",
     .about = "Granite 3.0 instruct",
     ROLES("", "<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>\n")},
    {.name = "smollm-2",
     .about = "SmolLM2 instruct",
     .system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
     CHATML_PARTS},
    {.name = "glm-4", .about = "GLM-4 chat", ROLES("[gMASK]<sop>", "<|", "|>\n", "")},
    {.name = "command-r",
     .about = "Command R and R+ (Cohere)",
     .begin = "<BOS_TOKEN>",
     .system_before = "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>",
     .system_after = "<|END_OF_TURN_TOKEN|>",
     .user_before = "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>",
     .user_after = "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
     .reply_after = "<|END_OF_TURN_TOKEN|>",
     .trim_user = true,
     .trim_reply = true},
    {.name = "exaone-3.5",
     .about = "EXAONE 3.5 instruct",
     .begin = "",
     .system = "",
     .system_before = "[|system|]",
     .system_after = "[|endofturn|]\n",
     .user_before = "[|user|]",
     .user_after = "\n[|assistant|]",
     .reply_after = "[|endofturn|]\n"},
    {.name = "seed-oss",
     .about = "Seed-OSS instruct",
     ROLES("", "<seed:bos>", "\n", "<seed:eos>"),
     .trim_reply = true},
    {.name = "zephyr", .about = "Zephyr 7B, TinyLlama chat", ROLES("", "<|", "|>\n", "</s>\n")},
    {.name = "stablelm-zephyr", .about = "StableLM Zephyr", ROLES("", "<|", "|>\n", "<|endoftext|>\n")},
    {.name = "chatml", .about = "StableLM 2, Arcee and many others", CHATML_PARTS},
};
enum { TEMPLATE_COUNT = sizeof TEMPLATES / sizeof *TEMPLATES };

const Template *template_table(size_t *count) {
    *count = TEMPLATE_COUNT;
    return TEMPLATES;
}

void template_names(Text *out) {
    for (size_t i = 0; i < TEMPLATE_COUNT; i++) text_printf(out, "%s%s", i ? ", " : "", TEMPLATES[i].name);
}

const Template *template_find(const char *name, Error *e) {
    for (size_t i = 0; i < TEMPLATE_COUNT; i++)
        if (strcmp(TEMPLATES[i].name, name) == 0) return &TEMPLATES[i];
    LOCAL_TEXT known = {0};
    const char *nearest = suggest(name, TEMPLATES, TEMPLATE_COUNT, sizeof *TEMPLATES);
    template_names(&known);
    error_input(e, "there is no template '%.40s'%s%s%s; these are: %s", name,
                nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'" : "",
                text_get(&known));
    return NULL;
}

// --- models' own -----------------------------------------------------------------------------------------

enum { HASH_DIGITS = 16 };

// A text as a model's files have it. It renders the same prompts: Jinja (jinja2 3.1, with transformers'
// settings) agreed on 400 random conversations of one to four turns, half with a system text if it takes one
// (2026-11-27).
typedef struct Published {
    const char *hash; // the first digits of its SHA-256; without a line's end at its end, which Jinja drops
    const char *name;
    const char *eos; // that a prompt has where the text says eos_token; NULL: none has it
} Published;

static const Published PUBLISHED[] = {
    {"be7f8f15473ed3f9", "llama-2", "</s>"},
    {"e8d5b5a546d3f19d", "llama-2", "</s>"},
    {"26a59556925c9873", "mistral", "</s>"}, // Mistral 0.2
    {"78d976a442bcde2f", "phi-3", NULL},     // 3.5, too
    {"dcaee66df77bfbb7", "phi-3", NULL},
    {"b48c47f644389271", "llama-3", NULL},
    {"ba03a121d097859c", "llama-3", NULL},
    {"4e9918361c284a93", "qwen-2.5", NULL}, // Qwen2.5, and Qwen2.5-Coder 1.5B as a GGUF
    {"55b2f4a26ac9ee71", "qwen-2.5", NULL}, // Qwen2.5-Coder
    {"87a2728cb8dc9fe4", "qwen-3", NULL},
    {"a41fb8727c4f1e72", "phi-4", NULL},
    {"febf589225c9728a", "phi-4-mini", NULL},
    {"ecd6ae513fe103f0", "gemma", NULL}, // Gemma 2
    {"85be955460e4cbe4", "gemma-3", NULL},
    {"8d9e3a3c114fb205", "gemma-3", NULL},
    {"fe689ffbd6a4e2d0", "olmo-2", "<|endoftext|>"},
    {"09d68eeb5c0eaa55", "granite", NULL},
    {"fed2756d2d24e127", "granite", NULL}, // Granite 4
    {"872be49dbb638044", "smollm-2", NULL},
    {"469770c7e90472c4", "command-r", NULL}, // R+
    {"6269c0952a633ea8", "command-r", NULL},
    {"90c33aee14aa2a22", "command-r", NULL}, // Aya Expanse
    {"9db2cf47ce03bfd0", "command-r", NULL}, // Aya
    {"627e212836e41c62", "exaone-3.5", NULL},
    {"66291cf0045c2425", "zephyr", "</s>"},
    {"66291cf0045c2425", "stablelm-zephyr", "<|endoftext|>"},
    {"153280e3ff55d19d", "chatml", NULL},
    {"58c1a1f04baa7ada", "chatml", NULL}, // Dolphin
    {"75f5fed5cd66cc75", "chatml", NULL}, // Yi-Coder
    {"ceede2b04032dff3", "chatml", NULL}, // Qwen3-Coder
    {"dbd75fe18b14711f", "chatml", NULL},
    {"e8c6cd531610b811", "chatml", NULL}, // Cogito
};

static bool same(const char *a, const char *b) { return a && b && strcmp(a, b) == 0; }

const Template *template_recognise(const char *text, size_t n, const char *bos, const char *eos) {
    char hash[SHA256_TEXT];
    if (n && text[n - 1] == '\n') n--;
    if (!sha256_bytes(text, n, hash, NULL)) return NULL;
    bool begins = memmem(text, n, "bos_token", 9);
    for (const Published *p = PUBLISHED; p < PUBLISHED + sizeof PUBLISHED / sizeof *PUBLISHED; p++)
        if (strncmp(p->hash, hash, HASH_DIGITS) == 0 && (!p->eos || same(p->eos, eos)) &&
            (!begins || same(template_find(p->name, NULL)->begin, bos)))
            return template_find(p->name, NULL);
    return NULL;
}

// --- rendering -------------------------------------------------------------------------------------------

static void put(Text *out, const char *part) {
    if (part) text_puts(out, part);
}

static void put_text(Text *out, const char *s, bool trim) {
    size_t n = strlen(s), from = trim ? utf8_space_at_start(s, n) : 0;
    size_t end = trim ? utf8_space_at_end(s + from, n - from) : 0;
    text_add(out, s + from, n - from - end);
}

static void put_system(const Template *t, const char *system, Text *out) {
    if (!system) return;
    put(out, t->system_before);
    put_text(out, system, t->trim_system);
    put(out, t->system_after);
}

static const char *without_thought(const Template *t, const char *reply) {
    if (!t->thought_end) return reply;
    for (const char *end; (end = strstr(reply, t->thought_end));) {
        reply = end + strlen(t->thought_end);
        reply += strspn(reply, "\n");
    }
    return reply;
}

static void put_turn(const Template *t, const char *system, const Turn *turn, bool first, Text *out) {
    if (!first) put(out, t->again);
    if (!t->system_inside) put_system(t, system, out);
    put(out, t->user_before);
    LOCAL_TEXT content = {0};
    if (t->system_inside) put_system(t, system, t->kept_apart ? out : &content);
    text_puts(&content, turn->user);
    put_text(out, text_get(&content), t->trim_user);
    put(out, t->user_after);
    if (!turn->reply) return;
    put(out, t->reply_before);
    put_text(out, without_thought(t, turn->reply), t->trim_reply);
    put(out, t->reply_after);
}

bool template_render(const Template *t, const char *system, const Turn *turns, size_t count, Text *out,
                     Error *e) {
    if (system && !t->system_after)
        return error_input(e, "the template '%s' has no place for a system text", t->name);
    if (!system) system = t->system;
    put(out, t->begin);
    for (size_t i = 0; i < count; i++) put_turn(t, i == 0 ? system : NULL, &turns[i], i == 0, out);
    return true;
}
