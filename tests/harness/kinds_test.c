// Every kind of file that opens as a model goes through every command that takes one: safetensors of each
// architecture and type, mixtures of experts, packed codes, GGUF of each format, inflated and quantised
// models.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/base/random.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char GOLDEN[] = "build/golden";
enum { MOST = 96, A_CONFIG = 32, TOKENS = 130 }; // as many models fit in a config

typedef struct Kinds {
    void *folder;
    char *names[MOST];
    int count;
} Kinds;

static void add(Kinds *k, const char *name) {
    assert_true(k->count < MOST);
    k->names[k->count++] = mem_text(name, strlen(name));
}

// --- a tokenizer that all models can share: a token for each character of ASCII, after <unk>, <s> and </s>

static json_t *tokenizer(void) {
    json_t *vocab = json_pack("{s:i, s:i, s:i}", "<unk>", 0, "<s>", 1, "</s>", 2);
    for (int c = 1; c < 128; c++) json_object_set_new(vocab, (char[]){(char)c, 0}, json_integer(2 + c));
    return json_pack("{s:s, s:{s:s, s:s, s:o, s:[]}}", "version", "1.0", "model", "type", "BPE", "unk_token",
                     "<unk>", "vocab", vocab, "merges");
}

static void write_tokenizer(const char *dir) {
    json_t *json = tokenizer();
    scratch_write_json(dir, "tokenizer.json", json);
    json_decref(json);
}

// --- GGUF

static void put(Text *t, uint64_t x, int bytes) {
    for (int i = 0; i < bytes; i++) text_add(t, (const char[]){(char)(x >> 8 * i)}, 1);
}

static void put_text(Text *t, const char *s) {
    put(t, strlen(s), 8);
    text_puts(t, s);
}

enum { U32 = 4, I32 = 5, F32 = 6, TEXT = 8, LIST = 9 };

static void put_number(Text *t, const char *key, int type, uint64_t bits) {
    put_text(t, key);
    put(t, (uint64_t)type, 4);
    put(t, bits, 4);
}

static void put_word(Text *t, const char *key, const char *word) {
    put_text(t, key);
    put(t, TEXT, 4);
    put_text(t, word);
}

static void begin_list(Text *t, const char *key, int type) {
    put_text(t, key);
    put(t, LIST, 4);
    put(t, (uint64_t)type, 4);
    put(t, TOKENS, 8);
}

typedef struct Format {
    const char *name;
    int id, numbers, bytes; // of a block
} Format;
static const Format FORMATS[] = {{"F32", 0, 1, 4},        {"F16", 1, 1, 2},       {"BF16", 30, 1, 2},
                                 {"Q4_0", 2, 32, 18},     {"Q4_1", 3, 32, 20},    {"Q5_0", 6, 32, 22},
                                 {"Q5_1", 7, 32, 24},     {"Q8_0", 8, 32, 34},    {"Q4_K", 12, 256, 144},
                                 {"Q5_K", 13, 256, 176},  {"Q6_K", 14, 256, 210}, {"Q3_K", 11, 256, 110},
                                 {"IQ4_XS", 23, 256, 136}};

// Random numbers whose bytes are below 0x3c: read as a scale of a block or as a number, each is finite and at
// most 1 or so.
static void put_tensor(Text *header, Text *data, const char *name, const Format *f, int columns, int rows) {
    static const Format vector = {"F32", 0, 1, 4};
    if (!rows) f = &vector;
    put_text(header, name);
    put(header, rows ? 2 : 1, 4);
    put(header, (uint64_t)columns, 8);
    if (rows) put(header, (uint64_t)rows, 8);
    put(header, (uint64_t)f->id, 4);
    put(header, data->length, 8);
    Random r = {.seed = data->length};
    for (int i = 0; i < columns * (rows ? rows : 1) / f->numbers * f->bytes; i++)
        text_add(data, (const char[]){(char)(random_below(&r, 0x3c))}, 1);
    while (data->length % 32) text_add(data, "", 1);
}

