// Prompts of later turns against texts written out.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/model/make/synth.h"
#include "harness/inputs/prompts.h"

#include <string.h>

static Tokenizer *tokenizer_of_ours(void) {
    Error e = {0};
    char *json = synth_tokenizer(400);
    Tokenizer *t = json ? tokenizer_parse(json, strlen(json), "t.json", &e) : NULL;
    if (!t) fail_msg("%s", e.text);
    mem_free(json);
    return t;
}

static void same_ids(const Tokenizer *t, const char *want, bool special, const IdList *got) {
    IdList ids = {0};
    assert_true(tokenizer_encode(t, want, strlen(want), special, &ids, NULL));
    assert_int_equal(ids.count, got->count);
    assert_memory_equal(ids.ids, got->ids, ids.count * sizeof *ids.ids);
    ids_release(&ids);
}

// Two turns; the reply is `reply`, as ids.
static void talk(const Tokenizer *t, const Template *template, const char *reply, IdList *first,
                 IdList *second) {
    Conversation c;
    IdList ids = {0};
    assert_true(tokenizer_encode(t, reply, strlen(reply), false, &ids, NULL));
    conversation_begin(&c, t, template);
    assert_true(conversation_ask(&c, "one question", first, NULL));
    assert_true(conversation_reply(&c, ids.ids, (int)ids.count, NULL));
    assert_true(conversation_ask(&c, "and another", second, NULL));
    conversation_release(&c);
    ids_release(&ids);
}

static void plain(void **state) {
    (void)state;
    Tokenizer *t = tokenizer_of_ours();
    IdList first = {0}, second = {0};
    talk(t, NULL, " a reply.", &first, &second);
    same_ids(t, "one question", true, &first);
    same_ids(t, "one question a reply.\n\nand another", true, &second);
    ids_release(&first);
    ids_release(&second);
    tokenizer_close(t);
}

static void in_every_template(void **state) {
    (void)state;
    Tokenizer *t = tokenizer_of_ours();
    size_t count;
    const Template *table = template_table(&count);
    for (size_t i = 0; i < count; i++) {
        IdList first = {0}, second = {0};
        Text text = {0};
        Turn turns[] = {{"one question", "its reply."}, {"and another", NULL}};
        talk(t, &table[i], "its reply.", &first, &second);
        assert_true(template_render(&table[i], NULL, turns, 2, &text, NULL));
        same_ids(t, text_get(&text), !table[i].begin, &second);
        text_release(&text);
        ids_release(&first);
        ids_release(&second);
    }
    tokenizer_close(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plain), cmocka_unit_test(in_every_template)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
