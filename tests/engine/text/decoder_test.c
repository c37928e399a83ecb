// Decoders that no family of the fixtures has, or has in another order: pieces in, text out.
#include "tests/support/check.h"

#include "engine/text/tokenizer.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *decoder; // JSON, with ' for "
    const char *want;    // of the pieces below, in order
} Row;

// a "__b" "_" "<0x41>" "<0xC3>" "<0xA9>" "_c" "<0xC3>" "Ġ" "é"; "é" is the letter of the byte E9
static const char PIECES[] =
    "'a':0,'__b':1,'_':2,'<0x41>':3,'<0xC3>':4,'<0xA9>':5,'_c':6,'<0xc3>':7,'\xc4\xa0':8,'\xc3\xa9':9";
enum { PIECE_COUNT = 10 };

static const Row ROWS[] = {
    {"null", "a __b _ <0x41> <0xC3> <0xA9> _c <0xc3> \xc4\xa0 \xc3\xa9"},
    {"{'type':'Fuse'}", "a__b_<0x41><0xC3><0xA9>_c<0xc3>\xc4\xa0\xc3\xa9"},
    {"{'type':'ByteFallback'}", "a__b_A\xc3\xa9_c\xef\xbf\xbd\xc4\xa0\xc3\xa9"},
    {"{'type':'Strip','content':'_','start':1,'stop':0}",
     "a_b<0x41><0xC3><0xA9>c<0xc3>\xc4\xa0\xc3\xa9"}, // of each token
    {"{'type':'Sequence','decoders':[{'type':'Replace','pattern':{'String':'a'},'content':'__'},{'type':'"
     "Fuse'},"
     "{'type':'Strip','content':'_','start':3}]}",
     "_b_<0x41><0xC3><0xA9>_c<0xc3>\xc4\xa0\xc3\xa9"}, // of the text
    {"{'type':'Metaspace','replacement':'_','prepend_scheme':'always'}",
     "a  b <0x41><0xC3><0xA9> c<0xc3>\xc4\xa0\xc3\xa9"},
    {"{'type':'ByteLevel'}", "a__b_<0x41><0xC3><0xA9>_c<0xc3> \xef\xbf\xbd"},
    {"{'type':'Sequence','decoders':[{'type':'Sequence','decoders':[{'type':'Fuse'}]},{'type':'Fuse'}]}",
     "a__b_<0x41><0xC3><0xA9>_c<0xc3>\xc4\xa0\xc3\xa9"},
};

static Tokenizer *open_with(const char *decoder) {
    char text[1024];
    Error e = {0};
    snprintf(text, sizeof text, "{'decoder':%s,'model':{'vocab':{%s},'merges':[]}}", decoder, PIECES);
    for (char *p = text; *p; p++)
        if (*p == '\'') *p = '"';
    Tokenizer *t = tokenizer_parse(text, strlen(text), "test", &e);
    if (!t) fail_msg("%s", e.text);
    return t;
}

static void rows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Tokenizer *t = open_with(ROWS[i].decoder);
        Text got = {0};
        int ids[PIECE_COUNT];
        for (int k = 0; k < PIECE_COUNT; k++) ids[k] = k;
        assert_true(tokenizer_decode(t, ids, PIECE_COUNT, false, &got, NULL));
        if (strcmp(text_get(&got), ROWS[i].want) != 0)
            fail_msg("%s: wanted '%s', got '%s'", ROWS[i].decoder, ROWS[i].want, text_get(&got));
        text_release(&got);
        tokenizer_close(t);
    }
}

// The first token of all loses its marks, however many.
static void first_marks(void **state) {
    (void)state;
    Tokenizer *t = open_with("{'type':'Metaspace','replacement':'_','prepend_scheme':'first'}");
    Text got = {0};
    assert_true(tokenizer_decode(t, (int[]){1, 1}, 2, false, &got, NULL));
    assert_string_equal(text_get(&got), "b  b");
    text_release(&got);
    tokenizer_close(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(first_marks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