static void write_gguf(const char *dir, const char *name, const Format *f) {
    static const struct {
        const char *name;
        int columns, rows;
    } tensors[] = {{"token_embd.weight", 256, TOKENS},  {"output_norm.weight", 256, 0},
                   {"blk.0.attn_norm.weight", 256, 0},  {"blk.0.ffn_norm.weight", 256, 0},
                   {"blk.0.attn_q.weight", 256, 256},   {"blk.0.attn_k.weight", 256, 64},
                   {"blk.0.attn_v.weight", 256, 64},    {"blk.0.attn_output.weight", 256, 256},
                   {"blk.0.ffn_gate.weight", 256, 256}, {"blk.0.ffn_up.weight", 256, 256},
                   {"blk.0.ffn_down.weight", 256, 256}};
    enum { TENSORS = sizeof tensors / sizeof *tensors, VALUES = 14 };
    Text file = {0}, data = {0};
    text_puts(&file, "GGUF");
    put(&file, 3, 4);
    put(&file, TENSORS, 8);
    put(&file, VALUES, 8);
    put_word(&file, "general.architecture", "llama");
    put_number(&file, "llama.context_length", U32, 128);
    put_number(&file, "llama.embedding_length", U32, 256);
    put_number(&file, "llama.block_count", U32, 1);
    put_number(&file, "llama.feed_forward_length", U32, 256);
    put_number(&file, "llama.attention.head_count", U32, 4);
    put_number(&file, "llama.attention.head_count_kv", U32, 1);
    put_number(&file, "llama.attention.layer_norm_rms_epsilon", F32, 0x3727c5ac); // 1e-5
    put_number(&file, "tokenizer.ggml.bos_token_id", U32, 1);
    put_number(&file, "tokenizer.ggml.eos_token_id", U32, 2);
    put_word(&file, "tokenizer.ggml.model", "llama");
    begin_list(&file, "tokenizer.ggml.tokens", TEXT);
    for (int i = 0; i < TOKENS; i++)
        put_text(&file,
                 i < 3 ? (const char *const[]){"<unk>", "<s>", "</s>"}[i] : (char[]){(char)(i - 2), 0});
    begin_list(&file, "tokenizer.ggml.scores", F32);
    for (int i = 0; i < TOKENS; i++) put(&file, 0, 4);
    begin_list(&file, "tokenizer.ggml.token_type", I32);
    for (int i = 0; i < TOKENS; i++) put(&file, i == 0 ? 2 : i < 3 ? 3 : 1, 4);
    for (int i = 0; i < TENSORS; i++)
        put_tensor(&file, &data, tensors[i].name, f, tensors[i].columns, tensors[i].rows);
    while (file.length % 32) text_add(&file, "", 1);
    text_add(&file, data.data, data.length);
    scratch_write(dir, name, file.data, file.length);
    text_release(&file);
    text_release(&data);
}

// --- all of them

static void make_golden(Kinds *k) {
    DIR *d = opendir(GOLDEN);
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));) {
        if (f->d_name[0] == '.') continue;
        char from[512];
        snprintf(from, sizeof from, "%s/%s", GOLDEN, f->d_name);
        scratch_copy(from, folder_path(k->folder, f->d_name));
        write_tokenizer(folder_path(k->folder, f->d_name));
        add(k, f->d_name);
    }
    closedir(d);
    assert_true(k->count > 50);
}

static void make_ours(Kinds *k) {
    static const char *const rows[][12] = {
        {"model", "synth", "tiny", "small"},
        {"model", "synth", "tiny", "shape", "--set", "hidden_size=128", "--set", "num_attention_heads=8"},
        {"model", "inflate", "small", "inflated", "--shape", "shape/config.json"},
        {"model", "quantise", "small", "quantised-8", "--bits", "8"},
        {"model", "quantise", "small", "quantised-4", "--bits", "4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Child c;
        child_outpace(&c, k->folder, 0, rows[i]);
        child_release(&c);
        add(k, rows[i][3]);
    }
}

static int set_up(void **state) {
    Kinds *k = test_calloc(1, sizeof *k);
    if (folder_setup(&k->folder)) return -1;
    *state = k;
    make_golden(k);
    make_ours(k);
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.gguf", FORMATS[i].name);
        write_gguf(k->folder, name, &FORMATS[i]);
        add(k, name);
    }
    folder_write(k->folder, "texts.txt", "Once upon a time.\n\nA cat sat on a mat.\n");
    return 0;
}

