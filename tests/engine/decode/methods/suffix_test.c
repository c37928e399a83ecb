// The proposal of every step against drafts from trees that are kept by hand: which texts are in which tree,
// which draft is taken, and what is dropped. suffix_tree_test.c holds the drafts themselves.
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/watched.h"

#include "engine/decode/decode.h"
#include "engine/decode/structures/suffix_tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CONTEXT = 150, TOKENS = 40, PROMPTS = 5, NONE = -1 };

typedef struct {
    Watched text; // first: the loop's callbacks get it
    Session session;
    SuffixRule rule;
    int depth, requests, tokens, bias;
    const char *pick;
    bool warm;
    int lengths[PROMPTS]; // of the outputs so far
    int prompt;           // the running one
    SuffixTree global;    // of the outputs that are kept
    int first;            // of those
    int proposed, from_global, dropped;
} Watch;

static void append_all(SuffixTree *t, const int *tokens, int count) {
    suffix_tree_begin(t);
    for (int i = 0; i < count; i++) suffix_tree_append(t, tokens[i]);
}

// The outputs that are kept when the running one has `now` tokens; older ones were dropped at the latest now.
static int oldest_kept(const Watch *w, int now) {
    int tokens = now, first = w->prompt;
    while (first > 0 && w->prompt - first + 2 <= w->requests && tokens + w->lengths[first - 1] <= w->tokens)
        tokens += w->lengths[--first];
    return first;
}

// Where the text's last n tokens first end, or NONE if that is the text's end.
static int first_place(const Watched *text, int n) {
    for (int end = n; end < text->before; end++) {
        int same = 0;
        while (same < n && text->sequence[end - 1 - same] == text->sequence[text->before - 1 - same]) same++;
        if (same == n) return end;
    }
    return NONE;
}

static void slow_copy(const Watch *w, SuffixDraft *out) {
    int n = 0, most, from;
    out->count = 0;
    while (n + 1 < w->depth && first_place(&w->text, n + 1) != NONE) n++;
    if (n == 0) return;
    most = (int)floor(n * w->rule.factor + w->rule.offset + 1e-6);
    if (most > w->rule.most) most = w->rule.most;
    while (strcmp(w->pick, "room") == 0 && n > 1 &&
           first_place(&w->text, n) + w->rule.most >= w->text.before - 1)
        n--;
    from = first_place(&w->text, n);
    for (int i = 0; i < most && from + i < w->text.before - 1; i++, out->count++) {
        out->token[i] = w->text.sequence[from + i];
        out->parent[i] = i - 1;
    }
}

static bool copies(const Watch *w) { return strcmp(w->pick, "first") == 0 || strcmp(w->pick, "room") == 0; }

// The draft of this step, and whether it is of the outputs.
static bool slow_draft(Watch *w, SuffixDraft *out) {
    SuffixTree local;
    SuffixDraft other;
    if (copies(w)) {
        slow_copy(w, out);
        return false;
    }
    int have = w->text.before < w->depth ? w->text.before : w->depth;
    const int *context = w->text.sequence + w->text.before - have;
    suffix_tree_init(&local, w->depth);
    append_all(&local, w->text.sequence, w->text.before);
    suffix_tree_draft(&local, context, have, &w->rule, out);
    suffix_tree_release(&local);
    if (!w->warm) return false;
    for (int first = oldest_kept(w, w->lengths[w->prompt]); w->first < first; w->first++, w->dropped++)
        suffix_tree_drop(&w->global);
    suffix_tree_draft(&w->global, context, have, &w->rule, &other);
    if (w->rule.longest) {
        int match = other.match > w->bias ? other.match - w->bias : 0;
        if (!other.count || (out->count && match <= out->match)) return false;
    } else if (other.score <= out->score) return false;
    *out = other;
    return true;
}

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    const Tree *t = &w->session.tree;
    static SuffixDraft draft;
    bool global = slow_draft(w, &draft);
    int nodes[SUFFIX_DRAFT_MOST], want = 0;
    for (int i = 0; i < draft.count; i++) {
        int parent = draft.parent[i] < 0 ? 0 : nodes[draft.parent[i]], depth = 0;
        for (int up = i; draft.parent[up] >= 0; up = draft.parent[up]) depth++;
        bool room = parent != NONE && w->text.before + depth < CONTEXT;
        nodes[i] = room ? ++want : NONE;
        if (!room) continue;
        assert_true(want < t->count);
        assert_int_equal(t->parent[want], parent);
        assert_int_equal(t->token[want], draft.token[i]);
    }
    assert_int_equal(t->count - 1, want);
    assert_int_equal(r->candidates, want);
    w->proposed += want;
    w->from_global += global && want;
    for (int i = w->text.before; i < w->text.length; i++) suffix_tree_append(&w->global, w->text.sequence[i]);
    w->lengths[w->prompt] += w->text.length - w->text.before;
}

