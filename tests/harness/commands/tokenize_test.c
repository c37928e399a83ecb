// outpace tokenizer encode, the real program: there and back, templates, and refusals.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/text/template.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define FIXTURES "tests/fixtures/tokenizers/"

static const char *program(void) {
    const char *s = getenv("OUTPACE");
    return s ? s : "./outpace";
}

// Runs tokenizer encode with up to four arguments, or decode where the second is --ids; for child_release.
static Child tokenize(int code, const char *input, const char *a, const char *b, const char *c,
                      const char *d) {
    Child child = {0};
    bool decode = b && strcmp(b, "--ids") == 0;
    const char *argv[] = {
        program(),         "tokenizer", decode ? "decode" : "encode", a, decode ? c : b, decode ? d : c,
        decode ? NULL : d, NULL};
    child_run(&child, NULL, input, argv);
    if (child.code != code)
        fail_msg("wanted exit code %d, got %d: %s", code, child.code, text_get(&child.err));
    return child;
}

static void expect_output(const char *want, Child child) {
    assert_string_equal(text_get(&child.out), want);
    child_release(&child);
}

static void expect_error(const char *want, Child child) {
    if (!strstr(text_get(&child.err), want)) fail_msg("wanted '%s', got '%s'", want, text_get(&child.err));
    assert_int_equal(child.out.length, 0);
    const char *line = strchr(text_get(&child.err), '\n');
    assert_true(line && !line[1]);
    child_release(&child);
}

// The ids that it prints come back as the text.
static void there_and_back(void **state) {
    (void)state;
    static const char *const families[] = {FIXTURES "llama2", FIXTURES "llama3", FIXTURES "sp_llama"};
    for (int i = 0; i < 3; i++) {
        char ids[1024] = "";
        Child c = tokenize(0,
                           "d\xc3\xa9"
                           "f f(x):\n\treturn 1\n",
                           families[i], "-", "--json", NULL);
        json_t *all = json_loads(text_get(&c.out), 0, NULL);
        const json_t *list = json_object_get(all, "ids");
        assert_true(json_array_size(list) > 5);
        assert_int_equal(json_array_size(json_object_get(all, "pieces")), json_array_size(list));
        assert_string_equal(json_string_value(json_object_get(all, "text")), "d\xc3\xa9"
                                                                             "f f(x):\n\treturn 1\n");
        for (size_t k = 0; k < json_array_size(list); k++)
            snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s%d", k ? "," : "",
                     (int)json_integer_value(json_array_get(list, k)));
        Child back = tokenize(0, NULL, families[i], "--ids", ids, "--json");
        assert_string_equal(text_get(&back.out), text_get(&c.out));
        child_release(&back);
        child_release(&c);
        json_decref(all);
    }
}

static void lines(void **state) {
    (void)state;
    expect_output("tokens  3\nids     1,1,2\npieces  \"<s>\" \"<s>\" \"</s>\"\ntext    \"\"\n",
                  tokenize(0, NULL, FIXTURES "llama2", "--ids", "1,1,2", NULL));
    expect_output("tokens  0\nids     \npieces \ntext    \"\"\n",
                  tokenize(0, "", FIXTURES "llama2", "-", "--no-special", NULL));
    // A text that contains BOS itself has one.
    expect_output("tokens  2\nids     1,2\npieces  \"<s>\" \"</s>\"\ntext    \"\"\n",
                  tokenize(0, NULL, FIXTURES "llama2", "<s></s>", NULL, NULL));
    expect_output("tokens  1\nids     1\npieces  \"<s>\"\ntext    \"\"\n",
                  tokenize(0, NULL, FIXTURES "llama2", "<s>", NULL, NULL));
}

// A template's BOS is one, whoever writes it.
static void templates(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"--template=llama-2", "[INST] hi [/INST]"},
                                          {"--template=mistral", "[INST] hi [/INST]"},
                                          {"--template=none", "hi"},
                                          {"--template=codellama", "[INST] hi [/INST]"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Child c = tokenize(0, NULL, FIXTURES "llama2", "hi", rows[i][0], "--json");
        json_t *all = json_loads(text_get(&c.out), 0, NULL);
        const json_t *ids = json_object_get(all, "ids");
        assert_int_equal(json_integer_value(json_array_get(ids, 0)), 1);
        assert_int_not_equal(json_integer_value(json_array_get(ids, 1)), 1);
        assert_string_equal(json_string_value(json_object_get(all, "text")), rows[i][1]);
        json_decref(all);
        child_release(&c);
    }
}

