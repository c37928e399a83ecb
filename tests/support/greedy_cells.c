#include "tests/support/greedy_cells.h"

#include "engine/cpu/cpu.h"
#include "engine/decode/decode.h"
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/random_model.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 130, TOKENS = 40 };

static const char *const SETTINGS[] = {
    "jacobi:m=4",
    "jacobi:m=20,start=repeat",
    "jacobi:m=7,refill=fresh",
    "prompt-lookup",
    "prompt-lookup:preset=hf-4.37",
    "prompt-lookup:match=frequent,draft=5,allow_short=on",
    "ngrammys:k=5,w=4",
    "ngrammys:k=3,w=6,strategy=extended,extend=model",
    "ngrammys:k=6,w=3,strategy=context,preset=appendix",
    "ngrammys:k=6,strategy=bigram,bos=on",
    "lookahead:W=5,N=3,G=5",
    "lookahead:W=4,N=5,G=4,mode=reference",
    "lookahead:W=6,N=4,G=3,prompt_pool=on,slide=accepted,eviction=fifo",
    "speculative:gamma=4,parallel=off",
    "speculative:adaptive=heuristic,draft_temperature=1,parallel=off",
    "speculative:gamma=9,adaptive=confidence,parallel=off",
    "speculative:gamma=9,adaptive=learned,cost=0.7,parallel=off",
    "speculative:gamma=6,parallel=on",
    "speculative:parallel=on,adaptive=heuristic,draft_temperature=1",
    "speculative:tree=3x2x2",
    "speculative:tree=eagle,draft_temperature=1",
    "kangaroo:eta=0.3",
    "kangaroo:gamma=4,eta=0",
    "kangaroo:gamma=7,eta=0,adaptive=learned,cost=0.5",
    "kangaroo:gamma=8,eta=0.2,strict=on,draft_temperature=1",
    "early-exit",
    "early-exit:exit_layer=1,gamma=4,eta=0.3",
    "early-exit:gamma=9,draft_temperature=1",
    "early-exit:gamma=9,adaptive=learned,cost=0.4",
    "ouroboros:gamma=5,K=4,beta=3,window=4",
    "ouroboros:gamma=4,K=3,beta=4,window=5,mode=reference",
    "ouroboros:gamma=3,K=5,beta=3,window=6,inspiration=off,warm=on",
    "mix:ngrammys(k=4,w=3)+lookahead(W=4,N=3,G=4),rows=40",
    "mix:kangaroo(gamma=3,eta=0)+speculative(gamma=3)+prompt-lookup",
    "mix:prompt-lookup+early-exit(gamma=3),rows=12",
    "mix:suffix+speculative(gamma=3),switch=match,threshold=3",
    "mix:prompt-lookup+early-exit(gamma=3),switch=learned,both=off",
    "mix:suffix(warm=on,pick=match,bias=2)+kangaroo(eta=0)+recycling,switch=learned,rows=30",
    "mix:prompt-lookup+lookahead(W=4,N=3,G=4)+jacobi(m=3),switch=score,threshold=4",
    "mix:suffix+ouroboros(gamma=4,K=2,beta=3,window=3),switch=learned,cost=2",
    "mix:jacobi(m=3)+ouroboros(gamma=4,K=2,beta=3,window=3),rows=25",
    "eagle:total=30,depth=4,top=5",
    "eagle:tree=static",
    "eagle3:total=50,depth=3,top=6,parallel=off",
    "eagle3:total=20,depth=4,top=3,parallel=on",
    "mix:speculative(gamma=3)+eagle3(total=20,depth=2,top=4,parallel=off)+prompt-lookup",
    "mtp:gamma=4",
    "mtp:gamma=6,adaptive=learned,cost=0.5",
    "eagle3:depth=5,top=1,adaptive=confidence,confidence=0.3,parallel=off",
    "mtp:gamma=3,top=3,total=20,state=normed,recycle=normed",
    "dflash",
    "dflash:gamma=2,draft_temperature=1",
    "dflash:adaptive=learned,cost=0.3",
    "dflash:adaptive=confidence,confidence=0.5",
    "dflash:tree=best,total=9,top=3",
    "mix:dflash(gamma=3)+prompt-lookup",
};
enum { SETTING_COUNT = sizeof SETTINGS / sizeof *SETTINGS };