// The end of the method's state: outputs that are gone since it was opened.
static void check_evicted(Watch *w, const Method *m) {
    char want[80];
    Text got = {0};
    int first, tokens = 0;
    w->prompt = PROMPTS - 1;
    first = oldest_kept(w, w->lengths[w->prompt]);
    for (int i = 0; i < first; i++) tokens += w->lengths[i];
    snprintf(want, sizeof want, "; evicted %d outputs of %d tokens", first, tokens);
    m->info->state(m->self, &got);
    if (w->warm ? !text_ends(text_get(&got), want) : strstr(text_get(&got), "evicted") != NULL)
        fail_msg("'%s', want '%s'", text_get(&got), w->warm ? want : "nothing evicted");
    text_release(&got);
}

static void watch_method(Watch *w, Random *r) {
    NullSetup setup = {.vocab = test_between(r, 1, 6), .context = CONTEXT};
    char text[300];
    Method m;
    Error e = {0};
    static const char *const picks[] = {"score", "score", "match", "first", "room"};
    w->pick = picks[test_between(r, 0, 4)];
    w->depth = test_between(r, 2, 20);
    w->warm = test_between(r, 0, 2) != 0 && !copies(w);
    w->requests = test_between(r, 1, PROMPTS);
    w->tokens = test_between(r, 1, PROMPTS * TOKENS);
    w->rule = (SuffixRule){.most = test_between(r, 1, 24),
                           .factor = test_between(r, 0, 8) / 2.0,
                           .offset = test_between(r, -1, 4),
                           .least = test_between(r, 0, 5) / 16.0,
                           .tree = test_between(r, 0, 1) && !copies(w),
                           .longest = strcmp(w->pick, "match") == 0};
    w->bias = test_between(r, 0, 6);
    memset(w->lengths, 0, sizeof w->lengths);
    suffix_tree_init(&w->global, w->depth);
    w->first = 0;
    snprintf(text, sizeof text,
             "suffix:depth=%d,draft=%d,factor=%g,offset=%g,min_prob=%g,tree=%s,warm=%s,requests=%d,tokens=%d,"
             "pick=%s,bias=%d",
             w->depth, w->rule.most, w->rule.factor, w->rule.offset, w->rule.least,
             w->rule.tree ? "on" : "off", w->warm ? "on" : "off", w->requests, w->tokens, w->pick, w->bias);
    null_session_open(&w->session, &setup);
    MethodEnv env = {.target = &w->session};
    if (!method_open(&m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
    for (w->prompt = 0; w->prompt < PROMPTS; w->prompt++) {
        DecodeOptions o = watched_options(TOKENS, 1, 2, r);
        suffix_tree_begin(&w->global);
        watched_prompt(&w->text, test_between(r, 1, CONTEXT - TOKENS - 30), setup.vocab, r);
        DecodeResult out = watched_decode(&w->text, on_step, &w->session, &m, &o);
        decode_result_release(&out);
    }
    check_evicted(w, &m);
    method_close(&m);
    session_release(&w->session);
    suffix_tree_release(&w->global);
}

static void every_setting(void **state) {
    (void)state;
    Random r = test_random(95);
    Watch w = {.proposed = 0};
    for (int round = 0; round < 80; round++) watch_method(&w, &r);
    print_message("%d tokens proposed, %d steps from earlier outputs, %d outputs dropped\n", w.proposed,
                  w.from_global, w.dropped);
    assert_true(w.proposed > 10000 && w.from_global > 500 && w.dropped > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_setting)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
