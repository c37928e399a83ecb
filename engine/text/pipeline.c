// What both readers build a Tokenizer with.
#include "engine/text/pipeline.h"

#include "engine/base/memory.h"

#include <string.h>

bool pipeline_read_steps(Tokenizer *t, const json_t *root, const char *place, Error *e) {
    return steps_read(&t->normalizers, &step_normalizers, json_object_get(root, "normalizer"), place, e) &&
           steps_read(&t->splitters, &step_splitters, json_object_get(root, "pre_tokenizer"), place, e) &&
           decoders_read(&t->decoders, json_object_get(root, "decoder"), place, e);
}

bool pipeline_begin_added(Tokenizer *t, size_t count, Error *e) {
    t->added = mem_alloc(count, sizeof *t->added);
    t->added_by_id = mem_alloc((size_t)t->bpe.vocab.size, sizeof *t->added_by_id);
    return (t->added && t->added_by_id) || error_system(e, "out of memory for %zu added tokens", count);
}

// The text as it is sought: a token that is sought in normalized text is normalized too.
static bool set_text(const Tokenizer *t, AddedToken *a, const char *content, Error *e) {
    Words words = {.at_start = true}, other = {0};
    words_add(&words, content, strlen(content));
    bool ok = !a->normalized || steps_run(&t->normalizers, &words, &other, e);
    a->length = words.text.length;
    a->text = ok && !words.text.failed ? mem_text(text_get(&words.text), a->length) : NULL;
    words_release(&words);
    words_release(&other);
    return ok && (a->text || error_system(e, "out of memory for an added token"));
}

bool pipeline_add_token(Tokenizer *t, AddedToken token, const char *content, const char *place, Error *e) {
    AddedToken *a = &t->added[t->added_count++];
    size_t n = strlen(content);
    int piece = vocab_find(&t->bpe.vocab, content, n);
    *a = token;
    if (n == 0) return error_input(e, "an added token of '%s' is empty", place);
    if (piece >= 0 && piece != token.id)
        return error_input(e, "the token '%.60s' has two ids in '%s': %d and %d", content, place, piece,
                           token.id);
    t->added_by_id[token.id] = t->added_count;
    return vocab_name(&t->bpe.vocab, content, n, token.id, place, e) && set_text(t, a, content, e);
}

bool pipeline_end_added(Tokenizer *t, Error *e) {
    return added_init(&t->raw, t->added, t->added_count, false, e) &&
           added_init(&t->normalized, t->added, t->added_count, true, e);
}