static const int BOS = 1;

typedef struct {
    RandomModel model, adapter_model, eagle_models[4];
    Session target, draft, adapter, eagles[4]; // EAGLE-1's, MTP's, EAGLE-3's, DFlash's
    Captures captures, last;
    MethodEnv env;
    int prompt[CONTEXT], count, eos, want; // want: tokens that should come out
    int truth[TOKENS];
    double steps, tokens;
    // of what has come
    int ends_inside, ones, edges, wrapped;
} World;

static void open_cpu(Session *s, const Model *m, Compute compute) {
    BackendOptions o = {.compute = compute, .context = CONTEXT, .max_nodes = 160, .slack = 16, .threads = 1};
    void *self;
    Error e = {0};
    if (!cpu_open(m, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &cpu_backend, self, &m->shape, &o);
}

// The draft is the target at another compute, so that it is nearly always right; the adapter now and then.
static void open_models(World *w, int number, Random *r) {
    Shape shape = random_shape(r);
    if (shape.layers == 1) shape.layers = 2;
    if (shape.vocab > 120) shape.vocab = shape.real_vocab = 120; // tables of bigrams in a blink
    bool half = number % 2;
    int layer = test_between(r, 1, shape.layers - 1);
    random_model_init(&w->model, &shape, half ? DTYPE_BF16 : DTYPE_F32, false, r);
    random_model_calm(&w->model, layer);
    random_adapter_init(&w->adapter_model, &w->model.model, r);
    open_cpu(&w->target, &w->model.model, half ? COMPUTE_BF16 : COMPUTE_F32);
    open_cpu(&w->draft, &w->model.model, half ? COMPUTE_F32 : COMPUTE_BF16);
    w->draft.shape.mask_token = test_between(r, 1, shape.vocab - 1);
    open_cpu(&w->adapter, &w->adapter_model.model, half ? COMPUTE_BF16 : COMPUTE_F32);
    w->captures = (Captures){3, {layer, 1, shape.layers - 1}};
    w->last = (Captures){1, {shape.layers}};
    for (int i = 0; i < 4; i++) {
        random_draft_init(&w->eagle_models[i], &w->model.model, (InputKind)(INPUT_FUSED + i), 3, r);
        open_cpu(&w->eagles[i], &w->eagle_models[i].model, half ? COMPUTE_BF16 : COMPUTE_F32);
    }
    w->eagles[2].shape.mask_token = w->draft.shape.mask_token;
    w->env = (MethodEnv){.target = &w->target,
                         .draft = &w->draft,
                         .adapters = {{&w->adapter, 1, layer, NULL, NULL},
                                      {&w->eagles[0], 1, shape.layers, NULL, NULL},
                                      {&w->eagles[1], 1, shape.layers, &w->last, NULL},
                                      {&w->eagles[2], 1, shape.layers, &w->captures, NULL},
                                      {&w->eagles[3], 1, shape.layers, &w->captures, NULL}},
                         .sampling = {.top_p = 1},
                         .eos = &w->eos,
                         .eos_count = 1,
                         .facts = {.prefix = &BOS, .prefix_count = 1}};
}

static void close_models(World *w) {
    for (int i = 0; i < 4; i++) {
        session_release(&w->eagles[i]);
        random_model_release(&w->eagle_models[i]);
    }
    session_release(&w->target);
    session_release(&w->draft);
    session_release(&w->adapter);
    random_model_release(&w->model);
    random_model_release(&w->adapter_model);
}

// What stood before comes back, as in a text; in a third of the cases the end is a token that will come.
static void random_case(World *w, Random *r) {
    int kind = test_between(r, 0, 5), vocab = w->target.shape.real_vocab;
    w->count = kind == 0 ? 1 : kind == 1 ? CONTEXT - test_between(r, 0, 6) : test_between(r, 2, 80);
    for (int i = 0; i < w->count; i++) {
        bool again = i > 6 && test_between(r, 0, 3);
        w->prompt[i] = again ? w->prompt[i - test_between(r, 2, 6)] : test_between(r, 0, vocab - 1);
    }
    w->want = CONTEXT - w->count < TOKENS ? CONTEXT - w->count : TOKENS;
    slow_greedy(&w->target, w->prompt, w->count, w->want, w->truth);
    w->eos = -1;
    if (w->want > 4 && test_between(r, 0, 2) == 0) w->eos = w->truth[test_between(r, 4, w->want - 1)];
    for (int i = 0; i < w->want; i++)
        if (w->truth[i] == w->eos) w->want = i + 1;
}

static void see_step(void *state, const StepReport *r) {
    World *w = state;
    w->ends_inside += r->emitted <= r->accepted && w->eos >= 0;
}

static void check(World *w, const char *text, Random *r) {
    Method m;
    DecodeResult out;
    Error e = {0};
    random_case(w, r);
    w->env.seed = random_bits(r);
    DecodeOptions o = {.max_tokens = TOKENS,
                       .eos = &w->eos,
                       .eos_count = 1,
                       .sampling = {.top_p = 1},
                       .seed = random_bits(r),
                       .merge = test_between(r, 0, 2) > 0,
                       .layout = test_between(r, 0, 2) ? LAYOUT_TREE : LAYOUT_BATCH,
                       .max_rows = test_between(r, 0, 3) ? 0 : test_between(r, 1, 30),
                       .prefill_chunk = test_between(r, 0, 40),
                       .clock = still_clock(),
                       .step = see_step,
                       .state = w};
    if (!method_open(&m, text, &w->env, &e)) fail_msg("%s: %s", text, e.text);
    if (!decode(&w->target, &m, w->prompt, w->count, &o, &out, &e)) fail_msg("%s: %s", text, e.text);
    int same = 0;
    while (same < out.tokens && same < w->want && out.ids[same] == w->truth[same]) same++;
    if (out.tokens != w->want || same < w->want)
        fail_msg("%s: %d tokens, %d of them right, want %d (prompt %d, window %d, end %d, seed %llu)", text,
                 out.tokens, same, w->want, w->count, w->target.shape.window, w->eos,
                 (unsigned long long)test_seed());
    w->steps += out.steps;
    w->tokens += out.tokens;
    w->ones += w->count == 1;
    w->edges += w->count + out.tokens == CONTEXT;
    w->wrapped += w->target.shape.window && w->count + out.tokens > 3 * (w->target.shape.window + 16);
    decode_result_release(&out);
    method_close(&m);
}

void greedy_cells(int models) {
    Random r = test_random(95);
    World sum = {0};
    for (int i = 0; i < models; i++) {
        World w = {0};
        open_models(&w, i, &r);
        for (int k = 0; k < SETTING_COUNT; k++) check(&w, SETTINGS[k], &r);
        for (int ranks = 1; ranks <= TREE_MAX_PARTS; ranks++) {
            char text[100];
            snprintf(text, sizeof text, "lookahead:W=%d,N=%d,G=%d,ranks=%d", test_between(&r, 1, 9),
                     test_between(&r, 2, 5), test_between(&r, 0, 9), ranks);
            check(&w, text, &r);
        }
        sum.steps += w.steps;
        sum.tokens += w.tokens;
        sum.ends_inside += w.ends_inside;
        sum.ones += w.ones;
        sum.edges += w.edges;
        sum.wrapped += w.wrapped;
        close_models(&w);
    }
    print_message("%d outputs, S %.2f; %d ends inside a prefix, %d prompts of one token, %d at the context's "
                  "edge, %d windows wrapped\n",
                  models * (SETTING_COUNT + TREE_MAX_PARTS), sum.tokens / sum.steps, sum.ends_inside,
                  sum.ones, sum.edges, sum.wrapped);
    assert_true(sum.tokens > 1.2 * sum.steps);
    assert_true(sum.ends_inside > models && sum.ones > models && sum.edges > models && sum.wrapped > models);
}