// SmolLM2's, as tests/oracle/tokenizers.py has it.
#define SMOLLM_2                                                                                                   \
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n" \
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"              \
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"           \
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

// A model of the files; `want`: the template that --template model is then, or the error.
static void expect_own(const char *model, const char *want) {
    bool fails = strchr(want, ' ');
    Child own = tokenize(fails ? 2 : 0, NULL, model, "hi", "--template", "model");
    if (fails) expect_error(want, own);
    else {
        Child named = tokenize(0, NULL, model, "hi", "--template", want);
        expect_output(text_get(&named.out), own);
        child_release(&named);
    }
}

static json_t *text_and(const char *key, json_t *value) {
    return json_pack("{s:{s:s}, s:o*}", "eos_token", "content", "</s>", key, value);
}

static void own_template(void **state) {
    char *folder = *state, *text;
    size_t n;
    const char *dir = folder_path(folder, "m");
    scratch_copy(FIXTURES "llama2", dir);
    expect_own(dir,
               "the model's files have no chat template: give the name of one that fits it, of none, vicuna");
    json_t *config = text_and("chat_template", json_string(SMOLLM_2));
    scratch_write_json(dir, "tokenizer_config.json", config);
    json_decref(config);
    expect_own(dir, "smollm-2");
    config = text_and("chat_template", json_pack("[{s:s, s:s}, {s:s, s:s}]", "name", "tool_use", "template",
                                                 "x", "name", "default", "template", SMOLLM_2));
    scratch_write_json(dir, "tokenizer_config.json", config);
    json_decref(config);
    expect_own(dir, "smollm-2");
    scratch_write(dir, "chat_template.jinja", "{{ 1 }}", 7); // goes before the other
    expect_own(dir, "the model's files have a chat template that isn't known: give the name");
    scratch_write(dir, "chat_template.jinja", SMOLLM_2 "\n", sizeof SMOLLM_2);
    expect_own(dir, "smollm-2");
    // The same in a GGUF file without tensors: one value more, written before the others.
    static const char KEY[] = "\27\0\0\0\0\0\0\0tokenizer.chat_template\10\0\0\0";
    enum { HEAD = 24, COUNT = 16 };
    const uint64_t length = sizeof SMOLLM_2 - 1;
    Text gguf = {0};
    text = scratch_read("tests/fixtures/gguf", "tokenizer-starcoder2.gguf", &n);
    text[COUNT]++;
    text_add(&gguf, text, HEAD);
    text_add(&gguf, KEY, sizeof KEY - 1);
    text_add(&gguf, (const char *)&length, sizeof length);
    text_add(&gguf, SMOLLM_2, (size_t)length);
    text_add(&gguf, text + HEAD, n - HEAD);
    scratch_write(folder, "m.gguf", text_get(&gguf), gguf.length);
    expect_own(folder_path(folder, "m.gguf"), "smollm-2");
    text_release(&gguf);
    mem_free(text);
}

// --help lists every template that there is.
static void help_lists_them(void **state) {
    (void)state;
    size_t count;
    const Template *table = template_table(&count);
    Child c = tokenize(0, NULL, "--help", NULL, NULL, NULL);
    for (size_t i = 0; i < count; i++) {
        Text name = {0};
        text_printf(&name, "%s%s", table[i].name, i + 1 < count ? "," : ".");
        if (!strstr(text_get(&c.out), text_get(&name)))
            fail_msg("wanted '%s' in the help, got '%s'", text_get(&name), text_get(&c.out));
        text_release(&name);
    }
    child_release(&c);
}

static void refused(void **state) {
    (void)state;
    expect_error("there is no model '/nowhere'", tokenize(2, NULL, "/nowhere", "x", NULL, NULL));
    expect_error("'/tmp' has neither tokenizer.json", tokenize(2, NULL, "/tmp", "x", NULL, NULL));
    expect_error("there is no template 'lama-2', did you mean 'llama-2'",
                 tokenize(2, NULL, FIXTURES "llama2", "x", "--template", "lama-2"));
    expect_error("--system needs a --template", tokenize(2, NULL, FIXTURES "llama2", "x", "--system", "y"));
    expect_error("the tokenizer ends at", tokenize(2, NULL, FIXTURES "llama2", "--ids", "1,99999", NULL));
    expect_error("one text only", tokenize(2, NULL, FIXTURES "llama2", "x", "-f", "y"));
    expect_error("usage: outpace tokenizer encode", tokenize(2, NULL, NULL, NULL, NULL, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(lines),
        cmocka_unit_test(templates),
        cmocka_unit_test_setup_teardown(own_template, folder_setup, folder_teardown),
        cmocka_unit_test(help_lists_them),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
