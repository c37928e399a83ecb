// BPE against the slow obvious one, on random vocabularies and words.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/text/bpe.h"
#include "engine/text/utf8.h"

#include <stdio.h>
#include <string.h>

enum { PIECES_MAX = 120, MERGES_MAX = 80, WORD_MAX = 60 };

static const char *const LETTERS[] = {"a", "b",           "c", "\xc3\xa9", "\xe2\x96\x81", "\xf0\x9f\x98\x80",
                                      "x", "\xe4\xb8\xad"};
enum { KNOWN = 5, LETTER_COUNT = 8 }; // the last three are in no vocabulary

typedef struct {
    int left, right, id;
} SlowMerge;

// What a random vocabulary was made of, beside the Bpe that it fills.
typedef struct {
    Bpe b;
    int size;
    SlowMerge merges[MERGES_MAX]; // by rank
    int merge_count;
} Case;

static int add_piece(Case *c, const char *text, size_t n) {
    int id = vocab_find(&c->b.vocab, text, n);
    if (id >= 0) return id;
    assert_true(vocab_add(&c->b.vocab, text, n, c->size, "test", NULL));
    return c->size++;
}

static void add_merge(Case *c, int left, int right) {
    char text[512];
    Piece l = c->b.vocab.pieces[left], r = c->b.vocab.pieces[right];
    size_t n = l.length + r.length;
    if (n > sizeof text || c->size == PIECES_MAX - 1) return;
    memcpy(text, l.text, l.length);
    memcpy(text + l.length, r.text, r.length);
    int id = add_piece(c, text, n);
    assert_true(bpe_add_merge(&c->b, l.text, l.length, r.text, r.length, "test", NULL));
    c->merges[c->merge_count++] = (SlowMerge){left, right, id};
}

// Some bytes, the letters, an unknown piece; merges of whatever is there, among them now and then bytes and
// the unknown piece, and pairs that come twice.
static void random_case(Case *c, Random *r) {
    char byte[8];
    *c = (Case){.size = 0};
    assert_true(bpe_init(&c->b, PIECES_MAX, MERGES_MAX, NULL));
    bool has_unknown = test_between(r, 0, 1), strange = test_between(r, 0, 3) == 0;
    if (has_unknown) c->b.unknown = add_piece(c, "<unk>", 5);
    c->b.byte_fallback = test_between(r, 0, 1);
    c->b.fuse_unknown = test_between(r, 0, 1);
    int first_letter = c->size;
    for (int i = 0; i < 256 && c->size < 40; i++) {
        snprintf(byte, sizeof byte, "<0x%02X>", (unsigned)(i == 0 ? 'x' : 0x7F + i));
        if (test_between(r, 0, 4)) add_piece(c, byte, 6);
    }
    if (!strange) first_letter = c->size;
    for (int i = 0; i < KNOWN; i++) add_piece(c, LETTERS[i], strlen(LETTERS[i]));
    for (int n = test_between(r, 0, MERGES_MAX); n > 0; n--)
        add_merge(c, test_between(r, strange ? 0 : first_letter, c->size - 1),
                  test_between(r, strange ? 0 : first_letter, c->size - 1));
    c->b.ignore_merges = test_between(r, 0, 4) == 0;
    bpe_finish(&c->b);
}

static size_t random_word(Random *r, char *out) {
    size_t n = 0;
    int known = test_between(r, 0, 2) ? KNOWN : LETTER_COUNT, some = test_between(r, 1, known);
    for (int count = test_between(r, 0, WORD_MAX); count > 0; count--) {
        const char *letter = LETTERS[test_between(r, 0, some - 1)];
        memcpy(out + n, letter, strlen(letter));
        n += strlen(letter);
    }
    return n;
}

// --- the slow model ------------------------------------------------------------------------------------

typedef struct {
    int ids[WORD_MAX * 4];
    int count;
} Ids;

static bool add_bytes(const Case *c, const char *s, int n, Ids *out) {
    for (int i = 0; i < n; i++)
        if (c->b.bytes[(unsigned char)s[i]] < 0) return false;
    for (int i = 0; i < n; i++) out->ids[out->count++] = c->b.bytes[(unsigned char)s[i]];
    return true;
}

static void slow_symbols(const Case *c, const char *word, size_t n, Ids *out) {
    bool unknown = false;
    for (size_t i = 0; i < n;) {
        int length = utf8_length(word + i, n - i);
        int id = vocab_find(&c->b.vocab, word + i, (size_t)length);
        bool known = id >= 0 || (c->b.byte_fallback && add_bytes(c, word + i, length, out));
        if (id >= 0) out->ids[out->count++] = id;
        else if (!known && c->b.unknown >= 0 && !(unknown && c->b.fuse_unknown))
            out->ids[out->count++] = c->b.unknown;
        unknown = !known;
        i += (size_t)length;
    }
}

