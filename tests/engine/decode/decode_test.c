// The loop on the null backend: random prompts, contexts, windows, limits and ends, every method, both
// layouts, with and without merging. The output is the model's, one token per step, cut by the options; each
// step's report is checked against its tree.
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/test_methods.h"

#include "engine/base/memory.h"
#include "engine/decode/decode.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 160, MOST_EOS = 3 };

// --- a case to decode

typedef struct {
    NullSetup setup;
    int prompt[CONTEXT], count;
    int truth[CONTEXT]; // (CONTEXT - count): the model's continuation, without an end
    int eos[MOST_EOS];
    int stop_after; // tokens after which emit returns false; 0: never
    DecodeOptions o;
} Case;

static void random_prompt(Case *c, Random *r) {
    int room = test_between(r, 0, 9);
    c->count = room < 3 ? CONTEXT - room : room == 3 ? 1 : test_between(r, 1, CONTEXT);
    for (int i = 0; i < c->count; i++) c->prompt[i] = test_between(r, 0, c->setup.vocab - 1);
}

static void random_options(Case *c, Random *r) {
    static const int limits[] = {0, 1, 2, 13, CONTEXT, 100000};
    c->o = (DecodeOptions){.max_tokens = limits[test_between(r, 0, 5)],
                           .eos = c->eos,
                           .eos_count = test_between(r, 0, 2) ? 0 : test_between(r, 1, MOST_EOS),
                           .ignore_eos = test_between(r, 0, 3) == 0,
                           .sampling = {.top_p = 1},
                           .seed = random_bits(r),
                           .layout = test_between(r, 0, 1) ? LAYOUT_TREE : LAYOUT_BATCH,
                           .merge = test_between(r, 0, 1),
                           .prefill_chunk = test_between(r, 0, 40)};
    for (int i = 0; i < MOST_EOS; i++) c->eos[i] = test_between(r, 0, c->setup.vocab - 1);
    c->stop_after = test_between(r, 0, 3) ? 0 : test_between(r, 1, 30);
}

// A prompt with its options and its truth, for the session that is set up.
static void random_request(Case *c, Random *r) {
    Session slow;
    random_prompt(c, r);
    random_options(c, r);
    null_session_open(&slow, &c->setup);
    slow_greedy(&slow, c->prompt, c->count, CONTEXT - c->count, c->truth);
    session_release(&slow);
}

static void random_setup(Case *c, Random *r) {
    *c = (Case){.setup = {.vocab = test_between(r, 2, 12), .context = CONTEXT}};
    if (test_between(r, 0, 1)) c->setup.window = test_between(r, 1, 24);
    if (test_between(r, 0, 2) == 0) c->setup.max_nodes = test_between(r, 1, 24); // steps that fill up
}

static bool is_end(const Case *c, int token) {
    for (int i = 0; i < c->o.eos_count && !c->o.ignore_eos; i++)
        if (c->eos[i] == token) return true;
    return false;
}

// How many tokens of the truth should come out.
static int wanted_tokens(const Case *c) {
    int n = 0, room = CONTEXT - c->count;
    while (n < room && n < c->o.max_tokens) {
        n++;
        if (is_end(c, c->truth[n - 1]) || n == c->stop_after) break;
    }
    return n;
}

// --- the callbacks

typedef struct {
    const Session *session;
    int prompt_count, stop_after;
    int tokens[CONTEXT], count;
    int before; // tokens emitted before the step
    int steps, accepted;
    double rows, ticks;
    double table_rows; // that n-gram tables lacked
    StepReport last;
} Watch;

static double tick(void *state) { return ((Watch *)state)->ticks++; }

static bool on_emit(void *state, int token) {
    Watch *w = state;
    assert_in_range(w->count, 0, CONTEXT - 1);
    w->tokens[w->count++] = token;
    return w->count != w->stop_after;
}

