// Ouroboros' bookkeeping against a slow one that asks both models about one path at a time; its walk-through
// (Figure 1); its greedy output on real models.
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/watched.h"
#include "tests/support/random_model.h"
#include "tests/support/slow_lookahead.h"

#include "engine/cpu/cpu.h"
#include "engine/decode/decode.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 110, MOST_VOCAB = 7, TOKENS = 18, NODES = 600, MOST_GAMMA = 40, MOST_K = 4 };

typedef enum { ALWAYS, ON_ACCEPT, IN_PLACE, OFF } Refine;
static const char *const REFINES[] = {"always", "on_accept", "in_place", "off"};
typedef enum { INSPIRE_ON, INSPIRE_LOOSE, INSPIRE_OFF } Inspire;
static const char *const INSPIRES[] = {"on", "loose", "off"};

typedef struct {
    int gamma, K, beta, W, window;
    bool suffixes, warm, drops, verify_filling, keeps_eos;
    Inspire inspiration;
    Refine refine;
} Setting;

typedef struct {
    Watched text; // first: the loop's callbacks get it
    Setting a;
    const Session *session;
    int vocab;
    Session slow_target, slow_draft;
    SlowWindow window;
    SlowPool pool;
    int draft[CONTEXT], drafted, passes; // of the draft model
    int phrases[MOST_K][SLOW_N], tried;  // with the key
    int inspired, refined, gained, short_of_room, dropped, loose;
} Watch;

// A model's argmax after the sequence before the step, the draft's first m tokens and `more` of a phrase.
static int says(Session *model, const Watch *w, int m, const int *more, int n) {
    int whole[CONTEXT + 50];
    memcpy(whole, w->text.sequence, (size_t)w->text.before * sizeof *whole);
    memcpy(whole + w->text.before, w->draft, (size_t)m * sizeof *whole);
    memcpy(whole + w->text.before + m, more, (size_t)n * sizeof *whole);
    return slow_next(model, whole, w->text.before + m + n, NULL);
}

static const int *phrase(const Watch *w, int i) {
    int last = w->drafted ? w->draft[w->drafted - 1] : w->text.sequence[w->text.before - 1];
    return slow_pool_get(&w->pool, last, i);
}

// --- the draft

// Tokens of the phrase that the draft model predicts itself, as far as its context reaches.
static int agrees(Watch *w, const int *tokens) {
    int n = 0, end = w->text.before + w->drafted;
    while (n < w->a.beta - 1 && end + n < w->window.context &&
           tokens[n] == says(&w->slow_draft, w, w->drafted, tokens, n))
        n++;
    return n;
}

static void write_phrase(Watch *w, int room) {
    int best = 0, text[CONTEXT + 1], length = w->text.before + w->drafted, end = w->drafted;
    for (int i = 0; phrase(w, i) && (w->a.verify_filling || !slow_window_is_filling(&w->window)); i++) {
        int n = agrees(w, phrase(w, i) + 1);
        if (n > best) best = n;
    }
    memcpy(text, w->text.sequence, (size_t)w->text.before * sizeof *text);
    memcpy(text + w->text.before, w->draft, (size_t)w->drafted * sizeof *text);
    int words = best + !(w->a.drops && best == w->a.beta - 1);
    for (int i = 0; i < words && end < room; i++, end++)
        w->draft[end] = says(&w->slow_draft, w, end, w->draft, 0);
    slow_window_step(&w->window, text, length, length, &w->pool);
    slow_window_slide(&w->window, 1, text, length);
    w->drafted = end;
    w->passes++;
}

static void write_draft(Watch *w) {
    int room = CONTEXT - w->text.before < w->a.gamma ? CONTEXT - w->text.before : w->a.gamma;
    w->drafted = w->passes = 0;
    while (w->drafted < room && w->text.before + w->drafted <= w->window.context) write_phrase(w, room);
    w->short_of_room += w->drafted < w->a.gamma;
    for (w->tried = 0; w->a.suffixes && w->tried < w->a.K && phrase(w, w->tried); w->tried++)
        memcpy(w->phrases[w->tried], phrase(w, w->tried), (size_t)w->a.beta * sizeof(int));
}

