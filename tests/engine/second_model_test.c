// Methods with a second model, on the real CPU backend and small random models: greedy output is that of one
// token per step, whatever the draft, adapter or heads; sampled output has the target's distribution; and an
// adapter's cache equals one built from scratch, bit for bit.
#include "tests/support/check.h"
#include "tests/support/chi_square.h"
#include "tests/support/folder.h"
#include "tests/support/null_session.h"
#include "tests/support/random_model.h"

#include "engine/base/memory.h"
#include "engine/cpu/cpu.h"
#include "engine/decode/decode.h"
#include "engine/model/adapter.h"
#include "engine/model/make/synth.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 120, TOKENS = 40 };

static void open_cpu(Session *s, const Model *m, Compute compute) {
    BackendOptions o = {.compute = compute, .context = CONTEXT, .max_nodes = 100, .slack = 16, .threads = 1};
    void *self;
    Error e = {0};
    if (!cpu_open(m, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &cpu_backend, self, &m->shape, &o);
}

// --- greedy

typedef struct {
    RandomModel model;
    Session target;
    Compute compute;
    int exit_layer;
    const char *folder;
    MethodEnv env;
    int prompt[CONTEXT], count, want, truth[TOKENS];
    double steps, tokens;
} World;

static void random_prompt(World *w, Random *r) {
    w->count = test_between(r, 0, 4) ? test_between(r, 1, CONTEXT - TOKENS) : CONTEXT - test_between(r, 0, 3);
    for (int i = 0; i < w->count; i++) w->prompt[i] = test_between(r, 0, w->target.shape.real_vocab - 1);
    w->want = CONTEXT - w->count < TOKENS ? CONTEXT - w->count : TOKENS;
    slow_greedy(&w->target, w->prompt, w->count, w->want, w->truth);
}

static void check(World *w, const char *text, const char *second, Random *r) {
    Method m;
    DecodeResult out;
    Error e = {0};
    if (!method_open(&m, text, &w->env, &e)) fail_msg("%s: %s", text, e.text);
    for (int prompt = 0; prompt < 2; prompt++) {
        random_prompt(w, r);
        DecodeOptions o = {.max_tokens = TOKENS,
                           .sampling = {.top_p = 1},
                           .seed = random_bits(r),
                           .merge = test_between(r, 0, 1),
                           .layout = test_between(r, 0, 1) ? LAYOUT_TREE : LAYOUT_BATCH,
                           .prefill_chunk = test_between(r, 0, 40),
                           .clock = still_clock()};
        if (!decode(&w->target, &m, w->prompt, w->count, &o, &out, &e)) fail_msg("%s: %s", text, e.text);
        int same = 0;
        while (same < out.tokens && same < w->want && out.ids[same] == w->truth[same]) same++;
        if (out.tokens != w->want || same < w->want)
            fail_msg("%s with %s: %d tokens, %d of them right, want %d (prompt %d, window %d)", text, second,
                     out.tokens, same, w->want, w->count, w->target.shape.window);
        w->steps += out.steps;
        w->tokens += out.tokens;
        decode_result_release(&out);
    }
    method_close(&m);
}

static void check_drafts(World *w, Random *r) {
    static const char *const settings[] = {"speculative", "speculative:gamma=9,adaptive=confidence",
                                           "speculative:adaptive=heuristic,draft_temperature=1",
                                           "ouroboros:gamma=6"};
    RandomModel other;
    Shape shape = random_shape(r);
    const Shape *target =
        &w->model.model.shape; // of which the draft's vocabulary is the start, or more than all
    shape.vocab = target->vocab + test_between(r, target->vocab < 20 ? -target->vocab / 2 : -20, 20);
    shape.real_vocab = shape.vocab < target->real_vocab ? shape.vocab : target->real_vocab;
    random_model_init(&other, &shape, DTYPE_BF16, false, r);
    for (int i = 0; i < 2; i++) { // one that nearly agrees, one that does not
        Session draft;
        Compute unlike = w->compute == COMPUTE_BF16 ? COMPUTE_F32 : COMPUTE_BF16;
        open_cpu(&draft, i ? &other.model : &w->model.model, unlike);
        w->env.draft = &draft;
        for (size_t k = 0; k < sizeof settings / sizeof *settings; k++)
            check(w, settings[k], i ? "another model" : "itself", r);
        if (shape.vocab > 1 && w->model.model.shape.vocab > 1) draft.shape.mask_token = 1;
        check(w, "speculative:gamma=6", i ? "another model" : "itself", r); // in parallel
        session_release(&draft);
    }
    random_model_release(&other);
    w->env.draft = NULL;
}

static void check_adapter(World *w, Random *r) {
    RandomModel adapter;
    Session s;
    random_adapter_init(&adapter, &w->model.model, r);
    open_cpu(&s, &adapter.model, w->compute);
    w->env.adapters[0] = (AdapterSet){.sessions = &s, .count = 1, .layer = w->exit_layer};
    check(w, "kangaroo:eta=0.3", "an adapter that agrees", r);
    check(w, "kangaroo:gamma=4,eta=0", "an adapter that agrees", r);
    check(w, "kangaroo:gamma=4,eta=0,draft_temperature=1", "an adapter that agrees", r);
    session_release(&s);
    random_model_release(&adapter);
}

static void check_variant(World *w, AdapterVariant v, Random *r) {
    Adapter a;
    Session s[ADAPTER_HEADS_MAX];
    Error e = {0};
    bool medusa = v == ADAPTER_MEDUSA;
    int layers = w->model.model.shape.layers, heads = medusa ? test_between(r, 1, 5) : 1;
    AdapterKind kind = {.variant = v, .exit_layer = medusa ? layers : w->exit_layer, .heads = heads};
    const char *dir = folder_path(w->folder, adapter_variant_name(v));
    if (!adapter_synth(dir, &w->model.model, &kind, random_bits(r) >> 1, false, &e)) fail_msg("%s", e.text);
    if (!adapter_open(&a, &w->model.model, dir, &e)) fail_msg("%s", e.text);
    for (int i = 0; i < heads; i++) open_cpu(&s[i], &a.models[i], w->compute);
    w->env.adapters[0] = (AdapterSet){.sessions = s, .count = heads, .layer = kind.exit_layer};
    check(w, medusa ? "medusa:nodes=40" : "kangaroo:eta=0.1", adapter_variant_name(v), r);
    for (int i = 0; i < heads; i++) session_release(&s[i]);
    adapter_close(&a);
}

static void greedy_output_is_identical(void **state) {
    Random r = test_random(90);
    double steps = 0, tokens = 0;
    for (int i = 0; i < test_some(3, 10); i++) {
        World w = {.folder = *state, .compute = (Compute)(i % COMPUTE_KINDS), .env.sampling.top_p = 1};
        Shape shape = random_shape(&r);
        if (shape.layers == 1) shape.layers = 2;
        random_model_init(&w.model, &shape, compute_dtype(w.compute), false, &r);
        w.exit_layer = test_between(&r, 1, shape.layers - 1);
        random_model_calm(&w.model, w.exit_layer);
        open_cpu(&w.target, &w.model.model, w.compute);
        w.env.target = &w.target;
        check_drafts(&w, &r);
        check_adapter(&w, &r);
        steps += w.steps;
        tokens += w.tokens;
        for (int v = ADAPTER_KANGAROO; v <= ADAPTER_MEDUSA; v++) check_variant(&w, (AdapterVariant)v, &r);
        session_release(&w.target);
        random_model_release(&w.model);
    }
    print_message("S with drafts and adapters: %.2f\n", tokens / steps);
    assert_true(tokens > 1.5 * steps);
}

// --- an adapter's cache

// The logits after a row, of a session that holds the rows before it.
static void logits_behind(Session *s, const float *row, float *logits) {
    session_begin_step(s, true, LAYOUT_TREE);
    int root = tree_root(&s->tree, 1);
    assert_true(session_set_hidden(s, root, 1, row, NULL) && session_run(s, s->shape.layers, NULL));
    assert_true(session_read(s, HEAD_ARGMAX | HEAD_LOGITS, NULL));
    memcpy(logits, session_logits(s, root), (size_t)s->shape.vocab * sizeof *logits);
}

// Decodes, then asks the adapter that followed and one that reads everything anew for the same logits.
static void check_cache(World *w, Session *followed, Session *fresh, Random *r) {
    int sequence[CONTEXT], width = w->target.shape.width, vocab = w->target.shape.vocab;
    Method m;
    DecodeResult out;
    DecodeOptions o = {.max_tokens = TOKENS, .sampling = {.top_p = 1}, .merge = true, .clock = still_clock()};
    random_prompt(w, r);
    assert_true(method_open(&m, "kangaroo:gamma=4,eta=0.2", &w->env, NULL));
    assert_true(decode(&w->target, &m, w->prompt, w->count, &o, &out, NULL));
    memcpy(sequence, w->prompt, (size_t)w->count * sizeof *sequence);
    memcpy(sequence + w->count, out.ids, (size_t)out.tokens * sizeof *sequence);
    int held = followed->cache.length;
    assert_in_range(held, w->count + out.tokens - 2, w->count + out.tokens - 1);
    float *rows = mem_new((size_t)(held + 1) * (size_t)width, sizeof *rows),
          *got = mem_new((size_t)vocab, sizeof *got), *want = mem_new((size_t)vocab, sizeof *want);
    assert_true(rows && got && want);
    session_reset(&w->target);
    assert_true(session_prefill(&w->target, sequence, held + 1, 7, w->exit_layer, rows, NULL));
    session_reset(fresh);
    assert_true(session_prefill_hidden(fresh, sequence, held, rows, NULL));
    logits_behind(followed, rows + (size_t)held * (size_t)width, got);
    logits_behind(fresh, rows + (size_t)held * (size_t)width, want);
    assert_memory_equal(got, want, (size_t)vocab * sizeof *got);
    mem_free(rows);
    mem_free(got);
    mem_free(want);
    decode_result_release(&out);
    method_close(&m);
}

static void cached_as_from_scratch(void **state) {
    (void)state;
    Random r = test_random(91);
    for (int i = 0; i < 20; i++) {
        World w = {.compute = i % 2 ? COMPUTE_BF16 : COMPUTE_F32, .env.sampling.top_p = 1};
        Shape shape = random_shape(&r);
        RandomModel adapter;
        Session followed, fresh;
        if (shape.layers == 1) shape.layers = 2;
        random_model_init(&w.model, &shape, DTYPE_F32, false, &r);
        w.exit_layer = test_between(&r, 1, shape.layers - 1);
        random_model_calm(&w.model, w.exit_layer);
        random_adapter_init(&adapter, &w.model.model, &r);
        open_cpu(&w.target, &w.model.model, w.compute);
        open_cpu(&followed, &adapter.model, w.compute);
        open_cpu(&fresh, &adapter.model, w.compute);
        w.env = (MethodEnv){.target = &w.target,
                            .adapters = {{.sessions = &followed, .count = 1, .layer = w.exit_layer}},
                            .sampling = {.top_p = 1}};
        do random_prompt(&w, &r);
        while (w.count + 5 > CONTEXT);
        check_cache(&w, &followed, &fresh, &r);
        session_release(&w.target);
        session_release(&followed);
        session_release(&fresh);
        random_model_release(&w.model);
        random_model_release(&adapter);
    }
}

// --- sampling

enum { VOCAB = 6, WORDS = VOCAB * VOCAB, PROMPT = 5 };

static Shape tiny_shape(void) {
    return (Shape){
        .input = INPUT_TOKENS,
        .layers = 2,
        .width = 8,
        .heads = 2,
        .kv_heads = 1,
        .head_dim = 4,
        .mlp_width = 8,
        .vocab = VOCAB,
        .real_vocab = VOCAB,
        .context = CONTEXT,
        .norm_epsilon = 1e-5f,
        .rope = {.kind = ROPE_PLAIN, .theta = 10000, .factor = 1, .pairs = 2, .attention_factor = 1}};
}

typedef struct {
    int tried, accepted;
} Trials;

static void count_trials(void *state, const StepReport *r) {
    Trials *t = state;
    t->tried += r->tried;
    t->accepted += r->accepted;
}

// Two tokens a draw, each draw with a seed of its own. At least a tenth of what is tried is accepted, and a
// tenth is not; a false alarm has a chance of 1e-6 a setting, and the seeds are fixed.
static void check_words(const MethodEnv *env, const char *text) {
    const int prompt[PROMPT] = {1, 4, 2, 0, 3};
    double chance[WORDS], count[WORDS] = {0};
    Trials trials = {0, 0};
    Method m;
    Error e = {0};
    slow_pair_chances(env->target, &env->sampling, prompt, PROMPT, chance);
    if (!method_open(&m, text, env, &e)) fail_msg("%s: %s", text, e.text);
    const int draws = test_some(3000, 9000);
    for (int i = 0; i < draws; i++) {
        DecodeOptions o = {.max_tokens = 2,
                           .sampling = env->sampling,
                           .seed = (uint64_t)i,
                           .merge = true,
                           .clock = still_clock(),
                           .step = count_trials,
                           .state = &trials};
        DecodeResult out;
        assert_true(decode(env->target, &m, prompt, PROMPT, &o, &out, NULL));
        count[out.ids[0] * VOCAB + out.ids[1]]++;
        decode_result_release(&out);
    }
    method_close(&m);
    double alarm = chi_square(count, chance, WORDS, draws);
    if (alarm < 1e-6) fail_msg("%s: the counts have a chance of %g", text, alarm);
    if (trials.accepted * 10 < trials.tried || (trials.tried - trials.accepted) * 10 < trials.tried)
        fail_msg("%s: %d of %d accepted: nothing is tested", text, trials.accepted, trials.tried);
}

static void sampled_output_has_the_distribution(void **state) {
    static const Sampling samplings[] = {{.temperature = 1.5, .top_p = 1},
                                         {.temperature = 1, .top_k = 5, .top_p = 0.9}};
    Random r = test_random(92);
    Shape shape = tiny_shape();
    RandomModel model, other, adapter;
    Session target, draft, tuned, heads[2], unlike[2];
    RandomModel shorter, longer;
    Adapter medusa;
    AdapterKind kind = {.variant = ADAPTER_MEDUSA, .exit_layer = 2, .heads = 2};
    const char *dir = folder_path(*state, "heads");
    random_model_init(&model, &shape, DTYPE_F32, false, &r);
    random_model_init(&other, &shape, DTYPE_F32, false, &r);
    random_adapter_init(&adapter, &model.model, &r);
    shape.vocab = shape.real_vocab = VOCAB - 2;
    random_model_init(&shorter, &shape, DTYPE_F32, false, &r);
    shape.vocab = VOCAB + 3;
    shape.real_vocab = VOCAB;
    random_model_init(&longer, &shape, DTYPE_F32, false, &r);
    open_cpu(&unlike[0], &shorter.model, COMPUTE_F32);
    open_cpu(&unlike[1], &longer.model, COMPUTE_F32);
    assert_true(adapter_synth(dir, &model.model, &kind, 3, false, NULL) &&
                adapter_open(&medusa, &model.model, dir, NULL));
    open_cpu(&target, &model.model, COMPUTE_F32);
    open_cpu(&draft, &other.model, COMPUTE_F32);
    open_cpu(&tuned, &adapter.model, COMPUTE_F32);
    for (int i = 0; i < 2; i++) open_cpu(&heads[i], &medusa.models[i], COMPUTE_F32);
    for (int i = 0; i < 2; i++) {
        MethodEnv env = {.target = &target,
                         .draft = &draft,
                         .adapters = {{.sessions = &tuned, .count = 1, .layer = 1},
                                      {.sessions = heads, .count = 2, .layer = 2}},
                         .sampling = samplings[i]};
        check_words(&env, "speculative:gamma=2");
        check_words(
            &env, "speculative:gamma=2,draft_temperature=3,draft_top_k=0,draft_top_p=1,adaptive=confidence");
        check_words(&env, "kangaroo:gamma=2,eta=0.4");
        check_words(&env, "medusa:tree=0;1;2;3;4;00;01");
        for (int k = 0; k < 2; k++) { // a draft with less of the vocabulary, one with more
            env.draft = &unlike[k];
            check_words(&env, "speculative:gamma=2");
            check_words(&env, "speculative:tree=2x2");
        }
    }
    session_release(&target);
    session_release(&draft);
    session_release(&tuned);
    for (int i = 0; i < 2; i++) session_release(&heads[i]);
    for (int i = 0; i < 2; i++) session_release(&unlike[i]);
    random_model_release(&shorter);
    random_model_release(&longer);
    adapter_close(&medusa);
    random_model_release(&model);
    random_model_release(&other);
    random_model_release(&adapter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(greedy_output_is_identical, folder_setup, folder_teardown),
        cmocka_unit_test(cached_as_from_scratch),
        cmocka_unit_test_setup_teardown(sampled_output_has_the_distribution, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
