// The proposal of every step, against a search of each place of the text.
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/watched.h"

#include "engine/decode/decode.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 180, MOST_PROMPT = 150, TOKENS = 20, COMPARED = 64 };

typedef enum { OLDEST, NEWEST, FREQUENT } Match;
static const char *const MATCHES[] = {"oldest", "newest", "frequent"};

typedef struct {
    int ngram_max, ngram_min, draft;
    Match match;
    bool allow_short;
} Setting;

typedef struct {
    Watched text; // first: the loop's callbacks get it
    Setting setting;
    const Session *session;
    int proposed, whole; // tokens, and continuations of full length
} Watch;

// --- the slow model

static int followers(const Watch *w, int end) {
    int n = w->text.before - end;
    return n < w->setting.draft ? n : w->setting.draft;
}

// Whether the n tokens before `end` equal those at the text's end, with a usable continuation.
static bool is_match(const Watch *w, int n, int end) {
    bool same = memcmp(w->text.sequence + end - n, w->text.sequence + w->text.before - n,
                       (size_t)n * sizeof(int)) == 0;
    return same && (w->setting.allow_short || followers(w, end) == w->setting.draft);
}

static int count_equal(const Watch *w, const int *ends, int count, int end) {
    int equal = 0, n = followers(w, end);
    for (int i = 0; i < count; i++)
        equal += followers(w, ends[i]) == n &&
                 memcmp(w->text.sequence + ends[i], w->text.sequence + end, (size_t)n * sizeof(int)) == 0;
    return equal;
}

// The place where the continuation starts; 0: no match of this length.
static int slow_match(const Watch *w, int n) {
    int ends[CONTEXT], count = 0, best = 0, most = 0;
    for (int end = w->text.before - 1; end >= n; end--) // newest first
        if (is_match(w, n, end)) ends[count++] = end;
    if (count == 0) return 0;
    if (w->setting.match == NEWEST) return ends[0];
    if (w->setting.match == OLDEST) return ends[count - 1];
    if (count > COMPARED) count = COMPARED; // of long repetitions only the newest are compared
    for (int i = 0; i < count; i++) {
        int equal = count_equal(w, ends, count, ends[i]);
        if (equal > most) best = ends[i];
        if (equal > most) most = equal;
    }
    return best;
}

static int slow_proposal(const Watch *w) {
    int end = 0;
    for (int n = w->setting.ngram_max; n >= w->setting.ngram_min && !end; n--)
        if (n < w->text.before) end = slow_match(w, n);
    return end;
}

// --- watching

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    const Tree *t = &w->session->tree;
    int end = slow_proposal(w), want = end ? followers(w, end) : 0, room = CONTEXT - w->text.before;
    if (want > room) want = room;
    if (t->count - 1 != want || r->candidates != want)
        fail_msg("%d tokens proposed behind %d, want %d (%s, n %d to %d, draft %d, short %d)", t->count - 1,
                 w->text.before, want, MATCHES[w->setting.match], w->setting.ngram_max, w->setting.ngram_min,
                 w->setting.draft, w->setting.allow_short);
    for (int i = 0; i < want; i++) {
        assert_int_equal(t->parent[i + 1], i);
        if (t->token[i + 1] != w->text.sequence[end + i])
            fail_msg("token %d of %d behind %d is %d, want %d from %d (%s)", i, want, w->text.before,
                     t->token[i + 1], w->text.sequence[end + i], end + i, MATCHES[w->setting.match]);
    }
    w->proposed += want;
    w->whole += want == w->setting.draft;
}

// Two texts on one method, so that state left over from the first would show.
static void watch_method(const char *text, const Setting *setting, Random *r, Watch *w) {
    Session s;
    Method m;
    Error e = {0};
    int vocab = test_between(r, 1, 6);
    NullSetup setup = {.vocab = vocab, .context = CONTEXT};
    null_session_open(&s, &setup);
    MethodEnv env = {.target = &s};
    if (!method_open(&m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
    w->setting = *setting;
    w->session = &s;
    for (int again = 0; again < 2; again++) {
        DecodeOptions o = watched_options(TOKENS, 1, 2, r);
        watched_prompt(&w->text, test_between(r, 1, MOST_PROMPT), vocab, r);
        DecodeResult out = watched_decode(&w->text, on_step, &s, &m, &o);
        decode_result_release(&out);
    }
    method_close(&m);
    session_release(&s);
}

static void every_setting(void **state) {
    (void)state;
    Random r = test_random(60);
    Watch w = {.proposed = 0};
    for (int round = 0; round < 1500; round++) {
        Setting x = {.ngram_max = test_between(&r, 1, 5),
                     .draft = test_between(&r, 1, 14),
                     .match = (Match)test_between(&r, 0, 2),
                     .allow_short = test_between(&r, 0, 1)};
        char text[200];
        x.ngram_min = test_between(&r, 1, x.ngram_max);
        snprintf(text, sizeof text,
                 "prompt-lookup:ngram_max=%d,ngram_min=%d,draft=%d,match=%s,allow_short=%s", x.ngram_max,
                 x.ngram_min, x.draft, MATCHES[x.match], x.allow_short ? "on" : "off");
        watch_method(text, &x, &r, &w);
    }
    assert_true(w.proposed > 20000 && w.whole > 2000);
}

static void defaults_and_preset(void **state) {
    (void)state;
    Random r = test_random(61);
    Watch w = {.proposed = 0};
    static const Setting defaults = {3, 1, 10, OLDEST, false}, preset = {2, 1, 10, OLDEST, true};
    for (int round = 0; round < 100; round++) {
        watch_method("prompt-lookup", &defaults, &r, &w);
        watch_method("prompt-lookup:preset=hf-4.37", &preset, &r, &w);
        watch_method("prompt-lookup:draft=3,match=newest,preset=hf-4.37", &preset, &r, &w); // it replaces all
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting),
        cmocka_unit_test(defaults_and_preset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