// --- the target's tree

static bool has_room(const Watch *w, int depth) { return w->text.before - 1 + depth < CONTEXT; }

static int walk(const Watch *w, int node, const int *tokens, int n, unsigned char *want) {
    const Tree *t = &w->session->tree;
    int depth = t->depth[node];
    for (int i = 0; i < n; i++) {
        node = tree_child(t, node, tokens[i]);
        if ((node != TREE_NONE) != has_room(w, ++depth))
            fail_msg("token %d of %d behind %d: node %d (gamma %d, K %d, beta %d)", i, n, w->text.before,
                     node, w->a.gamma, w->a.K, w->a.beta);
        if (node == TREE_NONE) break;
        want[node] = 1;
    }
    return node;
}

// Passes of the draft model, except those that read the text again after the step.
static int passes_to_draft(const StepReport *r) {
    int heads = 0;
    for (int i = 0; i < r->pass_count; i++)
        heads +=
            r->passes[i].model == PASS_DRAFT && r->passes[i].a == r->passes[i].b ? r->passes[i].count : 0;
    return heads;
}

static void check_step(const Watch *w, const StepReport *r) {
    const Tree *t = &w->session->tree;
    unsigned char want[NODES] = {1};
    int end = walk(w, 0, w->draft, w->drafted, want), asked = 1 + w->drafted;
    for (int i = 0; i < w->tried; i++) {
        walk(w, end, w->phrases[i] + 1, w->a.beta - 1, want);
        for (int k = 1; k < w->a.beta; k++) asked += has_room(w, w->drafted + k);
    }
    for (int n = 1; n < t->count; n++)
        if (t->canonical[n] == n && !want[n]) fail_msg("node %d, token %d is too many", n, t->token[n]);
    assert_int_equal(r->asked, asked);
    assert_int_equal(r->note.pool, w->pool.count);
    assert_int_equal(r->note.pool_hits, w->tried);
    assert_int_equal(passes_to_draft(r), w->passes);
    assert_true(asked <= 1 + w->a.gamma + w->a.K * (w->a.beta - 1)); // section 2.3
    int seen[MOST_VOCAB] = {0}, at = t->first_proposal[end];
    for (int i = 0; i < w->tried && has_room(w, w->drafted + 1); i++) { // the newest phrase first
        if (seen[w->phrases[i][1]]++) continue;
        assert_int_equal(t->token[t->proposals[at].child], w->phrases[i][1]);
        at = t->proposals[at].next;
    }
    assert_int_equal(at, TREE_NONE);
}

// --- learning

// The paper's i counts from 1, and so does its draft.
static void inspire(Watch *w, int accepted) {
    for (int i = accepted + 2; i <= w->drafted - w->a.beta + 2; i++) {
        int ngram[SLOW_N], same = 0;
        for (int k = 0; k < w->a.beta; k++) ngram[k] = says(&w->slow_target, w, i + k - 1, w->draft, 0);
        while (same < w->a.beta - 1 && ngram[same] == w->draft[i + same - 1]) same++;
        if (same < w->a.beta - 1) continue;
        slow_pool_insert(&w->pool, ngram);
        w->inspired++;
    }
}

// As the authors' add_extra_ngram: the draft's tokens from the wrong one on, and the target's argmax after
// each of them.
static void inspire_loosely(Watch *w, int wrong) {
    int remaining = w->drafted - wrong;
    for (int i = 0; i < remaining; i++) {
        int ngram[SLOW_N] = {w->draft[wrong + i]}, n = 0;
        for (int j = 0; j < w->a.beta - 1 && i + j < remaining; j++) {
            int at = wrong + i + j, said = says(&w->slow_target, w, at + 1, w->draft, 0);
            ngram[++n] = said;
            if (i + j + 1 < remaining && w->draft[at + 1] != said) break;
        }
        if (n < w->a.beta - 1) continue;
        slow_pool_insert(&w->pool, ngram);
        w->loose++;
    }
}

