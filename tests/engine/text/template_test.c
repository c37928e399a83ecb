// Prompts byte for byte as the published chat templates render them; tests/oracle/tokenizers.py made the
// fixture.
#include "tests/support/check.h"

#include "engine/base/json.h"
#include "engine/text/template.h"

#include <string.h>

enum { TURNS_MAX = 8 };

static const char *text_at(const json_t *list, size_t i) {
    return json_string_value(json_array_get(list, i));
}

static void check(const json_t *row) {
    const json_t *texts = json_object_get(row, "texts");
    const char *name = json_string_value(json_object_get(row, "template"));
    const char *want = json_string_value(json_object_get(row, "prompt"));
    Turn turns[TURNS_MAX];
    Error e = {0};
    Text got = {0};
    size_t count = (json_array_size(texts) + 1) / 2;
    for (size_t i = 0; i < count; i++) turns[i] = (Turn){text_at(texts, 2 * i), text_at(texts, 2 * i + 1)};
    const Template *t = template_find(name, &e);
    assert_non_null(t);
    if (!template_render(t, json_string_value(json_object_get(row, "system")), turns, count, &got, &e))
        fail_msg("%s: %s", name, e.text);
    if (strcmp(text_get(&got), want) != 0)
        fail_msg("%s of '%s': wanted '%s', got '%s'", name, turns[0].user, want, text_get(&got));
    text_release(&got);
}

static void as_published(void **state) {
    (void)state;
    Error e = {0};
    json_t *rows = json_from_file("tests/fixtures/tokenizers/templates.json", 1 << 20, &e);
    if (!rows) fail_msg("%s", e.text);
    assert_true(json_array_size(rows) > 240);
    for (size_t i = 0; i < json_array_size(rows); i++) check(json_array_get(rows, i));
    json_decref(rows);
}

static void found_by_name(void **state) {
    (void)state;
    size_t count;
    Error e = {0};
    const Template *table = template_table(&count);
    for (size_t i = 0; i < count; i++) assert_ptr_equal(template_find(table[i].name, &e), &table[i]);
    assert_null(template_find("vicunia", &e));
    assert_non_null(strstr(e.text, "did you mean 'vicuna'"));
    assert_null(template_find("", &e));
    assert_int_equal(error_exit_code(&e), 2);
}

static void no_place_for_a_system_text(void **state) {
    (void)state;
    Error e = {0};
    Text out = {0};
    assert_false(template_render(template_find("none", &e), "Be brief.", &(Turn){.user = "x"}, 1, &out, &e));
    assert_string_equal(e.text, "the template 'none' has no place for a system text");
    text_release(&out);
}

// Two published texts, as tests/oracle/tokenizers.py has them.
#define SMOLLM_2                                                                                                   \
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n" \
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"              \
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"           \
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
#define ZEPHYR                                                                                           \
    "{% for message in messages %}\n{% if message['role'] == 'user' %}\n"                                \
    "{{ '<|user|>\n' + message['content'] + eos_token }}\n{% elif message['role'] == 'system' %}\n"      \
    "{{ '<|system|>\n' + message['content'] + eos_token }}\n{% elif message['role'] == 'assistant' %}\n" \
    "{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n"                           \
    "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}"

// By its whole text, and by the tokens that the text names.
static void recognised(void **state) {
    static const struct {
        const char *text, *bos, *eos, *want;
    } rows[] = {{SMOLLM_2, NULL, NULL, "smollm-2"},
                {SMOLLM_2 "\n", "<s>", "</s>", "smollm-2"},
                {SMOLLM_2 " ", NULL, NULL, NULL},
                {ZEPHYR, "<s>", "</s>", "zephyr"},
                {ZEPHYR, NULL, "<|endoftext|>", "stablelm-zephyr"},
                {ZEPHYR, "<s>", "<eos>", NULL},
                {ZEPHYR, "<s>", NULL, NULL},
                {"", NULL, NULL, NULL},
                {"\n", NULL, NULL, NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Template *t = template_recognise(rows[i].text, strlen(rows[i].text), rows[i].bos, rows[i].eos);
        const char *got = t ? t->name : "none", *want = rows[i].want ? rows[i].want : "none";
        if (strcmp(got, want) != 0)
            fail_msg("'%.40s...' with eos '%s': wanted %s, got %s", rows[i].text,
                     rows[i].eos ? rows[i].eos : "", want, got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_published),
        cmocka_unit_test(found_by_name),
        cmocka_unit_test(no_place_for_a_system_text),
        cmocka_unit_test(recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
