// Mixing: a mix of one method equals the method; two equal methods cost as much as one; rows are shared as in
// mix.c; an adapter follows whichever tokens are accepted; dropped bonuses; refused mixes.
#include "tests/support/check.h"
#include "tests/support/null_session.h"

#include "engine/decode/decode.h"

#include <stdio.h>
#include <string.h>

enum { VOCAB = 4, CONTEXT = 120, PROMPT = 12, TOKENS = 80, LAYER = 1 };

typedef struct {
    Session target, draft;
    NullAdapters adapters;
    MethodEnv env;
    Method method; // of the run; the sources' names of `steps` are its own
    int sequence[CONTEXT + 1], length, before;
    StepReport steps[CONTEXT];
    int count, prefill_chunk;
    void (*look)(void *state, const StepReport *r); // at each step, or NULL
    void *looker;
} World;

static void keep_step(void *state, const StepReport *r) {
    World *w = state;
    w->steps[w->count++] = *r;
    if (w->look) w->look(w->looker, r);
    w->before = w->length;
}

static bool keep_token(void *state, int token) {
    World *w = state;
    w->sequence[w->length++] = token;
    return true;
}

static void open_world(World *w, double temperature) {
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT, .max_nodes = 300};
    *w = (World){0};
    null_session_open(&w->target, &setup);
    setup.window = 4; // sometimes predicts another token
    null_session_open(&w->draft, &setup);
    setup.window = 0;
    null_adapters_open(&w->adapters, &setup);
    w->env = (MethodEnv){.target = &w->target,
                         .draft = &w->draft,
                         .sampling = {.temperature = temperature, .top_p = 1},
                         .seed = 11};
    null_adapters_give(&w->adapters, &w->env);
}

static void close_world(World *w) {
    method_close(&w->method);
    session_release(&w->target);
    session_release(&w->draft);
    null_adapters_close(&w->adapters);
}

static DecodeResult run(World *w, const char *text, int max_rows, Layout layout) {
    DecodeOptions o = {.max_tokens = TOKENS,
                       .sampling = w->env.sampling,
                       .seed = 5,
                       .merge = true,
                       .layout = layout,
                       .max_rows = max_rows,
                       .prefill_chunk = w->prefill_chunk,
                       .clock = still_clock(),
                       .emit = keep_token,
                       .step = keep_step,
                       .state = w};
    static const int prompt[PROMPT] = {1, 3, 0, 1, 3, 2, 0, 1, 3, 1, 2, 3};
    DecodeResult out;
    Error e = {0};
    memcpy(w->sequence, prompt, sizeof prompt);
    w->length = w->before = PROMPT;
    w->count = 0;
    if (!method_open(&w->method, text, &w->env, &e)) fail_msg("'%s': %s", text, e.text);
    if (!decode(&w->target, &w->method, prompt, PROMPT, &o, &out, &e)) fail_msg("'%s': %s", text, e.text);
    return out;
}

// --- one method

static void check_same(const World *a, const World *b, const char *text) {
    assert_int_equal(a->length, b->length);
    assert_memory_equal(a->sequence, b->sequence, (size_t)a->length * sizeof *a->sequence);
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++) {
        const StepReport *x = &a->steps[i], *y = &b->steps[i];
        if (x->rows != y->rows || x->accepted != y->accepted || x->tried != y->tried)
            fail_msg("%s: step %d has %d rows, want %d", text, i, y->rows, x->rows);
        assert_true(x->note.kind == y->note.kind && x->note.pool == y->note.pool &&
                    x->note.pool_hits == y->note.pool_hits);
        assert_int_equal(x->source_count, y->source_count);
        for (int k = 0; k < x->source_count; k++)
            assert_true(x->sources[k].rows == y->sources[k].rows &&
                        x->sources[k].match == y->sources[k].match &&
                        x->sources[k].rank == y->sources[k].rank);
    }
}

static const char *const ALONE[] = {
    "autoregressive",         "jacobi:m=5",
    "prompt-lookup:draft=4",  "ngrammys:k=4,w=3",
    "lookahead:W=4,N=4,G=4",  "lookahead:W=4,N=3,G=4,bonus=drop,prompt_pool=on",
    "speculative:gamma=3",    "speculative:gamma=2,adaptive=heuristic",
    "kangaroo:gamma=3,eta=0", "ouroboros:gamma=4,K=3,beta=3,window=3",
};