// In place: the corrections of the oldest, written over as many of the newest; after a wrong token the number
// of phrases is divided by their length.
static void refine(Watch *w, bool wrong) {
    bool in_place = w->a.refine == IN_PLACE;
    int count = in_place && wrong ? w->tried / (w->a.beta - 1) : w->tried;
    for (int n = 0; n < count; n++) {
        const int *tried = w->phrases[w->tried - 1 - n];
        int said[SLOW_N] = {tried[0]};
        if (!has_room(w, w->drafted + w->a.beta - 2)) continue;
        for (int k = 1; k < w->a.beta; k++) said[k] = says(&w->slow_target, w, w->drafted, tried + 1, k - 1);
        if (in_place) {
            memcpy((int *)phrase(w, count - 1 - n), said, (size_t)w->a.beta * sizeof *said);
        } else {
            slow_pool_remove(&w->pool, tried);
            slow_pool_insert(&w->pool, said);
        }
        w->refined++;
    }
}

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    int accepted = 0;
    write_draft(w);
    check_step(w, r);
    accepted = r->accepted < w->drafted ? r->accepted : w->drafted;
    if (w->a.inspiration == INSPIRE_ON) inspire(w, accepted);
    if (w->a.inspiration == INSPIRE_LOOSE) inspire_loosely(w, accepted);
    if (w->a.refine == ALWAYS || w->a.refine == IN_PLACE ||
        (w->a.refine == ON_ACCEPT && accepted == w->drafted))
        refine(w, accepted < w->drafted);
    w->gained += r->emitted - 1;
    if (w->a.drops && r->accepted == w->drafted + w->a.beta - 1) {
        assert_in_range(r->emitted, 1, r->accepted);
        w->dropped++;
    }
}

static void decode_watched(Session *s, Method *m, Watch *w, uint64_t seed, Random *r) {
    DecodeOptions o = watched_options(TOKENS, 2, 3, r);
    int eos = test_between(r, 0, w->vocab - 1),
        count = test_between(r, 0, 3) ? test_between(r, 1, 40) : test_between(r, 1, CONTEXT);
    watched_prompt(&w->text, count, w->vocab, r);
    o.eos = &eos;
    o.eos_count = test_between(r, 0, 3) == 0;
    w->window.random = (Random){.seed = seed, .stream = STREAM_METHOD};
    slow_window_start(&w->window, w->text.sequence, count);
    if (!w->a.warm) w->pool.count = 0;
    DecodeResult out = watched_decode(&w->text, on_step, s, m, &o);
    if (sampling_is_greedy(&o.sampling))
        slow_check_greedy(&w->slow_target, w->text.sequence, count, &o, &out);
    decode_result_release(&out);
}

static Setting random_setting(Random *r) {
    return (Setting){.gamma = test_between(r, 0, 4) ? test_between(r, 1, 10) : test_between(r, 1, MOST_GAMMA),
                     .K = test_between(r, 0, MOST_K),
                     .beta = test_between(r, 2, 5),
                     .W = test_between(r, 1, 5),
                     .window = test_between(r, 1, 5),
                     .suffixes = test_between(r, 0, 3),
                     .inspiration = (Inspire)test_between(r, 0, 2),
                     .drops = test_between(r, 0, 1),
                     .verify_filling = test_between(r, 0, 1),
                     .keeps_eos = test_between(r, 0, 1),
                     .warm = test_between(r, 0, 1),
                     .refine = (Refine)test_between(r, 0, 3)};
}

static void open_setting(Method *m, const Setting *a, const MethodEnv *env) {
    char text[300];
    Error e = {0};
    snprintf(text, sizeof text,
             "ouroboros:gamma=%d,K=%d,beta=%d,W=%d,window=%d,suffixes=%s,inspiration=%s,refine=%s,warm=%s,"
             "bonus=%s,verify_while_filling=%s,replace_eos=%s",
             a->gamma, a->K, a->beta, a->W, a->window, a->suffixes ? "on" : "off", INSPIRES[a->inspiration],
             REFINES[a->refine], a->warm ? "on" : "off", a->drops ? "drop" : "keep",
             a->verify_filling ? "on" : "off", a->keeps_eos ? "off" : "on");
    if (!method_open(m, text, env, &e)) fail_msg("'%s': %s", text, e.text);
}

