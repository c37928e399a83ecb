// Sampling with the CUDA backend, whose kernels run on the CPU (tests/simt): every method gives the tokens
// that it gives where the same backend hands out logits and the host draws; and a tree of more rows than a
// panel has, whose distributions are asked for one by one.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/null_session.h"
#include "tests/support/random_model.h"
#include "tests/simt/settings.h"

#include "engine/core/draws.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/kernels/kernels.h"
#include "engine/decode/decode.h"
#include "engine/model/adapter.h"
#include "engine/model/make/synth.h"

#include <math.h>
#include <string.h>

enum { CONTEXT = 64, PROMPT = 9, TOKENS = 6, NODES = PANEL_ROWS + 9, MOST_VOCAB = 512, MOST_WIDTH = 512 };

typedef struct {
    RandomModel model;
    Session target;
    Compute compute;
    MethodEnv env;
    int prompt[PROMPT], runs;
    double accepted, tried; // where the device draws
} World;

static void open_cuda(Session *s, const Model *m, Compute compute) {
    BackendOptions o = {.compute = compute, .context = CONTEXT, .max_nodes = NODES, .slack = 16};
    void *self;
    Error e = {0};
    if (!cuda_open(m, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &cuda_backend, self, &m->shape, &o);
}

static void world_open(World *w, Compute compute, Random *r) {
    Shape shape = random_dense_shape(r);
    Dtype dtype = compute == COMPUTE_BF16 ? DTYPE_BF16 : DTYPE_F32;
    shape.layers = 2;
    shape.real_vocab = shape.vocab - 5;
    *w = (World){.compute = compute};
    random_model_init(&w->model, &shape, dtype, false, r);
    random_model_calm(&w->model, 1);
    open_cuda(&w->target, &w->model.model, compute);
    w->env.target = &w->target;
    for (int i = 0; i < PROMPT; i++)
        w->prompt[i] = i < 4 ? test_between(r, 0, shape.real_vocab - 1) : w->prompt[i - 4];
}

static void world_close(World *w) {
    session_release(&w->target);
    random_model_release(&w->model);
}

// --- methods

static void count_trials(void *state, const StepReport *r) {
    World *w = state;
    w->accepted += r->accepted;
    w->tried += r->tried;
}

static void let_draw(World *w, const Backend *b) {
    w->target.backend = b;
    if (w->env.draft) w->env.draft->backend = b;
    for (int i = 0; i < w->env.adapters[0].count; i++) w->env.adapters[0].sessions[i].backend = b;
}

static void run(World *w, const char *method, Verification verification, DecodeResult *out) {
    Method m;
    Error e = {0};
    DecodeOptions o = {.max_tokens = TOKENS,
                       .ignore_eos = true,
                       .sampling = w->env.sampling,
                       .verification = verification,
                       .seed = (uint64_t)w->runs,
                       .merge = true,
                       .layout = w->runs % 2 ? LAYOUT_BATCH : LAYOUT_TREE,
                       .clock = still_clock(),
                       .step = count_trials,
                       .state = w};
    simt_settings.order = (SimtOrder)(w->runs % SIMT_ORDERS);
    if (!method_open(&m, method, &w->env, &e) || !decode(&w->target, &m, w->prompt, PROMPT, &o, out, &e))
        fail_msg("%s: %s", method, e.text);
    assert_int_equal(out->tokens, TOKENS);
    method_close(&m);
}

static void check(World *w, const char *method, Verification verification) {
    static const Sampling samplings[] = {{0.8, 0, 1}, {1.2, 20, 1}, {1, 0, 0.9}, {1.5, 30, 0.95}};
    Backend logits_only = cuda_backend;
    DecodeResult drawn, plain;
    logits_only.distribution = NULL;
    w->env.sampling = samplings[w->runs % 4];
    let_draw(w, &cuda_backend);
    run(w, method, verification, &drawn);
    let_draw(w, &logits_only);
    run(w, method, verification, &plain);
    let_draw(w, &cuda_backend);
    for (int i = 0; i < TOKENS; i++)
        if (drawn.ids[i] != plain.ids[i])
            fail_msg("%s, run %d: token %d is %d, the host draws %d", method, w->runs, i, drawn.ids[i],
                     plain.ids[i]);
    w->runs++;
    decode_result_release(&drawn);
    decode_result_release(&plain);
}

static void check_medusa(World *w, const char *folder, Random *r) {
    Adapter a;
    Session heads[2];
    Error e = {0};
    AdapterKind kind = {.variant = ADAPTER_MEDUSA, .exit_layer = w->model.model.shape.layers, .heads = 2};
    const char *dir = folder_path(folder, "medusa");
    if (!adapter_synth(dir, &w->model.model, &kind, random_bits(r) >> 1, false, &e) ||
        !adapter_open(&a, &w->model.model, dir, &e))
        fail_msg("%s", e.text);
    for (int i = 0; i < 2; i++) open_cuda(&heads[i], &a.models[i], w->compute);
    w->env.adapters[0] = (AdapterSet){.sessions = heads, .count = 2, .layer = kind.exit_layer};
    check(w, "medusa:nodes=12", VERIFICATION_TOKEN);
    w->env.adapters[0].count = 0;
    for (int i = 0; i < 2; i++) session_release(&heads[i]);
    adapter_close(&a);
}

static void methods_draw_as_the_host_does(void **state) {
    static const char *const alone[] = {"autoregressive", "jacobi:m=4,refill=fresh", "prompt-lookup:draft=4",
                                        "lookahead:W=4,N=3,G=3", "ngrammys:k=4,w=2"},
                             *const drafted[] = {
                                 "speculative:gamma=3",
                                 "speculative:gamma=2,draft_temperature=2,adaptive=confidence",
                                 "mix:speculative(gamma=2)+prompt-lookup(draft=3)"};
    Random r = test_random(152);
    for (int i = 0; i < 2; i++) {
        World w;
        Session draft;
        world_open(&w, i ? COMPUTE_BF16 : COMPUTE_F32, &r);
        for (size_t k = (size_t)i; k < sizeof alone / sizeof *alone; k += 1 + (size_t)i)
            check(&w, alone[k], VERIFICATION_TOKEN);
        open_cuda(&draft, &w.model.model, i ? COMPUTE_F32 : COMPUTE_BF16);
        w.env.draft = &draft;
        draft.shape.mask_token = 1;
        check(&w, "speculative:gamma=4,parallel=on", VERIFICATION_TOKEN);
        draft.shape.mask_token = 0;
        for (size_t k = 0; k < sizeof drafted / sizeof *drafted; k++)
            check(&w, drafted[k], VERIFICATION_TOKEN);
        for (int k = 0; k < 2; k++) check(&w, drafted[k], VERIFICATION_BLOCK);
        session_release(&draft);
        w.env.draft = NULL;
        check_medusa(&w, *state, &r);
        assert_true(w.accepted > 0 && w.accepted < w.tried);
        world_close(&w);
    }
    assert_int_equal(simt_live_bytes(), 0);
}

// --- distributions

static bool close_to(double got, double want) { return fabs(got - want) <= 2e-7 * want + 1e-11; }

static void compare_distribution(const Session *s, Draws *d, int node, const float *want) {
    float got[MOST_VOCAB];
    Error e = {0};
    for (int i = 0; i < d->vocab; i++) got[i] = NAN;
    if (!draws_distribution(d, s, node, got, &e)) fail_msg("%s", e.text);
    for (int i = 0; i < d->vocab; i++)
        if (!close_to((double)got[i], (double)want[i]))
            fail_msg("node %d: p of %d is %.9g, want %.9g", node, i, (double)got[i], (double)want[i]);
}

// Proposals that are looked at on the way to a node; all are one-hots.
static int tries_before(const Tree *t, int node) {
    int parent = t->parent[node], n = 1;
    if (parent == TREE_NONE) return 0;
    for (int i = t->first_proposal[parent]; t->proposals[i].child != node; i = t->proposals[i].next) n++;
    return n + tries_before(t, parent);
}

// What the first read said of a node, against its p on the host. A fetched distribution would draw alike, so
// the draw is looked at where it was left.
static void compare_numbers(const Session *s, Draws *d, int node, float *p, Random ahead) {
    const Tree *t = &s->tree;
    int tries = tries_before(t, node);
    for (int i = t->first_proposal[node]; i != TREE_NONE; i = t->proposals[i].next, tries++) {
        int child = t->proposals[i].child;
        assert_true(close_to(draws_chance(d, s, node, child), (double)p[t->token[child]]));
        p[t->token[child]] = 0;
    }
    ahead.counter += (uint64_t)tries;
    assert_int_equal(s->drawn[node], sampler_draw(p, d->vocab, random_uniform(&ahead)));
}

static void every_row_of_two_panels(void **state) {
    (void)state;
    World w;
    Draws d;
    Random r = test_random(153);
    world_open(&w, COMPUTE_F32, &r);
    Session *s = &w.target;
    int vocab = s->shape.vocab, root = 0;
    assert_true(vocab <= MOST_VOCAB);
    draws_init(&d, &(Sampling){.temperature = 0.9, .top_k = 40, .top_p = 1}, vocab);
    session_begin_step(s, true, LAYOUT_TREE);
    tree_root(&s->tree, 1);
    while (s->tree.count < NODES) { // in the last panel, too, nodes have proposals below them
        int last = s->tree.count - 1, first = test_between(&r, 0, 1) && last > 6 ? last - 6 : 0;
        tree_propose(&s->tree, test_between(&r, first, last), test_between(&r, 0, s->shape.real_vocab - 1));
    }
    assert_true(session_run(s, s->shape.layers, NULL) && draws_read(&d, s, &r, NULL));
    assert_true(session_read(s, HEAD_LOGITS, NULL)); // the same rows once more
    for (int node = NODES - 1; node >= 0; node--) {  // the last panel is still held
        float p[MOST_VOCAB], hidden[MOST_WIDTH];
        sampler_distribution(&d.sampler, session_logits(s, node), p);
        bool kept = node >= PANEL_ROWS, lost = node == 0 || node == PANEL_ROWS - 1;
        if (kept || lost) compare_distribution(s, &d, node, p);
        if (node == PANEL_ROWS + 2) // takes the logits' room
            assert_true(session_get_hidden(s, &root, 1, HIDDEN_NORMED, hidden, NULL));
        compare_numbers(s, &d, node, p, r);
    }
    draws_release(&d);
    world_close(&w);
    assert_int_equal(simt_live_bytes(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(methods_draw_as_the_host_does, folder_setup, folder_teardown),
        cmocka_unit_test(every_row_of_two_panels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