// rows: roots, candidates and probes, those that are both counted once.
static void check_rows(const Tree *t, const StepReport *r) {
    int roots = 0, both = 0, depth = 0;
    for (int i = 0; i < t->count; i++) {
        roots += t->parent[i] == TREE_NONE;
        both += (t->flags[i] & NODE_CANDIDATE) && (t->flags[i] & NODE_PROBE);
        if (t->flags[i] & NODE_CANDIDATE && t->depth[i] > depth) depth = t->depth[i];
    }
    assert_int_equal(r->rows, t->count);
    assert_int_equal(r->rows, roots + r->candidates + r->probes - both);
    assert_int_equal(r->depth, depth);
    assert_true(r->asked >= r->rows);
    if (!t->merge) assert_int_equal(r->asked, r->rows); // only merging saves rows
}

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    assert_int_equal(r->number, w->steps++);
    assert_int_equal(r->context, w->prompt_count - 1 + w->before);
    assert_int_equal(r->emitted, w->count - w->before);
    assert_in_range(r->emitted, 1, r->accepted + 1);
    assert_true(r->accepted <= r->tried && r->accepted <= r->depth);
    assert_true(r->propose_s == 1 && r->forward_s == 1 && r->verify_s == 1 && r->observe_s == 1);
    check_rows(&w->session->tree, r);
    session_assert(w->session);
    w->before = w->count;
    w->rows += r->rows;
    w->table_rows -= r->rows;
    for (int i = 0; i < r->pass_count; i++) {
        const Pass *p = &r->passes[i];
        if (p->model == PASS_TARGET && p->a == 0 && p->b > 0) w->table_rows += p->rows * p->count;
    }
    w->accepted += r->accepted;
    w->last = *r;
}

static void check_result(const Case *c, const Watch *w, const DecodeResult *out) {
    assert_int_equal(out->tokens, w->count);
    assert_int_equal(out->steps, w->steps);
    assert_memory_equal(out->ids, w->tokens, (size_t)w->count * sizeof *w->tokens);
    assert_true(out->S == (w->steps ? (double)w->count / w->steps : 0));
    assert_true(out->S_reference == (w->count + 1.0) / (w->steps + 1.0));
    assert_true(out->rows == w->rows);
    assert_true(out->prefill_s == 2 && out->propose_s == w->steps && out->forward_s == w->steps &&
                out->verify_s == w->steps && out->observe_s == w->steps);
    assert_true(out->device.run == -1 && out->device.head == -1 && out->device.commit == -1);
    assert_int_equal(out->ended_by_eos, w->count && is_end(c, w->tokens[w->count - 1]));
}

static Watch run(Case *c, Session *s, Method *m, DecodeResult *out) {
    Watch w = {.session = s, .prompt_count = c->count, .stop_after = c->stop_after};
    Error e = {0};
    double rows = s->rows;
    c->o.clock = (Clock){tick, &w};
    c->o.emit = on_emit;
    c->o.step = on_step;
    c->o.state = &w;
    c->o.answer = c->truth;
    c->o.answer_count = CONTEXT - c->count;
    if (!decode(s, m, c->prompt, c->count, &c->o, out, &e)) fail_msg("%s: %s", m->info->name, e.text);
    check_result(c, &w, out);
    assert_true(strcmp(m->info->name, "ngrammys") == 0 || strcmp(m->info->name, "mix") == 0
                    ? w.table_rows >= 0
                    : w.table_rows == 0);
    assert_true(s->rows - rows ==
                w.rows + w.table_rows + c->count - 1); // prefill runs all of the prompt but its last token
    return w;
}

static void check_truth(const Case *c, const char *method, const DecodeResult *out) {
    int want = wanted_tokens(c), same = 0;
    while (same < out->tokens && same < want && out->ids[same] == c->truth[same]) same++;
    if (out->tokens != want || same < want)
        fail_msg(
            "%s: %d tokens, %d of them right, want %d (prompt %d of %d, vocabulary %d, window %d, most %d, "
            "layout %d, merge %d, seed %llu)",
            method, out->tokens, same, want, c->count, CONTEXT, c->setup.vocab, c->setup.window,
            c->o.max_tokens, (int)c->o.layout, c->o.merge, (unsigned long long)test_seed());
}

// --- every method gives the model's own output

