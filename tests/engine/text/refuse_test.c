// Tokenizer files that are wrong, hostile or of a kind that is not supported: one line that names file and
// place, or a tokenizer that works; never a crash, a hang or a wrong reading.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/text/tokenizer.h"

#include <stdio.h>
#include <string.h>

static const char FIXTURE[] = "tests/fixtures/tokenizers/llama2/tokenizer.json";
static const char MODEL[] = "tests/fixtures/tokenizers/sp_llama/tokenizer.model";

static void read_fixture(const char *path, char **bytes, size_t *n) {
    Error e = {0};
    if (!file_read(path, 1 << 24, bytes, n, &e)) fail_msg("%s", e.text);
}

static void expect_refusal(const char *bytes, size_t n, const char *what, const char *want) {
    Error e = {0};
    Tokenizer *t = tokenizer_parse(bytes, n, "FILE", &e);
    if (t) fail_msg("%s: not refused", what);
    assert_int_equal(error_exit_code(&e), 2);
    if (!strstr(e.text, want)) fail_msg("%s: wanted '%s', got '%s'", what, want, e.text);
    if (!strstr(e.text, "FILE")) fail_msg("%s: the file is not named: %s", what, e.text);
    if (strchr(e.text, '\n')) fail_msg("%s: more than a line", what);
}

// --- a part of a good file replaced --------------------------------------------------------------------

typedef struct {
    const char *key, *value; // of the root, or "model.KEY"; the value is JSON
    const char *want;        // in the message
} Change;

#define SEQUENCE(list, members) "{\"type\":\"Sequence\",\"" list "\":[" members "]}"
#define SPLIT(pattern) \
    "{\"type\":\"Split\",\"pattern\":" pattern ",\"behavior\":\"Isolated\",\"invert\":false}"