// A draft model that sees one or two tokens differs from the target; one that sees three agrees. Some have
// less context; the ring of all is too short to take the longest drafts back.
static void every_setting(void **state) {
    (void)state;
    static Watch w;
    Random r = test_random(81);
    int inspired = 0, refined = 0, gained = 0, short_of_room = 0, dropped = 0, loose = 0;
    for (int round = 0; round < 300; round++) {
        Session s, draft;
        Method m;
        uint64_t seed = random_bits(&r);
        w = (Watch){.a = random_setting(&r), .session = &s, .vocab = test_between(&r, 2, MOST_VOCAB)};
        int eos = test_between(&r, -1, w.vocab - 1);
        NullSetup target = {.vocab = w.vocab, .context = CONTEXT, .max_nodes = NODES};
        NullSetup small = {.vocab = w.vocab,
                           .context = test_between(&r, 0, 2) ? CONTEXT : test_between(&r, 1, CONTEXT),
                           .window =
                               test_between(&r, 0, 2) ? test_between(&r, 1, 2) : test_between(&r, 3, 12),
                           .max_nodes = NODES};
        null_session_open(&s, &target);
        null_session_open(&draft, &small);
        target.max_nodes = small.max_nodes = 1;
        null_session_open(&w.slow_target, &target);
        null_session_open(&w.slow_draft, &small);
        w.window = (SlowWindow){.W = w.a.window,
                                .N = w.a.beta,
                                .model = &w.slow_draft,
                                .context = small.context,
                                .eos = w.a.keeps_eos ? -1 : eos};
        w.pool = (SlowPool){.N = w.a.beta, .cap = w.a.W};
        MethodEnv env = {.target = &s, .draft = &draft, .seed = seed, .eos = &eos, .eos_count = eos >= 0};
        open_setting(&m, &w.a, &env);
        for (int prompt = 0; prompt < 3; prompt++) decode_watched(&s, &m, &w, seed, &r);
        inspired += w.inspired;
        refined += w.refined;
        gained += w.gained;
        short_of_room += w.short_of_room;
        dropped += w.dropped;
        loose += w.loose;
        method_close(&m);
        session_release(&s);
        session_release(&draft);
        session_release(&w.slow_target);
        session_release(&w.slow_draft);
    }
    print_message("inspired %d, loosely %d, refined %d, gained %d, short drafts %d, dropped %d\n", inspired,
                  loose, refined, gained, short_of_room, dropped);
    assert_true(inspired > 500 && loose > 1000 && refined > 2000 && gained > 3000 && short_of_room > 500 &&
                dropped > 50);
}

// A step may hold less than the method asks for.
static void small_steps(void **state) {
    (void)state;
    Random r = test_random(83);
    int gained = 0;
    for (int round = 0; round < 200; round++) {
        Session s, draft, slow;
        Method m;
        DecodeOptions o = {
            .max_tokens = 30, .sampling.top_p = 1, .merge = test_between(&r, 0, 1), .clock = still_clock()};
        DecodeResult out;
        Setting a = random_setting(&r);
        int prompt[] = {1, 0, 2, 1, 0};
        NullSetup setup = {.vocab = 3, .context = CONTEXT, .max_nodes = test_between(&r, 1, 12)};
        null_session_open(&s, &setup);
        null_session_open(&slow, &setup);
        setup.max_nodes = test_between(&r, 1, 40);
        setup.window = test_between(&r, 2, 3);
        null_session_open(&draft, &setup);
        MethodEnv env = {.target = &s, .draft = &draft, .seed = random_bits(&r)};
        open_setting(&m, &a, &env);
        for (int turn = 0; turn < 2; turn++) {
            assert_true(decode(&s, &m, prompt, 5, &o, &out, NULL));
            slow_check_greedy(&slow, prompt, 5, &o, &out);
            gained += out.tokens - out.steps;
            decode_result_release(&out);
        }
        method_close(&m);
        session_release(&s);
        session_release(&draft);
        session_release(&slow);
    }
    assert_true(gained > 2000);
}

