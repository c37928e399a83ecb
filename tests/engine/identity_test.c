// The promise of the whole engine, on the real CPU backend: greedy output of every method is that of one
// token a step, id for id, for any model, window, layout and compute; sampled output has the model's
// distribution. The models are small and random.
#include "tests/support/check.h"
#include "tests/support/chi_square.h"
#include "tests/support/null_session.h"
#include "tests/support/random_model.h"
#include "tests/support/test_methods.h"

#include "engine/base/memory.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/kernels/ops.h"
#include "engine/decode/decode.h"

#include <string.h>

enum { CONTEXT = 180, TOKENS = 48 };

static void open_cpu(Session *s, const RandomModel *m, Compute compute, const char *isa) {
    BackendOptions o = {
        .compute = compute, .context = CONTEXT, .max_nodes = 200, .slack = 16, .threads = 1, .isa = isa};
    void *self;
    Error e = {0};
    if (!cpu_open(&m->model, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &cpu_backend, self, &m->model.shape, &o);
}

// --- greedy

typedef struct {
    Session session;
    Shape shape;
    int prompt[CONTEXT], count, want; // tokens that should come out
    int truth[TOKENS];
    DecodeOptions o;
    double steps, tokens; // of all runs that propose
} World;

// Words come back, as in a text: methods that look back have something to find.
static void random_prompt(World *w, Random *r) {
    w->count =
        test_between(r, 0, 5) ? test_between(r, 1, CONTEXT - TOKENS / 2) : CONTEXT - test_between(r, 0, 2);
    for (int i = 0; i < w->count; i++) {
        bool again = i > 4 && test_between(r, 0, 3);
        w->prompt[i] = again ? w->prompt[i - test_between(r, 1, 4)] : test_between(r, 0, w->shape.vocab - 1);
    }
    w->want = CONTEXT - w->count < TOKENS ? CONTEXT - w->count : TOKENS;
    slow_greedy(&w->session, w->prompt, w->count, w->want, w->truth);
}

static void random_options(World *w, Random *r) {
    w->o = (DecodeOptions){.max_tokens = TOKENS,
                           .sampling = {.top_p = 1},
                           .merge = test_between(r, 0, 1),
                           .layout = test_between(r, 0, 1) ? LAYOUT_TREE : LAYOUT_BATCH,
                           .prefill_chunk = test_between(r, 0, 60),
                           .clock = still_clock()};
}

static void check_method(World *w, Method *m, const char *name) {
    DecodeResult out;
    Error e = {0};
    int same = 0;
    if (!decode(&w->session, m, w->prompt, w->count, &w->o, &out, &e)) fail_msg("%s: %s", name, e.text);
    while (same < out.tokens && same < w->want && out.ids[same] == w->truth[same]) same++;
    if (out.tokens != w->want || same < w->want)
        fail_msg("%s: %d tokens, %d of them right, want %d (prompt %d, window %d, vocabulary %d, layout %d, "
                 "merge %d, seed %llu)",
                 name, out.tokens, same, w->want, w->count, w->shape.window, w->shape.vocab, (int)w->o.layout,
                 w->o.merge, (unsigned long long)test_seed());
    w->steps += out.steps;
    w->tokens += out.tokens;
    decode_result_release(&out);
}

static void check_prompt(World *w, Random *r) {
    static const char *const settings[] = {
        "jacobi",
        "jacobi:m=20,start=repeat",
        "prompt-lookup",
        "lookahead:W=5,N=4,G=5",
        "lookahead:W=10,N=3,G=4,mode=reference,prompt_pool=on",
        "lookahead:W=3,N=5,G=7,ranks=3,slide=accepted,pool_scope=conversation",
        "prompt-lookup:match=newest,allow_short=on",
        "prompt-lookup:match=frequent,draft=4,ngram_max=2"};
    MethodEnv env = {.target = &w->session, .seed = random_bits(r)};
    Scatter scatter = {.truth = w->truth,
                       .truth_count = w->want,
                       .seed = random_bits(r),
                       .vocab = w->shape.vocab,
                       .deep = true};
    Method m = scatter_method(&scatter);
    check_method(w, &m, "scatter");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        assert_true(method_open(&m, settings[i], &env, NULL));
        check_method(w, &m, settings[i]);
        method_close(&m);
    }
    double steps = w->steps, tokens = w->tokens;
    assert_true(method_open(&m, "autoregressive", &env, NULL));
    check_method(w, &m, "autoregressive");
    method_close(&m);
    assert_true(w->steps - steps == w->tokens - tokens); // S = 1
    w->steps = steps;
    w->tokens = tokens;
}