static int tear_down(void **state) {
    Kinds *k = *state;
    int bad = folder_teardown(&k->folder);
    for (int i = 0; i < k->count; i++) mem_free(k->names[i]);
    test_free(k);
    return bad;
}

static void outpace(Kinds *k, const char *name, const char *const *words) {
    const char *all[24];
    Child c;
    int n = 0;
    for (; words[n]; n++) all[n] = strcmp(words[n], "MODEL") == 0 ? name : words[n];
    all[n] = NULL;
    child_outpace(&c, k->folder, 0, all);
    child_release(&c);
}

static void each(Kinds *k, const char *const *words) {
    for (int i = 0; i < k->count; i++) outpace(k, k->names[i], words);
}

// Of the ways in which weights come into memory, the first `count`: these commands take a second to measure
// the machine.
static void some(Kinds *k, size_t count, const char *const *words) {
    static const char *const names[] = {"mixtral",   "packed-awq",       "Q6_K.gguf",  "Q5_K.gguf",
                                        "Q4_K.gguf", "quantised-4",      "gemma",      "F16.gguf",
                                        "inflated",  "llama-f16-shards", "packed-gptq"};
    assert_true(count <= sizeof names / sizeof *names);
    for (size_t i = 0; i < count; i++) outpace(k, names[i], words);
}

static void verify(void **state) {
    each(*state,
         (const char *const[]){"verify", "MODEL", "--prompts", "texts.txt", "-n", "1", "--max-tokens", "8",
                               "--cache", "", "-m", "jacobi", "-m", "ngrammys", "--batch", "2", NULL});
}

static void quality(void **state) {
    each(*state, (const char *const[]){"quality", "MODEL", "--path", "texts.txt", "--greedy", "2",
                                       "--against", "MODEL", NULL});
}

static void tune(void **state) {
    some(*state, 11,
         (const char *const[]){"tune", "MODEL", "--path", "texts.txt", "--method", "prompt-lookup",
                               "--max-tokens", "8", "--budget", "2s", "--db", "tune.db", NULL});
}

static void bench(void **state) {
    some(*state, 6,
         (const char *const[]){"bench", "MODEL", "--tokens", "1,4", "--context", "16", "--samples", "1",
                               "--seconds", "0", NULL});
}

// Activations of 8 bits with each format of codes.
static void integers(void **state) {
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        char name[32];
        if (FORMATS[i].numbers == 1) continue;
        snprintf(name, sizeof name, "%s.gguf", FORMATS[i].name);
        outpace(*state, name,
                (const char *const[]){"verify", "MODEL", "--prompts", "texts.txt", "-n", "1", "--max-tokens",
                                      "8", "--cache", "", "-m", "jacobi", "-m", "ngrammys", "--batch", "2",
                                      "--compute", "int8", NULL});
        outpace(*state, name,
                (const char *const[]){"bench", "MODEL", "--tokens", "1,4", "--context", "16", "--samples",
                                      "1", "--seconds", "0", "--compute", "int8", NULL});
    }
}

// A config for each A_CONFIG of them.
static void configs(void **state) {
    Kinds *k = *state;
    for (int first = 0; first < k->count; first += A_CONFIG) {
        Text yaml = {0};
        Child c;
        text_puts(&yaml, "name: kinds\nmodels:\n");
        for (int i = first; i < k->count && i < first + A_CONFIG; i++)
            text_printf(&yaml, "  - {name: %s, target: %s}\n", k->names[i], k->names[i]);
        text_puts(&yaml, "datasets: [{name: t, path: texts.txt}]\ngeneration: {max_tokens: 8}\n"
                         "methods: [autoregressive, jacobi, lookahead]\n");
        folder_write(k->folder, "kinds.yaml", text_get(&yaml));
        CHILD_OUTPACE(&c, k->folder, 0, "plan", "kinds.yaml", "--check");
        child_release(&c);
        CHILD_OUTPACE(&c, k->folder, 0, "plan", "kinds.yaml", "--db", "run.db");
        child_release(&c);
        CHILD_OUTPACE(&c, k->folder, 0, "run", "kinds.yaml", "--db", "run.db");
        child_release(&c);
        text_release(&yaml);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(configs), cmocka_unit_test(verify),
                                       cmocka_unit_test(quality), cmocka_unit_test(tune),
                                       cmocka_unit_test(bench),   cmocka_unit_test(integers)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
