// Every allocation of opening, encoding and decoding fails once: an error, nothing lost.
#include "tests/support/check.h"

#include "engine/text/tokenizer.h"
#include "tests/support/fault.h"

#include <jansson.h>
#include <string.h>

// jansson tells a lack of memory in the midst of a text from a text that is wrong in some places only: its
// own allocations do not fail here.
void *__real_malloc(size_t size);
void __real_free(void *p);

static bool use(Tokenizer *t, Error *e) {
    static const char text[] = "He\xcc\x81llo <s>norm  w\xc3\xb6rld 12\n\xf0\x9f\x98\x80";
    IdList ids = {0};
    Text out = {0};
    bool ok = t && tokenizer_encode(t, text, strlen(text), true, &ids, e) &&
              tokenizer_decode(t, ids.ids, ids.count, false, &out, e);
    ids_release(&ids);
    text_release(&out);
    tokenizer_close(t);
    return ok;
}

// Small files with every part that allocates.
static const char JSON[] =
    "{\"added_tokens\":[{\"id\":4,\"content\":\"<s>\"},{\"id\":5,\"content\":\"norm\",\"normalized\":true}],"
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"Prepend\","
    "\"prepend\":\" \"},"
    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"  +\"},\"content\":\" \"},{\"type\":\"Strip\"}]},"
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"},"
    "{\"type\":\"Metaspace\",\"replacement\":\"_\"},{\"type\":\"ByteLevel\"}]},"
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},{"
    "\"Sequence\":{}}],"
    "\"special_tokens\":{\"<s>\":{\"ids\":[4]}}},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"_\"},"
    "\"content\":\" \"},"
    "{\"type\":\"ByteLevel\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1}]},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"l\":0,\"o\":1,\"ll\":2,\"llo\":3},\"merges\":[\"l "
    "l\",[\"ll\",\"o\"]]}}";

static bool run_json(void *state, Error *e) {
    (void)state;
    return use(tokenizer_parse(JSON, strlen(JSON), "FILE", e), e);
}

// l, o, ll, a user-defined <s>, two bytes; BPE.
static const char MODEL[] =
    "\x0a\x03\x0a\x01l\x0a\x03\x0a\x01o\x0a\x04\x0a\x02ll\x0a\x07\x0a\x03<s>\x18\x04"
    "\x0a\x0a\x0a\x06<0xCC>\x18\x06\x0a\x0a\x0a\x06<0x81>\x18\x06\x12\x05\x18\x02\x98\x02\x01";

static bool run_model(void *state, Error *e) {
    (void)state;
    return use(tokenizer_parse_model(MODEL, sizeof MODEL - 1, "FILE", e), e);
}

static void allocations(void **state) {
    (void)state;
    json_set_alloc_funcs(__real_malloc, __real_free);
    assert_true(fault_each(FAULT_ALLOCATION, run_json, NULL, NULL) > 50);
    assert_true(fault_each(FAULT_ALLOCATION, run_model, NULL, NULL) > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
