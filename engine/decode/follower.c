#include "engine/decode/follower.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

bool follower_init(Follower *f, Session *session, int limit, Error *e) {
    *f = (Follower){.session = session, .capacity = limit};
    f->sequence = mem_alloc((size_t)limit, sizeof *f->sequence);
    return f->sequence || error_system(e, "out of memory for a sequence of %d tokens", limit);
}

void follower_release(Follower *f) {
    mem_free(f->sequence);
    *f = (Follower){0};
}

bool follower_begin(Follower *f, const int *prompt, int count, const float *hidden, Error *e) {
    assert(count <= f->capacity);
    memcpy(f->sequence, prompt, (size_t)count * sizeof *prompt);
    f->length = count;
    session_reset(f->session);
    if (count - 1 > f->session->context) return true;
    return hidden ? session_prefill_hidden(f->session, prompt, count - 1, hidden, e)
                  : session_prefill(f->session, prompt, count - 1, 0, 0, NULL, e);
}

int follower_catch_up(Follower *f) {
    Session *s = f->session;
    int first = s->cache.length, room = s->context - first, missing = follower_missing(f);
    if (missing > room || missing > s->tree.capacity) return TREE_NONE;
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, f->sequence[first]);
    for (int i = first + 1; i < f->length; i++)
        node = tree_probe(&s->tree, node, f->sequence[i], i == f->length - 1);
    return node;
}

int follower_guess(Follower *f, int node, int token) {
    return tree_probe(&f->session->tree, node, token, true);
}

void follower_append(Follower *f, const int *tokens, int count) {
    assert(f->length + count <= f->capacity);
    memcpy(f->sequence + f->length, tokens, (size_t)count * sizeof *tokens);
    f->length += count;
}

bool follower_take_back(Follower *f, int length, Error *e) {
    Session *s = f->session;
    if (s->cache.length <= length || session_truncate(s, length, NULL)) return true;
    session_reset(s);
    return session_prefill(s, f->sequence, length, 0, 0, NULL, e);
}

bool follower_settle(Follower *f, const int *emitted, int count, Error *e) {
    Session *s = f->session;
    int first = s->cache.length, n = 0;
    follower_append(f, emitted, count);
    if (!s->open) return true;
    while (n < s->tree.count && first + n < f->length - 1 && s->tree.token[n] == f->sequence[first + n]) n++;
    return n == 0 ? session_truncate(s, first, e) : session_commit(s, n - 1, n, e);
}