// 25 models with four prompts each, on every kind of window.
static void greedy_output_is_identical(void **state) {
    (void)state;
    enum { MODELS = 25, PROMPTS = 4 };
    Random r = test_random(70);
    double steps = 0, tokens = 0;
    int windows = 0;
    for (int i = 0; i < MODELS; i++) {
        RandomModel m;
        World w = {.shape = random_shape(&r)};
        Compute compute = (Compute)(i % COMPUTE_KINDS);
        random_model_init(&m, &w.shape, compute_dtype(compute), false, &r);
        open_cpu(&w.session, &m, compute, NULL);
        windows += w.shape.window > 0;
        for (int k = 0; k < PROMPTS; k++) {
            random_prompt(&w, &r);
            random_options(&w, &r);
            check_prompt(&w, &r);
        }
        steps += w.steps;
        tokens += w.tokens;
        session_release(&w.session);
        random_model_release(&m);
    }
    print_message("S over all methods that propose: %.2f\n", tokens / steps);
    assert_true(tokens > 1.3 * steps && windows > MODELS / 4);
}

// --- ties

// The second half of the vocabulary has the rows of the first: it can never win.
static void double_the_head(RandomModel *m) {
    const Tensor *head = &m->model.head;
    size_t half = tensor_bytes(head) / 2;
    unsigned char *rows = m->weights + ((const unsigned char *)head->data - m->weights);
    memcpy(rows + half, rows, half);
}

static void check_ties(Session *s, Random *r) {
    enum { TOP = 7 };
    int vocab = s->shape.vocab, sequence[20], ids[TOP], root = 0;
    float best[TOP], *logits = mem_new((size_t)vocab, sizeof *logits);
    for (int i = 0; i < 20; i++) sequence[i] = test_between(r, 0, vocab - 1);
    int argmax = slow_next(s, sequence, 20, logits);
    assert_in_range(argmax, 0, vocab / 2 - 1);
    assert_memory_equal(logits, logits + vocab / 2, (size_t)(vocab / 2) * sizeof *logits);
    for (int i = 0; i < vocab; i++) assert_true(logits[i] <= logits[argmax]);
    assert_true(session_top(s, &root, 1, TOP, ids, best, NULL));
    assert_int_equal(ids[0], argmax);
    for (int i = 1; i < TOP; i++)
        assert_true(best[i] < best[i - 1] || (best[i] == best[i - 1] && ids[i] > ids[i - 1]));
    assert_int_equal(ids[1], argmax + vocab / 2);
    mem_free(logits);
}

static void ties_go_to_the_lowest_id(void **state) {
    (void)state;
    Random r = test_random(71);
    for (int round = 0; round < 20; round++) {
        Shape shape = random_shape(&r);
        RandomModel m;
        shape.vocab = shape.real_vocab = shape.vocab / 2 * 2;
        shape.head_bias = false; // the halves would differ
        shape.context = CONTEXT;
        random_model_init(&m, &shape, DTYPE_BF16, false, &r);
        double_the_head(&m);
        for (size_t i = 0; i < cpu_ops_count(); i++) {
            Session s;
            bool available;
            const char *set = cpu_ops_at(i, &available)->name;
            if (!available) continue;
            open_cpu(&s, &m, round % 2 ? COMPUTE_BF16 : COMPUTE_F32, set);
            check_ties(&s, &r);
            session_release(&s);
        }
        random_model_release(&m);
    }
}

// --- sampling

enum { VOCAB = 6, WORDS = VOCAB * VOCAB, PROMPT = 8, DRAWS = 15000 };

// A flat little model: every token has its chance.
static void open_tiny(Session *s, RandomModel *m, Random *r) {
    Shape shape = {
        .input = INPUT_TOKENS,
        .layers = 1,
        .width = 8,
        .heads = 2,
        .kv_heads = 1,
        .head_dim = 4,
        .mlp_width = 8,
        .vocab = VOCAB,
        .real_vocab = VOCAB,
        .context = 64,
        .norm_epsilon = 1e-5f,
        .rope = {.kind = ROPE_PLAIN, .theta = 10000, .factor = 1, .pairs = 2, .attention_factor = 1}};
    random_model_init(m, &shape, DTYPE_F32, false, r);
    open_cpu(s, m, COMPUTE_F32, NULL);
}

