// The tree of every step, against prefixes counted one by one over the whole store.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/null_session.h"
#include "tests/support/watched.h"

#include "engine/decode/structures/datastore.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 90, TOKENS = 25, MOST_STORE = 220, MOST_DRAFT = 6, MOST_PREFIXES = MOST_STORE * MOST_DRAFT };

typedef struct {
    int longest, shortest, draft, nodes, matches;
} Setting;

typedef struct {
    int tokens[MOST_DRAFT], depth, count;
} Prefix;

typedef struct {
    Watched text;
    Setting x;
    const Session *session;
    int store[MOST_STORE], store_count;
    Prefix prefixes[MOST_PREFIXES];
    int count;
    int proposed, accepted, cut; // cut: steps in which not all prefixes, or not all places, were taken
} Watch;

// --- the slow model

static int compare_places(const Watch *w, int a, int b) {
    const int *s = w->store;
    while (a < w->store_count && b < w->store_count && s[a] == s[b]) a++, b++;
    if (a == w->store_count || b == w->store_count) return a == w->store_count ? -1 : 1;
    return s[a] < s[b] ? -1 : 1;
}

// The places of the last n tokens in the store, sorted by the text there.
static int slow_places(const Watch *w, int n, int *out) {
    int count = 0;
    for (int i = 0; i + n <= w->store_count; i++) {
        if (memcmp(w->store + i, w->text.sequence + w->text.before - n, (size_t)n * sizeof(int)) != 0)
            continue;
        int at = count++;
        for (; at > 0 && compare_places(w, i, out[at - 1]) < 0; at--) out[at] = out[at - 1];
        out[at] = i;
    }
    return count;
}

static void count_prefix(Watch *w, const int *tokens, int depth) {
    int i = 0;
    while (i < w->count && (w->prefixes[i].depth != depth ||
                            memcmp(w->prefixes[i].tokens, tokens, (size_t)depth * sizeof(int)) != 0))
        i++;
    if (i == w->count) {
        w->prefixes[w->count] = (Prefix){.depth = depth};
        memcpy(w->prefixes[w->count++].tokens, tokens, (size_t)depth * sizeof(int));
    }
    w->prefixes[i].count++;
}

static void count_prefixes(Watch *w, int n) {
    int places[MOST_STORE], count = slow_places(w, n, places), most = w->x.matches;
    for (int i = 0; i < (count < most ? count : most); i++) {
        int place = places[count < most ? i : i * count / most] + n;
        for (int d = 1; d <= w->x.draft && place + d <= w->store_count && w->store[place + d - 1] >= 0; d++)
            count_prefix(w, w->store + place, d);
    }
    w->cut += count > most;
}

static bool better(const Prefix *a, const Prefix *b) {
    if (a->count != b->count) return a->count > b->count;
    if (a->depth != b->depth) return a->depth < b->depth;
    for (int i = 0; i < a->depth; i++)
        if (a->tokens[i] != b->tokens[i]) return a->tokens[i] < b->tokens[i];
    return false;
}

// The best prefixes come to the front; gives their number.
static int slow_choice(Watch *w) {
    w->count = 0;
    for (int n = w->x.longest; n >= w->x.shortest && w->count == 0; n--)
        if (n <= w->text.before) count_prefixes(w, n);
    int kept = w->count < w->x.nodes ? w->count : w->x.nodes;
    for (int i = 0; i < kept; i++)
        for (int k = i + 1; k < w->count; k++)
            if (better(&w->prefixes[k], &w->prefixes[i])) {
                Prefix p = w->prefixes[i];
                w->prefixes[i] = w->prefixes[k];
                w->prefixes[k] = p;
            }
    w->cut += kept < w->count;
    return kept;
}

// --- watching

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    const Tree *t = &w->session->tree;
    int kept = slow_choice(w), room = CONTEXT - w->text.before, want = 0, nodes = 0;
    for (int i = 0; i < kept; i++) {
        const Prefix *p = &w->prefixes[i];
        int node = 0;
        if (p->depth > room) continue;
        want++;
        for (int k = 0; k < p->depth && node != TREE_NONE; k++) node = tree_child(t, node, p->tokens[k]);
        if (node == TREE_NONE)
            fail_msg("prefix %d of %d (depth %d, count %d) is not in the tree behind %d tokens", i, kept,
                     p->depth, p->count, w->text.before);
    }
    for (int n = 1; n < t->count; n++) nodes += t->canonical[n] == n;
    assert_int_equal(nodes, want);
    assert_int_equal(r->source_count, 1);
    assert_int_equal(r->sources[0].match, r->accepted);
    w->proposed += nodes;
    w->accepted += r->accepted;
}