static const char *const SETTINGS[] = {
    "autoregressive",
    "jacobi:m=1",
    "jacobi:m=20,start=repeat",
    "jacobi:m=5,start=pad,pad=1,refill=fresh",
    "prompt-lookup:match=newest,allow_short=on",
    "prompt-lookup:match=frequent,draft=3,ngram_max=5",
    "prompt-lookup:ngram_min=2,draft=40,allow_short=on",
    "prompt-lookup:preset=hf-4.37",
    "mix:jacobi(m=4)+prompt-lookup+lookahead(W=3,N=3,G=3),rows=20",
    "mix:kangaroo(gamma=3)+speculative(gamma=3)+ngrammys(k=3,w=3)",
    "mix:ouroboros(gamma=4,K=2,beta=3)+medusa(nodes=9),rows=17",
    "eagle:total=9,depth=2,top=3",
    "eagle:tree=static",
    "eagle3:total=30,depth=4,top=2",
    "eagle3:tree=0;1;00;01;000",
    "mix:recycling(prompt=on)+eagle3(total=9,depth=2,top=2)+medusa(nodes=5)",
    "mix:medusa(nodes=5)+kangaroo(gamma=3,eta=0)",
    "mix:eagle(total=12,depth=3,top=3)+prompt-lookup+lookahead(W=3,N=3,G=3)",
    "mix:speculative(gamma=3)+eagle3(depth=3,top=4),rows=25",
};
enum { SETTING_COUNT = sizeof SETTINGS / sizeof *SETTINGS };

// The settings above, then every row of the table by its defaults, where those are enough.
static const char *setting(size_t i) {
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    if (i < SETTING_COUNT) return SETTINGS[i];
    for (size_t k = 0, left = i - SETTING_COUNT; k < count; k++)
        if (!(table[k]->needs & NEEDS_FILE) && left-- == 0) return table[k]->name;
    return NULL;
}

typedef struct {
    Session target, draft;
    NullAdapters adapters;
    MethodEnv env;
} World;

static void open_world(World *w, const NullSetup *setup, uint64_t seed) {
    null_session_open(&w->target, setup);
    null_session_open(&w->draft, setup);
    null_adapters_open(&w->adapters, setup);
    w->env = (MethodEnv){.target = &w->target, .draft = &w->draft, .sampling = {.top_p = 1}, .seed = seed};
    null_adapters_give(&w->adapters, &w->env);
}

static void close_world(World *w) {
    session_release(&w->target);
    session_release(&w->draft);
    null_adapters_close(&w->adapters);
}

static void check_method(Case *c, World *w, const char *text) {
    Method m;
    DecodeResult out;
    Error e = {0};
    if (!method_open(&m, text, &w->env, &e)) fail_msg("%s: %s", text, e.text);
    for (int again = 0; again < 2; again++) { // a second time on the same session and method
        run(c, &w->target, &m, &out);
        check_truth(c, text, &out);
        if (strcmp(text, "autoregressive") == 0) assert_true(out.tokens == 0 || out.S == 1);
        decode_result_release(&out);
    }
    method_close(&m);
}

static void check_test_methods(Case *c, World *w, Random *r) {
    DecodeResult out;
    Oracle oracle = {c->truth, CONTEXT - c->count, test_between(r, 1, 30), 0};
    Scatter scatter = {.truth = test_between(r, 0, 4) ? c->truth : NULL,
                       .truth_count = CONTEXT - c->count,
                       .seed = random_bits(r),
                       .vocab = c->setup.vocab,
                       .deep = test_between(r, 0, 1),
                       .drops_bonus = test_between(r, 0, 1)};
    Method o = oracle_method(&oracle), s = scatter_method(&scatter);
    run(c, &w->target, &o, &out);
    check_truth(c, "oracle", &out);
    decode_result_release(&out);
    run(c, &w->target, &s, &out);
    check_truth(c, "scatter", &out);
    decode_result_release(&out);
}

static void every_method_is_lossless(void **state) {
    (void)state;
    Random r = test_random(40);
    for (int round = 0; round < 400; round++) {
        Case c;
        World w;
        random_setup(&c, &r);
        random_request(&c, &r);
        open_world(&w, &c.setup, random_bits(&r));
        for (size_t i = 0; setting(i); i++) check_method(&c, &w, setting(i));
        check_test_methods(&c, &w, &r);
        close_world(&w);
    }
}

// Several prompts one after another on one session and one method.
static void prompts_follow_one_another(void **state) {
    (void)state;
    Random r = test_random(41);
    const char *text;
    for (size_t i = 0; (text = setting(i)) != NULL; i++) {
        World w;
        Method m;
        Case c;
        random_setup(&c, &r);
        open_world(&w, &c.setup, 7);
        assert_true(method_open(&m, text, &w.env, NULL));
        for (int prompt = 0; prompt < 20; prompt++) {
            DecodeResult out;
            random_request(&c, &r);
            run(&c, &w.target, &m, &out);
            check_truth(&c, text, &out);
            decode_result_release(&out);
        }
        method_close(&m);
        close_world(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_is_lossless),
        cmocka_unit_test(prompts_follow_one_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