// A prompt whose end stood before, followed by the token that the model finds likelier now than any other
// would be in its place.
static void likely_prompt(Session *s, const Sampling *sampling, int *prompt) {
    double p[VOCAB], most = 0;
    int best = 0;
    memcpy(prompt, (int[PROMPT]){1, 4, 2, 0, 0, 1, 4, 2}, PROMPT * sizeof *prompt);
    for (int i = 0; i < VOCAB; i++) {
        prompt[3] = i;
        slow_chances(s, sampling, prompt, PROMPT, p);
        if (p[i] <= most) continue;
        best = i;
        most = p[i];
    }
    prompt[3] = best;
}

// Two tokens, the seed's.
static void draw(Session *s, Method *m, const Sampling *sampling, const int *prompt, uint64_t seed, int *ids,
                 int *steps) {
    DecodeOptions o = {
        .max_tokens = 2, .sampling = *sampling, .seed = seed, .merge = true, .clock = still_clock()};
    DecodeResult out;
    assert_true(decode(s, m, prompt, PROMPT, &o, &out, NULL));
    assert_int_equal(out.tokens, 2);
    memcpy(ids, out.ids, 2 * sizeof *ids);
    *steps += out.steps;
    decode_result_release(&out);
}

// A false alarm has a chance of 1e-6 a sampling; the seeds are fixed. What top-k or top-p cut off has the
// chance 0 and may never come.
static void sampled_lookup_has_the_distribution(void **state) {
    (void)state;
    static const Sampling samplings[] = {{.temperature = 1.5, .top_p = 1},
                                         {.temperature = 1.2, .top_k = 5, .top_p = 0.9}};
    int prompt[PROMPT];
    Random r = test_random(72);
    Session s;
    RandomModel model;
    open_tiny(&s, &model, &r);
    likely_prompt(&s, &samplings[0], prompt);
    MethodEnv env = {.target = &s};
    Method m;
    assert_true(method_open(&m, "prompt-lookup:draft=3", &env, NULL));
    for (int i = 0; i < 2; i++) {
        double chance[WORDS], count[WORDS] = {0};
        int steps = 0, ids[2];
        slow_pair_chances(&s, &samplings[i], prompt, PROMPT, chance);
        for (int k = 0; k < DRAWS; k++) {
            draw(&s, &m, &samplings[i], prompt, (uint64_t)k, ids, &steps);
            count[ids[0] * VOCAB + ids[1]]++;
        }
        double alarm = chi_square(count, chance, WORDS, DRAWS);
        if (alarm < 1e-6) fail_msg("sampling %d: the counts have a chance of %g", i, alarm);
        assert_true(steps < 2 * DRAWS - DRAWS / 50); // something was accepted
    }
    method_close(&m);
    session_release(&s);
    random_model_release(&model);
}

static void a_seed_repeats(void **state) {
    (void)state;
    Random r = test_random(73);
    Session s;
    RandomModel model;
    open_tiny(&s, &model, &r);
    MethodEnv env = {.target = &s};
    Method m;
    int different = 0, prompt[] = {1, 2, 5}, first[40] = {0};
    assert_true(method_open(&m, "autoregressive", &env, NULL));
    for (int i = 0; i < 40; i++) { // each seed twice
        DecodeOptions o = {.max_tokens = 40,
                           .sampling = {.temperature = 5, .top_p = 1}, // flat, whatever the model
                           .seed = (uint64_t)i / 2,
                           .merge = true,
                           .clock = still_clock()};
        DecodeResult out;
        assert_true(decode(&s, &m, prompt, 3, &o, &out, NULL));
        bool same = memcmp(first, out.ids, sizeof first) == 0;
        if (i % 2) assert_true(same);
        else different += !same;
        memcpy(first, out.ids, sizeof first);
        decode_result_release(&out);
    }
    assert_int_equal(different, 20);
    method_close(&m);
    session_release(&s);
    random_model_release(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_output_is_identical),
        cmocka_unit_test(ties_go_to_the_lowest_id),
        cmocka_unit_test(sampled_lookup_has_the_distribution),
        cmocka_unit_test(a_seed_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