// Texts from the model itself, so that it repeats some of them.
static void random_store(Watch *w, Session *s, Random *r) {
    int vocab = s->shape.vocab;
    w->store_count = 0;
    while (w->store_count + 40 < MOST_STORE) {
        int prompt[3], said[30], n = test_between(r, 1, 30);
        for (int i = 0; i < 3; i++) prompt[i] = test_between(r, 0, vocab - 1);
        slow_greedy(s, prompt, 3, n, said);
        for (int i = 0; i < n; i++) w->store[w->store_count++] = said[i];
        if (test_between(r, 0, 3)) w->store[w->store_count++] = DATASTORE_BREAK;
        if (test_between(r, 0, 5) == 0) break;
    }
}

static void check_greedy(Session *s, Method *m, const int *prompt, int count, const DecodeOptions *o) {
    int want = CONTEXT - count < TOKENS ? CONTEXT - count : TOKENS, truth[TOKENS];
    DecodeResult out;
    slow_greedy(s, prompt, count, want, truth);
    assert_true(decode(s, m, prompt, count, o, &out, NULL));
    assert_int_equal(out.tokens, want);
    assert_memory_equal(out.ids, truth, (size_t)want * sizeof(int));
    decode_result_release(&out);
}

static void watch_decode(Session *s, Method *m, Watch *w, Random *r) {
    DecodeOptions o = watched_options(TOKENS, 1, 2, r);
    int count = test_between(r, 0, 4) ? test_between(r, 1, CONTEXT) : 1;
    watched_prompt(&w->text, count, s->shape.vocab, r);
    w->session = s;
    DecodeResult out = watched_decode(&w->text, on_step, s, m, &o);
    decode_result_release(&out);
    o.sampling.temperature = 0;
    check_greedy(s, m, w->text.sequence, count, &o);
}

static void every_setting(void **state) {
    Random r = test_random(180);
    const char *path = folder_path(*state, "store");
    Watch *w = test_calloc(1, sizeof *w);
    for (int round = 0; round < 400; round++) {
        Session s;
        Method m;
        Error e = {0};
        char text[ARG_TEXT_SIZE * 2];
        NullSetup setup = {.vocab = test_between(&r, 1, 6), .context = CONTEXT};
        null_session_open(&s, &setup);
        random_store(w, &s, &r);
        w->x = (Setting){.longest = test_between(&r, 1, 16),
                         .draft = test_between(&r, 1, MOST_DRAFT),
                         .nodes = test_between(&r, 1, 40),
                         .matches = test_between(&r, 0, 1) ? 1000 : test_between(&r, 1, 20)};
        w->x.shortest = test_between(&r, 1, w->x.longest < 3 ? w->x.longest : 3);
        assert_true(datastore_write(path, w->store, w->store_count, s.shape.vocab, NULL));
        snprintf(text, sizeof text, "rest:datastore=%s,longest=%d,shortest=%d,draft=%d,nodes=%d,matches=%d",
                 path, w->x.longest, w->x.shortest, w->x.draft, w->x.nodes, w->x.matches);
        MethodEnv env = {.target = &s};
        if (!method_open(&m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
        for (int prompt = 0; prompt < 2; prompt++) watch_decode(&s, &m, w, &r);
        method_close(&m);
        session_release(&s);
    }
    assert_true(w->proposed > 10000 && w->accepted > 500 && w->cut > 200);
    test_free(w);
}

static void refuses(void **state) {
    static const int text[] = {1, 2, 9};
    const char *store = folder_path(*state, "store"), *other = folder_path(*state, "other");
    char bad[3][ARG_TEXT_SIZE + 40];
    static const char *const says[] = {"datastore=FILE is missing", "'shortest' 3 is larger than 'longest' 2",
                                       "has a vocabulary of 10, the model 4"};
    NullSetup setup = {.vocab = 4, .context = CONTEXT};
    Session s;
    null_session_open(&s, &setup);
    MethodEnv env = {.target = &s};
    assert_true(datastore_write(store, text, 2, 4, NULL) && datastore_write(other, text, 3, 10, NULL));
    snprintf(bad[0], sizeof bad[0], "rest");
    snprintf(bad[1], sizeof bad[1], "rest:datastore=%s,longest=2,shortest=3", store);
    snprintf(bad[2], sizeof bad[2], "rest:datastore=%s", other);
    for (int i = 0; i < 3; i++) {
        Method m;
        Error e = {0};
        assert_false(method_open(&m, bad[i], &env, &e));
        if (!strstr(e.text, says[i])) fail_msg("'%s' says '%s', want '%s'", bad[i], e.text, says[i]);
    }
    session_release(&s);
}

int main(void) {
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {IN_FOLDER(every_setting), IN_FOLDER(refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