static const Change CHANGES[] = {
    {"model.type", "\"Unigram\"", "the model 'Unigram'"},
    {"model.type", "\"WordPiece\"", "supported"},
    {"model.dropout", "0.1", "'dropout'"},
    {"model.continuing_subword_prefix", "\"##\"", "'continuing_subword_prefix'"},
    {"model.end_of_word_suffix", "\"</w>\"", "'end_of_word_suffix'"},
    {"model.unk_token", "\"nowhere\"", "unk_token 'nowhere'"},
    {"model.unk_token", "7", "'unk_token'"},
    {"model.byte_fallback", "\"yes\"", "'byte_fallback'"},
    {"model.vocab", "[]", "'vocab'"},
    {"model.vocab", "{}", ""},
    {"model.vocab", "{\"a\":0,\"b\":0}", "belongs to two pieces"},
    {"model.vocab", "{\"a\":-1}", "no id from 0"},
    {"model.vocab", "{\"a\":1.5}", "no id from 0"},
    {"model.vocab", "{\"a\":9223372036854775807}", "no id from 0"},
    {"model.vocab", "{\"a\":0,\"b\":2000000}", "ids are missing"},
    {"model.merges", "{}", "'merges'"},
    {"model.merges", "[\"a\"]", "merge 0"},
    {"model.merges", "[\"a \"]", "merge 0"},
    {"model.merges", "[\" a\"]", "merge 0"},
    {"model.merges", "[[\"a\"]]", "merge 0"},
    {"model.merges", "[[\"a\",7]]", "merge 0"},
    {"model.merges", "[[\"\",\"a\"]]", "merge 0"},
    {"model.merges", "[7]", "merge 0"},
    {"model.merges", "[\"nowhere a\"]", "'nowhere'"},
    {"model.merges", "[\"z q\"]", "not in the vocabulary"},
    {"model", "null", "a model with"},
    {"normalizer", "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"\"}",
     "the normalizer 'Precompiled'"},
    {"normalizer", "{\"type\":\"Lowercase\"}", "NFC, NFD"},
    {"normalizer", "{\"type\":\"Prepend\"}", "'prepend'"},
    {"normalizer", "{\"type\":\"Replace\",\"pattern\":{},\"content\":\"\"}", "'pattern'"},
    {"normalizer", "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(\"},\"content\":\"\"}",
     "cannot be compiled"},
    {"normalizer", "[]", "'type'"},
    {"normalizer", "{\"type\":\"Sequence\"}", "'normalizers'"},
    {"pre_tokenizer", "{\"type\":\"BertPreTokenizer\"}", "the pre_tokenizer 'BertPreTokenizer'"},
    {"pre_tokenizer", SPLIT("{\"Regex\":\"\\\\h\"}"), "not supported at '\\h'"},
    {"pre_tokenizer", SPLIT("\"a\""), "'pattern'"},
    {"pre_tokenizer", "{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"X\"}", "'behavior'"},
    {"pre_tokenizer", "{\"type\":\"Metaspace\",\"replacement\":\"\"}", "'replacement'"},
    {"pre_tokenizer", "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"x\"}",
     "'prepend_scheme'"},
    {"pre_tokenizer", SEQUENCE("pretokenizers", "{\"type\":\"Digits\"},7"), "'type'"},
    {"decoder", "{\"type\":\"WordPiece\"}", "the decoder 'WordPiece'"},
    {"decoder", "{\"type\":\"Strip\",\"content\":\" \",\"start\":0,\"stop\":1}", "'stop'"},
    {"decoder", "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a\"},\"content\":\"\"}", "Replace"},
    {"decoder", SEQUENCE("decoders", "{\"type\":\"Fuse\"},{\"type\":\"ByteFallback\"}"), "before Fuse"},
    {"post_processor", "{\"type\":\"BertProcessing\"}", "the post_processor 'BertProcessing'"},
    {"post_processor", "{\"type\":\"TemplateProcessing\",\"single\":[]}", "leaves the text out"},
    {"post_processor",
     "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"q\"}},{\"Sequence\":{}}]}",
     "does not define"},
    {"added_tokens", "[{\"id\":0,\"content\":\"\"}]", "is empty"},
    {"added_tokens", "[{\"id\":-1,\"content\":\"x\"}]", "'id'"},
    {"added_tokens", "[{\"id\":2097151,\"content\":\"x\"}]", "ids are missing"},
    {"added_tokens", "[{\"id\":2097152,\"content\":\"x\"}]", "'id'"},
    {"added_tokens", "[{\"id\":1,\"content\":\"<unk>\"}]", "two ids"},
    {"added_tokens", "[{\"id\":1,\"content\":\"<other>\"}]", "belongs to two pieces"},
    {"added_tokens", "[{\"content\":\"x\"}]", "'id'"},
    {"added_tokens", "[{\"id\":0}]", "'content'"},
    {"added_tokens", "[7]", "'id'"},
};

static char *changed(const Change *c) {
    char *bytes;
    size_t n;
    read_fixture(FIXTURE, &bytes, &n);
    json_t *root = json_loadb(bytes, n, 0, NULL), *value = json_loads(c->value, JSON_DECODE_ANY, NULL);
    bool in_model = strncmp(c->key, "model.", 6) == 0;
    if (strcmp(c->key, "model.vocab") == 0) json_object_del(root, "added_tokens");
    if (!value) fail_msg("the test's own JSON is wrong: %s", c->value);
    json_object_set_new(in_model ? json_object_get(root, "model") : root, in_model ? c->key + 6 : c->key,
                        value);
    char *out = json_dumps(root, 0);
    json_decref(root);
    mem_free(bytes);
    return out;
}

static void changes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES; i++) {
        char *text = changed(&CHANGES[i]), what[256];
        snprintf(what, sizeof what, "%s = %s", CHANGES[i].key, CHANGES[i].value);
        expect_refusal(text, strlen(text), what, CHANGES[i].want);
        free(text);
    }
}

