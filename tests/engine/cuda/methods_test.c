// Methods on the CUDA backend, whose kernels run on the CPU (tests/simt): greedy output is that of one token
// a step, for methods with and without a second model beside the target, in either layout. Adapters of every
// variant lack some weights of a layer, and read hidden states. With the target's layers on two and three
// cards, and its draft or adapter on any of them, output is that of one.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/null_session.h"
#include "tests/support/random_model.h"
#include "tests/simt/settings.h"

#include "engine/cuda/cuda.h"
#include "engine/cuda/kernels/runtime.h"
#include "engine/decode/decode.h"
#include "engine/model/adapter.h"
#include "engine/model/make/synth.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONTEXT = 64, PROMPT = 9, TOKENS = 8 };

typedef struct {
    RandomModel model;
    Session target;
    Compute compute;
    int cards;
    MethodEnv env;
    int prompt[PROMPT], truth[TOKENS], runs;
    double rows; // of the last run
} World;

static void open_cuda(Session *s, const Model *m, Compute compute, const Cards *on, void *beside) {
    BackendOptions o = {
        .cards = *on, .compute = compute, .context = CONTEXT, .max_nodes = 48, .slack = 16, .beside = beside};
    void *self;
    Error e = {0};
    if (!cuda_open(m, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &cuda_backend, self, &m->shape, &o);
}

static const Cards ONE = {1, {0}}, ALL[] = {{1, {0}}, {2, {1, 0}}, {3, {0, 2, 1}}};

// Of several cards: what they must give is what one does.
static void world_open(World *w, Compute compute, int cards, Random *r) {
    Shape shape = random_dense_shape(r);
    shape.layers = cards > 1 ? 3 : 2;
    *w = (World){.compute = compute, .cards = cards, .env.sampling.top_p = 1};
    random_model_init(&w->model, &shape, compute_dtype(compute), false, r);
    random_model_calm(&w->model, 1);
    open_cuda(&w->target, &w->model.model, compute, &ONE, NULL);
    w->env.target = &w->target;
    for (int i = 0; i < PROMPT; i++)
        w->prompt[i] = i < 5 ? test_between(r, 0, shape.real_vocab - 1) : w->prompt[i - 4];
    slow_greedy(&w->target, w->prompt, PROMPT, TOKENS, w->truth);
    if (cards == 1) return;
    session_release(&w->target);
    open_cuda(&w->target, &w->model.model, compute, &ALL[cards - 1], NULL);
}

static void world_close(World *w) {
    session_release(&w->target);
    random_model_release(&w->model);
}

static void check(World *w, const char *method) {
    Method m;
    DecodeResult out;
    Error e = {0};
    DecodeOptions o = {.max_tokens = TOKENS,
                       .ignore_eos = true,
                       .sampling = {.top_p = 1},
                       .merge = true,
                       .layout = w->runs % 2 ? LAYOUT_BATCH : LAYOUT_TREE,
                       .prefill_chunk = w->runs % 3 * 4,
                       .clock = still_clock()};
    simt_settings.order = (SimtOrder)(w->runs++ % SIMT_ORDERS);
    if (!method_open(&m, method, &w->env, &e) || !decode(&w->target, &m, w->prompt, PROMPT, &o, &out, &e))
        fail_msg("%s: %s", method, e.text);
    assert_int_equal(out.tokens, TOKENS);
    for (int i = 0; i < TOKENS; i++)
        if (out.ids[i] != w->truth[i])
            fail_msg("%s: token %d is %d, wanted %d", method, i, out.ids[i], w->truth[i]);
    w->rows = out.rows;
    decode_result_release(&out);
    method_close(&m);
}

static const char *const METHODS[] = {[ADAPTER_KANGAROO] = "kangaroo:eta=0.1",
                                      [ADAPTER_WITH_HEAD] = "kangaroo:eta=0.1",
                                      [ADAPTER_ONE_LAYER] = "kangaroo:eta=0.1",
                                      [ADAPTER_MLP] = "kangaroo:eta=0.1",
                                      [ADAPTER_MEDUSA] = "medusa:nodes=12",
                                      [ADAPTER_EAGLE] = "eagle:total=9,depth=3,top=3",
                                      [ADAPTER_MTP] = "mtp:gamma=3,top=2,total=9,state=raw,recycle=normed",
                                      [ADAPTER_EAGLE3] = "eagle3:total=9,depth=2,top=3",
                                      [ADAPTER_DFLASH] = "dflash"};

// Guesses that the card makes by itself are those of one that waits for each level.
static void check_ahead(World *w, Session *draft, const char *method) {
    static Backend waits;
    check(w, method);
    double rows = w->rows;
    waits = cuda_backend;
    waits.chain = NULL;
    waits.grow = NULL;
    draft->backend = &waits;
    w->runs--; // the same layout
    check(w, method);
    draft->backend = &cuda_backend;
    if (rows != w->rows) fail_msg("%s: %g rows, wanted %g", method, rows, w->rows);
}

// beside: the target's states stay on the device, else they go over the host.
static void check_variant(World *w, AdapterVariant v, bool beside, const char *folder, Random *r) {
    Adapter a;
    Session s[ADAPTER_HEADS_MAX];
    Error e = {0};
    bool medusa = v == ADAPTER_MEDUSA;
    AdapterKind kind = {.variant = v,
                        .exit_layer = v >= ADAPTER_MEDUSA ? w->model.model.shape.layers : 1,
                        .heads = medusa ? 2 : 1,
                        .layers = v == ADAPTER_DFLASH ? 2 : 0,
                        .normed_heads = v == ADAPTER_DFLASH,
                        .block = {5, true, MARKOV_GATED, 3, CONFIDENCE_TOKEN},
                        .mask = v == ADAPTER_DFLASH};
    const char *dir = folder_path(folder, adapter_variant_name(v));
    if (!adapter_synth(dir, &w->model.model, &kind, random_bits(r) >> 1, true, &e) ||
        !adapter_open(&a, &w->model.model, dir, &e))
        fail_msg("%s", e.text);
    for (int i = 0; i < kind.heads; i++)
        open_cuda(&s[i], &a.models[i], w->compute, &(Cards){1, {w->runs % w->cards}},
                  beside ? w->target.self : NULL);
    w->env.adapters[0] =
        (AdapterSet){s, kind.heads, kind.exit_layer, &a.captures, a.draft_ids, a.mask_states, false};
    if (v == ADAPTER_EAGLE || v == ADAPTER_EAGLE3) check_ahead(w, s, METHODS[v]);
    else check(w, METHODS[v]);
    if (v == ADAPTER_MTP) check_ahead(w, s, "mtp:gamma=3,top=2,total=9");
    if (v == ADAPTER_EAGLE) check_ahead(w, s, beside ? "eagle:total=4,depth=3,top=1" : "eagle:tree=1x1x1");
    if (v == ADAPTER_EAGLE3) check_ahead(w, s, beside ? "eagle3:tree=1x1x1" : "eagle3:total=4,depth=3,top=1");
    for (int i = 0; i < kind.heads; i++) session_release(&s[i]);
    adapter_close(&a);
}

// A draft with a shorter vocabulary, or a longer one.
static void check_unlike(World *w, int more, Random *r) {
    RandomModel model;
    Session draft;
    const Shape *target = &w->model.model.shape;
    Shape shape = *target;
    shape.vocab += more;
    shape.real_vocab = shape.vocab < target->real_vocab ? shape.vocab : target->real_vocab;
    random_model_init(&model, &shape, DTYPE_BF16, false, r);
    open_cuda(&draft, &model.model, w->compute, &(Cards){1, {0}}, w->target.self);
    w->env.draft = &draft;
    check(w, "speculative:gamma=3,draft_temperature=1");
    session_release(&draft);
    random_model_release(&model);
}

static void check_all(Compute i, int cards, const char *folder, Random *r) {
    static const char *const alone[] = {"jacobi", "prompt-lookup:draft=4", "lookahead:W=4,N=3,G=3"};
    World w;
    Session draft;
    world_open(&w, i, cards, r);
    for (size_t k = 0; k < sizeof alone / sizeof *alone && cards != 2; k++) check(&w, alone[k]);
    open_cuda(&draft, &w.model.model, i == COMPUTE_BF16 ? COMPUTE_F32 : COMPUTE_BF16,
              &(Cards){1, {cards - 1}}, w.target.self);
    w.env.draft = &draft;
    check(&w, "speculative:gamma=3");
    draft.shape.mask_token = 1;
    check(&w, "speculative:gamma=5,parallel=on");
    draft.shape.mask_token = 0;
    check(&w, "early-exit:exit_layer=1,gamma=3");
    check(&w, "early-exit:exit_layer=1,gamma=3,draft_temperature=1");
    if (cards == 2) {
        check(&w, "ngrammys:k=3,w=3");
        check(&w, "ouroboros:gamma=3,K=2,beta=2,W=2,window=2");
        check(&w, "mix:jacobi+ngrammys(k=2,w=2)+speculative(gamma=2),rows=9");
    }
    session_release(&draft);
    if (cards == 1) check_unlike(&w, i == COMPUTE_F32 ? 7 : -9, r);
    w.env.draft = NULL;
    for (int v = cards == 2 ? ADAPTER_MEDUSA : ADAPTER_KANGAROO;
         v <= (i == COMPUTE_F16 ? ADAPTER_KANGAROO : ADAPTER_DFLASH); v++)
        check_variant(&w, (AdapterVariant)v, (int)i == v % 2, folder, r);
    world_close(&w);
    assert_int_equal(simt_live_bytes(), 0);
}

static void greedy_output_is_identical(void **state) {
    Random r = test_random(94);
    for (Compute i = COMPUTE_F32; i < COMPUTE_INT8; i++)
        if (test_long() || i == COMPUTE_BF16) check_all(i, 1, *state, &r);
}

static void and_on_several_cards(void **state) {
    Random r = test_random(95);
    int there;
    setenv("OUTPACE_FAKE_GPUS", "90,90,90", 1); // real ones are as many as there are
    assert_int_equal(gpu_count(&there), 0);
    for (int cards = 2; cards <= test_some(2, 3) && cards <= there; cards++)
        check_all(cards % 2 ? COMPUTE_BF16 : COMPUTE_F32, cards, *state, &r);
    unsetenv("OUTPACE_FAKE_GPUS");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(greedy_output_is_identical, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(and_on_several_cards, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
