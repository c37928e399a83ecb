// A tokenizer.json of the Llama 2 kind with made-up pieces:
//
//      0 <unk>  1 <s>  2 </s>  3.. <0x00> to <0xFF>  then "▁", the printable ASCII characters, and syllables
//
// A syllable is a shorter piece and one letter more, consonants and vowels in turn, shortest first: so each
// has exactly one merge, its rank is its order, and decoded text can be read aloud.
#include "engine/model/synth.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_LETTER = 259, PIECE = 64 };

static const char SPACE[] = "\xe2\x96\x81"; // ▁
static const char VOWELS[] = "aeiou", CONSONANTS[] = "bdfgklmnprst";

static const char HEAD[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":["
    "{\"id\":0,\"content\":\"<unk>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":"
    "false,"
    "\"special\":true},"
    "{\"id\":1,\"content\":\"<s>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":"
    "false,"
    "\"special\":true},"
    "{\"id\":2,\"content\":\"</"
    "s>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
    "\"special\":true}],"
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"
    "\"\xe2\x96\x81\"},"
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]},"
    "\"pre_tokenizer\":null,"
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\","
    "\"type_id\":0}},"
    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}}"
    ","
    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":1}},"
    "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[1],"
    "\"tokens\":[\"<s>\"]}}},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"
    "\"\xe2\x96\x81\"},"
    "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" "
    "\","
    "\"start\":1,\"stop\":0}]},"
    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":\"<unk>\",\"continuing_subword_prefix\":null,"
    "\"end_of_word_suffix\":null,\"fuse_unk\":true,\"byte_fallback\":true,\"ignore_merges\":false,\"vocab\":"
    "{";

static void add_piece(Text *t, const char *piece, int id) {
    json_t *s = json_string(piece);
    char *quoted = json_text(s, JSON_ENCODE_ANY);
    if (quoted) text_printf(t, "%s%s:%d", id ? "," : "", quoted, id);
    else t->failed = true;
    mem_free(quoted);
    json_decref(s);
}

static void add_fixed(Text *t, int vocab) {
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    char piece[16];
    for (int i = 0; i < 3; i++) add_piece(t, special[i], i);
    for (int i = 0; i < 256; i++) {
        snprintf(piece, sizeof piece, "<0x%02X>", (unsigned)i);
        add_piece(t, piece, 3 + i);
    }
    if (vocab > FIRST_LETTER) add_piece(t, SPACE, FIRST_LETTER);
    for (int c = 33, id = FIRST_LETTER + 1; c < 127 && id < vocab; c++, id++) {
        snprintf(piece, sizeof piece, "%c", c);
        add_piece(t, piece, id);
    }
}

// The letters that may follow a piece.
static const char *next_letters(const char *piece) {
    char last = piece[strlen(piece) - 1];
    return strchr(VOWELS, last) || (unsigned char)last >= 0x80 ? CONSONANTS : VOWELS;
}

static void extend(char piece[PIECE], const char head[PIECE], char letter) {
    size_t n = strnlen(head, PIECE - 2);
    memcpy(piece, head, n);
    piece[n] = letter;
    piece[n + 1] = 0;
}

// Breadth first: pieces[head] and each letter that may follow it. `merges` gets one line per piece.
static void add_syllables(Text *vocab_text, Text *merges, char (*pieces)[PIECE], int first, int vocab) {
    int count = 0, id = first;
    snprintf(pieces[count++], PIECE, "%s", SPACE);
    for (const char *c = CONSONANTS; *c; c++) snprintf(pieces[count++], PIECE, "%c", *c);
    for (int head = 0; id < vocab; head++)
        for (const char *c = next_letters(pieces[head]); *c && id < vocab; c++, id++, count++) {
            extend(pieces[count], pieces[head], *c);
            add_piece(vocab_text, pieces[count], id);
            text_printf(merges, "%s\"%s %c\"", id == first ? "" : ",", pieces[head], *c);
        }
}

char *synth_tokenizer(int vocab, Error *e) {
    enum { FIRST_SYLLABLE = FIRST_LETTER + 1 + 94 };
    Text t = {0}, merges = {0};
    char(*pieces)[PIECE] = mem_alloc((size_t)vocab + 64, PIECE), *out = NULL;
    text_puts(&t, HEAD);
    add_fixed(&t, vocab);
    if (pieces) add_syllables(&t, &merges, pieces, FIRST_SYLLABLE, vocab);
    text_printf(&t, "},\"merges\":[%s]}}\n", text_get(&merges));
    if (pieces && !t.failed && !merges.failed) out = mem_text(t.data, t.length);
    if (!out) error_system(e, "out of memory for a tokenizer of %d pieces", vocab);
    mem_free(pieces);
    text_release(&t);
    text_release(&merges);
    return out;
}