static void no_json(void **state) {
    (void)state;
    size_t deep = 100000;
    char *brackets = mem_new(deep, 1);
    memset(brackets, '[', deep);
    expect_refusal(brackets, deep, "100,000 brackets", "depth");
    mem_free(brackets);
    expect_refusal("", 0, "nothing", "");
    expect_refusal("[]", 2, "a list", "object");
    expect_refusal("{\"a\":\"\xff\"}", 9, "no UTF-8", "0xff");
    expect_refusal("{\"a\":1,\"a\":2}", 13, "a key twice", "duplicate");
}

// --- strange but right ---------------------------------------------------------------------------------

// Pieces that look like bytes but are none; a hole among the ids; an added token after the vocabulary.
static void odd_but_right(void **state) {
    (void)state;
    static const char text[] =
        "{\"added_tokens\":[{\"id\":40,\"content\":\"<far>\",\"special\":false}],"
        "\"decoder\":{\"type\":\"ByteFallback\"},"
        "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"merges\":[],\"vocab\":{"
        "\"<0x-1>\":0,\"<0x+5>\":1,\"<0x 5>\":2,\"<0x5\":3,\"<0x41>\":4,\"<0xZZ>\":5,\"a\":9}}}";
    Error e = {0};
    Tokenizer *t = tokenizer_parse(text, strlen(text), "FILE", &e);
    IdList ids = {0};
    Text out = {0};
    const int all[] = {0, 1, 2, 3, 4, 5, 6, 9, 40, 41, -1};
    if (!t) fail_msg("%s", e.text);
    assert_true(tokenizer_decode(t, all, sizeof all / sizeof *all, false, &out, &e));
    assert_string_equal(text_get(&out), "<0x-1><0x+5><0x 5><0x5A<0xZZ>a<far>");
    assert_true(tokenizer_encode(t, "aA<far>\xff", 8, true, &ids, &e));
    assert_int_equal(ids.count, 3); // a, the byte of A, the token; U+FFFD has no piece and no bytes
    assert_int_equal(ids.ids[1], 4);
    assert_int_equal(ids.ids[2], 40);
    assert_int_equal(tokenizer_size(t), 41);
    assert_int_equal(tokenizer_base_size(t), 10);
    ids_release(&ids);
    text_release(&out);
    tokenizer_close(t);
}