// --- the walk-through

// A model that knows the alphabet: its output depends on a token and its position.
typedef struct {
    int (*say)(int position, int token);
    int token[NODES], position[NODES];
} Script;

static bool script_run(void *self, const StepRun *run, Error *e) {
    (void)e;
    Script *s = self;
    for (int i = run->first; i < run->last; i++) {
        s->token[i] = run->tree->token[i];
        s->position[i] = tree_position(run->tree, i);
    }
    return true;
}

static bool script_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    (void)want, (void)e;
    Script *s = self;
    for (int i = 0; i < count; i++) out->argmax[i] = s->say(s->position[nodes[i]], s->token[nodes[i]]) % 26;
    return true;
}

static bool script_commit(void *self, const int *nodes, const int *slots, int count, Error *e) {
    (void)self, (void)nodes, (void)slots, (void)count, (void)e;
    return true;
}

static void script_nothing(void *self) { (void)self; }

static void script_report(const void *self, BackendReport *out) {
    *out = (BackendReport){.name = "script"};
    (void)self;
}

static const Backend SCRIPT = {.name = "script",
                               .run = script_run,
                               .head = script_head,
                               .commit = script_commit,
                               .reset = script_nothing,
                               .report = script_report,
                               .close = script_nothing};

// "the target model ... will continue the sequence with consecutive letters": the letter of the next place.
static int target_says(int position, int token) {
    (void)token;
    return position + 1;
}

// "while a smaller model might output EFGHIWKLMN": after I comes W, after W K.
static int draft_says(int position, int token) {
    (void)position;
    return token == 'I' - 'A' ? 'W' - 'A' : token == 'W' - 'A' ? 'K' - 'A' : token + 1;
}

static void open_script(Session *s, Script *script) {
    Shape shape = {.layers = 1, .width = 1, .vocab = 26, .real_vocab = 26, .context = 60};
    BackendOptions o = {.max_nodes = NODES};
    session_init(s, &SCRIPT, script, &shape, &o);
}

typedef struct {
    const Session *target;
    char draft[40], emitted[40]; // of the first step
    int steps, count;
} Letters;

static bool note_letter(void *state, int token) {
    Letters *l = state;
    if (l->steps == 0) l->emitted[l->count++] = (char)('A' + token);
    return true;
}

static void note_draft(void *state, const StepReport *r) {
    Letters *l = state;
    const Tree *t = &l->target->tree;
    if (r->number == 0)
        for (int node = t->first_child[0], n = 0; node != TREE_NONE; node = t->first_child[node])
            l->draft[n++] = (char)('A' + t->token[node]);
    l->steps++;
}

// "The target model finds that the next token of I should be J instead of W, so that EFGHIJ can be used as
// generation." The draft after it begins with K: a KLMN that the pool learnt from the tokens after W saves
// the draft model's steps.
static int draft_passes(bool inspiration) {
    static Script target_script, draft_script;
    Session target, draft;
    Method m;
    DecodeResult out;
    Letters l = {.target = &target};
    DecodeOptions o = {
        .max_tokens = 17, .merge = true, .clock = still_clock(), .emit = note_letter, .step = note_draft};
    MethodEnv env = {.target = &target, .draft = &draft};
    o.sampling.top_p = 1;
    o.state = &l;
    target_script.say = target_says;
    draft_script.say = draft_says;
    open_script(&target, &target_script);
    open_script(&draft, &draft_script);
    assert_true(method_open(&m,
                            inspiration ? "ouroboros:gamma=10,K=0,beta=4,W=4,window=1"
                                        : "ouroboros:gamma=10,K=0,beta=4,W=4,window=1,inspiration=off",
                            &env, NULL));
    assert_true(decode(&target, &m, (int[]){0, 1, 2, 3}, 4, &o, &out, NULL));
    assert_string_equal(l.draft, "EFGHIWKLMN");
    assert_string_equal(l.emitted, "EFGHIJ");
    for (int i = 0; i < out.tokens; i++) assert_int_equal(out.ids[i], 4 + i);
    int passes = (int)draft.passes;
    decode_result_release(&out);
    method_close(&m);
    session_release(&target);
    session_release(&draft);
    return passes;
}