static void one_method_is_itself(void **state) {
    (void)state;
    for (int hot = 0; hot < 2; hot++)
        for (size_t i = 0; i < sizeof ALONE / sizeof *ALONE; i++) {
            World alone, mixed;
            char text[ARG_TEXT_SIZE];
            size_t name = strcspn(ALONE[i], ":");
            const char *rest = ALONE[i][name] ? ALONE[i] + name + 1 : "";
            snprintf(text, sizeof text, "mix:%.*s(%s)", (int)name, ALONE[i], rest);
            open_world(&alone, 2 * hot);
            open_world(&mixed, 2 * hot);
            DecodeResult a = run(&alone, ALONE[i], 0, LAYOUT_TREE), b = run(&mixed, text, 0, LAYOUT_TREE);
            check_same(&alone, &mixed, text);
            if (mixed.steps[0].source_count)
                assert_memory_equal(mixed.steps[0].sources[0].name, ALONE[i], name);
            decode_result_release(&a);
            decode_result_release(&b);
            close_world(&alone);
            close_world(&mixed);
        }
}

// --- several

// The same twice: all that is asked for merges.
static void two_alike_cost_one(void **state) {
    (void)state;
    World one, two;
    open_world(&one, 0);
    open_world(&two, 0);
    DecodeResult a = run(&one, "ngrammys:k=5,w=4", 0, LAYOUT_TREE);
    DecodeResult b = run(&two, "mix:ngrammys(k=5,w=4)+ngrammys(k=5,w=4)", 0, LAYOUT_TREE);
    assert_true(a.steps == b.steps && a.rows == b.rows && a.S > 1.2);
    for (int i = 0; i < two.count; i++) assert_int_equal(two.steps[i].asked, 2 * one.steps[i].asked - 1);
    assert_string_equal(two.steps[0].sources[0].name, "ngrammys/context");
    assert_string_equal(two.steps[0].sources[3].name, "ngrammys-2/context");
    for (int k = 0; k < 3; k++) assert_int_equal(b.sources[k].rows, b.sources[3 + k].rows);
    decode_result_release(&a);
    decode_result_release(&b);
    close_world(&one);
    close_world(&two);
}

// Tokens of the chain that begins with the root's i-th proposal.
static int chain_length(const Tree *t, int which) {
    int i = t->first_proposal[0], n = 0;
    while (which-- > 0 && i != TREE_NONE) i = t->proposals[i].next;
    for (; i != TREE_NONE; n++) i = t->first_proposal[t->proposals[i].child];
    return n;
}

typedef struct {
    World *w;
    int rows, share; // of the step; of the first method
    int full;        // steps in which there was all of it
} Budget;

static void look_at_budget(void *state, const StepReport *r) {
    Budget *b = state;
    const Tree *t = &b->w->target.tree;
    if (r->context + b->rows > CONTEXT) return; // the context's edge is nearer
    assert_in_range(r->rows, 1, b->rows);
    if (t->proposals[t->first_proposal[0]].next == TREE_NONE) return; // both begin alike
    if (b->share) assert_int_equal(chain_length(t, 0), b->share);
    assert_int_equal(r->rows, b->rows); // the second takes all that is left
    b->full++;
}

static void rows_are_shared_in_turn(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int max_rows, rows, share;
    } cases[] = {
        {"mix:jacobi(m=70)+jacobi(m=70,start=repeat,refill=fresh),rows=21", 0, 21, 10},
        {"mix:jacobi(m=70)+jacobi(m=70,start=repeat,refill=fresh)", 21, 21, 10},
        {"mix:jacobi(m=70)+jacobi(m=70,start=repeat,refill=fresh),rows=30", 18, 18, 8},
        {"mix:jacobi(m=3)+jacobi(m=70,start=repeat,refill=fresh),rows=21", 0, 21, 3},
        {"mix:of=jacobi(m=70)+prompt-lookup(draft=1)+jacobi(m=70,start=repeat,refill=fresh),rows=13", 0, 13,
         4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        World w;
        Budget b = {&w, cases[i].rows, cases[i].share, 0};
        open_world(&w, 0);
        w.look = look_at_budget;
        w.looker = &b;
        DecodeResult out = run(&w, cases[i].text, cases[i].max_rows, LAYOUT_TREE);
        if (b.full < 5) fail_msg("%s: %d steps", cases[i].text, b.full);
        decode_result_release(&out);
        close_world(&w);
    }
}

// No method exceeds --max-rows, and none loses its output.
static void max_rows_holds_for_all(void **state) {
    (void)state;
    World plain;
    open_world(&plain, 0);
    DecodeResult want = run(&plain, "autoregressive", 0, LAYOUT_TREE);
    for (size_t i = 0; i < sizeof ALONE / sizeof *ALONE; i++)
        for (int rows = 1; rows < 24; rows += rows < 4 ? 1 : 5)
            for (int layout = 0; layout < 2; layout++) {
                World w;
                open_world(&w, 0);
                DecodeResult out = run(&w, ALONE[i], rows, layout ? LAYOUT_BATCH : LAYOUT_TREE);
                for (int k = 0; k < w.count; k++) assert_in_range(w.steps[k].rows, 1, rows);
                assert_int_equal(out.tokens, want.tokens);
                assert_memory_equal(out.ids, want.ids, (size_t)want.tokens * sizeof *want.ids);
                decode_result_release(&out);
                close_world(&w);
            }
    decode_result_release(&want);
    close_world(&plain);
}