// The last rank of a pair counts.
static int slow_rank(const Case *c, int left, int right) {
    for (int i = c->merge_count - 1; i >= 0; i--)
        if (c->merges[i].left == left && c->merges[i].right == right) return i;
    return -1;
}

static bool slow_step(const Case *c, Ids *s) {
    int best = -1, at = -1;
    for (int i = 0; i + 1 < s->count; i++) {
        int rank = slow_rank(c, s->ids[i], s->ids[i + 1]);
        if (rank < 0 || (best >= 0 && rank >= best)) continue;
        best = rank;
        at = i;
    }
    if (at < 0) return false;
    s->ids[at] = c->merges[best].id;
    memmove(s->ids + at + 1, s->ids + at + 2, (size_t)(s->count - at - 2) * sizeof *s->ids);
    s->count--;
    return true;
}

static void slow_encode(const Case *c, const char *word, size_t n, Ids *out) {
    int whole = c->b.ignore_merges ? vocab_find(&c->b.vocab, word, n) : -1;
    out->count = 0;
    if (whole >= 0) out->ids[out->count++] = whole;
    else {
        slow_symbols(c, word, n, out);
        while (slow_step(c, out)) {}
    }
}

static void compare(const Case *c, const char *word, size_t n, const IdList *got, const Ids *want) {
    if (got->count == (size_t)want->count &&
        (want->count == 0 || memcmp(got->ids, want->ids, got->count * sizeof *got->ids) == 0))
        return;
    printf("seed %llu, word '%.*s'\n  wanted:", (unsigned long long)test_seed(), (int)n, word);
    for (int i = 0; i < want->count; i++) printf(" %s", c->b.vocab.pieces[want->ids[i]].text);
    printf("\n  got   :");
    for (size_t i = 0; i < got->count; i++) printf(" %s", c->b.vocab.pieces[got->ids[i]].text);
    fail_msg("%s", "the ids differ");
}

static void like_the_slow_one(void **state) {
    (void)state;
    Random r = test_random(1);
    BpeWork work = {0};
    for (int i = 0; i < 2000; i++) {
        Case c;
        random_case(&c, &r);
        for (int k = 0; k < 20; k++) {
            char word[WORD_MAX * 4];
            Ids want;
            IdList got = {0};
            size_t n = random_word(&r, word);
            slow_encode(&c, word, n, &want);
            bpe_encode(&c.b, &work, word, n, &got);
            compare(&c, word, n, &got, &want);
            ids_release(&got);
        }
        bpe_release(&c.b);
    }
    bpe_work_release(&work);
}

// sentencepiece gives equal scores equal ranks: then the leftmost goes first.
static void equal_ranks(void **state) {
    (void)state;
    Bpe b;
    BpeWork work = {0};
    IdList got = {0};
    const char *const pieces[] = {"a", "b", "c", "ab", "bc"};
    assert_true(bpe_init(&b, 5, 2, NULL));
    for (int i = 0; i < 5; i++)
        assert_true(vocab_add(&b.vocab, pieces[i], strlen(pieces[i]), i, "test", NULL));
    bpe_set_merge(&b, 1, 2, 0, 4);
    bpe_set_merge(&b, 0, 1, 0, 3);
    bpe_finish(&b);
    bpe_encode(&b, &work, "abcbc", 5, &got);
    assert_int_equal(got.count, 3); // ab c bc
    assert_int_equal(got.ids[0], 3);
    assert_int_equal(got.ids[1], 2);
    assert_int_equal(got.ids[2], 4);
    ids_release(&got);
    bpe_work_release(&work);
    bpe_release(&b);
}

static void unknown_pieces_are_refused(void **state) {
    (void)state;
    Bpe b;
    Error e = {0};
    assert_true(bpe_init(&b, 3, 4, NULL));
    assert_true(vocab_add(&b.vocab, "a", 1, 0, "test", NULL));
    assert_true(vocab_add(&b.vocab, "b", 1, 1, "test", NULL));
    assert_false(bpe_add_merge(&b, "a", 1, "z", 1, "FILE", &e));
    assert_string_equal(e.text,
                        "merge 0 of 'FILE' joins 'a' and 'z', but the second is not in the vocabulary");
    assert_false(bpe_add_merge(&b, "z", 1, "a", 1, "FILE", &e));
    assert_false(bpe_add_merge(&b, "a", 1, "b", 1, "FILE", &e));
    assert_string_equal(e.text,
                        "merge 0 of 'FILE' joins 'a' and 'b', but the result is not in the vocabulary");
    bpe_release(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(like_the_slow_one),
        cmocka_unit_test(equal_ranks),
        cmocka_unit_test(unknown_pieces_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