static void walk_through(void **state) {
    (void)state;
    int with = draft_passes(true), without = draft_passes(false);
    if (with >= without) fail_msg("%d passes of the draft model with inspiration, %d without", with, without);
}

static void refuses(void **state) {
    (void)state;
    Session target, draft;
    Error e = {0};
    Method m;
    null_session_open(&target, &(NullSetup){.vocab = 24, .masked = 4, .context = CONTEXT});
    null_session_open(&draft, &(NullSetup){.vocab = 20, .context = CONTEXT});
    MethodEnv env = {.target = &target};
    assert_false(method_open(&m, "ouroboros", &env, &e));
    assert_non_null(strstr(e.text, "method 'ouroboros': a draft model is needed"));
    env.draft = &draft;
    assert_false(method_open(&m, "ouroboros:gamma=1000,K=20", &env, &e));
    assert_non_null(strstr(e.text, "make a step of 1121 tokens"));
    assert_int_equal(e.kind, ERROR_INPUT);
    session_release(&target);
    session_release(&draft);
}

// --- real models

static void open_cpu(Session *s, const RandomModel *m, Compute compute) {
    BackendOptions o = {.compute = compute, .context = CONTEXT, .max_nodes = 256, .slack = 16, .threads = 1};
    void *self;
    Error e = {0};
    if (!cpu_open(&m->model, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &cpu_backend, self, &m->model.shape, &o);
}

static void check_settings(Session *target, Session *draft, Random *r, double *gained) {
    static const char *const settings[] = {"ouroboros:gamma=6,K=5,beta=4,W=5,window=5",
                                           "ouroboros:gamma=3,K=3,beta=3,W=8,window=3,mode=reference,warm=on",
                                           "ouroboros:preset=cnn-dm-yi,suffixes=off"};
    int prompt[CONTEXT], count = test_between(r, 1, CONTEXT - 20);
    for (int i = 0; i < count; i++)
        prompt[i] =
            i > 4 && test_between(r, 0, 2) ? prompt[i - 3] : test_between(r, 0, target->shape.vocab - 1);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        MethodEnv env = {.target = target, .draft = draft, .seed = random_bits(r)};
        DecodeOptions o = {.max_tokens = 30, .merge = i % 2 == 0, .clock = still_clock()};
        DecodeResult out;
        Method m;
        assert_true(method_open(&m, settings[i], &env, NULL));
        for (int turn = 0; turn < 2; turn++) {
            assert_true(decode(target, &m, prompt, count, &o, &out, NULL));
            slow_check_greedy(target, prompt, count, &o, &out);
            *gained += out.tokens - out.steps;
            decode_result_release(&out);
        }
        method_close(&m);
    }
}

// The draft model is the target's twin that rounds to bf16, with its own window: its words are nearly right.
static void greedy_output_is_identical(void **state) {
    (void)state;
    Random r = test_random(82);
    double gained = 0;
    for (int i = 0; i < 10; i++) {
        RandomModel model;
        Session target, draft;
        Shape shape = random_shape(&r);
        random_model_init(&model, &shape, DTYPE_BF16, false, &r);
        open_cpu(&target, &model, COMPUTE_F32);
        open_cpu(&draft, &model, COMPUTE_BF16);
        check_settings(&target, &draft, &r, &gained);
        session_release(&target);
        session_release(&draft);
        random_model_release(&model);
    }
    assert_true(gained > 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting),
        cmocka_unit_test(small_steps),
        cmocka_unit_test(walk_through),
        cmocka_unit_test(refuses),
        cmocka_unit_test(greedy_output_is_identical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