// --- an adapter among others

typedef struct {
    World *w;
    Session slow_target, slow;
    int gamma;
    int chains, others; // steps with a chain, those after another method's tokens
    bool other;
    int rests; // steps in which a switch let the first method draft alone, and it did
    bool switched;
} Shallow;

static int adapter_says(Shallow *s, const int *tokens, int n) {
    float row[NULL_WIDTH];
    int said = -1;
    session_reset(&s->slow);
    session_reset(&s->slow_target);
    session_begin_step(&s->slow_target, true, LAYOUT_TREE);
    for (int i = 0, node = TREE_NONE; i < n; i++) {
        Tree *t = &s->slow_target.tree;
        node = i == 0 ? tree_root(t, tokens[0]) : tree_probe(t, node, tokens[i], false);
        assert_true(session_run(&s->slow_target, LAYER, NULL) &&
                    session_get_hidden(&s->slow_target, &node, 1, HIDDEN_RAW, row, NULL));
        session_begin_step(&s->slow, true, LAYOUT_TREE);
        int root = tree_root(&s->slow.tree, tokens[i]);
        assert_true(session_set_hidden(&s->slow, root, 1, row, NULL) &&
                    session_run(&s->slow, s->slow.shape.layers, NULL) &&
                    session_read(&s->slow, HEAD_ARGMAX, NULL));
        said = session_argmax(&s->slow, root);
        assert_true(session_commit(&s->slow, root, 1, NULL));
    }
    return said;
}

// The adapter's chain is the first in the tree, in every step in which it drafts, whichever method's tokens
// came before.
static void look_at_chain(void *state, const StepReport *r) {
    Shallow *s = state;
    const World *w = s->w;
    const Tree *t = &w->target.tree;
    int whole[2 * CONTEXT], node = 0, accepted = 0, room = CONTEXT - w->before;
    if (s->switched && r->sources[0].rows) {
        assert_int_equal(r->sources[1].rows, 0);
        s->rests++;
        return;
    }
    memcpy(whole, w->sequence, (size_t)w->before * sizeof *whole);
    for (int i = 0; i < s->gamma && i < room; i++) {
        int proposal = t->first_proposal[node];
        assert_int_not_equal(proposal, TREE_NONE);
        node = t->proposals[proposal].child;
        int want = adapter_says(s, whole, w->before + i);
        if (t->token[node] != want)
            fail_msg("step %d: guess %d is %d, want %d", r->number, i, t->token[node], want);
        whole[w->before + i] = want;
    }
    for (; accepted < r->emitted - 1 && whole[w->before + accepted] == w->sequence[w->before + accepted];)
        accepted++;
    s->chains++;
    s->others += s->other;
    s->other = accepted < r->emitted - 1;
}

static void an_adapter_follows_others(void **state) {
    (void)state;
    World w;
    NullSetup setup = {.vocab = VOCAB, .context = 2 * CONTEXT}, hidden = setup;
    Shallow s = {.w = &w, .gamma = 2};
    hidden.input = INPUT_HIDDEN;
    null_session_open(&s.slow_target, &setup);
    null_session_open(&s.slow, &hidden);
    for (int layout = 0; layout < 2; layout++) {
        open_world(&w, 0);
        w.look = look_at_chain;
        w.looker = &s;
        s.other = false;
        DecodeResult out = run(&w,
                               "mix:kangaroo(gamma=2,eta=0)+prompt-lookup(draft=6,allow_short=on)+"
                               "ngrammys(k=6,w=3)",
                               0, layout ? LAYOUT_BATCH : LAYOUT_TREE);
        decode_result_release(&out);
        close_world(&w);
    }
    assert_true(s.chains > 30 && s.others > 15);
    for (int layout = 0; layout < 2; layout++) {
        open_world(&w, 0);
        w.look = look_at_chain;
        w.looker = &s;
        s.switched = true;
        DecodeResult out = run(
            &w, "mix:prompt-lookup(draft=6,allow_short=on)+kangaroo(gamma=2,eta=0),switch=match,threshold=3",
            0, layout ? LAYOUT_BATCH : LAYOUT_TREE);
        decode_result_release(&out);
        close_world(&w);
    }
    print_message("%d rests\n", s.rests);
    assert_true(s.rests > 5 && s.chains > 45);
    session_release(&s.slow);
    session_release(&s.slow_target);
}

