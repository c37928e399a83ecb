// The chain of every step against a search of all texts so far for the n-gram's newest successor. The table
// has so many places that no two n-grams of these few tokens meet.
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/watched.h"

#include "engine/decode/decode.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 120, TOKENS = 30, PROMPTS = 3, MOST = PROMPTS * CONTEXT, NONE = -1 };

typedef struct {
    Watched text; // first: the loop's callbacks get it
    Session session;
    int n, draft;
    bool warm;
    int old[MOST], old_count; // earlier texts, -1 between them
    int proposed;
} Watch;

// What last followed these n tokens in a text.
static int newest(const int *text, int count, const int *last, int n) {
    for (int end = count - 1; end >= n; end--)
        if (text[end] >= 0 && memcmp(text + end - n, last, (size_t)n * sizeof *text) == 0) return text[end];
    return NONE;
}

static int slow_follower(const Watch *w, const int *last) {
    int token = newest(w->text.sequence, w->text.before, last, w->n);
    return token == NONE && w->warm ? newest(w->old, w->old_count, last, w->n) : token;
}

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    const Tree *t = &w->session.tree;
    int all[CONTEXT + 64], have = w->text.before, want = 0;
    memcpy(all, w->text.sequence, (size_t)have * sizeof *all);
    for (; want < w->draft && have >= w->n && have < CONTEXT; want++, have++) {
        all[have] = slow_follower(w, all + have - w->n);
        if (all[have] == NONE) break;
        assert_true(want + 1 < t->count);
        assert_int_equal(t->parent[want + 1], want);
        assert_int_equal(t->token[want + 1], all[have]);
    }
    assert_int_equal(t->count - 1, want);
    assert_int_equal(r->candidates, want);
    w->proposed += want;
}

// The method's state: the n-grams of the texts, and those whose token was another one before.
static void check_places(const Watch *w, const Method *m, int from) {
    int filled = 0, changed = 0;
    char want[80], end[80];
    Text got = {0};
    for (int i = from + w->n; i < w->old_count; i++) {
        bool whole = w->old[i] != NONE;
        for (int k = 1; k <= w->n; k++) whole &= w->old[i - k] != NONE;
        int before = whole ? newest(w->old + from, i - from, w->old + i - w->n, w->n) : w->old[i];
        filled += whole && before == NONE;
        changed += before != NONE && before != w->old[i];
    }
    snprintf(want, sizeof want, "%d of %d places filled, ", filled, 1 << 23);
    snprintf(end, sizeof end, "; evicted %d tokens", changed);
    m->info->state(m->self, &got);
    if (strncmp(text_get(&got), want, strlen(want)) != 0 || !text_ends(text_get(&got), end))
        fail_msg("'%s', want '%s..%s'", text_get(&got), want, end);
    text_release(&got);
}

static void watch_method(Watch *w, Random *r) {
    NullSetup setup = {.vocab = test_between(r, 1, 5), .context = CONTEXT};
    char text[100];
    Method m;
    Error e = {0};
    w->n = test_between(r, 1, 5);
    w->draft = test_between(r, 1, 40);
    w->warm = test_between(r, 0, 1);
    w->old_count = 0;
    snprintf(text, sizeof text, "ngram-mod:n=%d,draft=%d,bits=23,warm=%s", w->n, w->draft,
             w->warm ? "on" : "off");
    null_session_open(&w->session, &setup);
    MethodEnv env = {.target = &w->session};
    if (!method_open(&m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
    for (int prompt = 0, from = 0; prompt < PROMPTS; prompt++) {
        DecodeOptions o = watched_options(TOKENS, 1, 2, r);
        watched_prompt(&w->text, test_between(r, 1, CONTEXT - TOKENS - 20), setup.vocab, r);
        DecodeResult out = watched_decode(&w->text, on_step, &w->session, &m, &o);
        memcpy(w->old + w->old_count, w->text.sequence, (size_t)w->text.length * sizeof *w->old);
        w->old_count += w->text.length;
        w->old[w->old_count++] = NONE;
        check_places(w, &m, w->warm ? 0 : from);
        from = w->old_count;
        decode_result_release(&out);
    }
    method_close(&m);
    session_release(&w->session);
}

static void every_setting(void **state) {
    (void)state;
    Random r = test_random(96);
    Watch w = {.proposed = 0};
    for (int round = 0; round < 40; round++) watch_method(&w, &r);
    print_message("%d tokens proposed\n", w.proposed);
    assert_true(w.proposed > 5000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_setting)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