static void endless_pattern(void **state) {
    (void)state;
    const Change c = {"pre_tokenizer", SPLIT("{\"Regex\":\"(a+)+[bd]\"}"), ""};
    char *text = changed(&c);
    Error e = {0};
    IdList ids = {0};
    Tokenizer *t = tokenizer_parse(text, strlen(text), "FILE", &e);
    assert_non_null(t);
    assert_false(tokenizer_encode(t, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", 41, true, &ids, &e));
    assert_int_equal(error_exit_code(&e), 2);
    assert_non_null(strstr(e.text, "takes too long"));
    ids_release(&ids);
    tokenizer_close(t);
    free(text);
}

// --- spoiled bytes -------------------------------------------------------------------------------------

// Opens, and where that works encodes and decodes.
static void use(const char *bytes, size_t n, bool model) {
    Error e = {0};
    IdList ids = {0};
    Text text = {0};
    Tokenizer *t = (model ? tokenizer_parse_model : tokenizer_parse)(bytes, n, "FILE", &e);
    if (!t) assert_int_equal(error_exit_code(&e), 2);
    else if (tokenizer_encode(t, "Hello  w\xc3\xb6rld\n<s>12", 18, true, &ids, &e))
        assert_true(tokenizer_decode(t, ids.ids, ids.count, false, &text, &e));
    ids_release(&ids);
    text_release(&text);
    tokenizer_close(t);
}

static void spoiled(const char *path, bool model, int times) {
    Random r = test_random(8);
    char *bytes;
    size_t n;
    read_fixture(path, &bytes, &n);
    for (int i = 0; i < times; i++) {
        char *copy = mem_text(bytes, n);
        for (int k = test_between(&r, 1, 3); k > 0; k--)
            copy[random_below(&r, (uint32_t)(test_between(&r, 0, 1) ? n : 400))] =
                (char)test_between(&r, 0, 255);
        use(copy, n, model);
        mem_free(copy);
        use(bytes, random_below(&r, (uint32_t)n), model);
    }
    mem_free(bytes);
}

static void spoiled_json(void **state) {
    (void)state;
    spoiled(FIXTURE, false, 200);
}

static void spoiled_model(void **state) {
    (void)state;
    spoiled(MODEL, true, 1500);
}

// --- models that are refused ---------------------------------------------------------------------------

typedef struct {
    const char *bytes;
    size_t n;
    const char *want;
} ModelRow;

#define BYTES(text) text, sizeof text - 1

static const ModelRow MODELS[] = {
    {BYTES(""), "no pieces"},
    {BYTES("\x0a"), "not a whole sentencepiece model"},
    {BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
     "not a whole sentencepiece model"}, // longer than the file
    {BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "not a whole sentencepiece model"},
    {BYTES("\x00\x00"), "not a whole sentencepiece model"}, // field 0
    {BYTES("\x0b\x0c"), "not a whole sentencepiece model"}, // a group
    {BYTES("\x0a\x03\x0a\x01"
           "a"),
     "is unigram"}, // what no type means
    {BYTES("\x0a\x03\x0a\x01"
           "a\x12\x02\x18\x03"),
     "is word"},
    {BYTES("\x0a\x03\x0a\x01"
           "a\x12\x02\x18\x09"),
     "unknown kind"},
    {BYTES("\x0a\x02\x0a\x00\x12\x02\x18\x02"), "piece 0"},     // empty
    {BYTES("\x0a\x03\x0a\x01\xff\x12\x02\x18\x02"), "piece 0"}, // no UTF-8
    {BYTES("\x0a\x03\x0a\x01\x00\x12\x02\x18\x02"), "piece 0"}, // NUL
    {BYTES("\x0a\x05\x0a\x01"
           "a\x18\x05\x12\x02\x18\x02"),
     "type 5"},
    {BYTES("\x0a\x08\x0a\x01"
           "a\x15\x00\x00\xc0\x7f\x12\x02\x18\x02"),
     "no score"}, // a NaN
    {BYTES("\x0a\x03\x0a\x01"
           "a\x0a\x03\x0a\x01"
           "a\x12\x02\x18\x02"),
     "two ids"},
    {BYTES("\x0a\x03\x0a\x01"
           "a\x12\x02\x18\x02\x1a\x09\x0a\x04nfkc\x12\x01x"),
     "the normalizer 'nfkc'"},
    {BYTES("\x0a\x03\x0a\x01"
           "a\x12\x02\x18\x02\x1a\x02\x28\x00"),
     "not supported"}, // spaces as they are
    {BYTES("\x0a\x03\x0a\x01"
           "a\x12\x05\x18\x02\xc0\x01\x01"),
     "not supported"}, // spaces after words
};

static void models(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
        Error e = {0};
        Tokenizer *t = tokenizer_parse_model(MODELS[i].bytes, MODELS[i].n, "FILE", &e);
        if (t) fail_msg("model %zu: not refused", i);
        assert_int_equal(error_exit_code(&e), 2);
        if (!strstr(e.text, MODELS[i].want) || !strstr(e.text, "FILE"))
            fail_msg("model %zu: wanted '%s', got '%s'", i, MODELS[i].want, e.text);
    }
    use(BYTES("\x0a\x03\x0a\x01"
              "a\x12\x02\x18\x02"),
        true); // a good one
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes),         cmocka_unit_test(no_json),      cmocka_unit_test(odd_but_right),
        cmocka_unit_test(endless_pattern), cmocka_unit_test(spoiled_json), cmocka_unit_test(spoiled_model),
        cmocka_unit_test(models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