// Methods that look at each chunk of the prompt, next to one that needs its hidden states.
static void a_prompt_in_chunks_is_the_same(void **state) {
    (void)state;
    static const char *const texts[] = {
        "mix:recycling(prompt=on)+eagle3(total=12,depth=3,top=2)+medusa(nodes=2)",
        "mix:recycling(prompt=on)+eagle(total=12,depth=3,top=2)",
        "mix:recycling(prompt=on)+kangaroo(gamma=3,eta=0)+medusa(nodes=2)",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        World whole, chunks;
        open_world(&whole, 0);
        open_world(&chunks, 0);
        chunks.prefill_chunk = 3;
        DecodeResult a = run(&whole, texts[i], 0, LAYOUT_TREE), b = run(&chunks, texts[i], 0, LAYOUT_TREE);
        check_same(&whole, &chunks, texts[i]);
        assert_true(a.S == b.S && a.S > 1.2);
        decode_result_release(&a);
        decode_result_release(&b);
        close_world(&whole);
        close_world(&chunks);
    }
}

// --- the bonus, and refused mixes

// Lookahead drops the bonus after its own n-grams, whatever the others propose; after theirs it is kept.
static void count_bonuses(const World *w, int *dropped, int *kept) {
    for (int i = 0; i + 1 < w->count; i++) { // not the last, which a limit may cut
        const StepReport *r = &w->steps[i];
        bool whole = r->accepted == 2 && r->sources[1].match == 2;
        if (r->emitted == r->accepted) assert_true(whole);
        *dropped += r->emitted == r->accepted;
        *kept += r->emitted > r->accepted && r->accepted > 0;
    }
}

static void a_bonus_is_dropped_by_its_method(void **state) {
    (void)state;
    int dropped = 0, kept = 0;
    for (uint64_t seed = 0; seed < 30; seed++) {
        World w;
        open_world(&w, 0);
        w.env.seed = seed;
        DecodeResult out =
            run(&w, "mix:prompt-lookup(draft=5)+lookahead(W=5,N=3,G=5,bonus=drop)", 0, LAYOUT_TREE);
        assert_string_equal(w.steps[0].sources[1].name, "lookahead/pool");
        count_bonuses(&w, &dropped, &kept);
        decode_result_release(&out);
        close_world(&w);
    }
    print_message("%d dropped, %d kept\n", dropped, kept);
    assert_true(dropped > 20 && kept > 20);
}

static void refuses(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"mix:", NULL},
        {"mix:ngrammys+jakobi", "method 'mix': there is no method 'jakobi'; did you mean"},
        {"mix:ngrammys+", "there is no method ''"},
        {"mix:ngrammys(k=0)+lookahead", "method 'mix': method 'ngrammys': 'k' is '0'"},
        {"mix:ngrammys(k=1", "close those"},
        {"mix:ngrammys(k=1)w", "'ngrammys(k=1)w' must end with the parenthesis"},
        {"mix:ngrammys,k=1", "there is no parameter 'k'"},
        {"mix:ngrammys,of=jacobi", "'of' is given twice"},
        {"mix:mix+jacobi", "a mix cannot be part of a mix"},
        {"mix:speculative+ouroboros", "speculative and ouroboros cannot share the draft model"},
        {"mix:kangaroo+kangaroo(gamma=2)", "kangaroo and kangaroo cannot share the adapter"},
        {"mix:early-exit+kangaroo", "early-exit and kangaroo cannot share the target's lower layers"},
        {"mix:kangaroo+eagle", "kangaroo and eagle cannot share the prompt's hidden states"},
        {"mix:medusa+eagle+eagle3", "eagle and eagle3 cannot share the prompt's hidden states"},
        {"mix:kangaroo+medusa", NULL},
        {"mix:suffix+speculative,switch=learned", NULL},
        {"mix:suffix,switch=learned", "'switch' is learned, but there is no second method"},
        {"mix:speculative+suffix,switch=match",
         "'switch' is match, but the first method, speculative, doesn't"},
        {"mix:lookahead(ranks=2)+jacobi", "'ranks' is 2, must be 1 in a mix"},
        {"mix:jacobi+jacobi+jacobi+jacobi+jacobi+jacobi+jacobi+jacobi+jacobi", "a mix has 8 methods at most"},
    };
    World w;
    open_world(&w, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Method m;
        Error e = {0};
        bool ok = method_open(&m, bad[i][0], &w.env, &e);
        assert_true(ok == !bad[i][1]);
        if (!ok && !strstr(e.text, bad[i][1]))
            fail_msg("'%s' says '%s', want '%s'", bad[i][0], e.text, bad[i][1]);
        method_close(&m);
    }
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_method_is_itself),
        cmocka_unit_test(two_alike_cost_one),
        cmocka_unit_test(rows_are_shared_in_turn),
        cmocka_unit_test(max_rows_holds_for_all),
        cmocka_unit_test(an_adapter_follows_others),
        cmocka_unit_test(a_prompt_in_chunks_is_the_same),
        cmocka_unit_test(a_bonus_is_dropped_by_its_method),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
